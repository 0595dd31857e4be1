"""`vpref import`: items in the reference implementation's JSON become a dataset that `vpref evaluate` takes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path, PurePosixPath

from vpref import interchange
from vpref.domain import Accepted, Category, Slot, Unresolved, Variant, make_item
from vpref.errors import ConfigError
from vpref.images import Gallery, ImageRecord
from vpref.interchange import ReferenceItem
from vpref.runs.folder import RunFolder, read_json
from vpref.runs.generate import prepare_images
from vpref.runs.terminal import say, shown
from vpref.settings import ImportSettings


def import_items(settings: ImportSettings, folder: RunFolder) -> None:
    """Run the verb. Raises ConfigError where the file is not of the form, or names images that are not there."""
    path = Path(settings.items)
    items = interchange.read_items(read_json(path), str(path))
    gallery = Gallery(Path(settings.store.root) / "images")
    images = prepare_images(settings.data, gallery, folder, settings.driver)
    by_name = {one.source: one for one in images} | {PurePosixPath(one.source).name: one for one in images}
    absent = sorted({item.img for item in items} - set(by_name))
    if absent:
        named = ", ".join(absent[:3])
        raise ConfigError(f"{len(absent)} images of {path} are not in data.root {settings.data.root}: {named}, ...")
    seen: Counter[tuple[str, Variant, Category]] = Counter()
    folder.begin("items")
    for item in items:
        folder.record("items", _outcome(item, by_name[item.img], seen))
    folder.note(summary={"items": len(items), "answered": sum(item.answer is not None for item in items)})
    say(f"items: {len(items):,}\nrecords: {shown(folder.path)}")


def _outcome(
    item: ReferenceItem, image: ImageRecord, seen: Counter[tuple[str, Variant, Category]]
) -> Accepted | Unresolved:
    """The item in our form. Several of one image, variant and category are taken for samples."""
    digest = str(image.digest)
    place = (digest, item.variant, Category(item.category))
    slot = Slot(image=digest, variant=item.variant, category=place[2], sample=seen[place])
    seen[place] += 1
    made = make_item(slot, item.prompt, shown=digest, answer=item.answer)
    kind = Unresolved if item.faulted else Accepted
    return kind(slot=slot, rounds=item.rounds, item=made, order=item.order)
