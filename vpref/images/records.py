"""The record of what became of a source image. Knows nothing of how it was found, decoded or kept."""

from __future__ import annotations

from typing import Literal

from vpref.domain import Record


class ImageRecord(Record):
    """What became of one source image. A duplicate has the digests of its own normal form, and names the first
    image with the same file or the same pixels; a refused one has the `kind` it is counted by and the reason."""

    source: str
    status: Literal["used", "duplicate", "refused"]
    digest: str | None = None
    pixels: str | None = None
    width: int | None = None
    height: int | None = None
    kind: str | None = None
    reason: str | None = None
    duplicate_of: str | None = None
    attribution: str | None = None
    licence: str | None = None
    licence_url: str | None = None
    url: str | None = None
