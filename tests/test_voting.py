"""Rules about votes: majorities whatever the order, agreement against published figures, flags, firmness."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpref.domain import LETTERS, OTHER, Category, Form, Plan, PlannedItem, Variant, Vote, VoteChoice, make_plan
from vpref.settings import RehearsalSettings
from vpref.voting import (
    Rating,
    alpha,
    check_annotators,
    firmness,
    label_items,
    majority,
    plan_forms,
    settle,
    votes_wanting,
)
from vpref.voting.rehearsal import rehearse

relaxed = settings(deadline=None)  # the first example pays for importing numpy
CHOICE = st.sampled_from([*LETTERS, OTHER])
CHOICES = st.lists(CHOICE, max_size=9)


def a_plan(images: int = 21, checks: int = 0, places: int = 5) -> Plan:
    items = [
        PlannedItem(
            id=f"{image:02}-{category:d}",
            image=str(image),
            shown=str(image),
            variant=Variant.PLAIN,
            category=category,
        )
        for image in range(images)
        for category in Category
    ]
    return make_plan("T", places, plan_forms(items, per_form=12, forms=None, checks=checks), items)


def a_vote(item: str, choice: VoteChoice, annotator: str = "p", **more: object) -> Vote:
    fields = {"form": "f", "source": "web", "submission": annotator} | more
    return Vote.model_validate({"annotator": annotator, "item": item, "choice": choice} | fields)


# --- the majority ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choices", "letter", "reason", "more"),
    [
        ("aaabb", "a", None, 0),
        ("aabbc", None, "tie", 2),
        ("aabcd", None, "no_majority", 2),
        ("aabcx", None, "no_majority", 2),
        ("aabxx", None, "tie", 2),
        ("abxxx", None, "other", 4),
        ("aab", "a", None, 0),
        ("aa", None, "too_few", 1),
        ("", None, "too_few", 3),
        ("aabb", None, "tie", 1),
        ("xxxxx", None, "other", 6),
    ],
)
def test_a_label_is_more_than_half_of_all_votes(choices: str, letter: str | None, reason: str, more: int) -> None:
    votes: list[VoteChoice] = [OTHER if one == "x" else one for one in choices]  # type: ignore[misc]
    assert majority(votes, least=3) == (letter, reason)
    assert votes_wanting(votes, least=3) == more


@given(CHOICES, st.integers(1, 5))
def test_a_majority_by_its_definition(choices: list[VoteChoice], least: int) -> None:
    letter, reason = majority(choices, least)
    shares = {one: Fraction(choices.count(one), len(choices)) for one in set(choices)}
    over = [one for one, share in shares.items() if share > Fraction(1, 2) and one != OTHER]
    assert ([letter] if letter else []) == (over if len(choices) >= least else [])
    assert (letter is None) == (reason is not None)
    assert letter in (*LETTERS, None)


@given(CHOICES, st.integers(1, 5))
def test_as_many_more_votes_as_said_decide_and_no_fewer(choices: list[VoteChoice], least: int) -> None:
    more = votes_wanting(choices, least)
    assert any(majority([*choices, *[letter] * more], least)[0] for letter in LETTERS)
    for fewer in range(more):
        assert not any(majority([*choices, *[letter] * fewer], least)[0] for letter in LETTERS)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), CHOICE), max_size=40), st.randoms())
def test_votes_ignore_order(ones: list[tuple[int, int, VoteChoice]], order: random.Random) -> None:
    plan = a_plan(2)
    items = list(plan.by_id)
    votes = [
        a_vote(items[item], choice, str(person), submission=str(number), submitted=f"2026-03-07T10:{number:02}Z")
        for number, (item, person, choice) in enumerate(ones)
    ]
    before = settle(plan, votes)
    labels = label_items(plan, before.votes, {})
    order.shuffle(votes)
    after = settle(plan, votes)
    assert after.votes == before.votes
    assert label_items(plan, after.votes, {}) == labels


# --- which votes count ------------------------------------------------------------------------------------


def test_one_person_has_one_vote_on_an_image() -> None:
    plan = a_plan(2)
    first, same_image, other_image = "00-0", "00-1", "01-1"
    early, late = "2026-03-07T10:00:00Z", "2026-03-07T11:00:00Z"
    votes = [
        a_vote(first, "b", submission="2", submitted=late),
        a_vote(same_image, "c", submission="2", submitted=late),
        a_vote(other_image, "d", submission="2", submitted=late),
        a_vote(first, "a", submission="1", submitted=early),
        a_vote(first, "a", "q"),
    ]
    settled = settle(plan, votes)
    status = {(vote.annotator, vote.item, vote.choice): vote.status for vote in settled.votes}
    assert status == {
        ("p", first, "a"): "valid",
        ("p", first, "b"): "repeated",
        ("p", same_image, "c"): "repeated",
        ("p", other_image, "d"): "valid",
        ("q", first, "a"): "valid",
    }


def test_a_changed_answer_stands_for_the_earlier_one_and_a_file_given_twice_counts_once() -> None:
    plan = a_plan(1)
    votes = [a_vote("00-0", "a"), a_vote("00-0", "b")]
    assert [vote.choice for vote in settle(plan, votes).votes] == ["b"]
    twice = settle(plan, [votes[1], votes[1]])
    assert (len(twice.votes), twice.twice) == (1, 1)


def test_votes_on_what_was_not_planned_are_counted_by_id() -> None:
    settled = settle(a_plan(1), [a_vote("changed", "a"), a_vote("changed", "a", "q"), a_vote("00-0", "a")])
    assert settled.unplanned == {"changed": 2}
    assert len(settled.votes) == 1


def test_only_valid_votes_count() -> None:
    plan = a_plan(1)
    votes = [a_vote("00-0", "a", str(n)) for n in range(3)]
    votes += [a_vote("00-0", "b", f"r{n}", status="returned") for n in range(5)]
    label = label_items(plan, settle(plan, votes).votes, {"00-0": "b"})[0]
    assert (label.letter, label.counts, label.answer) == ("a", {"a": 3}, "b")


# --- agreement --------------------------------------------------------------------------------------------

PUBLISHED = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")


def published() -> list[Rating]:
    """Krippendorff 2011, section C: four observers, twelve units, a dot where a value is missing."""
    return [
        Rating(str(observer), str(unit), int(value))
        for observer, line in enumerate(PUBLISHED)
        for unit, value in enumerate(line)
        if value != "."
    ]


def test_alpha_as_published() -> None:
    nominal, ordinal = alpha(published(), "nominal"), alpha(published(), "ordinal")
    assert nominal is not None
    assert ordinal is not None
    assert nominal.value == pytest.approx(0.743, abs=5e-4)
    assert ordinal.value == pytest.approx(0.815, abs=5e-4)
    assert (nominal.items, nominal.annotators) == (11, 4)


@relaxed
@given(st.lists(st.lists(st.integers(0, 5), min_size=6, max_size=6), min_size=2, max_size=5))
def test_alpha_as_the_library_computes_it(table: list[list[int]]) -> None:
    """0 stands for a missing value; Castro 2017, krippendorff."""
    krippendorff = pytest.importorskip("krippendorff", reason="krippendorff is one of the dev extra's packages")
    ratings = [
        Rating(str(who), str(item), value) for who, row in enumerate(table) for item, value in enumerate(row) if value
    ]
    for metric in ("nominal", "ordinal"):
        ours = alpha(ratings, metric)
        known = [[value or float("nan") for value in row] for row in table]
        try:
            theirs = krippendorff.alpha(reliability_data=known, level_of_measurement=metric)
        except (ValueError, RuntimeWarning):  # nothing to compare
            theirs = float("nan")
        if ours is not None and theirs == theirs:
            assert ours.value == pytest.approx(theirs)


def test_alpha_of_nothing_and_of_all_alike() -> None:
    assert alpha([], "nominal") is None
    assert alpha([Rating("p", "1", "a"), Rating("p", "2", "b")], "nominal") is None
    assert alpha([Rating(who, item, "a") for who in "pq" for item in "12"], "nominal") is None
    perfect = alpha([Rating(who, item, item) for who in "pqr" for item in "1234"], "nominal")
    assert perfect is not None
    assert (perfect.value, perfect.low, perfect.high) == (1, 1, 1)


def simulated(forms: int, source: random.Random, true_spread: float = 0.25) -> list[Rating]:
    """Forms of 12 items, five annotators each, whose skill differs as that of people and items does."""
    ratings = []
    for form in range(forms):
        right = [source.choice("abcd") for _ in range(12)]
        ease = [source.gauss(0, true_spread) for _ in range(12)]
        for person in range(5):
            skill = 0.8 + source.gauss(0, 0.15)
            for item in range(12):
                hit = source.random() < min(max(skill + ease[item], 0.25), 1)
                value = right[item] if hit else source.choice("abcd")
                ratings.append(Rating(f"{form}/{person}", f"{form}/{item}", value))
    return ratings


def test_alpha_s_interval_holds_the_true_value_as_often_as_it_says() -> None:
    """The paper's shape of plain items, 200 surveys; the true value is that of very many forms."""
    source = random.Random(7)
    true = alpha(simulated(150, source), "nominal")
    assert true is not None
    held = 0
    for _ in range(200):
        one = alpha(simulated(7, source), "nominal")
        assert one is not None
        assert one.low is not None
        assert one.high is not None
        held += one.low <= true.value <= one.high
    assert 0.92 <= held / 200 <= 1


# --- annotators -------------------------------------------------------------------------------------------


def rehearsed(plan: Plan, **settings: object) -> list[Vote]:
    truth = {item: LETTERS[number % 4] for number, item in enumerate(plan.by_id)}
    return list(rehearse(plan, truth, RehearsalSettings(**settings)))  # type: ignore[arg-type]


def test_annotators_of_known_accuracy_are_told_from_those_who_guess() -> None:
    plan = a_plan(checks=1)
    good = rehearsed(plan, accuracy=[0.95] * 4)
    assert not [one for one in check_annotators(plan, good) if one.flags]
    mixed = rehearsed(plan, accuracy=[0.95] * 4, careless=0.2)
    careless = {vote.annotator for vote in mixed if vote.seconds is not None and vote.seconds < 2}
    flagged = {one.annotator: one.flags for one in check_annotators(plan, mixed) if one.flags}
    assert careless
    assert careless <= set(flagged)
    assert all("fast" in flagged[one] for one in careless)
    assert sum("disagrees" in flags for flags in flagged.values()) >= len(careless) / 2


def test_straight_lines_are_seen_in_the_order_shown() -> None:
    plan = a_plan()
    form = plan.forms[0]
    first = [a_vote(item, "c", form=form.name, order="cabd") for item in form.items]
    spread = [
        a_vote(item, "c", "q", form=form.name, order=["cabd", "acbd", "abcd", "abdc"][number % 4])
        for number, item in enumerate(form.items)
    ]
    found = {one.annotator: one for one in check_annotators(plan, first + spread)}
    assert found["p"].flags == ("straight_lines",)
    assert found["p"].same_place == 1
    assert not found["q"].flags


def test_failed_checks_are_counted_and_excluded_from_the_items() -> None:
    plan = a_plan(checks=2)
    form = plan.forms[0]
    votes = [a_vote(item, "a", form=form.name) for item in form.items]
    wrong = [next(letter for letter in LETTERS if letter != check.expected) for check in form.checks]
    votes += [a_vote(check.id, letter, form=form.name) for check, letter in zip(form.checks, wrong, strict=True)]
    (one,) = check_annotators(plan, votes)
    assert (one.votes, one.failed, one.checks) == (12, 2, 2)
    assert "failed_checks" in one.flags


def test_times_come_from_questions_or_from_start_and_end() -> None:
    plan = a_plan()
    times = {"started": "2026-03-07T10:00:00+00:00", "submitted": "2026-03-07T10:05:00+00:00"}
    (one,) = check_annotators(plan, [a_vote("00-0", "a", **times), a_vote("01-0", "a", **times)])
    assert one.seconds == 300
    (one,) = check_annotators(plan, [a_vote("00-0", "a", seconds=3.0, **times), a_vote("01-0", "a", seconds=4.0)])
    assert one.seconds == 7


# --- firmness ---------------------------------------------------------------------------------------------


def test_unanimous_labels_are_firm_and_close_ones_flip() -> None:
    form = Form(name="f", items=("00-0", "01-0"))
    items = [item for item in a_plan(2).items if item.id in form.items]
    plan = make_plan("T", 5, [form], items)
    votes = [a_vote("00-0", "a", str(n)) for n in range(5)]
    votes += [a_vote("01-0", "a" if n < 3 else "b", str(n)) for n in range(5)]
    firm = firmness(label_items(plan, votes, {}), votes, resamples=20_000)
    assert firm.flips["00-0"] == 0
    two_or_fewer = sum(Fraction(3, 5) ** k * Fraction(2, 5) ** (5 - k) * n for k, n in ((0, 1), (1, 5), (2, 10)))
    assert firm.flips["01-0"] == pytest.approx(float(two_or_fewer), abs=0.02)
    assert firm.another["01-0"] == pytest.approx(float(two_or_fewer), abs=0.02)
    assert firmness(label_items(plan, votes, {}), votes[::-1]) == firmness(label_items(plan, votes, {}), votes)


def test_rehearsed_surveys_find_their_truth_again() -> None:
    """84 items by annotators who are right nine times of ten: three of five are right on 99 of 100 items."""
    plan = a_plan()
    votes = rehearsed(plan, accuracy=[0.9] * 4)
    assert len(votes) == 420
    assert Counter(vote.form for vote in votes) == {form.name: 60 for form in plan.forms}
    labels = label_items(plan, votes, {})
    truth = {item: LETTERS[number % 4] for number, item in enumerate(plan.by_id)}
    found = [label for label in labels if label.letter is not None]
    assert len(found) >= 80
    assert all(label.letter == truth[label.item.id] for label in found)
    share = sum(vote.choice == truth[vote.item] for vote in votes) / len(votes)
    assert share == pytest.approx(0.9, abs=0.05)
