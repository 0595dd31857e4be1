"""Answers in a grid become votes. Whatever cannot be read as it stands is a problem, by row and column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Literal

from vpref.domain import Vote, VoteChoice, VoteSource, VoteStatus, annotator_key
from vpref.forms.columns import Columns, find_columns, find_sheet
from vpref.forms.grid import Grid, Problem
from vpref.forms.prolific import Submission, Submissions, person_id
from vpref.forms.questions import Asked, Kind, Sheet, one_line
from vpref.forms.times import DateOrder, date_order, parse_time


@dataclass(frozen=True)
class Reader:
    """How answers are read. `secret` hashes people; `zone` and `order` are for times that do not say; `submissions`
    are Prolific's, None where there are none to join."""

    sheets: Sequence[Sheet]
    secret: bytes
    zone: tzinfo | None = None
    order: DateOrder | None = None
    submissions: Submissions | None = None


@dataclass
class Answers:
    """Votes, the place that each submission was read from, and who answered, by hash."""

    votes: list[Vote] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    places: dict[str, tuple[str, int]] = field(default_factory=dict)
    people: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _File:
    """One file as it is read."""

    grid: Grid
    columns: Columns
    reader: Reader
    order: DateOrder | None

    @property
    def form(self) -> str:
        return self.columns.sheet.form.name


@dataclass(frozen=True)
class _Row:
    """One submission: the status that its votes get, who and when."""

    file: _File
    number: int
    cells: Sequence[str]
    annotator: str
    status: VoteStatus
    started: datetime | None
    submitted: datetime | None

    @property
    def submission(self) -> str:
        """The same for the same submission in a later export."""
        when = f"row {self.number:05}" if self.submitted is None else self.submitted.isoformat()
        return f"{self.file.form} {when} {self.annotator}"

    def report(self, column: str | None, what: str) -> None:
        self.file.grid.report(self.number, column, what)


def read_answers(grids: Iterable[tuple[Grid, VoteSource]], reader: Reader) -> Answers:
    """The votes in files of answers, each file to one form. Raises ConfigError where a file is not of this survey."""
    answers = Answers()
    for grid, source in grids:
        file = _file(grid, reader)
        for number, cells in zip(grid.numbers, grid.rows, strict=True):
            person = person_id(cells[file.columns.person])
            row = _row(file, number, cells, person)
            answers.votes += _votes(row, source)
            answers.places[row.submission] = (grid.name, number)
            answers.people |= {person} - {""}
        answers.problems += grid.problems
    return answers


def join_votes(votes: Iterable[Vote], reader: Reader, answers: Answers) -> Iterator[Vote]:
    """Votes of our own pages with what Prolific says of their submissions; people and problems go to `answers`.
    Rehearsed votes, and all without submissions to join, stay as they are."""
    known = reader.submissions.by_person if reader.submissions is not None else {}
    people = {annotator_key(reader.secret, person): person for person in known}
    told: set[str] = set()
    for vote in votes:
        if reader.submissions is None or vote.source == "rehearsal":
            yield vote
            continue
        person = people.get(vote.annotator, "")
        answers.people |= {person} - {""}
        at = datetime.fromisoformat(vote.submitted) if vote.submitted else None
        found = reader.submissions.of(person, at)
        status = found.status if isinstance(found, Submission) else "incomplete" if found else "unidentified"
        if not isinstance(found, Submission) and vote.submission not in told:
            told.add(vote.submission)
            what = "has no submission, or several that end differently, on Prolific: not counted"
            answers.problems.append(
                Problem(file="votes", row=None, column=None, what=f"annotator {vote.annotator} {what}")
            )
        yield vote.model_copy(update={"status": status}) if vote.status == "valid" else vote


def _file(grid: Grid, reader: Reader) -> _File:
    columns = find_columns(grid, find_sheet(grid, reader.sheets))
    times = [] if columns.time is None else [row[columns.time] for row in grid.rows]
    return _File(grid, columns, reader, reader.order or date_order(times))


def _row(file: _File, number: int, cells: Sequence[str], person: str) -> _Row:
    """Who sent a row, when, and whether it counts."""
    grid, reader = file.grid, file.reader
    submitted = _submitted(file, number, cells)
    if not person:
        grid.report(number, grid.header[file.columns.person], "is empty, so nobody knows whose this is: not counted")
        key = annotator_key(reader.secret, f"nobody {grid.name} {number}")
        return _Row(file, number, cells, key, "unidentified", None, submitted)
    status: VoteStatus = "valid"
    started = None
    if reader.submissions is not None:
        status, started = _joined(file, number, reader.submissions.of(person, submitted))
    return _Row(file, number, cells, annotator_key(reader.secret, person), status, started, submitted)


def _submitted(file: _File, number: int, cells: Sequence[str]) -> datetime | None:
    place = file.columns.time
    if place is None:
        return None
    time = parse_time(cells[place], file.reader.zone, file.order)
    if isinstance(time, datetime):
        return time
    file.grid.report(number, file.grid.header[place], f"{time}: taken as unknown")
    return None


def _joined(
    file: _File, number: int, found: Submission | Literal["ambiguous"] | None
) -> tuple[VoteStatus, datetime | None]:
    """What Prolific says of a row."""
    if found is None:
        file.grid.report(number, None, "its participant is in no export of Prolific's: not counted")
        return "unidentified", None
    if found == "ambiguous":
        what = (
            "its participant's submissions on Prolific end differently, and its time does not tell which: not counted"
        )
        file.grid.report(number, None, what)
        return "incomplete", None
    return found.status, found.started


def _votes(row: _Row, source: VoteSource) -> Iterator[Vote]:
    for asked in row.file.columns.sheet.asked:
        cells = {kind: _cell(row, title) for kind, title in asked.titles.items()}
        choice = _choice(row, asked, cells["choice"])
        if choice is None:
            continue
        yield Vote(
            annotator=row.annotator,
            form=row.file.form,
            item=asked.id,
            choice=choice,
            difficulty=_difficulty(row, asked, cells),
            justification=(cells.get("why") or "").strip(),
            source=source,
            submission=row.submission,
            status=row.status,
            started=_utc(row.started),
            submitted=_utc(row.submitted),
        )


def _cell(row: _Row, title: str) -> str | None:
    place = row.file.columns.questions.get(title)
    return None if place is None else row.cells[place]


def _choice(row: _Row, asked: Asked, text: str | None) -> VoteChoice | None:
    """The choice whose text the cell holds. The text is compared whole: a letter alone could be another's after an
    edit."""
    if text is None:
        return None  # its column is missing or not read, which was said once
    for choice, option in asked.options.items():
        if one_line(text) == option:
            return choice
    what = f"“{_short(text)}” is none of the choices as exported: no vote" if text.strip() else "no answer: no vote"
    row.report(asked.titles["choice"], what)
    return None


def _difficulty(row: _Row, asked: Asked, cells: Mapping[Kind, str | None]) -> int | None:
    text = cells.get("difficulty")
    if text is None:
        return None
    if text.strip() in ("1", "2", "3", "4", "5"):
        return int(text)
    what = f"“{_short(text)}” is no number from 1 to 5" if text.strip() else "no answer"
    row.report(asked.titles["difficulty"], f"{what}: the vote counts without it")
    return None


def _short(text: str) -> str:
    """A cell to be told of, without a participant's id that a shifted row brought there."""
    return re.sub(r"[0-9a-fA-F]{24}", "…", one_line(text))[:60]


def _utc(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()
