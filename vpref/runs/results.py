"""What runs left, read back for tables and pages: evaluations, what was generated, and people's votes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from vpref import reports
from vpref.domain import Outcome
from vpref.errors import ConfigError
from vpref.reports import Evaluation, GenerationCounts, People, Table
from vpref.runs import sweeps
from vpref.runs.datasets import read_outcomes
from vpref.runs.evaluations import read_evaluation
from vpref.runs.folder import read_json
from vpref.runs.survey_aggregate import PEOPLE, read_people
from vpref.runs.terminal import shown, warn

_BESIDE_THE_POINT = ("tracking", "driver.", "outputs=", "store.", "rehearse=", "hydra")
"""Overrides that change nothing about what is made."""


@dataclass(frozen=True)
class Generation:
    """A run that generated items: what sets it apart from the others, its counts, and how its boxes fell away."""

    path: Path
    label: str
    counts: GenerationCounts
    funnel: Table | None

    def outcomes(self) -> Iterator[Outcome]:
        """Its records, read anew: there may be many."""
        return read_outcomes(self.path / "items.jsonl")


@dataclass(frozen=True)
class Results:
    """All that is reported on, in the order given. An evaluation's folder is beside it."""

    evaluations: list[tuple[Path, Evaluation]] = field(default_factory=list)
    generations: list[Generation] = field(default_factory=list)
    people: list[tuple[Path, People]] = field(default_factory=list)

    @property
    def paths(self) -> list[Path]:
        parts = [path for path, _ in self.evaluations], [one.path for one in self.generations]
        return [*parts[0], *parts[1], *(path for path, _ in self.people)]

    def tables(self) -> list[Table]:
        """Every table of them: accuracy, pairs, dependence, steadiness, costs, generation, people."""
        known = [one for _, one in self.evaluations]
        tables = [*reports.accuracy_tables(known), *reports.comparison_tables(known)]
        tables += [*reports.dependence_tables(known), *reports.steadiness_tables(known)]
        if known:
            tables += [reports.extraction_table(known), reports.cost_table(known)]
        tables += _generated(self.generations)
        for number, (_, people) in enumerate(self.people, 1):
            tables += [_numbered(one, number, len(self.people)) for one in reports.people_tables(people) if one.rows]
        return tables


def find_results(given: list[str]) -> Results:
    """The runs among the folders given, or in them (a sweep, a demo, all of `outputs/evaluate`), once each.

    Raises ConfigError naming a folder that has none, or a record that is none of ours.
    """
    found: dict[Path, None] = {}
    for name in given:
        root = Path(name)
        if not root.is_dir():
            raise ConfigError(f"There is no run folder at {name}; give folders of `vpref evaluate` runs, say.")
        here = [root] if _kind(root) else sorted(path.parent for path in root.rglob("manifest.json"))
        kept = [path.resolve() for path in here if _kind(path)]
        if not kept:
            raise ConfigError(f"{name} holds no evaluation run, nor what was generated, nor votes that were counted.")
        found |= dict.fromkeys(kept)
    paths = list(found)
    generations = [path for path in paths if _kind(path) == "generation"]
    return Results(
        told_apart(_distinct([(path, read_evaluation(path)) for path in paths if _kind(path) == "evaluation"])),
        [_generation(path, label) for path, label in zip(generations, _labels(generations), strict=True)],
        [(path, read_people(path)) for path in paths if _kind(path) == "people"],
    )


def _distinct(evaluations: list[tuple[Path, Evaluation]]) -> list[tuple[Path, Evaluation]]:
    """Without those that say over what another says: the same model, asked the same items in the same way, with the
    same answers, as where two sweeps share a job. Compared with itself it would only weaken other comparisons. Each
    that is left out is told of."""
    found: dict[tuple[object, ...], tuple[Path, Evaluation]] = {}
    for path, one in evaluations:
        said = tuple((each.item, each.expected, each.verdict, each.letter, each.text) for each in one.responses)
        first = found.setdefault((one.shown, said), (path, one))
        if first[0] != path:
            warn(f"{shown(path)} is left out: its answers are those of {shown(first[0])}, word for word.")
    return list(found.values())


def told_apart(evaluations: list[tuple[Path, Evaluation]], anyway: bool = False) -> list[tuple[Path, Evaluation]]:
    """Those of one name that answered the same items, or `anyway`, with what their folders are called behind it."""
    asked = [{response.item for response in one.responses} for _, one in evaluations]
    told = []
    for place, (path, one) in enumerate(evaluations):
        alike = any(
            other != place and evaluations[other][1].shown == one.shown and (anyway or items & asked[place])
            for other, items in enumerate(asked)
        )
        told.append((path, replace(one, run=_end(path)) if alike else one))
    return told


def _end(path: Path) -> str:
    """A run's folder as short as it can be told: the sweep and the job's number, or the folder's own name."""
    folder = path.resolve()
    number, job, _ = folder.name.partition("_")
    return f"{folder.parent.name}/{number}" if job and number.isdigit() else folder.name


def _kind(folder: Path) -> str | None:
    """By the records that only one kind of run has."""
    if (folder / "responses.jsonl").exists():
        return "evaluation"
    if (folder / PEOPLE).exists():
        return "people"
    if (folder / "items.jsonl").exists() and (folder / "images.jsonl").exists():
        return "generation"
    return None


def _labels(paths: list[Path]) -> list[str]:
    """Names for runs: what sets their commands apart, the folder's name where nothing does."""
    jobs = [sweeps.read_job(path) for path in paths]
    telling = [tuple(one for one in job.overrides if not one.startswith(_BESIDE_THE_POINT)) for job in jobs]
    apart = sweeps.own_overrides(telling)
    names = [told if len(paths) > 1 and told else path.name for told, path in zip(apart, paths, strict=True)]
    return [f"{name} ({path.name})" if names.count(name) > 1 else name for name, path in zip(names, paths, strict=True)]


def _generation(path: Path, label: str) -> Generation:
    counts = GenerationCounts()
    for outcome in read_outcomes(path / "items.jsonl"):
        counts.add(outcome)
    boxes = path / "tables" / "boxes.json"
    return Generation(path, label, counts, Table.of(read_json(boxes)) if boxes.exists() else None)


def _generated(generations: list[Generation]) -> list[Table]:
    """Of one run its own tables; of several, these compared, and each one's own under a number."""
    if not generations:
        return []
    tables = [*reports.generations_tables([(one.label, one.counts) for one in generations])]
    for number, one in enumerate(generations, 1):
        own = [*([one.funnel] if one.funnel else []), *reports.generation_tables(one.counts)]
        named = f": {one.label}" if len(generations) > 1 else ""
        tables += [_numbered(table, number, len(generations), named) for table in own]
    return tables


def _numbered(table: Table, number: int, of: int, named: str = "") -> Table:
    return table if of == 1 else table.renamed(f"{table.name}_{number}", f"{table.title}{named or f' ({number})'}")


def dataset_of(evaluation: Path) -> Path | None:
    """The records that an evaluation's items are in, also where all runs were moved together; None where they are no
    longer there."""
    told = Path(str(read_json(evaluation / "manifest.json")["dataset"].get("path")))
    moved = (parent / Path(*told.parts[-3:]) for parent in evaluation.parents)
    return next((path for path in (told, *moved) if path.is_file()), None)
