"""Counts responses and makes shares of the counts, exactly: fractions until a figure is shown.

This module refuses to know which model gave the responses, how letters were found, and what a table looks like.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from vpref.domain import Category, Dependence, Response, Typicality, reported_dependence

CHANCE = Fraction(1, 4)
"""The accuracy of a blind guess among four choices."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of n items. Each responded, or failed, which lowers coverage and is never scored; of those
    that responded some named no choice (`unmatched`, `refused`), which is wrong."""

    n: int = 0
    responded: int = 0
    correct: int = 0
    unmatched: int = 0
    refused: int = 0
    failed: int = 0

    @property
    def accuracy(self) -> Fraction | None:
        """The share of right answers among responses; None without any."""
        return Fraction(self.correct, self.responded) if self.responded else None

    @property
    def coverage(self) -> Fraction | None:
        """The share of items that got a response at all; None without items."""
        return Fraction(self.responded, self.n) if self.n else None


def score(response: Response) -> bool | None:
    """Whether an answer is right; None for a failure, which is never scored. A letter counts only where the
    verdict says that one was matched."""
    return None if response.verdict == "failed" else response.verdict == "matched" and response.correct


def tally(responses: Iterable[Response]) -> Tally:
    """Counts the responses."""
    verdicts: Counter[str] = Counter()
    correct = 0
    for response in responses:
        verdicts[response.verdict] += 1
        correct += score(response) is True
    return Tally(
        n=verdicts.total(),
        responded=verdicts.total() - verdicts["failed"],
        correct=correct,
        unmatched=verdicts["unmatched"],
        refused=verdicts["refused"],
        failed=verdicts["failed"],
    )


def _typicality(wanted: Typicality) -> Callable[[Response], bool]:
    return lambda response: response.slot.category.typicality is wanted


def _dependence(wanted: Dependence) -> Callable[[Response], bool]:
    return lambda response: reported_dependence(response.slot.category, response.slot.variant) is wanted


def _category(wanted: Category) -> Callable[[Response], bool]:
    return lambda response: response.slot.category is wanted


GROUPS: dict[str, Callable[[Response], bool]] = {
    "overall": lambda response: True,
    "typical": _typicality(Typicality.TYPICAL),
    "atypical": _typicality(Typicality.ATYPICAL),
    "low_dependence": _dependence(Dependence.LOW),
    "high_dependence": _dependence(Dependence.HIGH),
    **{f"category_{category:d}": _category(category) for category in Category},
}
"""The groups that reports show, in their order, and which responses each holds."""


def by_group(responses: Iterable[Response]) -> dict[str, list[Response]]:
    """The responses of each of GROUPS, empty ones included."""
    kept = tuple(responses)
    return {name: list(filter(belongs, kept)) for name, belongs in GROUPS.items()}


def percent(share: Fraction | None, digits: int = 1) -> str:
    """A share as a percentage, halves rounded up as the paper does: 11/16 is 68.8. A dash stands for None.

    On floats and with round() 68.75 could as well become 68.7.
    """
    if share is None:
        return "–"
    scale = 10**digits
    units = (share * 100 * scale + Fraction(1, 2)).__floor__()
    sign, (whole, rest) = "-" if units < 0 else "", divmod(abs(units), scale)
    return f"{sign}{whole}.{rest:0{digits}d}" if digits else f"{sign}{whole}"
