"""How far annotators agree beyond chance: Krippendorff's alpha, with an interval.

The interval is a jackknife over annotators and over items. In simulation it holds the true value about as often as
it says; a bootstrap over annotators does so much too seldom, since a resample that draws an annotator twice lets
them agree with themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts: TypeAlias = "NDArray[np.float64]"

Metric: TypeAlias = Literal["nominal", "ordinal"]

_NOTHING = 1e-9  # what is left of sums of floats that cancel


@dataclass(frozen=True)
class Rating:
    """One value that one annotator gave one item. Values are comparable where the metric is ordinal."""

    annotator: str
    item: str
    value: Hashable


@dataclass(frozen=True)
class Alpha:
    """Krippendorff's alpha: 1 all agree, 0 as chance would have it. Without an interval where leaving any one
    annotator or item out leaves nothing to compare."""

    value: float
    low: float | None
    high: float | None
    items: int
    annotators: int


def alpha(ratings: Iterable[Rating], metric: Metric, level: float = 0.95) -> Alpha | None:
    """Alpha over the items that at least two annotators rated. None where there are none, or where all values are
    the same, so that chance would agree as well. An annotator counts once an item.

    Krippendorff 2011, Computing Krippendorff's Alpha-Reliability.
    """
    table: defaultdict[str, dict[str, Hashable]] = defaultdict(dict)
    for rating in ratings:
        table[rating.item][rating.annotator] = rating.value
    rated = {item: given for item, given in sorted(table.items()) if len(given) > 1}
    counts, marks = _counted(rated)
    pairs = _pairs(counts)
    whole = pairs.sum(axis=0)
    found = _alpha(whole, metric)
    if found is None:
        return None
    items = [_alpha(whole - one, metric) for one in pairs]
    annotators = [_alpha(_without(whole, counts, pairs, places), metric) for places in marks.values()]
    spread = _spread(items), _spread(annotators)
    if spread[0] is None or spread[1] is None:
        return Alpha(found, None, None, len(rated), len(marks))
    half = NormalDist().inv_cdf((1 + level) / 2) * sqrt(spread[0] + spread[1])
    return Alpha(found, max(found - half, -1.0), min(found + half, 1.0), len(rated), len(marks))


def _rank(value: Hashable) -> tuple[str, float, str]:
    """Numbers by size, texts by letters."""
    return ("", float(value), "") if isinstance(value, int | float) else ("text", 0.0, str(value))


def _counted(rated: Mapping[str, Mapping[str, Hashable]]) -> tuple[Counts, dict[str, list[tuple[int, int]]]]:
    """How often each item (row) got each value (column), and the places that each annotator adds one to."""
    import numpy as np

    values = sorted({value for given in rated.values() for value in given.values()}, key=_rank)
    column = {value: number for number, value in enumerate(values)}
    counts = np.zeros((len(rated), len(values)))
    marks: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for row, given in enumerate(rated.values()):
        for annotator, value in given.items():
            counts[row, column[value]] += 1
            marks[annotator].append((row, column[value]))
    return counts, dict(sorted(marks.items()))


def _pairs(counts: Counts) -> Counts:
    """For each item how often each value met each other one in a pair of annotators, an annotator's pairs weighing
    one together: items x values x values. Summed over items these are Krippendorff's coincidences."""
    import numpy as np

    raters = counts.sum(axis=1)
    weights = np.where(raters > 1, 1 / np.maximum(raters - 1, 1), 0)
    both = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(counts.shape[1])
    return np.asarray(both * weights[:, None, None])


def _alpha(coincidences: Counts, metric: Metric) -> float | None:
    totals = coincidences.sum(axis=1)
    distances = _distances(totals, metric)
    expected = float(totals @ distances @ totals)
    if expected <= _NOTHING:
        return None
    observed = float((coincidences * distances).sum())
    return 1 - float(totals.sum() - 1) * observed / expected


def _distances(totals: Counts, metric: Metric) -> Counts:
    """Squared distances of the values: 0 or 1, or by how many ratings lie between two of them."""
    import numpy as np

    if metric == "nominal":
        return 1 - np.eye(len(totals))
    middles = np.cumsum(totals) - totals / 2
    return np.asarray((middles[:, None] - middles[None, :]) ** 2)


def _without(whole: Counts, counts: Counts, pairs: Counts, places: Sequence[tuple[int, int]]) -> Counts:
    """The coincidences without one annotator, whose values are at these places of the counts."""
    rows = [row for row, _ in places]
    kept = counts[rows]
    for number, (_, column) in enumerate(places):
        kept[number, column] -= 1
    left: Counts = whole - pairs[rows].sum(axis=0) + _pairs(kept).sum(axis=0)
    return left


def _spread(left: Sequence[float | None]) -> float | None:
    """The jackknife's variance of a figure from its values with one part left out each; None where one has none."""
    known = [one for one in left if one is not None]
    if len(known) < 2 or len(known) < len(left):
        return None
    mean = sum(known) / len(known)
    return (len(known) - 1) / len(known) * sum((one - mean) ** 2 for one in known)
