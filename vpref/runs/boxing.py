"""The box stage: from images to boxes that are detected, selected, named and drawn (paper, section 3.3).

Every image leaves it with a record that says what was found, what was removed and why, and how each box came to
its name; an image that falls says by which rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vpref import detection
from vpref.detection import Selection
from vpref.domain import Box, Detection, Record, RemovedBox, Step
from vpref.driver.meter import Meter
from vpref.images import Gallery, ImageRecord
from vpref.naming import Naming, name_boxes, renamed
from vpref.reports import Table
from vpref.runs.folder import RunFolder
from vpref.runs.session import Session
from vpref.runs.terminal import Counting
from vpref.settings import DataSettings, DetectionSettings

DISCARDS = {
    "detector_failed": "the detector failed on it",
    "duplicate_class": "several boxes of one class",
    "too_few": "fewer than two boxes after people and geometry",
    "mapper_failed": "the mapper gave no usable names",
    "too_few_named": "fewer than two boxes after the mapper",
}
"""Why an image falls, in the order of the rules."""


class BoxedImage(Record):
    """What the box stage made of one image. `boxes` are final: they are on the image `drawn`, whose bytes can be
    made again from the image `image` and these boxes."""

    image: str
    source: str
    pixels: str | None
    detections: tuple[Detection, ...] = ()
    removed: tuple[RemovedBox, ...] = ()
    candidates: tuple[Box, ...] = ()
    naming: Naming | None = None
    boxes: tuple[Box, ...] = ()
    drawn: str | None = None
    discarded: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Stage:
    """What the stage needs of the run around it."""

    live: Session
    gallery: Gallery
    folder: RunFolder
    data: DataSettings
    detection: DetectionSettings
    attempts: int


def box_images(stage: Stage, images: Sequence[ImageRecord], meter: Meter, most: int | None = None) -> list[BoxedImage]:
    """Box all images, in their order, or until `most` went to the mapper; one record of each goes to the run's
    `boxes.jsonl`."""
    selected = _until(select_boxes(stage, images), most)
    asked = [one for one in selected if one.discarded is None]
    names: list[Naming] = []
    meter.total = len(asked)
    stage.live.run(naming_steps(asked, stage), name=lambda naming: naming.outcome, emit=names.append, meter=meter)
    named = iter(names)
    own = Gallery(stage.folder.path / "images")
    boxed = [one if one.discarded else finished(one, next(named), stage) for one in selected]
    for one in boxed:
        stage.folder.record("boxes", one)
        if one.drawn is not None:
            stage.gallery.link_into(own, one.drawn)
    return boxed


def _until(selected: list[BoxedImage], most: int | None) -> list[BoxedImage]:
    staying = [number for number, one in enumerate(selected, 1) if one.discarded is None]
    return selected if most is None or len(staying) <= most else selected[: staying[most - 1]]


def select_boxes(stage: Stage, images: Sequence[ImageRecord]) -> list[BoxedImage]:
    """Detect and select; the candidates of images that stay are drawn for the mapper to look at."""
    root = Path(stage.live.settings.store.root) / "detections"
    counting = Counting("detection", len(images), stage.live.settings.driver)
    found = detection.detect(images, stage.gallery, stage.detection, root, data_root=stage.data.root, on_image=counting)
    return [_selected(image, found[str(image.digest)], stage) for image in images]


def naming_steps(asked: Sequence[BoxedImage], stage: Stage) -> Iterator[Step[Naming]]:
    """The mapper's coroutine for each image."""
    for one in asked:
        yield name_boxes(_draw(one, one.candidates, stage), one.candidates, stage.attempts)


def _selected(image: ImageRecord, found: detection.Found, stage: Stage) -> BoxedImage:
    about = {"image": str(image.digest), "source": image.source, "pixels": image.pixels}
    if found.error is not None:
        return BoxedImage(**about, discarded="detector_failed", error=found.error)
    size = (image.width or 0, image.height or 0)
    selection: Selection = detection.select(found.detections, size, stage.detection)
    return BoxedImage(
        **about,
        detections=found.detections,
        removed=selection.removed,
        candidates=() if selection.discarded else detection.letter(selection.kept),
        discarded=selection.discarded,
    )


def finished(one: BoxedImage, naming: Naming, stage: Stage) -> BoxedImage:
    """The image with the names it got; letters are given anew, so that exactly what remains is drawn."""
    if naming.names is None:
        return one.model_copy(update={"naming": naming, "discarded": "mapper_failed", "error": naming.reason})
    named, unnamed = renamed(one.candidates, naming.names)
    boxes = detection.letter(named)
    removed = (*one.removed, *(RemovedBox(box=box, reason="unnamed") for box in unnamed))
    update = {"naming": naming, "removed": removed}
    if len(boxes) < 2:
        return one.model_copy(update=update | {"discarded": "too_few_named"})
    return one.model_copy(update=update | {"boxes": boxes, "drawn": _draw(one, boxes, stage)})


def _draw(one: BoxedImage, boxes: tuple[Box, ...], stage: Stage) -> str:
    from vpref.images.drawing import draw
    from vpref.images.normalising import normalise

    return stage.gallery.add(normalise(draw(stage.gallery.read(one.image), boxes), stage.data))


def funnel(boxed: Sequence[BoxedImage], made: Mapping[str, int]) -> Table:
    """How many images are left after each rule, and the items made of those that stay; `made` by outcome."""
    fallen = Counter(one.discarded for one in boxed if one.discarded)
    removed = Counter(gone.reason for one in boxed for gone in one.removed)
    left, rows = len(boxed), [("images", f"{len(boxed):,}", "")]
    for reason, meaning in DISCARDS.items():
        left -= fallen[reason]
        rows.append((f"- {meaning}", f"{left:,}", f"-{fallen[reason]:,}" if fallen[reason] else ""))
    rows += [(f"{outcome} items", f"{count:,}", "") for outcome, count in made.items()]
    taken = ", ".join(f"{reason} {count:,}" for reason, count in sorted(removed.items()))
    return Table(
        name="boxes",
        title="Boxes: images left after each rule",
        columns=("Rule", "Left", "Discarded"),
        rows=tuple(rows),
        notes=(f"Boxes removed: {taken}.",) if taken else (),
        records=(
            {"images": len(boxed), "left": left}
            | {f"discarded_{reason}": fallen[reason] for reason in DISCARDS}
            | {f"removed_{reason}": count for reason, count in sorted(removed.items())}
            | {f"items_{outcome}": count for outcome, count in made.items()},
        ),
    )
