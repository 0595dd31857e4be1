"""The mapper's part: names for the boxes of one image. Knows no prompt and sees no image."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Mapping
from typing import Any

from vpref.replies import MOST_WORDS
from vpref.simulator.dice import dice

UNNAMED_SHARE = 0.06
SPECIFIC_SHARE = 0.15
MARKS = ("leftmost", "rightmost", "nearest", "farthest", "smaller", "larger", "upper", "lower", "central")


def naming(classes: Mapping[str, str], digest: str) -> dict[str, Any]:
    """The mapper's reply about boxes of these classes, by letter: most keep their class, no two share a name."""
    names: dict[str, str] = {}
    for letter, given in classes.items():
        names[letter] = _name(given, {name.casefold() for name in names.values()}, dice(digest, letter, "name"))
    kept = sum(bool(name) and name == classes[letter] for letter, name in names.items())
    out = sum(not name for name in names.values())
    told = f"Names kept: {kept}. Names made to mean one object: {len(names) - kept - out}. Boxes without a name: {out}."
    return {"analysis": told, "names": names}


def _name(given: str, taken: Collection[str], rng: random.Random) -> str:
    roll, words = rng.random(), given.split()
    if roll < UNNAMED_SHARE or not words:
        return ""
    names = [" ".join((mark, *words[1 - MOST_WORDS :])) for mark in rng.sample(MARKS, len(MARKS))]
    if roll >= UNNAMED_SHARE + SPECIFIC_SHARE:
        names.insert(0, " ".join(words[-MOST_WORDS:]))
    return next((name for name in names if name.casefold() not in taken), "")


def broken(value: Mapping[str, Any]) -> list[str]:
    """A mapper's reply as JSON in which names are too long or, where there are several, alike."""
    names = value["names"]
    wrong = ("one of the things that can be seen", *(("thing",) if len(names) > 1 else ()))
    return [json.dumps({**value, "names": dict.fromkeys(names, name)}) for name in wrong]
