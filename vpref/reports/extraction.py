"""How the letters of evaluated models were found: by which rule, by a model, or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from vpref.reports.accuracy import Evaluation
from vpref.reports.table import Table
from vpref.scoring import tally


def extraction_table(evaluations: Iterable[Evaluation]) -> Table:
    """One row a model. A letter is found by direct matching or by the extractor; the records count each rule."""
    rows, records = [], []
    for evaluation in evaluations:
        whole = tally(evaluation.responses)
        by = Counter(response.by for response in evaluation.responses if response.letter is not None)
        direct = by.total() - by["model"]
        figures = (whole.n, direct, by["model"], whole.unmatched, whole.refused, whole.failed)
        rows.append((evaluation.shown, *(f"{figure:,}" for figure in figures)))
        records.append(
            {"model": evaluation.title, "simulated": evaluation.simulated, "n": whole.n}
            | {"by": {str(rule): count for rule, count in sorted(by.items(), key=str)}}
            | {"unmatched": whole.unmatched, "refused": whole.refused, "failed": whole.failed}
        )
    return Table(
        name="extraction",
        title="How letters were found",
        columns=("Model", "n", "Direct", "By extractor", "Unmatched", "Refused", "Failed"),
        heads=("Model", "n", "Direct", "By ex-\ntractor", "Un-\nmatched", "Refused", "Failed"),
        rows=tuple(rows),
        records=tuple(records),
    )
