"""A real HTTP server that speaks OpenAI's API and stands in for models: no key, no GPU, no cost.

What it says is labelled as simulated (`GET /v1/models`, `system_fingerprint`) and follows from a request's
content alone, never from the order of arrival. It knows vpref's reply forms and the lines of its prompts; it
refuses to know anything of runs, stores and coroutines, which meet it over HTTP as they meet any model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from vpref.settings import Service, SimulatorSettings

EDITION = 2
"""To be raised when the same profile would say something else, so that stored replies are not mixed."""


def profile_digest(settings: SimulatorSettings) -> str:
    """Eight hex digits over all settings that change what is replied; not how fast or how reliably."""
    faults = settings.faults
    profile = {
        "edition": EDITION,
        "accuracy": [float(share) for share in settings.accuracy],
        "skills": {name: float(shift) for name, shift in settings.skills.items()},
        # A list: the shares are drawn cumulatively, so their order is content too.
        "issues": [[name, float(share)] for name, share in settings.issues.items()],
        "unmatched": float(settings.unmatched),
        "letter_bias": float(settings.letter_bias),
        "faults": [float(share) for share in (faults.refusal, faults.cut, faults.malformed, faults.empty)],
    }
    if settings.service is not Service.none:
        profile["service"] = settings.service.value
    return hashlib.sha256(json.dumps(profile, sort_keys=True).encode()).hexdigest()[:8]


@contextmanager
def running(settings: SimulatorSettings) -> Iterator[str]:
    """The server in a daemon thread, as long as the context lasts; yields its base URL (`http://.../v1`).

    Raises ConfigError where the port or the log file cannot be used.
    """
    from vpref.simulator.server import in_thread

    with in_thread(settings) as url:
        yield url


def serve(settings: SimulatorSettings, ready: Callable[[str], None]) -> None:
    """The server in the foreground until SIGINT or SIGTERM; `ready` is told the base URL once it listens.

    Raises ConfigError where the port or the log file cannot be used.
    """
    import asyncio

    from vpref.simulator.server import until_signal

    asyncio.run(until_signal(settings, ready))
