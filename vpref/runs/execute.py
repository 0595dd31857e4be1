"""One job of Hydra's: its settings checked, its folder kept, its end written down however it ends."""

from __future__ import annotations

import contextlib
import logging
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from vpref import interrupts
from vpref.errors import Ended, Interrupted, VprefError
from vpref.runs import rehearsal, schema, sweeps
from vpref.runs.folder import RunFolder, write_status

log = logging.getLogger("vpref")

Body = Callable[[Any, RunFolder], None]


def execute(verb: str, config: DictConfig, body: Body) -> str:
    """Run a verb's body and give the state it ended in. Its errors go to the job's own log and status (Hydra 1.3
    writes neither); of a single run also on, past Hydra. A job of a sweep raises nothing: a launcher may take an
    exception of one job for the end of all. Only an interruption ends a sweep that runs its jobs in this process.
    """
    hydra = HydraConfig.get()
    folder = Path(hydra.runtime.output_dir)
    sweep = Path(hydra.sweep.dir) if hydra.mode == RunMode.MULTIRUN else None
    apart = sweep is not None and not sweeps.is_ours(sweep)
    with interrupts.watched():
        error: BaseException | None
        begun = False
        try:
            interrupts.heed()
            begun = True
            with _surroundings(folder, sweep if apart else None):
                error = _attempt(verb, config, body, folder, sweep)
            interrupts.quiet()
            if interrupts.noted() and not isinstance(error, VprefError | None):
                error = _interruption()  # raised in the midst of others' code, an import say, it becomes anything
        except KeyboardInterrupt:  # of signals one comes at most, so that nothing below is disturbed
            error = _interruption() if begun or sweep is None else _NotBegun()
        state = _write_end(folder, error)
    if isinstance(error, SystemExit):
        raise error
    if error is not None and (sweep is None or (isinstance(error, Interrupted) and not apart)):
        raise Ended(error) if isinstance(error, VprefError) else error
    return state


def _attempt(verb: str, config: DictConfig, body: Body, folder: Path, sweep: Path | None) -> BaseException | None:
    """The error that the body ended with, if any. KeyboardInterrupt alone is raised: it may come from any line."""
    run: RunFolder | None = None
    try:
        write_status(folder, "running")
        if sweep is not None and sweeps.stopped(sweep):
            return _NotBegun()
        run = RunFolder(folder, schema.plain(config), list(HydraConfig.get().overrides.task))
        body(rehearsal.rehearsed(schema.typed(config, schema.SCHEMAS[verb])), run)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return error
    finally:
        if run is not None:
            run.close()
    return None


class _NotBegun(Interrupted):
    """The sweep was stopped before this job of it did anything."""

    def __init__(self) -> None:
        super().__init__(signal.SIGTERM, "the sweep was stopped before this job began")


def _interruption() -> Interrupted:
    number = interrupts.noted() or signal.SIGINT
    name = signal.Signals(number).name
    return Interrupted(number, f"Interrupted by {name}; give the same command again to go on from here.")


def _write_end(folder: Path, error: BaseException | None) -> str:
    if error is None:
        state, said = "finished", None
    elif isinstance(error, _NotBegun):
        state, said = "waiting", None
    elif isinstance(error, Interrupted):
        state, said = "interrupted", str(error)
    elif isinstance(error, VprefError):
        state, said = "failed", str(error)
        log.error("%s", error, exc_info=error)
    else:
        state, said = "failed", f"{type(error).__name__}: {error}"
        log.error("the run failed", exc_info=error)
    write_status(folder, state, said)
    return state


@contextlib.contextmanager
def _surroundings(folder: Path, sweep: Path | None) -> Iterator[None]:
    """Of a job in a process of its own: it heeds its sweep's end, and prints into its folder, since several would
    mix in one terminal."""
    if sweep is None:
        yield
        return
    with (
        (folder / "output.txt").open("w", encoding="utf-8", buffering=1) as printed,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        sweeps.heeded(sweep),
    ):
        yield
