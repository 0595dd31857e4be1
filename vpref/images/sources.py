"""Finds images and chooses among them: a folder of any depth, the packaged photos, or Visual Genome 1.2.

Every image found carries whose it is and under which licence, where that is known. Opens no image: whether
one can be used is for others to say.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vpref.errors import ConfigError
from vpref.settings import DataSettings, Source

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")

_VG_FOLDERS = ("VG_100K", "VG_100K_2")
_VG_RECORDS = "image_data.json"
_VG_ATTRIBUTION = "Visual Genome 1.2, Krishna et al. 2017, CC BY 4.0"
_VG_LICENCE = ("CC BY 4.0", "https://creativecommons.org/licenses/by/4.0/")


@dataclass(frozen=True, slots=True)
class SourceImage:
    """One image to use. `id` is its posix path relative to the root, or Visual Genome's image id. `present` is
    False for one that Visual Genome lists and the disk lacks."""

    id: str
    path: Path
    present: bool = True
    attribution: str | None = None
    licence: str | None = None
    licence_url: str | None = None
    url: str | None = None


def list_images(settings: DataSettings) -> list[SourceImage]:
    """The images that `settings` choose, in path order (Visual Genome's by number).

    `first` and `sample` count images that are present; absent ones passed over on the way to them are in the
    list too, so that whoever reads it can count them. The sample depends on the ids and the seed alone.

    Raises ConfigError when the root, its layout or a chosen image is missing.
    """
    if settings.source is Source.visual_genome:
        images = _visual_genome(_existing_root(settings))
    elif settings.root is None:
        images = _packaged()
    else:
        images = _folder(_existing_root(settings))
    chosen = _chosen(images, settings)
    if not chosen:
        raise ConfigError(f"No image is chosen from data.root {settings.root}; data.ids or image_data.json is empty.")
    return chosen


def _existing_root(settings: DataSettings) -> Path:
    if settings.root is None:
        raise ConfigError("data.root is null; set it to the folder that holds Visual Genome's VG_100K and VG_100K_2.")
    root = Path(settings.root).expanduser()
    if not root.exists():
        raise ConfigError(f"data.root {settings.root} does not exist (looked in {Path.cwd()}); set it to a folder.")
    if not root.is_dir():
        raise ConfigError(f"data.root {settings.root} is not a folder; set it to the folder that holds the images.")
    return root


# --- a folder --------------------------------------------------------------------------------------------


def _folder(root: Path) -> list[SourceImage]:
    images = sorted((SourceImage(_id(path, root), path) for path in _walk(root)), key=lambda image: image.id)
    if not images:
        raise ConfigError(f"No image file is in {root}; vpref reads {', '.join(SUFFIXES)}, in folders of any depth.")
    return images


def _id(path: Path, root: Path) -> str:
    # A name that is not UTF-8 must still fit into JSON and into a config.
    return os.fsencode(path.relative_to(root).as_posix()).decode("utf-8", "backslashreplace")


def _walk(root: Path) -> Iterator[Path]:
    """Image files below `root`. Linked folders are entered last, and none is entered twice, so that loops end and
    a file is known by its real place wherever it has one below `root`."""
    entered: set[tuple[int, int]] = set()
    folders: list[Path] = [root]
    linked: list[Path] = []
    while folders or linked:
        folder = folders.pop() if folders else linked.pop(0)
        status = folder.stat()
        if (status.st_dev, status.st_ino) in entered:
            continue
        entered.add((status.st_dev, status.st_ino))
        for entry in _entries(folder):
            if entry.name.startswith("."):
                continue
            if _is(entry.is_dir):
                (linked if entry.is_symlink() else folders).append(Path(entry.path))
            elif entry.name.lower().endswith(SUFFIXES) and (_is(entry.is_file) or _is_broken_link(entry)):
                yield Path(entry.path)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as exc:
        raise ConfigError(f"Folder {folder} cannot be read ({exc.strerror}); change its rights or move it.") from exc


def _is(question: Callable[[], bool]) -> bool:
    try:
        return question()
    except OSError:
        return False  # a link to itself


def _is_broken_link(entry: os.DirEntry[str]) -> bool:
    # Listed, so that it is refused and counted rather than passed over in silence.
    return entry.is_symlink() and not os.path.exists(entry.path)


# --- the packaged photos ---------------------------------------------------------------------------------


def _packaged() -> list[SourceImage]:
    root = Path(str(importlib.resources.files("vpref.images") / "photos"))
    credits: dict[str, dict[str, str]] = json.loads((root / "attribution.json").read_text("utf-8"))
    return [
        SourceImage(
            id=name,
            path=root / name,
            attribution=f"{credit['title']}, {credit['author']}, {credit['licence']}; {credit['changes']}",
            licence=credit["licence"],
            licence_url=credit["licence_url"],
            url=credit["url"],
        )
        for name, credit in sorted(credits.items())
    ]


# --- Visual Genome ---------------------------------------------------------------------------------------


def _visual_genome(root: Path) -> list[SourceImage]:
    missing = [name for name in (*_VG_FOLDERS, _VG_RECORDS) if not (root / name).exists()]
    if missing:
        raise ConfigError(
            f"data.root {root} lacks {', '.join(missing)}; unpack Visual Genome 1.2's images.zip, images2.zip and "
            "image_data.json.zip there."
        )
    # Two directory listings instead of 108,077 stats; the first folder comes last, so that it wins.
    folders = [root / name for name in _VG_FOLDERS]
    on_disk = {entry.name: folder for folder in reversed(folders) for entry in _entries(folder)}
    licence, licence_url = _VG_LICENCE
    images = []
    for number, url in sorted(_vg_records(root / _VG_RECORDS).items()):
        name = f"{number}.jpg"
        folder = on_disk.get(name)
        path = (folder or folders[0]) / name
        images.append(
            SourceImage(
                id=str(number),
                path=path,
                present=folder is not None,
                attribution=_VG_ATTRIBUTION,
                licence=licence,
                licence_url=licence_url,
                url=url,
            )
        )
    return images


def _vg_records(path: Path) -> dict[int, str | None]:
    """Image id -> URL."""
    try:
        records: Any = json.loads(path.read_bytes())
        return {int(record["image_id"]): str(record["url"]) if record.get("url") else None for record in records}
    except OSError as exc:
        raise ConfigError(f"{path} cannot be read: {exc.strerror}.") from exc
    except (ValueError, RecursionError) as exc:
        raise ConfigError(f"{path} is not readable JSON ({exc}); unpack image_data.json.zip again.") from exc
    except (KeyError, TypeError, AttributeError) as exc:
        raise ConfigError(f"{path} is not Visual Genome's list of {{image_id, url, ...}}; unpack it again.") from exc


# --- choosing --------------------------------------------------------------------------------------------


def _chosen(images: list[SourceImage], settings: DataSettings) -> list[SourceImage]:
    if settings.ids is not None:
        return _by_id(images, settings.ids)
    if settings.first is not None:
        return list(_until(settings.first, images))
    if settings.sample is not None:
        # Ranked by a hash rather than drawn from a list: images absent here leave the others' ranks as they are.
        ranked = sorted(images, key=lambda image: hashlib.sha256(f"{settings.seed}/{image.id}".encode()).digest())
        drawn = {image.id for image in _until(settings.sample, ranked)}
        return [image for image in images if image.id in drawn]
    return images


def _until(count: int, images: Iterable[SourceImage]) -> Iterator[SourceImage]:
    """Images up to the `count`-th that is present."""
    for image in images:
        if count == 0:
            return
        count -= image.present
        yield image


def _by_id(images: list[SourceImage], ids: list[str]) -> list[SourceImage]:
    wanted = set(ids)
    unknown = sorted(wanted.difference(image.id for image in images))
    if unknown:
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        raise ConfigError(f"data.ids names {', '.join(unknown[:3])}{more}, not found; an id is a path below data.root.")
    return [image for image in images if image.id in wanted]
