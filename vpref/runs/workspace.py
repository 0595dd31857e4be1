"""`vpref workspace entity=TEAM`: the panels of a W&B project."""

from __future__ import annotations

from vpref.errors import RunStopped
from vpref.issues import ISSUES
from vpref.runs.folder import RunFolder, write_json
from vpref.runs.terminal import say, shown
from vpref.settings import WorkspaceSettings
from vpref.tracking import account
from vpref.tracking.workspace import Panels


def workspace(settings: WorkspaceSettings, folder: RunFolder) -> None:
    """Run the verb: the workspace written down, and made in W&B."""
    account.require("wandb_workspaces", "dashboards")
    panels = Panels(settings.entity, settings.project, settings.title, [issue.name for issue in ISSUES])
    write_json(folder.path / "workspace.json", panels.definition())
    say(f"workspace: {shown(folder.path / 'workspace.json')}")
    if settings.dry_run:
        return
    account.log_in("dry_run=true goes without")
    try:
        address = panels.save()
    except Exception as error:  # the client's own, of many kinds
        raise RunStopped(f"W&B did not take the workspace ({str(error).splitlines()[0]}).") from error
    say(f"in W&B: {address}")
