"""What an evaluated model is not shown, or shown of another item: measures of what its answers depend on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ImageShown(Enum):
    """The item's own image, none, or that of another item."""

    full = "full"
    none = "none"
    other_item = "other_item"


class PreferenceShown(Enum):
    """The item's own preference, none, or that of another item."""

    stated = "stated"
    none = "none"
    other_item = "other_item"


class SceneShown(Enum):
    """Whether the scene description is part of the question."""

    shown = "shown"
    hidden = "hidden"


class BoxesShown(Enum):
    """Whether boxes are drawn on the image; choices name their letters all the same."""

    drawn = "drawn"
    hidden = "hidden"


@dataclass
class AblationSettings:
    """Composable; as they stand, nothing is left out. Another item is the next of another image."""

    image: ImageShown = ImageShown.full
    preference: PreferenceShown = PreferenceShown.stated
    scene: SceneShown = SceneShown.shown
    boxes: BoxesShown = BoxesShown.drawn

    @property
    def label(self) -> str:
        """In words, for tables: "no image, scene hidden"; empty where nothing is left out."""
        words = {
            ImageShown.none: "no image",
            ImageShown.other_item: "another item's image",
            PreferenceShown.none: "no preference",
            PreferenceShown.other_item: "another item's preference",
            SceneShown.hidden: "no scene",
            BoxesShown.hidden: "no boxes",
        }
        chosen = (self.image, self.preference, self.scene, self.boxes)
        return ", ".join(words[one] for one in chosen if one in words)

    @property
    def borrows(self) -> bool:
        """Whether something of another item is shown."""
        return self.image is ImageShown.other_item or self.preference is PreferenceShown.other_item
