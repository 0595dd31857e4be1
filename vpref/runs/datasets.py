"""Reading what an earlier run generated. Every line is checked before the first request is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from vpref.domain import OUTCOME, Failed, Item, Letter, Outcome, Unresolved, make_item
from vpref.errors import ConfigError
from vpref.images import Gallery
from vpref.runs.folder import digest_of, read_json

_OURS = "give the folder of a `vpref generate` run, or its items.jsonl"


@dataclass(frozen=True)
class Dataset:
    """Items on disk, with their images. Iterating reads them anew, so that memory stays flat."""

    path: Path
    gallery: Gallery
    include_unresolved: bool
    truth: Mapping[str, Letter] | None = None
    count: int = 0
    digest: str = ""
    simulated: bool = False

    def __iter__(self) -> Iterator[Item]:
        for outcome in _outcomes(self.path):
            item = _usable(outcome, self.include_unresolved)
            if item is None:
                continue
            if self.truth is None:
                yield item
            elif item.id in self.truth:
                yield item.model_copy(update={"truth": self.truth[item.id]})


def read_truth(path: Path) -> dict[str, Letter]:
    """The right letter by item id. Raises ConfigError where the file says anything else."""
    try:
        return TypeAdapter(dict[str, Letter]).validate_python(read_json(path))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ConfigError(f"{path} is no {{item id: letter}} with letters a to d ({first['msg']}).") from error


def open_dataset(
    given: str, include_unresolved: bool, truth: Mapping[str, Letter] | None = None, scored: bool = False
) -> Dataset:
    """The dataset at a path; with `truth`, of the items it knows. To be `scored`, items need a right letter.

    Raises ConfigError, in one sentence, where it is none of ours, was changed by hand, lacks an image, or holds no
    item that can be asked.
    """
    path = Path(given)
    if path.is_dir():
        path = path / "items.jsonl"
    if not path.is_file():
        raise ConfigError(f"There is no dataset at {given}; {_OURS}.")
    dataset = Dataset(path, Gallery(path.parent / "images"), include_unresolved)
    count, simulated, left_out, unknown = 0, False, 0, set(truth or ())
    for outcome in _outcomes(path):
        item = _usable(outcome, include_unresolved)
        if item is None:
            left_out += 1
            continue
        if truth is not None and item.id not in truth:
            left_out += 1
            continue
        unknown.discard(item.id)
        _check(item, dataset)
        if scored and truth is None and not (item.truth or item.answer):
            raise ConfigError(
                f"Item {item.id} in {path} has no right answer; give truth=FILE, a JSON {{item id: letter}}."
            )
        count += 1
        simulated = simulated or any(call.server.startswith("simulator/") for call in outcome.calls)
    if unknown:
        raise ConfigError(
            f"{len(unknown)} items of the truth are not in {path}, the first {min(unknown)}; items that were changed "
            "since have another id."
        )
    if not count:
        if not left_out:
            raise ConfigError(f"{path} is empty; {_OURS}.")
        hint = "include_unresolved=true takes unresolved ones too"
        raise ConfigError(f"{path} holds no item to ask, {left_out} failed or unresolved ones alone; {hint}.")
    return Dataset(path, dataset.gallery, include_unresolved, truth, count, digest_of(path), simulated)


def read_outcomes(path: Path) -> Iterator[Outcome]:
    """The records of a generate run's items.jsonl."""
    return _outcomes(path)


def _outcomes(path: Path) -> Iterator[Outcome]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield OUTCOME.validate_json(line)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                where = ".".join(str(part) for part in first["loc"])
                raise ConfigError(
                    f"{path}, line {number} is no item of ours ({where} {first['msg']}); {_OURS}."
                ) from error


def _usable(outcome: Outcome, include_unresolved: bool) -> Item | None:
    if isinstance(outcome, Failed) or (isinstance(outcome, Unresolved) and not include_unresolved):
        return None
    return outcome.item


def _check(item: Item, dataset: Dataset) -> None:
    same = make_item(item.slot, item, shown=item.shown, answer=item.answer)
    if same.id != item.id:
        raise ConfigError(
            f"Item {item.id} in {dataset.path} was changed after it was made (its text now gives {same.id}); votes and "
            "responses would no longer be about what was seen. Restore the file, or generate anew."
        )
    if item.shown not in dataset.gallery:
        raise ConfigError(f"The image {item.shown[:12]}… of item {item.id} is missing in {dataset.gallery.root}.")
