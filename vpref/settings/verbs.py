"""What each verb takes: the roots of `conf/*.yaml`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from vpref.domain import Category, Role, Variant
from vpref.settings.ablation import AblationSettings
from vpref.settings.base import MISSING, require
from vpref.settings.data import DataSettings, DetectionSettings
from vpref.settings.models import ModelSettings, PipelineSettings
from vpref.settings.running import DriverSettings, SimulatorSettings, StoreSettings, TrackingSettings


@dataclass
class RunSettings:
    """What every verb has."""

    verb: str = MISSING
    outputs: str = "outputs"
    store: StoreSettings = field(default_factory=StoreSettings)
    tracking: TrackingSettings = field(default_factory=TrackingSettings)
    driver: DriverSettings = field(default_factory=DriverSettings)
    simulator: SimulatorSettings = field(default_factory=SimulatorSettings)
    preview: int | None = None
    dry_run: bool = False
    rehearse: bool = False

    def __post_init__(self) -> None:
        require(self.preview is None or self.preview >= 1, "preview must be a number of items, at least 1, or null.")


BOX_CATEGORIES = frozenset({0, 2})
"""Of the `boxes` variant, where every item depends on the image (paper, section 3.1)."""


@dataclass
class GenerateSettings(RunSettings):
    """`vpref generate`: images in, items out."""

    data: DataSettings = field(default_factory=DataSettings)
    pipeline: PipelineSettings = field(default_factory=PipelineSettings)
    detection: DetectionSettings = field(default_factory=DetectionSettings)
    variants: list[str] = field(default_factory=lambda: ["plain"])
    categories: list[int] = field(default_factory=lambda: [0, 1, 2, 3])
    samples: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = [int(category) for category in Category]
        for number in self.categories:
            require(number in allowed, f"category {number} is unknown; choose from 0, 1, 2, 3 or all.")
        for name in self.variants:
            require(name in tuple(Variant), f"variant {name!r} is unknown; choose from {', '.join(Variant)}.")
        require(
            self.variants != ["boxes"] or bool(BOX_CATEGORIES & set(self.categories)),
            "The boxes variant has categories 0 and 2 alone; choose one of these, or category=all.",
        )
        require(self.samples >= 1, f"samples is {self.samples}; it must be at least 1.")

    @property
    def boxed(self) -> bool:
        return Variant.BOXES in self.variants

    def models(self) -> dict[Role, ModelSettings]:
        """The model of each role that this run needs."""
        roles = self.pipeline.roles()
        return roles if self.boxed else {role: model for role, model in roles.items() if role is not Role.MAPPER}


@dataclass
class BoxesSettings(RunSettings):
    """`vpref boxes`: images in, boxes drawn and named out, as `generate` does it for the `boxes` variant."""

    data: DataSettings = field(default_factory=DataSettings)
    detection: DetectionSettings = field(default_factory=DetectionSettings)
    mapper: ModelSettings = field(default_factory=ModelSettings)
    attempts: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.attempts >= 1, f"attempts is {self.attempts}; it must be at least 1.")


@dataclass
class EvaluateSettings(RunSettings):
    """`vpref evaluate`: items in, one model's responses and its accuracy out. Outputs that direct matching cannot
    read go to the `extractor`, or stay unmatched where it is null."""

    dataset: str = MISSING
    evaluated: ModelSettings = field(default_factory=ModelSettings)
    extractor: ModelSettings | None = None
    ablation: AblationSettings = field(default_factory=AblationSettings)
    include_unresolved: bool = False
    truth: str | None = None

    def models(self) -> dict[Role, ModelSettings]:
        """The model of each role that this run needs."""
        extracting = {} if self.extractor is None else {Role.EXTRACTOR: self.extractor}
        return {Role.EVALUATED: self.evaluated} | extracting


@dataclass
class ImportSettings(RunSettings):
    """`vpref import`: items in the reference implementation's JSON in, a dataset out."""

    items: str = MISSING
    data: DataSettings = field(default_factory=DataSettings)


class PageImages(Enum):
    """Where a page's pictures are: in it, in a folder beside it, nowhere; `auto`: in it while they are few."""

    auto = "auto"
    inline = "inline"
    beside = "beside"
    none = "none"


@dataclass
class ReportSettings:
    """`vpref report`: tables over runs, and over models of which only `counts` are known; and a page of them all."""

    verb: str = "report"
    outputs: str = "outputs"
    runs: list[str] = field(default_factory=list)
    counts: str | None = None
    title: str = "vpref report"
    html: bool = True
    images: PageImages = PageImages.auto


@dataclass
class CompareSettings:
    """`vpref compare A B`: two evaluate runs on items that they share."""

    verb: str = "compare"
    outputs: str = "outputs"
    runs: list[str] = field(default_factory=list)
    html: bool = True
    images: PageImages = PageImages.auto


@dataclass
class SimulateSettings:
    """`vpref simulate`: the simulator alone, until Ctrl-C."""

    verb: str = "simulate"
    outputs: str = "outputs"
    simulator: SimulatorSettings = field(default_factory=SimulatorSettings)
