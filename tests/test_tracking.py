"""The W&B mirror, read back from its offline files by W&B's own inspector."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.commands import environment, run, run_folder

pytestmark = pytest.mark.slow

pytest.importorskip("wandb", reason="the W&B client is not installed")

SIM = ["model@pipeline.model=simulator", "driver.progress=none", "profile@simulator=faulty", "simulator.stall_s=0.1"]
THEIRS: dict[str, Any] = {"PYTHONWARNINGS": "default"}  # the W&B client leaves its temporary folders to chance


def inspected(folder: Path, *options: str) -> str:
    """What `wandb leet inspect` reads in the one run below a folder."""
    (run_files,) = folder.glob("wandb/offline-run-*")
    command = [str(Path(sys.executable).with_name("wandb")), "leet", "inspect", *options, "--json", str(run_files)]
    clean = {name: value for name, value in environment().items() if name != "PYTHONWARNINGS"}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=clean).stdout


def table(folder: Path, name: str) -> dict[str, Any]:
    """A mirrored table, from the file that W&B would upload."""
    records = [json.loads(line) for line in inspected(folder).splitlines()]
    contents = [entry for one in records if "artifact" in one for entry in one["artifact"]["manifest"]["contents"]]
    (path,) = (Path(entry["local_path"]) for entry in contents if entry["path"] == f"{name}.table.json")
    pictures = [Path(entry["local_path"]) for entry in contents if entry["path"].startswith("media/")]
    assert path.is_relative_to(folder.resolve()), "what is to be uploaded lies in the run's folder"
    assert all(one.is_relative_to(folder.resolve()) and one.is_file() for one in pictures)
    value: dict[str, Any] = json.loads(path.read_text())
    return value | {"pictures": len(pictures)}


def test_a_runs_config_metrics_and_items_are_mirrored(tmp_path: Path) -> None:
    home = tmp_path / "home"
    out, errors = run("generate", *SIM, "data.first=2", cwd=tmp_path, **THEIRS | {"HOME": str(home)})
    assert "wandb" not in (out + errors).lower(), "no advertisements"
    folder = tmp_path / run_folder(out)
    records = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]
    read = json.loads(inspected(folder, "--summary"))
    assert (read["state"], read["exit_code"]) == ("finished", 0)
    assert read["name"].endswith(" (simulated)")
    assert read["config"]["pipeline"]["max_revisions"] == 4
    accepted = sum(record["outcome"] == "accepted" for record in records)
    assert read["summary"]["items/accepted"] == accepted
    assert read["summary"]["usd"] > 0
    items = table(folder, "generations")
    assert len(items["data"]) == len(records) == 8
    assert items["pictures"] == 2
    number, record = next((n, one) for n, one in enumerate(records) if one["outcome"] == "accepted")
    row = dict(zip(items["columns"], items["data"][number], strict=True))
    assert row["item"] == record["item"]["id"]
    assert row["answer"] == record["item"]["answer"]
    assert row["image"]["_type"] == "image-file"
    assert row["issues"].split(" > ")[-1] == "none"
    assert not home.exists() or not [path for path in home.rglob("*") if path.is_file()], "nothing is left at home"


def test_each_job_of_a_sweep_is_a_run_and_a_failed_one_is_marked(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    shutil.copytree(Path(__file__).parents[1] / "vpref/images/photos", photos, ignore=shutil.ignore_patterns("[d-z]*"))
    job = ["data.root=photos", "samples=4", "pipeline.model.limits.retries=0", "profile@simulator=flawless"]
    job += ["store.root=kept/${simulator.faults.http_500}"]  # else the second would live on the first's replies
    _, errors = run("generate", "-m", *SIM[:2], *job, "simulator.faults.http_500=0,1", cwd=tmp_path, code=1, **THEIRS)
    assert "50 requests in a row failed" in errors
    (sweep,) = (tmp_path / "outputs/generate").iterdir()
    runs = [json.loads(inspected(folder.parent, "--summary")) for folder in sorted(sweep.glob("*/wandb"))]
    assert len(runs) == 2
    assert [run["config"]["simulator"]["faults"]["http_500"] for run in runs] == [0, 1]
    assert [(run["state"], run["exit_code"]) for run in runs] == [("finished", 0), ("failed", 1)]
    assert len({run["run_id"] for run in runs}) == 2


def test_an_exception_marks_the_mirror_failed(tmp_path: Path) -> None:
    from vpref.settings import TrackingSettings
    from vpref.tracking import tracked

    def fail() -> None:
        with tracked(TrackingSettings(), tmp_path, {"a": 1}, "generate", simulated=False) as tracker:
            tracker.progress(lambda: {"usd": 0.5}, 3)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    read = json.loads(inspected(tmp_path, "--summary"))
    assert (read["state"], read["exit_code"]) == ("failed", 1)
    assert read["summary"]["done"] == 3


def test_without_wandb_offline_is_off_and_online_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: None if name == 'wandb' else find(name, *more)\n"
    )
    path = f"{tmp_path}:{environment()['PYTHONPATH']}"
    out, _ = run("generate", *SIM, "data.first=1", cwd=tmp_path, PYTHONPATH=path)
    assert not (tmp_path / run_folder(out) / "wandb").exists()
    _, errors = run("generate", *SIM, "data.first=1", "tracking=online", cwd=tmp_path, PYTHONPATH=path, code=2)
    assert "pip install 'vpref[wandb]'" in errors
