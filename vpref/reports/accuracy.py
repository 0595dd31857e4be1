"""Accuracy as the paper lays it out, and by category. Refuses to know where responses came from: run folders,
models and networks are not its business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from vpref.domain import Category, Item, Response, Variant
from vpref.reports.table import CHANCE_ROW, SIMULATED_NOTE, Table
from vpref.scoring import CHANCE, Tally, by_group, percent


@dataclass(frozen=True)
class Evaluation:
    """One evaluated model's responses, of one or both variants, under the name shown for it."""

    title: str
    simulated: bool
    responses: Sequence[Response]

    @property
    def shown(self) -> str:
        return f"{self.title} (simulated)" if self.simulated else self.title


_PAPER_TABLE = {Variant.BOXES: 1, Variant.PLAIN: 2}
_TYPICALITY = {
    "overall": "Overall Accuracy",
    "typical": "Typical Preference Accuracy",
    "atypical": "Atypical Preference Accuracy",
}
_CATEGORIES = {
    **{f"category_{category:d}": f"{category:d} {category.typicality}, {category.dependence}" for category in Category},
    "low_dependence": "Low dependence",
    "high_dependence": "High dependence",
}
_COUNTS = ("n", "Coverage", "Unmatched", "Refused", "Failed")


@dataclass(frozen=True)
class _Row:
    """One model's tallies for one variant."""

    evaluation: Evaluation
    groups: dict[str, Tally]

    def record(self, names: Iterable[str]) -> dict[str, Any]:
        groups = {name: _figures(self.groups[name]) for name in names}
        return {"model": self.evaluation.title, "simulated": self.evaluation.simulated, **groups}


def accuracy_tables(evaluations: Iterable[Evaluation]) -> list[Table]:
    """For each variant that has responses: the paper's table, then accuracy by category."""
    known = tuple(evaluations)
    tables: list[Table] = []
    for variant in _PAPER_TABLE:
        rows = [_Row(evaluation, by_group(kept)) for evaluation in known if (kept := _of(evaluation, variant))]
        if rows:
            tables += [_paper_table(variant, rows), _category_table(variant, rows)]
    return tables


def _of(evaluation: Evaluation, variant: Variant) -> list[Response]:
    return [response for response in evaluation.responses if response.slot.variant is variant]


def _paper_table(variant: Variant, rows: Sequence[_Row]) -> Table:
    dashes = ("–",) * len(_COUNTS)
    chance = {name: {"accuracy": float(percent(CHANCE))} for name in _TYPICALITY}
    return Table(
        name=f"table{_PAPER_TABLE[variant]}_accuracy_{variant}",
        title=f"Table {_PAPER_TABLE[variant]}: accuracy, {variant}",
        columns=("Model", *_TYPICALITY.values(), *_COUNTS),
        heads=("Model", "Overall", "Typical", "Atypical", "n", "Cover-\nage", "Un-\nmatched", "Refused", "Failed"),
        rows=(
            *((row.evaluation.shown, *_accuracies(row), *_counts(row.groups["overall"])) for row in rows),
            (CHANCE_ROW, *[_share(CHANCE)] * len(_TYPICALITY), *dashes),
        ),
        notes=_notes(rows),
        records=(*(row.record(_TYPICALITY) for row in rows), {"model": CHANCE_ROW, "simulated": False, **chance}),
    )


def _category_table(variant: Variant, rows: Sequence[_Row]) -> Table:
    return Table(
        name=f"categories_{variant}",
        title=f"Accuracy by category, {variant}: percent (responses)",
        columns=("Model", *_CATEGORIES.values()),
        heads=("Model", *(name.replace("dependence", "dep.").replace(" ", "\n") for name in _CATEGORIES.values())),
        rows=tuple((row.evaluation.shown, *(_cell(row.groups[name]) for name in _CATEGORIES)) for row in rows),
        notes=_notes(rows),
        records=tuple(row.record(_CATEGORIES) for row in rows),
    )


def _accuracies(row: _Row) -> Iterable[str]:
    return (_share(row.groups[name].accuracy) for name in _TYPICALITY)


def _counts(whole: Tally) -> tuple[str, ...]:
    return (str(whole.n), _share(whole.coverage), str(whole.unmatched), str(whole.refused), str(whole.failed))


def _share(share: Fraction | None) -> str:
    return percent(share) if share is None else f"{percent(share)}%"


def _cell(group: Tally) -> str:
    return f"{percent(group.accuracy)} ({group.responded})" if group.n else percent(None)


def _figures(group: Tally) -> dict[str, Any]:
    """Counts, and shares as percentages rounded as they are shown."""
    shares = {"accuracy": group.accuracy, "coverage": group.coverage}
    return asdict(group) | {name: share if share is None else float(percent(share)) for name, share in shares.items()}


def _notes(rows: Sequence[_Row]) -> tuple[str, ...]:
    short = [row for row in rows if row.groups["overall"].failed]
    notes = [_coverage_note(row.evaluation.shown, row.groups["overall"]) for row in short]
    if any(row.evaluation.simulated for row in rows):
        notes.append(SIMULATED_NOTE)
    return tuple(notes)


def _coverage_note(model: str, whole: Tally) -> str:
    return f"No response from {model} to {whole.failed} of {whole.n} items: not scored."


def accuracy_summary(evaluation: Evaluation) -> dict[str, Any]:
    """Nested figures of one evaluation for the manifest and dashboards: by variant and group."""
    summary: dict[str, Any] = {}
    for variant in _PAPER_TABLE:
        kept = _of(evaluation, variant)
        if kept:
            groups = {name: _figures(group) for name, group in by_group(kept).items() if group.n}
            summary[variant.value] = groups
    return {"accuracy": summary}


def evaluation_rows(items: Iterable[Item], responses: Iterable[Response]) -> Iterator[dict[str, object]]:
    """One flat row an item for dashboards, items and responses in the same order; `image` is a digest."""
    for item, response in zip(items, responses, strict=False):
        yield {
            "image": item.shown,
            "item": item.id,
            "slot": item.slot.key,
            "category": int(item.category),
            "variant": item.variant.value,
            "preference": item.preference,
            "question": item.question,
            **{letter: item.choices[letter] for letter in "abcd"},
            "expected": response.expected,
            "letter": response.letter or "",
            "correct": response.correct,
            "verdict": response.verdict,
            "by": response.by or "",
            "text": response.text,
            "usd": sum(call.usd for call in response.calls),
        }
