"""The folder of one run: manifest, status, log and records. Knows nothing of what a run does."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import vpref
from vpref.errors import ConfigError
from vpref.journals import Journal
from vpref.redaction import redact

_PACKAGES = ("openai", "pydantic", "Pillow", "hydra-core", "omegaconf", "aiohttp", "wandb", "torch", "transformers")
_EVERY_S = 5.0


class RunFolder:
    """`<outputs>/<verb>/<time>/`: every line printed of a run leads back to files here."""

    def __init__(self, path: Path, config: dict[str, Any], overrides: list[str]) -> None:
        self.path = path
        self.config = config
        self.overrides = overrides
        self._manifest: dict[str, Any] = {
            "verb": config["verb"],
            "vpref": vpref.__version__,
            "started": _now(),
            "command": overrides,
            "config": config,
            "versions": _versions(),
            "commit": _commit(),
        }
        self._journals: dict[str, Journal] = {}
        self._noted = time.monotonic()
        self.note()

    def note(self, **facts: Any) -> None:
        """Add facts to the manifest: digests of the data, who answers, the summary."""
        self._manifest |= facts
        write_json(self.path / "manifest.json", self._manifest)

    def record(self, kind: str, value: BaseModel) -> None:
        """Append one record to `<kind>.jsonl`, which this run begins anew: a resumed run replays."""
        if kind not in self._journals:
            self.begin(kind)
        self._journals[kind].append(value.model_dump_json().encode())

    def begin(self, kind: str) -> Path:
        """`<kind>.jsonl`, empty: there also when nothing comes to be recorded."""
        self._journals[kind] = Journal(self.path / f"{kind}.jsonl", fresh=True)
        return self._journals[kind].path

    def progress(self, summary: Callable[[], Mapping[str, Any]]) -> None:
        """Note how far the run is, for `vpref status`; `summary` is called only when it is time to write."""
        if time.monotonic() - self._noted >= _EVERY_S:
            self._noted = time.monotonic()
            self.note(summary=summary())

    def close(self) -> None:
        for journal in self._journals.values():
            journal.close()
        self._journals.clear()


def write_status(folder: Path, state: str, error: str | None = None) -> None:
    """Say how a run or a sweep stands: waiting, running, finished, failed or interrupted; and whose word it is."""
    value = {
        "state": state,
        "error": error and redact(error),
        "at": _now(),
        "pid": os.getpid(),
        "host": socket.gethostname(),
    }
    write_json(folder / "status.json", value)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole or not at all, without secrets."""
    text = redact(json.dumps(value, indent=1, ensure_ascii=False, default=str))
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise ConfigError(
            f"Cannot write {path} ({error.strerror}); choose a folder that can be: outputs=DIR."
        ) from error


def read_json(path: Path) -> Any:
    """A JSON file of ours; ConfigError where there is none that can be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read {path} ({error.strerror}).") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON ({error}).") from error


def digest_of(path: Path) -> str:
    """The sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "platform": f"{sys.platform}-{platform.machine()}"}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _commit() -> str | None:
    """The commit of the code that runs, `+changes` where it differs from it; None outside a checkout."""
    here = Path(vpref.__file__).parents[1]
    if not (here / ".git").exists():
        return None
    try:
        head = _git(here, "rev-parse", "HEAD")
        return head + ("+changes" if _git(here, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()
