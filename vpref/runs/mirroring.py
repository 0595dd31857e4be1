"""What a run shows in Weights & Biases, and under which name. The mirror itself knows nothing of runs and items."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from vpref import tracking
from vpref.domain import Accepted, Outcome, Unresolved
from vpref.errors import ConfigError
from vpref.images import Gallery
from vpref.reports import Evaluation, GenerationCounts, Table, dashboards
from vpref.runs import sweeps
from vpref.runs.datasets import Dataset, read_outcomes
from vpref.runs.folder import RunFolder
from vpref.runs.terminal import warn
from vpref.settings import EvaluateSettings, GenerateSettings, RunSettings
from vpref.tracking import Bundle, Tracker, Who

log = logging.getLogger(__name__)

MOST_IMAGES = 10_000
"""Images that go with a dataset into W&B."""


def mirrored_generation(
    settings: GenerateSettings, folder: RunFolder, simulated: bool
) -> AbstractContextManager[Tracker]:
    """The mirror of a generate run."""
    depth = settings.pipeline.max_revisions if settings.pipeline.review else None
    about = {"max_revisions": depth, **{role.value: model.title for role, model in settings.models().items()}}
    return _mirrored(settings, folder, "generate", about, tuple(settings.variants), simulated, folder.path / "images")


def mirrored_evaluation(
    settings: EvaluateSettings, folder: RunFolder, dataset: Dataset, simulated: bool
) -> AbstractContextManager[Tracker]:
    """The mirror of an evaluate run, which says what it used before it begins."""
    about = {"dataset": dataset.digest, "truth": settings.truth is not None, **asked(settings)}
    tags = tuple(one for one in (settings.ablation.left_out, settings.ablation.manner) if one)
    return _mirrored(settings, folder, "evaluate", about, tags, simulated, dataset.gallery.root)


def asked(settings: EvaluateSettings) -> dict[str, str]:
    """Who was asked, and how: what runs on one dataset differ in."""
    ablation = settings.ablation
    return {"model": settings.evaluated.title, "left_out": ablation.left_out or "nothing", "manner": ablation.manner}


def _mirrored(
    settings: RunSettings,
    folder: RunFolder,
    verb: str,
    about: Mapping[str, Any],
    tags: tuple[str, ...],
    simulated: bool,
    images: Path,
) -> AbstractContextManager[Tracker]:
    who = _who(folder, verb, (*tags, *(["simulated"] if simulated else [])), simulated)
    config = folder.config | {"about": {**about, "simulated": simulated}}
    return tracking.tracked(settings.tracking, folder.path, config, who, images=images, warn=warn)


def _who(folder: RunFolder, verb: str, tags: tuple[str, ...], simulated: bool) -> Who:
    """A run on its own is named after its folder. A job of a sweep is named after what sets it apart from the others,
    a part of a larger run after its place there, both in that one's group."""
    own, home = folder.path.resolve(), folder.path.resolve().parent
    group, name = None, own.name
    if (home / sweeps.PLAN).exists():
        group, name = home.name, _apart(home, own.name) or own.name
    elif (home / "manifest.json").exists():
        group, name = home.name, f"{home.name}/{own.name}"
    return Who(verb, name + (" (simulated)" if simulated else ""), group, (verb, *tags))


def _apart(sweep: Path, job: str) -> str:
    """What sets a job apart from the others of its sweep, by the sweep's plan; nothing where it is not in there."""
    try:
        jobs = {one.folder: one.overrides for one in sweeps.read_plan(sweep).jobs}
    except ConfigError:
        return ""  # a name is not worth a run
    return dict(zip(jobs, sweeps.own_overrides(list(jobs.values())), strict=True)).get(job, "")


def show_generation(
    tracker: Tracker, folder: RunFolder, summary: Mapping[str, Any], counts: GenerationCounts, tables: Sequence[Table]
) -> None:
    """The end of a generate run; its items were shown as they came."""
    sheets = (dashboards.role_sheet(counts), dashboards.revision_sheet(counts))
    tracker.series("revisions", dashboards.revision_points(counts))
    tracker.finish(summary, (*tables, *sheets))
    items = folder.path / "items.jsonl"
    tracker.bundle(lambda: _dataset(items, Gallery(folder.path / "images")))


def show_used(tracker: Tracker, settings: EvaluateSettings, folder: RunFolder, dataset: Dataset) -> None:
    """What an evaluate run starts from, its files beside the run's own: they go where it goes."""
    home = folder.path / "wandb-data/used"
    tracker.bundle(lambda: _beside(_dataset(dataset.path, dataset.gallery), home), used=True)
    if settings.truth is not None:
        truth = Path(settings.truth)
        tracker.bundle(lambda: _beside(_bundle("truth", {"truth.json": truth}, truth), home), used=True)


def show_evaluation(
    tracker: Tracker,
    settings: EvaluateSettings,
    folder: RunFolder,
    dataset: Dataset,
    evaluation: Evaluation,
    summary: Mapping[str, Any],
    tables: Sequence[Table],
) -> None:
    """The end of an evaluate run."""
    flat = {name: value for name, value in summary.items() if name != "accuracy"}
    tracker.finish(flat | dashboards.group_figures(evaluation), (*tables, dashboards.group_sheet(evaluation)))
    tracker.confusion(dashboards.confusion_sheet(evaluation.responses))
    tracker.table("responses", lambda: dashboards.evaluation_rows(dataset, evaluation.responses, asked(settings)))
    responses = folder.path / "responses.jsonl"
    tracker.bundle(lambda: _bundle("responses", {"responses.jsonl": responses}, responses))


def _dataset(items: Path, gallery: Gallery) -> Bundle:
    """A generate run's items with their images: the same bundle whoever makes it up from the same file."""
    shown: dict[str, None] = {}
    count, simulated = 0, False
    for outcome in read_outcomes(items):
        count += 1
        simulated = simulated or any(call.server.startswith("simulator/") for call in outcome.calls)
        shown |= dict.fromkeys(_shown(outcome))
    kept = list(shown)[:MOST_IMAGES]
    if len(kept) < len(shown):
        log.warning("W&B gets %s images of the dataset's %s", f"{len(kept):,}", f"{len(shown):,}")
    images = {f"images/{path.name}": path for path in map(gallery.path, kept)}
    facts = {"items": count, "images": len(shown), "simulated": simulated}
    return _bundle("dataset", {"items.jsonl": items} | images, items, facts)


def _shown(outcome: Outcome) -> tuple[str, ...]:
    return (outcome.item.shown,) if isinstance(outcome, Accepted | Unresolved) else ()


def _bundle(
    kind: str, files: Mapping[str, Path], named_after: Path, facts: Mapping[str, object] | None = None
) -> Bundle:
    with named_after.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Bundle(f"{kind}-{digest[:12]}", kind, files, {"sha256": digest, **(facts or {})})


def _beside(bundle: Bundle, home: Path) -> Bundle:
    """The bundle from files below `home`: images, which never change, linked; others copied."""
    moved = {}
    for name, path in bundle.files.items():
        target = home / bundle.name / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        _put(path, target, link=name.startswith("images/"))
        moved[name] = target
    return Bundle(bundle.name, bundle.kind, moved, bundle.facts)


def _put(path: Path, target: Path, link: bool) -> None:
    if link:
        with contextlib.suppress(OSError):  # another file system, or one without links
            os.link(path, target)
            return
    shutil.copyfile(path, target)
