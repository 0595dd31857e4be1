"""The call store: every completed reply, appended under its request's key, shared by all runs.

A folder of JSON-lines segments, each written by one process alone, so that no lock guards a write and no
reader meets a line half written by another. A line is whole or (the last one, after a kill) ignored. Readers
keep offsets, not replies, and follow the segments of other live processes. Refuses to know what a key is
made of or what a reply means.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
from pathlib import Path
from typing import Final

from vpref.errors import ConfigError
from vpref.journals import Journal

_KEY_HEX: Final = 64
_PREFIX: Final = b'{"key":"'
_VALUE_AT: Final = len(_PREFIX) + _KEY_HEX + len(b'","reply":')


class _Segment:
    """One file of the store as a reader sees it: how far its lines are known, and whether it may grow. No
    descriptor is kept, so that a store of thousands of runs opens."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.known = 0
        self.live = True

    def unread(self) -> bytes:
        """The whole lines appended since the last call. A segment whose writer is gone is final after it:
        the writer holds a lock on the file, which dies with it, asked for before the lines are read."""
        fd = os.open(self.path, os.O_RDONLY)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
                self.live = False
            except OSError:
                pass
            data = os.pread(fd, max(0, os.fstat(fd).st_size - self.known), self.known)
        finally:
            os.close(fd)
        return data[: data.rfind(b"\n") + 1]


class CallStore:
    """Replies by key, as JSON bytes. Use as a context manager."""

    def __init__(self, root: Path) -> None:
        self.root = root / "calls"
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self._claims = os.open(self.root / "claims.lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise ConfigError(
                f"The call store {root} cannot be written ({error.strerror}); set store.root to a folder that can."
            ) from error
        self._at: dict[bytes, tuple[str, int, int]] = {}  # key -> segment, offset and size of the reply
        self._segments: dict[str, _Segment] = {}
        self._folder_time = -1
        self._own: Journal | None = None
        self._own_name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
        self.refresh()

    def __enter__(self) -> CallStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._at)

    def get(self, key: str) -> bytes | None:
        """The stored reply's JSON, or None."""
        found = self._at.get(bytes.fromhex(key))
        if found is None:
            return None
        path, offset, size = found
        fd = os.open(path, os.O_RDONLY)
        try:
            return os.pread(fd, size, offset)
        finally:
            os.close(fd)

    def put(self, key: str, reply: bytes) -> None:
        """Store a reply (one line of JSON) under a key of 64 hex digits. The first reply of a key stays."""
        if self._own is None:
            self._own = self._open_own()
        line = b"".join((_PREFIX, key.encode(), b'","reply":', reply, b"}"))
        offset = self._own.append(line)
        self._at.setdefault(bytes.fromhex(key), (str(self._own.path), offset + _VALUE_AT, len(reply)))

    def claim(self, key: str) -> bool:
        """Try to become the one process on this machine that sends this request; False while another holds
        it. The claim ends with `release`, or with the process. What others stored is known afterwards."""
        try:
            fcntl.lockf(self._claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _lock_byte(key))
        except OSError:
            return False
        self.refresh()
        return True

    def release(self, key: str) -> None:
        """Give a claim back."""
        fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, _lock_byte(key))

    def refresh(self) -> None:
        """Learn what other processes have appended: one stat of the folder and of each live segment."""
        folder_time = os.stat(self.root).st_mtime_ns
        if folder_time != self._folder_time:
            self._folder_time = folder_time
            for entry in sorted(os.scandir(self.root), key=lambda entry: entry.name):
                if entry.name.endswith(".jsonl") and entry.name not in self._segments and entry.name != self._own_name:
                    self._segments[entry.name] = _Segment(entry.path)
        for segment in self._segments.values():
            if segment.live:
                self._learn(segment)

    def sync(self) -> None:
        """Push appended replies through to the disk."""
        if self._own is not None:
            self._own.sync()

    def close(self) -> None:
        if self._own is not None:
            self._own.close()
        os.close(self._claims)

    def _open_own(self) -> Journal:
        hidden = self.root / f".{self._own_name}"
        journal = Journal(hidden)
        journal.lock()  # before others can see the file, or they would take its writer for gone
        journal.path = hidden.rename(self.root / self._own_name)
        return journal

    def _learn(self, segment: _Segment) -> None:
        data, start = segment.unread(), 0
        while start < len(data):
            end = data.index(b"\n", start)
            if data.startswith(_PREFIX, start) and end - start > _VALUE_AT:
                key = bytes.fromhex(data[start + len(_PREFIX) : start + len(_PREFIX) + _KEY_HEX].decode())
                place = segment.known + start + _VALUE_AT
                self._at.setdefault(key, (segment.path, place, end - start - _VALUE_AT - 1))
            start = end + 1
        segment.known += len(data)


def _lock_byte(key: str) -> int:
    """The byte of the claims file that stands for a key; two keys that share one only wait for each other."""
    return int(key[:15], 16)
