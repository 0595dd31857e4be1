"""The reference implementation's JSON, so that items go to and come from its users.

Knows nothing of runs: records in, plain values out.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import BaseModel, Field, ValidationError

from vpref.domain import Accepted, Draft, Failed, Letter, Outcome, Review, Revision, Role, Round, Slot, Variant
from vpref.errors import ConfigError

_NAMESPACE = uuid.UUID("6f1d7b0c-3f4e-5b5e-9a41-1f0d4d6a8f52")


class Attributed(Protocol):
    """What an attribution needs of an image's record."""

    @property
    def source(self) -> str: ...
    @property
    def attribution(self) -> str | None: ...
    @property
    def licence(self) -> str | None: ...
    @property
    def url(self) -> str | None: ...


class ReferenceItem(BaseModel):
    """One item as the reference implementation writes it, with the rounds that a session told of it."""

    img: str
    model: str = ""
    category: Literal[0, 1, 2, 3]
    uuid: str = ""
    prompt: Draft
    answer: Letter | None = None
    rounds: tuple[Round, ...] = ()

    @property
    def variant(self) -> Variant:
        """`boxes` where a choice names one: the image is then the drawn one."""
        return Variant.BOXES if any("bounding box" in text for text in self.prompt.choices.texts) else Variant.PLAIN

    @property
    def faulted(self) -> bool:
        """Whether its last review still named an issue."""
        return bool(self.rounds) and self.rounds[-1].review.issue is not None

    @property
    def order(self) -> str:
        """The last draft's letters in the order in which the item shows them; as they stand where that is not told."""
        texts = self.rounds[-1].draft.choices.texts if self.rounds else ()
        shown = self.prompt.choices.texts
        known = len(set(texts)) == 4 and set(texts) == set(shown)
        return "".join("abcd"[texts.index(text)] for text in shown) if known else "abcd"


class _Issue(BaseModel):
    analysis: str
    issue: str


class _Fix(BaseModel):
    proposed_fix: str | None = None
    revised_prompt: Draft


class _Step(BaseModel):
    issue: _Issue
    prompt_revision: _Fix


class _Session(BaseModel):
    """A revision session: the last step's fix is the responder's letter, and its issue "none" or what was left."""

    original_prompt: Draft
    revised_prompts: list[_Step] = Field(min_length=1)

    def told(self) -> dict[str, Any]:
        """What it says of its item: the text, the answer, the rounds."""
        *revised, last = self.revised_prompts
        draft, rounds = self.original_prompt, []
        for step in revised:
            fix = Revision(
                proposed_fix=step.prompt_revision.proposed_fix or "", draft=step.prompt_revision.revised_prompt
            )
            rounds.append(Round(draft=draft, review=_review(step.issue), revision=fix))
            draft = fix.draft
        rounds.append(Round(draft=draft, review=_review(last.issue)))
        return {
            "prompt": last.prompt_revision.revised_prompt,
            "answer": last.prompt_revision.proposed_fix,
            "rounds": tuple(rounds),
        }


def _review(said: _Issue) -> Review:
    return Review(analysis=said.analysis, issue=None if said.issue == "none" else said.issue)


def read_items(value: object, name: str) -> list[ReferenceItem]:
    """The items in a JSON value: a list of items, drafts (which have no answer) or revision sessions, or our own
    export, whose sessions are read where there are some, as they tell most. Raises ConfigError naming the first
    that is not of the form."""
    entries = (value.get("sessions") or value.get("items")) if isinstance(value, dict) else value
    if not isinstance(entries, list) or not entries:
        raise ConfigError(f"{name} holds no list of items; each is {{img, model, category, uuid, prompt, answer}}.")
    items = []
    for number, entry in enumerate(entries, 1):
        try:
            items.append(ReferenceItem.model_validate(_flat(entry)))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ConfigError(f"{name}, item {number}: {where} {first['msg']}.") from error
    return items


def _flat(entry: object) -> object:
    """A draft or session as the item that it is of."""
    if isinstance(entry, dict) and isinstance(entry.get("metadata"), dict):
        return entry["metadata"] | {"prompt": entry.get("prompt")}
    if isinstance(entry, dict) and "revised_prompts" in entry:
        return entry | _Session.model_validate(entry).told()
    return entry


def export(outcomes: Iterable[Outcome], sources: Mapping[str, str]) -> dict[str, list[dict[str, Any]]]:
    """Drafts, revision sessions and items in the reference implementation's forms. `sources` names the file
    of each image digest. Only accepted items are items; the drafts and sessions of the others are kept."""
    exported: dict[str, list[dict[str, Any]]] = {"drafts": [], "sessions": [], "items": []}
    for outcome in outcomes:
        head = _head(outcome, sources)
        first = outcome.rounds[0].draft if outcome.rounds else _only_draft(outcome)
        if first is None:
            continue
        exported["drafts"].append({"metadata": {"timestamp": None} | head, "prompt": _prompt(first)})
        if isinstance(outcome, Failed):
            continue
        exported["sessions"].append(head | {"original_prompt": _prompt(first), "revised_prompts": _revisions(outcome)})
        if isinstance(outcome, Accepted):
            item = outcome.item
            exported["items"].append(head | {"prompt": _prompt(item), "answer": item.truth or item.answer})
    return exported


def reference_uuid(slot: Slot) -> str:
    """The same id for the same slot in every run."""
    return str(uuid.uuid5(_NAMESPACE, slot.key))


def write_attribution(path: Path, images: Iterable[Attributed]) -> None:
    """Who made the images and under which licence, for everybody the folder is passed on to."""
    lines = ["# Images", "", "Normalised by vpref (turned upright, RGB, at most a set size, no metadata).", ""]
    for image in images:
        about = [image.attribution or "origin and licence not known to vpref", image.licence, image.url]
        lines.append(f"- `{image.source}`: " + ", ".join(part for part in about if part))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _head(outcome: Outcome, sources: Mapping[str, str]) -> dict[str, Any]:
    """What all forms share. An item with boxes is about the drawn image, whose file the run keeps by its digest."""
    slot = outcome.slot
    model = next((call.model for call in outcome.calls if call.role is Role.GENERATOR), "")
    name = sources.get(slot.image, slot.image)
    if not isinstance(outcome, Failed) and outcome.item.boxes:
        name = f"{outcome.item.shown}.jpg"
    return {"img": name, "model": model, "category": int(slot.category), "uuid": reference_uuid(slot)}


def _only_draft(outcome: Outcome) -> Draft | None:
    if isinstance(outcome, Failed):
        return outcome.draft
    texts = tuple(outcome.item.choices["abcd"[outcome.order.index(letter)]] for letter in "abcd")
    return Draft(
        scene=outcome.item.scene,
        preference=outcome.item.preference,
        question=outcome.item.question,
        choices=type(outcome.item.choices).of(texts),
    )


def _prompt(draft: Draft) -> dict[str, Any]:
    return draft.model_dump(include={"scene", "preference", "question", "choices"})


def _revisions(outcome: Outcome) -> list[dict[str, Any]]:
    """Every review with its fix; the last entry's fix is the responder's letter, and its issue "none" where the
    item was accepted."""
    entries = []
    for one in outcome.rounds:
        issue = {"analysis": one.review.analysis, "issue": one.review.issue or "none"}
        if one.revision is None:
            break
        revision = {"proposed_fix": one.revision.proposed_fix, "revised_prompt": _prompt(one.revision.draft)}
        entries.append({"issue": issue, "prompt_revision": revision})
    if isinstance(outcome, Failed):
        return entries
    verdict = outcome.rounds[-1].review if outcome.rounds else Review(analysis="", issue=None)
    issue = {"analysis": verdict.analysis, "issue": verdict.issue or "none"}
    last = {"proposed_fix": outcome.item.answer, "revised_prompt": _prompt(outcome.item)}
    return [*entries, {"issue": issue, "prompt_revision": last}]
