"""How much answers depend on the image and on the preference: accuracy with it minus without, on the same items.

The paper asks its generator for items that depend on the image; this measures whether they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from vpref.domain import Response
from vpref.reports.accuracy import GROUP_NAMES, Evaluation
from vpref.reports.table import SIMULATED_NOTE, Table
from vpref.scoring import GROUPS, percent, score
from vpref.statistics import Paired, paired

_GROUPS = ("overall", "typical", "atypical", "low_dependence", "high_dependence")


def dependence_table(evaluations: Sequence[Evaluation]) -> Table | None:
    """One row for each evaluation with something left out whose model was also evaluated with nothing left out.
    None where there is no such pair."""
    whole = {evaluation.title: evaluation for evaluation in evaluations if not evaluation.ablation}
    pairs = [(whole[one.title], one) for one in evaluations if one.ablation and one.title in whole]
    if not pairs:
        return None
    measured = [(less, {name: _paired(full, less, name) for name in _GROUPS}) for full, less in pairs]
    notes = [
        "Accuracy with it minus without, in points, on the items that both answered; interval: bootstrap over images."
    ]
    notes += [SIMULATED_NOTE] if any(less.simulated for less, _ in measured) else []
    return Table(
        name="dependence",
        title="What answers depend on: points lost without it (95 % interval)",
        columns=("Model", "Without", *(GROUP_NAMES[name] for name in _GROUPS)),
        heads=("Model", "Without", *(GROUP_NAMES[name].replace(" ", "\n") for name in _GROUPS)),
        texts=frozenset({"Without"}),
        rows=tuple(
            (less.title, less.ablation, *(_points(groups[name]) for name in _GROUPS)) for less, groups in measured
        ),
        notes=tuple(notes),
        records=tuple(
            {"model": less.title, "without": less.ablation, "simulated": less.simulated}
            | {name: _figures(groups[name]) for name in _GROUPS}
            for less, groups in measured
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
