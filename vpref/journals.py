"""Append-only files of lines, whole at any moment: by one writer, or by several processes at once.

Knows nothing of what the lines say.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from vpref.errors import RunStopped

M = TypeVar("M", bound=BaseModel)


class Journal:
    """An append-only file of lines. A line is on disk whole when `append` returns, or not at all."""

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        self.path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if fresh else 0)
        self._fd = os.open(path, flags, 0o644)
        self._size = os.fstat(self._fd).st_size
        self._dirty = False

    def append(self, line: bytes) -> int:
        """Add one line (without its newline) and return its offset. When the disk is full the part that was
        written is taken back and RunStopped raised."""
        data = line + b"\n"
        try:
            written = os.write(self._fd, data)
            while written < len(data):
                written += os.write(self._fd, data[written:])
        except OSError as error:
            os.ftruncate(self._fd, self._size)
            raise RunStopped(
                f"Cannot write to {self.path} ({error.strerror}); nothing is torn. Make room and give the same "
                "command again: stored replies are not asked for twice."
            ) from error
        offset, self._size, self._dirty = self._size, self._size + len(data), True
        return offset

    def lock(self) -> None:
        """Mark the file as written by this process for as long as it lives."""
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def sync(self) -> None:
        """Push what was appended through to the disk (against power loss; a kill loses nothing anyway)."""
        if self._dirty:
            self._dirty = False
            os.fsync(self._fd)

    def close(self) -> None:
        self.sync()
        os.close(self._fd)


class SharedJournal:
    """A file that several processes may append to, one whole line a write. A context manager; the file and its
    folder are made at the first line. What it holds only saves time: deleting it is safe."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def __enter__(self) -> SharedJournal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def append(self, record: BaseModel) -> None:
        """Add a record as one line of JSON. Raises RunStopped when it cannot be written."""
        line = record.model_dump_json(exclude_none=True).encode() + b"\n"
        try:
            if self._fd is None:
                self._fd = self._open()
            if os.write(self._fd, line) < len(line):  # with O_APPEND, lines of several processes do not mix
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise RunStopped(f"{self.path} cannot be written: {error.strerror}; mend that and start again.") from error

    def _open(self) -> int:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            os.write(fd, b"\n")  # ends a line that a killed process left torn, so that ours is not lost with it
        return fd


def read_records(path: Path, model: type[M]) -> list[M]:
    """The records of a shared journal; none without a file. A line that does not parse is as good as absent."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return []
    records = []
    for line in lines:
        try:
            records.append(model.model_validate_json(line))
        except ValidationError:
            continue
    return records
