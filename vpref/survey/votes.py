"""What was answered on the pages, as votes: the same records that every other way of asking people gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from vpref.domain import REHEARSED, Form, Vote, VoteStatus
from vpref.survey.questions import Questionnaire
from vpref.survey.store import Given, Person, Store


def votes(questionnaire: Questionnaire, store: Store) -> Iterator[Vote]:
    """Every answer given so far: by form, then by arrival, then in the order of asking."""
    people = store.people()
    for form in questionnaire.forms:
        for person in people:
            if person.form == form.name:
                answers = store.answers(person.annotator)
                for question in form.questions:
                    if question in answers:
                        yield _vote(person, form, question, answers[question])


def standing(person: Person) -> VoteStatus:
    """What a person's answers count as."""
    if person.withdrew is not None:
        return "returned"
    if person.finished is None:
        return "incomplete"
    return "valid" if person.held else "surplus"


def _vote(person: Person, form: Form, question: str, given: Given) -> Vote:
    return Vote.model_validate(
        {
            "annotator": person.annotator,
            "form": form.name,
            "item": question,
            "choice": given.answer.choice,
            "difficulty": given.answer.difficulty,
            "justification": given.answer.justification,
            "seconds": round(given.seconds, 3),
            "order": given.order,
            "source": "rehearsal" if person.annotator.startswith(REHEARSED) else "web",
            "submission": person.submission,
            "status": standing(person),
            "started": _utc(given.started),
            "submitted": _utc(given.submitted),
        }
    )


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class FormProgress:
    """How one form stands: people who finished in time, who are at it, and places nobody holds; people who finished
    when all places were filled, whose place was taken back, and who withdrew."""

    form: str
    finished: int
    active: int
    open: int
    surplus: int
    lapsed: int
    withdrawn: int


def progress(questionnaire: Questionnaire, store: Store) -> list[FormProgress]:
    """Each form in the plan's order."""
    counts = Counter((person.form, standing(person), person.held) for person in store.people())
    found = []
    for form in questionnaire.forms:
        finished, active = counts[form.name, "valid", True], counts[form.name, "incomplete", True]
        found.append(
            FormProgress(
                form=form.name,
                finished=finished,
                active=active,
                open=questionnaire.plan.places - finished - active,
                surplus=counts[form.name, "surplus", False],
                lapsed=counts[form.name, "incomplete", False],
                withdrawn=counts[form.name, "returned", False],
            )
        )
    return found
