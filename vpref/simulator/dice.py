"""Chance that is no chance: every draw is a function of what it is drawn for. Knows no source of entropy."""

from __future__ import annotations

import random
from collections.abc import Mapping


def dice(*parts: object) -> random.Random:
    """A generator seeded by these parts alone: a digest, a purpose, whatever else the draw depends on."""
    return random.Random("\x1f".join(map(str, parts)))


def draw(shares: Mapping[str, float], roll: float) -> str | None:
    """The name whose share holds `roll` (0 to 1) when the shares are laid end to end; None beyond them."""
    for name, share in shares.items():
        if roll < share:
            return name
        roll -= share
    return None
