"""The typed face of `conf/`: one dataclass a config node, checked on construction.

Hydra composes YAML against these (a misspelt key or wrong type stops there), `OmegaConf.to_object` makes
them, and below `vpref.runs` there are only these objects. A field exists only where an experiment turns it.
Knows nothing of Hydra or OmegaConf. Enum members are spelt as they are written in YAML.
"""

from vpref.settings.ablation import AblationSettings, AnswerForm, BoxesShown, ImageShown, PreferenceShown, SceneShown
from vpref.settings.dashboards import SyncSettings, WorkspaceSettings
from vpref.settings.data import BoxSource, DataSettings, DetectionSettings, Duplicates, Source
from vpref.settings.models import (
    RESERVED_PARAMS,
    SECRET_PARAMS,
    Api,
    Constrain,
    Dtype,
    ImageSettings,
    InProcessSettings,
    LimitSettings,
    MessageOrder,
    ModelSettings,
    PipelineSettings,
    PriceSettings,
    Serve,
    Structured,
    api_key,
)
from vpref.settings.running import (
    DriverSettings,
    FaultSettings,
    Progress,
    Service,
    SimulatorSettings,
    StoreSettings,
    TrackingMode,
    TrackingSettings,
)
from vpref.settings.serving import VllmSettings
from vpref.settings.survey import (
    Dates,
    RehearsalSettings,
    SurveyAggregateSettings,
    SurveyExportSettings,
    SurveyImportSettings,
    SurveyPlanSettings,
    SurveyServeSettings,
    SurveySimulateSettings,
)
from vpref.settings.verbs import (
    BOX_CATEGORIES,
    BoxesSettings,
    EvaluateSettings,
    GenerateSettings,
    ImportSettings,
    ReportSettings,
    RunSettings,
    SimulateSettings,
)

__all__ = [
    "BOX_CATEGORIES",
    "RESERVED_PARAMS",
    "SECRET_PARAMS",
    "AblationSettings",
    "AnswerForm",
    "Api",
    "BoxSource",
    "BoxesSettings",
    "BoxesShown",
    "Constrain",
    "DataSettings",
    "Dates",
    "DetectionSettings",
    "DriverSettings",
    "Dtype",
    "Duplicates",
    "EvaluateSettings",
    "FaultSettings",
    "GenerateSettings",
    "ImageSettings",
    "ImageShown",
    "ImportSettings",
    "InProcessSettings",
    "LimitSettings",
    "MessageOrder",
    "ModelSettings",
    "PipelineSettings",
    "PreferenceShown",
    "PriceSettings",
    "Progress",
    "RehearsalSettings",
    "ReportSettings",
    "RunSettings",
    "SceneShown",
    "Serve",
    "Service",
    "SimulateSettings",
    "SimulatorSettings",
    "Source",
    "StoreSettings",
    "Structured",
    "SurveyAggregateSettings",
    "SurveyExportSettings",
    "SurveyImportSettings",
    "SurveyPlanSettings",
    "SurveyServeSettings",
    "SurveySimulateSettings",
    "SyncSettings",
    "TrackingMode",
    "TrackingSettings",
    "VllmSettings",
    "WorkspaceSettings",
    "api_key",
]
