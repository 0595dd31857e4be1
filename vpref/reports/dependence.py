"""How much answers depend on the image and on the preference: accuracy with it minus without, on the same items.

The paper asks its generator for items that depend on the image; this measures whether they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from vpref.domain import Category, Response
from vpref.reports.accuracy import GROUP_NAMES, Evaluation
from vpref.reports.table import SIMULATED_NOTE, Table
from vpref.scoring import GROUPS, percent, score
from vpref.statistics import Paired, paired

_GROUPS = ("overall", "typical", "atypical", "low_dependence", "high_dependence")
_CATEGORIES = tuple(f"category_{category:d}" for category in Category)


def dependence_tables(evaluations: Sequence[Evaluation]) -> list[Table]:
    """By group, then by category: one row for each evaluation with something left out whose model was also
    evaluated in the same manner with nothing left out. No table where there is no such pair."""
    whole = {(one.title, one.manner): one for one in evaluations if not one.left_out}
    pairs = [(whole[key], one) for one in evaluations if one.left_out and (key := (one.title, one.manner)) in whole]
    if not pairs:
        return []
    by_category = _table("dependence_categories", ", by category", _CATEGORIES, pairs)
    return [_table("dependence", "", _GROUPS, pairs), by_category]


def _table(name: str, kind: str, groups: Sequence[str], pairs: Sequence[tuple[Evaluation, Evaluation]]) -> Table:
    measured = [(less, {name: _paired(full, less, name) for name in groups}) for full, less in pairs]
    notes = [
        "Accuracy with it minus without, in points, on the items that both answered; interval: bootstrap over images."
    ]
    notes += [SIMULATED_NOTE] if any(less.simulated for less, _ in measured) else []
    return Table(
        name=name,
        title=f"What answers depend on{kind}: points lost without it (95 % interval)",
        columns=("Model", "Asked", *(GROUP_NAMES[group] for group in groups)),
        heads=("Model", "Asked", *(GROUP_NAMES[group].replace(" ", "\n") for group in groups)),
        texts=frozenset({"Asked"}),
        rows=tuple((less.title, less.ablation, *map(_points, found.values())) for less, found in measured),
        notes=tuple(notes),
        records=tuple(
            {"model": less.title, "without": less.left_out, "manner": less.manner, "simulated": less.simulated}
            | {group: _figures(one) for group, one in found.items()}
            for less, found in measured
        ),
    )


def _paired(full: Evaluation, less: Evaluation, group: str) -> Paired | None:
    kept = [list(filter(GROUPS[group], one.responses)) for one in (full, less)]
    clusters = {response.item: response.slot.image for response in kept[0]}
    return paired(_right(kept[0]), _right(kept[1]), clusters)


def _right(responses: Iterable[Response]) -> Mapping[str, bool]:
    return {response.item: right for response in responses if (right := score(response)) is not None}


def _points(one: Paired | None) -> str:
    if one is None:
        return "–"
    if one.interval is None:
        return _signed(one.difference)
    return f"{_signed(one.difference)}\n{_signed(one.interval.low)} to {_signed(one.interval.high)}"


def _signed(share: Fraction | float) -> str:
    exact = Fraction(share)
    return ("-" if exact < 0 else "+" if exact > 0 else "") + percent(abs(exact))


def _figures(one: Paired | None) -> dict[str, Any]:
    if one is None:
        return {"n": 0}
    limits = (None, None) if one.interval is None else (one.interval.low, one.interval.high)
    return {
        "n": one.n,
        "with": float(one.accuracy_a),
        "without": float(one.accuracy_b),
        "difference": float(one.difference),
        "low": limits[0],
        "high": limits[1],
        "p": one.p,
    }
