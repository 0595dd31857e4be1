"""How the letters of evaluated models were found: by which rule, by a model, or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from vpref.domain import Verdict
from vpref.reports.accuracy import Evaluation
from vpref.reports.table import Table

_NONE: tuple[Verdict, ...] = ("unmatched", "refused", "failed")


def extraction_table(evaluations: Iterable[Evaluation]) -> Table:
    """One row a model, which counts single answers: an item put to it in four rotations has four. A letter is found
    by direct matching (or bound) or by the extractor; the records count each rule."""
    rows, records = [], []
    for evaluation in evaluations:
        answers = [answer for response in evaluation.responses for answer in response.answers]
        verdicts = Counter(answer.verdict for answer in answers)
        by = Counter(answer.by for answer in answers if answer.letter is not None)
        direct = by.total() - by["model"]
        figures = (len(answers), direct, by["model"], *(verdicts[name] for name in _NONE))
        rows.append((evaluation.shown, *(f"{figure:,}" for figure in figures)))
        records.append(
            {"model": evaluation.title, "simulated": evaluation.simulated, "n": len(answers)}
            | {"by": {str(rule): count for rule, count in sorted(by.items(), key=str)}}
            | {name: verdicts[name] for name in _NONE}
        )
    return Table(
        name="extraction",
        title="How letters were found",
        columns=("Model", "n", "Direct", "By extractor", "Unmatched", "Refused", "Failed"),
        heads=("Model", "n", "Direct", "By ex-\ntractor", "Un-\nmatched", "Refused", "Failed"),
        rows=tuple(rows),
        records=tuple(records),
    )
