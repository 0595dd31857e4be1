"""Which other items an item borrows from, where an ablation shows it something of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from vpref.domain import Item
from vpref.errors import ConfigError


def lenders(items: Sequence[Item], wanted: int) -> list[tuple[Item, ...]]:
    """For each item the `wanted` next ones of other images and of its own variant, from the start again at the end.
    Raises ConfigError where there are too few for any, before the first is asked about."""
    lent: list[tuple[Item, ...]] = []
    for number, item in enumerate(items):
        found: list[Item] = []
        for other in chain(items[number + 1 :], items[:number]):
            if other.slot.image != item.slot.image and other.variant is item.variant:
                found.append(other)
            if len(found) == wanted:
                break
        else:
            raise ConfigError(
                f"Item {item.id} has {len(found)} {item.variant} items of other images to borrow from, and this "
                f"ablation needs {wanted}; take a larger dataset, or a smaller ablation.distance."
            )
        lent.append(tuple(found))
    return lent
