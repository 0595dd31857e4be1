"""Models of which only counts are known, such as the paper's, beside evaluations whose every answer is known.

Counts hold no item twice: who was right where both were asked cannot be told, so these comparisons are unpaired, and
say so. Refuses to know where counts came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

from vpref.domain import Variant
from vpref.reports.accuracy import Evaluation, coverage_note, rounded, share_text, span_text
from vpref.reports.comparison import ALPHA, judged, p_text, points
from vpref.reports.table import CHANCE_ROW, SIMULATED_NOTE, Table
from vpref.scoring import CHANCE, by_group, percent, tally
from vpref.statistics import Unpaired, holm, unpaired, wilson

GROUPS = ("overall", "typical", "atypical")
_HEADS = ("Model", "Over-\nall", "Typi-\ncal", "Atypical", "95 %\ninterval", "Right", "n")
_PAIR_COLUMNS = {
    "A vs. B": "A vs. B",
    "Accuracy A": "A",
    "Accuracy B": "B",
    "Difference": "A − B",
    "95 % interval": "95 %\ninterval",
    "p": "p",
    "p (Holm)": "Holm's\np",
    "Verdict": "Verdict",
}


class Count(NamedTuple):
    """How many were right, of how many that were answered."""

    right: int
    of: int

    @property
    def share(self) -> Fraction | None:
        return Fraction(self.right, self.of) if self.of else None


@dataclass(frozen=True)
class Counted:
    """One model by its counts: for each variant, those of some of GROUPS, `overall` always. `source` says whose
    counts they are, empty for a run of ours."""

    title: str
    source: str
    counts: Mapping[Variant, Mapping[str, Count]]
    simulated: bool = False
    notes: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        return f"{self.title} ({self.source})" if self.source else self.title

    @classmethod
    def of(cls, evaluation: Evaluation) -> Counted:
        """A run of ours, by its counts alone: failures are in none."""
        counts: dict[Variant, dict[str, Count]] = {}
        notes: list[str] = []
        for variant in Variant:
            groups = {name: tally(kept) for name, kept in by_group(evaluation.of(variant)).items() if name in GROUPS}
            if groups["overall"].responded:
                counts[variant] = {name: Count(one.correct, one.responded) for name, one in groups.items()}
            if groups["overall"].failed:
                notes.append(coverage_note(evaluation.shown, groups["overall"]))
        return cls(evaluation.shown, "", counts, evaluation.simulated, tuple(notes))


def counted_tables(known: Sequence[Counted], evaluations: Iterable[Evaluation] = ()) -> list[Table]:
    """For each variant: accuracy of the models known by counts, then every pair with one of them in it."""
    runs = [Counted.of(evaluation) for evaluation in evaluations]
    tables: list[Table] = []
    for variant in (Variant.BOXES, Variant.PLAIN):
        told = [one for one in known if variant in one.counts]
        ours = [one for one in runs if variant in one.counts]
        if told:
            tables.append(_accuracy(variant, told))
        pairs = [(a, b) for a, b in combinations([*ours, *told], 2) if b.source]
        if pairs:
            tables.append(_comparison(variant, pairs))
    return tables


def _accuracy(variant: Variant, models: Sequence[Counted]) -> Table:
    rows = []
    for model in models:
        counts = model.counts[variant]
        whole = counts["overall"]
        shares = (share_text(counts[name].share if name in counts else None) for name in GROUPS)
        rows.append((model.title, *shares, span_text(wilson(*whole)), str(whole.right), str(whole.of)))
    dash = percent(None)
    blind = [row[0] for row, model in zip(rows, models, strict=True) if _blind(model.counts[variant]["overall"])]
    notes = [
        "95 % interval: Wilson's, as if items were independent; counts do not say which items are of one image.",
        "By counts alone: coverage and unmatched answers are not known.",
    ]
    notes += [f"Within noise of chance: {', '.join(blind)}."] if blind else []
    return Table(
        name=f"counted_{variant}",
        title=f"Accuracy by counts alone, {variant} ({models[0].source})",
        columns=("Model", *(f"{name.capitalize()} accuracy" for name in GROUPS), "95 % interval", "Right", "n"),
        heads=_HEADS,
        rows=(*rows, (CHANCE_ROW, *[share_text(CHANCE)] * len(GROUPS), dash, dash, dash)),
        notes=tuple(notes),
        records=tuple(_figures(model, variant) for model in models),
    )


def _figures(model: Counted, variant: Variant) -> dict[str, Any]:
    return {
        "model": model.title,
        "source": model.source,
        **{name: one._asdict() | {"accuracy": rounded(one.share)} for name, one in model.counts[variant].items()},
    }


def _blind(whole: Count) -> bool:
    interval = wilson(*whole)
    return interval is not None and interval.low <= CHANCE <= interval.high


def _comparison(variant: Variant, pairs: Sequence[tuple[Counted, Counted]]) -> Table:
    measured = [(a, b, _unpaired(a.counts[variant]["overall"], b.counts[variant]["overall"])) for a, b in pairs]
    corrected = holm([found.p for _, _, found in measured])
    verdicts = [judged(found, p) for (_, _, found), p in zip(measured, corrected, strict=True)]
    return Table(
        name=f"counted_pairs_{variant}",
        title=f"Models in pairs by counts alone, {variant} ({measured[0][1].source}): percent, differences in points",
        columns=tuple(_PAIR_COLUMNS),
        heads=tuple(_PAIR_COLUMNS.values()),
        texts=frozenset({"Verdict"}),
        rows=tuple(
            (f"{_name(a, pairs)} vs. {_name(b, pairs)}", *_cells(found, p), verdict)
            for (a, b, found), p, verdict in zip(measured, corrected, verdicts, strict=True)
        ),
        notes=tuple(_notes(pairs)),
        records=tuple(
            _record(a, b, variant, found, p, verdict)
            for (a, b, found), p, verdict in zip(measured, corrected, verdicts, strict=True)
        ),
    )


def _name(model: Counted, pairs: Iterable[tuple[Counted, Counted]]) -> str:
    """With its source where runs of ours, which have none, are compared too."""
    return model.title if all(one.source for pair in pairs for one in pair) else model.shown


def _unpaired(a: Count, b: Count) -> Unpaired:
    found = unpaired(*a, *b)
    assert found is not None, "a model without answers has no counts"
    return found


def _cells(found: Unpaired, p_holm: float) -> Iterator[str]:
    yield from (percent(found.accuracy_a), percent(found.accuracy_b), points(found.difference))
    yield f"{points(found.interval.low)} to {points(found.interval.high)}"
    yield from (p_text(found.p), p_text(p_holm))


def _record(a: Counted, b: Counted, variant: Variant, found: Unpaired, p_holm: float, verdict: str) -> dict[str, Any]:
    return {
        "a": {"model": a.title, "source": a.source, **a.counts[variant]["overall"]._asdict()},
        "b": {"model": b.title, "source": b.source, **b.counts[variant]["overall"]._asdict()},
        "method": "unpaired",
        "difference": float(points(found.difference)),
        "interval": {"low": float(points(found.interval.low)), "high": float(points(found.interval.high))},
        "p": found.p,
        "p_holm": p_holm,
        "verdict": verdict,
    }


def _notes(pairs: Sequence[tuple[Counted, Counted]]) -> Iterator[str]:
    yield "Unpaired: Newcombe's interval of the difference and Fisher's exact test, as if items were independent."
    yield "McNemar's test is impossible: it needs each item's answers, and counts do not hold them."
    number = f"{len(pairs)} pair" if len(pairs) == 1 else f"{len(pairs)} pairs"
    yield f"Better: p below {ALPHA} after Holm's correction for {number}, and no 0 in the interval."
    seen = dict.fromkeys(note for pair in pairs for model in pair for note in model.notes)
    yield from seen
    if any(not model.source for pair in pairs for model in pair):
        yield "Only where a run is of the very items that were counted can it be better or worse than they."
    if any(model.simulated for pair in pairs for model in pair):
        yield SIMULATED_NOTE
