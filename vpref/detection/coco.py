"""Boxes from a file in COCO's format: one's own, or that of the photos which ship with vpref.

An image that the file does not list is an error of that image. Looks at no pixels.
"""

from __future__ import annotations

import importlib.resources
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from vpref.detection.records import Found, Target
from vpref.detection.scaling import Named, Size, first_problem, scaled
from vpref.errors import ConfigError
from vpref.settings import DetectionSettings


class _CocoImage(BaseModel):
    id: int | str
    file_name: str
    width: Size
    height: Size


class _CocoAnnotation(BaseModel):
    image_id: int | str
    category_id: int | str
    bbox: tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat]


class _CocoCategory(BaseModel):
    id: int | str
    name: Annotated[str, Field(min_length=1)]


class Coco(BaseModel):
    """The part of COCO's format that boxes need; all else in a file is passed over."""

    images: list[_CocoImage]
    annotations: list[_CocoAnnotation]
    categories: list[_CocoCategory]


def chosen_file(settings: DetectionSettings) -> Path:
    """The annotation file; without one in the settings, that of the photos which ship with vpref. Raises ConfigError
    when it is absent."""
    if settings.file is None:
        return Path(str(importlib.resources.files("vpref.detection") / "photos.json"))
    path = Path(settings.file).expanduser()
    if not path.is_file():
        raise ConfigError(f"detection.file {path} is not a file (looked in {Path.cwd()}); give one in COCO's format.")
    return path


def read(path: Path) -> Coco:
    """Raises ConfigError when the file is absent or not of the format."""
    try:
        coco = Coco.model_validate_json(path.read_bytes())
    except OSError as exc:
        raise ConfigError(f"detection.file {path} cannot be read: {exc.strerror}.") from exc
    except ValidationError as exc:
        raise ConfigError(
            f"detection.file {path} is not COCO's format with images, annotations and categories: {first_problem(exc)}."
        ) from exc
    categories = {category.id for category in coco.categories}
    for annotation in coco.annotations:
        if annotation.category_id not in categories:
            raise ConfigError(f"detection.file {path} has no category {annotation.category_id}, which a box names.")
    names = Counter(_normal(image.file_name) for image in coco.images)
    if names and names.most_common(1)[0][1] > 1:
        raise ConfigError(f"detection.file {path} lists {names.most_common(1)[0][0]} more than once; keep one.")
    return coco


def find(missing: Sequence[Target], targets: Sequence[Target], path: Path) -> Iterator[tuple[Target, Found]]:
    """The boxes of the `missing` among all `targets`. A name matches as a path, or by its last part where that is
    unique on both sides. Raises ConfigError when no target matches."""
    contents = read(path)
    matches = _matches(targets, contents)
    if not matches:
        raise ConfigError(
            f"detection.file {path} lists none of the {len(targets)} images, which are matched by file_name; the "
            f"first image is {targets[0].source}."
        )
    names = {category.id: category.name for category in contents.categories}
    boxes: defaultdict[int | str, list[Named]] = defaultdict(list)
    for annotation in contents.annotations:
        boxes[annotation.image_id].append((names[annotation.category_id], annotation.bbox))
    for target in missing:
        image = matches.get(target.digest)
        if image is None:
            yield target, Found(error=f"{path.name} does not list it, or not by one name alone.")
        else:
            yield target, scaled(target, boxes[image.id], (image.width, image.height), path.name)


def _matches(targets: Sequence[Target], contents: Coco) -> dict[str, _CocoImage]:
    by_path = {_normal(image.file_name): image for image in contents.images}
    theirs = Counter(_last(image.file_name) for image in contents.images)
    ours = Counter(_last(target.source) for target in targets)
    by_last = {_last(image.file_name): image for image in contents.images}
    found = {}
    for target in targets:
        last = _last(target.source)
        image = by_path.get(_normal(target.source))
        if image is None and theirs[last] == ours[last] == 1:
            image = by_last[last]
        if image is not None:
            found[target.digest] = image
    return found


def _normal(name: str) -> str:
    return str(PurePosixPath(name.replace("\\", "/")))


def _last(name: str) -> str:
    return PurePosixPath(_normal(name)).name
