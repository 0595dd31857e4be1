"""Several servers of one model: which of them gets a request, and which is passed over for a while.

An image's requests go to one server, for what that has in its cache. Pure but for a clock; refuses to know HTTP.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from contextvars import ContextVar

PASSED_OVER_S = 30.0
"""How long a server that did not answer is passed over before one request tries it again."""

affinity: ContextVar[str] = ContextVar("affinity", default="")
"""What the request being sent has in common with others that should meet the same server."""


class Servers:
    """The addresses of one model's servers."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self.addresses = tuple(addresses)
        self._gone: dict[str, float] = {}

    def order(self, common: str, turn: int = 0) -> list[str]:
        """All servers, those to try first in front: by rendezvous hashing of `common`, so that only the requests of
        a server that is gone go elsewhere. `turn` counts a request's retries, which go on to the next one. Those
        passed over come last; when its time is up, a server is tried by one request, and by others once that worked.
        """
        ranked = sorted(self.addresses, key=lambda one: hashlib.sha256(f"{common}\n{one}".encode()).digest())
        start = turn % len(ranked)
        ranked = ranked[start:] + ranked[:start]
        chosen = [one for one in ranked if one not in self._gone]
        due = next((one for one in ranked if time.monotonic() >= self._gone.get(one, float("inf"))), None)
        if due is not None:
            self.gone(due)
            chosen.insert(0, due)
        return chosen + [one for one in ranked if one not in chosen]

    def gone(self, address: str) -> None:
        """It did not answer: pass it over."""
        self._gone[address] = time.monotonic() + PASSED_OVER_S

    def there(self, address: str) -> None:
        """It answered."""
        self._gone.pop(address, None)
