"""Items and what they are made of: slots, drafts, choices, boxes."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Literal, TypeAlias

from vpref.domain.terms import Category, Letter, Record, Variant


class Slot(Record):
    """Where an item belongs, the same in every run: generator models and depths are compared by it, and
    every seed derives from it."""

    image: str
    variant: Variant = Variant.PLAIN
    category: Category
    sample: int = 0

    @cached_property
    def key(self) -> str:
        return f"{self.image}/{self.variant}/{self.category:d}/{self.sample}"

    def seed(self, purpose: str) -> int:
        """A 64-bit seed for one random choice about this item."""
        return int.from_bytes(hashlib.sha256(f"{self.key}/{purpose}".encode()).digest()[:8], "big")


class Choices(Record):
    """The four actions, by the letter that each is shown under."""

    a: str
    b: str
    c: str
    d: str

    def __getitem__(self, letter: str) -> str:
        return {"a": self.a, "b": self.b, "c": self.c, "d": self.d}[letter]

    @property
    def texts(self) -> tuple[str, str, str, str]:
        return (self.a, self.b, self.c, self.d)

    @classmethod
    def of(cls, texts: tuple[str, ...]) -> Choices:
        a, b, c, d = texts
        return cls(a=a, b=b, c=c, d=d)


class Draft(Record):
    """An item's text as the generator or revisor wrote it."""

    scene: str
    preference: str
    question: str
    choices: Choices


class Detection(Record):
    """An object found in an image: what it is called and where, in pixels of the normalised image, (x0, y0) the
    upper left corner and (x1, y1) the lower right one. `confidence` is the detector's, None for annotations."""

    name: str
    x0: float
    y0: float
    x1: float
    y1: float
    confidence: float | None = None


class Box(Detection):
    """A detection that is shown, under a letter A to E. `name` is what it is called after the mapping revision."""

    letter: str


Removal: TypeAlias = Literal["person", "duplicate_class", "too_large", "contains_others", "beyond_limit", "unnamed"]


class RemovedBox(Record):
    """A detection that is not shown, and why."""

    box: Detection
    reason: Removal


class Item(Draft):
    """One question of the benchmark: an image, a preference, a question, four choices.

    `image` (in `slot`) is the digest of the original image, `shown` that of the image as sent, which differs
    once boxes are drawn. `answer` is the responder's letter, `truth` the humans' majority.
    """

    id: str
    slot: Slot
    shown: str
    boxes: tuple[Box, ...] = ()
    answer: Letter | None = None
    truth: Letter | None = None

    @property
    def category(self) -> Category:
        return self.slot.category

    @property
    def variant(self) -> Variant:
        return self.slot.variant


def make_item(
    slot: Slot,
    draft: Draft,
    *,
    shown: str,
    answer: Letter | None,
    truth: Letter | None = None,
    boxes: tuple[Box, ...] = (),
) -> Item:
    """An item with its id: 16 hex digits over the slot and exactly what is shown, so that a changed item
    no longer matches old votes and responses."""
    seen = [slot.key, draft.scene, draft.preference, draft.question, *draft.choices.texts, shown]
    digest = hashlib.sha256("\x1f".join(seen).encode()).hexdigest()
    return Item(
        id=digest[:16],
        slot=slot,
        shown=shown,
        boxes=boxes,
        answer=answer,
        truth=truth,
        scene=draft.scene,
        preference=draft.preference,
        question=draft.question,
        choices=draft.choices,
    )
