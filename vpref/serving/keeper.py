"""The process between vpref and a server that it starts: it ends the server's processes as soon as vpref is gone.

vpref holds the other end of this process's standard input. Whatever ends vpref, SIGKILL included, closes it, and
then every process of the server is ended: those of its group, and those that carry its mark in their environment.
Uses the standard library alone and is started by file, so that nothing needs to be importable and little is loaded.

    python keeper.py LOG COMMAND...        with the mark in the environment variable VPREF_KEEPS

Its exit code is the server's, or 128 + n for a server ended by signal n; 0 after an end that was asked for.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

KEEPS = "VPREF_KEEPS"
"""In a keeper's environment: the mark of the server that it keeps."""

KEPT = "VPREF_KEPT"
"""In the environment of a server and all that it starts: its mark."""

GRACE_S = 10.0
"""What a server gets between being told to end and being killed."""

_LOOK_S = 0.1


def main(log: str, command: list[str]) -> int:
    """Run the command until it ends, or until standard input closes or SIGTERM comes."""
    told: list[int] = []
    # Handlers rather than SIG_IGN, which the server would inherit. A terminal's Ctrl-C is vpref's to answer.
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    mark = os.environ.pop(KEEPS)
    with open(log, "ab") as out:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, env=_environment(mark)
        )
    while server.poll() is None and not told:
        if select.select([sys.stdin], [], [], _LOOK_S)[0]:
            told.append(0)
    code = server.returncode
    end(mark, server)
    if code is None:
        return 0
    return code if code >= 0 else 128 - code


def _environment(mark: str) -> dict[str, str]:
    # vLLM names its processes by a library that would write the name over the environment, and so over the mark.
    return dict(os.environ) | {KEPT: mark, "SPT_NOENV": "1"}


def end(mark: str, server: subprocess.Popen[bytes] | None = None, grace_s: float = GRACE_S) -> None:
    """End every process of a server: told first, and killed where that was not enough within `grace_s` seconds."""
    group = None if server is None else server.pid
    _signal(mark, group, signal.SIGTERM)
    if not _gone(mark, server, grace_s):
        _signal(mark, group, signal.SIGKILL)
        _gone(mark, server, grace_s)


def _gone(mark: str, server: subprocess.Popen[bytes] | None, patience_s: float) -> bool:
    """Wait until no process is left, a bounded time."""
    deadline = time.monotonic() + patience_s
    group = None if server is None else server.pid
    while (server is not None and server.poll() is None) or _members(mark, group):
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_S)
    return True


def _signal(mark: str, group: int | None, number: int) -> None:
    if group is not None:
        with suppress(OSError):
            os.killpg(group, number)
    for pid in _members(mark, group):
        with suppress(OSError):
            if os.getpgid(pid) != group:
                os.kill(pid, number)


def _members(mark: str, group: int | None) -> set[int]:
    """The live processes with the mark or in the group; none where there is no /proc."""
    return {*processes(KEPT).get(mark, ()), *(() if group is None else _in_group(group))}


def _in_group(group: int) -> Iterator[int]:
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            state, _, of = entry.read_text(errors="replace").rpartition(")")[2].split()[:3]
            if int(of) == group and state != "Z":
                yield int(entry.parent.name)


def processes(variable: str) -> dict[str, list[int]]:
    """This user's live processes that have the environment variable, by its value; none where there is no /proc."""
    found: dict[str, list[int]] = {}
    start = f"{variable}=".encode()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            values = entry.read_bytes().split(b"\0")  # empty for a process that has ended and waits to be reaped
        except OSError:
            continue
        for value in values:
            if value.startswith(start):
                found.setdefault(value[len(start) :].decode(errors="replace"), []).append(int(entry.parent.name))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
