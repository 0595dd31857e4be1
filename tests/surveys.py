"""Small datasets and surveys for tests: items that name their place, images that differ."""

from __future__ import annotations

import csv
import hashlib
import json
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.commands import run
from vpref.domain import LETTERS, Accepted, Category, Choices, Draft, Item, Letter, Slot, Variant, Vote, make_item
from vpref.forms.questions import Asked, sheets
from vpref.runs.survey_simulate import right
from vpref.runs.surveys import Survey
from vpref.settings import RehearsalSettings
from vpref.voting.rehearsal import rehearse


def picture(number: int) -> bytes:
    """A PNG that differs from every other number's, its bytes the same whatever libraries are installed."""
    width, height = 32, 24
    colour = bytes((number * 53 % 256, number // 4 % 256, number // 256 * 60))
    rows = (b"\0" + colour * width) * height
    stored = b"\x01" + struct.pack("<HH", len(rows), len(rows) ^ 0xFFFF) + rows
    data = b"\x78\x01" + stored + struct.pack(">I", zlib.adler32(rows))
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)), (b"IDAT", data), (b"IEND", b"")]
    chunks = [struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in parts]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


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
        (folder / "images" / f"{item.shown}.png").write_bytes(picture(numbers[item.shown]))
    lines = [Accepted(slot=item.slot, item=item, order="abcd").model_dump_json() for item in known]
    (folder / "items.jsonl").write_text("".join(line + "\n" for line in lines))
    return folder


def plan_survey(cwd: Path, *settings: str) -> Path:
    """The folder of a survey planned by the command."""
    out, _ = run("survey", "plan", *settings, cwd=cwd)
    line = next(line for line in out.splitlines() if line.startswith("survey: "))
    return cwd / line.removeprefix("survey: ")


def made_up_votes(survey: Survey, **settings: object) -> list[Vote]:
    """The votes of a full rehearsal, as people's: the same in every run."""
    truth = {id: right(item) for id, item in survey.items.items()}
    return list(rehearse(survey.plan, truth, RehearsalSettings(**settings)))  # type: ignore[arg-type]


def person(annotator: str) -> str:
    """A Prolific id for a made-up annotator."""
    return hashlib.sha256(annotator.encode()).hexdigest()[:24]


def filled(survey: Survey, votes: Iterable[Vote]) -> dict[str, tuple[list[str], list[list[str]]]]:
    """By form the header and rows that Google's CSV has when annotators gave these votes: every question in its own
    column, the options' texts in the cells."""
    by_form: dict[str, tuple[list[str], list[list[str]]]] = {}
    given = list(votes)
    for sheet in sheets(survey.plan, survey.items):
        header = ["Timestamp", sheet.person, *sheet.meanings]
        rows = []
        for number, annotator in enumerate(dict.fromkeys(v.annotator for v in given if v.form == sheet.form.name)):
            answers = {v.item: v for v in given if v.annotator == annotator}
            cells = [_cell(answers[asked.id], asked, kind) for asked, kind in sheet.meanings.values()]
            rows.append([f"2026/03/07 10:{number:02}:16 AM GMT+5:30", person(annotator), *cells])
        by_form[sheet.form.name] = (header, rows)
    return by_form


def _cell(vote: Vote, asked: Asked, kind: str) -> str:
    if kind == "choice":
        return asked.options[vote.choice]
    return str(vote.difficulty) if kind == "difficulty" else vote.justification


def write_csv(path: Path, header: list[str], rows: Iterable[list[str]], separator: str = ",") -> Path:
    """As Google writes it: every cell in quotes."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=separator, quoting=csv.QUOTE_ALL).writerows([header, *rows])
    return path


def api_documents(exported: dict[str, Any], header: list[str], rows: list[list[str]]) -> dict[str, Any]:
    """What Google's API gives back for a form made by the exported requests and filled in: its ids are its own."""
    items, ids = [], {}
    for number, request in enumerate(one for one in exported["batchUpdate"]["requests"] if "createItem" in one):
        item = json.loads(json.dumps(request["createItem"]["item"])) | {"itemId": f"{number:08x}"}
        if "questionItem" in item:
            item["questionItem"]["question"]["questionId"] = ids[item["title"]] = f"{number + 4096:08x}"
        items.append(item)
    responses = []
    for number, row in enumerate(rows):
        answers = {
            ids[title]: {"questionId": ids[title], "textAnswers": {"answers": [{"value": cell}]}}
            for title, cell in zip(header[1:], row[1:], strict=True)
            if cell
        }
        time = f"2026-03-07T04:{30 + number:02}:16.123456789Z"
        responses.append(
            {"responseId": f"r{number}", "createTime": time, "lastSubmittedTime": time, "answers": answers}
        )
    return {"form": {"formId": "f", "info": exported["create"]["info"], "items": items}, "responses": responses}
