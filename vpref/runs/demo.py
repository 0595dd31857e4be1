"""`vpref demo`: the main job from photos to tables against the simulator, as a user's first run."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from vpref import reports
from vpref.runs.evaluate import respond
from vpref.runs.evaluations import read_evaluation
from vpref.runs.folder import RunFolder
from vpref.runs.generate import generate
from vpref.runs.terminal import say, show_tables, shown
from vpref.settings import EvaluateSettings, GenerateSettings

SKILLS = {"sim-large": 0.04, "sim-medium": -0.1, "sim-small": -0.35}
"""Made-up models and how far their accuracy lies from the profile's."""


def demo(settings: GenerateSettings, folder: RunFolder) -> None:
    """Generate items on the photos, evaluate three simulated models on them, and compare these."""
    settings = replace(settings, simulator=replace(settings.simulator, skills=SKILLS))
    say("vpref demo: every reply below is made up by the built-in simulator.\n\n1. Generate items from photos")
    generated = _part(folder, "generate", settings)
    generate(settings, generated)
    paths = []
    for number, name in enumerate(SKILLS, 2):
        say(f"\n{number}. Evaluate {name} on them\n")
        evaluation = _evaluation(settings, generated.path, name)
        part = _part(folder, name, evaluation)
        respond(evaluation, part)
        paths.append(part.path)
    say(f"\n{len(SKILLS) + 2}. Compare the three")
    evaluations = [read_evaluation(path) for path in paths]
    tables = [*reports.accuracy_tables(evaluations), *reports.comparison_tables(evaluations)]
    reports.write_tables(tables, folder.path / "tables")
    show_tables(tables)
    _farewell(folder.path)


def _part(folder: RunFolder, name: str, settings: GenerateSettings | EvaluateSettings) -> RunFolder:
    path = folder.path / name
    path.mkdir()
    return RunFolder(path, asdict(settings), [])


def _evaluation(settings: GenerateSettings, dataset: Path, name: str) -> EvaluateSettings:
    return EvaluateSettings(
        verb="evaluate",
        outputs=settings.outputs,
        store=settings.store,
        tracking=settings.tracking,
        driver=settings.driver,
        simulator=settings.simulator,
        dataset=str(dataset),
        evaluated=replace(settings.pipeline.model, name=name, label=None),
        extractor=settings.pipeline.model,
    )


def _farewell(folder: Path) -> None:
    say(
        f"\nEverything is in {shown(folder)}:\n"
        f"  generate/items.jsonl    every item with its drafts, reviews, revisions and answer\n"
        f"  sim-*/responses.jsonl   every model's raw output and the letter found in it\n"
        f"  tables/                 the tables above as Markdown, CSV and JSON\n\n"
        "With a key in OPENAI_API_KEY, on your own photos:\n"
        "  vpref generate data.root=my_photos model@pipeline.model=gpt-5-mini preview=3"
    )
