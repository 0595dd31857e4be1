"""What was found in which image, on disk, so that the next run need not look again.

One append-only JSONL file a configuration (weights, thresholds, annotation file), which several processes may write
at once. It only saves time: deleting it is safe, and a line that does not parse is as good as absent. Failures are
not kept: an image that failed is tried again. Knows nothing of how boxes are found.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from pydantic import ValidationError

from vpref.detection.records import Target
from vpref.domain import Detection, Record
from vpref.errors import RunStopped


class _Line(Record):
    """`source` is the image's name where boxes hang on it (annotations), None where on its pixels alone."""

    image: str
    source: str | None = None
    detections: tuple[Detection, ...]


class FoundJournal:
    """The detections made by one configuration. A context manager. `by_name` for annotations: one picture under
    another name may have other boxes there."""

    def __init__(self, root: Path, configuration: Sequence[str], *, by_name: bool) -> None:
        name = hashlib.sha256(json.dumps(list(configuration)).encode()).hexdigest()[:32]
        self.path = root / f"{name}.jsonl"
        self._by_name = by_name
        self._file: int | None = None
        self._found = {(line.image, line.source): line.detections for line in _read(self.path)}

    def get(self, target: Target) -> tuple[Detection, ...] | None:
        return self._found.get(self._key(target))

    def put(self, target: Target, detections: tuple[Detection, ...]) -> None:
        """Keep what was found. Raises RunStopped when it cannot be written."""
        image, source = self._key(target)
        line = _Line(image=image, source=source, detections=detections).model_dump_json(exclude_none=True) + "\n"
        self._found.setdefault((image, source), detections)
        try:
            if self._file is None:
                self._file = self._open()
            # One write of one whole line: with O_APPEND, lines of several processes do not mix.
            if os.write(self._file, line.encode()) < len(line.encode()):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as exc:
            raise RunStopped(f"{self.path} cannot be written: {exc.strerror}; mend that and start again.") from exc

    def _key(self, target: Target) -> tuple[str, str | None]:
        return target.digest, target.source if self._by_name else None

    def _open(self) -> int:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            os.write(file, b"\n")  # ends a line that a killed process left torn, so that ours is not lost with it
        return file

    def __enter__(self) -> FoundJournal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _read(path: Path) -> list[_Line]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return []
    whole = []
    for line in lines:
        try:
            whole.append(_Line.model_validate_json(line))
        except ValidationError:
            continue
    return whole
