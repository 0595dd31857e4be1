"""`vpref generate`: images in, benchmark items out."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from vpref import detection, interchange, reports
from vpref.domain import Box, Category, Outcome, Slot, Step, Variant
from vpref.driver.meter import Meter
from vpref.images import Gallery, ImageRecord, prepare
from vpref.pipeline import generate_item
from vpref.runs.boxing import BoxedImage, Stage, box_images, finished, funnel, naming_steps, select_boxes
from vpref.runs.datasets import read_outcomes
from vpref.runs.folder import RunFolder, write_json
from vpref.runs.mirroring import mirrored_generation, show_generation
from vpref.runs.preview import overheard
from vpref.runs.session import Session, session
from vpref.runs.terminal import Counting, say, show_tables, shown
from vpref.settings import BOX_CATEGORIES, DataSettings, DriverSettings, GenerateSettings
from vpref.tracking import Tracker


@dataclass(frozen=True)
class _Job:
    """One item to generate: its slot, and its boxes where it has some."""

    slot: Slot
    boxes: tuple[Box, ...] = ()
    drawn: str | None = None

    def step(self, settings: GenerateSettings) -> Step[Outcome]:
        return generate_item(self.slot, settings.pipeline, boxes=self.boxes, drawn=self.drawn)


def generate(settings: GenerateSettings, folder: RunFolder) -> None:
    """Run the verb: every step on disk under `folder`, the summary printed."""
    if settings.boxed:
        detection.check(settings.detection, settings.data.root)
    gallery = Gallery(Path(settings.store.root) / "images")
    with session(settings, settings.models(), gallery, folder) as live:
        images = prepare_images(few(settings.data, settings.preview), gallery, folder, settings.driver)
        stage = Stage(live, gallery, folder, settings.data, settings.detection, settings.pipeline.attempts)
        if settings.dry_run:
            say(_plan(settings, stage, images))
            return
        folder.note(servers={role.value: server for role, server in live.servers.items()})
        with mirrored_generation(settings, folder, live.simulated) as tracker:
            meter = Meter(total=None)
            boxed = box_images(stage, images, meter, settings.preview) if settings.boxed else []
            meter.restart()
            sources = {str(image.digest): image.source for image in images}
            _drive(settings, live, _jobs(settings, images, boxed), folder, tracker, meter, sources)
            _finish(folder, meter, images, boxed, tracker)


def few(data: DataSettings, preview: int | None) -> DataSettings:
    """Enough images for a preview: the first of all, so that it is quick on a hundred thousand of them too."""
    chosen = data.first or data.sample or data.ids
    return data if preview is None or chosen else replace(data, first=8 * preview)


def prepare_images(
    data: DataSettings, gallery: Gallery, folder: RunFolder, driver: DriverSettings
) -> list[ImageRecord]:
    """The images to use, their files linked into the run's folder, so that it can be moved and kept."""
    counting = Counting("preparing", None, driver)

    def keep(record: ImageRecord) -> None:
        folder.record("images", record)
        counting()

    records = prepare(data, gallery, on_image=keep)
    counts = Counter(record.status if record.kind is None else f"refused ({record.kind})" for record in records)
    say("images: " + ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items(), reverse=True)))
    used = [record for record in records if record.status == "used" and record.digest is not None]
    own = Gallery(folder.path / "images")
    for record in used:
        gallery.link_into(own, str(record.digest))
    digests = "\n".join(str(record.digest) for record in used)
    folder.note(images={"counts": dict(counts), "digest": hashlib.sha256(digests.encode()).hexdigest()})
    return used


def _jobs(settings: GenerateSettings, images: list[ImageRecord], boxed: list[BoxedImage]) -> list[_Job]:
    """What is to be generated, an image's items side by side."""
    boxes = {one.image: one for one in boxed if one.discarded is None}
    jobs = []
    for image, variant in itertools.product((str(image.digest) for image in images), map(Variant, settings.variants)):
        if variant is Variant.BOXES and image not in boxes:
            continue
        more = (boxes[image].boxes, boxes[image].drawn) if variant is Variant.BOXES else ((), None)
        for category, sample in itertools.product(map(Category, settings.categories), range(settings.samples)):
            if variant is Variant.PLAIN or category in BOX_CATEGORIES:
                jobs.append(_Job(Slot(image=image, variant=variant, category=category, sample=sample), *more))
    return jobs[: settings.preview]


def _plan(settings: GenerateSettings, stage: Stage, images: list[ImageRecord]) -> str:
    """A dry run's text. Boxes not named yet count as kept under their classes."""
    from vpref.runs import plan

    selected = select_boxes(stage, images) if settings.boxed else []
    asked = [one for one in selected if one.discarded is None]
    names = plan.stored_results(naming_steps(asked, stage), stage.live)
    boxed = [
        one.model_copy(update={"boxes": one.candidates}) if naming is None else finished(one, naming, stage)
        for one, naming in zip(asked, names, strict=True)
    ]
    jobs = _jobs(settings, images, boxed)
    return plan.for_generation(
        settings, stage.live, (job.step(settings) for job in jobs), naming_steps(asked, stage), len(jobs)
    )


def _drive(
    settings: GenerateSettings,
    live: Session,
    jobs: list[_Job],
    folder: RunFolder,
    tracker: Tracker,
    meter: Meter,
    sources: dict[str, str],
) -> None:
    def steps() -> Iterator[Step[Outcome]]:
        for job in jobs:
            step = job.step(settings)
            yield overheard(step, say, job.slot.key) if settings.preview else step

    def emit(outcome: Outcome) -> None:
        folder.record("items", outcome)
        tracker.progress(meter.summary, meter.done)
        folder.progress(meter.summary)
        row = partial(reports.generation_row, outcome, sources.get(outcome.slot.image, ""))
        tracker.grow("generations", row, expected=len(jobs))

    meter.total = len(jobs)
    folder.begin("items")
    try:
        live.run(steps(), name=lambda outcome: outcome.outcome, emit=emit, meter=meter)
    finally:
        folder.note(summary=meter.summary())  # what was paid is known of a run that ends early too


def _finish(
    folder: RunFolder, meter: Meter, images: list[ImageRecord], boxed: list[BoxedImage], tracker: Tracker
) -> None:
    """Tables, exports and the mirror, all from the records."""
    folder.close()
    records = folder.path / "items.jsonl"
    counts = reports.GenerationCounts()
    for outcome in read_outcomes(records):
        counts.add(outcome)
    tables = [*([funnel(boxed, counts.made(Variant.BOXES))] if boxed else []), *reports.generation_tables(counts)]
    reports.write_tables(tables, folder.path / "tables")
    sources = {str(image.digest): image.source for image in images}
    write_json(folder.path / "reference.json", interchange.export(read_outcomes(records), sources))
    interchange.write_attribution(folder.path / "ATTRIBUTION.md", images)
    summary = meter.summary() | counts.summary() | ({"boxes": dict(tables[0].records[0])} if boxed else {})
    folder.note(summary=summary)
    show_generation(tracker, folder, summary, counts, tables)
    show_tables(tables)
    say(f"records: {shown(folder.path)}")
