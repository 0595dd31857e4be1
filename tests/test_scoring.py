"""Counting, groups and exact rounding."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpref.domain import Category, Response, Slot, Variant, Verdict
from vpref.scoring import GROUPS, Tally, by_group, percent, score, tally


def response(
    verdict: Verdict = "matched",
    *,
    right: bool = True,
    category: Category = Category.TYPICAL_LOW,
    variant: Variant = Variant.PLAIN,
) -> Response:
    slot = Slot(image="00", variant=variant, category=category)
    letter = ("b" if right else "c") if verdict == "matched" else None
    return Response(item="0" * 16, slot=slot, expected="b", verdict=verdict, letter=letter)


RESPONSES = st.lists(
    st.builds(
        response,
        st.sampled_from(["matched", "unmatched", "refused", "failed"]),
        right=st.booleans(),
        category=st.sampled_from(Category),
        variant=st.sampled_from(Variant),
    )
)


def test_refused_and_unmatched_are_wrong_and_a_failure_is_no_answer() -> None:
    counted = tally(
        [
            response(),
            response(),
            response(right=False),
            response("unmatched"),
            response("refused"),
            response("failed"),
            response("failed"),
            response("failed"),
        ]
    )
    assert counted == Tally(n=8, responded=5, correct=2, unmatched=1, refused=1, failed=3)
    assert counted.accuracy == Fraction(2, 5)
    assert counted.coverage == Fraction(5, 8)


def test_a_letter_beside_a_failure_is_not_scored() -> None:
    odd = response().model_copy(update={"verdict": "failed"})
    assert tally([odd]) == Tally(n=1, failed=1)
    assert score(odd) is None


def test_an_answer_is_right_or_wrong_and_a_failure_is_neither() -> None:
    answers = [response(), response(right=False), response("unmatched"), response("refused"), response("failed")]
    assert [score(one) for one in answers] == [True, False, False, False, None]


def test_nothing_has_no_accuracy() -> None:
    assert (tally([]).accuracy, tally([]).coverage) == (None, None)
    assert tally([response("failed")]).accuracy is None
    assert tally([response("failed")]).coverage == 0


def test_the_groups_and_their_order() -> None:
    categories = ["category_0", "category_1", "category_2", "category_3"]
    assert list(GROUPS) == ["overall", "typical", "atypical", "low_dependence", "high_dependence", *categories]


def test_every_boxes_item_counts_as_high_dependence() -> None:
    groups = by_group([response(variant=Variant.BOXES), response(), response(category=Category.ATYPICAL_HIGH)])
    assert {name: len(group) for name, group in groups.items()} == {
        "overall": 3,
        "typical": 2,
        "atypical": 1,
        "low_dependence": 1,
        "high_dependence": 2,
        "category_0": 2,
        "category_1": 0,
        "category_2": 0,
        "category_3": 1,
    }


@given(RESPONSES)
def test_each_way_of_grouping_adds_up_to_the_whole(responses: list[Response]) -> None:
    groups = {name: tally(group) for name, group in by_group(iter(responses)).items()}
    for parts in (list(GROUPS)[1:3], list(GROUPS)[3:5], list(GROUPS)[5:]):
        for field in Tally.__dataclass_fields__:
            assert sum(getattr(groups[part], field) for part in parts) == getattr(groups["overall"], field)


@given(RESPONSES, st.integers(0, 3))
def test_failures_never_change_accuracy(responses: list[Response], outages: int) -> None:
    assert tally(responses + [response("failed")] * outages).accuracy == tally(responses).accuracy


@pytest.mark.parametrize(
    ("share", "digits", "shown"),
    [
        (Fraction(11, 16), 1, "68.8"),
        (Fraction(9, 16), 1, "56.3"),
        (Fraction(34, 37), 1, "91.9"),
        (Fraction(1), 1, "100.0"),
        (Fraction(0), 1, "0.0"),
        (Fraction(1, 4), 1, "25.0"),
        (Fraction(9999, 10000), 1, "100.0"),
        (Fraction(1, 2000), 1, "0.1"),
        (Fraction(1, 8), 0, "13"),
        (Fraction(1, 3), 3, "33.333"),
        (Fraction(-1, 8), 1, "-12.5"),
        (None, 1, "–"),
    ],
)
def test_percentages_round_half_up(share: Fraction | None, digits: int, shown: str) -> None:
    assert percent(share, digits) == shown


@given(st.integers(0, 5000), st.integers(1, 5000))
def test_percent_agrees_with_decimal(part: int, whole: int) -> None:
    exact = Decimal(100 * part) / Decimal(whole)
    assert percent(Fraction(part, whole)) == str(exact.quantize(Decimal("0.1"), ROUND_HALF_UP))
