"""What the verbs take that send what is on disk to W&B."""

from __future__ import annotations

from dataclasses import dataclass, field

from vpref.settings.base import MISSING


@dataclass
class SyncSettings:
    """`vpref sync`: offline runs in, W&B's copies of them out."""

    verb: str = "sync"
    outputs: str = "outputs"
    runs: list[str] = field(default_factory=list)
    dry_run: bool = False


@dataclass
class WorkspaceSettings:
    """`vpref workspace`: the panels of a W&B project."""

    verb: str = "workspace"
    outputs: str = "outputs"
    entity: str = MISSING
    project: str = "vpref"
    title: str = "vpref"
    dry_run: bool = False
