"""Reads JPEG and PNG files segment by segment to say whether they hold a picture and nothing else.

Only such a file may be sent on as it is: a place, a serial number or a name hides in EXIF, XMP, IPTC, a
comment, an embedded thumbnail, or after the end of the picture. So this lists what is harmless, and whatever
is not on the list counts as metadata. Knows nothing of pixels: that the picture decodes is for others to see.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Suffix: TypeAlias = Literal[".jpg", ".png"]

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
JPEG_SIGNATURE = b"\xff\xd8\xff"

_APP0, _APP14, _START_OF_SCAN, _END_OF_IMAGE = 0xE0, 0xEE, 0xDA, 0xD9
# Frames that every decoder knows: baseline, extended sequential, progressive, all Huffman coded.
_FRAMES = (0xC0, 0xC1, 0xC2)
_TABLES = (0xC4, 0xDB, 0xDD)
_AFTER_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7]")

_PNG_CHUNKS = frozenset({b"IHDR", b"PLTE", b"IDAT", b"IEND", b"sRGB", b"gAMA", b"cHRM", b"sBIT", b"pHYs", b"bKGD"})
_PNG_RGB8 = b"\x08\x02"


def suffix_of(data: bytes) -> Suffix:
    """The suffix of a file that is known to be a JPEG or a PNG."""
    return ".png" if data.startswith(PNG_SIGNATURE) else ".jpg"


def is_bare(data: bytes) -> bool:
    """Whether `data` is a JPEG of three 8-bit components or an 8-bit RGB PNG without any metadata."""
    if data.startswith(PNG_SIGNATURE):
        return _is_bare_png(data)
    return data.startswith(JPEG_SIGNATURE) and _is_bare_jpeg(data)


def _is_bare_jpeg(data: bytes) -> bool:
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if length < 2 or not _is_harmless(marker, data[at + 4 : at + 2 + length]):
            return False
        at += 2 + length
        if marker == _START_OF_SCAN:
            following = _AFTER_SCAN.search(data, at)
            if following is None:
                return False
            at = following.start()
    return data[at:] == bytes((0xFF, _END_OF_IMAGE))


def _is_harmless(marker: int, body: bytes) -> bool:
    if marker == _APP0:
        return body.startswith(b"JFIF\0") and len(body) == 14  # longer ones carry a thumbnail
    if marker == _APP14:
        return body.startswith(b"Adobe") and len(body) == 12
    if marker in _FRAMES:
        return len(body) > 5 and body[0] == 8 and body[5] == 3
    return marker in _TABLES or marker == _START_OF_SCAN


def _is_bare_png(data: bytes) -> bool:
    if data[24:26] != _PNG_RGB8:
        return False
    at, name = len(PNG_SIGNATURE), b""
    while name != b"IEND":
        name = data[at + 4 : at + 8]
        if name not in _PNG_CHUNKS:
            return False
        at += 12 + int.from_bytes(data[at : at + 4], "big")
    return at == len(data)
