"""Which boxes of an image are shown, and whether the image stays: pure rules over detections (paper, section 3.3).

Knows nothing of where boxes come from, and looks at no pixels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from vpref.domain import Box, Detection, Removal, RemovedBox
from vpref.settings import DetectionSettings, Duplicates

Discard = Literal["duplicate_class", "too_few"]

_MIN_SIDE = 2.0  # px; nothing that thin can be seen or pointed at


@dataclass(frozen=True, slots=True)
class Selection:
    """`kept` are shown, from left to right; `removed` are not, by rule. `discarded` says why the image falls; then
    `kept` is empty, so that nothing can be made of it by mistake."""

    kept: tuple[Detection, ...]
    removed: tuple[RemovedBox, ...]
    discarded: Discard | None = None


def select(detections: Sequence[Detection], size: tuple[int, int], settings: DetectionSettings) -> Selection:
    """Apply the rules, in this order, to the boxes of an image of `size` (width, height) px:

    1. Boxes are clipped to the image; what is then under 2 px wide or high was not in it, and is no box.
    2. `person`: the classes of `settings.people`.
    3. `duplicate_class`: several boxes left of one class. They discard the image, or (`drop_class`) are removed.
    4. `too_large`: more than `max_share` of the image's area.
    5. `contains_others`: holds at least `contained` of the area of another box left by 4. Of two that hold each
       other the larger goes; of equals the less confident, then the later in reading order.
    6. `beyond_limit`: all but the first `max_boxes`, the most confident first (annotations: the largest first).
    7. Fewer than two boxes left discard the image: `too_few`.

    Classes are compared without regard to case or outer spaces. Each rule sees what the one before left, all of it
    at once, so the order of `detections` is of no effect. Reading order is by x0, then y0, then name.
    """
    left = sorted(_clipped(detections, size), key=_reading)
    removed: list[RemovedBox] = []

    def remove(boxes: Iterable[Detection], reason: Removal) -> None:
        gone = list(boxes)
        removed.extend(RemovedBox(box=box, reason=reason) for box in gone)
        ids = {id(box) for box in gone}
        left[:] = [box for box in left if id(box) not in ids]

    people = {_class(name) for name in settings.people}
    remove([box for box in left if _class(box.name) in people], "person")
    classes = Counter(_class(box.name) for box in left)
    remove([box for box in left if classes[_class(box.name)] > 1], "duplicate_class")
    if settings.duplicates is Duplicates.discard_image and any(count > 1 for count in classes.values()):
        return Selection((), tuple(removed), "duplicate_class")
    share = settings.max_share * size[0] * size[1]
    remove([box for box in left if _area(box) > share], "too_large")
    remove(_outer(left, settings.contained), "contains_others")
    remove(sorted(sorted(left, key=_preference)[settings.max_boxes :], key=_reading), "beyond_limit")
    if len(left) < 2:
        return Selection((), tuple(removed), "too_few")
    return Selection(tuple(left), tuple(removed))


def letter(detections: Sequence[Detection]) -> tuple[Box, ...]:
    """The boxes under letters from A on, without a gap, in the order given."""
    fields = (detection.model_dump(include=set(Detection.model_fields)) for detection in detections)
    return tuple(Box(**values, letter=chr(ord("A") + place)) for place, values in enumerate(fields))


def _clipped(detections: Iterable[Detection], size: tuple[int, int]) -> list[Detection]:
    width, height = size
    inside = []
    for box in detections:
        x0, x1 = max(box.x0, 0.0), min(box.x1, float(width))
        y0, y1 = max(box.y0, 0.0), min(box.y1, float(height))
        if x1 - x0 >= _MIN_SIDE and y1 - y0 >= _MIN_SIDE:
            # Always a copy: two that are equal are still two.
            inside.append(box.model_copy(update={"x0": x0, "y0": y0, "x1": x1, "y1": y1}))
    return inside


def _outer(boxes: Sequence[Detection], contained: float) -> list[Detection]:
    """The boxes that hold another, in the order given."""
    order = sorted(boxes, key=_reading, reverse=True)  # sorting is stable: this decides where the next does not
    order.sort(key=lambda box: (-_area(box), box.confidence or 0.0))
    outer = {
        id(box)
        for place, box in enumerate(order)
        if any(_overlap(box, other) >= contained * _area(other) for other in order[place + 1 :])
    }
    return [box for box in boxes if id(box) in outer]


def _class(name: str) -> str:
    return name.strip().casefold()


def _area(box: Detection) -> float:
    return (box.x1 - box.x0) * (box.y1 - box.y0)


def _overlap(one: Detection, other: Detection) -> float:
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return max(0.0, width) * max(0.0, height)


def _reading(box: Detection) -> tuple[float, float, str, float, float, float]:
    return (box.x0, box.y0, box.name, box.x1, box.y1, -1.0 if box.confidence is None else box.confidence)


def _preference(box: Detection) -> tuple[float | str, ...]:
    # A detector's boxes come before annotations, should a file ever mix them.
    rank = (1.0, -_area(box)) if box.confidence is None else (0.0, -box.confidence)
    return (*rank, box.name, box.x0, box.y0, box.x1, box.y1)
