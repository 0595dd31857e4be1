"""`vpref sync RUNS...`: offline runs to W&B, with all their images, from wherever their folders lie now."""

from __future__ import annotations

import socket
from pathlib import Path

from vpref.errors import ConfigError
from vpref.runs.folder import RunFolder, read_json
from vpref.runs.sweeps import alive
from vpref.runs.terminal import say, shown
from vpref.settings import SyncSettings
from vpref.tracking import Mirror, account, find_mirrors, repoint


def sync(settings: SyncSettings, folder: RunFolder) -> None:
    """Run the verb: each run's paths mended and told of, then all that are whole sent."""
    if not settings.runs:
        raise ConfigError("Which runs? Give their folders: vpref sync outputs/generate/TIME outputs/evaluate/*")
    account.require("wandb", "wandb")
    account.quiet()
    found = _find(settings.runs)
    told = [_ready(path) for path in found]
    ready = [path for path, problem in zip(found, told, strict=True) if problem is None]
    folder.note(runs=[{"path": str(path), "left_out": problem} for path, problem in zip(found, told, strict=True)])
    left = len(found) - len(ready)
    if settings.dry_run:
        say(f"dry_run: {len(ready)} would be sent, {left} left out")
    elif ready:
        account.log_in("dry_run=true goes without")
        account.send(ready)
    if left:
        raise ConfigError(f"{left} of {len(found)} runs cannot be sent; the lines above say why.")


def _find(given: list[str]) -> list[Path]:
    """The runs' mirrors in the folders given, once each. Raises ConfigError naming a folder without any."""
    mirrors: dict[Path, None] = {}
    for name in given:
        if not Path(name).is_dir():
            raise ConfigError(f"There is no run folder at {name}.")
        here = find_mirrors(Path(name).resolve())
        if not here:
            raise ConfigError(f"{name} holds no W&B files; runs write them with tracking=offline.")
        mirrors |= dict.fromkeys(here)
    return list(mirrors)


def _ready(path: Path) -> str | None:
    """Mend one run's paths and print how it stands; why it cannot be sent, None where it can."""
    home = path.parents[1]
    problem: str | None = None
    try:
        if _running(home):
            problem = "it still runs"
        else:
            mirror = repoint(path)
            problem = _lacking(mirror)
            if problem is None:
                say(f"{shown(home)}: {_told(mirror)}")
    except (ValueError, OSError) as error:
        problem = str(error)
    if problem is not None:
        say(f"{shown(home)}: left out, {problem}")
    return problem


def _lacking(mirror: Mirror) -> str | None:
    if not mirror.missing:
        return None
    return (
        f"{len(mirror.missing):,} of its {mirror.files:,} files are missing or changed, the first {mirror.missing[0]}"
    )


def _told(mirror: Mirror) -> str:
    ended = "never came to its end" if mirror.code is None else f"ended with exit code {mirror.code}"
    moved = f", {mirror.moved:,} found where the run lies now" if mirror.moved else ""
    return f"{mirror.files:,} files{moved}; {ended}"


def _running(home: Path) -> bool:
    """Whether a run's own process lives, as far as can be told here; one that was killed says running for ever."""
    try:
        status = read_json(home / "status.json")
    except ConfigError:
        return False
    return status.get("state") == "running" and status.get("host") == socket.gethostname() and alive(status.get("pid"))
