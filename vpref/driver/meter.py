"""What a run has done so far, in numbers. Knows nothing of how they are shown."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from vpref.domain import ModelReply, dollars, spent


@dataclass
class Meter:
    """Counts of one run. `total` items are expected (None while unknown); `outcomes` are finished ones by
    outcome; `sent`, `replayed` and `shared` are replies by where they came from: the server, the store, or an
    equal request already in flight. `usd` and `tokens` are of sent ones alone: what this run has paid, and for
    `unpriced` ones nobody knows what."""

    total: int | None = None
    outcomes: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    replayed: int = 0
    shared: int = 0
    in_flight: int = 0
    stopping: bool = False
    failures: Counter[str] = field(default_factory=Counter)
    troubles: list[Counter[str]] = field(default_factory=list)
    usd: float = 0.0
    unpriced: int = 0
    usd_saved: float | None = 0.0
    tokens: Counter[str] = field(default_factory=Counter)
    started: float = field(default_factory=time.monotonic)

    @property
    def done(self) -> int:
        return self.outcomes.total()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def restart(self) -> None:
        """Begin another stage of the run: its items are counted anew, calls and cost go on."""
        self.outcomes.clear()
        self.total, self.started = None, time.monotonic()

    def count_done(self, outcome: str) -> None:
        self.outcomes[outcome] += 1

    def count_sent(self, reply: ModelReply) -> None:
        self.sent += 1
        self.usd += reply.usd or 0.0
        self.unpriced += reply.usd is None
        usage = reply.usage
        self.tokens["input"] += usage.input
        self.tokens["cached"] += usage.cached
        self.tokens["output"] += usage.output
        self.tokens["reasoning"] += usage.reasoning

    def count_replayed(self, reply: ModelReply) -> None:
        self.replayed += 1
        self.usd_saved = spent((self.usd_saved, reply.usd))

    def cost(self) -> str:
        """What the run has paid, for people."""
        if not self.unpriced:
            return dollars(self.usd)
        return f"{dollars(self.usd)} and an unknown rest" if self.usd else dollars(None)

    def seconds_left(self) -> float | None:
        """At the rate so far; None until an item is done or where the total is unknown."""
        if not self.done or self.total is None:
            return None
        return self.seconds / self.done * (self.total - self.done)

    def faults(self) -> dict[str, int]:
        """Transport faults by kind, retried ones included, and requests that failed for good."""
        merged: Counter[str] = sum(self.troubles, Counter())
        statuses = sum(count for kind, count in merged.items() if kind.startswith("http_"))
        retried = merged.pop("retried", 0)
        if retried > statuses:  # the SDK's hooks see no connection that broke or stalled, only the retry after it
            merged["connection_or_timeout"] += retried - statuses
        return dict(sorted(merged.items())) | {f"failed: {kind}": n for kind, n in sorted(self.failures.items())}

    def summary(self) -> dict[str, object]:
        """All of it, for the run's records and dashboards."""
        return {
            "items": dict(sorted(self.outcomes.items())),
            "expected": self.total,
            "calls": {"sent": self.sent, "replayed": self.replayed, "shared": self.shared},
            "tokens": dict(self.tokens),
            "usd": None if self.unpriced else round(self.usd, 6),
            **({"usd_known": round(self.usd, 6), "calls_of_unknown_price": self.unpriced} if self.unpriced else {}),
            "usd_saved_by_replay": None if self.usd_saved is None else round(self.usd_saved, 6),
            "seconds": round(self.seconds, 3),
            "faults": self.faults(),
        }
