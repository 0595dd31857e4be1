"""What an annotator is shown for each question of a plan, and in which order its choices stand. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from vpref.domain import LETTERS, Choices, Form, Item, Plan


@dataclass(frozen=True)
class Question:
    """One page of a form: an item, or an attention check, which has neither image, scene nor preference."""

    id: str
    question: str
    choices: Choices
    image: str | None = None
    """The digest of the image to show."""
    scene: str = ""
    preference: str = ""

    @property
    def is_check(self) -> bool:
        return self.image is None


class Questionnaire:
    """All forms of a plan, ready to be shown."""

    def __init__(self, plan: Plan, items: Mapping[str, Item]) -> None:
        self.plan = plan
        self._questions = {item.id: _of_item(item) for item in items.values()} | {
            check.id: Question(check.id, check.question, check.choices) for check in plan.checks.values()
        }
        self._forms = {form.name: form for form in plan.forms}
        self.images = frozenset(question.image for question in self._questions.values() if question.image)

    @property
    def forms(self) -> tuple[Form, ...]:
        return self.plan.forms

    def ids(self, form: str) -> tuple[str, ...]:
        """The questions of a form in the order of asking."""
        return self._forms[form].questions

    def __getitem__(self, question: str) -> Question:
        return self._questions[question]


def _of_item(item: Item) -> Question:
    return Question(item.id, item.question, item.choices, item.shown, item.scene, item.preference)


def choice_order(annotator: str, question: str) -> str:
    """The order in which an annotator is shown the choices, as their letters: the same on every visit and device,
    another one for each annotator and question. "Other" is always last and has no place in it."""
    return "".join(Random(f"choices/{annotator}/{question}").sample(LETTERS, len(LETTERS)))
