"""Models compared in pairs on the items that both answered, and whether what they differ by is more than noise.
Refuses to know where responses came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from vpref.domain import Response, Variant
from vpref.reports.accuracy import Evaluation, coverage_note, rounded
from vpref.reports.table import SIMULATED_NOTE, Table
from vpref.scoring import Tally, percent, score, tally
from vpref.statistics import Interval, Paired, Unpaired, holm, paired, unpaired

ALPHA = 0.05
COLUMNS = {
    "A vs. B": "A vs. B",
    "Items shared": "Items",
    "Accuracy A": "A",
    "Accuracy B": "B",
    "Difference": "A − B",
    "95 % interval": "95 %\ninterval",
    "Only A right": "Only\nA",
    "Only B right": "Only\nB",
    "p": "p",
    "p (Holm)": "Holm's\np",
    "Verdict": "Verdict",
}


@dataclass(frozen=True)
class Side:
    """One model's answers of one variant."""

    evaluation: Evaluation
    whole: Tally
    right: dict[str, bool]
    images: dict[str, str]

    @classmethod
    def of(cls, evaluation: Evaluation, responses: Sequence[Response]) -> Side:
        right = {one.item: good for one in responses if (good := score(one)) is not None}
        return cls(evaluation, tally(responses), right, {one.item: one.slot.image for one in responses})

    def figures(self) -> dict[str, Any]:
        return {"model": self.evaluation.title, "simulated": self.evaluation.simulated, **asdict(self.whole)}


@dataclass(frozen=True)
class Pair:
    """Two models and what comparing them found: nothing where one has no answers."""

    a: Side
    b: Side
    found: Paired | Unpaired | None
    holm: float | None = None

    @classmethod
    def of(cls, a: Side, b: Side) -> Pair:
        counts = (a.whole.correct, a.whole.responded, b.whole.correct, b.whole.responded)
        return cls(a, b, paired(a.right, b.right, a.images) or unpaired(*counts))

    @property
    def verdict(self) -> str:
        """In words."""
        if self.found is None or self.holm is None:
            return "no answers"
        word = judged(self.found, self.holm)
        return word if isinstance(self.found, Paired) else f"{word}, unpaired"


def judged(found: Paired | Unpaired, corrected: float) -> str:
    """In words. To be better takes both a small p, corrected for many, which takes items as independent, and an
    interval without zero, which may not."""
    interval = found.interval
    if corrected >= ALPHA or (interval is not None and interval.low <= 0 <= interval.high):
        return "within noise"
    return "A better" if found.difference > 0 else "B better"


def comparison_tables(evaluations: Iterable[Evaluation]) -> list[Table]:
    """For each variant: every pair of evaluations that have responses of it and were asked in the same way, in their
    order. What a model loses where something is left out is another table's matter, and its pairs would weaken
    these by Holm's correction."""
    known = tuple(evaluations)
    tables: list[Table] = []
    for variant in (Variant.BOXES, Variant.PLAIN):
        sides = [Side.of(evaluation, kept) for evaluation in known if (kept := evaluation.of(variant))]
        alike = [(a, b) for a, b in combinations(sides, 2) if a.evaluation.ablation == b.evaluation.ablation]
        if alike:
            paired_up = list({id(side): side for pair in alike for side in pair}.values())
            tables.append(_table(variant, paired_up, corrected([Pair.of(a, b) for a, b in alike])))
    return tables


def corrected(pairs: Iterable[Pair]) -> list[Pair]:
    """The pairs with Holm's p, over all of them that could be tested."""
    known = list(pairs)
    better = iter(holm([pair.found.p for pair in known if pair.found]))
    return [Pair(pair.a, pair.b, pair.found, next(better) if pair.found else None) for pair in known]


def _table(variant: Variant, sides: Sequence[Side], pairs: Sequence[Pair]) -> Table:
    return Table(
        name=f"comparison_{variant}",
        title=f"Models in pairs, {variant}: percent, differences in points",
        columns=tuple(COLUMNS),
        heads=tuple(COLUMNS.values()),
        rows=tuple((f"{pair.a.evaluation.shown} vs. {pair.b.evaluation.shown}", *cells(pair)) for pair in pairs),
        notes=(*method_notes(pairs), *side_notes(sides)),
        records=tuple(record(pair) for pair in pairs),
    )


def cells(pair: Pair) -> Iterator[str]:
    found, dash = pair.found, percent(None)
    together = found if isinstance(found, Paired) else None
    yield str(together.n if together else 0)
    yield from (percent(found.accuracy_a), percent(found.accuracy_b)) if found else (dash, dash)
    yield points(found.difference) if found else dash
    yield _span(found.interval) if found and found.interval else dash
    yield from (str(together.only_a), str(together.only_b)) if together else (dash, dash)
    yield from (p_text(found.p if found else None), p_text(pair.holm))
    yield pair.verdict.replace(" noise", "\nnoise").replace(", ", ",\n")


def points(difference: Fraction | float) -> str:
    """A difference in points. Halves are rounded away from zero, so that B against A is A against B negated."""
    size = percent(abs(Fraction(difference)))
    return size if not float(size) else f"{'-' if difference < 0 else '+'}{size}"


def _span(interval: Interval) -> str:
    """Two lines, which is what leaves models a name in 80 columns."""
    return f"{points(interval.low)} to\n{points(interval.high)}"


def p_text(p: float | None) -> str:
    if p is None:
        return percent(None)
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def record(pair: Pair) -> dict[str, Any]:
    """Counts and figures of one pair; those of an outcome that both had are None where none is shared."""
    found = pair.found
    together = found if isinstance(found, Paired) else None
    outcomes = ("both", "only_a", "only_b", "neither")
    ends = [float(points(end)) for end in found.interval] if found and found.interval else [None, None]
    return {
        "a": pair.a.figures(),
        "b": pair.b.figures(),
        "method": type(found).__name__.lower() if found else None,
        "shared": together.n if together else 0,
        **{name: getattr(together, name, None) for name in outcomes},
        "accuracy_a": rounded(found.accuracy_a if found else None),
        "accuracy_b": rounded(found.accuracy_b if found else None),
        "difference": float(points(found.difference)) if found else None,
        "interval": {"low": ends[0], "high": ends[1]},
        "p": found.p if found else None,
        "p_holm": pair.holm,
        "verdict": pair.verdict,
    }


def method_notes(pairs: Sequence[Pair]) -> Iterator[str]:
    together = [(pair, pair.found) for pair in pairs if isinstance(pair.found, Paired)]
    if together:
        yield "A − B on the items that both answered; interval: bootstrap over images."
        yield "p: McNemar's exact test of the items that only one model got right."
    if any(found.interval is None for _, found in together):
        yield "No interval where all images show the same difference."
    if any(isinstance(pair.found, Unpaired) for pair in pairs):
        yield "Unpaired: no shared items, so by counts alone (Newcombe's interval, Fisher's exact test)."
    tested = sum(pair.found is not None for pair in pairs)
    pairs_tested = f"{tested} pair" if tested == 1 else f"{tested} pairs"
    yield f"Better: p below {ALPHA} after Holm's correction for {pairs_tested}, and no 0 in the interval."
    partly = sum(found.n < max(pair.a.whole.responded, pair.b.whole.responded) for pair, found in together)
    if partly:
        yield f"Models share only some of the items they answered in {partly} of {len(pairs)} pairs."


def side_notes(sides: Sequence[Side]) -> Iterator[str]:
    yield from (coverage_note(side.evaluation.shown, side.whole) for side in sides if side.whole.failed)
    silent = [(side.evaluation.shown, side.whole.unmatched + side.whole.refused) for side in sides]
    if any(count for _, count in silent):
        counts = ", ".join(f"{name} {count}" for name, count in silent if count)
        yield f"Wrong for naming no choice: {counts}."
    if any(side.evaluation.simulated for side in sides):
        yield SIMULATED_NOTE
