"""How a mirrored run ends: interrupted, failed, or with a mirror that breaks while the run goes on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands import complaint, environment, run, run_folder, start
from tests.wandb_files import mirror

pytestmark = pytest.mark.slow

pytest.importorskip("wandb", reason="the W&B client is not installed")

SIM = ["model@pipeline.model=simulator", "driver.progress=none", "profile@simulator=flawless"]
SLOW = ["simulator.latency_s=0.4", "pipeline.model.limits.concurrency=4"]
THEIRS: dict[str, Any] = {"PYTHONWARNINGS": "ignore"}  # the W&B client leaves its temporary folders to chance


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def wait(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 100
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def core(parent: int) -> int:
    """The W&B client's own process below one of ours."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, ppid = (folder / "comm").read_text(), (folder / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if name.startswith("wandb-core") and int(ppid) == parent:
            return int(folder.name)
    raise AssertionError("W&B's client has no process")


def test_items_are_shown_while_the_run_goes_and_an_interrupted_one_is_marked_so(tmp_path: Path) -> None:
    out = tmp_path / "out"
    slower = ["simulator.latency_s=1", *SLOW[1:]]
    process = start("generate", *SIM, *slower, f"hydra.run.dir={out}", cwd=tmp_path, **THEIRS)
    wait(lambda: any(out.glob("wandb/offline-run-*/files/media/table/generations_*")), process)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 143, errors
    read, done = mirror(out), lines(out / "items.jsonl")
    assert read.code == 143
    assert [row["slot"] for row in read.table("generations")] == [_slot(line) for line in done]
    assert 0 < len(done) < 24


def _slot(line: str) -> str:
    slot = json.loads(line)["slot"]
    return f"{slot['image']}/{slot['variant']}/{slot['category']}/{slot['sample']}"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the client's process is found by /proc")
def test_a_client_that_dies_costs_one_line_and_no_item(tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start("generate", *SIM, *SLOW, f"hydra.run.dir={out}", cwd=tmp_path, **THEIRS)
    wait(lambda: len(lines(out / "items.jsonl")) >= 1, process)
    os.kill(core(process.pid), signal.SIGKILL)
    printed, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    assert [line for line in errors.splitlines() if line] == [errors.strip()], "one line"
    assert errors.startswith("vpref: The W&B mirror ended early (")
    assert len(lines(out / "items.jsonl")) == 24
    assert "records: " in printed
    assert [line for line in lines(out / "generate.log") if "WARNING" in line and "mirror ended early" in line]
    assert json.loads((out / "status.json").read_text())["state"] == "finished"


@pytest.mark.parametrize("blocked", ["wandb", "wandb-data/artifacts"])  # its files, and what it stages
def test_a_folder_that_cannot_be_written_costs_one_line(tmp_path: Path, blocked: str) -> None:
    out = tmp_path / "out"
    (out / blocked).parent.mkdir(parents=True)
    (out / blocked).write_text("a file where W&B wants a folder\n")
    _, errors = run("generate", *SIM, "data.first=1", f"hydra.run.dir={out}", cwd=tmp_path, **THEIRS)
    assert len(errors.splitlines()) == 1
    assert errors.startswith("vpref: The W&B mirror ended early (")
    assert len(lines(out / "items.jsonl")) == 4


def test_a_job_after_one_whose_mirror_broke_has_its_own(tmp_path: Path) -> None:
    for number in (0, 1):
        (tmp_path / f"outs/{number}").mkdir(parents=True)
    (tmp_path / "outs/0/wandb").write_text("a file where W&B wants a folder\n")
    places = ["hydra.sweep.dir=outs", "hydra.sweep.subdir=${hydra.job.num}"]
    run("generate", "-m", *SIM, "data.first=1", "samples=1,2", *places, cwd=tmp_path, **THEIRS)
    assert (mirror(tmp_path / "outs/1").code, len(mirror(tmp_path / "outs/1").table("generations"))) == (0, 8)


def without(package: str, folder: Path) -> dict[str, Any]:
    """An environment in which a package is not installed."""
    (folder / "sitecustomize.py").write_text(
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        f"importlib.util.find_spec = lambda name, *more: None if name == {package!r} else find(name, *more)\n"
    )
    return {"PYTHONPATH": f"{folder}:{environment()['PYTHONPATH']}"}


def test_without_the_client_offline_is_a_line_and_online_a_mistake(tmp_path: Path) -> None:
    bare = without("wandb", tmp_path)
    out, errors = run("generate", *SIM, "data.first=1", cwd=tmp_path, **bare)
    assert errors.splitlines() == [
        "vpref: No W&B files are written, its client is not installed: pip install 'vpref[wandb]', or tracking=none."
    ]
    folder = tmp_path / run_folder(out)
    assert not (folder / "wandb").exists()
    assert "pip install 'vpref[wandb]'" in complaint("generate", *SIM, "tracking=online", cwd=tmp_path, **bare)
    assert "pip install 'vpref[wandb]'" in complaint("sync", str(folder), cwd=tmp_path, **bare)
    shutil.rmtree(tmp_path / "outputs")
    assert "pip install 'vpref[dashboards]'" in complaint(
        "workspace", "entity=me", cwd=tmp_path, **without("wandb_workspaces", tmp_path)
    )


def test_online_without_a_key_is_a_mistake_found_before_any_request(tmp_path: Path) -> None:
    more: dict[str, Any] = {"HOME": str(tmp_path / "home"), "PYTHONWARNINGS": "ignore"}
    said = complaint("generate", *SIM, "data.first=1", "tracking=online", cwd=tmp_path, **more)
    assert said == ("vpref: W&B has no key: set WANDB_API_KEY, or run `wandb login`; tracking=offline goes without.")
    assert not list(tmp_path.glob("outputs/generate/*/items.jsonl"))
