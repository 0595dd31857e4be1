"""Reading counts: results of which no more is known than how many answers were right."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field, ValidationError, model_validator

from vpref.domain import Record, Variant
from vpref.errors import ConfigError
from vpref.reports import Count, Counted

PAPER = "paper"
_Group: TypeAlias = Literal["overall", "typical", "atypical"]
_EXAMPLE = '{"source": "lab", "models": {"my-model": {"plain": {"typical": [30, 37], "atypical": [35, 39]}}}}'


class _File(Record):
    """`source` says whose counts these are; a count is [right, of]."""

    source: str = Field(min_length=1)
    models: dict[str, dict[Variant, dict[_Group, tuple[int, int]]]] = Field(min_length=1)

    @model_validator(mode="after")
    def _possible(self) -> _File:
        for title, variants in self.models.items():
            for variant, groups in variants.items():
                for name, (right, of) in groups.items():
                    if not 0 <= right <= of or not of:
                        raise ValueError(f"{title}, {variant}, {name}: {right} of {of} cannot be")
                _overall(groups, f"{title}, {variant}")
        return self


def read_counts(given: str) -> list[Counted]:
    """The models of a file of counts, or of the paper's own, which ships with vpref. Raises ConfigError."""
    try:
        data = (files("vpref.reports") / "paper.json").read_bytes() if given == PAPER else Path(given).read_bytes()
        known = _File.model_validate_json(data)
    except OSError as error:
        raise ConfigError(
            f"counts={given} cannot be read ({error.strerror}); give a JSON file of counts, or counts={PAPER}."
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        told = f"{place}: {first['msg']}" if place else first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"counts={given} is no file of counts ({told}); write it like {_EXAMPLE}.") from error
    return [
        Counted(title, known.source, {variant: _counts(groups, "") for variant, groups in variants.items()})
        for title, variants in known.models.items()
    ]


def _counts(groups: dict[_Group, tuple[int, int]], place: str) -> dict[str, Count]:
    counts: dict[str, Count] = {name: Count(*one) for name, one in groups.items()}
    return {"overall": _overall(groups, place)} | {name: one for name, one in counts.items() if name != "overall"}


def _overall(groups: dict[_Group, tuple[int, int]], place: str) -> Count:
    """Of all items: as given, or the sum over both typicalities."""
    parts = [groups[name] for name in ("typical", "atypical") if name in groups]
    total = Count(sum(right for right, _ in parts), sum(of for _, of in parts))
    if "overall" not in groups and len(parts) < 2:
        raise ValueError(f"{place}: give overall, or both typical and atypical")
    if "overall" in groups and len(parts) == 2 and total != Count(*groups["overall"]):
        raise ValueError(f"{place}: typical and atypical add up to {total.right} of {total.of}, not to overall")
    return Count(*groups["overall"]) if "overall" in groups else total
