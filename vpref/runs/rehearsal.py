"""`rehearse=true`: the same command with the simulator in every model's place, and a store of its own."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

from vpref.settings import Api, ModelSettings, PipelineSettings, RunSettings, Serve, StoreSettings

S = TypeVar("S")


def rehearsed(settings: S) -> S:
    """The settings, with every model simulated under its own name and at its own price where a rehearsal is asked
    for; replies and images are kept in `<store.root>/rehearsal`."""
    if not isinstance(settings, RunSettings) or not settings.rehearse:
        return settings
    changed: Any = _simulated(settings)
    changed.store = StoreSettings(root=f"{settings.store.root}/rehearsal")
    return changed  # type: ignore[no-any-return]


def _simulated(node: Any) -> Any:
    """The node with its models replaced."""
    changes = {one.name: _stand_in(getattr(node, one.name)) for one in fields(node)}
    return replace(node, **{name: value for name, value in changes.items() if value is not getattr(node, name)})


def _stand_in(value: Any) -> Any:
    if isinstance(value, ModelSettings):
        api = Api.chat if value.api is Api.transformers else value.api
        return replace(value, api=api, serve=Serve.simulator, server="simulator", base_url=None, api_key_env=None)
    return _simulated(value) if isinstance(value, PipelineSettings) else value
