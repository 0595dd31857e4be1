"""What evaluations cost, beside what they found. Refuses to know prices: each call has its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vpref.domain import dollars, spent
from vpref.reports.accuracy import Evaluation, rounded, share_text
from vpref.reports.table import SIMULATED_NOTE, Table
from vpref.scoring import tally


def cost_table(evaluations: Sequence[Evaluation]) -> Table:
    """One row an evaluation: its accuracy over both variants, calls, tokens and dollars, all of them and a thousand
    items' worth. A price that is not known is said to be unknown."""
    records = [_figures(one) for one in evaluations]
    return Table(
        name="costs",
        title="Cost and accuracy",
        columns=("Model", "Accuracy", "Items", "Calls", "Tokens in", "Tokens out", "Cost", "Per 1,000 items"),
        heads=("Model", "Accuracy", "Items", "Calls", "Tokens\nin", "Tokens\nout", "Cost", "Per 1,000\nitems"),
        rows=tuple(_row(one, record) for one, record in zip(evaluations, records, strict=True)),
        notes=(SIMULATED_NOTE,) if any(one.simulated for one in evaluations) else (),
        records=tuple(records),
    )


def _figures(evaluation: Evaluation) -> dict[str, Any]:
    calls = [call for response in evaluation.responses for call in response.calls]
    whole = tally(evaluation.responses)
    usd = spent(call.usd for call in calls)
    return {
        "model": evaluation.title,
        "ablation": evaluation.ablation,
        "simulated": evaluation.simulated,
        "accuracy": rounded(whole.accuracy),
        "items": whole.n,
        "calls": len(calls),
        "input": sum(call.usage.input for call in calls),
        "output": sum(call.usage.output for call in calls),
        "usd": usd,
        "usd_per_1000": None if usd is None or not whole.n else 1000 * usd / whole.n,
    }


def _row(evaluation: Evaluation, record: dict[str, Any]) -> tuple[str, ...]:
    counts = (f"{record[name]:,}" for name in ("items", "calls", "input", "output"))
    accuracy = share_text(tally(evaluation.responses).accuracy)
    return (evaluation.shown, accuracy, *counts, dollars(record["usd"]), dollars(record["usd_per_1000"], 2))
