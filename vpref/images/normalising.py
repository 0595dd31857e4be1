"""One image file in, its one normal form out: upright, sRGB, bounded, free of metadata, known by digest.

A file that is already in this form keeps its bytes. Knows nothing of where images come from or are kept.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from vpref.errors import BadImage
from vpref.images.containers import Suffix, is_bare, suffix_of
from vpref.images.decoding import Pixels, jpeg, opened, size_within, upright_rgb
from vpref.settings import DataSettings

FORM = 1
"""Raised whenever a rule below changes what comes out, so that remembered results are not taken for new ones."""

_QUALITY = 95
_MEGAPIXELS_EVER = 1000.0


@dataclass(frozen=True, slots=True)
class Normalised:
    """An image in normal form. `digest` is the sha256 of `data`, `pixels` that of "WxH" and the RGB bytes from
    before any re-encoding, so that one picture in two containers is recognised."""

    data: bytes
    suffix: Suffix
    width: int
    height: int
    digest: str
    pixels: str


def normalise(data: bytes, settings: DataSettings) -> Normalised:
    """The normal form of an image file's bytes. All of it is decoded, so a damaged one is found here.

    Raises BadImage of kind `empty`, `not_an_image`, `truncated`, `too_small`, `too_large`, `animated`,
    `unsupported`, or `unreadable` (no memory).
    """
    with opened(data, settings.max_megapixels) as image:
        if min(image.size) < settings.min_side:
            size = f"{image.size[0]} x {image.size[1]} px"
            detail = f"It has {size}; its shorter side is below the {settings.min_side} px of data.min_side."
            raise BadImage("too_small", detail)
        bare = max(image.size) <= settings.max_side and is_bare(data)
        picture = upright_rgb(image, settings.max_side)
    kept = data if bare else jpeg(picture, _QUALITY)
    return Normalised(
        data=kept,
        suffix=suffix_of(kept),
        width=picture.width,
        height=picture.height,
        digest=hashlib.sha256(kept).hexdigest(),
        pixels=_pixel_digest(picture),
    )


def reduced(data: bytes, max_side: int, quality: int) -> bytes | None:
    """A JPEG of a normalised image whose longer side is `max_side` px, or None where it is no longer than that."""
    with opened(data, _MEGAPIXELS_EVER) as image:
        if size_within(image.size, max_side) == image.size:
            return None
        picture = upright_rgb(image, max_side)
    return jpeg(picture, quality)


def _pixel_digest(picture: Pixels) -> str:
    digest = hashlib.sha256(f"{picture.width}x{picture.height}".encode())
    digest.update(picture.tobytes())
    return digest.hexdigest()
