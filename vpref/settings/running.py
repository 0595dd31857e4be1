"""How a run goes: its driver, its store, its mirror, and the simulator."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from vpref.settings.base import require


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
            require(0 <= value <= 1, f"simulator.faults.{name} is {value}; it must be a share between 0 and 1.")


class Service(Enum):
    """In whose guise the simulator answers: what that service refuses it refuses, in that service's words."""

    none = "none"
    openrouter = "openrouter"
    gemini = "gemini"
    anthropic = "anthropic"
    ollama = "ollama"
    lm_studio = "lm_studio"


@dataclass
class SimulatorSettings:
    """The simulator's profile. `accuracy` is per category 0-3, for models named in `skills` shifted by that
    much (-1 to 1); `issues` are the shares of drafts reviewed with each issue, `unmatched` the share of
    evaluated outputs that name no choice, `letter_bias` the share that says `a` whatever is asked. Latencies
    and stalls are in seconds."""

    host: str = "127.0.0.1"
    port: int = 0
    latency_s: float = 0.0
    stall_s: float = 5.0
    retry_after_s: float = 0.2
    accuracy: list[float] = field(default_factory=lambda: [0.95, 0.85, 0.95, 0.9])
    skills: dict[str, float] = field(default_factory=dict)
    issues: dict[str, float] = field(default_factory=dict)
    unmatched: float = 0.0
    letter_bias: float = 0.0
    faults: FaultSettings = field(default_factory=FaultSettings)
    log: str | None = None
    service: Service = Service.none

    def __post_init__(self) -> None:
        require(len(self.accuracy) == 4, "simulator.accuracy must hold four numbers, one a category 0 to 3.")
