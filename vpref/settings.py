"""The typed face of `conf/`: one dataclass a config node, checked on construction.

Hydra composes YAML against these (a misspelt key or wrong type stops there), `OmegaConf.to_object` makes
them, and below `vpref.runs` there are only these objects. A field exists only where an experiment turns it.
Knows nothing of Hydra or OmegaConf. Enum members are spelt as they are written in YAML.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from vpref.domain import Category, Role, Variant
from vpref.errors import ConfigError

MISSING: Any = "???"


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


# --- models ----------------------------------------------------------------------------------------------


class Api(Enum):
    """Endpoint family: OpenAI's Responses, or Chat Completions as many servers speak it."""

    responses = "responses"
    chat = "chat"


class Structured(Enum):
    """How a reply's JSON schema reaches the model: enforced by the server (`strict`), passed on without
    the strict flag (`json_schema`), or only told in the prompt (`prompt`)."""

    strict = "strict"
    json_schema = "json_schema"
    prompt = "prompt"


class Serve(Enum):
    """Who runs the server: somebody else (`external`), or vpref itself for the run (`simulator`)."""

    external = "external"
    simulator = "simulator"


@dataclass
class ImageSettings:
    """How images are sent. `detail` is OpenAI's (null: not sent); `max_side` px bounds the longer side."""

    detail: str | None = "high"
    max_side: int | None = None

    def __post_init__(self) -> None:
        _require(self.max_side is None or self.max_side >= 32, "image.max_side must be at least 32 pixels, or null.")


@dataclass
class PriceSettings:
    """US dollars for a million tokens; `cached` is the price of input tokens read from the server's cache."""

    input: float = 0.0
    cached: float = 0.0
    output: float = 0.0


@dataclass
class LimitSettings:
    """Bounds on one model: requests at once, seconds for a request, and how often a failed one is retried
    (the server's Retry-After is obeyed)."""

    concurrency: int = 32
    timeout_s: float = 180.0
    retries: int = 6

    def __post_init__(self) -> None:
        _require(self.concurrency >= 1, f"limits.concurrency is {self.concurrency}; it must be at least 1.")
        _require(self.timeout_s > 0, f"limits.timeout_s is {self.timeout_s}; it must be above 0.")
        _require(self.retries >= 0, f"limits.retries is {self.retries}; it must be 0 or more.")


RESERVED_PARAMS = frozenset({"model", "messages", "input", "instructions", "stream", "n", "response_format", "text"})
SECRET_PARAMS = frozenset({"api_key", "authorization", "headers", "extra_headers"})


@dataclass
class ModelSettings:
    """How to reach one model.

    `server` is the identity of who answers, part of every call's key: two servers with one name are taken
    to give the same replies. `params` go into the request as they are. `api_key_env` names the environment
    variable that holds the key, null where the server wants none.
    """

    name: str = MISSING
    label: str | None = None
    server: str = MISSING
    api: Api = Api.chat
    base_url: str | None = None
    api_key_env: str | None = None
    serve: Serve = Serve.external
    structured: Structured = Structured.json_schema
    params: dict[str, Any] = field(default_factory=dict)
    image: ImageSettings = field(default_factory=ImageSettings)
    price: PriceSettings = field(default_factory=PriceSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)

    def __post_init__(self) -> None:
        taken = sorted(RESERVED_PARAMS.intersection(self.params))
        _require(not taken, f"params of model {self.name!r} may not hold {', '.join(taken)}: vpref sets these itself.")
        secret = sorted(SECRET_PARAMS.intersection(self.params))
        _require(not secret, f"params may not hold {', '.join(secret)}: keys belong in the environment (api_key_env).")
        _require(
            "@" not in (self.base_url or ""),
            f"base_url of model {self.name!r} may not hold a user or password: it would be recorded with every run.",
        )
        _require(
            self.server.split("/")[0] != "simulator" or self.serve is Serve.simulator,
            f"server: simulator is kept for the built-in simulator; give model {self.name!r} another server name.",
        )

    @property
    def title(self) -> str:
        """The name shown in tables."""
        return self.label or self.name


# --- the pipeline ----------------------------------------------------------------------------------------


class MessageOrder(Enum):
    """`instructions_first` shares the role's text across images in a prefix cache, `image_first` the image
    across roles; which one saves more depends on their lengths (DESIGN 7)."""

    instructions_first = "instructions_first"
    image_first = "image_first"


@dataclass
class PipelineSettings:
    """The loop generator -> reviewer -> (revisor -> reviewer)* -> responder and who plays each role; the mapper
    names boxes before it.

    A role left null is played by `model`. `attempts` bounds how often a malformed reply is asked for.
    """

    model: ModelSettings = field(default_factory=ModelSettings)
    generator: ModelSettings | None = None
    reviewer: ModelSettings | None = None
    revisor: ModelSettings | None = None
    responder: ModelSettings | None = None
    mapper: ModelSettings | None = None
    review: bool = True
    max_revisions: int = 4
    attempts: int = 3
    message_order: MessageOrder = MessageOrder.instructions_first

    def __post_init__(self) -> None:
        _require(self.max_revisions >= 0, f"pipeline.max_revisions is {self.max_revisions}; it must be 0 or more.")
        _require(self.attempts >= 1, f"pipeline.attempts is {self.attempts}; it must be at least 1.")

    def roles(self) -> dict[Role, ModelSettings]:
        """The model of each role."""
        return {
            Role.GENERATOR: self.generator or self.model,
            Role.REVIEWER: self.reviewer or self.model,
            Role.REVISOR: self.revisor or self.model,
            Role.RESPONDER: self.responder or self.model,
            Role.MAPPER: self.mapper or self.model,
        }


# --- images ----------------------------------------------------------------------------------------------


class Source(Enum):
    """Where images come from: a folder of any depth (null root: the photos that ship with vpref), or a copy
    of Visual Genome 1.2."""

    folder = "folder"
    visual_genome = "visual_genome"


@dataclass
class DataSettings:
    """Which images, and how they are normalised.

    Selection, at most one of: `first` n in path order, a `sample` of n drawn with `seed`, or `ids` (paths
    relative to `root`; Visual Genome's image ids). Images longer than `max_side` px are reduced; shorter
    than `min_side` px or above `max_megapixels` are refused.
    """

    source: Source = Source.folder
    root: str | None = None
    first: int | None = None
    sample: int | None = None
    seed: int = 0
    ids: list[str] | None = None
    max_side: int = 2048
    min_side: int = 32
    max_megapixels: float = 200.0

    def __post_init__(self) -> None:
        chosen = [name for name in ("first", "sample", "ids") if getattr(self, name) is not None]
        _require(len(chosen) <= 1, f"data.{' and data.'.join(chosen)} exclude one another; set one of them.")
        for name in ("first", "sample"):
            value = getattr(self, name)
            _require(value is None or value >= 1, f"data.{name} is {value}; it must be at least 1, or null for all.")
        _require(self.max_side >= self.min_side >= 1, "data.max_side must be at least data.min_side, and both above 0.")


class BoxSource(Enum):
    """Where boxes come from: a YOLO detector, Visual Genome's own objects, or a file in COCO's format."""

    yolo = "yolo"
    visual_genome = "visual_genome"
    file = "file"


class Duplicates(Enum):
    """What several boxes of one class lead to: the image is discarded (the paper), or the class is dropped (the
    reference code)."""

    discard_image = "discard_image"
    drop_class = "drop_class"


@dataclass
class DetectionSettings:
    """Boxes for the `boxes` variant: how they are found, and which are kept.

    `file` is a COCO-format JSON whose images are matched by file name (null: the boxes of the photos that ship
    with vpref). `people` are class names never shown. A box larger than `max_share` of the image is removed, and
    one that holds at least `contained` of the area of another box.
    """

    source: BoxSource = BoxSource.yolo
    weights: str = "yolo26n.pt"
    image_size: int = 640
    confidence: float = 0.25
    device: str | None = None
    batch: int = 16
    file: str | None = None
    people: list[str] = field(default_factory=lambda: ["person"])
    duplicates: Duplicates = Duplicates.discard_image
    max_share: float = 0.5
    contained: float = 0.9
    max_boxes: int = 5

    def __post_init__(self) -> None:
        _require(0 < self.confidence < 1, f"detection.confidence is {self.confidence}; it must lie between 0 and 1.")
        _require(0 < self.max_share <= 1, f"detection.max_share is {self.max_share}; it must be a share up to 1.")
        _require(0 < self.contained <= 1, f"detection.contained is {self.contained}; it must be a share up to 1.")
        _require(2 <= self.max_boxes <= 5, f"detection.max_boxes is {self.max_boxes}; it must be 2 to 5.")
        _require(self.batch >= 1, f"detection.batch is {self.batch}; it must be at least 1.")


# --- running ---------------------------------------------------------------------------------------------


class Progress(Enum):
    """`auto`: a live panel in a terminal, plain lines elsewhere."""

    auto = "auto"
    rich = "rich"
    plain = "plain"
    none = "none"


@dataclass
class DriverSettings:
    """`drain_s`: how long requests in flight may still take after Ctrl-C. `every_s`: seconds between plain
    progress lines."""

    drain_s: float = 20.0
    progress: Progress = Progress.auto
    every_s: float = 10.0


class TrackingMode(Enum):
    """`offline` writes W&B files beside the run for a later `wandb sync`; `none` writes none."""

    offline = "offline"
    online = "online"
    none = "none"


@dataclass
class TrackingSettings:
    """The Weights & Biases mirror of a run. Our own records are the truth; losing this loses nothing."""

    mode: TrackingMode = TrackingMode.offline
    project: str = "vpref"
    entity: str | None = None


@dataclass
class StoreSettings:
    """The call store that all runs share, and the normalised images beside it."""

    root: str = "outputs/store"


# --- the simulator ---------------------------------------------------------------------------------------


@dataclass
class FaultSettings:
    """Shares of requests (0 to 1) that the simulator spoils. The first four are transport faults, met on a
    request's first arrivals and gone when it is repeated; the others are replies, the same each time."""

    http_429: float = 0.0
    http_500: float = 0.0
    stall: float = 0.0
    drop: float = 0.0
    refusal: float = 0.0
    cut: float = 0.0
    malformed: float = 0.0
    empty: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            _require(0 <= value <= 1, f"simulator.faults.{name} is {value}; it must be a share between 0 and 1.")


@dataclass
class SimulatorSettings:
    """The simulator's profile. `accuracy` is per category 0-3, for models named in `skills` shifted by that
    much (-1 to 1); `issues` are the shares of drafts reviewed with each issue, `unmatched` the share of
    evaluated outputs that name no choice. Latencies and stalls are in seconds."""

    host: str = "127.0.0.1"
    port: int = 0
    latency_s: float = 0.0
    stall_s: float = 5.0
    retry_after_s: float = 0.2
    accuracy: list[float] = field(default_factory=lambda: [0.95, 0.85, 0.95, 0.9])
    skills: dict[str, float] = field(default_factory=dict)
    issues: dict[str, float] = field(default_factory=dict)
    unmatched: float = 0.0
    faults: FaultSettings = field(default_factory=FaultSettings)
    log: str | None = None

    def __post_init__(self) -> None:
        _require(len(self.accuracy) == 4, "simulator.accuracy must hold four numbers, one a category 0 to 3.")


# --- the verbs -------------------------------------------------------------------------------------------


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

    def __post_init__(self) -> None:
        _require(self.preview is None or self.preview >= 1, "preview must be a number of items, at least 1, or null.")


BOX_CATEGORIES = frozenset({0, 2})
"""Of the `boxes` variant, where every item depends on the image (SPEC 1)."""


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
            _require(number in allowed, f"category {number} is unknown; choose from 0, 1, 2, 3 or all.")
        for name in self.variants:
            _require(name in tuple(Variant), f"variant {name!r} is unknown; choose from {', '.join(Variant)}.")
        _require(
            self.variants != ["boxes"] or bool(BOX_CATEGORIES & set(self.categories)),
            "The boxes variant has categories 0 and 2 alone; choose one of these, or category=all.",
        )
        _require(self.samples >= 1, f"samples is {self.samples}; it must be at least 1.")

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
        _require(self.attempts >= 1, f"attempts is {self.attempts}; it must be at least 1.")


@dataclass
class EvaluateSettings(RunSettings):
    """`vpref evaluate`: items in, one model's responses and its accuracy out."""

    dataset: str = MISSING
    evaluated: ModelSettings = field(default_factory=ModelSettings)
    include_unresolved: bool = False


@dataclass
class ReportSettings:
    """`vpref report`: tables over evaluation runs."""

    verb: str = "report"
    outputs: str = "outputs"
    runs: list[str] = field(default_factory=list)


@dataclass
class SimulateSettings:
    """`vpref simulate`: the simulator alone, until Ctrl-C."""

    verb: str = "simulate"
    outputs: str = "outputs"
    simulator: SimulatorSettings = field(default_factory=SimulatorSettings)


def api_key(model: ModelSettings) -> str:
    """The model's key from the environment, or a placeholder where the server wants none.

    Raises ConfigError naming the variable when it is unset or empty.
    """
    if model.api_key_env is None:
        return "none"
    value = os.environ.get(model.api_key_env, "").strip()
    _require(
        bool(value),
        f"Model {model.name!r} needs an API key in the environment variable {model.api_key_env}; set it, or choose "
        "another model (model@pipeline.model=simulator runs without a key).",
    )
    return value
