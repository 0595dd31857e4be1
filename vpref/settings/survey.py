"""What each step of a survey takes: the roots of `conf/survey_*.yaml`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import urlsplit

from vpref.settings.base import MISSING, require


@dataclass
class SurveyPlanSettings:
    """`vpref survey plan`: a dataset in, forms out. Each form holds at most `per_form` items, or there are `forms`
    of them for each variant; `places` annotators answer each, and it asks `checks` attention checks. With
    `undecided`, the folder of an aggregate run, only about the items that it found no ground truth for."""

    verb: str = MISSING
    outputs: str = "outputs"
    dataset: str = MISSING
    undecided: str | None = None
    title: str = "Everyday preferences"
    include_unresolved: bool = False
    per_form: int = 12
    forms: int | None = None
    places: int = 5
    checks: int = 0

    def __post_init__(self) -> None:
        for name in ("per_form", "places"):
            require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}; it must be at least 1.")
        require(self.forms is None or self.forms >= 1, f"forms is {self.forms}; it must be at least 1, or null.")
        require(self.checks >= 0, f"checks is {self.checks}; it must be 0 or more.")
        require(bool(self.title.strip()), "title is empty; annotators are shown it.")


@dataclass
class SurveyServeSettings:
    """`vpref survey serve`: the survey's own pages. `url` is the public address where it differs from host and port,
    as behind a proxy. A place is open for others once its holder has not been seen for `reopen_minutes`."""

    verb: str = MISSING
    outputs: str = "outputs"
    survey: str = MISSING
    host: str = "127.0.0.1"
    port: int = 8000
    url: str | None = None
    anonymous: bool = False
    introduction: str | None = None
    contact: str | None = None
    completion_code: str | None = None
    completion_url: str | None = None
    reopen_minutes: float = 60.0

    def __post_init__(self) -> None:
        require(0 <= self.port <= 65535, f"port is {self.port}; it must be 0 (any free port) to 65535.")
        require(self.reopen_minutes > 0, f"reopen_minutes is {self.reopen_minutes:g}; it must be above 0.")
        for name in ("url", "completion_url"):
            value = getattr(self, name)
            parts = urlsplit(value or "")
            whole = parts.scheme in ("http", "https") and parts.netloc
            require(value is None or bool(whole), f"{name} is {value!r}; give a whole address: https://...")


@dataclass
class SurveyAggregateSettings:
    """`vpref survey aggregate`: votes in, ground truth out. A label needs `least` valid votes. Without `votes`, those
    that the survey's own pages collected."""

    verb: str = MISSING
    outputs: str = "outputs"
    survey: str = MISSING
    votes: list[str] = field(default_factory=list)
    least: int = 3

    def __post_init__(self) -> None:
        require(self.least >= 1, f"least is {self.least}; it must be at least 1.")


@dataclass
class RehearsalSettings:
    """Made-up annotators. `accuracy` is by category 0-3 the chance that one finds the right choice; of other choices
    the share `other` is "other". `careless` is the share of annotators who guess."""

    accuracy: list[float] = field(default_factory=lambda: [0.92, 0.85, 0.95, 0.88])
    other: float = 0.3
    careless: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        require(len(self.accuracy) == 4, "rehearsal.accuracy must hold four numbers, one a category 0 to 3.")
        for value in (*self.accuracy, self.other, self.careless):
            require(0 <= value <= 1, f"rehearsal: {value} is no share between 0 and 1.")


@dataclass
class SurveySimulateSettings:
    """`vpref survey simulate`: a plan in, votes of made-up annotators out; with `url`, by its pages there."""

    verb: str = MISSING
    outputs: str = "outputs"
    survey: str = MISSING
    url: str | None = None
    rehearsal: RehearsalSettings = field(default_factory=RehearsalSettings)


class Dates(Enum):
    """Which comes first in dates like 3/7/2026."""

    day_first = "day_first"
    month_first = "month_first"


@dataclass
class SurveyImportSettings:
    """`vpref survey import`: answers from elsewhere in, votes out. `prolific` are Prolific's exports, `timezone` what
    to take local times for that name no zone."""

    verb: str = MISSING
    outputs: str = "outputs"
    survey: str = MISSING
    answers: list[str] = field(default_factory=list)
    prolific: list[str] = field(default_factory=list)
    timezone: str | None = None
    dates: Dates | None = None


@dataclass
class SurveyExportSettings:
    """`vpref survey export`: a plan in; forms for Google, study descriptions for Prolific out. `image_url` is where
    anybody can fetch the images, which the Forms API needs; `pay_per_hour` is in cents or pence."""

    verb: str = MISSING
    outputs: str = "outputs"
    survey: str = MISSING
    image_url: str | None = None
    study_url: str | None = None
    completion_code: str | None = None
    minutes: int = 15
    pay_per_hour: int = 1200

    def __post_init__(self) -> None:
        require(self.minutes >= 1, f"minutes is {self.minutes}; it must be at least 1.")
        require(self.pay_per_hour >= 0, f"pay_per_hour is {self.pay_per_hour}; it must be 0 or more.")
        for name, url in (("image_url", self.image_url), ("study_url", self.study_url)):
            require(
                url is None or url.startswith(("http://", "https://")),
                f"{name} is {url!r}; it must be an http(s) address.",
            )


@dataclass
class SurveyUploadSettings:
    """`vpref survey upload`: the forms of a `vpref survey export` run made in a Google account. `endpoint` is
    another address that Google's APIs are reached at."""

    verb: str = MISSING
    outputs: str = "outputs"
    export: str = MISSING
    endpoint: str | None = None

    def __post_init__(self) -> None:
        require(
            self.endpoint is None or self.endpoint.startswith(("http://", "https://")),
            f"endpoint is {self.endpoint!r}; it must be an http(s) address.",
        )


@dataclass
class SurveyFetchSettings(SurveyUploadSettings):
    """`vpref survey fetch`: the responses to uploaded forms."""
