"""CSV files as spreadsheets and survey tools write them, whole and by row and column. Knows nothing of votes."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from vpref.domain import Record
from vpref.errors import ConfigError


class Problem(Record):
    """Something in a file that could not be read as it stands: where, and what. `row` counts as a spreadsheet
    does, the header being row 1; None for the whole file or column."""

    file: str
    row: int | None
    column: str | None
    what: str

    def __str__(self) -> str:
        where = [self.file, *([f"row {self.row}"] if self.row else [])]
        where += [f"column “{self.column}”"] if self.column else []
        return f"{', '.join(where)}: {self.what}"


@dataclass
class Grid:
    """A header and rows of the same length. Empty rows are left out, and short and long ones mended, as problems."""

    name: str
    header: list[str]
    rows: list[list[str]]
    numbers: list[int]
    problems: list[Problem] = field(default_factory=list)

    def column(self, name: str) -> int | None:
        """The place of a column, whatever the case of its name; None where it is not."""
        places = [place for place, title in enumerate(self.header) if title.strip().lower() == name.lower()]
        return places[0] if places else None

    def number(self, row: Sequence[str]) -> int:
        """The row's number in the file."""
        return next(number for number, one in zip(self.numbers, self.rows, strict=True) if one is row)

    def report(self, row: int | None, column: str | None, what: str) -> None:
        """Note a problem."""
        self.problems.append(Problem(file=self.name, row=row, column=column, what=what))

    def refuse(self, why: str) -> NoReturn:
        """Raise ConfigError for the file."""
        raise ConfigError(f"{self.name} {why}.")


def read_grid(name: str, data: bytes) -> Grid:
    """A CSV file with commas, semicolons or tabs, in UTF-8 or UTF-16, cells with line breaks and all.

    Raises ConfigError where it is no text or has no rows, or where a quote is never closed.
    """
    text = _decoded(name, data)
    separator = max(",;\t", key=lambda one: _first_line(text).count(one))
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error as error:
        raise ConfigError(f"{name} is no whole CSV file ({error}); export it once more.") from error
    if not lines or not any(cell.strip() for cell in lines[0]):
        raise ConfigError(f"{name} is empty or has no header; give the file as it was exported.")
    grid = Grid(name, [title.strip() for title in lines[0]], [], [])
    for number, row in enumerate(lines[1:], 2):
        _add(grid, number, row)
    return grid


def _add(grid: Grid, number: int, row: list[str]) -> None:
    if not any(cell.strip() for cell in row):
        grid.report(number, None, "is empty")
        return
    width = len(grid.header)
    if len(row) != width:
        grid.report(number, None, f"has {len(row)} cells where the header has {width}")
    grid.rows.append((row + [""] * width)[:width])
    grid.numbers.append(number)


def _decoded(name: str, data: bytes) -> str:
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name} is no text in UTF-8 (byte {error.start}); export it as CSV in UTF-8.") from error


def _first_line(text: str) -> str:
    """The header, its quoted cells' insides taken out, which may hold any separator."""
    outside = text.split('"')[::2]
    header = []
    for part in outside:
        line, newline, _ = part.partition("\n")
        header.append(line)
        if newline:
            break
    return "".join(header)
