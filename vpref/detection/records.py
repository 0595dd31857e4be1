"""What detection takes and gives: an image by digest, the gallery that has its bytes, what was found in it.

The first two are shapes, not classes, so that detection need not know `vpref.images`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from vpref.domain import Detection


class Image(Protocol):
    """A prepared image, as `vpref.images.ImageRecord` is one; those without a digest or size are passed over."""

    @property
    def source(self) -> str: ...
    @property
    def digest(self) -> str | None: ...
    @property
    def width(self) -> int | None: ...
    @property
    def height(self) -> int | None: ...


class Gallery(Protocol):
    """Where the bytes of normalised images are, as in `vpref.images.Gallery`."""

    def read(self, digest: str) -> bytes: ...


class Target(NamedTuple):
    """An image to find boxes in: the digest of its normal form, its name in its source, its size in px."""

    digest: str
    source: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Found:
    """The boxes of one image as they were found, or why looking for them failed; then there are none."""

    detections: tuple[Detection, ...] = ()
    error: str | None = None
