"""How a mirrored run is named, and what dashboards are handed of its records."""

from __future__ import annotations

from vpref.domain import Category, Letter, Response, Slot, Verdict
from vpref.reports import Evaluation
from vpref.reports.dashboards import FOUND, confusion_sheet, group_figures, group_sheet
from vpref.runs.sweeps import own_overrides


def test_jobs_are_told_by_what_sets_them_apart() -> None:
    given = ["data.root=photos", "pipeline.max_revisions=2", "model@evaluated=gpt-4.1"]
    assert own_overrides([given, [*given[:2], "model@evaluated=o4-mini"], given[:2]]) == [
        *given[2:],
        "model@evaluated=o4-mini",
        "",
    ]
    assert own_overrides([given]) == [", ".join(given)]
    assert own_overrides([]) == []


def response(image: str, category: int, expected: Letter, letter: Letter | None, verdict: Verdict) -> Response:
    slot = Slot(image=image, category=Category(category))
    return Response(item=slot.key, slot=slot, expected=expected, letter=letter, verdict=verdict)


RESPONSES = [
    response("one", 0, "a", "a", "matched"),
    response("one", 2, "a", "c", "matched"),
    response("two", 0, "b", None, "unmatched"),
    response("two", 2, "b", None, "failed"),
    response("three", 1, "d", "d", "matched"),
]


def test_confusion_counts_every_response_once() -> None:
    sheet = confusion_sheet(RESPONSES)
    counts = {(expected, found): count for expected, found, count in sheet.rows if count}
    assert counts == {("a", "a"): 1, ("a", "c"): 1, ("b", "unmatched"): 1, ("b", "failed"): 1, ("d", "d"): 1}
    assert len(sheet.rows) == 4 * len(FOUND), "a matrix has all its cells"


def test_group_figures_are_those_of_the_sheet() -> None:
    evaluation = Evaluation(title="model", simulated=False, responses=RESPONSES)
    rows = {row[:2]: row[2:] for row in group_sheet(evaluation).rows}
    figures = group_figures(evaluation)
    assert figures["accuracy/plain/overall"] == 50.0, "the failed one is not scored"
    assert (figures["n/plain/overall"], figures["failed/plain/overall"], figures["unmatched/plain/overall"]) == (
        5,
        1,
        1,
    )
    assert figures["accuracy/plain/typical"] == 66.7
    assert figures["accuracy_low/plain/overall"] < 50 < figures["accuracy_high/plain/overall"]
    assert not any("/boxes/" in name or name.endswith("category_3") for name in figures), "no figure without an item"
    assert rows["plain", "atypical"][0] == figures["accuracy/plain/atypical"] == 0
