"""Boxes of Visual Genome's own: objects.json, with the originals' sizes from image_data.json.

An image that they do not list is an error of that image. Looks at no pixels.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, FiniteFloat, ValidationError

from vpref.detection.records import Found, Target
from vpref.detection.scaling import Size, first_problem, scaled
from vpref.errors import ConfigError
from vpref.settings import DetectionSettings

M = TypeVar("M", bound=BaseModel)


class _VgObject(BaseModel):
    names: list[str]
    x: FiniteFloat
    y: FiniteFloat
    w: FiniteFloat
    h: FiniteFloat

    @property
    def name(self) -> str:
        return next(filter(None, map(str.strip, self.names)), "")


class _VgImage(BaseModel):
    image_id: int
    objects: list[_VgObject]


class _VgRecord(BaseModel):
    image_id: int
    width: Size
    height: Size


def files(settings: DetectionSettings, data_root: str | None) -> tuple[Path, Path]:
    """objects.json and image_data.json, which has the sizes of the originals."""
    if data_root is None:
        raise ConfigError("detection=visual_genome needs Visual Genome's images: data=visual_genome data.root=...")
    root = Path(data_root).expanduser()
    objects = root / "objects.json" if settings.file is None else Path(settings.file).expanduser()
    for path in (objects, root / "image_data.json"):
        if not path.is_file():
            raise ConfigError(f"{path} is missing; unpack Visual Genome 1.2's {path.name}.zip there.")
    return objects, root / "image_data.json"


def check(objects: Path, records: Path) -> None:
    """Raises ConfigError when one of the files is not what its name says; of each only the beginning is read."""
    for path, form in ((objects, _VgImage), (records, _VgRecord)):
        for entry in _entries(path):
            _vg(form, path, entry)
            break


def find(
    missing: Sequence[Target], targets: Sequence[Target], objects: Path, records: Path
) -> Iterator[tuple[Target, Found]]:
    """The boxes of the `missing` among all `targets`, in the file's order, by Visual Genome's image ids. An object
    goes by the first of its names. Raises ConfigError when no image is listed."""
    wanted = {target.source: target for target in missing}
    sizes: dict[str, tuple[float, float]] = {}
    for record in _of_images(_VgRecord, records, wanted.keys()):
        sizes[str(record.image_id)] = (record.width, record.height)
    if not sizes and len(missing) == len(targets):
        raise ConfigError(
            f"{records} lists none of the {len(targets)} images, the first of which is {targets[0].source}; "
            "detection=visual_genome goes with data=visual_genome."
        )
    for image in _of_images(_VgImage, objects, sizes.keys()):
        target = wanted.pop(str(image.image_id), None)
        if target is not None:  # None: the file lists it a second time
            boxes = [(one.name, (one.x, one.y, one.w, one.h)) for one in image.objects if one.name]
            yield target, scaled(target, boxes, sizes[target.source], records.name)
    for target in wanted.values():
        yield target, Found(error=f"{objects.name} or {records.name} does not list it.")


def _of_images(form: type[M], path: Path, ids: Collection[str]) -> Iterator[M]:
    for entry in _entries(path):
        if not isinstance(entry, dict) or "image_id" not in entry:
            raise ConfigError(f"{path} is not Visual Genome's list by image_id; unpack it again.")
        if str(entry["image_id"]) in ids:
            yield _vg(form, path, entry)


def _vg(form: type[M], path: Path, entry: object) -> M:
    try:
        return form.model_validate(entry)
    except ValidationError as exc:
        raise ConfigError(
            f"{path} is not Visual Genome's {path.name} ({first_problem(exc)}); unpack it again."
        ) from exc


_CHUNK = 2**16


def _entries(path: Path) -> Iterator[Any]:
    """The entries of a JSON file that is one list, a few at a time: Visual Genome's objects are half a gigabyte."""
    decode = json.JSONDecoder().raw_decode
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = ""
            while not text and (chunk := file.read(_CHUNK)):
                text = chunk.lstrip()
            if not text.startswith("["):
                raise ValueError("it is no list")
            text, more = text[1:].lstrip(), True
            while not text.startswith("]"):
                try:
                    entry, end = decode(text)
                    rest = text[end:].lstrip()
                    if not rest and more:  # the list's next sign is not read yet
                        raise ValueError("it ends early")
                except ValueError:
                    if not more:
                        raise
                    addition = file.read(max(_CHUNK, len(text)))
                    more, text = bool(addition), (text + addition).lstrip()
                    continue
                if rest[:1] not in (",", "]"):
                    raise ValueError("a comma is missing")
                yield entry
                text = rest.removeprefix(",").lstrip()
    except OSError as exc:
        raise ConfigError(f"{path} cannot be read: {exc.strerror}.") from exc
    except (ValueError, RecursionError) as exc:
        raise ConfigError(f"{path} is not readable JSON ({exc}); unpack it again.") from exc
