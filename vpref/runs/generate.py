"""`vpref generate`: images in, benchmark items out."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from vpref import interchange, reports, tracking
from vpref.domain import Category, Outcome, Slot, Step, Variant
from vpref.driver.meter import Meter
from vpref.images import Gallery, ImageRecord, prepare
from vpref.pipeline import generate_item
from vpref.runs import plan
from vpref.runs.datasets import read_outcomes
from vpref.runs.folder import RunFolder, write_json
from vpref.runs.preview import overheard
from vpref.runs.session import Session, session
from vpref.runs.terminal import say, show_tables, shown
from vpref.settings import GenerateSettings


def generate(settings: GenerateSettings, folder: RunFolder) -> None:
    """Run the verb: every step on disk under `folder`, the summary printed."""
    gallery = Gallery(Path(settings.store.root) / "images")
    with session(settings, settings.pipeline.roles(), gallery) as live:
        images = _prepare(settings, gallery, folder)
        slots = _slots(settings, images)
        if settings.dry_run:
            say(plan.for_generation(settings, live, slots))
            return
        folder.note(servers={role.value: server for role, server in live.servers.items()})
        with tracking.tracked(settings.tracking, folder.path, folder.config, job_type="generate") as tracker:
            meter = _drive(settings, live, slots, folder, tracker)
            _finish(folder, meter, images, tracker)


def _prepare(settings: GenerateSettings, gallery: Gallery, folder: RunFolder) -> list[ImageRecord]:
    """The images to use, their files linked into the run's folder, so that it can be moved and kept."""
    records = prepare(settings.data, gallery, on_image=lambda record: folder.record("images", record))
    counts = Counter(record.status if record.kind is None else f"refused ({record.kind})" for record in records)
    say("images: " + ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items(), reverse=True)))
    used = [record for record in records if record.status == "used" and record.digest is not None]
    own = Gallery(folder.path / "images")
    for record in used:
        gallery.link_into(own, str(record.digest))
    digests = "\n".join(str(record.digest) for record in used)
    folder.note(images={"counts": dict(counts), "digest": hashlib.sha256(digests.encode()).hexdigest()})
    return used


def _slots(settings: GenerateSettings, images: list[ImageRecord]) -> list[Slot]:
    """What is to be generated, an image's items side by side."""
    slots = [
        Slot(image=str(image.digest), variant=Variant(variant), category=Category(category), sample=sample)
        for image in images
        for variant in settings.variants
        for category in settings.categories
        for sample in range(settings.samples)
    ]
    return slots[: settings.preview]


def _drive(
    settings: GenerateSettings, live: Session, slots: list[Slot], folder: RunFolder, tracker: tracking.Tracker
) -> Meter:
    def jobs() -> Iterator[Step[Outcome]]:
        for slot in slots:
            step = generate_item(slot, settings.pipeline)
            yield overheard(step, say, slot.key) if settings.preview else step

    def emit(outcome: Outcome) -> None:
        folder.record("items", outcome)
        tracker.progress(meter.summary, meter.done)

    meter = Meter(total=len(slots))
    live.run(jobs(), name=lambda outcome: outcome.outcome, emit=emit, meter=meter)
    return meter


def _finish(folder: RunFolder, meter: Meter, images: list[ImageRecord], tracker: tracking.Tracker) -> None:
    """Tables, exports and the mirror, all from the records."""
    folder.close()
    records = folder.path / "items.jsonl"
    counts = reports.GenerationCounts()
    for outcome in read_outcomes(records):
        counts.add(outcome)
    tables = reports.generation_tables(counts)
    reports.write_tables(tables, folder.path / "tables")
    sources = {str(image.digest): image.source for image in images}
    write_json(folder.path / "reference.json", interchange.export(read_outcomes(records), sources))
    interchange.write_attribution(folder.path / "ATTRIBUTION.md", images)
    summary = meter.summary() | counts.summary()
    folder.note(summary=summary)
    tracker.finish(summary, tables, reports.generation_rows(read_outcomes(records), sources), folder.path / "images")
    show_tables(tables)
    say(f"records: {shown(folder.path)}")
