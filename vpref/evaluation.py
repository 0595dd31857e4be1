"""Evaluating one item: a coroutine like the pipeline's, with the same refusals (no I/O, clock or logging)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from vpref import prompts, replies
from vpref.asking import ask
from vpref.domain import (
    LETTERS,
    Ablation,
    Answer,
    Call,
    Choices,
    Item,
    Letter,
    ModelReply,
    ModelRequest,
    Picture,
    Response,
    Role,
    Step,
)
from vpref.errors import CallFailed, MalformedReply
from vpref.extraction import match
from vpref.settings import AblationSettings, AnswerForm, BoxesShown, ImageShown, PreferenceShown, SceneShown

ATTEMPTS = 3
"""How often a bound answer, and the extractor, is asked for at most until there is a usable reply."""

PLAINLY = AblationSettings()


def evaluate_item(
    item: Item,
    *,
    extractor: bool = False,
    attempts: int = ATTEMPTS,
    ablation: AblationSettings = PLAINLY,
    others: Sequence[Item] = (),
) -> Step[Response]:
    """Ask the evaluated model and find the letter that its output means: by direct matching and, with an
    `extractor`, by a model where that fails. An `ablation` says what it is shown less, or of the `others` (as
    many as it borrows), and how often it is asked: once for each rotation and sample.

    `truth`, where people gave one, is the letter expected; else the responder's answer. The item must have
    one of the two. An extractor that gives no usable reply fails the item: it says nothing about the answer.
    """
    expected = expected_letter(item)
    show = Exhibit.of(item, ablation, others)
    known: dict[str, Any] = {"item": item.id, "slot": item.slot, "expected": expected}
    known |= {"ablation": show.record} if ablation.label else {}
    calls: list[Call] = []
    asks: list[Answer] = []
    for rotation, sample in product(range(ablation.permutations), range(ablation.samples)):
        asks.append((yield from _answer(show.rotated(rotation), sample, extractor, attempts, calls)))
        if asks[-1].verdict == "failed":
            break  # the item is not scored; what a later run still needs, it will ask
    if ablation.permutations * ablation.samples == 1:
        (only,) = asks
        return Response(**known, **only.model_dump(exclude={"rotation", "sample"}), calls=tuple(calls))
    return Response(**known, **_agreed(asks), asks=tuple(asks), calls=tuple(calls))


def expected_letter(item: Item) -> Letter:
    """The letter that is right: people's, else the responder's. Raises ValueError where there is neither."""
    expected = item.truth or item.answer
    if expected is None:
        raise ValueError(f"item {item.id} has neither a ground truth nor an answer")
    return expected


@dataclass(frozen=True)
class Exhibit:
    """What is shown of an item: the `shown` text under `rotation`, the `picture` if any, and the other items that
    the exchanges `between` an earlier preference and the question are about (None: the preference is not told
    earlier). `record` is the record of all this."""

    shown: Item
    picture: Picture | None
    preference: str
    between: tuple[Item, ...] | None
    bound: bool
    record: Ablation
    rotation: int = 0

    @classmethod
    def of(cls, item: Item, ablation: AblationSettings, others: Sequence[Item] = ()) -> Exhibit:
        """Raises ValueError with fewer `others` than are borrowed from."""
        if len(others) < ablation.borrowed:
            raise ValueError(f"item {item.id} has {len(others)} other items to borrow from, not {ablation.borrowed}")
        lender = others[0] if ablation.lends else None
        source = lender if lender is not None and ablation.image is ImageShown.other_item else item
        picture = Picture(source.slot.image if ablation.boxes is BoxesShown.hidden else source.shown)
        wisher = lender if lender is not None and ablation.preference is PreferenceShown.other_item else item
        preference = "" if ablation.preference is PreferenceShown.none else wisher.preference
        scene = "" if ablation.scene is SceneShown.hidden else item.scene
        earlier = ablation.preference is PreferenceShown.earlier
        between = tuple(others[: ablation.distance]) if earlier else None
        return cls(
            shown=item.model_copy(update={"scene": scene, "preference": "" if earlier else preference}),
            picture=None if ablation.image is ImageShown.none else picture,
            preference=preference,
            between=between,
            bound=ablation.answer is AnswerForm.constrained,
            record=Ablation(
                image=ablation.image.value,
                preference=ablation.preference.value,
                scene=ablation.scene.value,
                boxes=ablation.boxes.value,
                other=None if lender is None else lender.id,
                between=tuple(one.id for one in between or ()),
                answer=ablation.answer.value,
                permutations=ablation.permutations,
                samples=ablation.samples,
            ),
        )

    def rotated(self, rotation: int) -> Exhibit:
        """The same with the choices moved up by so many places, those at the top to the end."""
        if not rotation:
            return self
        texts = self.shown.choices.texts
        choices = Choices.of(texts[rotation:] + texts[:rotation])
        return replace(self, shown=self.shown.model_copy(update={"choices": choices}), rotation=rotation)

    def own(self, shown: str) -> Letter:
        """The item's own letter for a letter as shown."""
        return LETTERS[(LETTERS.index(shown) + self.rotation) % len(LETTERS)]

    def request(self, sample: int) -> ModelRequest:
        if self.between is None:
            messages = prompts.evaluated(self.picture, self.shown)
        else:
            exchanges = [(other, expected_letter(other)) for other in self.between]
            messages = prompts.evaluated_later(self.picture, self.shown, self.preference, exchanges)
        request = ModelRequest(Role.EVALUATED, messages, sample=sample)
        return replace(request, form=replies.choice_form(), options=LETTERS) if self.bound else request


def _answer(show: Exhibit, sample: int, extractor: bool, attempts: int, calls: list[Call]) -> Step[Answer]:
    known: dict[str, Any] = {"rotation": show.rotation, "sample": sample}
    request = show.request(sample)
    if show.bound:
        return Answer(**known, **(yield from _bound(show, request, attempts, calls)))
    try:
        reply = yield request
    except CallFailed as failure:
        return Answer(**known, verdict="failed", reason=f"{failure.kind}: {failure}")
    calls.append(Call.of(Role.EVALUATED, 0, reply))
    known |= {"text": reply.text, "finish": reply.finish}
    if reply.finish == "refusal":
        return Answer(**known, verdict="refused")
    found = match(reply.text, show.shown.choices)
    if found is not None:
        return Answer(**known, verdict="matched", letter=show.own(found.letter), by=found.by)
    if not extractor or not reply.text.strip():
        return Answer(**known, verdict="unmatched")
    return Answer(**known, **(yield from _extracted(show, reply, attempts, calls)))


def _bound(show: Exhibit, request: ModelRequest, attempts: int, calls: list[Call]) -> Step[dict[str, Any]]:
    """An answer bound to the letters. A model that keeps breaking the form has named no choice."""
    got: list[ModelReply] = []

    def read(reply: ModelReply) -> Letter | None:
        got.append(reply)
        return None if reply.finish == "refusal" else replies.read_choice(reply)

    try:
        letter = yield from ask(request, read, attempts, calls)
    except CallFailed as failure:
        return {"verdict": "failed", "reason": f"{failure.kind}: {failure}"}
    except MalformedReply as problem:
        last = got[-1]
        return {"verdict": "unmatched", "reason": str(problem), "text": last.text, "finish": last.finish}
    last = got[-1]
    said: dict[str, Any] = {"text": last.text, "finish": last.finish}
    if letter is None:
        return said | {"verdict": "refused"}
    told = last.probabilities
    own = None if told is None else dict(sorted((show.own(name), share) for name, share in told.items()))
    return said | {"verdict": "matched", "letter": show.own(letter), "by": "bound", "probabilities": own}


def _extracted(show: Exhibit, reply: ModelReply, attempts: int, calls: list[Call]) -> Step[dict[str, Any]]:
    request = ModelRequest(Role.EXTRACTOR, prompts.extractor(show.shown, reply.text), replies.extraction_form())
    try:
        letter = yield from ask(request, replies.read_extraction, attempts, calls)
    except (MalformedReply, CallFailed) as failure:
        return {"verdict": "failed", "reason": f"extractor, {failure.kind}: {failure}"}
    if letter is None:
        return {"verdict": "unmatched"}
    return {"verdict": "matched", "letter": show.own(letter), "by": "model"}


def _agreed(asks: Sequence[Answer]) -> dict[str, Any]:
    """What several answers come to: a failure where one failed; what they are where they are of one kind; the
    letter that every rotation comes to, or none."""
    failed = next((one for one in asks if one.verdict == "failed"), None)
    if failed is not None:
        return {"verdict": "failed", "reason": failed.reason}
    kinds = {one.verdict for one in asks}
    if len(kinds) == 1 and kinds != {"matched"}:
        return {"verdict": kinds.pop()}
    rotations = {one.rotation for one in asks}
    letters = {_most_said([one.letter for one in asks if one.rotation == rotation]) for rotation in rotations}
    letter = letters.pop() if len(letters) == 1 else None
    return {"verdict": "split"} if letter is None else {"verdict": "matched", "letter": letter}


def _most_said(letters: Sequence[Letter | None]) -> Letter | None:
    """The letter said more often than any other; None where two lead, or where most named none."""
    (first, times), *rest = Counter(letters).most_common(2)
    return first if not rest or rest[0][1] < times else None
