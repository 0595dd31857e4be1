"""From boxes that people drew, in pixels of the original image, to boxes in pixels of the normalised one.

Knows no file format and looks at no pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, TypeAlias

from pydantic import Field, ValidationError

from vpref.detection.records import Found, Target
from vpref.domain import Detection

Size = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Named: TypeAlias = tuple[str, tuple[float, float, float, float]]
"""A name with x, y, width, height in the original's pixels."""


def scaled(target: Target, boxes: Sequence[Named], original: tuple[float, float], file: str) -> Found:
    """The boxes as found, or an error where `file` gives the original a shape that the image does not have."""
    width, height = original
    # Rounding to whole pixels moves each side by half a pixel at most; beyond that it is another picture.
    if abs(target.width * height - target.height * width) > 1.01 * max(width, height):
        return Found(
            error=f"{file} has it as {width:.0f} x {height:.0f} px, another shape than its {target.width} x "
            f"{target.height} px."
        )
    across, down = target.width / width, target.height / height
    place = partial(round, ndigits=2)
    return Found(
        tuple(
            Detection(
                name=name,
                x0=place(x * across),
                y0=place(y * down),
                x1=place((x + w) * across),
                y1=place((y + h) * down),
            )
            for name, (x, y, w, h) in boxes
        )
    )


def first_problem(exc: ValidationError) -> str:
    """Where a file departs from its form, and how, fit to stand inside a sentence."""
    error = exc.errors()[0]
    where = ".".join(map(str, error["loc"]))
    return f"{where}: {error['msg']}" if where else str(error["msg"])
