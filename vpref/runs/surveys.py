"""Reading a survey's folder back: its plan, its items, the key of its annotators, and votes. Every line is checked."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from vpref.domain import Item, Plan, Record, Vote, make_plan
from vpref.errors import ConfigError
from vpref.images import Gallery
from vpref.runs.datasets import open_dataset
from vpref.runs.folder import read_json

R = TypeVar("R", bound=Record)

PLAN = "plan.json"
KEY = "annotators.key"
KEY_VARIABLE = "VPREF_ANNOTATORS_KEY"
SHORTEST_SECRET = 16
VOTES = "votes.jsonl"
ATTRIBUTION = "ATTRIBUTION.md"


@dataclass(frozen=True)
class Survey:
    """A planned survey on disk."""

    path: Path
    plan: Plan
    items: dict[str, Item]
    gallery: Gallery

    @property
    def secret(self) -> bytes:
        """What annotators' platform ids are hashed with: the survey's own key, unless the environment gives one.
        Raises ConfigError where it was taken away, or is too short to keep anybody from guessing it."""
        path = self.path / KEY
        if given := os.environ.get(KEY_VARIABLE, "").strip():
            if len(given) < SHORTEST_SECRET:
                raise ConfigError(f"{KEY_VARIABLE} is shorter than {SHORTEST_SECRET} characters; give a longer one.")
            return given.encode()
        try:
            return path.read_text(encoding="ascii").strip().encode()
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"{path}, the key that annotators are hashed with, cannot be read; without it nobody's answers can be "
                "told from another's. Put it back from a copy, or plan anew."
            ) from error


def open_survey(given: str) -> Survey:
    """The survey planned in a folder.

    Raises ConfigError, in one sentence, where it is none, its plan was changed by hand, or its items are not those
    that were planned (by their ids).
    """
    path = Path(given)
    if not (path / PLAN).is_file():
        raise ConfigError(f"There is no survey at {given}; give the folder of a `vpref survey plan` run.")
    plan = read_plan(path / PLAN)
    dataset = open_dataset(given, include_unresolved=True)
    items = {item.id: item for item in dataset}
    absent = [item.id for item in plan.items if item.id not in items]
    if absent:
        raise ConfigError(
            f"{len(absent)} planned items are not in {dataset.path}: {listed(absent)}. An item that was changed has "
            "another id; votes are about what was planned. Restore the file, or plan a new survey."
        )
    return Survey(path, plan, {item.id: items[item.id] for item in plan.items}, dataset.gallery)


def read_plan(path: Path) -> Plan:
    """The manifest. Raises ConfigError where it is none of ours or no longer what it was."""
    try:
        plan = Plan.model_validate(read_json(path))
    except ValidationError as error:
        raise ConfigError(f"{path} is no survey plan of ours ({str(error).splitlines()[1]}).") from error
    if make_plan(plan.title, plan.places, plan.forms, plan.items).version != plan.version:
        raise ConfigError(f"{path} was changed after it was made; answers are held against it. Restore it.")
    return plan


def read_votes(given: Iterable[str]) -> list[Vote]:
    """The votes in the files given, or in the `votes.jsonl` of the folders given. Raises ConfigError naming the
    first line that is no vote."""
    return [vote for name in given for vote in read_lines(_votes(Path(name)), Vote)]


def _votes(given: Path) -> Path:
    return given / VOTES if given.is_dir() else given


def read_lines(path: Path, model: type[R]) -> list[R]:
    """The records of a file, one a line. Raises ConfigError naming the first line that is none."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigError(f"Cannot read {path} ({error.strerror}); give what a `vpref survey` step wrote.") from error
    records = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            records.append(model.model_validate_json(line))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ConfigError(
                f"{path}, line {number} is no {model.__name__.lower()} of ours ({where} {first['msg']})."
            ) from error
    return records


def listed(ids: list[str], most: int = 5) -> str:
    """Some names for a sentence, the first few of many."""
    return ", ".join(ids[:most]) + (", ..." if len(ids) > most else "")
