"""Generating one item: the paper's figure 2 as a coroutine.

It decides what to ask next and never asks; whoever drives it sends the replies. It holds no I/O, clock,
logging or global randomness, so that replaying the same replies gives the same outcome.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from random import Random

from vpref import prompts, replies
from vpref.asking import ask
from vpref.domain import (
    LETTERS,
    Accepted,
    Box,
    Call,
    Choices,
    Draft,
    Failed,
    Letter,
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
from vpref.tags import with_letters


@dataclass
class _History:
    """What has happened to one item so far; part of its record however it ends."""

    draft: Draft | None = None
    rounds: list[Round] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)


def generate_item(
    slot: Slot, settings: PipelineSettings, *, boxes: tuple[Box, ...] = (), drawn: str | None = None
) -> Step[Outcome]:
    """Draft, review, revise within `max_revisions`, answer. At most max_revisions + 1 reviews.

    `boxes` are those of the `boxes` variant and `drawn` the digest of the image with them drawn on it: the
    pipeline sees the original image and the boxes' names, the item shows the drawn one and their letters.
    Returns Accepted, Unresolved (an issue is left when the revisions are spent) or Failed (a role kept
    breaking its form for `attempts` replies, or a request got no reply).
    """
    history = _History()
    toolbox = tuple(box.name for box in boxes)
    scene = prompts.Scene(Picture(slot.image), slot.category, settings.message_order, toolbox)
    try:
        draft = yield from _draft(scene, slot.sample, settings, history)
        respond = ModelRequest(Role.RESPONDER, prompts.responder(scene, draft), replies.answer_form())
        answer = yield from ask(respond, replies.read_answer, settings.attempts, history.calls)
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
    final = with_letters(draft.model_copy(update={"choices": shuffled}), {box.name: box.letter for box in boxes})
    item = make_item(slot, final, shown=drawn or slot.image, answer=moved, boxes=boxes)
    faulted = bool(history.rounds) and history.rounds[-1].review.issue is not None
    return (Unresolved if faulted else Accepted)(
        slot=slot, item=item, order=order, rounds=tuple(history.rounds), calls=tuple(history.calls)
    )


def _draft(scene: prompts.Scene, sample: int, settings: PipelineSettings, history: _History) -> Step[Draft]:
    """Figure 2 from generator to the accepted draft."""
    attempts, calls = settings.attempts, history.calls

    generate = ModelRequest(Role.GENERATOR, prompts.generator(scene), replies.draft_form(), sample=sample)
    draft = history.draft = yield from ask(
        generate, lambda reply: replies.read_draft(reply, scene.toolbox), attempts, calls
    )
    for revision in range(settings.max_revisions + 1 if settings.review else 0):
        form = replies.review_form(scene.category)
        request = ModelRequest(Role.REVIEWER, prompts.reviewer(scene, draft), form)
        review = yield from ask(request, lambda reply: replies.read_review(reply, scene.category), attempts, calls)
        review = _code_review(review, draft)
        history.rounds.append(Round(draft=draft, review=review))
        if review.issue is None or revision == settings.max_revisions:
            break
        revise = ModelRequest(Role.REVISOR, prompts.revisor(scene, draft, review), replies.revision_form())
        read = partial(replies.read_revision, before=draft, toolbox=scene.toolbox)
        mended = yield from ask(revise, read, attempts, calls)
        history.rounds[-1] = Round(draft=draft, review=review, revision=mended)
        draft = history.draft = mended.draft
    return draft


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
