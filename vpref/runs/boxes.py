"""`vpref boxes`: the box stage alone, to see what the `boxes` variant would be made from."""

from __future__ import annotations

from pathlib import Path

from vpref import detection, reports
from vpref.domain import Role
from vpref.driver.meter import Meter
from vpref.images import Gallery
from vpref.reports import Table
from vpref.runs.boxing import DISCARDS, BoxedImage, Stage, box_images, funnel, naming_steps, select_boxes
from vpref.runs.folder import RunFolder
from vpref.runs.generate import few, prepare_images
from vpref.runs.session import session
from vpref.runs.terminal import say, show_tables, shown
from vpref.settings import BoxesSettings


def boxes(settings: BoxesSettings, folder: RunFolder) -> None:
    """Run the verb: boxes.jsonl and the drawn images under `folder`, each image's boxes printed."""
    detection.check(settings.detection, settings.data.root)
    gallery = Gallery(Path(settings.store.root) / "images")
    with session(settings, {Role.MAPPER: settings.mapper}, gallery, folder) as live:
        images = prepare_images(few(settings.data, settings.preview), gallery, folder, settings.driver)
        stage = Stage(live, gallery, folder, settings.data, settings.detection, settings.attempts)
        if settings.dry_run:
            from vpref.runs import plan

            asked = [one for one in select_boxes(stage, images) if one.discarded is None]
            say(plan.for_naming(settings, live, naming_steps(asked, stage), len(asked)))
            return
        folder.note(servers={role.value: server for role, server in live.servers.items()})
        meter = Meter()
        boxed = box_images(stage, images, meter, settings.preview)
    folder.close()
    folder.note(summary=meter.summary())
    tables = [_images_table(boxed), funnel(boxed, {})]
    reports.write_tables(tables, folder.path / "tables")
    show_tables(tables)
    say(f"records: {shown(folder.path)}\ndrawn images: {shown(folder.path / 'images')}")


def _images_table(boxed: list[BoxedImage]) -> Table:
    def told(one: BoxedImage) -> str:
        if one.discarded:
            return f"discarded: {DISCARDS[one.discarded]}"
        return ", ".join(f"{box.letter} {box.name}" for box in one.boxes)

    return Table(
        name="boxed_images",
        title="Boxes by image",
        columns=("Image", "Boxes"),
        texts=frozenset({"Boxes"}),
        rows=tuple((one.source, told(one)) for one in boxed),
        records=tuple(
            {"image": one.source, "drawn": one.drawn, "discarded": one.discarded, "boxes": len(one.boxes)}
            for one in boxed
        ),
    )
