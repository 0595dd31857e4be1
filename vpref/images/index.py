"""What each source file became, remembered beside the gallery, so that the next run need not decode it again.

Knows nothing of images.
"""

from __future__ import annotations

from pathlib import Path

from vpref.domain import Record
from vpref.journals import SharedJournal, read_records


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


class Index(SharedJournal):
    """The entries made by one set of rules, by source digest; read by any thread."""

    def __init__(self, path: Path, rules: str) -> None:
        super().__init__(path)
        self.rules = rules
        self._entries = {entry.source: entry for entry in read_records(path, Entry) if entry.rules == rules}

    def __enter__(self) -> Index:
        return self

    def get(self, source: str) -> Entry | None:
        return self._entries.get(source)

    def remember(self, entry: Entry) -> None:
        """Keeps `entry`. Raises RunStopped when it cannot be written."""
        self._entries[entry.source] = entry
        self.append(entry)
