"""What every settings module needs: Hydra's mark for a mandatory value, and saying what does not fit."""

from __future__ import annotations

from typing import Any

from vpref.errors import ConfigError

MISSING: Any = "???"


def require(condition: bool, message: str) -> None:
    """Raise ConfigError with the message unless the condition holds."""
    if not condition:
        raise ConfigError(message)
