"""The way to W&B's servers: whether it is open, and sending offline runs along it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from vpref.errors import ConfigError, RunStopped


def require(package: str, extra: str) -> None:
    """Raises ConfigError where a package that talks to W&B is not installed."""
    if importlib.util.find_spec(package) is None:
        raise ConfigError(f"This needs {package.replace('_', '-')}: pip install 'vpref[{extra}]'.")


def log_in(instead: str) -> None:
    """Raises ConfigError where there is no key, with what to do `instead`, and RunStopped where W&B does not take it
    or cannot be reached."""
    quiet()
    import wandb

    try:
        known = wandb.login(prompt=False)
    except Exception as error:  # the client's own, of many kinds; nothing was begun yet
        raise RunStopped(f"W&B does not let us in ({str(error).splitlines()[0]}).") from error
    if not known:
        raise ConfigError(f"W&B has no key: set WANDB_API_KEY, or run `wandb login`; {instead}.")


def quiet() -> None:
    """Before W&B's client is imported: no reports on itself, and no advertisements."""
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    os.environ.setdefault("WANDB_SILENT", "true")


def send(mirrors: Sequence[Path]) -> None:
    """Sync offline runs by W&B's own command, which shows how far it is. Raises RunStopped naming those it left."""
    command = [sys.executable, "-m", "wandb", "sync", *map(str, mirrors)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, env=os.environ | {"WANDB_SILENT": "false"}, check=False)
    left = [mirror for mirror in mirrors if not any(mirror.glob("run-*.wandb.synced"))]
    if done.returncode or left:
        which = ", ".join(str(mirror.parents[1].name) for mirror in left) or "none"
        raise RunStopped(f"wandb sync ended with exit code {done.returncode}; not sent: {which}. Give the same again.")
