"""A sweep's folder as it stands: what was planned, and how each job is doing by its own records.

Reads JSON alone, so that `vpref status` is quick and says the same whoever runs the jobs, and wherever.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vpref import interrupts
from vpref.domain import Record
from vpref.errors import ConfigError
from vpref.runs.folder import digest_of, read_json

PLAN = "sweep.json"
_EVERY_S = 0.5


class PlannedJob(Record):
    """One job: its number, the folder below the sweep's, and all overrides it is run with."""

    number: int
    folder: str
    overrides: tuple[str, ...]


class Plan(Record):
    """What a sweep is to do. `command` are the arguments it was started with, `-m` among them."""

    verb: str
    vpref: str
    launcher: str
    command: tuple[str, ...]
    jobs: tuple[PlannedJob, ...]


@dataclass(frozen=True)
class Job:
    """How one job, or a run on its own, stands. `state` is waiting, running, finished, failed, interrupted, or gone:
    its process ended without a word. `items` are done ones; figures are None while nothing says them, money also
    where a model's price is not known."""

    path: Path
    overrides: tuple[str, ...]
    state: str
    error: str | None = None
    items: int | None = None
    expected: int | None = None
    figures: dict[str, float] = field(default_factory=dict)
    sent: int = 0
    reused: int = 0
    usd: float | None = 0.0
    usd_saved: float | None = 0.0

    @property
    def finished(self) -> bool:
        return self.state == "finished"


def read_plan(folder: Path) -> Plan:
    """The plan of a sweep. Raises ConfigError where there is none of ours."""
    value = read_json(folder / PLAN)
    try:
        return Plan.model_validate(value)
    except ValueError as error:
        raise ConfigError(f"{folder / PLAN} is no plan of a sweep of ours.") from error


def read_jobs(folder: Path, plan: Plan) -> list[Job]:
    """All jobs of a sweep, in the plan's order."""
    return [read_job(folder / job.folder, job.overrides) for job in plan.jobs]


def read_job(folder: Path, overrides: tuple[str, ...] = ()) -> Job:
    """How one job stands, by the files in its folder."""
    status, manifest = _read(folder / "status.json"), _read(folder / "manifest.json")
    summary = manifest.get("summary") or {}
    calls = summary.get("calls") or {}
    return Job(
        path=folder,
        overrides=overrides or tuple(manifest.get("command") or ()),
        state=_state(status),
        error=status.get("error"),
        items=_lines(folder),
        expected=summary.get("expected"),
        figures=_figures(summary),
        sent=calls.get("sent", 0),
        reused=calls.get("replayed", 0) + calls.get("shared", 0),
        usd=summary.get("usd", 0.0),
        usd_saved=summary.get("usd_saved_by_replay", 0.0),
    )


def outdated(folder: Path) -> str | None:
    """The dataset, or the file of right letters, that a job has read and that is another by now, as where people's
    votes were counted in place of made-up ones. What is no longer there is not another."""
    read = _read(folder / "manifest.json").get("dataset") or {}
    for path, digest in ((read.get("path"), read.get("sha256")), (read.get("truth"), read.get("truth_sha256"))):
        if path and digest and Path(path).is_file() and digest_of(Path(path)) != digest:
            return str(path)
    return None


def own_overrides(jobs: Sequence[Sequence[str]]) -> list[str]:
    """Of each job's overrides those that set it apart from the others; all of a single job's."""
    common = set.intersection(*map(set, jobs)) if len(jobs) > 1 else set()
    return [", ".join(one for one in job if one not in common) for job in jobs]


def stopped(sweep: Path) -> bool:
    """Whether a sweep was told to end: what has not begun is not to begin, and what runs is to end in good order."""
    return bool(_read(sweep / "status.json").get("state") == "interrupted")


def is_ours(sweep: Path) -> bool:
    """Whether this very process runs the sweep, its jobs one after another in itself."""
    status = _read(sweep / "status.json")
    return status.get("pid") == os.getpid() and status.get("host") == socket.gethostname()


@contextmanager
def heeded(sweep: Path | None) -> Iterator[None]:
    """While this is entered, a sweep that is told to end interrupts this process too, on whatever machine it is: the
    word goes by the sweep's folder, so no process must be found, and none is met before it can hear."""
    if sweep is None:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_heed, args=(sweep, over), name="vpref-sweep", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()


def _heed(sweep: Path, over: threading.Event) -> None:
    while not over.wait(_EVERY_S):
        if stopped(sweep):
            if interrupts.noted() is None:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
            return


def living(folder: Path, plan: Plan) -> list[int]:
    """The processes on this machine, other than this one, that still run jobs of a sweep."""
    told = [_read(folder / job.folder / "status.json") for job in plan.jobs]
    here = [one for one in told if one.get("state") == "running" and one.get("host") == socket.gethostname()]
    pids = {int(str(one["pid"])) for one in here if one["pid"] != os.getpid() and alive(one["pid"])}
    return sorted(pids)


def counted(folder: Path, plan: Plan) -> str:
    """How many jobs are in which state, by their status files alone: 2 finished, 1 running, 5 waiting."""
    states = Counter(_state(_read(folder / job.folder / "status.json")) for job in plan.jobs)
    return ", ".join(f"{count} {state}" for state, count in states.most_common())


def _state(status: dict[str, Any]) -> str:
    state = str(status.get("state", "waiting"))
    if state == "running" and status.get("host") == socket.gethostname() and not alive(status.get("pid")):
        return "gone"
    return state


def alive(pid: object) -> bool:
    """Whether a process still runs; one that ended and that nobody waits for, as in a container, does not."""
    try:
        os.kill(int(str(pid)), 0)
    except (OSError, ValueError):
        return False
    try:
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return not Path("/proc/self").exists()  # gone meanwhile; where there is no /proc, it answered
    return state != "Z"


def _lines(folder: Path) -> int | None:
    for name in ("responses.jsonl", "items.jsonl"):
        try:
            return (folder / name).read_bytes().count(b"\n")
        except OSError:
            continue
    return None


def _figures(summary: dict[str, Any]) -> dict[str, float]:
    """Accuracy by variant in percent of an evaluation, the share of accepted items of a generation."""
    found = {variant: groups["overall"]["accuracy"] for variant, groups in (summary.get("accuracy") or {}).items()}
    items = summary.get("items") or {}
    outcomes = {name: items.get(name, 0) for name in ("accepted", "unresolved", "failed")} if items else {}
    if not found and sum(outcomes.values()):
        found["accepted"] = 100 * outcomes["accepted"] / sum(outcomes.values())
    return {name: value for name, value in found.items() if value is not None}


def _read(path: Path) -> dict[str, Any]:
    try:
        value = read_json(path)
    except ConfigError:
        return {}
    return value if isinstance(value, dict) else {}
