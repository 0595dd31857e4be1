"""What was found in which image, on disk, so that the next run need not look again.

One file a configuration (weights, thresholds, annotation file). Failures are not kept: an image that failed is
tried again. Knows nothing of how boxes are found.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from vpref.detection.records import Target
from vpref.domain import Detection, Record
from vpref.journals import SharedJournal, read_records


class _Line(Record):
    """`source` is the image's name where boxes hang on it (annotations), None where on its pixels alone."""

    image: str
    source: str | None = None
    detections: tuple[Detection, ...]


class FoundJournal(SharedJournal):
    """The detections made by one configuration. `by_name` for annotations: one picture under another name may
    have other boxes there."""

    def __init__(self, root: Path, configuration: Sequence[str], *, by_name: bool) -> None:
        name = hashlib.sha256(json.dumps(list(configuration)).encode()).hexdigest()[:32]
        super().__init__(root / f"{name}.jsonl")
        self._by_name = by_name
        self._found = {(line.image, line.source): line.detections for line in read_records(self.path, _Line)}

    def __enter__(self) -> FoundJournal:
        return self

    def get(self, target: Target) -> tuple[Detection, ...] | None:
        return self._found.get(self._key(target))

    def put(self, target: Target, detections: tuple[Detection, ...]) -> None:
        """Keep what was found. Raises RunStopped when it cannot be written."""
        image, source = self._key(target)
        self._found.setdefault((image, source), detections)
        self.append(_Line(image=image, source=source, detections=detections))

    def _key(self, target: Target) -> tuple[str, str | None]:
        return target.digest, target.source if self._by_name else None
