"""The forms that the pipeline's roles must reply in, and reading them.

A reader takes a completed reply and returns the value it holds, or raises MalformedReply in words that the
model can act on when it is asked again. Lenient in what carries no meaning (a fence, extra fields, the case
of a letter), strict in the rest. Refuses to know who asks and what happens next.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError, create_model

from vpref.domain import LETTERS, Category, Choices, Draft, Letter, ModelReply, ReplyForm, Review, Revision
from vpref.errors import MalformedReply
from vpref.issues import allowed_issues
from vpref.tags import check_kept, check_tags

M = TypeVar("M", bound=BaseModel)


MOST_WORDS = 4
"""Of a box's name."""

_OBJECT_TRIES = 64  # bounds the work on a reply that is nothing but braces


class _Answer(BaseModel):
    answer: Letter


class _Extraction(BaseModel):
    letter: Letter | Literal["none"]


class _Draft(BaseModel):
    """A draft as replied. The order of fields is the order in which a model writes them."""

    scene: str
    preference: str
    question: str
    choices: Choices


class _Revision(BaseModel):
    proposed_fix: str
    draft: _Draft


@cache
def _naming(letters: tuple[str, ...]) -> type[BaseModel]:
    names: dict[str, Any] = dict.fromkeys(letters, (str, ...))
    fields: dict[str, Any] = {"analysis": (str, ...), "names": (create_model("names", **names), ...)}
    return create_model("naming", **fields)


@cache
def _review(category: Category) -> type[BaseModel]:
    names = (*(issue.name for issue in allowed_issues(category)), "none")
    fields: dict[str, Any] = {"analysis": (str, ...), "issue": (Literal[names], ...)}
    return create_model("review", **fields)


@cache
def naming_form(letters: tuple[str, ...]) -> ReplyForm:
    """The mapper's reply: a name for each of these letters."""
    return _form("naming", _naming(letters))


@cache
def draft_form() -> ReplyForm:
    """The generator's reply."""
    return _form("draft", _Draft)


@cache
def review_form(category: Category) -> ReplyForm:
    """The reviewer's reply: an issue of the category's list, or `none`."""
    return _form("review", _review(category))


@cache
def revision_form() -> ReplyForm:
    """The revisor's reply."""
    return _form("revision", _Revision)


@cache
def extraction_form() -> ReplyForm:
    """The extractor's reply: a letter, or `none`."""
    return _form("extraction", _Extraction)


@cache
def answer_form() -> ReplyForm:
    """The responder's reply."""
    return _form("answer", _Answer)


@cache
def choice_form() -> ReplyForm:
    """An evaluated model's answer where it is bound to the letters."""
    return _form("choice", _Answer)


def read_choice(reply: ModelReply) -> Letter:
    """The letter of an answer that was bound to the letters: the letter itself, or an object with it."""
    bare = reply.text.strip().lower()
    if reply.finish == "stop" and bare in LETTERS:
        return LETTERS[LETTERS.index(bare)]
    return read_answer(reply)


def read_draft(reply: ModelReply, toolbox: Sequence[str] = ()) -> Draft:
    """The draft in a generator's reply; with a toolbox, its tags are checked against it."""
    draft = _draft(_read(reply, _Draft))
    if toolbox:
        check_tags(draft, toolbox)
    return draft


def read_review(reply: ModelReply, category: Category) -> Review:
    """The verdict in a reviewer's reply; an issue that the category does not have is malformed."""
    value = _read(reply, _review(category)).model_dump()
    return Review(analysis=_line(value["analysis"]), issue=None if value["issue"] == "none" else value["issue"])


def read_revision(reply: ModelReply, before: Draft, toolbox: Sequence[str] = ()) -> Revision:
    """The fix and the new draft in a revisor's reply; with a toolbox, the tagged objects of the draft `before`
    must all be kept."""
    value = _read(reply, _Revision)
    draft = _draft(value.draft)
    if toolbox:
        check_tags(draft, toolbox)
        check_kept(before, draft)
    return Revision(proposed_fix=_line(value.proposed_fix), draft=draft)


def read_naming(reply: ModelReply, letters: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """The analysis and the name of each letter in a mapper's reply: at most four words, no two alike, the empty
    string for a box to be taken out."""
    value = _read(reply, _naming(letters)).model_dump()
    names = {letter: _line(name) for letter, name in value["names"].items()}
    seen: dict[str, str] = {}
    for letter, name in names.items():
        if len(name.split()) > MOST_WORDS:
            raise MalformedReply("bad_names", f"the name {name!r} of {letter} has more than {MOST_WORDS} words")
        if "<" in name or ">" in name:
            raise MalformedReply("bad_names", f"the name {name!r} of {letter} has angle brackets")
        if name and seen.setdefault(name.casefold(), letter) != letter:
            raise MalformedReply("bad_names", f"{seen[name.casefold()]} and {letter} have the same name {name!r}")
    return _line(value["analysis"]), names


def read_answer(reply: ModelReply) -> Letter:
    """The letter in a responder's reply."""
    return _read(reply, _Answer).answer


def read_extraction(reply: ModelReply) -> Letter | None:
    """The letter that the extractor saw in an output, None where it saw none."""
    letter = _read(reply, _Extraction).letter
    return None if letter == "none" else letter


def _form(name: str, model: type[BaseModel]) -> ReplyForm:
    return ReplyForm(name, _strict(model.model_json_schema()))


def _strict(schema: dict[str, Any], definitions: dict[str, Any] | None = None) -> dict[str, Any]:
    """The schema with references inlined (not all servers follow them), titles and descriptions dropped (they
    cost tokens), and every object closed, as strict structured outputs want."""
    definitions = schema.get("$defs", {}) if definitions is None else definitions
    if "$ref" in schema:
        return _strict(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions)
    kept = {key: value for key, value in schema.items() if key not in ("title", "description", "$defs")}
    if "properties" in kept:
        kept["properties"] = {name: _strict(value, definitions) for name, value in kept["properties"].items()}
        kept["additionalProperties"] = False
    return kept


def _read(reply: ModelReply, model: type[M]) -> M:
    if reply.finish == "refusal":
        raise MalformedReply("refused", "you declined to answer")
    if not reply.text.strip():
        raise MalformedReply("empty", "it was empty" + (" and was cut off" if reply.finish == "length" else ""))
    if reply.finish == "length":
        raise MalformedReply("cut", "it was cut off at the length limit, so be briefer")
    try:
        return model.model_validate(_tidy(_json_object(reply.text)), extra="ignore")
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise MalformedReply("wrong_shape", f"field {where}: {first['msg']}") from error


def _json_object(text: str) -> dict[str, Any]:
    """The first JSON object in a text: models without a schema put fences and sentences around it."""
    decoder = json.JSONDecoder(strict=False)
    start = -1
    for _ in range(_OBJECT_TRIES):
        start = text.find("{", start + 1)
        if start < 0:
            break
        try:
            value, _end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    raise MalformedReply("not_json", "it held no complete JSON object")


def _tidy(value: dict[str, Any]) -> dict[str, Any]:
    """Near misses of small models that carry no doubt: letters and issue names in another case."""
    for name in ("answer", "issue", "letter"):
        if isinstance(value.get(name), str):
            value[name] = value[name].strip().strip("().").lower().replace(" ", "_")
    choices = value.get("choices")
    if isinstance(choices, dict):
        value["choices"] = {key.strip().strip("().").lower(): text for key, text in choices.items()}
    if isinstance(value.get("draft"), dict):
        value["draft"] = _tidy(value["draft"])
    return value


def _line(text: str) -> str:
    """One line without stray white space, so that fields stay fields wherever an item is shown."""
    return " ".join(text.split())


def _draft(value: _Draft) -> Draft:
    texts = tuple(_line(text) for text in value.choices.texts)
    if all(
        text[:2].lower() in (f"{letter})", f"{letter}.", f"{letter}:")
        for letter, text in zip(LETTERS, texts, strict=True)
    ):
        texts = tuple(text[2:].strip() for text in texts)  # the letter is ours to show, and may yet move
    scene, preference, question = _line(value.scene), _line(value.preference), _line(value.question)
    for name, text in (("scene", scene), ("preference", preference), ("question", question)):
        if not text:
            raise MalformedReply("wrong_shape", f"field {name} is empty")
    _check_choices(texts)
    return Draft(scene=scene, preference=preference, question=question, choices=Choices.of(texts))


def _check_choices(texts: tuple[str, ...]) -> None:
    for letter, text in zip(LETTERS, texts, strict=True):
        if not text:
            raise MalformedReply("bad_choices", f"choice {letter} is empty")
    seen: dict[str, str] = {}
    for letter, text in zip(LETTERS, texts, strict=True):
        twin = seen.setdefault(text.casefold().rstrip(".!"), letter)
        if twin != letter:
            raise MalformedReply("bad_choices", f"choices {twin} and {letter} are the same")
