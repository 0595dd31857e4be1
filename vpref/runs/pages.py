"""A report's page, put together from runs: their items with pictures, what models and people said of them."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import vpref
from vpref.errors import ConfigError
from vpref.images import Gallery
from vpref.pages import Items, Page, render
from vpref.redaction import redact
from vpref.reports import Table
from vpref.runs.datasets import read_outcomes
from vpref.runs.results import Results, dataset_of
from vpref.runs.terminal import say, shown, warn
from vpref.settings import PageImages

INLINE_MOST = 150
"""Pictures that are put into the page itself, some 20 KB each, where nothing else is asked for."""

BESIDE = "report_images"
_LONGER_SIDE = 480


def write_page(path: Path, title: str, results: Results, tables: Sequence[Table], images: PageImages) -> None:
    """Write one HTML file, its pictures in it or in a folder beside it, and say where it is. Where what pages are made
    with is not installed, say that instead: the tables are whole without it."""
    if any(find_spec(name) is None for name in ("altair", "vl_convert", "jinja2")):
        say("page: left out, since Altair is not installed (pip install 'vpref[report]'; html=false for no such line)")
        return
    items, galleries, notes = _items(results)
    models = list(dict.fromkeys(evaluation.shown for _, evaluation in results.evaluations))
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    page = Page(
        title=title,
        about=(f"{_counted(results)}. Made by vpref {vpref.__version__}, {now}.",),
        tables=tables,
        models=models,
        runs=[one.label for one in results.generations],
        items=items,
        images=_pictures(items.pictures, galleries, images, path.parent),
        simulated=_simulated(results),
        notes=notes,
    )
    try:
        draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        draft.write_text(redact(render(page)), encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise ConfigError(f"Cannot write {path} ({error.strerror}).") from error
    say(f"page: {shown(path)} ({path.stat().st_size / 1e6:.1f} MB)")


def _items(results: Results) -> tuple[Items, list[Gallery], list[str]]:
    """All items, where their pictures are, and what could not be found."""
    items, notes = Items(), []
    galleries: dict[Path, Gallery] = {}
    read: set[Path] = set()
    for number, generation in enumerate(results.generations):
        source = generation.path / "items.jsonl"
        read.add(source)
        galleries[source] = Gallery(source.parent / "images")
        for outcome in generation.outcomes():
            items.add_outcome(outcome, number)
    models: dict[str, int] = {}  # a model's runs on several datasets have one name: no item is in two of them
    for path, evaluation in results.evaluations:
        model = models.setdefault(evaluation.shown, len(models))
        dataset = dataset_of(path)
        if dataset is None:
            notes.append(f"The items that {evaluation.shown} was asked are no longer where they were: answers alone.")
        elif dataset.resolve() not in read:
            read.add(dataset.resolve())
            galleries[dataset] = Gallery(dataset.parent / "images")
            for outcome in read_outcomes(dataset):
                items.add_outcome(outcome)
        for response in evaluation.responses:
            items.add_response(response, model)
    for _, people in results.people:
        items.add_votes(people.votes)
    return items, list(galleries.values()), list(dict.fromkeys(notes))


def _counted(results: Results) -> str:
    counts = {
        "evaluation": len(results.evaluations),
        "generating run": len(results.generations),
        "survey": len(results.people),
    }
    return ", ".join(f"{count} {name}{'s' if count > 1 else ''}" for name, count in counts.items() if count) or "Counts"


def _simulated(results: Results) -> bool:
    people = (vote.source == "rehearsal" for _, one in results.people for vote in one.votes)
    models = (evaluation.simulated for _, evaluation in results.evaluations)
    return any(models) or any(one.counts.simulated for one in results.generations) or any(people)


def _pictures(
    digests: Iterable[str], galleries: Sequence[Gallery], images: PageImages, beside: Path
) -> Mapping[str, str]:
    """The address of each picture that is still there."""
    found = {digest: place for digest in digests if (place := _place(digest, galleries)) is not None}
    if images is PageImages.none or not found:
        return {}
    inline = images is PageImages.inline or (images is PageImages.auto and len(found) <= INLINE_MOST)
    made: dict[str, str] = {}
    for digest, place in found.items():
        small = _small(place)
        if small is None:
            warn(f"The image {place} cannot be read; the page is without it.")
        elif inline:
            made[digest] = "data:image/jpeg;base64," + base64.b64encode(small).decode()
        else:
            (beside / BESIDE).mkdir(exist_ok=True)
            (beside / BESIDE / f"{digest}.jpg").write_bytes(small)
            made[digest] = f"{BESIDE}/{digest}.jpg"
    return made


def _place(digest: str, galleries: Sequence[Gallery]) -> Path | None:
    return next((gallery.path(digest) for gallery in galleries if digest in gallery), None)


def _small(path: Path) -> bytes | None:
    """A JPEG of 480 pixels at most on its longer side; None of what is no picture."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            image.draft("RGB", (2 * _LONGER_SIDE, 2 * _LONGER_SIDE))
            small = image.convert("RGB")
    except OSError:
        return None
    small.thumbnail((_LONGER_SIDE, _LONGER_SIDE))
    data = io.BytesIO()
    small.save(data, "JPEG", quality=78, optimize=True)
    return data.getvalue()
