"""What a killed keeper left: servers of earlier runs whose processes still hold memory, and nobody ends them."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from vpref.serving.keeper import KEEPS, KEPT, processes


@dataclass(frozen=True)
class Leftover:
    """The processes of one server without a keeper, and when the first of them started."""

    pids: tuple[int, ...]
    since: datetime

    def __str__(self) -> str:
        pids = " ".join(map(str, self.pids))
        return (
            f"A server of an earlier run is still there, since {self.since:%Y-%m-%d %H:%M:%S} (process {pids}): the "
            f"process that was to end it was killed. It holds memory until you end it: kill -9 {pids}"
        )


def find_leftovers() -> list[Leftover]:
    """This user's servers that nothing will end, on this machine; none where there is no /proc."""
    before, keepers, after = processes(KEPT), processes(KEEPS), processes(KEPT)
    # A server that starts or ends between the looks is in one of them alone, or has a keeper.
    left = (tuple(sorted(after[mark])) for mark in before.keys() & after.keys() if mark not in keepers)
    return sorted((Leftover(pids, _since(pids)) for pids in left), key=lambda one: one.since)


def _since(pids: tuple[int, ...]) -> datetime:
    """When the first of the processes started (proc(5): stat's 22nd field, in clock ticks after the boot)."""
    booted = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime"))
    started = []
    for pid in pids:
        with suppress(OSError):
            ticks = int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19])
            started.append(int(booted.split()[1]) + ticks / os.sysconf("SC_CLK_TCK"))
    return datetime.fromtimestamp(min(started, default=time.time()))
