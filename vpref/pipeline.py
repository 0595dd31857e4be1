"""Generating one item: the paper's figure 2 as a coroutine.

It decides what to ask next and never asks; whoever drives it sends the replies. It holds no I/O, clock,
logging or global randomness, so that replaying the same replies gives the same outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import TypeVar

from vpref import prompts, replies
from vpref.domain import (
    LETTERS,
    Accepted,
    Call,
    Choices,
    Draft,
    Failed,
    Letter,
    ModelReply,
    ModelRequest,
    Outcome,
    Picture,
    Review,
    Role,
    Round,
    Slot,
    Step,
    Unresolved,
    make_item,
)
from vpref.errors import CallFailed, MalformedReply
from vpref.issues import non_actionable
from vpref.settings import PipelineSettings

T = TypeVar("T")


@dataclass
class _History:
    """What has happened to one item so far; part of its record however it ends."""

    draft: Draft | None = None
    rounds: list[Round] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)


def generate_item(slot: Slot, settings: PipelineSettings) -> Step[Outcome]:
    """Draft, review, revise within `max_revisions`, answer. At most max_revisions + 1 reviews.

    Returns Accepted, Unresolved (an issue is left when the revisions are spent) or Failed (a role kept
    breaking its form for `attempts` replies, or a request got no reply).
    """
    history = _History()
    try:
        draft = yield from _draft(slot, settings, history)
        answer = yield from _answer(slot, draft, settings, history)
    except (MalformedReply, CallFailed) as problem:
        return Failed(
            slot=slot,
            draft=history.draft,
            rounds=tuple(history.rounds),
            calls=tuple(history.calls),
            kind=problem.kind,
            reason=str(problem),
        )
    order, shuffled, moved = shuffle_choices(slot, draft.choices, answer)
    item = make_item(slot, draft.model_copy(update={"choices": shuffled}), shown=slot.image, answer=moved)
    faulted = bool(history.rounds) and history.rounds[-1].review.issue is not None
    return (Unresolved if faulted else Accepted)(
        slot=slot, item=item, order=order, rounds=tuple(history.rounds), calls=tuple(history.calls)
    )


def _draft(slot: Slot, settings: PipelineSettings, history: _History) -> Step[Draft]:
    """Figure 2 from generator to the accepted draft."""
    picture, order, category = Picture(slot.image), settings.message_order, slot.category

    first = ModelRequest(
        Role.GENERATOR, prompts.generator(picture, category, order), replies.draft_form(), sample=slot.sample
    )
    draft = history.draft = yield from _ask(first, replies.read_draft, settings, history)
    for revision in range(settings.max_revisions + 1 if settings.review else 0):
        request = ModelRequest(
            Role.REVIEWER, prompts.reviewer(picture, category, draft, order), replies.review_form(category)
        )
        review = yield from _ask(request, lambda reply: replies.read_review(reply, category), settings, history)
        review = _code_review(review, draft)
        history.rounds.append(Round(draft=draft, review=review))
        if review.issue is None or revision == settings.max_revisions:
            break
        request = ModelRequest(
            Role.REVISOR, prompts.revisor(picture, category, draft, review, order), replies.revision_form()
        )
        mended = yield from _ask(request, replies.read_revision, settings, history)
        history.rounds[-1] = Round(draft=draft, review=review, revision=mended)
        draft = history.draft = mended.draft
    return draft


def _answer(slot: Slot, draft: Draft, settings: PipelineSettings, history: _History) -> Step[Letter]:
    messages = prompts.responder(Picture(slot.image), draft, settings.message_order)
    request = ModelRequest(Role.RESPONDER, messages, replies.answer_form())
    return (yield from _ask(request, replies.read_answer, settings, history))


def _ask(
    request: ModelRequest, read: Callable[[ModelReply], T], settings: PipelineSettings, history: _History
) -> Step[T]:
    """Yield the request until its reply can be read, at most `attempts` times; each time the model is told
    what was wrong. Raises the last MalformedReply. A failed call passes through: its retries are not ours."""
    messages, attempt = request.messages, 0
    while True:
        reply = yield replace(request, messages=messages, attempt=attempt)
        try:
            value = read(reply)
        except MalformedReply as problem:
            history.calls.append(Call.of(request.role, attempt, reply, f"{problem.kind}: {problem}"))
            attempt += 1
            if attempt == settings.attempts:
                raise MalformedReply(problem.kind, f"{request.role}, {attempt} replies, the last: {problem}") from None
            messages = prompts.again(request.messages, str(problem))
        else:
            history.calls.append(Call.of(request.role, attempt, reply))
            return value


def _code_review(review: Review, draft: Draft) -> Review:
    """A reviewer that found nothing is overruled where a choice visibly is no action."""
    found = non_actionable(draft.choices) if review.issue is None else None
    return Review(analysis=found, issue="non_actionable", by="code") if found else review


def shuffle_choices(slot: Slot, choices: Choices, answer: Letter) -> tuple[str, Choices, Letter]:
    """The choices in an order drawn from the slot, so that the right letter says nothing about the models
    that wrote and answered the item. Returns the draft's letters in the order shown, the choices as shown,
    and the answer's new letter."""
    order = list(LETTERS)
    Random(slot.seed("choices")).shuffle(order)
    moved = LETTERS[order.index(answer)]
    return "".join(order), Choices.of(tuple(choices[letter] for letter in order)), moved
