"""Hydra's entry for each verb. Importing this loads Hydra; a verb's own parts load when it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hydra
from omegaconf import DictConfig

from vpref.runs import schema
from vpref.runs.execute import execute


def _main(verb: str) -> Callable[[], Any]:
    def task(config: DictConfig) -> None:
        execute(verb, config, _body(verb))

    task.__name__ = task.__qualname__ = verb  # launchers find the task by name in other processes
    entry: Callable[[], Any] = hydra.main(config_path="pkg://vpref.conf", config_name=verb, version_base="1.3")(task)

    def start() -> None:
        schema.register(verb, *(("generate",) if verb == "demo" else ()))  # the demo's config is built on generate's
        entry()

    return start


def _body(verb: str) -> Callable[[Any, Any], None]:
    match verb:
        case "generate":
            from vpref.runs.generate import generate as body
        case "evaluate":
            from vpref.runs.evaluate import evaluate as body  # type: ignore[assignment]
        case "boxes":
            from vpref.runs.boxes import boxes as body  # type: ignore[assignment]
        case "import":
            from vpref.runs.importing import import_items as body  # type: ignore[assignment]
        case "report":
            from vpref.runs.report import report as body  # type: ignore[assignment]
        case "compare":
            from vpref.runs.compare import compare as body  # type: ignore[assignment]
        case "sync":
            from vpref.runs.sync import sync as body  # type: ignore[assignment]
        case "workspace":
            from vpref.runs.workspace import workspace as body  # type: ignore[assignment]
        case "simulate":
            from vpref.runs.simulate import simulate as body  # type: ignore[assignment]
        case "survey_plan":
            from vpref.runs.survey_plan import plan as body  # type: ignore[assignment]
        case "survey_export":
            from vpref.runs.survey_export import export as body  # type: ignore[assignment]
        case "survey_upload":
            from vpref.runs.survey_upload import upload as body  # type: ignore[assignment]
        case "survey_fetch":
            from vpref.runs.survey_upload import fetch as body  # type: ignore[assignment]
        case "survey_serve":
            from vpref.runs.survey_serve import serve as body  # type: ignore[assignment]
        case "survey_import":
            from vpref.runs.survey_import import import_answers as body  # type: ignore[assignment]
        case "survey_simulate":
            from vpref.runs.survey_simulate import simulate as body  # type: ignore[assignment]
        case "survey_aggregate":
            from vpref.runs.survey_aggregate import aggregate as body  # type: ignore[assignment]
        case _:
            from vpref.runs.demo import demo as body
    return body


MAINS = {verb: _main(verb) for verb in schema.SCHEMAS}
