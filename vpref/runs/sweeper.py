"""A sweep: its jobs planned, handed to a launcher, and collected by what each wrote down itself.

How a job ended is never learnt from the launcher: launchers differ in what they do when one fails, and a process
that was killed returns nothing. So one job's failure loses no other under any of them. Knows nothing of verbs.
"""

from __future__ import annotations

import json
import shlex
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.basic_launcher import BasicLauncher
from omegaconf import DictConfig, OmegaConf, open_dict

import vpref
from vpref import interrupts
from vpref.errors import ConfigError, Ended, Interrupted, RunStopped
from vpref.runs import schema, sweeps
from vpref.runs.folder import write_json, write_status
from vpref.runs.sweep_table import show
from vpref.runs.sweeps import PLAN, Plan, PlannedJob
from vpref.runs.terminal import say, shown, warn
from vpref.settings import Progress

_LOOK_S = 1.0


class Sweep:
    """One sweep, new or gone on with: a folder that holds a plan already is resumed."""

    def __init__(self, context: Any, config: Any, launcher: Any) -> None:
        self._context = context
        self._config = config
        self._launcher = launcher
        self._folder = Path(str(config.hydra.sweep.dir))
        self._told = 0

    def run(self, batches: Sequence[Sequence[Sequence[str]]]) -> None:
        """Plan, launch and collect. Raises ConfigError before anything runs where a job's config does not fit;
        at the end Ended where the sweep was interrupted, RunStopped where a job did not finish."""
        plan = self._resumed(batches) if (self._folder / PLAN).exists() else self._planned(batches)
        todo = self._todo(plan)
        write_status(self._folder, "running")
        stop: BaseException | None = None
        size = max([len(batch) for batch in batches], default=1)
        try:
            for start in range(0, len(todo), size):
                with self._launching(plan):
                    self._launcher.launch(
                        [_arguments(job) for job in todo[start : start + size]], initial_job_idx=start
                    )
                if self._told:
                    break
        except (Ended, KeyboardInterrupt) as end:
            stop = end
        except Exception as error:  # the launcher's own: a worker that was killed, a queue that refused
            stop = RunStopped(f"The launcher gave up ({type(error).__name__}: {str(error).splitlines()[0]}).")
            stop.__cause__ = error
        self._end(plan, stop)

    def _todo(self, plan: Plan) -> list[PlannedJob]:
        """What did not finish, and what answered a dataset that is another now: its scores would be of the old one."""
        now = dict(zip(plan.jobs, sweeps.read_jobs(self._folder, plan), strict=True))
        changed = {job: path for job, one in now.items() if one.finished and (path := sweeps.outdated(one.path))}
        for path in dict.fromkeys(changed.values()):
            count = sum(one == path for one in changed.values())
            warn(f"{shown(Path(path))} has changed since {count} of {len(now)} jobs read it; they run again.")
        return [job for job, one in now.items() if not one.finished or job in changed]

    def _planned(self, batches: Sequence[Sequence[Sequence[str]]]) -> Plan:
        jobs = []
        for number, overrides in enumerate(one for batch in batches for one in batch):
            given = [_emptied(one) for one in overrides]
            jobs.append(PlannedJob(number=number, folder=self._checked(number, given), overrides=tuple(given)))
        plan = Plan(
            verb=str(self._config.verb),
            vpref=vpref.__version__,
            launcher=str(self._config.hydra.launcher._target_).rpartition(".")[2],
            command=tuple(sys.argv[1:]),
            jobs=tuple(jobs),
        )
        self._folder.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(self._config, self._folder / "multirun.yaml")
        write_json(self._folder / PLAN, plan.model_dump())
        return plan

    def _checked(self, number: int, overrides: list[str]) -> str:
        """The folder of a job, whose config is composed and checked first."""
        config: DictConfig = self._context.config_loader.load_sweep_config(self._config, overrides)
        with open_dict(config):
            config.hydra.job.num = number
            folder = str(config.hydra.sweep.subdir)
            del config["hydra"]
        schema.typed(config, schema.SCHEMAS[str(config.verb)])
        return folder

    def _resumed(self, batches: Sequence[Sequence[Sequence[str]]]) -> Plan:
        plan = sweeps.read_plan(self._folder)
        asked = [tuple(_emptied(one) for one in overrides) for batch in batches for overrides in batch]
        if plan.verb != self._config.verb or [job.overrides for job in plan.jobs] != asked:
            raise ConfigError(
                f"{shown(self._folder)} holds another sweep of {len(plan.jobs)} jobs; choose another hydra.sweep.dir."
            )
        if pids := sweeps.living(self._folder, plan):
            raise ConfigError(
                f"Jobs of {shown(self._folder)} still run (process {', '.join(map(str, pids))}), though what started "
                "them is gone; wait until vpref status shows no more of them, or end them, and give the command again."
            )
        return plan

    @contextmanager
    def _launching(self, plan: Plan) -> Iterator[None]:
        """With Hydra's own launcher the jobs run here and take signals themselves. Other launchers' jobs have their
        own processes, which are told to end by the sweep's status; the launcher waits until they have."""
        if isinstance(self._launcher, BasicLauncher):
            interrupts.heed()
            yield
            return
        with ExitStack() as stack:
            stack.enter_context(interrupts.taken(self._stop))
            stack.enter_context(interrupts.kept_from_children())
            stack.enter_context(self._telling(plan))
            yield

    @contextmanager
    def _telling(self, plan: Plan) -> Iterator[None]:
        """Jobs with a process of their own print elsewhere: how they stand is told here, whenever that changes."""
        if OmegaConf.select(self._config, "driver.progress") in (None, Progress.none):
            yield
            return
        over = threading.Event()
        thread = threading.Thread(target=self._tell, args=(plan, over), name="vpref-sweep-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _tell(self, plan: Plan, over: threading.Event) -> None:
        before = ""
        while not over.wait(_LOOK_S):
            now = sweeps.counted(self._folder, plan)
            if now != before:
                print(f"jobs: {now}", file=sys.stderr, flush=True)
            before = now

    def _stop(self, number: int) -> None:
        self._told += 1
        if self._told > 1:
            interrupts.leave()
            return
        write_status(self._folder, "interrupted", "told to end")
        print("vpref: the sweep ends when its running jobs have; again leaves at once.", file=sys.stderr, flush=True)

    def _end(self, plan: Plan, stop: BaseException | None) -> None:
        interrupts.quiet()
        jobs = sweeps.read_jobs(self._folder, plan)
        name = shown(self._folder)
        again = f"vpref resume {shlex.quote(name)}"
        show(jobs)
        say(f"sweep: {name}")
        if self._told or isinstance(stop, Ended | KeyboardInterrupt):
            number = interrupts.noted() or 2
            write_status(self._folder, "interrupted", "told to end")
            raise Ended(Interrupted(number, f"The sweep was interrupted; go on with: {again}"))
        left = [job for job in jobs if not job.finished]
        if not left:
            write_status(self._folder, "finished")
            return
        why = f" {stop}" if stop is not None else ""
        said = f"{len(left)} of {len(jobs)} jobs did not finish.{why} Mend the cause and run: {again}"
        write_status(self._folder, "failed", said)
        raise RunStopped(said) from stop


def _arguments(job: PlannedJob) -> list[str]:
    return [*job.overrides, f"hydra.sweep.subdir={json.dumps(job.folder)}"]


def _emptied(override: str) -> str:
    """A place for a model swept over null: Hydra empties it by its deletion alone."""
    name, _, value = override.partition("=")
    return f"~{name}" if name.startswith("model@") and value == "null" else override.rstrip("=")
