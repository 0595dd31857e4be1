"""What dashboards show of a run: plain cells instead of text, one subject a sheet. Records in, sheets out.

Knows nothing of who draws them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vpref.domain import LETTERS, Accepted, Failed, Item, Outcome, Response, Unresolved, spent
from vpref.issues import ISSUES
from vpref.reports.accuracy import Evaluation, accuracy_summary
from vpref.reports.generation import GenerationCounts


@dataclass(frozen=True)
class Sheet:
    """A table of numbers and text as they are."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


FOUND = (*LETTERS, "unmatched", "refused", "split", "failed")
"""What a response can come to: a letter, or why there is none. Failed ones are never scored."""

_FIGURES = ("accuracy", "accuracy_low", "accuracy_high")
_TALLIES = ("n", "responded", "correct", "unmatched", "refused", "failed")


def role_sheet(counts: GenerationCounts) -> Sheet:
    """Calls, tokens and dollars of each role: of the replies that the items are made of, whenever they were paid."""
    columns = ("calls", "input", "cached", "output", "reasoning", "usd")
    rows = tuple((role, *(figures[name] for name in columns)) for role, figures in counts.by_role().items())
    return Sheet("roles", ("role", *columns), rows)


def revision_points(counts: GenerationCounts) -> list[dict[str, float]]:
    """For 0, 1, ... revisions: the share of items accepted with as many at most, the reviews of drafts revised so
    often, and how many of these found each issue."""
    items, names = counts.outcomes.total(), (*(issue.name for issue in ISSUES), "none")
    points = []
    for depth in range(max([*counts.reviews, *counts.accepted], default=-1) + 1):
        accepted = sum(count for revisions, count in counts.accepted.items() if revisions <= depth)
        issues = {f"depth/issues/{name}": counts.issues[depth, name] for name in names}
        points.append(
            {"revisions": depth, "depth/accepted": accepted / items, "depth/reviews": counts.reviews[depth]} | issues
        )
    return points


def revision_sheet(counts: GenerationCounts) -> Sheet:
    """The same points, a row each."""
    points = revision_points(counts)
    columns = tuple(points[0]) if points else ("revisions",)
    rows = tuple(tuple(point.values()) for point in points)
    return Sheet("depth", tuple(name.removeprefix("depth/") for name in columns), rows)


def group_sheet(evaluation: Evaluation) -> Sheet:
    """Accuracy of each variant and group, in percent, with the bounds of its interval and every count."""
    rows = [(*place, *figures.values()) for place, figures in _groups(evaluation)]
    return Sheet("accuracy", ("variant", "group", *_FIGURES, *_TALLIES), tuple(rows))


def group_figures(evaluation: Evaluation) -> dict[str, float]:
    """The same, flat: `accuracy/plain/typical`, `accuracy_low/plain/typical`, ..., `n/plain/typical`."""
    return {
        f"{name}/{variant}/{group}": value
        for (variant, group), figures in _groups(evaluation)
        for name, value in figures.items()
        if value is not None
    }


def _groups(evaluation: Evaluation) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    for variant, groups in accuracy_summary(evaluation)["accuracy"].items():
        for group, figures in groups.items():
            bounds = figures["wilson"] if figures["clustered"]["low"] is None else figures["clustered"]
            shares = dict(zip(_FIGURES, (figures["accuracy"], bounds["low"], bounds["high"]), strict=True))
            yield (variant, group), shares | {name: figures[name] for name in _TALLIES}


def confusion_sheet(responses: Iterable[Response]) -> Sheet:
    """How often each expected letter was answered by each letter, or by none."""
    counts = Counter((one.expected, _found(one)) for one in responses)
    rows = tuple((expected, found, counts[expected, found]) for expected in LETTERS for found in FOUND)
    return Sheet("confusion", ("expected", "found", "count"), rows)


def _found(response: Response) -> str:
    return response.letter if response.verdict == "matched" and response.letter else response.verdict


def generation_row(outcome: Outcome, source: str) -> dict[str, object]:
    """One flat row an item; `image` is a digest. `slot` joins it with any run, `item` where the very same is shown."""
    item = outcome.item if isinstance(outcome, Accepted | Unresolved) else None
    shown = item or (outcome.draft if isinstance(outcome, Failed) else None)
    return {
        "item": item.id if item else "",
        "slot": outcome.slot.key,
        "image": item.shown if item else outcome.slot.image,
        "source": source,
        "variant": outcome.slot.variant.value,
        "category": int(outcome.slot.category),
        "outcome": outcome.outcome,
        "issues": " > ".join(one.review.issue or "none" for one in outcome.rounds),
        "rounds": "\n".join(_rounds(outcome)),
        "scene": shown.scene if shown else "",
        "preference": shown.preference if shown else "",
        "question": shown.question if shown else "",
        **{letter: shown.choices[letter] if shown else "" for letter in LETTERS},
        "answer": (item.answer or "") if item else "",
        "reason": outcome.reason if isinstance(outcome, Failed) else "",
        "usd": spent(call.usd for call in outcome.calls),
    }


def _rounds(outcome: Outcome) -> Iterator[str]:
    for number, one in enumerate(outcome.rounds, 1):
        fix = f" | fix: {one.revision.proposed_fix}" if one.revision else ""
        yield f"{number}. {one.review.issue or 'none'}: {one.review.analysis}{fix}"


def evaluation_rows(
    items: Iterable[Item], responses: Iterable[Response], about: Mapping[str, str]
) -> Iterator[dict[str, object]]:
    """One flat row an item, items and responses in the same order; `image` is a digest, `about` the same in each."""
    for item, response in zip(items, responses, strict=False):
        yield {
            "item": item.id,
            "slot": item.slot.key,
            "image": item.shown,
            "variant": item.variant.value,
            "category": int(item.category),
            **about,
            "preference": item.preference,
            "question": item.question,
            **{letter: item.choices[letter] for letter in LETTERS},
            "expected": response.expected,
            "letter": response.letter or "",
            "correct": response.correct,
            "verdict": response.verdict,
            "by": response.by or "",
            "text": "\n\n".join(answer.text for answer in response.answers),
            "usd": spent(call.usd for call in response.calls),
        }
