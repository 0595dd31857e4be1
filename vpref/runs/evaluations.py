"""Reading evaluation runs back for tables. Reports read records alone; this finds them."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from vpref.domain import Response, is_simulated
from vpref.errors import ConfigError
from vpref.reports import Evaluation
from vpref.runs.folder import read_json


def read_evaluation(folder: Path) -> Evaluation:
    """One evaluation run's responses and whom they are of."""
    manifest = read_json(folder / "manifest.json")
    path = folder / "responses.jsonl"
    try:
        with path.open("rb") as lines:
            responses = [Response.model_validate_json(line) for line in lines]
        server, dataset, title = manifest["servers"]["evaluated"], manifest["dataset"], manifest["evaluated"]
    except OSError as error:
        raise ConfigError(f"Cannot read {path} ({error.strerror}); has the run got any response yet?") from error
    except (ValidationError, KeyError, TypeError) as error:
        raise ConfigError(f"{folder} holds no evaluation run of ours ({str(error).splitlines()[0]}).") from error
    return Evaluation(
        title=title,
        simulated=is_simulated(server) or dataset["simulated"],
        responses=responses,
        ablation=manifest.get("ablation", ""),
        left_out=manifest.get("left_out", manifest.get("ablation", "")),
        manner=manifest.get("manner", ""),
    )


def find_evaluations(given: list[str]) -> list[Path]:
    """The evaluation runs among the folders given, or in them (a sweep, or all of `outputs/evaluate`), in
    order and once each. Raises ConfigError naming a folder without any."""
    found: dict[Path, None] = {}
    for name in given:
        root = Path(name)
        if not root.is_dir():
            raise ConfigError(f"There is no run folder at {name}; give folders of `vpref evaluate` runs.")
        here = (
            [root] if (root / "responses.jsonl").exists() else sorted(p.parent for p in root.rglob("responses.jsonl"))
        )
        if not here:
            raise ConfigError(f"{name} holds no evaluation run; give folders of `vpref evaluate` runs.")
        found |= dict.fromkeys(path.resolve() for path in here)
    return list(found)
