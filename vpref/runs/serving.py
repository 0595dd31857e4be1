"""The vLLM servers of a run: brought up before it, ended after it; between the jobs of a sweep they stay up."""

from __future__ import annotations

import atexit
import shlex
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode

from vpref import interrupts
from vpref.errors import Interrupted, RunStopped
from vpref.redaction import redact
from vpref.runs.folder import RunFolder
from vpref.runs.schema import slug
from vpref.runs.terminal import shown
from vpref.serving.leftovers import find_leftovers
from vpref.serving.vllm import Launch, Server, launch_of
from vpref.settings import DriverSettings, ModelSettings, Progress

_up: dict[Launch, Server] = {}
"""The servers of this process. A sweep's next job finds here what the last one left."""


@contextmanager
def brought_up(
    models: Iterable[ModelSettings], folder: RunFolder, driver: DriverSettings
) -> Iterator[Callable[[ModelSettings], Server]]:
    """Servers of all these models, each serving; yields how to find a model's. Models that are started alike share
    one. Their logs lie in the run's folder.

    Raises ConfigError where one cannot be started, RunStopped where it does not come to serve, Interrupted where a
    signal ends the wait.
    """
    launches = dict.fromkeys(map(launch_of, models))
    try:
        _bring_up(launches, folder, driver)
    except BaseException:
        _end(list(_up))
        raise
    try:
        folder.note(serving=[_facts(_up[launch]) for launch in launches])
        yield lambda model: _up[launch_of(model)]
    finally:
        if not _in_sweep():
            _end(list(_up))


def _bring_up(launches: Collection[Launch], folder: RunFolder, driver: DriverSettings) -> None:
    with _signals_noted() as look:
        _end([one for one in _up if one not in launches])
        for leftover in find_leftovers():
            print(leftover, file=sys.stderr, flush=True)
        for launch in launches:
            look()
            _start(launch, folder, driver)
        for launch in launches:
            _await(_up[launch], look, driver)


def _in_sweep() -> bool:
    return HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN


def _start(launch: Launch, folder: RunFolder, driver: DriverSettings) -> None:
    if launch in _up:
        try:
            if _up[launch].serves():
                return
        except RunStopped as stop:
            print(f"{redact(str(stop))} It is started again.", file=sys.stderr, flush=True)
        _end([launch])
    if not _up:
        atexit.register(lambda: _end(list(_up)))
    _up[launch] = Server(launch, _log(launch, folder.path))
    _tell(driver, f"vLLM: starting {launch.name} on port {_up[launch].port}; log: {shown(_up[launch].log)}")


def _log(launch: Launch, folder: Path) -> Path:
    """Two servers of one name, told apart by other settings, have logs of their own."""
    taken = {server.log for server in _up.values()}
    names = (f"vllm_{slug(launch.name)}{number}.log" for number in ("", *(f"_{n}" for n in range(2, 100))))
    return next(folder / name for name in names if folder / name not in taken)


def _await(server: Server, look: Callable[[], None], driver: DriverSettings) -> None:
    told = time.monotonic()

    def looking() -> None:
        nonlocal told
        look()
        if time.monotonic() - told >= driver.every_s:
            told = time.monotonic()
            _tell(driver, f"vLLM: {server.launch.name} is not ready after {server.waited_s:.0f} s")

    if server.served:
        return
    try:
        server.ready(looking)
    except Interrupted:
        raise
    except RunStopped:
        _show_end(server)
        raise
    _tell(driver, f"vLLM: {server.launch.name} is ready after {server.waited_s:.0f} s")


def _show_end(server: Server) -> None:
    lines = server.last_lines()
    if lines:
        print(redact("\n".join(["vLLM's last lines:", *(f"  {line}" for line in lines)])), file=sys.stderr, flush=True)


def _tell(driver: DriverSettings, text: str) -> None:
    if driver.progress is not Progress.none:
        print(text, file=sys.stderr, flush=True)


def _facts(server: Server) -> dict[str, object]:
    return {
        "model": server.launch.name,
        "command": shlex.join(server.launch.command(server.port)),
        "vllm": server.version(),
        "log": str(server.log),
    }


def _end(launches: Iterable[Launch]) -> None:
    for launch in launches:
        if (server := _up.pop(launch, None)) is not None:
            server.end()


@contextmanager
def _signals_noted() -> Iterator[Callable[[], None]]:
    """While this is entered SIGINT and SIGTERM are noted; the yielded function, and leaving, raise Interrupted for
    one that was."""
    noted: list[int] = []

    def look() -> None:
        if noted:
            name = signal.Signals(noted[0]).name
            raise Interrupted(noted[0], f"Interrupted by {name}; give the same command again to go on from here.")

    with interrupts.taken(noted.append):
        yield look
    look()
