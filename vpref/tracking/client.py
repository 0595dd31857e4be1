"""The mirror that W&B's client writes, offline or live. Whatever the client raises ends the mirror, never the run.

What is known of the client's ways (version 0.31): offline it still phones out unless error reporting is off before
the import; it stages the files of tables in the home folder unless told otherwise; several runs of one process become
one unless each is new; a plain table is shown as it was first logged; an image is decoded for its size alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vpref.redaction import redact
from vpref.settings import TrackingMode, TrackingSettings
from vpref.tracking.mirror import Bundle, Row, Sheet, Tracker, Who

if TYPE_CHECKING:
    import wandb

MOST_ROWS = 5_000
"""Rows of a table of items that are mirrored; W&B cuts tables off in silence, and each row is an image."""

MOST_PIECES = 50
"""Pieces in which a growing table is shown; W&B shows the last hundred of them."""

_EVERY_S = 5.0
_LONGEST_NAME = 128
_LONGEST_TAG = 64


class WandbTracker(Tracker):
    """One run of W&B's. `_run` is None once anything failed."""

    def __init__(self, images: Path, mode: TrackingMode, warn: Callable[[str], None]) -> None:
        self._run: wandb.Run | None = None
        self._mode = mode
        self._warn = warn
        self._last = 0.0
        self._images = _Images(images)
        self._growing: dict[str, _Growing] = {}

    @classmethod
    def begin(
        cls,
        settings: TrackingSettings,
        folder: Path,
        config: Mapping[str, Any],
        who: Who,
        images: Path,
        warn: Callable[[str], None],
    ) -> Tracker:
        """A mirror that has begun; or, with a warning, one that shows nothing."""
        tracker = cls(images, settings.mode, warn)
        tracker._guarded(lambda: tracker._start(settings, folder, config, who))
        return tracker

    def _start(self, settings: TrackingSettings, folder: Path, config: Mapping[str, Any], who: Who) -> None:
        self._run = _init(settings, folder.resolve(), config, who)

    def _guarded(self, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:
            self._run = None
            told = str(error).strip().splitlines() or [""]
            self._warn(f"The W&B mirror ended early ({type(error).__name__}: {told[0]}); the run's records are whole.")
            with contextlib.suppress(Exception):  # or its client would complain once more, at exit
                import wandb

                wandb.teardown()

    def _told(self, action: Callable[[wandb.Run], object]) -> None:
        run = self._run
        if run is not None:
            self._guarded(lambda: action(run))

    def progress(self, summary: Callable[[], Mapping[str, Any]], done: int) -> None:
        if time.monotonic() - self._last >= _EVERY_S:
            self._last = time.monotonic()
            self._told(lambda run: run.log(numbers(summary()) | {"done": done}))

    def grow(self, name: str, row: Callable[[], Row], expected: int) -> None:
        def show(run: wandb.Run) -> None:
            if growing.full:
                self._tell_full(growing)
            elif growing.add(self._cells(row())):
                growing.log(run)

        growing = self._growing.setdefault(name, _Growing(name, expected))
        self._told(show)

    def _tell_full(self, growing: _Growing) -> None:
        if not growing.told:
            growing.told = True
            self._warn(f"W&B gets the first {MOST_ROWS:,} rows of {growing.name} alone; the records have all of them.")

    def table(self, name: str, rows: Callable[[], Iterable[Row]]) -> None:
        def show(run: wandb.Run) -> None:
            growing = _Growing(name, MOST_ROWS, mode="IMMUTABLE")
            for row in rows():
                if growing.full:
                    self._tell_full(growing)
                    break
                growing.add(self._cells(row))
            growing.log(run)

        self._told(show)

    def _cells(self, row: Row) -> dict[str, object]:
        cells: dict[str, object] = clean(dict(row))  # at once: each look for secrets goes through the environment
        return cells | ({"image": self._images.show(str(row["image"]))} if "image" in row else {})

    def series(self, step: str, points: Iterable[Mapping[str, float]]) -> None:
        def show(run: wandb.Run) -> None:
            for point in points:
                for name in point:
                    run.define_metric(name, step_metric=None if name == step else step)
                run.log(dict(point))

        self._told(show)

    def bundle(self, make: Callable[[], Bundle], *, used: bool = False) -> None:
        def keep(run: wandb.Run) -> None:
            import wandb

            one = make()
            artifact = wandb.Artifact(one.name, one.kind, metadata=clean(dict(one.facts)))
            for name, path in one.files.items():  # the run's own files, which nobody changes: no copy is staged
                artifact.add_file(str(path.resolve()), name=name, policy="immutable", skip_cache=True)
            if not used:
                run.log_artifact(artifact)
            elif self._mode is TrackingMode.online:
                run.use_artifact(artifact)
            else:  # `use_artifact` refuses offline, even an artifact that it need not look up; this is what it does
                run._log_artifact(artifact, is_user_created=True, use_after_commit=True)

        self._told(keep)

    def finish(self, summary: Mapping[str, Any], sheets: Iterable[Sheet]) -> None:
        def show(run: wandb.Run) -> None:
            import wandb

            run.log(numbers(summary))
            run.summary.update(clean(numbers(summary)))
            for sheet in sheets:
                rows = clean([list(row) for row in sheet.rows])
                run.log({f"tables/{sheet.name}": wandb.Table(columns=list(sheet.columns), data=rows)})

        self._told(show)

    def confusion(self, sheet: Sheet) -> None:
        def show(run: wandb.Run) -> None:
            import wandb

            table = wandb.Table(columns=list(sheet.columns), data=[list(row) for row in sheet.rows])
            fields = {"Actual": "expected", "Predicted": "found", "nPredictions": "count"}
            run.log({"confusion": wandb.plot_table("wandb/confusion_matrix/v1", table, fields)})

        self._told(show)

    def end(self, code: int) -> None:
        for growing in self._growing.values():
            self._told(lambda run, growing=growing: growing.log(run, last=True))  # type: ignore[misc]
        self._told(lambda run: run.finish(exit_code=code))
        self._run = None


class _Growing:
    """A table shown in pieces: a piece is logged when it holds its share of the rows and some seconds have passed."""

    def __init__(self, name: str, expected: int, mode: str = "INCREMENTAL") -> None:
        self.name = name
        self.told = False
        self._mode = mode
        self._share = max(1, -(-min(expected, MOST_ROWS) // MOST_PIECES))
        self._rows = self._logged = 0
        self._last = time.monotonic()
        self._table: wandb.Table | None = None

    @property
    def full(self) -> bool:
        return self._rows == MOST_ROWS

    def add(self, cells: Mapping[str, object]) -> bool:
        """Whether it is time to log."""
        import wandb

        if self._table is None:
            self._table = wandb.Table(columns=list(cells), log_mode=self._mode)  # type: ignore[arg-type]
        self._table.add_data(*cells.values())
        self._rows += 1
        return self._rows - self._logged >= self._share and time.monotonic() - self._last >= _EVERY_S

    def log(self, run: wandb.Run, last: bool = False) -> None:
        if self._table is not None and (not last or self._rows > self._logged):
            run.log({self.name: self._table})
            self._logged, self._last = self._rows, time.monotonic()


class _Images:
    """Stored files as W&B's images: each is looked at once, its pixels never."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, Any] = {}

    def show(self, digest: str) -> Any:
        if digest not in self._known:
            path = next(iter(sorted(self._root.glob(f"{digest}.*"))), None)
            self._known[digest] = None if path is None else _stored_image(path)
        return self._known[digest]


def _stored_image(path: Path) -> Any:
    """W&B's image of a file without decoding it. Where a later client does it otherwise, it decodes and all is well."""
    import PIL.Image
    import wandb

    with PIL.Image.open(path) as header:  # reads no more than that

        class Stored(wandb.Image):
            def _initialize_from_path(self, path: str) -> None:
                self._set_file(path, is_tmp=False)
                self._image = header
                self.format = Path(path).suffix[1:]

        image = Stored(str(path))
    image.__class__ = wandb.Image  # type: ignore[assignment]  # tables know types by this very class
    return image


def clean(value: Any) -> Any:
    """Plain data without the value of any secret."""
    return json.loads(redact(json.dumps(value, ensure_ascii=False, default=str)))


def numbers(summary: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """A nested summary as flat `a/b` numbers, the only form W&B plots."""
    flat: dict[str, float] = {}
    for name, value in summary.items():
        if isinstance(value, Mapping):
            flat |= numbers(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            flat[f"{prefix}{name}"] = value
    return flat


def _init(settings: TrackingSettings, folder: Path, config: Mapping[str, Any], who: Who) -> wandb.Run:
    offline = settings.mode is TrackingMode.offline
    if offline:  # nothing may leave this machine, whatever the environment says
        os.environ["WANDB_ERROR_REPORTING"] = "false"
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    os.environ.setdefault("WANDB_SILENT", "true")  # as a setting alone it does not keep advertisements quiet
    os.environ["WANDB_DATA_DIR"] = str(folder / "wandb-data")  # staged files beside the run,
    os.environ["WANDB_CACHE_DIR"] = str(folder / "wandb-data/cache")  # and nothing in the home folder
    import wandb

    quiet = wandb.Settings(
        mode="offline" if offline else "online",
        silent=True,
        console="off",
        disable_git=True,
        disable_code=True,
        x_disable_stats=True,
        x_disable_machine_info=True,
        x_save_requirements=False,
    )
    return wandb.init(
        project=clean(settings.project),
        entity=clean(settings.entity),
        dir=str(folder),
        config=clean(dict(config)),
        job_type=who.job_type,
        group=who.group,
        name=clean(who.name)[:_LONGEST_NAME],
        tags=[clean(tag)[:_LONGEST_TAG] for tag in who.tags],
        reinit="create_new",
        settings=quiet,
    )
