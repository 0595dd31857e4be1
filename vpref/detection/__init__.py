"""Detection: the boxes of an image, found by a detector or read from annotations, and which of them are shown.

Importing this loads neither ultralytics nor Pillow: a detector loads them on use. Knows nothing of prompts, models
or runs, nor of how images are prepared and kept: whoever calls hands both over.
"""

from __future__ import annotations

from vpref.detection.finding import check, detect
from vpref.detection.records import Found
from vpref.detection.selection import Selection, letter, select

__all__ = ["Found", "Selection", "check", "detect", "letter", "select"]
