"""Objects in choices: `<object>` tags as the generator writes them, box letters as people and models read them.

Pure functions over texts. A draft of the `boxes` variant names objects of its toolbox in tags; the item made of
it names the boxes they lie in. Refuses to know who wrote the draft and where boxes come from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from vpref.domain import LETTERS, Choices, Draft
from vpref.errors import MalformedReply

_TAG = re.compile(r"<object>(.*?)</object>")
_LOOSE = re.compile(r"<\s*/?\s*object\b[^>]*>?", re.IGNORECASE)
_INACTION = re.compile(
    r"\W*(make no|do nothing|do not|don't|change nothing|take no|touch nothing|move nothing"
    r"|(leave|keep) (everything|all|things))\b",
    re.IGNORECASE,
)


def tagged_object(text: str) -> str | None:
    """The one object that a choice names in tags, or None where it names none.

    Raises MalformedReply where it names several, or where a tag is broken.
    """
    found = _TAG.findall(text)
    if len(found) > 1:
        raise MalformedReply("bad_tags", f"the choice {text!r} tags {len(found)} objects instead of one")
    if _LOOSE.search(_TAG.sub("", text)) or any(_LOOSE.search(name) for name in found):
        raise MalformedReply("bad_tags", f"the choice {text!r} has an object tag that is not closed or not opened")
    return found[0] if found else None


def check_tags(draft: Draft, toolbox: Sequence[str]) -> None:
    """Each choice names exactly one object of the toolbox, word for word, in tags, except a choice of inaction;
    no tag stands anywhere else (paper, section 3.3). Raises MalformedReply saying what is not so."""
    for field in ("scene", "preference", "question"):
        if _LOOSE.search(getattr(draft, field)):
            raise MalformedReply("bad_tags", f"the {field} has an object tag; only choices have them")
    for letter, text in zip(LETTERS, draft.choices.texts, strict=True):
        name = tagged_object(text)
        if name is None and not _INACTION.match(text):
            raise MalformedReply("bad_tags", f"choice {letter} names no object in <object> tags")
        if name is not None and name not in toolbox:
            raise MalformedReply("bad_tags", f"choice {letter} tags {name!r}; the objects are {', '.join(toolbox)}")
    if not any(tagged_object(text) for text in draft.choices.texts):
        raise MalformedReply("bad_tags", "no choice names an object in <object> tags")


def check_kept(before: Draft, after: Draft) -> None:
    """A revision keeps every tagged object as it stands. Raises MalformedReply where one is gone or new."""
    old, new = (sorted(filter(None, map(tagged_object, draft.choices.texts))) for draft in (before, after))
    if old != new:
        raise MalformedReply("bad_tags", f"the tagged objects must stay as they are: {', '.join(old)}")


def with_letters(draft: Draft, letters: Mapping[str, str]) -> Draft:
    """The draft with each tagged object as the box it lies in; `letters` by object name (paper, section 3.3)."""
    texts = (_TAG.sub(lambda tag: f"object in bounding box {letters[tag[1]]}", text) for text in draft.choices.texts)
    return draft.model_copy(update={"choices": Choices.of(tuple(texts))})
