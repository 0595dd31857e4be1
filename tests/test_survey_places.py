"""Who holds which place over time, with a clock of our own and the real database."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.surveys import generic_items
from vpref.domain import Form, PlannedItem, make_plan
from vpref.errors import ConfigError
from vpref.survey.answers import Answer
from vpref.survey.questions import Questionnaire, choice_order
from vpref.survey.store import Store
from vpref.survey.votes import progress, votes

HOUR = 3600.0


class Clock:
    """Stands still until told."""

    now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def questionnaire(places: int, forms: int = 2) -> Questionnaire:
    items = generic_items(forms)[: 2 * forms]
    known = [
        PlannedItem(id=one.id, image=one.slot.image, shown=one.shown, variant=one.variant, category=one.category)
        for one in items
    ]
    made = [Form(name=f"f{n}", items=tuple(one.id for one in items[2 * n : 2 * n + 2])) for n in range(forms)]
    return Questionnaire(make_plan("t", places, made, known), {one.id: one for one in items})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def small() -> Questionnaire:
    """One form of two questions and one place."""
    return questionnaire(1, forms=1)


@pytest.fixture
def store(tmp_path: Path, small: Questionnaire, clock: Clock) -> Iterator[Store]:
    opened = Store(tmp_path / "db", small.plan, key="k", reopen_s=HOUR, clock=clock)
    yield opened
    opened.close()


def placed(store: Store, who: str) -> bool:
    store.arrive(who, who)
    return store.claim(who).held


def answer_all(store: Store, asked: Questionnaire, who: str) -> None:
    person = store.person(who)
    assert person is not None
    assert person.form is not None
    for question in asked.ids(person.form):
        store.view(who, question)
        assert store.answer(who, question, Answer("a", 1, "so"), "abcd")


def finish(store: Store, asked: Questionnaire, who: str) -> None:
    answer_all(store, asked, who)
    assert store.finish(who, asked.ids("f0"))


def standings(store: Store, asked: Questionnaire) -> dict[str, str]:
    return {vote.annotator: vote.status for vote in votes(asked, store)}


def test_a_dropouts_place_opens_after_a_time_and_their_late_answers_are_surplus(
    store: Store, small: Questionnaire, clock: Clock
) -> None:
    assert placed(store, "dropout")
    store.view("dropout", small.ids("f0")[0])
    clock.now += HOUR
    assert not placed(store, "early"), "not a moment before its time"
    clock.now += 1
    assert placed(store, "next")
    finish(store, small, "dropout")
    assert standings(store, small) == {"dropout": "surplus"}
    finish(store, small, "next")
    assert standings(store, small) == {"dropout": "surplus", "next": "valid"}
    (form,) = progress(small, store)
    assert (form.finished, form.active, form.open, form.surplus) == (1, 0, 0, 1)


def test_who_comes_back_gets_their_place_again_where_nobody_took_it(
    store: Store, small: Questionnaire, clock: Clock
) -> None:
    placed(store, "slow")
    clock.now += 2 * HOUR
    assert store.has_room()
    finish(store, small, "slow")
    assert not store.has_room()
    assert standings(store, small) == {"slow": "valid"}


def test_whoever_is_seen_keeps_their_place(store: Store, small: Questionnaire, clock: Clock) -> None:
    placed(store, "steady")
    for _ in range(10):
        clock.now += 0.9 * HOUR
        store.view("steady", small.ids("f0")[0])
        assert not store.has_room()


def test_surplus_fills_a_place_that_opens_later_before_anybody_new(
    store: Store, small: Questionnaire, clock: Clock
) -> None:
    placed(store, "late")
    clock.now += 2 * HOUR
    placed(store, "replacement")
    finish(store, small, "late")
    clock.now += 2 * HOUR
    assert not placed(store, "newcomer")
    assert standings(store, small) == {"late": "valid"}
    store.withdraw("late")
    assert placed(store, "newcomer")
    assert standings(store, small) == {"late": "returned"}


def test_a_finished_place_never_lapses_and_nothing_changes_it(store: Store, small: Questionnaire, clock: Clock) -> None:
    placed(store, "done")
    finish(store, small, "done")
    clock.now += 1000 * HOUR
    assert not placed(store, "other")
    before = store.answers("done")
    assert not store.answer("done", small.ids("f0")[0], Answer("b", 5, "no"), "abcd")
    assert store.answers("done") == before
    assert "no" in str(store.events("answered too late"))


def test_seconds_are_those_that_a_question_was_looked_at(store: Store, small: Questionnaire, clock: Clock) -> None:
    placed(store, "reader")
    first, second = small.ids("f0")
    store.view("reader", first)
    clock.now += 10
    store.view("reader", first)  # refreshed
    clock.now += 5
    store.answer("reader", first, Answer("a", 1, "so"), "abcd")
    clock.now += 100
    store.view("reader", second)
    clock.now += 7
    store.view("reader", first)  # back
    clock.now += 2
    store.answer("reader", first, Answer("b", 1, "so"), "abcd")
    store.view("reader", second)
    clock.now += 1
    store.arrive("reader", "reader")  # went away with the page open
    clock.now += 500
    store.view("reader", second)
    clock.now += 3
    store.answer("reader", second, Answer("c", 1, "so"), "abcd")
    answers = store.answers("reader")
    assert [answers[one].seconds for one in (first, second)] == [17, 10]


def test_each_newcomer_goes_to_the_emptiest_form(tmp_path: Path) -> None:
    asked = questionnaire(3, forms=3)
    store = Store(tmp_path / "db", asked.plan, key="k", reopen_s=HOUR)
    forms = []
    for number in range(10):
        store.arrive(f"p{number}", "s")
        forms.append(store.claim(f"p{number}").form)
        store.claim(f"p{number}")
    store.close()
    assert forms == ["f0", "f1", "f2"] * 3 + [None]


def test_a_database_of_another_plan_or_none_at_all_is_refused(tmp_path: Path, small: Questionnaire) -> None:
    Store(tmp_path / "db", small.plan, key="k", reopen_s=HOUR).close()
    more = small.plan.model_copy(update={"places": 9})
    Store(tmp_path / "db", more, key="k", reopen_s=HOUR).close()  # more places are no other plan
    with pytest.raises(ConfigError, match="put the old plan back"):
        Store(tmp_path / "db", questionnaire(1, forms=2).plan, key="k", reopen_s=HOUR)
    with pytest.raises(ConfigError, match="Put the old key back"):
        Store(tmp_path / "db", small.plan, key="another", reopen_s=HOUR)
    (tmp_path / "no").write_bytes(b"this is no database at all, but some text" * 100)
    with pytest.raises(ConfigError, match="cannot be used as the database"):
        Store(tmp_path / "no", small.plan, key="k", reopen_s=HOUR)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from(["claim", "finish", "withdraw", "wait"])), max_size=40
    )
)
def test_whatever_happens_no_form_has_more_people_than_places(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]]
) -> None:
    asked, clock = questionnaire(2, forms=1), Clock()
    path = tmp_path_factory.mktemp("any") / "db"
    store = Store(path, asked.plan, key="k", reopen_s=HOUR, clock=clock)
    try:
        for who, step in steps:
            clock.now += 2 * HOUR if step == "wait" else 60
            person = store.arrive(who, who)
            if step == "claim":
                store.claim(who)
            elif step == "withdraw":
                store.withdraw(who)
            elif step == "finish" and person.form and not person.withdrew and not person.finished:
                finish(store, asked, who)
            with closing(sqlite3.connect(path)) as db:
                assert db.execute("SELECT count(*) FROM person WHERE held").fetchone()[0] <= 2
        counts = Counter(standings(store, asked).values())
        assert counts["valid"] <= 2 * 1
    finally:
        store.close()


@settings(deadline=None)
@given(st.text(max_size=20), st.text(max_size=20))
def test_the_order_of_choices_is_one_of_all_and_always_the_same(annotator: str, question: str) -> None:
    order = choice_order(annotator, question)
    assert sorted(order) == list("abcd")
    assert order == choice_order(annotator, question)


def test_over_many_annotators_each_choice_is_as_often_at_each_place() -> None:
    people = [hashlib.sha256(str(number).encode()).hexdigest()[:16] for number in range(2400)]
    orders = Counter(choice_order(person, "question") for person in people)
    assert len(orders) == 24
    assert min(orders.values()) > 60
