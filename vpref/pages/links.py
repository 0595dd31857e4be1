"""From a number in a table to the items behind it: filters of the gallery, as its script takes them from an address.

A filter is a mapping of names to values: variant, category (numbers, joined by commas), fate, issue, at (the review
that found it), run, model, outcome, right, wrong; or the id of one item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from vpref.domain import Category, Variant, reported_dependence
from vpref.reports import Table

Filter = Mapping[str, str]

_OUTCOMES = {"Unmatched": "unmatched", "Refused": "refused", "Failed": "failed"}


def links(table: Table, models: Sequence[str], run: int | None = None) -> list[list[str | None]]:
    """For each cell of a table the address of its items within the page, None where there are none to show. `models`
    are the names of evaluations as tables show them; `run` is the number of the generating run that it is of."""
    known = {name: str(number) for number, name in enumerate(models)}
    return [
        [_address(_filter(table, row, place, known, run)) for place in range(len(table.columns))] for row in table.rows
    ]


def _address(found: Filter | None) -> str | None:
    if found is None:
        return None
    return f"#item={found['id']}" if "id" in found else "#items?" + urlencode(found)


def _filter(table: Table, row: Sequence[str], place: int, models: Mapping[str, str], run: int | None) -> Filter | None:
    column, cell = table.columns[place], row[place]
    if table.name == "changed":
        return {"id": row[0]} if column == "Question" else None
    if place == 0 or cell in ("–", "0", "–\n–"):
        return None
    kind, _, variant = table.name.rpartition("_")
    if kind in ("table1_accuracy", "table2_accuracy", "categories") and row[0] in models:
        return {"model": models[row[0]], "variant": variant} | _of_group(column, Variant(variant))
    if table.name.startswith("dependence"):
        return _of_dependence(row, column, models)
    if kind == "comparison":
        return _of_pair(row[0], column, variant, models)
    if table.name == "costs" and column in ("Accuracy", "Items") and row[0] in models:
        return {"model": models[row[0]]}
    if table.name == "extraction" and row[0] in models:
        told = {"model": models[row[0]]}
        return told if column == "n" else told | {"outcome": _OUTCOMES[column]} if column in _OUTCOMES else None
    return _of_generation(table, row, column, run)


def _of_group(column: str, variant: Variant) -> dict[str, str]:
    if column in _OUTCOMES:
        return {"outcome": _OUTCOMES[column]}
    kept = [
        category
        for category in Category
        if column.startswith(f"{category:d} ")
        or column.lower().startswith(f"{category.typicality} ")
        or column.lower().startswith(f"{reported_dependence(category, variant)} ")
    ]
    return {"category": ",".join(f"{one:d}" for one in kept)} if 0 < len(kept) < len(Category) else {}


def _of_pair(pair: str, column: str, variant: str, models: Mapping[str, str]) -> Filter | None:
    for a in models:
        b = pair.removeprefix(f"{a} vs. ")
        if b != pair and b in models:
            sides = {"Only A right": (a, b), "Only B right": (b, a)}
            if column in sides:
                right, wrong = sides[column]
                return {"variant": variant, "right": models[right], "wrong": models[wrong]}
            return {"variant": variant, "model": models[a]} if column == "Items shared" else None
    return None


def _of_dependence(row: Sequence[str], column: str, models: Mapping[str, str]) -> Filter | None:
    """To the items that were right and no longer are. Not by dependence, which is another's in each variant."""
    for end in ("", " (simulated)"):
        full, less = models.get(f"{row[0]}{end}"), models.get(f"{row[0]}, {row[1]}{end}")
        if full is not None and less is not None and column != "Asked" and not column.endswith(" dependence"):
            return {"right": full, "wrong": less} | _of_group(column, Variant.PLAIN)
    return None


def _of_generation(table: Table, row: Sequence[str], column: str, run: int | None) -> Filter | None:
    of_run = {} if run is None else {"run": str(run)}
    fate = {"Accepted": "accepted", "Unresolved": "unresolved", "Failed": "failed"}
    if table.name.startswith("generation") and column in ("Items", *fate):
        words = row[0].split()
        place = {"variant": words[0], "category": words[1]} if len(words) > 1 and words[1].isdigit() else {}
        return of_run | place | ({"fate": fate[column]} if column in fate else {})
    if table.name.startswith("issues") and row[0] != "reviews":
        depth = 0 if column == "First draft" else int(column.rpartition(" ")[2])
        return of_run | {"issue": row[0], "at": str(depth)}
    return None
