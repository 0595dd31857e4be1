"""A table: text in a grid for people, beside records with every count behind it, so that each printed number can
be made again. Knows nothing of what it is about; files only where it is told to write them.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import rich.table
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.measure import Measurement

CHANCE_ROW = "Chance"
SIMULATED_NOTE = "Simulated models: figures say nothing about real ones."


@dataclass(frozen=True)
class Table:
    """A grid of text, names before numbers in each row, and the records that it was made of.

    `name` is the stem of its files. `records` go into CSV and JSON, nested mappings allowed; without any, the
    grid does. `heads` are shorter column names for the terminal, `texts` the columns besides the first that hold
    no numbers.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    records: tuple[Mapping[str, Any], ...] = ()
    heads: tuple[str, ...] = ()
    texts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Table:
        """A table back from its `data`."""
        return cls(
            name=data["name"],
            title=data["title"],
            columns=tuple(data["columns"]),
            rows=tuple(map(tuple, data["rows"])),
            notes=tuple(data["notes"]),
            records=tuple(data["records"]),
        )

    def renamed(self, name: str, title: str) -> Table:
        """The same under another name."""
        return replace(self, name=name, title=title)

    def is_text(self, place: int) -> bool:
        """Whether a column holds names rather than numbers."""
        return place == 0 or self.columns[place] in self.texts

    def markdown(self) -> str:
        """A heading, a pipe table with numbers to the right, and the notes."""
        ruler = ["---" if self.is_text(place) else "---:" for place in range(len(self.columns))]
        lines = [_pipes(cells) for cells in (self.columns, ruler, *self.rows)]
        notes = [f"\n{note}" for note in self.notes]
        return "\n".join([f"### {self.title}\n", *lines, *notes]) + "\n"

    def csv(self) -> str:
        """The records, one a line, nested names joined by `_`. Accuracy is in percent, None is empty."""
        flat = [_flat(record) for record in self._records()]
        names = dict.fromkeys(name for record in flat for name in record)
        text = io.StringIO()
        writer = csv.DictWriter(text, list(names), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)
        return text.getvalue()

    def data(self) -> dict[str, Any]:
        """All of it as what JSON can hold."""
        return {
            "name": self.name,
            "title": self.title,
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "notes": list(self.notes),
            "records": [dict(record) for record in self._records()],
        }

    def json(self) -> str:
        return json.dumps(self.data(), ensure_ascii=False, indent=2) + "\n"

    def rich(self) -> rich.table.Table:
        """The table for a terminal; what is no terminal gets it as plain text."""
        from rich import box
        from rich.table import Table as Grid
        from rich.text import Text

        grid = Grid(
            title=Text(self.title, style="bold"),
            title_justify="left",
            caption=Text("\n".join(("", *self.notes))) if self.notes else None,
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, 0, 0, self._gap() - 1),  # the box's divider is one more
            collapse_padding=True,
        )
        for place, head in enumerate(self.heads or self.columns):
            side: Literal["left", "right"] = "left" if self.is_text(place) else "right"
            grid.add_column(Text(head), justify=side, vertical="bottom", overflow="fold")
        for place, row in enumerate(self.rows):
            before_chance = [below[0] for below in self.rows[place + 1 : place + 2]] == [CHANCE_ROW]
            grid.add_row(_Name(row[0]), *map(Text, row[1:]), end_section=before_chance)
        return grid

    def _gap(self) -> int:
        """Spaces between the terminal's columns: one where two would not leave a name 14 of 80 columns."""
        columns = list(zip(self.heads or self.columns, *self.rows, strict=True))[1:]
        numbers = sum(max(len(line) for cell in column for line in cell.split("\n")) for column in columns)
        return 2 if 14 + numbers + 2 * len(columns) <= 80 else 1

    def _records(self) -> Sequence[Mapping[str, Any]]:
        return self.records or [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class _Name:
    """A name in a terminal's table, which breaks at hyphens too: model names have few spaces."""

    text: str

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        from rich.measure import Measurement

        return Measurement(max(map(len, self._pieces()), default=1), max(len(self.text), 1))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        lines = [""]
        for piece in self._pieces():
            if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > options.max_width:
                lines.append("")
            lines[-1] += piece
        yield Text("\n".join(line.rstrip() for line in lines))

    def _pieces(self) -> list[str]:
        """textwrap's own idea of hyphens spares those beside digits, of which model names are full."""
        return re.findall(r"[^\s-]*(?:-+|\s+|$)", self.text)[:-1]


def _pipes(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|").replace("\n", " ") for cell in cells) + " |"


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in record.items():
        inner = _flat(value) if isinstance(value, Mapping) else None
        flat |= {f"{name}_{key}": deeper for key, deeper in inner.items()} if inner is not None else {name: value}
    return flat


def write_tables(tables: Iterable[Table], folder: Path) -> list[Path]:
    """Writes each table as Markdown, CSV and JSON and gives the paths. A file is whole or, after a kill, the
    one that was there before."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for table in tables:
        for suffix, text in (("md", table.markdown()), ("csv", table.csv()), ("json", table.json())):
            path = folder / f"{table.name}.{suffix}"
            draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
            draft.write_text(text, encoding="utf-8", newline="\n")
            draft.replace(path)
            written.append(path)
    return written
