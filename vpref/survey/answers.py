"""What a browser sends for one question, made an answer or a list of what is missing. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vpref.domain import LETTERS, OTHER

LONGEST = 2000
"""Characters of a justification. Browsers hold to it by themselves; what comes longer all the same is refused."""

DIFFICULTIES = ("very easy", "easy", "medium", "difficult", "very difficult")
"""The words of the ratings 1 to 5 (the paper names the ends, section 3.3)."""


@dataclass(frozen=True)
class Answer:
    """One answer as given: `choice` is the item's own letter or "other"."""

    choice: str
    difficulty: int | None = None
    justification: str = ""


@dataclass(frozen=True)
class Sent:
    """What was filled in, complete or not, to be shown again; `problems` is field -> sentence."""

    choice: str = ""
    difficulty: str = ""
    justification: str = ""
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def answer(self) -> Answer:
        """Only without problems."""
        return Answer(self.choice, int(self.difficulty) if self.difficulty else None, self.justification.strip())


def read_answer(form: Mapping[str, str], *, is_check: bool) -> Sent:
    """What a browser sent, checked. Attention checks ask for a choice alone."""
    choice, difficulty = form.get("choice", ""), form.get("difficulty", "")
    justification = form.get("justification", "").replace("\r\n", "\n")
    problems = {}
    if choice not in (*LETTERS, OTHER):
        problems["choice"] = "Choose what this person should do."
    if is_check:
        return Sent(choice=choice, problems=problems)
    if difficulty not in ("1", "2", "3", "4", "5"):
        problems["difficulty"] = "Say how difficult the choice was."
    if not justification.strip():
        problems["justification"] = "Give your reason in a few words."
    elif len(justification) > LONGEST:
        problems["justification"] = f"Your reason has {len(justification):,} characters; {LONGEST:,} are the most."
    return Sent(choice, difficulty, justification, problems)
