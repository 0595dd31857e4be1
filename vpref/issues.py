"""The issues that a review can name, and the one rule among them that code can check itself.

A new issue is one entry here: the reviewer's list, its reply schema and the revisor's suggestion follow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from vpref.domain import LETTERS, Category, Choices, Dependence


@dataclass(frozen=True, slots=True)
class Issue:
    """`meaning` is told to the reviewer, `fix` to the revisor (paper, section 3.2)."""

    name: str
    meaning: str
    fix: str
    high_dependence_only: bool = False


ISSUES = (
    Issue(
        "wrong_scene_description",
        "the scene claims something that the image does not show",
        "Write the scene anew, short and true to what can be seen.",
    ),
    Issue(
        "poor_preference_construction",
        "the preference is vague, or has little to do with the image",
        "State a clear preference that bears on what the image shows, and let the choices follow it.",
    ),
    Issue(
        "no_correct_choices",
        "none of the four choices follows the stated preference",
        "Turn one of the wrong choices into an action that follows the preference.",
    ),
    Issue(
        "multiple_correct_choices",
        "more than one choice follows the stated preference",
        "Keep one of the right choices and turn the others into actions that go against the preference.",
    ),
    Issue(
        "low_image_dependency",
        "the right choice can be told from the text without looking at the image",
        "Make the choices less telling: name places relative to other things instead of what is there, and do not "
        "echo the words of the preference.",
        high_dependence_only=True,
    ),
    Issue(
        "non_actionable",
        "a choice is not an action, that is, it does not begin with a verb",
        "Say every choice as an action that begins with a verb, and keep the right one right.",
    ),
)


def allowed_issues(category: Category) -> tuple[Issue, ...]:
    """The issues that a review of this category may name: low image dependency only where the dependence
    is meant to be high."""
    high = category.dependence is Dependence.HIGH
    return tuple(issue for issue in ISSUES if high or not issue.high_dependence_only)


def issue_named(name: str) -> Issue:
    """The issue of this name; KeyError for any other."""
    return {issue.name: issue for issue in ISSUES}[name]


# Words that cannot open an imperative. Words that are verbs too ("like", "down", "head") are left out on
# purpose: this rule may miss a fault, and must never see one where there is none.
_NO_VERB = frozenset(
    re.findall(
        r"\w+",
        """a an the this that these those it he she they we you i my your his her its our their there here because
        since if when while whether with without by for from to into onto of at in on under over between beside near
        and or but nor yes no none neither both either every each some any all what which who whose how why where as
        so is are was were""",
    )
)
_FIRST_WORD = re.compile(r"[^\W\d_]+")


def non_actionable(choices: Choices) -> str | None:
    """Says which choice does not begin with a verb, where code can tell; None if it cannot tell or all do."""
    for letter, text in zip(LETTERS, choices.texts, strict=True):
        first = _FIRST_WORD.search(text)
        if first is None or first.group().lower() in _NO_VERB:
            return f"Choice {letter} does not begin with a verb: {text!r}."
    return None
