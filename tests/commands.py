"""The command as a user gives it: a process of its own, in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
QUIET = ["tracking=none", "driver.progress=none"]


def environment(**more: str) -> dict[str, str]:
    """This environment without anybody's keys and W&B settings."""
    left_out = ("WANDB", "PYTHONDONTWRITEBYTECODE")  # compiling vpref anew at every start would take half the time
    kept = {k: v for k, v in os.environ.items() if not k.startswith(left_out) and not k.endswith(("_KEY", "_TOKEN"))}
    return kept | {"PYTHONWARNINGS": "error", "PYTHONPATH": str(ROOT), "COLUMNS": "120"} | more


def start(*arguments: str, cwd: Path, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "vpref", *arguments],
        cwd=cwd,
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: str, cwd: Path, code: int = 0, timeout_s: float = 120, **more: Any) -> tuple[str, str]:
    """Run to the end and return what was printed; the exit code must be as said."""
    process = start(*arguments, cwd=cwd, **more)
    out, errors = process.communicate(timeout=timeout_s)
    assert process.returncode == code, f"exit code {process.returncode}, not {code}\n{out}\n{errors}"
    return out, errors


def complaint(*arguments: str, cwd: Path, code: int = 2, **more: Any) -> str:
    """The one sentence of a command that cannot be done, and no traceback."""
    _, errors = run(*arguments, cwd=cwd, code=code, **more)
    lines = errors.splitlines()
    assert len(lines) == 1, errors
    assert lines[0].startswith("vpref: ")
    return lines[0]


def run_folder(out: str) -> Path:
    """The folder that a command says its records are in."""
    line = next(line for line in out.splitlines() if line.startswith("records: "))
    return Path(line.removeprefix("records: "))


@contextmanager
def simulator(log: Path, *settings: str) -> Iterator[str]:
    """`vpref simulate` in a process of its own; yields its base URL."""
    process = start("simulate", f"simulator.log={log}", *settings, cwd=log.parent)
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        assert "http://" in first, (first, process.stderr and process.stderr.read())
        yield next(word for word in first.split() if word.startswith("http://"))
    finally:
        process.terminate()
        process.communicate(timeout=30)


def at(base_url: str, *, api: str = "chat") -> list[str]:
    """Overrides that put a server into every role of the pipeline."""
    return [
        "model@pipeline.model=compatible",
        f"pipeline.model.base_url={base_url}",
        "pipeline.model.name=simulator",
        f"pipeline.model.api={api}",
        "pipeline.model.limits.timeout_s=1.5",
    ]


def read_log(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]
