"""A normalised image as a numpy array. It imports Pillow and numpy at once, so only a detector imports it."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy  # type: ignore[import-not-found,unused-ignore]
from PIL import Image


def bgr(file: BytesIO) -> Any:
    """uint8, height x width x (blue, green, red). Nothing is turned: normalised images carry no orientation."""
    with Image.open(file) as image:
        rgb = numpy.asarray(image.convert("RGB"))
    return numpy.ascontiguousarray(rgb[..., ::-1])
