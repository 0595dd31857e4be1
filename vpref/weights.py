"""Who a checkpoint is: of a folder what it holds, of the hub its name and revision.

A call's key holds this, so that a folder that is moved keeps its replies and one that is changed does not. Refuses
to know how weights are loaded; loads nothing heavy.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from pathlib import Path
from typing import Any

from vpref.errors import ConfigError

_COUNTED = frozenset(
    {".json", ".txt", ".model", ".jinja", ".tiktoken", ".py", ".safetensors", ".bin", ".pt", ".pth", ".gguf"}
)
"""What loaders read. A readme or a picture may change without a reply changing."""

_LARGE = 2**20  # bytes; smaller files are read each time, the digests of others are remembered
_SETTLED_S = 5.0  # a file just written may be written again within its clock's tick

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def identity(checkpoint: str, revision: str | None, memory: Path) -> str:
    """`sha256:...` over a folder's files, or `name@revision` of a checkpoint on the hub (`main` without a revision:
    it is taken to stay as it is, so pin a commit where it may not).

    `memory` is a file that remembers the digests of large files by size and time, for gigabytes take a while.
    Raises ConfigError where there is no such folder or it holds no checkpoint.
    """
    folder = Path(checkpoint).expanduser()
    if folder.is_dir():
        return f"sha256:{_folder_digest(folder, memory)}"
    if not _HUB_NAME.fullmatch(checkpoint):
        raise ConfigError(
            f"There is no checkpoint folder at {checkpoint}; give a folder, or a name on the Hugging Face hub like "
            "organisation/name."
        )
    return f"{checkpoint}@{revision or 'main'}"


def _folder_digest(folder: Path, memory: Path) -> str:
    if not (folder / "config.json").is_file():
        raise ConfigError(f"{folder} holds no checkpoint: it has no config.json.")
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix in _COUNTED
        and path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    known = _recall(memory)
    before = dict(known)
    try:
        lines = [f"{path.relative_to(folder).as_posix()}\t{_file_digest(path, known)}\n" for path in files]
    except OSError as error:
        raise ConfigError(f"Cannot read {error.filename} ({error.strerror}).") from error
    if known != before:
        _remember(memory, known)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _file_digest(path: Path, known: dict[str, Any]) -> str:
    real = path.resolve()
    stat = real.stat()
    if stat.st_size < _LARGE:
        return hashlib.sha256(real.read_bytes()).hexdigest()
    seen = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
    remembered = known.get(str(real))
    if isinstance(remembered, list) and remembered[:3] == seen and len(remembered) == 4:
        return str(remembered[3])
    with real.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if time.time() - stat.st_mtime > _SETTLED_S:
        known[str(real)] = [*seen, digest]
    return digest


def _recall(memory: Path) -> dict[str, Any]:
    try:
        value = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _remember(memory: Path, known: dict[str, Any]) -> None:
    partial = memory.with_name(f".{memory.name}.{os.getpid()}")
    with contextlib.suppress(OSError):  # what cannot be remembered is read again
        memory.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(known), encoding="utf-8")
        partial.replace(memory)
