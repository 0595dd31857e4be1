"""From images to their boxes: what an earlier run found, and the rest by a detector or from annotations.

Knows the three sources by name and nothing of how each works.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from vpref.detection import coco, visual_genome
from vpref.detection.journal import FoundJournal
from vpref.detection.records import Found, Gallery, Image, Target
from vpref.errors import ConfigError
from vpref.settings import BoxSource, DetectionSettings

_FORM = "1"
"""Raised whenever the same source comes to give other boxes, so that remembered ones are not taken for new."""


def check(settings: DetectionSettings, data_root: str | None = None) -> None:
    """Raises ConfigError when the source of boxes cannot be used: a detector is loaded and run on a blank image, a
    file is read. `data_root` is the data's own root, where Visual Genome keeps its objects."""
    if settings.source is BoxSource.yolo:
        from vpref.detection import yolo

        yolo.load(settings)
    elif settings.source is BoxSource.visual_genome:
        visual_genome.check(*visual_genome.files(settings, data_root))
    else:
        coco.read(coco.chosen_file(settings))


def detect(
    images: Sequence[Image],
    gallery: Gallery,
    settings: DetectionSettings,
    root: Path,
    data_root: str | None = None,
    on_image: Callable[[str, int], None] | None = None,
) -> dict[str, Found]:
    """The boxes of each image by its digest, in the order of `images`. Each image is also told to `on_image` once it
    is done, with the number of its boxes: first those known from `root`, the folder in which earlier runs left what
    they found.

    An image that fails has its error in its Found, and the others go on. Raises ConfigError when the source of boxes
    cannot be used, or knows none of the images; RunStopped when `root` cannot be written.
    """
    targets = _targets(images)
    done: dict[str, Found] = {}

    def finish(target: Target, found: Found) -> None:
        done[target.digest] = found
        if on_image is not None:
            on_image(target.digest, len(found.detections))

    by_name = settings.source is not BoxSource.yolo
    with FoundJournal(root, _configuration(settings, data_root), by_name=by_name) as journal:
        missing = []
        for target in targets:
            if (known := journal.get(target)) is not None:
                finish(target, Found(known))
            else:
                missing.append(target)
        for target, found in _found(missing, targets, gallery, settings, data_root):
            if found.error is None:
                journal.put(target, found.detections)
            finish(target, found)
    return {target.digest: done[target.digest] for target in targets}


def _targets(images: Iterable[Image]) -> list[Target]:
    firsts: dict[str, Target] = {}
    for image in images:
        if image.digest is not None and image.width is not None and image.height is not None:
            firsts.setdefault(image.digest, Target(image.digest, image.source, image.width, image.height))
    return list(firsts.values())


def _found(
    missing: Sequence[Target],
    all_targets: Sequence[Target],
    gallery: Gallery,
    settings: DetectionSettings,
    data_root: str | None,
) -> Iterator[tuple[Target, Found]]:
    if not missing:
        return iter(())
    if settings.source is BoxSource.yolo:
        from vpref.detection import yolo

        return yolo.find(missing, gallery, settings)
    if settings.source is BoxSource.visual_genome:
        return visual_genome.find(missing, all_targets, *visual_genome.files(settings, data_root))
    return coco.find(missing, all_targets, coco.chosen_file(settings))


def _configuration(settings: DetectionSettings, data_root: str | None) -> list[str]:
    """All that decides which boxes are found. Device and batch do not: they move a box by rounding at most."""
    kind = [_FORM, settings.source.value]
    if settings.source is BoxSource.yolo:
        from vpref.detection import yolo

        weights = yolo.weights(settings)
        return [*kind, weights.name, _digest(weights), str(settings.image_size), str(settings.confidence)]
    if settings.source is BoxSource.visual_genome:
        return [*kind, *map(_digest, visual_genome.files(settings, data_root))]
    return [*kind, _digest(coco.chosen_file(settings))]


def _digest(path: Path) -> str:
    """The sha256 of a file, or of a folder's files with their names. Raises ConfigError where one cannot be read."""
    if path.is_file():
        try:
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as exc:
            raise ConfigError(f"{path} cannot be read: {exc.strerror}.") from exc
    parts = [f"{file.relative_to(path)} {_digest(file)}" for file in sorted(path.rglob("*")) if file.is_file()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
