"""Which images, and which boxes in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from vpref.settings.base import require


class Source(Enum):
    """Where images come from: a folder of any depth (null root: the photos that ship with vpref), or a copy
    of Visual Genome 1.2."""

    folder = "folder"
    visual_genome = "visual_genome"


@dataclass
class DataSettings:
    """Which images, and how they are normalised.

    Selection, at most one of: `first` n in path order, a `sample` of n drawn with `seed`, or `ids` (paths
    relative to `root`; Visual Genome's image ids). Images longer than `max_side` px are reduced; shorter
    than `min_side` px or above `max_megapixels` are refused.
    """

    source: Source = Source.folder
    root: str | None = None
    first: int | None = None
    sample: int | None = None
    seed: int = 0
    ids: list[str] | None = None
    max_side: int = 2048
    min_side: int = 32
    max_megapixels: float = 200.0

    def __post_init__(self) -> None:
        chosen = [name for name in ("first", "sample", "ids") if getattr(self, name) is not None]
        require(len(chosen) <= 1, f"data.{' and data.'.join(chosen)} exclude one another; set one of them.")
        for name in ("first", "sample"):
            value = getattr(self, name)
            require(value is None or value >= 1, f"data.{name} is {value}; it must be at least 1, or null for all.")
        require(self.max_side >= self.min_side >= 1, "data.max_side must be at least data.min_side, and both above 0.")


class BoxSource(Enum):
    """Where boxes come from: a YOLO detector, Visual Genome's own objects, or a file in COCO's format."""

    yolo = "yolo"
    visual_genome = "visual_genome"
    file = "file"


class Duplicates(Enum):
    """What several boxes of one class lead to: the image is discarded (the paper), or the class is dropped (the
    reference code)."""

    discard_image = "discard_image"
    drop_class = "drop_class"


@dataclass
class DetectionSettings:
    """Boxes for the `boxes` variant: how they are found, and which are kept.

    `file` is a COCO-format JSON whose images are matched by file name (null: the boxes of the photos that ship
    with vpref). `people` are class names never shown. A box larger than `max_share` of the image is removed, and
    one that holds at least `contained` of the area of another box.
    """

    source: BoxSource = BoxSource.yolo
    weights: str = "yolo26n.pt"
    image_size: int = 640
    confidence: float = 0.25
    device: str | None = None
    batch: int = 16
    file: str | None = None
    people: list[str] = field(default_factory=lambda: ["person"])
    duplicates: Duplicates = Duplicates.discard_image
    max_share: float = 0.5
    contained: float = 0.9
    max_boxes: int = 5

    def __post_init__(self) -> None:
        require(0 < self.confidence < 1, f"detection.confidence is {self.confidence}; it must lie between 0 and 1.")
        require(0 < self.max_share <= 1, f"detection.max_share is {self.max_share}; it must be a share up to 1.")
        require(0 < self.contained <= 1, f"detection.contained is {self.contained}; it must be a share up to 1.")
        require(2 <= self.max_boxes <= 5, f"detection.max_boxes is {self.max_boxes}; it must be 2 to 5.")
        require(self.batch >= 1, f"detection.batch is {self.batch}; it must be at least 1.")
