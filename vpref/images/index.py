"""What each source file became, remembered beside the gallery, so that the next run need not decode it again.

An append-only JSONL file that several processes may write at once. It only saves time: deleting it is safe,
and a line that does not parse is as good as absent. Knows nothing of images.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

from pydantic import ValidationError

from vpref.domain import Record
from vpref.errors import RunStopped


class Entry(Record):
    """The result for one file: `source` is the sha256 of its bytes, `rules` names how it was normalised. Either
    the normal form's digests and size in px, or the `kind` and `reason` it was refused for."""

    source: str
    rules: str
    digest: str | None = None
    pixels: str | None = None
    width: int | None = None
    height: int | None = None
    kind: str | None = None
    reason: str | None = None


class Index:
    """The entries made by one set of rules, by source digest. A context manager; read by any thread."""

    def __init__(self, path: Path, rules: str) -> None:
        self.rules = rules
        self._path = path
        self._file: int | None = None
        self._entries = {entry.source: entry for entry in _read(path) if entry.rules == rules}

    def get(self, source: str) -> Entry | None:
        return self._entries.get(source)

    def append(self, entry: Entry) -> None:
        """Remembers `entry`. Raises RunStopped when it cannot be written."""
        self._entries[entry.source] = entry
        try:
            if self._file is None:
                self._file = self._open()
            # One write of one whole line: with O_APPEND, lines of several processes do not mix.
            os.write(self._file, entry.model_dump_json(exclude_none=True).encode() + b"\n")
        except OSError as exc:
            raise RunStopped(f"{self._path} cannot be written: {exc.strerror}; mend that and start again.") from exc

    def _open(self) -> int:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            os.write(file, b"\n")  # ends a line that a killed process left torn, so that ours is not lost with it
        return file

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _read(path: Path) -> list[Entry]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return []
    entries = []
    for line in lines:
        try:
            entries.append(Entry.model_validate_json(line))
        except ValidationError:
            continue
    return entries
