"""What a person sees on standard output. Secrets are taken out on the way."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from vpref.redaction import redact
from vpref.settings import DriverSettings, Progress

if TYPE_CHECKING:
    from vpref.reports import Table

log = logging.getLogger("vpref")


def say(text: str) -> None:
    """Print a text as it is: a model's brackets are no markup."""
    print(redact(text), flush=True)


def warn(text: str) -> None:
    """One line on standard error, and in the run's log: something is not as asked for, and the run goes on."""
    log.warning("%s", text)
    print(f"vpref: {redact(text)}", file=sys.stderr, flush=True)


class Counting:
    """Lines on standard error while a long step without calls goes on: `detection: 120/1,000 images`."""

    def __init__(self, what: str, total: int | None, settings: DriverSettings) -> None:
        self._what, self._total, self._settings = what, total, settings
        self._done, self._last = 0, time.monotonic()

    def __call__(self, *_: object) -> None:
        """One more is done."""
        self._done += 1
        if self._settings.progress is Progress.none or time.monotonic() - self._last < self._settings.every_s:
            return
        self._last = time.monotonic()
        total = "" if self._total is None else f"/{self._total:,}"
        print(f"{self._what}: {self._done:,}{total} images", file=sys.stderr, flush=True)


def shown(path: Path) -> str:
    """A path as a person would type it: relative where it lies below the working folder."""
    full = path.resolve()
    return str(full.relative_to(Path.cwd()) if full.is_relative_to(Path.cwd()) else path)


def show_tables(tables: Iterable[Table]) -> None:
    """Print tables as wide as the terminal lets them be."""
    from rich.console import Console

    console = Console()
    for table in tables:
        console.print()
        console.print(table.rich())
