"""`vpref survey plan`: items of a dataset are laid out in forms, with all that showing them needs."""

from __future__ import annotations

import os
import secrets
import shutil
from collections import Counter
from pathlib import Path

from vpref.domain import Failed, Item, Plan, PlannedItem, make_plan
from vpref.errors import ConfigError
from vpref.images import Gallery
from vpref.runs.datasets import open_dataset, read_outcomes
from vpref.runs.folder import RunFolder, read_json, write_json
from vpref.runs.survey_aggregate import read_people
from vpref.runs.surveys import ATTRIBUTION, KEY, PLAN, listed, open_survey
from vpref.runs.terminal import say, shown
from vpref.settings import SurveyPlanSettings
from vpref.voting import plan_forms


def plan(settings: SurveyPlanSettings, folder: RunFolder) -> None:
    """Run the verb. The folder holds `plan.json`, the items with their images, and the key that annotators'
    platform ids are hashed with."""
    dataset = open_dataset(settings.dataset, settings.include_unresolved)
    items = _undecided(list(dataset), Path(settings.undecided)) if settings.undecided else list(dataset)
    forms = plan_forms(map(planned, items), per_form=settings.per_form, forms=settings.forms, checks=settings.checks)
    made = make_plan(settings.title, settings.places, forms, map(planned, items), simulated=dataset.simulated)
    write_json(folder.path / PLAN, made.model_dump(mode="json"))
    _keep_items(dataset.path, {item.id for item in items}, folder)
    _keep_images(dataset.gallery, items, folder.path)
    if (dataset.path.parent / ATTRIBUTION).exists():
        shutil.copyfile(dataset.path.parent / ATTRIBUTION, folder.path / ATTRIBUTION)
    _make_key(folder.path / KEY, _earlier_key(Path(settings.undecided)) if settings.undecided else None)
    folder.note(dataset={"path": str(dataset.path.resolve()), "sha256": dataset.digest, "items": len(items)})
    say(summary(made))
    say(f"survey: {shown(folder.path)}")


def planned(item: Item) -> PlannedItem:
    """What the manifest says of an item."""
    return PlannedItem(
        id=item.id, image=item.slot.image, shown=item.shown, variant=item.variant, category=item.category
    )


def summary(made: Plan) -> str:
    """The plan in a few lines."""
    lines = [f"{made.title}: {len(made.items):,} items, version {made.version}"]
    for variant in dict.fromkeys(item.variant for item in made.items):
        forms = [form for form in made.forms if made.by_id[form.items[0]].variant is variant]
        sizes = Counter(len(form.items) for form in forms)
        each = " and ".join(f"{number} of {size}" for size, number in sorted(sizes.items(), reverse=True))
        number = len(forms[0].checks)
        checks = f", and {number} attention check{'s' * (number > 1)} in each" if number else ""
        lines.append(f"{variant}: {len(forms)} forms ({each} items{checks})")
    people = len(made.forms) * made.places
    lines.append(f"places: {made.places} for each form, so {people} annotators")
    return "\n".join(lines)


def _keep_items(path: Path, ids: set[str], folder: RunFolder) -> None:
    folder.begin("items")
    for outcome in read_outcomes(path):
        if not isinstance(outcome, Failed) and outcome.item.id in ids:
            folder.record("items", outcome)


def _keep_images(gallery: Gallery, items: list[Item], folder: Path) -> None:
    """The images as shown, and the originals where the dataset has them too."""
    kept = Gallery(folder / "images")
    for item in items:
        for digest in dict.fromkeys((item.shown, item.slot.image)):
            if digest == item.shown or digest in gallery:
                gallery.link_into(kept, digest)


def _undecided(items: list[Item], aggregated: Path) -> list[Item]:
    """The items that a survey left without ground truth. Raises ConfigError without any, or where they are not in
    the dataset."""
    wanted = {label.item.id for label in read_people(aggregated).labels if label.letter is None}
    if not wanted:
        raise ConfigError(f"Every item of {aggregated} has ground truth; there is nothing to ask again.")
    absent = sorted(wanted - {item.id for item in items})
    if absent:
        raise ConfigError(f"{len(absent)} undecided items are not in the dataset: {listed(absent)}.")
    return [item for item in items if item.id in wanted]


def _earlier_key(aggregated: Path) -> str:
    """The key of the survey that is gone on with, so that who comes again is known to."""
    survey = Path(read_json(aggregated / "manifest.json")["survey"]["path"])
    return open_survey(str(survey)).secret.decode()


def _make_key(path: Path, key: str | None) -> None:
    """A key, random unless given, that nobody but its owner may read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write((key or secrets.token_hex(32)) + "\n")
