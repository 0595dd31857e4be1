"""Which column of a file of answers is which question: found by what was exported, and edits since told.

A form that was edited after the export no longer asks what the plan says; such columns are not read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from vpref.forms.grid import Grid
from vpref.forms.questions import Sheet, one_line

_MARK = re.compile(r"\[(?P<form>[\w-]+) (?P<version>[0-9a-f]{12})\]")
_CODE = re.compile(r"\[(P\d{2} \w+)\]")
_TIMES = ("timestamp", "zeitstempel", "horodateur", "marca temporal", "informazioni cronologiche", "tijdstempel")
_PEOPLE = ("prolific id", "prolific_pid", "participant id", "your participant id")


@dataclass
class Columns:
    """Places of columns in a grid. `questions` are by title as exported; one that could not be found is not in it."""

    sheet: Sheet
    person: int
    time: int | None
    questions: dict[str, int] = field(default_factory=dict)


def find_sheet(grid: Grid, sheets: Sequence[Sheet]) -> Sheet:
    """The form that a file answers, by its first question or else by most titles. Raises ConfigError where it is of
    another plan, or of none."""
    marks = [found for title in grid.header if (found := _MARK.search(title))]
    for mark in marks:
        if mark["version"] != sheets[0].version:
            grid.refuse(
                f"answers forms of another plan (version {mark['version']}, this survey's is {sheets[0].version}); "
                "give the survey that it was exported from"
            )
    named = [sheet for sheet in sheets if any(mark["form"] == sheet.form.name for mark in marks)]
    header = {one_line(title) for title in grid.header}
    best = max(named or sheets, key=lambda sheet: len(header & set(sheet.meanings)))
    if not named and not header & set(best.meanings):
        grid.refuse("asks nothing that this survey asks")
    return best


def find_columns(grid: Grid, sheet: Sheet) -> Columns:
    """Every column's meaning; what is missing, there twice, edited or not ours goes to the grid's problems."""
    titles = [one_line(title) for title in grid.header]
    lower = [title.lower() for title in titles]
    person = _first(titles, [sheet.person]) if sheet.person in titles else _first(lower, _PEOPLE)
    if person is None:
        grid.refuse(f"has no column of participants' ids (exported as “{sheet.person}”); name one “Participant ID”")
    columns = Columns(sheet, person, _time(grid, lower))
    if columns.time is None:
        grid.report(None, None, "has no column of times; which of two submissions came first is taken from the rows")
    used = {person, columns.time}
    for title in sheet.meanings:
        places = [place for place, one in enumerate(titles) if one == title]
        used |= set(places)
        if not places:
            grid.report(None, title, "is missing")
        elif _differ(grid, places):
            grid.report(None, title, f"is there {len(places)} times with different answers: not read")
        else:
            columns.questions[title] = places[0]
    _others(grid, sheet, titles, used)
    return columns


def _others(grid: Grid, sheet: Sheet, titles: Sequence[str], used: set[int | None]) -> None:
    codes = {asked.code for asked in sheet.asked}
    for place, title in enumerate(titles):
        if place in used:
            continue
        found = _CODE.search(title)
        if found and found[1] in codes:
            grid.report(
                None, title, "was edited after the export: not read; if only the words differ, restore its title"
            )
        else:
            grid.report(None, title or f"number {place + 1}", "is no question of the form: not read")


def _time(grid: Grid, lower: Sequence[str]) -> int | None:
    named = _first(lower, _TIMES)
    if named is not None or not grid.rows:
        return named
    first = [row[0] for row in grid.rows if row[0].strip()]
    return 0 if first and all(re.match(r"\d{1,4}[/.-]\d{1,2}[/.-]\d", text.strip()) for text in first) else None


def _first(titles: Sequence[str], wanted: Sequence[str]) -> int | None:
    return next((titles.index(one) for one in wanted if one in titles), None)


def _differ(grid: Grid, places: Sequence[int]) -> bool:
    return any(len({row[place] for place in places}) > 1 for row in grid.rows)
