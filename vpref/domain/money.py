"""US dollars added up and shown. A price that nobody told is None: unknown, and never nothing."""

from __future__ import annotations

from collections.abc import Iterable


def spent(prices: Iterable[float | None]) -> float | None:
    """Their sum; None where one of them is unknown."""
    total = 0.0
    for usd in prices:
        if usd is None:
            return None
        total += usd
    return total


def dollars(usd: float | None, digits: int = 4) -> str:
    """For people: `$0.0123`, or `unknown`."""
    return "unknown" if usd is None else f"${usd:,.{digits}f}"
