"""From the bytes of any image file to upright 8-bit sRGB pixels, through Pillow and on our terms.

Everything that Pillow may say about bad bytes becomes a BadImage here; nothing of Pillow's leaves this
module but images. It imports Pillow, so only commands that touch images import it. Knows nothing of files,
folders, or what the pixels are for.
"""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeAlias, cast

from PIL import Image, ImageCms, ImageFile, TiffImagePlugin, WebPImagePlugin

from vpref.errors import BadImage

Pixels: TypeAlias = Image.Image

# The formats we read, and no others: Pillow hands some to outside programs. Importing a plugin registers it, and
# `Image.open` itself loads only the other four.
_PLUGINS = (TiffImagePlugin, WebPImagePlugin)
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")
_SIGNATURES = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"GIF8": "GIF",
    b"RIFF": "WebP",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
}
_SIXTEEN_BIT = ("I", "I;16", "I;16L", "I;16B", "I;16N")
_MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", *_SIXTEEN_BIT)

_ORIENTATION = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@contextmanager
def opened(data: bytes, max_megapixels: float) -> Iterator[ImageFile.ImageFile]:
    """The image of `data`, its header read and checked, its pixels not yet decoded.

    Raises BadImage, also for whatever Pillow raises while the image is used inside.
    """
    if not data:
        raise BadImage("empty", "The file is empty.")
    max_pixels = int(max_megapixels * 1e6)
    with _TERMS.for_images_up_to(max_pixels), _translated(max_megapixels), _open(data) as image:
        _check_header(image, max_pixels)
        yield image


def size_within(size: tuple[int, int], max_side: int) -> tuple[int, int]:
    """`size` reduced so that its longer side is at most `max_side` px, never below one pixel."""
    scale = min(1.0, max_side / max(size))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def upright_rgb(image: ImageFile.ImageFile, max_side: int) -> Pixels:
    """Decodes all of `image` into RGB: reduced to `max_side`, colours in sRGB, on white, turned as it was taken."""
    size = size_within(image.size, max_side)
    if size != image.size:
        # A JPEG decodes at 1/2, 1/4 or 1/8 for much less; twice the size wanted leaves LANCZOS enough to work on.
        image.draft(None, (2 * size[0], 2 * size[1]))
    image.load()
    picture = _plain_mode(image)
    if size != picture.size:
        picture = picture.resize(size, Image.Resampling.LANCZOS)
    picture = _on_white(_in_srgb(picture, image.info.get("icc_profile")))
    turn = _TURNS.get(_orientation(image))
    return picture if turn is None else picture.transpose(turn)


def jpeg(picture: Pixels, quality: int) -> bytes:
    """`picture` as a JPEG with full colour resolution and no metadata."""
    # Pillow writes a comment that it finds in `info`, so nothing of the source's may be left there.
    picture.info = {}
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=quality, subsampling=0)
    return out.getvalue()


# --- Pillow on our terms ---------------------------------------------------------------------------------


class _Terms:
    """Pillow's process-wide switches as we need them, while at least one thread is inside, and then as before.

    No warnings from Pillow (what it warns of is either refused or harmless here), its own size guard no
    lower than ours, and no cut files passed as whole ones, which other libraries switch on for everybody.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._restore = ExitStack()

    @contextmanager
    def for_images_up_to(self, max_pixels: int) -> Iterator[None]:
        with self._lock:
            if self._inside == 0:
                self._set()
            self._inside += 1
            Image.MAX_IMAGE_PIXELS = max(Image.MAX_IMAGE_PIXELS or 1, max_pixels)
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._restore.close()

    def _set(self) -> None:
        self._restore.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", module=r"PIL\.")
        self._restore.callback(setattr, Image, "MAX_IMAGE_PIXELS", Image.MAX_IMAGE_PIXELS)
        self._restore.callback(setattr, ImageFile, "LOAD_TRUNCATED_IMAGES", ImageFile.LOAD_TRUNCATED_IMAGES)
        ImageFile.LOAD_TRUNCATED_IMAGES = False


_TERMS = _Terms()


@contextmanager
def _translated(max_megapixels: float) -> Iterator[None]:
    try:
        yield
    except BadImage:
        raise
    except Image.DecompressionBombError as exc:
        detail = f"Its header claims more than twice the {max_megapixels:g} megapixels of data.max_megapixels."
        raise BadImage("too_large", detail) from exc
    except MemoryError as exc:
        raise BadImage("unreadable", "Decoding it needs more memory than there is.") from exc
    except Exception as exc:
        # Decoders raise whatever the bytes provoke (struct.error, KeyError, ZeroDivisionError, ...): no list is safe.
        raise BadImage("truncated", f"The picture is cut short or damaged ({_first_line(exc)}).") from exc


def _open(data: bytes) -> ImageFile.ImageFile:
    try:
        return Image.open(io.BytesIO(data), formats=FORMATS)
    except (MemoryError, Image.DecompressionBombError):
        raise
    except Exception as exc:
        kind = next((name for start, name in _SIGNATURES.items() if data.startswith(start)), None)
        if kind is None:
            raise BadImage("not_an_image", "It is no JPEG, PNG, WebP, BMP, GIF or TIFF file.") from exc
        detail = f"It begins as a {kind} file, but its header is cut short, damaged or of an unknown kind."
        raise BadImage("truncated", detail) from exc


def _first_line(exc: Exception) -> str:
    return (str(exc).splitlines() or [type(exc).__name__])[0][:120]


def _check_header(image: ImageFile.ImageFile, max_pixels: int) -> None:
    width, height = image.size
    if width * height > max_pixels:
        limit = f"{max_pixels / 1e6:g} megapixels of data.max_megapixels"
        raise BadImage("too_large", f"Its {width} x {height} px are more than the {limit}.")
    # A phone's MPO holds the photo first, then a preview or depth map: that first one is the image.
    if getattr(image, "is_animated", False) and image.format != "MPO":
        count, parts = getattr(image, "n_frames", "several"), "pages" if image.format == "TIFF" else "frames"
        raise BadImage("animated", f"It holds {count} {parts}; one still image is wanted.")
    if image.mode not in _MODES:
        detail = f"Its pixels are of Pillow's mode {image.mode}, which has no sure way to 8-bit RGB."
        raise BadImage("unsupported", detail)


# --- pixels ----------------------------------------------------------------------------------------------


def _plain_mode(image: Pixels) -> Pixels:
    """The same pixels as L, RGB, RGBA or CMYK, the modes that can be resized and colour managed."""
    if image.mode in _SIXTEEN_BIT:
        return _from_sixteen_bit(image)
    if image.has_transparency_data:
        return image.convert("RGBA")
    if image.mode == "1":
        return image.convert("L")
    return image if image.mode in ("L", "RGB", "CMYK") else image.convert("RGB")


def _from_sixteen_bit(image: Pixels) -> Pixels:
    """Grey of 16 bits to 8 by v/257, so that both black and white stay what they are."""
    wide = image if image.mode == "I" else image.convert("I")
    low, high = cast(tuple[int, int], wide.getextrema())
    if low < 0 or high > 0xFFFF:
        detail = f"Its 32-bit values run from {low} to {high}, beyond 16 bits; what is white is not known."
        raise BadImage("unsupported", detail)
    return wide.point(lambda value: value * (1 / 257) + 0.5).convert("L")


def _in_srgb(picture: Pixels, profile: bytes | None) -> Pixels:
    """`picture` converted from its embedded ICC profile; a broken or unfit profile is as good as none."""
    if not profile:
        return picture
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        if ImageCms.getProfileDescription(source).strip().startswith("sRGB"):
            return picture
        mode = "RGBA" if picture.mode == "RGBA" else "RGB"
        converted = ImageCms.profileToProfile(picture, source, ImageCms.createProfile("sRGB"), outputMode=mode)
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return picture
    return converted or picture


def _on_white(picture: Pixels) -> Pixels:
    if picture.mode != "RGBA":
        return picture if picture.mode == "RGB" else picture.convert("RGB")
    white = Image.new("RGB", picture.size, "white")
    white.paste(picture, mask=picture.getchannel("A"))
    return white


def _orientation(image: Pixels) -> int:
    """The EXIF orientation, 1 where there is none. Asked after decoding: a PNG may keep its EXIF at the end."""
    if image.format == "TIFF":
        return 1  # Pillow has turned it already
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:
        return 1  # damaged EXIF says nothing; like decoders, Pillow raises whatever the bytes provoke
