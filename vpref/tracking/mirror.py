"""What a run may tell its mirror, the mirror that shows nothing, and the one place where either is chosen."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from vpref.errors import ConfigError, RunStopped
from vpref.redaction import redact
from vpref.settings import TrackingMode, TrackingSettings
from vpref.tracking import account

log = logging.getLogger(__name__)

Row = Mapping[str, object]


class Sheet(Protocol):
    """A table that can be mirrored."""

    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> Iterable[str]: ...
    @property
    def rows(self) -> Iterable[Iterable[object]]: ...


@dataclass(frozen=True)
class Bundle:
    """Files that one run makes and another uses, by their names in the bundle; W&B's artifact. The name and the files
    make it the same one wherever it is met, so that W&B draws the line from the run that made it."""

    name: str
    kind: str
    files: Mapping[str, Path]
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Who:
    """How a run is found among others."""

    job_type: str
    name: str
    group: str | None = None
    tags: tuple[str, ...] = ()


class Tracker:
    """A mirror that shows nothing; also the base of the one that does. What is handed over as a function is called
    only by a mirror that shows it."""

    def progress(self, summary: Callable[[], Mapping[str, Any]], done: int) -> None:
        """Tell how far the run is, when it is time to."""

    def grow(self, name: str, row: Callable[[], Row], expected: int) -> None:
        """Add a row to a table that grows while the run goes. A row's `image` is a digest."""

    def table(self, name: str, rows: Callable[[], Iterable[Row]]) -> None:
        """Show a whole table of rows as `grow` takes them."""

    def bundle(self, make: Callable[[], Bundle], *, used: bool = False) -> None:
        """Keep files as this run's product, or as what it used."""

    def series(self, step: str, points: Iterable[Mapping[str, float]]) -> None:
        """Numbers over another axis than time: each point holds `step` and what is plotted over it."""

    def finish(self, summary: Mapping[str, Any], sheets: Iterable[Sheet]) -> None:
        """Show what is known at the end of the run."""

    def confusion(self, sheet: Sheet) -> None:
        """Show a sheet of the columns expected, found and count as a matrix too."""

    def end(self, code: int) -> None:
        """Nothing more comes; the run ends with this exit code."""


@contextlib.contextmanager
def tracked(
    settings: TrackingSettings,
    folder: Path,
    config: Mapping[str, Any],
    who: Who,
    *,
    images: Path,
    warn: Callable[[str], None] = log.warning,
) -> Iterator[Tracker]:
    """A tracker for one run, ended with the run: an exception that passes marks it failed, with its exit code. The
    images of rows are in the folder `images`. What keeps W&B from mirroring is told to `warn`, once.

    Raises ConfigError when `online` is asked for and wandb is not installed, or has no key.
    """
    tracker = _tracker(settings, folder, config, who, images, lambda text: warn(redact(" ".join(text.split()))))
    try:
        yield tracker
    except BaseException as error:
        tracker.end(_exit_code(error))
        raise
    tracker.end(0)


def _exit_code(error: BaseException) -> int:
    return 130 if isinstance(error, KeyboardInterrupt) else int(getattr(error, "exit_code", 1) or 1)


def _tracker(
    settings: TrackingSettings,
    folder: Path,
    config: Mapping[str, Any],
    who: Who,
    images: Path,
    warn: Callable[[str], None],
) -> Tracker:
    if settings.mode is TrackingMode.none:
        return Tracker()
    if importlib.util.find_spec("wandb") is None:
        if settings.mode is TrackingMode.online:
            raise ConfigError("tracking=online needs wandb: pip install 'vpref[wandb]', or set tracking=none.")
        warn("No W&B files are written, its client is not installed: pip install 'vpref[wandb]', or tracking=none.")
        return Tracker()
    from vpref.tracking.client import WandbTracker

    if settings.mode is TrackingMode.online:
        with contextlib.suppress(RunStopped):  # said once more by the client, and then by a warning
            account.log_in("tracking=offline goes without")
    return WandbTracker.begin(settings, folder, config, who, images, warn)
