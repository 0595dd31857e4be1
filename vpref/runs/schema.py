"""Where OmegaConf ends: the schemas that YAML is checked against, and composed configs made into settings."""

from __future__ import annotations

import hashlib
import re
from typing import Any, TypeVar

from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from vpref.errors import ConfigError
from vpref.settings import (
    BoxesSettings,
    CompareSettings,
    EvaluateSettings,
    GenerateSettings,
    ImportSettings,
    ReportSettings,
    SimulateSettings,
    SurveyAggregateSettings,
    SurveyExportSettings,
    SurveyFetchSettings,
    SurveyImportSettings,
    SurveyPlanSettings,
    SurveyServeSettings,
    SurveySimulateSettings,
    SurveyUploadSettings,
    SyncSettings,
    WorkspaceSettings,
)

S = TypeVar("S")

SCHEMAS: dict[str, type] = {
    "generate": GenerateSettings,
    "evaluate": EvaluateSettings,
    "boxes": BoxesSettings,
    "import": ImportSettings,
    "report": ReportSettings,
    "compare": CompareSettings,
    "simulate": SimulateSettings,
    "sync": SyncSettings,
    "workspace": WorkspaceSettings,
    "demo": GenerateSettings,
    "survey_plan": SurveyPlanSettings,
    "survey_export": SurveyExportSettings,
    "survey_upload": SurveyUploadSettings,
    "survey_fetch": SurveyFetchSettings,
    "survey_serve": SurveyServeSettings,
    "survey_import": SurveyImportSettings,
    "survey_simulate": SurveySimulateSettings,
    "survey_aggregate": SurveyAggregateSettings,
}


def register(*verbs: str) -> None:
    """Tell Hydra the schemas of these verbs (all, without any) and the resolver that folder names use. Each
    schema takes a fiftieth of a second. Calling it again changes nothing."""
    store = ConfigStore.instance()
    for name in verbs or SCHEMAS:
        store.store(group="schema", name=name, node=SCHEMAS[name], package="_global_", provider="vpref")
    OmegaConf.register_new_resolver("vpref.slug", slug, replace=True)


def slug(text: str, longest: int = 100) -> str:
    """A name for a folder out of any overrides: no separator survives, and two texts never share a name."""
    text = str(text)
    plain = re.sub(r"[^A-Za-z0-9._=-]+", "-", text).strip("-.") or "default"
    if plain == text and len(plain) <= longest:
        return plain
    return f"{plain[:longest]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def typed(config: DictConfig, schema: type[S]) -> S:
    """The settings object of a composed config.

    Raises ConfigError naming the key where a mandatory value is missing or a value does not fit.
    """
    missing = sorted(OmegaConf.missing_keys(config))
    if missing:
        raise ConfigError(f"Nothing is given for {', '.join(missing)}; set it on the command line: {missing[0]}=VALUE.")
    try:
        value: Any = OmegaConf.to_object(config)
    except MissingMandatoryValue as error:
        raise ConfigError(f"A mandatory value is missing: {error.full_key}.") from error
    except OmegaConfBaseException as error:
        raise ConfigError(f"{error.full_key or 'The config'} does not fit: {str(error).splitlines()[0]}.") from error
    assert isinstance(value, schema)
    return value


def plain(config: DictConfig) -> dict[str, Any]:
    """The composed config as plain values, for the manifest."""
    value: Any = OmegaConf.to_container(config, resolve=True, enum_to_str=True)
    return {str(key): item for key, item in value.items()}
