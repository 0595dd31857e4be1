"""Normalised images in a folder, each under its sha256, and as they go over the wire.

Knows nothing of where they came from. Pillow is loaded only when an image must be made smaller to be sent.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

from vpref.errors import BadImage, ConfigError, RunStopped
from vpref.images.containers import suffix_of
from vpref.settings import ImageSettings

if TYPE_CHECKING:
    from vpref.images.normalising import Normalised

_CACHE_BYTES = 12 * 2**20  # an item's image is needed by its neighbours and hardly again
_SENT_QUALITY = 90
_TYPES = {".jpg": b"image/jpeg", ".png": b"image/png"}


class Gallery:
    """Files `root/<digest>.jpg|.png`. Made for one asyncio thread; `add` and `path` may be called from any."""

    def __init__(self, root: Path, cache_bytes: int = _CACHE_BYTES) -> None:
        self.root = root
        self._cache_bytes = cache_bytes
        self._urls: OrderedDict[tuple[str, int | None], bytes] = OrderedDict()
        self._cached = 0

    def add(self, image: Normalised) -> str:
        """Keeps `image` and returns its digest. A file that is there already stays.

        Raises RunStopped when it cannot be written.
        """
        target = self.root / f"{image.digest}{image.suffix}"
        if not target.exists():
            self._put(target, image.data)
        return image.digest

    def __contains__(self, digest: str) -> bool:
        return any((self.root / f"{digest}{suffix}").exists() for suffix in _TYPES)

    def path(self, digest: str) -> Path:
        """Where the image lies. Raises ConfigError when it does not."""
        for suffix in _TYPES:
            candidate = self.root / f"{digest}{suffix}"
            if candidate.exists():
                return candidate
        raise ConfigError(
            f"Image {digest[:16]}... is not in {self.root}; give the folder that the images were prepared in, "
            "or prepare them again."
        )

    def read(self, digest: str) -> bytes:
        """The image's bytes, checked against its digest. Raises ConfigError when absent, unreadable or changed."""
        path = self.path(digest)
        try:
            data = path.read_bytes()
        except OSError as exc:
            raise ConfigError(f"Image {path} cannot be read: {exc.strerror}.") from exc
        if hashlib.sha256(data).hexdigest() != digest:
            raise ConfigError(f"Image {path} was changed since it was stored; delete it and prepare the images again.")
        return data

    def link_into(self, other: Gallery, digest: str) -> None:
        """Puts the image into `other` too, as a hard link where the file system allows it, else as a copy."""
        source = self.path(digest)
        target = other.root / source.name
        if target.exists():
            return
        try:
            other.root.mkdir(parents=True, exist_ok=True)
            os.link(source, target)
        except FileExistsError:
            return
        except OSError:
            other._put(target, self.read(digest))

    def encoding(self, settings: ImageSettings) -> str:
        """How `data_url` encodes by these settings; part of a call's key."""
        return "original" if settings.max_side is None else f"jpeg{_SENT_QUALITY}-{settings.max_side}"

    def data_url(self, digest: str, settings: ImageSettings) -> bytes:
        """The image as `data:image/...;base64,...`, made smaller where `settings.max_side` asks for it.

        Raises ConfigError when the image is absent or changed.
        """
        key = (digest, settings.max_side)
        url = self._urls.get(key)
        if url is None:
            url = self._encoded(digest, settings.max_side)
            self._remember(key, url)
        else:
            self._urls.move_to_end(key)
        return url

    def _encoded(self, digest: str, max_side: int | None) -> bytes:
        data = self.read(digest)
        if max_side is not None:
            from vpref.images.normalising import reduced

            try:
                data = reduced(data, max_side, _SENT_QUALITY) or data
            except BadImage as exc:
                raise ConfigError(f"Image {self.path(digest)} cannot be decoded: {exc}") from exc
        return b"data:" + _TYPES[suffix_of(data)] + b";base64," + base64.b64encode(data)

    def _remember(self, key: tuple[str, int | None], url: bytes) -> None:
        self._urls[key] = url
        self._cached += len(url)
        while self._cached > self._cache_bytes:
            _, oldest = self._urls.popitem(last=False)
            self._cached -= len(oldest)

    def _put(self, target: Path, data: bytes) -> None:
        part = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                part.write_bytes(data)
                os.replace(part, target)
            finally:
                part.unlink(missing_ok=True)
        except OSError as exc:
            reason = exc.strerror or exc
            raise RunStopped(f"Image {target} cannot be written: {reason}; mend that and start again.") from exc
