"""The words of a form in others' tools, and whose question each is: written once, read back on import.

Every title bears the item's place and the start of its id, so that no two are alike and none can be taken for
another's; a form's first question bears the form's name and the plan's version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from vpref.domain import LETTERS, OTHER, OTHER_TEXT, Choices, Form, Item, Plan, VoteChoice

DIFFICULTY_ENDS = ("Very easy", "Very difficult")

Kind = Literal["choice", "difficulty", "why"]


@dataclass(frozen=True)
class Asked:
    """One item or check as it is put: what is shown before, its questions' titles, and its options by choice."""

    id: str
    code: str
    choices: Choices
    text: tuple[str, ...]
    question: str
    shown: str | None = None
    """The digest of the image; None for a check."""

    @property
    def titles(self) -> dict[Kind, str]:
        """The title of each question; a check has but one."""
        choice: dict[Kind, str] = {"choice": one_line(f"[{self.code}] {self.question}")}
        if self.shown is None:
            return choice
        return choice | {
            "difficulty": f"[{self.code}] How difficult was it to choose?",
            "why": f"[{self.code}] Why did you choose this? One sentence is enough.",
        }

    @property
    def options(self) -> dict[VoteChoice, str]:
        """The text of each choice; "other" is last."""
        lettered: dict[VoteChoice, str] = {letter: one_line(f"{letter}. {self.choices[letter]}") for letter in LETTERS}
        return lettered if self.shown is None else lettered | {OTHER: OTHER_TEXT}


@dataclass(frozen=True)
class Sheet:
    """A whole form as it is put."""

    title: str
    form: Form
    version: str
    asked: tuple[Asked, ...]

    @property
    def person(self) -> str:
        """The title of the question after the participant's id."""
        return f"Your participant ID [{self.form.name} {self.version}]"

    @cached_property
    def meanings(self) -> dict[str, tuple[Asked, Kind]]:
        """What each title asks."""
        return {title: (asked, kind) for asked in self.asked for kind, title in asked.titles.items()}


def sheets(plan: Plan, items: Mapping[str, Item]) -> Iterator[Sheet]:
    """Every form of a plan in words."""
    for form in plan.forms:
        asked = tuple(_asked(plan, id, number, items) for number, id in enumerate(form.questions, 1))
        yield Sheet(f"{plan.title} ({form.name})", form, plan.version, asked)


def _asked(plan: Plan, id: str, number: int, items: Mapping[str, Item]) -> Asked:
    if id in plan.checks:
        check = plan.checks[id]
        return Asked(id, f"P{number:02} check", check.choices, (), check.question)
    item = items[id]
    text = (f"Scene: {item.scene}", f"Preference: {item.preference}")
    return Asked(id, f"P{number:02} {id[:8]}", item.choices, text, item.question, item.shown)


def one_line(text: str) -> str:
    """The text with every run of white space as one space: titles and options may hold no line break."""
    return " ".join(text.split())
