"""`vpref status FOLDER`, and what a sweep prints at its end: how its jobs stand, and what sharing calls saved."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from vpref.errors import ConfigError
from vpref.reports import Table
from vpref.runs import sweeps
from vpref.runs.sweeps import PLAN, Job
from vpref.runs.terminal import say, show_tables, shown

_TITLES = {"accepted": "Accepted", "plain": "Accuracy, plain", "boxes": "Accuracy, boxes"}


def status(given: list[str]) -> None:
    """Run the verb on folders of runs or sweeps, or folders that hold some."""
    if not given:
        raise ConfigError("How stands what? Give folders of runs or sweeps: vpref status outputs/generate/TIME")
    for name in given:
        say(name if len(given) > 1 else "")
        show(_jobs(Path(name)))


def _jobs(folder: Path) -> list[Job]:
    if (folder / PLAN).exists():
        return sweeps.read_jobs(folder, sweeps.read_plan(folder))
    if (folder / "status.json").exists() or (folder / "manifest.json").exists():
        return [sweeps.read_job(folder)]
    if not folder.is_dir():
        raise ConfigError(f"There is no folder at {folder}; give folders of runs or sweeps.")
    within = sorted(path.parent for path in folder.glob("*/status.json"))
    if not within:
        raise ConfigError(f"{folder} holds no run and no sweep; give folders like outputs/generate/TIME.")
    return [job for path in within for job in _jobs(path)]


def show(jobs: list[Job]) -> None:
    """Print the table, the errors one a line, and the sums."""
    show_tables([jobs_table(jobs)])
    say("")
    for number, job in enumerate(jobs):
        if job.error:
            say(f"{number} {job.state}: {' '.join(job.error.split())}\n  {shown(job.path)}")
    say(sums(jobs))


def jobs_table(jobs: list[Job]) -> Table:
    """One row a job."""
    differing = sweeps.own_overrides([job.overrides for job in jobs])
    figures = [name for name in _TITLES if any(name in job.figures for job in jobs)]
    rows = [
        (
            str(number),
            job.state,
            apart or job.path.name,
            _count(job),
            *(_share(job, name) for name in figures),
            _usd(job.usd),
        )
        for number, (job, apart) in enumerate(zip(jobs, differing, strict=True))
    ]
    return Table(
        name="jobs",
        title="Jobs",
        columns=("Job", "State", "What differs", "Items", *(_TITLES[name] for name in figures), "Cost"),
        texts=frozenset({"State", "What differs"}),
        rows=tuple(rows),
    )


def sums(jobs: list[Job]) -> str:
    """How many jobs are in which state, and what the calls of all of them came to."""
    states = ", ".join(f"{count} {state}" for state, count in Counter(job.state for job in jobs).items())
    sent, reused = sum(job.sent for job in jobs), sum(job.reused for job in jobs)
    share = f" ({100 * reused / (sent + reused):.0f} % of all)" if reused else ""
    return (
        f"jobs: {states}\ncalls: {sent:,} sent, for {_usd(_sum([job.usd for job in jobs]))}; {reused:,} reused{share}, "
        f"which saved {_usd(_sum([job.usd_saved for job in jobs]))}"
    )


def _count(job: Job) -> str:
    if job.items is None:
        return "–"
    return f"{job.items:,}" + (f"/{job.expected:,}" if job.expected not in (None, job.items) else "")


def _share(job: Job, name: str) -> str:
    return f"{job.figures[name]:.1f}%" if name in job.figures else "–"


def _sum(amounts: list[float | None]) -> float | None:
    known = [one for one in amounts if one is not None]
    return sum(known) if len(known) == len(amounts) else None


def _usd(usd: float | None) -> str:
    if usd is None:
        return "unknown"
    return f"${usd:,.4f}" if usd < 1 else f"${usd:,.2f}"
