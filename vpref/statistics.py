"""How far counts can be trusted: intervals, paired and unpaired comparisons, and a correction for many of them.

Thin over statsmodels, scipy and numpy, which are imported late: starting vpref does not pay for them. This module
refuses to know what was counted; an outcome is right or wrong, and belongs to a cluster.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

LEVEL = 0.95
"""The confidence of every interval unless another is asked for."""

RESAMPLES = 2_000


class Interval(NamedTuple):
    """A confidence interval of a share (0 to 1) or of a difference of two (-1 to 1)."""

    low: float
    high: float


@dataclass(frozen=True)
class Paired:
    """A against B on the items that both answered: how many each got right, and what that says."""

    both: int
    only_a: int
    only_b: int
    neither: int
    interval: Interval | None
    """Of the difference, clusters resampled; None where resampling cannot change it."""
    p: float
    """McNemar's exact test, two-sided; it takes items as independent."""

    @property
    def n(self) -> int:
        return self.both + self.only_a + self.only_b + self.neither

    @property
    def accuracy_a(self) -> Fraction:
        return Fraction(self.both + self.only_a, self.n)

    @property
    def accuracy_b(self) -> Fraction:
        return Fraction(self.both + self.only_b, self.n)

    @property
    def difference(self) -> Fraction:
        """The accuracy of A minus that of B."""
        return Fraction(self.only_a - self.only_b, self.n)


@dataclass(frozen=True)
class Unpaired:
    """A against B where only counts are known. Takes all items as independent."""

    accuracy_a: Fraction
    accuracy_b: Fraction
    interval: Interval
    """Of the difference: Newcombe's, from two Wilson intervals (Newcombe 1998, method 10)."""
    p: float
    """Fisher's exact test, two-sided."""

    @property
    def difference(self) -> Fraction:
        """The accuracy of A minus that of B."""
        return self.accuracy_a - self.accuracy_b


def wilson(correct: int, n: int, level: float = LEVEL) -> Interval | None:
    """Wilson's interval of a share. It takes items as independent; None without any.

    By its formula: importing statsmodels for it would cost every evaluation a second of CPU.
    """
    if not n:
        return None
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, spread = correct / n, z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * sqrt(share * (1 - share) / n + spread / (4 * n))
    return Interval(0.0 if correct == 0 else centre - half, 1.0 if correct == n else centre + half)


def clustered(
    outcomes: Iterable[tuple[str, bool]], level: float = LEVEL, resamples: int = RESAMPLES, seed: int = 0
) -> Interval | None:
    """The percentile bootstrap interval of the share of right outcomes, whole clusters resampled.

    `outcomes` are (cluster, right), in any order. None where resampling cannot change the share, as with one
    cluster or when all is right: an interval without width would claim certainty.
    """
    sums: defaultdict[str, list[int]] = defaultdict(list)
    for cluster, right in outcomes:
        sums[cluster].append(right)
    return _resampled(Counter((sum(ones), len(ones)) for ones in sums.values()), level, resamples, seed)


def paired(
    a: Mapping[str, bool],
    b: Mapping[str, bool],
    clusters: Mapping[str, str],
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Paired | None:
    """Compares two runs, each item id -> right, on the items that they share; None if they share none.

    `clusters` says to which cluster each shared item belongs. With A and B swapped all signs turn and nothing else.
    """
    from statsmodels.stats.contingency_tables import mcnemar  # type: ignore[import-untyped]

    shared = a.keys() & b.keys()
    if not shared:
        return None
    counts = Counter((bool(a[item]), bool(b[item])) for item in shared)
    only_a, only_b = counts[True, False], counts[False, True]
    both, neither = counts[True, True], counts[False, False]
    gains: defaultdict[str, list[int]] = defaultdict(list)
    for item in shared:
        gains[clusters[item]].append(bool(a[item]) - bool(b[item]))
    kinds = Counter((sum(ones), len(ones)) for ones in gains.values())
    p = float(mcnemar([[both, only_a], [only_b, neither]], exact=True).pvalue)
    return Paired(both, only_a, only_b, neither, _antisymmetric(kinds, level, resamples, seed), p)


def unpaired(correct_a: int, n_a: int, correct_b: int, n_b: int, level: float = LEVEL) -> Unpaired | None:
    """Compares two shares by their counts alone; None if either is of nothing."""
    from scipy.stats import fisher_exact  # type: ignore[import-untyped]
    from statsmodels.stats.proportion import confint_proportions_2indep  # type: ignore[import-untyped]

    if not (n_a and n_b):
        return None
    low, high = confint_proportions_2indep(correct_a, n_a, correct_b, n_b, method="newcomb", alpha=1 - level)
    p = float(fisher_exact([[correct_a, n_a - correct_a], [correct_b, n_b - correct_b]]).pvalue)
    return Unpaired(Fraction(correct_a, n_a), Fraction(correct_b, n_b), Interval(float(low), float(high)), min(p, 1.0))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values in their order, corrected for being many (Holm 1979)."""
    from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

    return [float(p) for p in multipletests(p_values, method="holm")[1]] if p_values else []


_Kinds = Counter[tuple[int, int]]
"""How many clusters have this sum over this many items. Clusters of one kind are interchangeable."""


def _antisymmetric(kinds: _Kinds, level: float, resamples: int, seed: int) -> Interval | None:
    """_resampled, but of negated sums exactly the negated interval: random draws fall alike for both, and sums that
    are their own negation get an interval that is too."""
    here: _Kinds = Counter({kind: clusters for kind, clusters in kinds.items() if clusters})
    negated: _Kinds = Counter({(-total, n): clusters for (total, n), clusters in here.items()})
    turned = sorted(here.items()) > sorted(negated.items())
    found = _resampled(negated if turned else here, level, resamples, seed)
    if found is None:
        return None
    if here == negated:
        half = (found.high - found.low) / 2
        return Interval(-half, half)
    return Interval(-found.high, -found.low) if turned else found


def _resampled(kinds: _Kinds, level: float, resamples: int, seed: int) -> Interval | None:
    """The percentile interval of the sum over all items by their number, clusters drawn with replacement.

    How often each kind is drawn is all that matters, so memory grows with the kinds alone, and the order in which
    clusters came does not matter.
    """
    import numpy as np

    if len({Fraction(total, n) for total, n in kinds}) < 2:
        return None
    totals, sizes = np.array(sorted(kinds)).T
    shares = np.array([kinds[kind] for kind in sorted(kinds)]) / kinds.total()
    # The legacy generator: its stream alone is promised to stay, so a report made again has the same digits.
    drawn = np.random.RandomState(seed).multinomial(kinds.total(), shares, size=resamples)
    ends = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile((drawn @ totals) / (drawn @ sizes), ends, method="inverted_cdf")
    return Interval(float(low), float(high))
