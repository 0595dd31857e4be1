"""Runs of every kind to report on: made once for a module, by the commands."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.commands import QUIET, run


@dataclass(frozen=True)
class Reported:
    """Runs in a folder, and what `vpref report` over all of them printed and wrote."""

    home: Path
    out: str
    folder: Path

    @property
    def page(self) -> Path:
        return self.folder / "report.html"

    def tables(self) -> dict[str, dict[str, Any]]:
        found = [json.loads(path.read_text()) for path in (self.folder / "tables").glob("*.json")]
        return {one["name"]: one for one in found}


def make(home: Path) -> Reported:
    """A depth sweep of both variants, three evaluations of its deepest job (one without the image, one of another
    model), and a rehearsed survey."""
    sim = ["model@pipeline.model=simulator", *QUIET, "variant=both", "detection=file", "data.first=3"]
    run(
        "generate", "-m", *sim, "pipeline.max_revisions=0,1", "variant=both", "detection=file", "data.first=3", cwd=home
    )
    (sweep,) = (home / "outputs/generate").iterdir()
    data = next(sweep.glob("1_*")).rename(home / "data")
    asked = ["evaluate", f"dataset={data}", "model@evaluated=simulator", *QUIET, "model@extractor=null"]
    run(asked[0], "-m", *asked[1:], "ablation=nothing,no_image", cwd=home)
    weak = ["evaluated.name=weak", "evaluated.label='Other <b>model</b>'", "+simulator.skills.weak=-0.5"]
    run(*asked, *weak, cwd=home)
    run("survey", "plan", f"dataset={data}", "places=3", cwd=home)
    (survey,) = (home / "outputs/survey").iterdir()
    run("survey", "simulate", f"survey={survey}", cwd=home)
    run("survey", "aggregate", f"survey={survey}", *map(str, (home / "outputs/survey_simulate").iterdir()), cwd=home)
    runs = ["data", str(sweep), "outputs/evaluate", "outputs/survey_aggregate"]
    out, _ = run("report", *runs, cwd=home)
    (folder,) = (home / "outputs/report").iterdir()
    return Reported(home, out, folder)


def embedded(page: Path, name: str) -> Any:
    """The JSON in a script element of a page, as a browser would read it."""
    text = page.read_text().partition(f'<script type="application/json" id="{name}">')[2]
    return json.loads(text.partition("</script>")[0])
