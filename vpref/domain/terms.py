"""The field's terms: categories, variants, letters, roles; and what a record is."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict

Letter: TypeAlias = Literal["a", "b", "c", "d"]
LETTERS: tuple[Letter, ...] = get_args(Letter)


class Typicality(StrEnum):
    """Whether many people hold the preference."""

    TYPICAL = "typical"
    ATYPICAL = "atypical"


class Dependence(StrEnum):
    """How much of the image is needed to answer."""

    LOW = "low"
    HIGH = "high"


class Category(IntEnum):
    """Typicality x dependence. The integers are the interchange form and the paper's (section 3.1)."""

    TYPICAL_LOW = 0
    TYPICAL_HIGH = 1
    ATYPICAL_LOW = 2
    ATYPICAL_HIGH = 3

    @property
    def typicality(self) -> Typicality:
        return Typicality.TYPICAL if self < 2 else Typicality.ATYPICAL

    @property
    def dependence(self) -> Dependence:
        return Dependence.HIGH if self % 2 else Dependence.LOW


class Variant(StrEnum):
    """`boxes` draws lettered bounding boxes on the image and lets choices refer to them."""

    PLAIN = "plain"
    BOXES = "boxes"


def reported_dependence(category: Category, variant: Variant) -> Dependence:
    """The dependence an item counts under in tables: every `boxes` item is high (paper, table 3)."""
    return Dependence.HIGH if variant is Variant.BOXES else category.dependence


class Role(StrEnum):
    """Who is asked. The first four are the paper's pipeline; `mapper` names the boxes of the `boxes` variant;
    `evaluated` is the model under test, `extractor` reads outputs that direct matching cannot."""

    GENERATOR = "generator"
    REVIEWER = "reviewer"
    REVISOR = "revisor"
    RESPONDER = "responder"
    MAPPER = "mapper"
    EVALUATED = "evaluated"
    EXTRACTOR = "extractor"


class Record(BaseModel):
    """A frozen value with one JSON form; a field that is not ours is an error, never dropped."""

    model_config = ConfigDict(frozen=True, extra="forbid")
