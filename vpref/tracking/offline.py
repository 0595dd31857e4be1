"""W&B's offline files: whether what they refer to is there, and pointing them at where it lies now.

A `.wandb` file is a log of records (LevelDB's format: blocks of 32 KiB, chunks with a checksum). Its artifacts name
their files by absolute paths; `wandb sync` leaves out those it does not find, without an error. So before a run is
synced from another place, these paths are rewritten. Every other record keeps its bytes. Knows nothing of networks.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_HEAD = struct.pack("<4sHB", b":W&B", 0xBEE1, 0)
_CHUNK = struct.Struct("<IHB")
_BLOCK = 32 * 1024
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


@dataclass(frozen=True)
class Mirror:
    """One offline run as it was left. `code` is its exit code, None where it never came to its end. `moved` files are
    referred to by a path that is not where they lie; `missing` are nowhere in the run's folder."""

    path: Path
    records: int
    code: int | None
    files: int
    moved: int
    missing: tuple[str, ...]


def find_mirrors(folder: Path) -> list[Path]:
    """The folders of offline runs in a run's folder or below: of each run the newest alone, since a resumed run
    holds again what the one before it held."""
    newest: dict[Path, Path] = {}
    for path in sorted(folder.rglob("offline-run-*")):
        if path.parent.name == "wandb" and any(path.glob("run-*.wandb")):
            newest[path.parents[1]] = path
    return list(newest.values())


def repoint(mirror: Path) -> Mirror:
    """Make a run's paths say where its files lie, and tell what is there. The file is replaced whole or not at all,
    and only where a path changes.

    Raises ValueError where it holds nothing that can be read, OSError where it cannot be read or replaced.
    """
    (path,) = mirror.glob("run-*.wandb")
    home = mirror.parents[1].resolve()
    payloads, code, files, moved, missing = [], None, 0, 0, []
    for payload in read_log(path.read_bytes()):
        record = _parsed(payload)
        if record.WhichOneof("record_type") == "exit":
            code = record.exit.exit_code
        changed = False
        for entry in _entries(record):
            files += 1
            now = _now(entry.local_path, home, entry.size)
            if now is None:
                missing.append(entry.path)
            elif now != entry.local_path:
                entry.local_path, changed, moved = now, True, moved + 1
        payloads.append(record.SerializeToString() if changed else payload)
    if not payloads:
        raise ValueError("it ended before W&B wrote anything down")
    if moved:
        _replace(path, write_log(payloads))
    return Mirror(mirror, len(payloads), code, files, moved, tuple(missing))


def _parsed(payload: bytes) -> Any:
    from wandb.proto import wandb_internal_pb2

    record = wandb_internal_pb2.Record()  # type: ignore[attr-defined]  # made at import, by protobuf
    record.ParseFromString(payload)
    return record


def _entries(record: Any) -> list[Any]:
    """The files of the artifact that a record holds, if it does."""
    kind = record.WhichOneof("record_type")
    if kind == "artifact":
        artifact = record.artifact
    elif kind == "request" and record.request.WhichOneof("request_type") == "log_artifact":
        artifact = record.request.log_artifact.artifact
    else:
        return []
    return [entry for entry in artifact.manifest.contents if entry.local_path]


def _now(local_path: str, home: Path, size: int) -> str | None:
    """Where a file lies in the folder that a run has now: under the longest end of its old path that is there."""
    parts = Path(local_path).parts
    if Path(local_path).is_relative_to(home) and _fits(Path(local_path), size):
        return local_path
    for start in range(1, len(parts)):
        candidate = home.joinpath(*parts[start:])
        if _fits(candidate, size):
            return str(candidate)
    return None


def _fits(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def read_log(data: bytes) -> Iterator[bytes]:
    """The records of a log up to its end, or to where a killed run tore it."""
    if data[: len(_HEAD)] != _HEAD:
        raise ValueError("it is no file of W&B's that this version reads")
    place, parts = len(_HEAD), b""
    while place + _CHUNK.size <= len(data):
        left = _BLOCK - place % _BLOCK
        if left < _CHUNK.size:
            place += left
            continue
        checksum, length, kind = _CHUNK.unpack_from(data, place)
        place += _CHUNK.size
        piece = data[place : place + length]
        if len(piece) < length or _checksum(kind, piece) != checksum:
            return
        place += length
        parts = piece if kind in (_FULL, _FIRST) else parts + piece
        if kind in (_FULL, _LAST):
            yield parts


def write_log(payloads: list[bytes]) -> bytes:
    """A log of records: their bytes, cut into chunks that no block's end runs through."""
    log = bytearray(_HEAD)
    for payload in payloads:
        begun = False
        while True:
            left = _BLOCK - len(log) % _BLOCK
            if left < _CHUNK.size:
                log += bytes(left)
                continue
            piece = payload[: left - _CHUNK.size]
            payload = payload[len(piece) :]
            kind = (_MIDDLE if payload else _LAST) if begun else (_FIRST if payload else _FULL)
            log += _CHUNK.pack(_checksum(kind, piece), len(piece), kind) + piece
            begun = True
            if not payload:
                break
    return bytes(log)


def _checksum(kind: int, piece: bytes) -> int:
    return zlib.crc32(piece, zlib.crc32(bytes([kind])))


def _replace(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(data)
    draft.replace(path)
