"""Accuracy as the paper lays it out, and by category. Refuses to know where responses came from: run folders,
models and networks are not its business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from vpref.domain import Category, Response, Variant
from vpref.reports.table import CHANCE_ROW, SIMULATED_NOTE, Table
from vpref.scoring import CHANCE, Tally, by_group, percent, score, tally
from vpref.statistics import Interval, clustered, wilson


@dataclass(frozen=True)
class Evaluation:
    """One evaluated model's responses, of one or both variants, under the name shown for it."""

    title: str
    simulated: bool
    responses: Sequence[Response]
    ablation: str = ""
    """How the model was asked other than plainly, in words: what was left out (`left_out`), and how it had to answer
    and how often (`manner`). Each empty for nothing."""
    left_out: str = ""
    manner: str = ""
    run: str = ""
    """Which run it is, where two of one name answered the same items."""

    @property
    def shown(self) -> str:
        named = ", ".join(filter(None, (self.title, self.ablation, self.run)))
        return f"{named} (simulated)" if self.simulated else named

    def of(self, variant: Variant) -> list[Response]:
        """The responses of one variant."""
        return [response for response in self.responses if response.slot.variant is variant]


_PAPER_TABLE = {Variant.BOXES: 1, Variant.PLAIN: 2}
_TYPICALITY = {
    "overall": "Overall Accuracy",
    "typical": "Typical Preference Accuracy",
    "atypical": "Atypical Preference Accuracy",
}
_HEADS = ("Model", "Over-\nall", "Typi-\ncal", "Atypical", "95 %\ninterval")
_CATEGORIES = {
    **{f"category_{category:d}": f"{category:d} {category.typicality}, {category.dependence}" for category in Category},
    "low_dependence": "Low dependence",
    "high_dependence": "High dependence",
}
GROUP_NAMES = {"overall": "Overall", "typical": "Typical", "atypical": "Atypical", **_CATEGORIES}
_INTERVAL = "95 % interval"
_COUNTS = ("n", "Coverage", "Unmatched", "Refused", "Failed")


@dataclass(frozen=True)
class _Group:
    """Some responses counted, with both intervals of their accuracy."""

    tally: Tally
    images: int
    wilson: Interval | None
    clustered: Interval | None

    @classmethod
    def of(cls, responses: Iterable[Response]) -> _Group:
        kept = list(responses)
        outcomes = [(one.slot.image, right) for one in kept if (right := score(one)) is not None]
        counted, images = tally(kept), len({image for image, _ in outcomes})
        return cls(counted, images, wilson(counted.correct, counted.responded), clustered(outcomes))

    @property
    def interval(self) -> Interval | None:
        """The one to show: that over images, Wilson's where there is none."""
        return self.clustered or self.wilson

    def figures(self) -> dict[str, Any]:
        """Counts, and shares as percentages rounded as they are shown."""
        shares = {"accuracy": self.tally.accuracy, "coverage": self.tally.coverage}
        return {
            **asdict(self.tally),
            **{name: rounded(share) for name, share in shares.items()},
            "images": self.images,
            "wilson": _limits(self.wilson),
            "clustered": _limits(self.clustered),
        }


@dataclass(frozen=True)
class _Row:
    """One model's groups for one variant."""

    evaluation: Evaluation
    groups: dict[str, _Group]

    @classmethod
    def of(cls, evaluation: Evaluation, responses: Iterable[Response]) -> _Row:
        return cls(evaluation, {name: _Group.of(kept) for name, kept in by_group(responses).items()})

    @property
    def whole(self) -> _Group:
        return self.groups["overall"]

    def record(self, names: Iterable[str]) -> dict[str, Any]:
        groups = {name: self.groups[name].figures() for name in names}
        return {
            "model": self.evaluation.title,
            "ablation": self.evaluation.ablation,
            "simulated": self.evaluation.simulated,
            **groups,
        }


def accuracy_tables(evaluations: Iterable[Evaluation]) -> list[Table]:
    """For each variant that has responses: the paper's table, then accuracy by category."""
    known = tuple(evaluations)
    tables: list[Table] = []
    for variant in _PAPER_TABLE:
        rows = [_Row.of(evaluation, kept) for evaluation in known if (kept := evaluation.of(variant))]
        if rows:
            tables += [_paper_table(variant, rows), _category_table(variant, rows)]
    return tables


def _paper_table(variant: Variant, rows: Sequence[_Row]) -> Table:
    dashes = (percent(None),) * len((_INTERVAL, *_COUNTS))
    chance = {name: {"accuracy": float(percent(CHANCE))} for name in _TYPICALITY}
    return Table(
        name=f"table{_PAPER_TABLE[variant]}_accuracy_{variant}",
        title=f"Table {_PAPER_TABLE[variant]}: accuracy, {variant}",
        columns=("Model", *_TYPICALITY.values(), _INTERVAL, *_COUNTS),
        heads=(*_HEADS, "n", "Cover-\nage", "Un-\nmatched", "Re-\nfused", "Failed"),
        rows=(
            *(
                (row.evaluation.shown, *_accuracies(row), span_text(row.whole.interval), *_counts(row.whole.tally))
                for row in rows
            ),
            (CHANCE_ROW, *[share_text(CHANCE)] * len(_TYPICALITY), *dashes),
        ),
        notes=(*_interval_notes(rows), *_notes(rows)),
        records=(*(row.record(_TYPICALITY) for row in rows), {"model": CHANCE_ROW, "simulated": False, **chance}),
    )


def _category_table(variant: Variant, rows: Sequence[_Row]) -> Table:
    return Table(
        name=f"categories_{variant}",
        title=f"Accuracy by category, {variant}: percent (responses)",
        columns=("Model", *_CATEGORIES.values()),
        heads=("Model", *(name.replace("dependence", "dep.").replace(" ", "\n") for name in _CATEGORIES.values())),
        rows=tuple((row.evaluation.shown, *(_cell(row.groups[name].tally) for name in _CATEGORIES)) for row in rows),
        notes=_notes(rows),
        records=tuple(row.record(_CATEGORIES) for row in rows),
    )


def _accuracies(row: _Row) -> Iterable[str]:
    return (share_text(row.groups[name].tally.accuracy) for name in _TYPICALITY)


def _counts(whole: Tally) -> tuple[str, ...]:
    return (str(whole.n), share_text(whole.coverage), str(whole.unmatched), str(whole.refused), str(whole.failed))


def accuracy_text(responses: Iterable[Response]) -> str:
    """The accuracy of some responses in a sentence, with its interval: 93.8% (81.3–100.0)."""
    group = _Group.of(responses)
    return f"{share_text(group.tally.accuracy)} ({span_text(group.interval)})"


def share_text(share: Fraction | None) -> str:
    return percent(share) if share is None else f"{percent(share)}%"


def _cell(group: Tally) -> str:
    return f"{percent(group.accuracy)} ({group.responded})" if group.n else percent(None)


def rounded(share: Fraction | None) -> float | None:
    """A share as the percentage that is shown, for records."""
    return None if share is None else float(percent(share))


def _limits(interval: Interval | None) -> dict[str, float | None]:
    """An interval's ends for records, in percent."""
    ends = (None, None) if interval is None else (Fraction(interval.low), Fraction(interval.high))
    return dict(zip(("low", "high"), map(rounded, ends), strict=True))


def span_text(interval: Interval | None) -> str:
    """A share's interval in percent: 83.5–96.5."""
    if interval is None:
        return percent(None)
    return f"{percent(Fraction(interval.low))}–{percent(Fraction(interval.high))}"


def _interval_notes(rows: Sequence[_Row]) -> Iterator[str]:
    known = [(row.evaluation.shown, row.whole, one) for row in rows if (one := row.whole.interval)]
    alone = [name for name, whole, _ in known if whole.clustered is None]
    blind = [name for name, _, interval in known if interval.low <= CHANCE <= interval.high]
    if len(alone) < len(known):
        yield f"{_INTERVAL}: bootstrap over images, whose items are not independent."
    if alone:
        yield f"{_INTERVAL}: Wilson's, as if items were independent, where images do not differ: {', '.join(alone)}."
    if blind:
        yield f"Within noise of chance: {', '.join(blind)}."


def _notes(rows: Sequence[_Row]) -> tuple[str, ...]:
    notes = [coverage_note(row.evaluation.shown, row.whole.tally) for row in rows if row.whole.tally.failed]
    if any(row.evaluation.simulated for row in rows):
        notes.append(SIMULATED_NOTE)
    return tuple(notes)


def coverage_note(model: str, whole: Tally) -> str:
    return f"No response from {model} to {whole.failed} of {whole.n} items: not scored."


def accuracy_summary(evaluation: Evaluation) -> dict[str, Any]:
    """Nested figures of one evaluation for the manifest and dashboards: by variant and group."""
    summary: dict[str, Any] = {}
    for variant in _PAPER_TABLE:
        groups = _Row.of(evaluation, evaluation.of(variant)).groups
        if groups["overall"].tally.n:
            summary[variant.value] = {name: group.figures() for name, group in groups.items() if group.tally.n}
    return {"accuracy": summary}
