"""`vpref report RUNS...`: tables over evaluation runs, from their records alone."""

from __future__ import annotations

import os

from vpref import reports
from vpref.errors import ConfigError
from vpref.runs.counts import read_counts
from vpref.runs.evaluations import find_evaluations, read_evaluation
from vpref.runs.folder import RunFolder
from vpref.runs.terminal import say, show_tables, shown
from vpref.settings import ReportSettings


def report(settings: ReportSettings, folder: RunFolder) -> None:
    """Run the verb: print the tables and write them as Markdown, CSV and JSON."""
    if not settings.runs and settings.counts is None:
        raise ConfigError(
            "Which runs? Give folders of evaluate runs (vpref report outputs/evaluate/*), or the paper's figures "
            "(counts=paper)."
        )
    paths = find_evaluations(settings.runs)
    evaluations = [read_evaluation(path) for path in paths]
    tables = [*reports.accuracy_tables(evaluations), *reports.comparison_tables(evaluations)]
    tables += [*reports.dependence_tables(evaluations), *reports.steadiness_tables(evaluations)]
    if settings.counts is not None:
        tables += reports.counted_tables(read_counts(settings.counts), evaluations)
    if evaluations:
        tables.append(reports.extraction_table(evaluations))
    reports.write_tables(tables, folder.path / "tables")
    folder.note(runs=[os.path.relpath(path) for path in paths])
    show_tables(tables)
    say(f"tables: {shown(folder.path / 'tables')}")
