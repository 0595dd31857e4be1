"""What a revision changed, word by word."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from vpref.domain import LETTERS, Draft

Words = list[tuple[str, str]]
"""Pieces in order: ("=", kept), ("-", removed) or ("+", added)."""


def changes(before: Draft, after: Draft) -> dict[str, Words]:
    """The fields that differ: scene, preference, question, and choices by their letter."""
    old, new = _fields(before), _fields(after)
    return {name: words(old[name], new[name]) for name in old if old[name] != new[name]}


def words(before: str, after: str) -> Words:
    """Both texts in one: without what was added it is the first, without what was removed the second."""
    old, new = re.findall(r"\s+|\w+|[^\w\s]", before), re.findall(r"\s+|\w+|[^\w\s]", after)
    pieces: Words = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            pieces.append(("=", "".join(old[a:b])))
            continue
        pieces += [(sign, text) for sign, text in (("-", "".join(old[a:b])), ("+", "".join(new[c:d]))) if text]
    return pieces


def _fields(draft: Draft) -> dict[str, str]:
    texts = {"scene": draft.scene, "preference": draft.preference, "question": draft.question}
    return texts | dict(zip(LETTERS, draft.choices.texts, strict=True))
