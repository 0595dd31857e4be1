"""`vpref report RUNS...`: tables over runs, from their records alone, and a page to look at them."""

from __future__ import annotations

import os

from vpref import reports
from vpref.errors import ConfigError
from vpref.runs.counts import read_counts
from vpref.runs.folder import RunFolder
from vpref.runs.results import find_results
from vpref.runs.terminal import say, show_tables, shown
from vpref.settings import ReportSettings

PAGE = "report.html"


def report(settings: ReportSettings, folder: RunFolder) -> None:
    """Run the verb: print the tables and write them as Markdown, CSV, JSON, and all of them as one page."""
    if not settings.runs and settings.counts is None:
        raise ConfigError(
            "Which runs? Give folders of runs (vpref report outputs/evaluate/*), or the paper's figures (counts=paper)."
        )
    results = find_results(settings.runs)
    tables = results.tables()
    if settings.counts is not None:
        tables += reports.counted_tables(read_counts(settings.counts), [one for _, one in results.evaluations])
    reports.write_tables(tables, folder.path / "tables")
    folder.note(runs=[os.path.relpath(path) for path in results.paths])
    show_tables(tables)
    say(f"tables: {shown(folder.path / 'tables')}")
    if settings.html:
        from vpref.runs.pages import write_page

        write_page(folder.path / PAGE, settings.title, results, tables, settings.images)
