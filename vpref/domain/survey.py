"""A survey's nouns: the plan that every later step is held against, and the votes of its annotators.

Refuses to know how questions are shown, where answers come from, and what a majority is.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from vpref.domain.items import Choices
from vpref.domain.terms import Category, Letter, Record, Variant

OTHER: Literal["other"] = "other"
"""The fifth choice: the item is ill-formed, or no single choice is right. It can never be the ground truth."""

OTHER_TEXT = "Other (ill-formed, or no single right answer)"
"""How the fifth choice is shown, last, wherever it is shown."""

REHEARSED = "rehearsal-"
"""How the ids and keys of made-up annotators begin, so that their votes are never taken for people's."""

VoteChoice: TypeAlias = Letter | Literal["other"]
Difficulty: TypeAlias = Annotated[int, Field(ge=1, le=5)]
"""1 very easy to 5 very difficult (paper, section 3.3)."""

VoteSource: TypeAlias = Literal["web", "google_csv", "google_api", "jsonl", "rehearsal"]
VoteStatus: TypeAlias = Literal["valid", "surplus", "repeated", "returned", "incomplete", "unidentified"]
"""Only `valid` votes count; the others are kept. `surplus`: came when all places of the form were filled.
`repeated`: the person had answered before. `returned`: handed back, timed out, rejected or screened out.
`incomplete`: the submission was never finished. `unidentified`: nobody knows whose it is."""


class Check(Record):
    """An attention check: `question` says which choice to take, `expected` is its letter. Asked before the item
    at `place` (0: first of all)."""

    id: str
    place: int
    question: str
    choices: Choices
    expected: Letter


class PlannedItem(Record):
    """An item of the survey by its id, which is a digest of exactly what is shown: an item that changed since has
    another one. `image` is the original's digest, `shown` that of the image to show."""

    id: str
    image: str
    shown: str
    variant: Variant
    category: Category


class Form(Record):
    """What one annotator is asked: item ids in the order of asking, and checks between them."""

    name: str
    items: tuple[str, ...]
    checks: tuple[Check, ...] = ()

    @cached_property
    def questions(self) -> tuple[str, ...]:
        """The ids of items and checks in the order of asking."""
        asked: list[str] = []
        for place, item in enumerate((*self.items, None)):
            asked += [check.id for check in self.checks if check.place == place]
            asked += [] if item is None else [item]
        return tuple(asked)


class Plan(Record):
    """The manifest of a survey. `places` is how many annotators each form is for; `version` a digest of all
    else, borne by exported forms so that their answers can be held against it."""

    title: str
    version: str
    places: int
    forms: tuple[Form, ...]
    items: tuple[PlannedItem, ...]
    simulated: bool = False

    @cached_property
    def by_id(self) -> dict[str, PlannedItem]:
        return {item.id: item for item in self.items}

    @cached_property
    def checks(self) -> dict[str, Check]:
        """Every attention check by its id."""
        return {check.id: check for form in self.forms for check in form.checks}

    @cached_property
    def form_of(self) -> dict[str, Form]:
        """The form that asks an item or a check, by the id of either."""
        return {question: form for form in self.forms for question in form.questions}

    def form(self, name: str) -> Form:
        """The form of that name. Raises KeyError without one."""
        return {form.name: form for form in self.forms}[name]


def make_plan(
    title: str, places: int, forms: Sequence[Form], items: Iterable[PlannedItem], *, simulated: bool = False
) -> Plan:
    """A plan with its version: 12 hex digits over the title, the forms and the items."""
    known = tuple(items)
    told = [title, *(one.model_dump_json() for one in (*forms, *known))]
    version = hashlib.sha256("\x1f".join(told).encode()).hexdigest()[:12]
    return Plan(title=title, version=version, places=places, forms=tuple(forms), items=known, simulated=simulated)


class Vote(Record):
    """One annotator's answer to one item or check.

    `choice` is the item's own letter, whatever order the choices were shown in; `order` is that order, first
    shown first. `seconds` is the time on this question, None where it is not known. `started` and `submitted` are
    UTC in ISO 8601. A person's name or platform id is nowhere: `annotator` is a keyed hash of it.
    """

    annotator: str
    form: str
    item: str
    choice: VoteChoice
    difficulty: Difficulty | None = None
    justification: str = ""
    seconds: float | None = None
    order: str = "abcd"
    source: VoteSource
    submission: str
    status: VoteStatus = "valid"
    started: str | None = None
    submitted: str | None = None


def annotator_key(secret: bytes, person: str) -> str:
    """Who a person is in our records: 16 hex digits of HMAC-SHA256 of their platform id under the survey's secret.
    The same person has the same key wherever the answer came from. That of a made-up annotator says so."""
    bare = person.strip()
    bare = bare.lower() if re.fullmatch(r"[0-9a-fA-F]{24}", bare) else bare  # Prolific's, typed in capitals
    digest = hmac.new(secret, bare.encode(), hashlib.sha256).hexdigest()[:16]
    return REHEARSED + digest if bare.startswith(REHEARSED) else digest


NoLabel: TypeAlias = Literal["tie", "other", "no_majority", "too_few"]
"""Why an item got no ground truth: two choices lead alike, "other" leads, a letter leads with half of the votes or
less, or there are fewer votes than a majority is to be made of."""


class Label(Record):
    """What the valid votes on one item come to. `letter` is the ground truth, or None for the `reason`.

    `counts` has every choice that was voted for; `difficulty` is the mean of the ratings given, None without any.
    `more` is how many votes more could give it a majority at the least, 0 where it has one.
    """

    item: PlannedItem
    letter: Letter | None
    reason: NoLabel | None
    counts: dict[str, int]
    more: int
    difficulty: float | None
    ratings: int
    answer: Letter | None = None
    """The responder's letter, to be compared with."""

    @property
    def votes(self) -> int:
        return sum(self.counts.values())


Flag: TypeAlias = Literal["disagrees", "fast", "straight_lines", "failed_checks"]


class AnnotatorChecks(Record):
    """How one annotator of one form answered. Flags are to be looked at; they exclude nobody by themselves.

    `agreed` of `compared` items had the annotator's choice as the majority of the others; `same_place` is the
    largest share of choices at one place of the list as shown; `seconds` is the time for all of the form, None where
    it is not known; `failed` of `checks` attention checks were answered wrongly.
    """

    annotator: str
    form: str
    votes: int
    agreed: int
    compared: int
    others: int
    same_place: float
    seconds: float | None
    failed: int
    checks: int
    flags: tuple[Flag, ...] = ()
