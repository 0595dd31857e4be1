"""Two hundred people at once, and a server that is killed while they answer: places stay exact, no answer is lost."""

from __future__ import annotations

import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.serving import PLENTY_S, plan_of, planned, reply_to, served, votes_of
from vpref.survey.walking import Ending, Walker

FORMS, PLACES, PEOPLE = 7, 5, 200


def patient(address: str, participant: str) -> Ending:
    """A person who comes in again whenever the server is away."""
    until = time.monotonic() + PLENTY_S
    while True:
        try:
            return Walker(address).walk(participant, reply_to)
        except OSError:
            assert time.monotonic() < until, "the server does not come back"
            time.sleep(0.1)


def crowd(visit: Callable[[int], Ending]) -> Counter[str]:
    """How it ended for all of them, each in a thread of its own, starting together."""
    gate = threading.Barrier(PEOPLE)

    def one(number: int) -> Ending:
        gate.wait(PLENTY_S)
        return visit(number)

    with ThreadPoolExecutor(PEOPLE) as threads:
        return Counter(threads.map(one, range(PEOPLE)))


def exactly_full(survey: Path) -> None:
    """Every place of every form has one person's whole form, and nobody else's."""
    plan, votes = plan_of(survey), votes_of(survey)
    assert len(plan.forms) == FORMS
    asked = [(form.name, question) for form in plan.forms for _ in range(PLACES) for question in form.questions]
    assert [(vote["form"], vote["item"]) for vote in votes] == asked
    assert Counter(vote["status"] for vote in votes) == {"valid": len(asked)}
    people = Counter((vote["form"], vote["annotator"]) for vote in votes)
    assert len({annotator for _, annotator in people}) == len(people) == FORMS * PLACES
    for vote in votes:
        assert vote["choice"] == reply_to(vote["item"])["choice"]


def many(folder: Path) -> Path:
    return planned(folder, f"forms={FORMS}", f"places={PLACES}", plain=7)


@pytest.mark.slow
def test_of_two_hundred_at_once_each_form_gets_five_and_the_others_are_told(tmp_path: Path) -> None:
    survey = many(tmp_path)
    with served(survey) as running:
        ended = crowd(lambda number: patient(running.address, f"person-{number}"))
        code, _, errors = running.stop()
    assert ended == {"finished": FORMS * PLACES, "full": PEOPLE - FORMS * PLACES}
    assert (code, errors) == (0, "")
    exactly_full(survey)


@pytest.mark.slow
def test_a_server_killed_midway_loses_no_answer_and_gives_no_place_twice(tmp_path: Path) -> None:
    survey = many(tmp_path)
    with served(survey) as first:
        address, port = first.address, urlsplit(first.address).port
        with ThreadPoolExecutor(1) as meanwhile:
            visiting = meanwhile.submit(crowd, lambda number: patient(address, f"person-{number}"))
            while not (answered := len(_answers(survey))) >= PLACES:
                assert not visiting.done()
                time.sleep(0.01)
            first.process.send_signal(signal.SIGKILL)
            first.process.wait(PLENTY_S)
            kept = _answers(survey)
            assert answered <= len(kept) < FORMS * PLACES * 4, "killed while people were answering"
            with served(survey, f"port={port}") as second:
                ended = visiting.result(PLENTY_S)
                assert kept <= _answers(survey), "what was kept before is still there"
                second.stop()
    assert ended == {"finished": FORMS * PLACES, "full": PEOPLE - FORMS * PLACES}
    exactly_full(survey)


def _answers(survey: Path) -> set[tuple[str, str, float]]:
    with closing(sqlite3.connect(survey / "answers.sqlite", timeout=PLENTY_S)) as db:
        return set(db.execute("SELECT annotator, question, submitted FROM answer").fetchall())
