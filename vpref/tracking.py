"""The mirror of a run in Weights & Biases. Our records are the truth: whatever fails here costs nothing.

What is known of the W&B client's ways (version 0.31): offline it still phones out unless error reporting is
off before the import; it stages table images in the home folder unless told otherwise; several runs of one
process become one unless each is new; a table is logged once, since logging it again keeps the first rows.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from vpref.errors import ConfigError
from vpref.settings import TrackingMode, TrackingSettings

if TYPE_CHECKING:
    import wandb

log = logging.getLogger(__name__)

MOST_ROWS = 5_000
"""Rows of the per-item table that are mirrored; W&B cuts tables off in silence, and each row is an image."""

_EVERY_S = 5.0


class Grid(Protocol):
    """A table that can be mirrored."""

    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> Iterable[str]: ...
    @property
    def rows(self) -> Iterable[Iterable[object]]: ...


class Tracker:
    """A mirror that shows nothing; also the base of the one that does."""

    def progress(self, summary: Callable[[], Mapping[str, Any]], done: int) -> None:
        """Tell how far the run is; `summary` is called only when it is time to log."""

    def finish(
        self,
        summary: Mapping[str, Any],
        tables: Iterable[Grid],
        rows: Iterable[Mapping[str, object]],
        images: Path,
    ) -> None:
        """Mirror the end of the run. A row's `image` is a digest, shown from the folder `images`."""


class _WandbTracker(Tracker):
    def __init__(self, run: wandb.Run) -> None:
        self._run = run
        self._last = 0.0

    def progress(self, summary: Callable[[], Mapping[str, Any]], done: int) -> None:
        if time.monotonic() - self._last >= _EVERY_S:
            self._last = time.monotonic()
            self._run.log(_numbers(summary()) | {"done": done})

    def finish(
        self,
        summary: Mapping[str, Any],
        tables: Iterable[Grid],
        rows: Iterable[Mapping[str, object]],
        images: Path,
    ) -> None:
        import wandb

        self._run.log(_numbers(summary))
        self._run.summary.update(_numbers(summary))
        for grid in tables:
            data = [[str(cell) for cell in row] for row in grid.rows]
            self._run.log({f"tables/{grid.name}": wandb.Table(columns=list(grid.columns), data=data)})
        items = _items_table(rows, images)
        if items is not None:
            self._run.log({"generations" if self._run.job_type == "generate" else "responses": items})


def _items_table(rows: Iterable[Mapping[str, object]], images: Path) -> Any:
    import wandb

    table = None
    for number, row in enumerate(rows):
        if number == MOST_ROWS:
            log.warning("W&B gets the first %d items alone; the records have all of them", MOST_ROWS)
            break
        if table is None:
            table = wandb.Table(columns=list(row), allow_mixed_types=True)
        table.add_data(*(_cell(name, value, images) for name, value in row.items()))
    return table


def _cell(name: str, value: object, images: Path) -> object:
    if name != "image":
        return value
    import wandb

    found = next(iter(sorted(images.glob(f"{value}.*"))), None)
    return None if found is None else wandb.Image(str(found))


def _numbers(summary: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """A nested summary as flat `a/b` numbers, the only form W&B plots."""
    flat: dict[str, float] = {}
    for name, value in summary.items():
        if isinstance(value, Mapping):
            flat |= _numbers(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            flat[f"{prefix}{name}"] = value
    return flat


@contextlib.contextmanager
def tracked(
    settings: TrackingSettings, folder: Path, config: Mapping[str, Any], job_type: str, simulated: bool
) -> Iterator[Tracker]:
    """A tracker for one run, ended with the run: an exception that passes marks it failed. A `simulated` run says
    so in its name and tags, wherever W&B shows it.

    Raises ConfigError when `online` is asked for and wandb is not installed; offline is then simply off.
    """
    if settings.mode is TrackingMode.none:
        yield Tracker()
        return
    if importlib.util.find_spec("wandb") is None:
        if settings.mode is TrackingMode.online:
            raise ConfigError("tracking=online needs wandb: pip install 'vpref[wandb]', or set tracking=none.")
        yield Tracker()
        return
    with _start(settings, folder, config, job_type, simulated) as run:
        yield _WandbTracker(run)


def _start(
    settings: TrackingSettings, folder: Path, config: Mapping[str, Any], job_type: str, simulated: bool
) -> wandb.Run:
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    os.environ.setdefault("WANDB_SILENT", "true")  # as a setting alone it does not keep advertisements quiet
    os.environ["WANDB_DATA_DIR"] = str((folder / "wandb-data").resolve())  # staged files beside the run,
    os.environ["WANDB_CACHE_DIR"] = str((folder / "wandb-data/cache").resolve())  # and nothing in the home folder
    import wandb

    sweep = folder.parent.name if (folder.parent / "multirun.yaml").exists() else None
    quiet = wandb.Settings(
        mode="online" if settings.mode is TrackingMode.online else "offline",
        silent=True,
        console="off",
        disable_git=True,
        disable_code=True,
        x_disable_stats=True,
        x_disable_machine_info=True,
        x_save_requirements=False,
    )
    return wandb.init(
        project=settings.project,
        entity=settings.entity,
        dir=str(folder.resolve()),
        config=dict(config),
        job_type=job_type,
        group=sweep,
        name=(f"{sweep}/{folder.name}" if sweep else folder.name) + (" (simulated)" if simulated else ""),
        tags=[job_type, *(["simulated"] if simulated else [])],
        reinit="create_new",
        settings=quiet,
    )
