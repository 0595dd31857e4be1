"""The text and images of every request, from templates in the `.md` files beside this one.

Pure: it fills named fields and orders parts. It refuses to know how a request is sent or its reply is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Protocol

from vpref.domain import LETTERS, Category, Choices, Draft, Message, Picture, ReplyForm, Review
from vpref.issues import Issue, allowed_issues, issue_named
from vpref.settings import MessageOrder


class Shown(Protocol):
    """What a draft and an item have in common: the text that a model or person reads."""

    @property
    def scene(self) -> str: ...
    @property
    def preference(self) -> str: ...
    @property
    def question(self) -> str: ...
    @property
    def choices(self) -> Choices: ...


@cache
def _template(name: str) -> Template:
    return Template(files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8").rstrip("\n"))


def fill(name: str, /, **fields: str) -> str:
    """The template with its `$fields` filled. A field's own text is never looked at for more fields."""
    return _template(name).substitute(fields)


def item_block(shown: Shown) -> str:
    """An item or draft as models read it, one field a line. A field that is empty (in an ablation) has no line."""
    fields = {"Scene": shown.scene, "Preference": shown.preference, "Question": shown.question}
    lines = [f"{name}: {text}" for name, text in fields.items() if text]
    lines += [f"{letter}) {text}" for letter, text in zip(LETTERS, shown.choices.texts, strict=True)]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Scene:
    """What all prompts about one item share. `toolbox` holds the object names that choices must use, and is
    empty in the `plain` variant."""

    picture: Picture
    category: Category
    order: MessageOrder
    toolbox: tuple[str, ...] = ()

    @property
    def terms(self) -> str:
        """What the draft must be like."""
        if not self.toolbox:
            return fill(f"category_{self.category:d}")
        return fill(f"boxes_{self.category:d}", objects=_listed(self.toolbox))

    def noting_tags(self, text: str) -> str:
        """A role's text, with what tags are where drafts have them."""
        return f"{text}\n\n{fill('tagged', objects=_listed(self.toolbox))}" if self.toolbox else text


def generator(scene: Scene) -> tuple[Message, ...]:
    """Ask for a draft of one category (paper, section 3.2)."""
    return _messages(fill("generator", category=scene.terms), "Here is the image.", scene)


def reviewer(scene: Scene, draft: Draft) -> tuple[Message, ...]:
    """Ask for the one issue of a draft, among those of its category (paper, section 3.2)."""
    issues = "\n".join(f"- {issue.name}: {issue.meaning}" for issue in allowed_issues(scene.category))
    role = scene.noting_tags(fill("reviewer", issues=issues))
    return _messages(role, "The draft:\n\n" + item_block(draft), scene)


def revisor(scene: Scene, draft: Draft, review: Review) -> tuple[Message, ...]:
    """Ask for a mended draft, given the review and its issue's suggested fix (paper, section 3.2)."""
    issue: Issue = issue_named(review.issue or "")
    case = (
        f"Issue: {issue.name} ({issue.meaning})\nReviewer's analysis: {review.analysis}\nSuggested fix: {issue.fix}"
        f"\n\nThe draft:\n\n{item_block(draft)}"
    )
    role = fill("revisor", category=scene.terms)
    return _messages(f"{role}\n\n{fill('keep_tags')}" if scene.toolbox else role, case, scene)


def responder(scene: Scene, draft: Draft) -> tuple[Message, ...]:
    """Ask for the letter of the right choice (paper, section 3.2)."""
    return _messages(scene.noting_tags(fill("responder")), item_block(draft), scene)


def mapper(picture: Picture, classes: Mapping[str, str]) -> tuple[Message, ...]:
    """Ask for the name of each box by its letter and class; the picture has the boxes drawn (paper, section 3.3)."""
    return (Message("user", (picture, fill("mapper", boxes=json.dumps(classes, ensure_ascii=False)))),)


def evaluated(picture: Picture | None, shown: Shown) -> tuple[Message, ...]:
    """An item as the evaluated model meets it: one turn, no system text, the image first if there is one."""
    text = fill("evaluated", item=item_block(shown))
    return (Message("user", (text,) if picture is None else (picture, text)),)


def evaluated_later(
    picture: Picture | None, shown: Shown, preference: str, exchanges: Sequence[tuple[Shown, str]]
) -> tuple[Message, ...]:
    """An item whose preference was told at the start of the conversation. Between that and the item lie `exchanges`
    about other items, each with the letter that was answered: their words alone, without images and preferences."""
    messages = [Message("user", (fill("earlier", preference=preference),)), Message("assistant", (fill("noted"),))]
    for other, letter in exchanges:
        asked = item_block(Draft(scene=other.scene, preference="", question=other.question, choices=other.choices))
        messages += [Message("user", (fill("unrelated", item=asked),)), Message("assistant", (letter,))]
    text = fill("evaluated_later", item=item_block(shown))
    return (*messages, Message("user", (text,) if picture is None else (picture, text)))


def extractor(shown: Shown, output: str) -> tuple[Message, ...]:
    """Ask which choice an evaluated model's output means (paper, section 4.2)."""
    choices = "\n".join(f"{letter}) {text}" for letter, text in zip(LETTERS, shown.choices.texts, strict=True))
    return (Message("user", (fill("extractor", question=shown.question, choices=choices, output=output),)),)


def again(messages: tuple[Message, ...], problem: str, attempt: int) -> tuple[Message, ...]:
    """The same request once more, its last turn ending in what was wrong with the earlier reply. The attempt is
    told too: a model that always says the same to the same words would never get further."""
    *earlier, last = messages
    return (*earlier, Message(last.speaker, (*last.parts, fill("again", problem=problem, attempt=str(attempt + 1)))))


def with_schema(messages: tuple[Message, ...], form: ReplyForm) -> tuple[Message, ...]:
    """The schema told in words, for servers that cannot enforce one."""
    *earlier, last = messages
    told = fill("schema", name=form.name, schema=json.dumps(form.schema, ensure_ascii=False))
    return (*earlier, Message(last.speaker, (*last.parts, told)))


def _messages(role: str, case: str, scene: Scene) -> tuple[Message, ...]:
    if scene.order is MessageOrder.instructions_first:
        return (Message("system", (role,)), Message("user", (case, scene.picture)))
    return (Message("system", (fill("preamble"),)), Message("user", (scene.picture, role, case)))


def _listed(names: tuple[str, ...]) -> str:
    return "\n".join(f"- {name}" for name in names)
