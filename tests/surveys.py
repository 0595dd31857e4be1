"""Small datasets and surveys for tests: items that name their place, images that differ."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable
from pathlib import Path

from PIL import Image

from tests.commands import run
from vpref.domain import LETTERS, Accepted, Category, Choices, Draft, Item, Letter, Slot, Variant, make_item


def picture(number: int) -> bytes:
    """A JPEG that differs from every other number's."""
    data = io.BytesIO()
    Image.new("RGB", (32, 24), (number % 256, number // 256, 99)).save(data, "JPEG")
    return data.getvalue()


def generic_items(plain: int = 0, boxes: int = 0) -> list[Item]:
    """Items of so many images: four categories of each plain one, categories 0 and 2 of each with boxes. The
    answer goes round the letters."""
    asked = [(Variant.PLAIN, image, category) for image in range(plain) for category in (0, 1, 2, 3)]
    asked += [(Variant.BOXES, 1000 + image, category) for image in range(boxes) for category in (0, 2)]
    items = []
    for number, (variant, image, category) in enumerate(asked):
        digest = hashlib.sha256(picture(image)).hexdigest()
        slot = Slot(image=digest, variant=variant, category=Category(category))
        texts = tuple(f"Take the {word} thing of {number}" for word in ("first", "second", "third", "fourth"))
        draft = Draft(
            scene=f"Scene {image}, with “quotes”, commas,\nand lines",
            preference=f"I like number {number}.",
            question=f"What should I do about {number}?",
            choices=Choices.of(texts),
        )
        answer: Letter = LETTERS[number % 4]
        items.append(make_item(slot, draft, shown=digest, answer=answer))
    return items


def dataset(folder: Path, items: Iterable[Item]) -> Path:
    """A folder that `dataset=` takes."""
    (folder / "images").mkdir(parents=True)
    known = list(items)
    numbers = {hashlib.sha256(picture(number)).hexdigest(): number for number in (*range(99), *range(1000, 1099))}
    for item in known:
        (folder / "images" / f"{item.shown}.jpg").write_bytes(picture(numbers[item.shown]))
    lines = [Accepted(slot=item.slot, item=item, order="abcd").model_dump_json() for item in known]
    (folder / "items.jsonl").write_text("".join(line + "\n" for line in lines))
    return folder


def plan_survey(cwd: Path, *settings: str) -> Path:
    """The folder of a survey planned by the command."""
    out, _ = run("survey", "plan", *settings, cwd=cwd)
    line = next(line for line in out.splitlines() if line.startswith("survey: "))
    return cwd / line.removeprefix("survey: ")
