"""What each step of a survey takes: the roots of `conf/survey_*.yaml`."""

from __future__ import annotations

from dataclasses import dataclass

from vpref.settings.base import MISSING, require


@dataclass
class SurveyPlanSettings:
    """`vpref survey plan`: a dataset in, forms out. Each form holds at most `per_form` items, or there are `forms`
    of them for each variant; `places` annotators answer each, and it asks `checks` attention checks."""

    verb: str = MISSING
    outputs: str = "outputs"
    dataset: str = MISSING
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
