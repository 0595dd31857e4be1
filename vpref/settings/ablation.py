"""How an evaluated model is asked, other than plainly: what it is not shown, or shown of another item, how it must
answer, and how often. Measures of what its answers depend on, and of how steady they are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from vpref.settings.base import require


class ImageShown(Enum):
    """The item's own image, none, or that of another item."""

    full = "full"
    none = "none"
    other_item = "other_item"


class PreferenceShown(Enum):
    """The item's own preference, none, that of another item, or its own in an `earlier` turn of a conversation."""

    stated = "stated"
    none = "none"
    other_item = "other_item"
    earlier = "earlier"


class SceneShown(Enum):
    """Whether the scene description is part of the question."""

    shown = "shown"
    hidden = "hidden"


class BoxesShown(Enum):
    """Whether boxes are drawn on the image; choices name their letters all the same."""

    drawn = "drawn"
    hidden = "hidden"


class AnswerForm(Enum):
    """In the model's own words, or bound to the letters."""

    free = "free"
    constrained = "constrained"


@dataclass
class AblationSettings:
    """Composable; as they stand, nothing is left out. Another item is the next of another image. `distance` is the
    number of exchanges about other items between a preference stated earlier and the question; `permutations` 4
    puts each item with its choices in all four rotations, `samples` each of these so many times."""

    image: ImageShown = ImageShown.full
    preference: PreferenceShown = PreferenceShown.stated
    distance: int = 0
    scene: SceneShown = SceneShown.shown
    boxes: BoxesShown = BoxesShown.drawn
    answer: AnswerForm = AnswerForm.free
    permutations: int = 1
    samples: int = 1

    def __post_init__(self) -> None:
        require(self.distance >= 0, f"ablation.distance is {self.distance}; it must be 0 or more.")
        require(
            self.distance == 0 or self.preference is PreferenceShown.earlier,
            "ablation.distance is the way from an earlier preference to the question; set ablation.preference=earlier.",
        )
        require(
            self.permutations in (1, 4),
            f"ablation.permutations is {self.permutations}; choose 1, or 4 for all rotations of the choices.",
        )
        require(self.samples >= 1, f"ablation.samples is {self.samples}; it must be at least 1.")

    @property
    def label(self) -> str:
        """In words, for tables: "no image, no scene, 4 rotations"; empty where the model is asked plainly."""
        return ", ".join(filter(None, (self.left_out, self.manner)))

    @property
    def left_out(self) -> str:
        """What is not shown as it stands in the item, in words."""
        words = {
            ImageShown.none: "no image",
            ImageShown.other_item: "another item's image",
            PreferenceShown.none: "no preference",
            PreferenceShown.other_item: "another item's preference",
            PreferenceShown.earlier: self._earlier,
            SceneShown.hidden: "no scene",
            BoxesShown.hidden: "no boxes",
        }
        chosen = (self.image, self.preference, self.scene, self.boxes)
        return ", ".join(words[one] for one in chosen if one in words)

    @property
    def _earlier(self) -> str:
        others = f"{self.distance} other exchange{'s' if self.distance > 1 else ''}"
        return f"preference stated {f'before {others}' if self.distance else 'a turn before'}"

    @property
    def manner(self) -> str:
        """How it must answer and how often, in words."""
        bound = "bound answers" if self.answer is AnswerForm.constrained else ""
        rotations = f"{self.permutations} rotations" if self.permutations > 1 else ""
        return ", ".join(filter(None, (bound, rotations, f"{self.samples} samples" if self.samples > 1 else "")))

    @property
    def lends(self) -> bool:
        """Whether another item's image or preference is shown."""
        return self.image is ImageShown.other_item or self.preference is PreferenceShown.other_item

    @property
    def borrowed(self) -> int:
        """How many other items each item needs something of."""
        return max(int(self.lends), self.distance)
