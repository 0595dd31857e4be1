"""`vpref compare A B`: two evaluations on the items they share, and the items that changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from vpref import reports
from vpref.domain import Failed
from vpref.errors import ConfigError
from vpref.reports import Evaluation, Table
from vpref.runs.datasets import read_outcomes
from vpref.runs.folder import RunFolder, read_json
from vpref.runs.results import Results, dataset_of, find_results, told_apart
from vpref.runs.terminal import say, show_tables, shown
from vpref.settings import CompareSettings

PAGE = "compare.html"
_MOST = 20  # changed items printed; all are in the files and on the page


def compare(settings: CompareSettings, folder: RunFolder) -> None:
    """Run the verb: the tables printed and written, and one page of both runs' items."""
    found = told_apart([_one(given) for given in _two(settings.runs)], anyway=True)
    (a_path, a), (b_path, b) = found
    if a_path == b_path:
        raise ConfigError(f"{shown(a_path)} is both of the two runs; give two.")
    changed = reports.changed_table(a, b, _questions([a_path, b_path]))
    changed = replace(changed, notes=(*changed.notes, *_other_datasets(a_path, b_path)))
    tables = [*reports.accuracy_tables([a, b]), *reports.compared_tables(a, b), changed]
    reports.write_tables(tables, folder.path / "tables")
    folder.note(runs=[str(path) for path, _ in found])
    _show(tables, "on the page" if settings.html else "in the runs' responses.jsonl")
    say(f"tables: {shown(folder.path / 'tables')}")
    if settings.html:
        from vpref.runs.pages import write_page

        results = Results(found)
        title = f"{a.shown} and {b.shown}"
        write_page(folder.path / PAGE, title, results, [*tables, reports.cost_table([a, b])], settings.images)


def _two(given: list[str]) -> list[str]:
    if len(given) != 2:
        raise ConfigError(f"Two runs are compared, not {len(given)}: vpref compare outputs/evaluate/A outputs/.../B.")
    return given


def _one(given: str) -> tuple[Path, Evaluation]:
    """The one evaluation in a folder. Raises ConfigError where it holds none or several."""
    found = find_results([given]).evaluations
    if not found:
        raise ConfigError(f"{given} holds no evaluation run: only those are compared; vpref report shows others.")
    if len(found) > 1:
        names = ", ".join(path.name for path, _ in found[:3])
        raise ConfigError(f"{given} holds {len(found)} evaluation runs ({names}, ...); give the folder of one.")
    return found[0]


def _questions(evaluations: list[Path]) -> dict[str, str]:
    """What was asked, by item id, as far as the items are still there."""
    paths = {path for one in evaluations if (path := dataset_of(one)) is not None}
    outcomes = (outcome for path in sorted(paths) for outcome in read_outcomes(path))
    return {one.item.id: one.item.question for one in outcomes if not isinstance(one, Failed)}


def _other_datasets(a: Path, b: Path) -> Iterator[str]:
    """A sentence where the runs are of datasets that are not the same, byte for byte."""
    told = [read_json(one / "manifest.json")["dataset"] for one in (a, b)]
    if told[0].get("sha256") != told[1].get("sha256"):
        paths = [shown(dataset_of(one) or Path(str(each.get("path")))) for one, each in zip((a, b), told, strict=True)]
        yield f"The datasets differ. A: {paths[0]}. B: {paths[1]}."


def _show(tables: list[Table], where: str) -> None:
    """The tables, of the items that changed the first, and where to look for what was said."""
    *others, changed = tables
    if not changed.rows:
        show_tables(others)
        say("\n" + "\n".join(changed.notes))
        return
    left = len(changed.rows) - _MOST
    more = [f"{left:,} more are in tables/changed.csv."] if left > 0 else []
    notes = (*changed.notes, *more, f"What was asked and said, in full: by an item's id {where}.")
    show_tables([*others, replace(changed, rows=changed.rows[:_MOST], notes=notes)])
