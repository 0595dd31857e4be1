"""Intervals and comparisons against published figures, sums written out, and what must hold of any counts."""

from __future__ import annotations

import itertools
import math
import random
import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpref.statistics import Interval, Paired, clustered, holm, paired, unpaired, wilson

SMALL = 1e-9
Outcomes = list[tuple[str, bool]]
OUTCOMES = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.booleans()), max_size=60)
RUN = st.dictionaries(st.integers(0, 30).map(str), st.booleans())

relaxed = settings(deadline=None)  # the first example pays for importing statsmodels


def images(*runs: dict[str, bool], of: int = 4) -> dict[str, str]:
    """Items numbered from 0 on, some to an image."""
    return {item: f"image {int(item) // of}" for run in runs for item in run}


def numbered(text: str) -> dict[str, bool]:
    """`+-+` is three items, the second one wrong."""
    return {str(place): sign == "+" for place, sign in enumerate(text)}


def test_importing_reports_does_not_pay_for_statistics() -> None:
    code = "import sys, vpref.cli, vpref.reports; print({'numpy', 'scipy', 'statsmodels', 'pandas'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


# --- Wilson ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("correct", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_s_interval_as_published(correct: int, n: int, low: float, high: float) -> None:
    """Newcombe 1998, Two-sided confidence intervals for the single proportion, table I, method 3."""
    assert wilson(correct, n) == pytest.approx((low, high), abs=5e-5)


@relaxed
@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_s_interval_by_its_formula(counts: tuple[int, int]) -> None:
    correct, n = counts
    z, share = 1.959963984540054, correct / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    found = wilson(correct, n)
    assert found == pytest.approx((middle - half, middle + half), abs=1e-9)
    assert found is not None
    assert -SMALL <= found.low <= share + SMALL
    assert share - SMALL <= found.high <= 1 + SMALL


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(("correct", "n"), [(0, 1), (1, 1), (0, 36), (31, 36), (36, 36), (33, 76), (72, 76)])
def test_wilson_s_interval_by_another_library(correct: int, n: int, level: float) -> None:
    from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

    theirs = proportion_confint(correct, n, method="wilson", alpha=1 - level)
    assert wilson(correct, n, level) == pytest.approx(theirs, abs=1e-9)


def test_wilson_s_interval_of_nothing_everything_and_one_item() -> None:
    assert wilson(0, 0) is None
    assert wilson(36, 36) == pytest.approx((0.9036, 1), abs=5e-5)
    assert wilson(1, 1) == pytest.approx((0.2065, 1), abs=5e-5)
    assert wilson(0, 1) == pytest.approx((0, 0.7935), abs=5e-5)


def test_a_lower_level_is_a_narrower_interval() -> None:
    wide, narrow = wilson(30, 40), wilson(30, 40, level=0.8)
    assert wide is not None
    assert narrow is not None
    assert wide.low < narrow.low < narrow.high < wide.high


# --- images resampled ------------------------------------------------------------------------------------


def width(interval: Interval | None) -> float:
    assert interval is not None
    return interval.high - interval.low


def test_items_of_an_image_that_agree_are_worth_one() -> None:
    alike = [(str(image), image % 3 > 0) for image in range(60) for _ in range(4)]
    assert width(clustered(alike)) == pytest.approx(2 * width(wilson(160, 240)), rel=0.1)
    assert clustered(alike) == clustered(alike[::4])


def test_with_one_item_an_image_there_is_nothing_to_mend() -> None:
    alone = [(str(image), image % 3 > 0) for image in range(300)]
    assert clustered(alone) == pytest.approx(wilson(200, 300), abs=0.01)


def test_it_holds_the_truth_as_often_as_it_says_where_wilson_s_does_not() -> None:
    dice, held, wilson_s = random.Random(5), 0, 0
    for _ in range(300):
        data = [(str(image), right) for image in range(40) for right in [dice.random() < 0.6] * 4]
        both = clustered(data, resamples=400), wilson(sum(right for _, right in data), len(data))
        found, naive = (one is not None and one.low <= 0.6 <= one.high for one in both)
        held, wilson_s = held + found, wilson_s + naive
    assert 0.90 < held / 300 < 0.98
    assert wilson_s / 300 < 0.75


@pytest.mark.parametrize(
    "outcomes",
    [
        [],
        [("a", True)],
        [("a", True), ("a", False)],
        [("a", True), ("b", True), ("b", True)],
        [("a", False), ("b", False)],
        [("a", True), ("a", False), ("b", False), ("b", True)],
    ],
)
def test_no_interval_where_resampling_changes_nothing(outcomes: Outcomes) -> None:
    assert clustered(outcomes) is None


@relaxed
@given(OUTCOMES, st.randoms(use_true_random=False))
def test_a_clustered_interval_holds_the_estimate_in_any_order(outcomes: Outcomes, dice: random.Random) -> None:
    found = clustered(outcomes)
    shuffled = list(outcomes)
    dice.shuffle(shuffled)
    assert clustered(shuffled) == found
    assert clustered([(f"image {name}", right) for name, right in outcomes]) == found
    if found is not None:
        share = sum(right for _, right in outcomes) / len(outcomes)
        assert 0 <= found.low <= share + SMALL
        assert share - SMALL <= found.high <= 1


def test_the_seed_alone_moves_it() -> None:
    data = [(str(item % 17), item % 5 > 0) for item in range(200)]
    assert clustered(data) == clustered(data, seed=0) != clustered(data, seed=1)
    assert clustered(data) == pytest.approx(clustered(data, seed=1), abs=0.02)


# --- paired ----------------------------------------------------------------------------------------------


def test_a_paired_comparison_counted_by_hand() -> None:
    a, b = numbered("+++++--+++"), numbered("++--+-++--") | {"77": True}
    found = paired(a, b, images(a, b, of=2))
    assert found is not None
    assert (found.both, found.only_a, found.only_b, found.neither, found.n) == (4, 4, 1, 1, 10)
    assert (found.accuracy_a, found.accuracy_b, found.difference) == (Fraction(4, 5), Fraction(1, 2), Fraction(3, 10))
    assert found.p == pytest.approx(2 * (1 + 5) / 2**5)
    # Images of two items differ by 0, 2, 0, -1 and 2 of them; five are drawn, and ten items are below each sum.
    sums = sorted(sum(drawn) for drawn in itertools.product((0, 2, 0, -1, 2), repeat=5))
    ends = sums[len(sums) * 25 // 1000] / 10, sums[len(sums) * 975 // 1000] / 10
    assert found.interval == pytest.approx(ends, abs=0.1001)


@relaxed
@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 5))
def test_mcnemar_s_exact_test_is_a_binomial_sum(only_a: int, only_b: int, both: int) -> None:
    a, b = (numbered("+" * only_a + "-" * only_b + "+" * both), numbered("-" * only_a + "+" * only_b + "+" * both))
    found = paired(a, b, images(a))
    if found is None:
        assert only_a + only_b + both == 0
        return
    n, fewer = only_a + only_b, min(only_a, only_b)
    assert found.p == pytest.approx(min(1, 2 * sum(math.comb(n, k) for k in range(fewer + 1)) / 2**n))


def test_nothing_shared_cannot_be_paired() -> None:
    assert paired({}, {}, {}) is None
    assert paired({"1": True}, {"2": True}, {"1": "x", "2": "x"}) is None


def test_models_that_agree_on_all_items_show_no_difference_and_claim_no_certainty() -> None:
    run = numbered("++-+")
    assert paired(run, run, images(run, of=1)) == Paired(3, 0, 0, 1, None, 1.0)
    one = paired({"0": True}, {"0": False}, {"0": "x"})
    assert one == Paired(0, 1, 0, 0, None, 1.0)


def test_a_difference_in_one_image_alone_is_less_sure_than_one_spread_over_images() -> None:
    together, nothing = numbered("+" * 8 + "-" * 72), numbered("-" * 80)
    spread = {str(item): item % 10 == 0 for item in range(80)}
    one, many = (paired(run, nothing, images(run)) for run in (together, spread))
    assert one is not None
    assert many is not None
    assert one.p == many.p
    assert width(one.interval) > 1.2 * width(many.interval)


@relaxed
@given(RUN, RUN)
def test_swapping_turns_the_sign_and_nothing_else(a: dict[str, bool], b: dict[str, bool]) -> None:
    here, there = paired(a, b, images(a, b)), paired(b, a, images(a, b))
    if here is None or there is None:
        assert here is there is None
        return
    assert (here.n, here.p) == (there.n, there.p)
    assert (here.accuracy_a, here.accuracy_b) == (there.accuracy_b, there.accuracy_a)
    assert here.difference == -there.difference
    assert (here.interval is None) == (there.interval is None)
    if here.interval and there.interval:
        assert here.interval == (-there.interval.high, -there.interval.low), "exactly, not nearly"
        assert -1 <= here.interval.low <= here.difference + SMALL
        assert here.difference - SMALL <= here.interval.high <= 1


GAINS = st.lists(st.lists(st.integers(-1, 1), min_size=1, max_size=4), min_size=1, max_size=8)


def from_gains(images_: list[list[int]]) -> tuple[dict[str, bool], dict[str, bool], dict[str, str]]:
    """Two runs in which A is right and B wrong where a gain is 1, and the other way round where it is -1."""
    gains = [
        (f"{image}.{place}", str(image), gain) for image, ones in enumerate(images_) for place, gain in enumerate(ones)
    ]
    a, b = ({item: gain * sign > 0 for item, _, gain in gains} for sign in (1, -1))
    return a, b, {item: image for item, image, _ in gains}


@relaxed
@given(GAINS, st.randoms(use_true_random=False))
def test_where_each_side_wins_alike_the_interval_is_its_own_mirror_image(
    half: list[list[int]], dice: random.Random
) -> None:
    """A pair that is symmetric looks the same from both sides, so its interval must be -x to x to the last bit."""
    whole = [*half, *([-gain for gain in image] for image in half)]
    dice.shuffle(whole)
    a, b, clusters = from_gains(whole)
    here, there = paired(a, b, clusters), paired(b, a, clusters)
    assert here is not None
    assert here == there
    if here.interval is not None:
        assert here.interval.low == -here.interval.high < 0


def test_a_symmetric_pair_on_which_resampling_is_not_symmetric() -> None:
    """Found by trying: images of 1, 5 and 5 items, as often for A as for B."""
    kinds = [([1], 5), ([1, 1, 0, 0, 0], 3), ([1] * 5, 2)]
    half = [image for image, times in kinds for _ in range(times)]
    found = paired(*from_gains([*half, *([-gain for gain in image] for image in half)]))
    assert found is not None
    assert found.interval is not None
    assert found.interval.low == -found.interval.high


def test_a_difference_s_interval_holds_the_truth_where_one_that_forgets_images_does_not() -> None:
    """Images of four items that stand or fall together: A is right on 70 % of images, B on 50 %."""
    dice, held, naive_s, rounds = random.Random(3), 0, 0, 250
    for _ in range(rounds):
        shown = [(dice.random() < 0.7, dice.random() < 0.5) for _ in range(40)]
        a, b = ({f"{i}.{j}": one[side] for i, one in enumerate(shown) for j in range(4)} for side in (0, 1))
        by_image, alone = ({item: item.split(".")[0] if whole else item for item in a} for whole in (True, False))
        found, naive = (paired(a, b, clusters, resamples=400) for clusters in (by_image, alone))
        assert found is not None
        assert naive is not None
        held += found.interval is not None and found.interval.low <= 0.2 <= found.interval.high
        naive_s += naive.interval is not None and naive.interval.low <= 0.2 <= naive.interval.high
    assert 0.90 < held / rounds < 0.99
    assert naive_s / rounds < 0.75


def test_mcnemar_s_test_as_in_textbooks() -> None:
    """Agresti, Categorical Data Analysis, section 10.1: approval of the prime minister, 794 150 / 86 570."""
    a = {str(item): item < 944 for item in range(1600)}
    b = {str(item): item < 794 or 944 <= item < 1030 for item in range(1600)}
    found = paired(a, b, {item: item for item in a})
    assert found is not None
    assert (found.both, found.only_a, found.only_b, found.neither) == (794, 150, 86, 570)
    assert float(found.difference) == pytest.approx(0.04)
    assert found.interval == pytest.approx((0.0213, 0.0587), abs=0.003)  # Wald's there: 0.04 -+ 1.96 * 0.0095
    assert found.p == pytest.approx(3.7e-5, rel=0.05)


@relaxed
@given(RUN, RUN)
def test_the_order_of_items_does_not_matter(a: dict[str, bool], b: dict[str, bool]) -> None:
    turned = dict(reversed(a.items())), dict(reversed(b.items()))
    assert paired(*turned, images(b, a)) == paired(a, b, images(a, b))


# --- unpaired, and many ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [
        ((56, 70, 48, 80), 0.0524, 0.3339),
        ((9, 10, 3, 10), 0.1705, 0.8090),
        ((5, 56, 0, 29), -0.0381, 0.1926),
        ((10, 10, 0, 20), 0.6791, 1),
        ((10, 10, 0, 10), 0.6075, 1),
    ],
)
def test_newcombe_s_interval_as_published(counts: tuple[int, int, int, int], low: float, high: float) -> None:
    """Newcombe 1998, Interval estimation for the difference between independent proportions, table II, method 10."""
    found = unpaired(*counts)
    assert found is not None
    assert found.interval == pytest.approx((low, high), abs=5e-5)


def test_fisher_s_lady_tasting_tea() -> None:
    found = unpaired(3, 4, 1, 4)
    assert found is not None
    assert found.p == pytest.approx(34 / 70)
    assert found.difference == Fraction(1, 2)


def test_counts_of_nothing_cannot_be_compared() -> None:
    assert unpaired(0, 0, 3, 4) is unpaired(3, 4, 0, 0) is None


COUNT = st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@relaxed
@given(COUNT, COUNT)
def test_unpaired_intervals_hold_the_difference_and_swap(a: tuple[int, int], b: tuple[int, int]) -> None:
    here, there = unpaired(*a, *b), unpaired(*b, *a)
    assert here is not None
    assert there is not None
    assert -1 - SMALL <= here.interval.low <= here.difference + SMALL
    assert here.difference - SMALL <= here.interval.high <= 1 + SMALL
    assert there.interval == (-here.interval.high, -here.interval.low), "exactly, not nearly"
    assert there.p == pytest.approx(here.p)
    assert 0 < here.p <= 1


def test_holm_s_correction_written_out() -> None:
    assert holm([]) == []
    assert holm([0.04]) == pytest.approx([0.04])
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@settings(deadline=None, max_examples=10)  # each call of statsmodels' collects garbage
@given(st.lists(st.floats(0, 1), max_size=20))
def test_holm_only_ever_raises_and_keeps_the_order(p_values: list[float]) -> None:
    corrected = holm(p_values)
    assert all(p - SMALL <= higher <= 1 for p, higher in zip(p_values, corrected, strict=True))
    ranks = sorted(range(len(p_values)), key=lambda place: p_values[place])
    assert [corrected[place] for place in ranks] == sorted(corrected)
