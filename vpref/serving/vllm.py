"""vLLM as a child of vpref: how it is started, when it serves the right model, and how it ends.

A server is known by what it is started with (`Launch`): settings that differ in other things share one. Refuses to
know of runs, roles and what is asked.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from vpref.errors import ConfigError, RunStopped
from vpref.serving import keeper
from vpref.settings import ModelSettings

HOST = "127.0.0.1"
LAST_LINES = 20
_LOOK_S = 0.25
_ENDED = re.compile(r"((?:[A-Za-z_]+\.)*[A-Z]\w*(?:Error|Exception|Interrupt): .+)")
_ECHO = "Engine core initialization failed"


@dataclass(frozen=True)
class Launch:
    """All that decides which server is started; hashable. `environment` is added to vpref's own."""

    name: str
    python: str
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    port: int
    start_s: float

    def command(self, port: int) -> list[str]:
        """The command line. The module rather than the `vllm` command: it runs wherever vLLM can be imported."""
        module = [self.python, "-m", "vllm.entrypoints.openai.api_server"]
        return [*module, *self.arguments, "--host", HOST, "--port", str(port)]

    def surroundings(self) -> dict[str, str]:
        """The environment to start it in."""
        return dict(os.environ) | dict(self.environment)


def launch_of(model: ModelSettings) -> Launch:
    """What to start for a model of `serve: managed`. Raises ConfigError where its Python cannot be found."""
    settings = model.vllm
    python = sys.executable if settings.python is None else shutil.which(os.path.expanduser(settings.python))
    if python is None:
        raise ConfigError(f"There is no Python at vllm.python={settings.python}; give one that vLLM is installed for.")
    checkpoint = os.path.expanduser(settings.checkpoint or model.name)
    own = {"model": checkpoint, "served_model_name": model.name, "revision": settings.revision}
    gpus = {} if settings.gpus is None else {"CUDA_VISIBLE_DEVICES": settings.gpus}
    return Launch(
        name=model.name,
        python=python,
        arguments=tuple(word for name, value in (own | settings.arguments).items() for word in _words(name, value)),
        environment=tuple(sorted((settings.environment | gpus).items())),
        port=settings.port,
        start_s=settings.start_s,
    )


def _words(name: str, value: Any) -> list[str]:
    """An argument as words of a command line: `true` a flag, `false` its `no-` form, a mapping JSON, a list words."""
    flag = "--" + name.replace("_", "-")
    if value is None:
        return []
    if isinstance(value, bool):
        return [flag if value else flag.replace("--", "--no-", 1)]
    if isinstance(value, dict):
        return [flag, json.dumps(value)]
    return [flag, *map(str, value if isinstance(value, list) else [value])]


class Server:
    """A server that was started. `ready` waits until it serves; `end` ends all its processes."""

    def __init__(self, launch: Launch, log: Path) -> None:
        """Start it; its output is appended to `log`. Raises ConfigError where that cannot be done."""
        _check_installed(launch)
        self.launch = launch
        self.log = log
        self.port = _free_port(launch)
        self.mark = secrets.token_hex(8)
        self.served = False
        self._logged = log.stat().st_size if log.exists() else 0
        self._began = time.monotonic()
        self._keeper = subprocess.Popen(
            [sys.executable, "-P", keeper.__file__, str(log), *launch.command(self.port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=launch.surroundings() | {keeper.KEEPS: self.mark},
        )

    @property
    def base_url(self) -> str:
        return f"http://{HOST}:{self.port}/v1"

    @property
    def waited_s(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self._began

    def ready(self, look: Callable[[], None]) -> None:
        """Wait until it serves the model, calling `look` several times a second (to raise what ends the wait).

        Raises RunStopped where it ends early, takes longer than its limit, or serves something else.
        """
        while not self.serves():
            look()
            if self.waited_s > self.launch.start_s:
                raise RunStopped(
                    f"vLLM did not serve {self.launch.name} within {self.launch.start_s:g} s; its log is {self.log}. "
                    "Give it longer: vllm.start_s=SECONDS."
                )
            time.sleep(_LOOK_S)

    def serves(self) -> bool:
        """Whether the model can be asked now. Raises RunStopped where it never will be."""
        names = _served_names(self.port)
        self.check()  # after the question: another server may have taken the port and answer in its place
        if names is not None and self.launch.name not in names:
            raise RunStopped(
                f"What answers on port {self.port} serves {', '.join(names) or 'nothing'} and not {self.launch.name}; "
                f"vLLM's log is {self.log}."
            )
        self.served = self.served or names is not None
        return names is not None

    def check(self) -> None:
        """Raises RunStopped with the reason, as far as the log tells it, where the server has ended by itself."""
        code = self._keeper.poll()
        if code is None:
            return
        how = f"by signal {code - 128}" if code > 128 else f"with exit code {code}"
        reason = next((one for one in reversed(self._reasons()) if _ECHO not in one), None)
        told = f": {reason[:300].rstrip('.')}" if reason else ""
        when = "after it had served" if self.served else "before it served"
        raise RunStopped(f"vLLM ended {how} {when} {self.launch.name}{told}; its log is {self.log}.")

    def version(self) -> str | None:
        """vLLM's, as the server tells it."""
        told = _get(self.port, "/version")
        return told.get("version") if isinstance(told, dict) else None

    def last_lines(self) -> list[str]:
        """The end of what this server wrote into its log."""
        return self._written().splitlines()[-LAST_LINES:]

    def end(self) -> None:
        """End all its processes and wait for that, a bounded time; again is harmless."""
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        try:
            self._keeper.wait(3 * keeper.GRACE_S)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        keeper.end(self.mark)  # a keeper that was killed has ended nothing

    def _reasons(self) -> list[str]:
        return _ENDED.findall(self._written())

    def _written(self) -> str:
        try:
            with self.log.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(self._logged, size - 2**18))
                return file.read().decode(errors="replace")
        except OSError:
            return ""


def _check_installed(launch: Launch) -> None:
    # A folder that happens to be called vllm is found as well, but has no origin.
    look = "import importlib.util as u, sys; found = u.find_spec('vllm'); sys.exit(not (found and found.origin))"
    try:
        found = subprocess.run(
            [launch.python, "-c", look],
            env=launch.surroundings(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            start_new_session=True,  # a Ctrl-C is no answer to the question
        )
    except OSError as error:
        raise ConfigError(f"{launch.python} cannot be run ({error.strerror}); set vllm.python to a Python.") from error
    if found.returncode:
        raise ConfigError(
            f"vLLM is not installed for {launch.python}: install it there (pip install vllm), set vllm.python to a "
            "Python that has it, or give the address of a server (serve=external, base_url=...)."
        )


def _free_port(launch: Launch) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what just ended there does not count
        try:
            probe.bind((HOST, launch.port))
        except OSError as error:
            raise ConfigError(
                f"Port {launch.port} for vLLM cannot be used ({error.strerror}); set vllm.port to another one, or to 0 "
                "for any free port."
            ) from error
        return int(probe.getsockname()[1])


def _served_names(port: int) -> list[str] | None:
    """The models that what listens there lists; None while nothing answers."""
    told = _get(port, "/v1/models")
    if not isinstance(told, dict):
        return None
    return [str(one.get("id")) for one in told.get("data") or () if isinstance(one, dict)]


def _get(port: int, path: str) -> Any:
    """The JSON answer of a server on this machine, past any proxy; None where there is none."""
    connection = HTTPConnection(HOST, port, timeout=5.0)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return json.loads(answer.read()) if answer.status == 200 else None
    except (OSError, HTTPException, ValueError):
        return None
    finally:
        connection.close()
