"""`dry_run=true`: how many calls a run would make, and about what they cost, without sending any.

The coroutines themselves are replayed against the store, so what is stored already is not counted. Prices
come from the models' configs; tokens are estimated, and said to be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from vpref.backends import client, wire
from vpref.domain import ModelRequest, Outcome, Response, Role, Step, Usage
from vpref.evaluation import ATTEMPTS
from vpref.naming import Naming
from vpref.runs.session import Session
from vpref.settings import (
    AblationSettings,
    AnswerForm,
    BoxesSettings,
    GenerateSettings,
    ModelSettings,
    PipelineSettings,
)
from vpref.store import CallStore

T = TypeVar("T")

IMAGE_TOKENS = 800
"""About what providers count for a photo of VGA size at high detail."""

INPUT_TOKENS = {
    Role.MAPPER: 250,
    Role.GENERATOR: 450,
    Role.REVIEWER: 450,
    Role.REVISOR: 700,
    Role.RESPONDER: 200,
    Role.EVALUATED: 170,
    Role.EXTRACTOR: 260,
}
OUTPUT_TOKENS = {
    Role.MAPPER: 80,
    Role.GENERATOR: 170,
    Role.REVIEWER: 110,
    Role.REVISOR: 220,
    Role.RESPONDER: 8,
    Role.EVALUATED: 10,
    Role.EXTRACTOR: 8,
}
"""Of the text alone, as our prompts and typical replies are."""

REASONING_TOKENS = 600
"""A call of a model whose config asks for reasoning, at medium effort."""


@dataclass
class _Bounds:
    """Calls by role, at least and at most."""

    least: Counter[Role] = field(default_factory=Counter)
    most: Counter[Role] = field(default_factory=Counter)
    stored: int = 0

    def add(self, other: _Bounds) -> None:
        self.least += other.least
        self.most += other.most
        self.stored += other.stored


def for_generation(
    settings: GenerateSettings,
    live: Session,
    items: Iterable[Step[Outcome]],
    namings: Iterable[Step[Naming]],
    count: int,
) -> str:
    """The plan of a generate run, as text: `namings` are the box stage's steps, `items` the `count` items'."""
    bounds = _bounds(((step, settings.pipeline) for step in namings), live)
    bounds.add(_bounds(((step, settings.pipeline) for step in items), live))
    return _describe(count, bounds, live.models)


def for_naming(settings: BoxesSettings, live: Session, namings: Iterable[Step[Naming]], count: int) -> str:
    """The plan of a boxes run, as text."""
    pipeline = PipelineSettings(attempts=settings.attempts)
    return _describe(count, _bounds(((step, pipeline) for step in namings), live), live.models)


def for_evaluation(live: Session, steps: Sequence[Step[Response]], ablation: AblationSettings) -> str:
    """The plan of an evaluate run, as text."""
    return _describe(len(steps), _bounds(((step, ablation) for step in steps), live), live.models)


def stored_results(steps: Iterable[Step[T]], live: Session) -> list[T | None]:
    """What the coroutines come to by stored replies alone; None for those that would ask for more."""
    with CallStore(Path(live.settings.store.root)) as store:
        return [_replay(step, live, store).result for step in steps]


def _bounds(steps: Iterable[tuple[Step[T], PipelineSettings | AblationSettings]], live: Session) -> _Bounds:
    bounds = _Bounds()
    with CallStore(Path(live.settings.store.root)) as store:
        for step, plan in steps:
            replayed = _replay(step, live, store)
            bounds.stored += replayed.stored.total()
            if replayed.pending is not None:
                if isinstance(plan, AblationSettings):
                    _add_answers(bounds, replayed.stored, replayed.pending, plan, Role.EXTRACTOR in live.models)
                else:
                    _add_rest(bounds, replayed.stored, replayed.pending, plan)
    return bounds


@dataclass
class _Replayed(Generic[T]):
    """How far the store takes a coroutine: stored replies by role, and the role to be asked next, or the result."""

    stored: Counter[Role]
    pending: Role | None = None
    result: T | None = None


def _replay(step: Step[T], live: Session, store: CallStore) -> _Replayed[T]:
    seen: Counter[Role] = Counter()
    try:
        request = next(step)
        while True:
            data = store.get(_key(request, live))
            if data is None:
                step.close()
                return _Replayed(seen, pending=request.role)
            seen[request.role] += 1
            request = step.send(client.decode_reply(data))
    except StopIteration as end:
        return _Replayed(seen, result=end.value)


def _key(request: ModelRequest, live: Session) -> str:
    model = live.models[request.role]
    server = live.servers.get(request.role, model.server)
    return wire.prepare(request, model, server, live.gallery.encoding(model.image)).key


def _add_answers(
    bounds: _Bounds, stored: Counter[Role], pending: Role, ablation: AblationSettings, extracting: bool
) -> None:
    """What an item may still need in an evaluation. At least: every answer can be read at first sight."""
    asks = ablation.permutations * ablation.samples
    bound = ablation.answer is AnswerForm.constrained
    bounds.least[Role.EVALUATED] += max(int(pending is Role.EVALUATED), asks - stored[Role.EVALUATED])
    bounds.most[Role.EVALUATED] += asks * (ATTEMPTS if bound else 1) - stored[Role.EVALUATED]
    if extracting and not bound:
        bounds.least[Role.EXTRACTOR] += int(pending is Role.EXTRACTOR)
        bounds.most[Role.EXTRACTOR] += asks * ATTEMPTS - stored[Role.EXTRACTOR]


def _add_rest(bounds: _Bounds, stored: Counter[Role], pending: Role, pipeline: PipelineSettings) -> None:
    """What an item may still need. At least: no further issue, no malformed reply; at most: all of both."""
    if pending is Role.MAPPER:
        bounds.least[pending] += 1
        bounds.most[pending] += pipeline.attempts - stored[pending]
        return
    review = [Role.REVIEWER] if pipeline.review else []
    rest = {
        Role.GENERATOR: [Role.GENERATOR, *review, Role.RESPONDER],
        Role.REVIEWER: [Role.REVIEWER, Role.RESPONDER],
        Role.REVISOR: [Role.REVISOR, Role.REVIEWER, Role.RESPONDER],
        Role.RESPONDER: [Role.RESPONDER],
    }
    bounds.least.update(rest[pending])
    reviews = pipeline.max_revisions + 1 if pipeline.review else 0
    whole = {Role.GENERATOR: 1, Role.REVIEWER: reviews, Role.REVISOR: max(0, reviews - 1), Role.RESPONDER: 1}
    for role, times in whole.items():
        bounds.most[role] += max(0, times * pipeline.attempts - stored[role])


def _describe(items: int, bounds: _Bounds, models: Mapping[Role, ModelSettings]) -> str:
    low, high = (
        sum((_usd(models[role], role) or 0.0) * n for role, n in calls.items()) for calls in (bounds.least, bounds.most)
    )
    asked = [(model.title, _usd(model, role)) for role, model in models.items() if bounds.most[role]]
    unknown = dict.fromkeys(title for title, usd in asked if usd is None)
    priced = any(usd is not None for _, usd in asked)
    cost = f"about ${low:,.2f} to ${high:,.2f}" if priced or not unknown else ""
    if unknown:
        cost += f"{' and ' if cost else ''}at an unknown price (no price in the config of {', '.join(unknown)})"
    roles = "".join(
        f"\n  {role:10} {models[role].title:16} {bounds.least[role]:>8,} to {bounds.most[role]:,} calls"
        for role in models
    )
    return (
        f"dry run: {items:,} items; {bounds.stored:,} replies are stored already; still to be sent: "
        f"{bounds.least.total():,} to {bounds.most.total():,} calls, {cost}.{roles}\n"
        f"At least: every draft accepted at first sight; at most: every revision and re-ask used. The cost assumes "
        f"{IMAGE_TOKENS} tokens an image and typical text lengths. Nothing was sent."
    )


def _usd(model: ModelSettings, role: Role) -> float | None:
    reasoning = REASONING_TOKENS if any("reasoning" in name for name in model.params) else 0
    image = 0 if role is Role.EXTRACTOR else IMAGE_TOKENS
    usage = Usage(input=INPUT_TOKENS[role] + image, output=OUTPUT_TOKENS[role] + reasoning)
    return client.cost(model, usage)
