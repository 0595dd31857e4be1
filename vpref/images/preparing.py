"""From settings to a gallery: every chosen image listed, normalised once, kept, and accounted for.

Knows nothing of what the images are for. It blocks until all are done, so it belongs before the event loop.
Pillow is loaded on use, so that whoever only imports this does not wait for it.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter, deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Literal

from vpref.errors import BadImage, ConfigError
from vpref.images.gallery import Gallery
from vpref.images.index import Entry, Index
from vpref.images.records import ImageRecord
from vpref.images.sources import SourceImage, list_images
from vpref.settings import DataSettings

INDEX_NAME = "index.jsonl"
_THREADS = min(4, os.cpu_count() or 1)


def prepare(
    settings: DataSettings, gallery: Gallery, on_image: Callable[[ImageRecord], None] | None = None
) -> list[ImageRecord]:
    """Puts the chosen images into `gallery`; one record an image, in order, each also told to `on_image`.

    Raises ConfigError when the images are not found or none of them can be used, RunStopped when the gallery
    cannot be written.
    """
    sources = list_images(settings)
    records: list[ImageRecord] = []
    firsts: dict[str, str] = {}
    with (
        Index(gallery.root / INDEX_NAME, _rules(settings)) as index,
        closing(_entries(sources, settings, gallery, index)) as entries,
    ):
        for source, entry in zip(sources, entries, strict=True):
            record = _record(source, entry, firsts)
            records.append(record)
            if on_image is not None:
                on_image(record)
    if all(record.status == "refused" for record in records):
        raise _nothing_usable(records)
    return records


def _entries(
    sources: list[SourceImage], settings: DataSettings, gallery: Gallery, index: Index
) -> Generator[Entry, None, None]:
    """An entry a source, in order. Pillow lets other threads run while it decodes; never more than a few images
    are under way, so that memory stays flat over any number."""
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="images") as pool:
        pending: deque[Future[Entry]] = deque()
        try:
            for source in sources:
                pending.append(pool.submit(_entry, source, settings, gallery, index))
                if len(pending) >= 4 * _THREADS:
                    yield _settled(pending.popleft().result(), index)
            while pending:
                yield _settled(pending.popleft().result(), index)
        finally:
            for future in pending:
                future.cancel()


def _rules(settings: DataSettings) -> str:
    from vpref.images.normalising import FORM

    return f"{FORM}/{settings.max_side}/{settings.min_side}/{settings.max_megapixels}"


def _settled(entry: Entry, index: Index) -> Entry:
    # An unreadable file may be readable next time; all else follows from the bytes, and is remembered.
    if entry.source and entry.kind != "unreadable" and index.get(entry.source) != entry:
        index.remember(entry)
    return entry


def _entry(source: SourceImage, settings: DataSettings, gallery: Gallery, index: Index) -> Entry:
    from vpref.images.normalising import normalise

    digest = ""
    try:
        data = _read(source)
        digest = hashlib.sha256(data).hexdigest()
        known = index.get(digest)
        if known is not None and (known.digest is None or known.digest in gallery):
            return known
        image = normalise(data, settings)
    except BadImage as bad:
        return Entry(source=digest, rules=index.rules, kind=bad.kind, reason=str(bad))
    return Entry(
        source=digest,
        rules=index.rules,
        digest=gallery.add(image),
        pixels=image.pixels,
        width=image.width,
        height=image.height,
    )


def _read(source: SourceImage) -> bytes:
    if not source.present:
        raise BadImage("missing", "It is listed in Visual Genome's image_data.json, but its file is absent.")
    try:
        return source.path.read_bytes()
    except OSError as exc:
        raise BadImage("unreadable", f"The file cannot be read ({exc.strerror}).") from exc


def _record(source: SourceImage, entry: Entry, firsts: dict[str, str]) -> ImageRecord:
    """`firsts` maps file and pixel digests to the first source that had them, and is added to."""
    first = None
    status: Literal["used", "duplicate", "refused"] = "refused"
    if entry.digest is not None and entry.pixels is not None:
        first = firsts.get(entry.digest) or firsts.get(entry.pixels)
        status = "duplicate" if first is not None else "used"
        for digest in (entry.digest, entry.pixels):
            firsts.setdefault(digest, first or source.id)
    return ImageRecord(
        source=source.id,
        status=status,
        duplicate_of=first,
        **entry.model_dump(exclude={"source", "rules"}),
        attribution=source.attribution,
        licence=source.licence,
        licence_url=source.licence_url,
        url=source.url,
    )


def _nothing_usable(records: list[ImageRecord]) -> ConfigError:
    counts = Counter(record.kind for record in records)
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    first = records[0]
    return ConfigError(
        f"None of the {len(records)} chosen images can be used ({kinds}); the first, {first.source}: {first.reason} "
        "Choose others by data.root, data.first, data.sample or data.ids."
    )
