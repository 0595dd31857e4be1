"""Reads what W&B's client wrote offline, on its own: neither the client's reader nor ours.

A `.wandb` file is a log in LevelDB's format, of W&B's protobuf records: a head of 7 bytes, then blocks of 32 KiB of
chunks `crc32 | length | kind | data`.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Kept:
    """An artifact: its files by name, with the paths that W&B would upload them from."""

    name: str
    kind: str
    used: bool
    digest: str
    facts: dict[str, Any]
    files: dict[str, Path]


@dataclass
class Mirrored:
    """One offline run."""

    path: Path
    name: str = ""
    group: str = ""
    job_type: str = ""
    tags: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    artifacts: list[Kept] = field(default_factory=list)
    axes: dict[str, str] = field(default_factory=dict)
    code: int | None = None

    def series(self, key: str) -> list[Any]:
        return [row[key] for row in self.history if key in row]

    def table(self, key: str) -> list[dict[str, Any]]:
        """A table's rows; an image is a mapping with the `local` path that it would be uploaded from."""
        if self.summary[key]["_type"] == "incremental-table-file":
            found = [one for one in self.artifacts if one.name.endswith(f"-incr-{key}")]
        else:
            found = [one for one in self.artifacts if f"{key}.table.json" in one.files][-1:]
        return [row for one in found for row in _rows(one)]

    def kept(self, kind: str) -> Kept:
        (one,) = (one for one in self.artifacts if one.kind == kind)
        return one

    def files(self) -> list[Path]:
        """Every file that would be uploaded."""
        return [path for one in self.artifacts for path in one.files.values()]


def _rows(artifact: Kept) -> Iterator[dict[str, Any]]:
    (path,) = (path for name, path in artifact.files.items() if name.endswith(".table.json"))
    document = json.loads(path.read_text())
    for values in document["data"]:
        row = dict(zip(document["columns"], values, strict=True))
        for cell in row.values():
            if isinstance(cell, dict):
                cell["local"] = artifact.files[cell["path"]]
        yield row


def mirrors(root: Path) -> list[Mirrored]:
    """All offline runs below a folder, in the order of their folders."""
    return [_read(path) for path in sorted(root.rglob("offline-run-*/run-*.wandb"))]


def mirror(root: Path) -> Mirrored:
    (one,) = mirrors(root)
    return one


def _read(path: Path) -> Mirrored:
    read = Mirrored(path)
    for record in records(path):
        match record.WhichOneof("record_type"):
            case "run":
                run = record.run
                read.name, read.group, read.job_type = run.display_name, run.run_group, run.job_type
                read.tags = list(run.tags)
                _update(read.config, run.config.update)
            case "config":
                _update(read.config, record.config.update)
            case "summary":
                _update(read.summary, record.summary.update)
            case "history":
                read.history.append({})
                _update(read.history[-1], record.history.item)
            case "metric":
                read.axes[record.metric.name] = record.metric.step_metric
            case "artifact":
                read.artifacts.append(_kept(record.artifact))
            case "request" if record.request.WhichOneof("request_type") == "log_artifact":
                read.artifacts.append(_kept(record.request.log_artifact.artifact))
            case "exit":
                read.code = record.exit.exit_code
    return read


def _kept(artifact: Any) -> Kept:
    files = {entry.path: Path(entry.local_path) for entry in artifact.manifest.contents}
    facts = json.loads(artifact.metadata or "{}")
    return Kept(artifact.name, artifact.type, artifact.use_after_commit, artifact.digest, facts, files)


def _update(target: dict[str, Any], items: Any) -> None:
    for item in items:
        *way, last = list(item.nested_key) or [item.key]
        inner = target
        for key in way:
            inner = inner.setdefault(key, {})
        inner[last] = json.loads(item.value_json)


def records(path: Path) -> list[Any]:
    from wandb.proto import wandb_internal_pb2

    made: Any = vars(wandb_internal_pb2)["Record"]
    return [made.FromString(payload) for payload in payloads(path.read_bytes())]


def payloads(data: bytes) -> Iterator[bytes]:
    """The records' bytes. A chunk that is torn or changed is an error."""
    assert data[:7] == struct.pack("<4sHB", b":W&B", 0xBEE1, 0)
    place, parts = 7, b""
    while place < len(data):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        checksum, length, kind = struct.unpack_from("<IHB", data, place)
        piece = data[place + 7 : place + 7 + length]
        assert zlib.crc32(bytes([kind]) + piece) == checksum, f"a bad chunk at byte {place}"
        place += 7 + length
        parts = parts + piece if kind in (3, 4) else piece
        if kind in (1, 4):
            yield parts
