"""How steady answers are where each item was put to a model several times: rotated, sampled, or both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from vpref.domain import LETTERS, Answer, Response
from vpref.reports.accuracy import Evaluation, rounded
from vpref.reports.table import SIMULATED_NOTE, Table
from vpref.scoring import percent, score


def steadiness_tables(evaluations: Iterable[Evaluation]) -> list[Table]:
    """One row for each evaluation that asked more than once; no table where none did.

    An item is right when all its rotations are; the accuracy of single answers is their mean over rotations and
    samples. Steady is an item all of whose answers are the same letter. Under four rotations each letter is right
    equally often: shares of the letters as they were shown that differ from a quarter are a bias towards places.
    """
    several = [(one, kept) for one in evaluations if (kept := [each for each in one.responses if each.asks])]
    if not several:
        return []
    records = [_figures(one, kept) for one, kept in several]
    notes = ["Letters: shares of all answers that named one, by the letter as shown."]
    notes += ["Letter bias shows under four rotations alone, where each letter is right equally often."]
    notes += [SIMULATED_NOTE] if any(one.simulated for one, _ in several) else []
    return [
        Table(
            name="steadiness",
            title="Steadiness: the same items asked several times",
            columns=("Model", "Items", "Answers", "Items right", "Answers right", "Steady", *LETTERS),
            heads=("Model", "Items", "Answers", "Items\nright", "Answers\nright", "Steady", *LETTERS),
            rows=tuple(_row(one, record) for (one, _), record in zip(several, records, strict=True)),
            notes=tuple(notes),
            records=tuple(records),
        )
    ]


def _row(evaluation: Evaluation, record: dict[str, Any]) -> tuple[str, ...]:
    shares = (record[name] for name in ("items_right", "answers_right", "steady"))
    letters = (record["letters"][letter] for letter in LETTERS)
    cells = (percent(None) if share is None else f"{share:.1f}%" for share in (*shares, *letters))
    return (evaluation.shown, f"{record['items']:,}", f"{record['answers']:,}", *cells)


def _figures(evaluation: Evaluation, responses: Sequence[Response]) -> dict[str, Any]:
    """Counts, and shares in percent. What failed is in no share."""
    scored = [(response, right) for response in responses if (right := score(response)) is not None]
    answers = [(answer, response.expected) for response, _ in scored for answer in response.asks]
    steady = [len({answer.letter for answer in response.asks}) == 1 for response, _ in scored]
    shown = Counter(answer.shown for answer, _ in answers if answer.shown is not None)
    return {
        "model": evaluation.title,
        "ablation": evaluation.ablation,
        "simulated": evaluation.simulated,
        "items": len(scored),
        "answers": len(answers),
        "items_right": _percent([right for _, right in scored]),
        "answers_right": _percent([_right(answer, expected) for answer, expected in answers]),
        "steady": _percent(steady),
        "letters": {name: rounded(Fraction(shown[name], shown.total()) if shown else None) for name in LETTERS},
    }


def _right(answer: Answer, expected: str) -> bool:
    return answer.verdict == "matched" and answer.letter == expected


def _percent(outcomes: Sequence[bool]) -> float | None:
    return rounded(Fraction(sum(outcomes), len(outcomes))) if outcomes else None
