"""What a person sees on standard output. Secrets are taken out on the way."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from vpref.redaction import redact

if TYPE_CHECKING:
    from vpref.reports import Table


def say(text: str) -> None:
    """Print a text as it is: a model's brackets are no markup."""
    print(redact(text), flush=True)


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
