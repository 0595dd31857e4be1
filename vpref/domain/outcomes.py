"""What becomes of an item, in generation and in evaluation."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from vpref.domain.items import Draft, Item, Slot
from vpref.domain.messages import Finish, ModelReply, Usage
from vpref.domain.terms import LETTERS, Letter, Record, Role


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
    usd: float | None
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


Verdict: TypeAlias = Literal["matched", "unmatched", "refused", "failed", "split"]


class Ablation(Record):
    """How an evaluated model was asked, other than plainly: what it was not shown of the item, or was shown of
    another one (`other`, its id); the ids of the items that the exchanges `between` preference and question were
    drawn from; how it had to answer, and how often it was asked."""

    image: str
    preference: str
    scene: str
    boxes: str
    other: str | None = None
    between: tuple[str, ...] = ()
    answer: str = "free"
    permutations: int = 1
    samples: int = 1


class Answer(Record):
    """One answer of an evaluated model. `letter` is what was found in `text`, as a letter of the item itself, `by`
    which way. The item's choices were shown moved up by `rotation` places: the item's b is met as a under rotation 1.
    `probabilities` (0 to 1) are the model's for the item's letters, where an answer was bound to these and the
    server told them."""

    rotation: int = 0
    sample: int = 0
    verdict: Verdict
    letter: Letter | None = None
    by: str | None = None
    text: str = ""
    finish: Finish | None = None
    reason: str | None = None
    probabilities: dict[str, float] | None = None

    @property
    def shown(self) -> Letter | None:
        """The letter as the model met it."""
        return None if self.letter is None else LETTERS[(LETTERS.index(self.letter) - self.rotation) % len(LETTERS)]


class Response(Record):
    """What came of one item, put to an evaluated model.

    `letter` is what the extractor found in `text`, `by` which way. `refused` and `unmatched` are answers that
    mean no choice, so they are wrong; `failed` is no answer at all and is never scored.

    An item put to the model several times keeps every answer in `asks`, and has no `text` of its own: its `letter`
    is the one that all rotations agree on (of each, the letter that most of its samples have), and it is `split`,
    so wrong, where they do not agree. It is failed where any request failed.
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
    probabilities: dict[str, float] | None = None
    ablation: Ablation | None = None
    asks: tuple[Answer, ...] = ()
    calls: tuple[Call, ...] = ()

    @property
    def correct(self) -> bool:
        return self.letter == self.expected

    @property
    def answers(self) -> tuple[Answer, ...]:
        """Each single answer, also where there was just one."""
        return self.asks or (Answer.model_validate({name: getattr(self, name) for name in _OF_ONE}),)


_OF_ONE = Response.model_fields.keys() & Answer.model_fields.keys()
