"""Made-up annotators of known accuracy, so that a survey can be rehearsed, and the rules tried on votes whose truth
is known. Every answer comes of a seed: the same survey is rehearsed the same way each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

from vpref.domain import LETTERS, OTHER, REHEARSED, Form, Letter, Plan, Vote, VoteChoice
from vpref.settings import RehearsalSettings

_JUSTIFICATIONS = ("It fits the preference best.", "Only this one is what they asked for.", "The others contradict it.")


def made_up(plan: Plan, form: str, place: int) -> str:
    """The name of a made-up annotator, another one in every survey."""
    return f"{REHEARSED}{plan.version[:4]}-{form}-{place}"


def rehearse(plan: Plan, truth: Mapping[str, Letter], rehearsal: RehearsalSettings) -> Iterator[Vote]:
    """The votes of a full survey: every place of every form filled, each form answered whole. `truth` is the letter
    that annotators try to find, by item id."""
    for form in plan.forms:
        for place in range(plan.places):
            yield from _answers(plan, form, place, truth, rehearsal)


def _answers(
    plan: Plan, form: Form, place: int, truth: Mapping[str, Letter], rehearsal: RehearsalSettings
) -> Iterator[Vote]:
    random = Random(f"{rehearsal.seed}/{plan.version}/{form.name}/{place}")
    careless = random.random() < rehearsal.careless
    for number, question in enumerate(form.questions):
        expected = plan.checks[question].expected if question in plan.checks else truth[question]
        accuracy = 1.0 if question in plan.checks else rehearsal.accuracy[plan.by_id[question].category]
        choice = random.choice(LETTERS) if careless else _choice(random, expected, accuracy, rehearsal.other)
        pace = random.lognormvariate(3.4, 0.4) / (8 if careless else 1)
        yield Vote(
            annotator=made_up(plan, form.name, place + 1),
            form=form.name,
            item=question,
            choice=choice,
            difficulty=None if question in plan.checks else _difficulty(random, question),
            justification=f"{random.choice(_JUSTIFICATIONS)} ({number + 1})",
            seconds=round(pace, 1),
            source="rehearsal",
            submission=f"{form.name}-{place + 1}",
        )


def _difficulty(random: Random, item: str) -> int:
    """Easier for some items than for others, as all annotators find."""
    return min(5, 1 + int(random.expovariate(1 / Random(item).uniform(0.2, 1.2))))


def _choice(random: Random, right: Letter, accuracy: float, other: float) -> VoteChoice:
    if random.random() < accuracy:
        return right
    return OTHER if random.random() < other else random.choice([letter for letter in LETTERS if letter != right])
