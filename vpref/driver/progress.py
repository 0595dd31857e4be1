"""Showing a meter: a live panel in a terminal, plain lines elsewhere. Knows nothing of what is run."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from vpref.driver.meter import Meter
from vpref.settings import Progress

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table


class ProgressView:
    """A context in which `tick` shows the meter as it stands. Writes to standard error, so that a command's
    own output stays clean."""

    def __init__(self, meter: Meter, verb: str, mode: Progress, every_s: float) -> None:
        self._meter = meter
        self._verb = verb
        if mode is Progress.auto:
            mode = Progress.rich if sys.stderr.isatty() else Progress.plain
        self._mode = mode
        self._every_s = every_s
        self._last = time.monotonic()
        self._live: Live | None = None

    def __enter__(self) -> ProgressView:
        if self._mode is Progress.rich:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(self._panel(), console=Console(stderr=True), refresh_per_second=4)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.update(self._panel())
            self._live.stop()
        elif self._mode is Progress.plain:
            print(self.line(), file=sys.stderr, flush=True)

    def tick(self) -> None:
        """Show the meter; plain lines come only every `every_s` seconds."""
        if self._live is not None:
            self._live.update(self._panel())
        elif self._mode is Progress.plain and time.monotonic() - self._last >= self._every_s:
            self._last = time.monotonic()
            print(self.line(), file=sys.stderr, flush=True)

    def line(self) -> str:
        """The meter on one line."""
        return f"[{self._verb}] " + " | ".join(f"{name} {value}" for name, value in self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        meter = self._meter
        total = "" if meter.total is None else f"/{meter.total:,}"
        outcomes = ", ".join(f"{count:,} {name}" for name, count in sorted(meter.outcomes.items()))
        facts = [("items", f"{meter.done:,}{total}" + (f" ({outcomes})" if outcomes else ""))]
        calls = f"{meter.sent:,} sent, {meter.replayed:,} replayed"
        calls += f", {meter.shared:,} shared" if meter.shared else ""
        facts.append(("calls", calls + (f", {meter.in_flight} in flight" if meter.in_flight else "")))
        tokens = meter.tokens
        cached = f" ({tokens['cached']:,} cached)" if tokens["cached"] else ""
        facts.append(("tokens", f"{tokens['input']:,} in{cached}, {tokens['output']:,} out"))
        facts.append(("cost", meter.cost()))
        if meter.seconds > 0.5 and meter.done:
            facts.append(("rate", f"{meter.done / meter.seconds:.1f} items/s"))
        left = meter.seconds_left()
        if meter.stopping and meter.in_flight:
            facts.append(("stopping", f"waiting for {meter.in_flight} in flight; Ctrl-C again leaves at once"))
        elif left is not None and meter.done != meter.total:
            facts.append(("left", _duration(left)))
        faults = ", ".join(f"{kind} x{count}" for kind, count in meter.faults().items())
        return facts + ([("faults", faults)] if faults else [])

    def _panel(self) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        table.add_row(f"[bold]{self._verb}", ProgressBar(total=self._meter.total, completed=self._meter.done, width=50))
        for name, value in self._facts():
            table.add_row(f"[dim]{name}", value)
        return table


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m" if hours else f"{minutes}m {rest:02d}s" if minutes else f"{rest}s"
