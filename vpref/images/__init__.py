"""Images: found, normalised once on the way in, kept by digest, encoded once for the wire.

Importing this loads no Pillow: `prepare` and `Gallery` load it on use, `vpref.images.normalising` at once.
Knows nothing of models, prompts or runs.
"""

from __future__ import annotations

from vpref.images.gallery import Gallery
from vpref.images.preparing import prepare
from vpref.images.records import ImageRecord
from vpref.images.sources import SourceImage, list_images

__all__ = ["Gallery", "ImageRecord", "SourceImage", "list_images", "prepare"]
