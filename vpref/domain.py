"""The nouns: categories, items, drafts, reviews, outcomes, and what is asked of and said by a model.

Everything here is a value. This module refuses to know how any of it is asked for, stored, scored or shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

T = TypeVar("T")

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
    """Typicality x dependence. The integers are the interchange form (SPEC 1)."""

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
    `evaluated` is the model under test."""

    GENERATOR = "generator"
    REVIEWER = "reviewer"
    REVISOR = "revisor"
    RESPONDER = "responder"
    MAPPER = "mapper"
    EVALUATED = "evaluated"


class Record(BaseModel):
    """A frozen value with one JSON form; a field that is not ours is an error, never dropped."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# --- what is asked of a model, and what comes back -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Picture:
    """An image by reference: the sha256 of its normalised file. The core holds digests, never bytes."""

    digest: str


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; `speaker` is `system`, `user` or `assistant`."""

    speaker: Literal["system", "user", "assistant"]
    parts: tuple[str | Picture, ...]


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """The JSON schema that a reply must obey, under the name the API is told."""

    name: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to one role. `attempt` and `sample` are part of its key, so that asking again, or for
    another sample, does not find the earlier reply."""

    role: Role
    messages: tuple[Message, ...]
    form: ReplyForm | None = None
    attempt: int = 0
    sample: int = 0


class Usage(Record):
    """Tokens as the server counted them; `cached` is part of `input`, `reasoning` part of `output`."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0


Finish: TypeAlias = Literal["stop", "length", "refusal"]


class ModelReply(Record):
    """A completed reply and how it ended. `server` is who answered (`simulator/...` for simulated ones);
    `usd` is its price by the model's config."""

    text: str
    finish: Finish = "stop"
    model: str = ""
    server: str = ""
    usage: Usage = Usage()
    usd: float = 0.0
    key: str = ""

    @property
    def simulated(self) -> bool:
        return is_simulated(self.server)


def is_simulated(server: str) -> bool:
    """Whether replies of this server come from the simulator."""
    return server.split("/", 1)[0] == "simulator"


Step: TypeAlias = Generator[ModelRequest, ModelReply, T]
"""A coroutine of the core: yields requests, is sent replies, returns a T. It does no I/O of its own."""


# --- items ---------------------------------------------------------------------------------------------


class Slot(Record):
    """Where an item belongs, the same in every run: generator models and depths are compared by it, and
    every seed derives from it (SPEC 1)."""

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
    no longer matches old votes and responses (SPEC 1)."""
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


# --- what becomes of an item in generation ---------------------------------------------------------------


class Review(Record):
    """The reviewer's verdict. `issue` is None when it found none; `by` is `code` where a rule of ours found
    what the model let pass."""

    analysis: str
    issue: str | None
    by: Literal["model", "code"] = "model"


class Revision(Record):
    """The revisor's answer to a review."""

    proposed_fix: str
    draft: Draft


class Round(Record):
    """A draft, its review, and the revision after it (None when there was none to make or no budget left)."""

    draft: Draft
    review: Review
    revision: Revision | None = None


class Call(Record):
    """One reply that an item used: enough to find it in the call store and to add up its cost."""

    role: Role
    attempt: int
    key: str
    model: str
    server: str
    finish: Finish
    usage: Usage
    usd: float
    problem: str | None = None
    """Why the reply could not be used and was asked for again: `kind: detail`."""

    @classmethod
    def of(cls, role: Role, attempt: int, reply: ModelReply, problem: str | None = None) -> Call:
        return cls(
            role=role,
            attempt=attempt,
            key=reply.key,
            model=reply.model,
            server=reply.server,
            finish=reply.finish,
            usage=reply.usage,
            usd=reply.usd,
            problem=problem,
        )


class _Outcome(Record):
    slot: Slot
    rounds: tuple[Round, ...] = ()
    calls: tuple[Call, ...] = ()


class Accepted(_Outcome):
    """Reviewed without an issue left (or not reviewed at all, by config)."""

    outcome: Literal["accepted"] = "accepted"
    item: Item
    order: str
    """The draft's letters in the order in which the item shows them."""


class Unresolved(_Outcome):
    """Still faulted when its revisions were spent: kept as a record, out of the dataset unless asked for."""

    outcome: Literal["unresolved"] = "unresolved"
    item: Item
    order: str


class Failed(_Outcome):
    """No item: a role kept breaking the form, or a request got no reply."""

    outcome: Literal["failed"] = "failed"
    draft: Draft | None = None
    kind: str
    reason: str


Outcome: TypeAlias = Accepted | Unresolved | Failed
OUTCOME: TypeAdapter[Outcome] = TypeAdapter(Annotated[Outcome, Field(discriminator="outcome")])
"""Reads an outcome's JSON back."""


# --- what becomes of an item in evaluation ---------------------------------------------------------------

Verdict: TypeAlias = Literal["matched", "unmatched", "refused", "failed"]


class Response(Record):
    """An evaluated model's answer to one item.

    `letter` is what the extractor found in `text`, `by` which way. `refused` and `unmatched` are answers that
    mean no choice, so they are wrong; `failed` is no answer at all and is never scored.
    """

    item: str
    slot: Slot
    expected: Letter
    verdict: Verdict
    letter: Letter | None = None
    by: str | None = None
    text: str = ""
    finish: Finish | None = None
    reason: str | None = None
    calls: tuple[Call, ...] = ()

    @property
    def correct(self) -> bool:
        return self.letter == self.expected
