"""Sweeps: no job's failure loses another, whoever launches them; a signal ends them in order; what is left goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.commands import QUIET, ROOT, at, complaint, environment, read_log, run, run_folder, simulator

pytestmark = pytest.mark.slow

SIM = ["model@pipeline.model=simulator", "profile@simulator=flawless", *QUIET, "data.first=1"]
JOBLIB = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
LAUNCHERS = {"basic": [], "joblib": JOBLIB, "submitit": ["hydra/launcher=submitit_local"]}


def states(sweep: Path) -> list[str]:
    """The state of each planned job, as its own folder says."""
    plan = json.loads((sweep / "sweep.json").read_text())
    paths = [sweep / job["folder"] / "status.json" for job in plan["jobs"]]
    return [json.loads(path.read_text())["state"] if path.exists() else "waiting" for path in paths]


def the_sweep(home: Path, verb: str = "generate") -> Path:
    (sweep,) = (home / "outputs" / verb).iterdir()
    return sweep


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_of_eight_jobs_two_fail_and_these_alone_are_run_again(tmp_path: Path, launcher: str) -> None:
    small = Image.effect_noise((64, 64), 90).convert("RGB")
    for name in ("a", "b", "c", "none_yet"):
        (tmp_path / name).mkdir()
        if name != "none_yet":
            small.rotate(90 * len(list(tmp_path.iterdir()))).save(tmp_path / name / "a.jpg")
    swept = ["data.root=a,b,c,none_yet", "category=0,2"]
    out, errors = run("generate", "-m", *SIM, *swept, *LAUNCHERS[launcher], cwd=tmp_path, code=1)
    sweep = the_sweep(tmp_path)
    assert states(sweep) == ["finished"] * 6 + ["failed"] * 2
    assert "jobs: 6 finished, 2 failed" in out
    assert f"vpref resume outputs/generate/{sweep.name}" in errors
    for path in sweep.glob("[67]_*"):
        assert "Traceback" in (path / "generate.log").read_text()
        assert "No image file is in none_yet" in json.loads((path / "status.json").read_text())["error"]
    assert len(list(sweep.glob("*/items.jsonl"))) == 6
    before = {path: path.stat().st_mtime_ns for path in sweep.glob("[0-5]_*/status.json")}
    small.save(tmp_path / "none_yet/a.jpg")
    out, _ = run("resume", str(sweep), cwd=tmp_path)
    assert states(sweep) == ["finished"] * 8
    assert {path: path.stat().st_mtime_ns for path in before} == before, "what was finished is left alone"
    out, _ = run("resume", str(sweep), cwd=tmp_path)
    assert "jobs: 8 finished" in out


def test_the_example_for_slurm_submits_each_job(tmp_path: Path) -> None:
    """Against commands of Slurm's names that run a job's script here."""
    stand_in = ROOT / "tests" / "stand_in" / "slurm"
    path = f"{stand_in}{os.pathsep}{os.environ['PATH']}"
    slurm: dict[str, Any] = {"PATH": path, "STAND_IN_SLURM": str(tmp_path / "slurm")}
    (tmp_path / "slurm").mkdir()
    asked = ["hydra/launcher=slurm", "hydra.launcher.partition=short", "hydra.launcher.gpus_per_node=1"]
    run("generate", "-m", *SIM, "category=0,2", *asked, cwd=tmp_path, **slurm)
    assert states(the_sweep(tmp_path)) == ["finished"] * 2
    script = (tmp_path / "slurm" / "submitted.sh").read_text()
    for line in ("partition=short", "gpus-per-node=1", "time=240", "array=0-1%2", "signal=USR2@120"):
        assert f"#SBATCH --{line}\n" in script


def test_a_depth_sweep_says_what_sharing_calls_saved(tmp_path: Path) -> None:
    issues = "simulator.issues={multiple_correct_choices: 0.5}"
    log = tmp_path / "simulator.jsonl"
    with simulator(log, issues) as url:
        depths = ["pipeline.max_revisions=0,1,2,4", "pipeline.model.price={input: 1, cached: 1, output: 1}"]
        out, _ = run("generate", "-m", *at(url), *depths, "data.first=2", *QUIET, cwd=tmp_path)
    manifests = [json.loads(path.read_text()) for path in the_sweep(tmp_path).glob("*/manifest.json")]
    calls = [manifest["summary"]["calls"] for manifest in manifests]
    sent, reused = sum(one["sent"] for one in calls), sum(one["replayed"] + one["shared"] for one in calls)
    saved = sum(manifest["summary"]["usd_saved_by_replay"] for manifest in manifests)
    assert sent == len(read_log(log))
    assert reused > sent, "three of four depths are for the most part in the fourth"
    (line,) = (line for line in out.splitlines() if line.startswith("calls: "))
    assert f"{sent:,} sent" in line
    assert f"{reused:,} reused" in line
    assert line.endswith(f"which saved ${saved:,.4f}")
    assert saved > 0


@pytest.mark.parametrize("whole_group", [False, True], ids=["SIGTERM", "Ctrl-C"])
@pytest.mark.parametrize("launcher", ["basic", "joblib"])
def test_an_interrupted_sweep_ends_in_order_and_goes_on(tmp_path: Path, launcher: str, whole_group: bool) -> None:
    """SIGTERM to the sweep alone, as a scheduler sends it; SIGINT to all its processes, as a terminal does."""
    log = tmp_path / "simulator.jsonl"
    with simulator(log, "simulator.latency_s=0.3") as url:
        swept = [
            *at(url),
            "pipeline.model.limits.concurrency=1",
            "pipeline.max_revisions=0,1,2,3",
            "data.first=1",
            "samples=5",
            *QUIET,
        ]
        command = [sys.executable, "-m", "vpref", "generate", "-m", *swept, *LAUNCHERS[launcher]]
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        deadline, wanted = time.monotonic() + 100, 2 if launcher == "joblib" else 1
        while sum(bool(path.stat().st_size) for path in tmp_path.glob("outputs/generate/*/*/items.jsonl")) < wanted:
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        if whole_group:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=100)
        assert process.returncode == 128 + (signal.SIGINT if whole_group else signal.SIGTERM), errors
        assert "go on with: vpref resume" in errors
        assert "Traceback" not in errors
        sweep = the_sweep(tmp_path)
        left = states(sweep)  # a job may have ended, or another begun, before the signal came: none may be "gone"
        assert set(left) <= {"finished", "interrupted", "waiting"}, (left, out, errors)
        assert set(left) != {"finished"}, (out, errors)
        asked = len(read_log(log))
        run("resume", str(sweep), "hydra/launcher=basic", cwd=tmp_path)
    assert states(sweep) == ["finished"] * 4
    segments = tmp_path.glob("outputs/store/calls/*.jsonl")
    stored = [json.loads(line)["key"] for path in segments for line in path.read_text().splitlines()]
    assert len(stored) == len(set(stored)) == len(read_log(log)) > asked, "nothing answered was asked again"


@pytest.mark.parametrize("launcher", ["basic", "joblib"])
def test_a_killed_sweep_goes_on_and_nothing_stored_is_asked_again(tmp_path: Path, launcher: str) -> None:
    """SIGKILL to all its processes, after the first item."""
    log = tmp_path / "simulator.jsonl"
    with simulator(log, "simulator.latency_s=0.3") as url:
        swept = [*at(url), "pipeline.model.limits.concurrency=1", "pipeline.max_revisions=0,1,2", "data.first=1"]
        command = [sys.executable, "-m", "vpref", "generate", "-m", *swept, "samples=4", *QUIET, *LAUNCHERS[launcher]]
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 100
        while not any(path.stat().st_size for path in tmp_path.glob("outputs/generate/*/*/items.jsonl")):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        sweep = the_sweep(tmp_path)
        stored = sum(path.read_bytes().count(b"\n") for path in tmp_path.glob("outputs/store/calls/*.jsonl"))
        while "running" in (told := run("status", str(sweep), cwd=tmp_path)[0]):
            assert time.monotonic() < deadline + 100, told
        assert "gone" in told
        asked = len(read_log(log))
        run("resume", str(sweep), "hydra/launcher=basic", cwd=tmp_path)
        again = len(read_log(log)) - asked
    assert states(sweep) == ["finished"] * 3
    segments = tmp_path.glob("outputs/store/calls/*.jsonl")
    keys = [json.loads(line)["key"] for path in segments for line in path.read_text().splitlines()]
    assert len(keys) == len(set(keys)) == stored + again, "what was stored is not asked for again"


def test_jobs_that_still_run_are_not_run_a_second_time(tmp_path: Path) -> None:
    run("generate", "-m", *SIM, "category=0,2", cwd=tmp_path)
    sweep = the_sweep(tmp_path)
    status = next(sweep.glob("1_*")) / "status.json"
    other = subprocess.Popen(["sleep", "600"])
    try:
        told = json.loads(status.read_text()) | {"state": "running", "pid": other.pid}
        status.write_text(json.dumps(told))
        assert f"still run (process {other.pid})" in complaint("resume", str(sweep), cwd=tmp_path)
    finally:
        other.kill()
        other.wait()
    assert "1 finished, 1 gone" in run("status", str(sweep), cwd=tmp_path)[0]
    run("resume", str(sweep), cwd=tmp_path)
    assert states(sweep) == ["finished"] * 2


def test_jobs_elsewhere_are_told_of_while_they_run(tmp_path: Path) -> None:
    given = [*SIM[:-1], "driver.progress=plain", "data.first=1", "category=0,2", *JOBLIB]
    _, errors = run("generate", "-m", *[one for one in given if one != "driver.progress=none"], cwd=tmp_path)
    assert "jobs: " in errors


@pytest.mark.parametrize("delay_s", [0.0, 0.05, 0.15, 0.3, 0.6])
def test_a_signal_at_any_moment_of_a_run_is_written_down(tmp_path: Path, delay_s: float) -> None:
    """From the folder's first file on, whatever the run is at: preparing images, asking who serves, tables."""
    command = [sys.executable, "-m", "vpref", "generate", *SIM[:-1], "samples=30"]
    quiet = {"PYTHONWARNINGS": "error,ignore::ResourceWarning"}  # of an import's file that it leaves unread
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment(**quiet), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 100
    while not list(tmp_path.glob("outputs/generate/*/status.json")):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)
    time.sleep(delay_s)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=100)
    state = json.loads((the_sweep(tmp_path) / "status.json").read_text())["state"]
    assert (state, process.returncode) in {("interrupted", 143), ("finished", 0)}, errors
    assert "Traceback" not in errors


def test_a_jobs_folder_can_be_given_to_every_verb_as_it_is_named(tmp_path: Path) -> None:
    run("generate", "-m", *SIM, "pipeline.max_revisions=0,1", "variant=plain", cwd=tmp_path)
    job = next(the_sweep(tmp_path).glob("0_*")).relative_to(tmp_path)
    assert "=" in job.name
    evaluated = ["model@evaluated=simulator", "model@extractor=null", *QUIET]
    run("evaluate", "-m", f"dataset={job}", *evaluated, "ablation=nothing,no_image", cwd=tmp_path)
    out, _ = run("status", str(the_sweep(tmp_path, "evaluate")), cwd=tmp_path)
    assert "jobs: 2 finished" in out
    assert "ablation=no_image" in out
    assert "100.0%" in out
    answers = next(the_sweep(tmp_path, "evaluate").glob("1_*")).relative_to(tmp_path)
    assert "=" in answers.name
    assert "no image" in run("report", str(answers), cwd=tmp_path)[0]
    assert "jobs: 1 finished" in run("status", str(job), cwd=tmp_path)[0]
    assert tmp_path / run_folder(run("resume", str(job), cwd=tmp_path)[0]) == tmp_path / job


def test_a_rehearsal_asks_the_simulator_alone_and_keeps_its_replies_apart(tmp_path: Path) -> None:
    out, _ = run("generate", "rehearse=true", "data.first=1", *QUIET, cwd=tmp_path)
    manifest = json.loads((tmp_path / run_folder(out) / "manifest.json").read_text())
    assert all(server.startswith("simulator/") for server in manifest["servers"].values())
    assert list(tmp_path.glob("outputs/store/rehearsal/calls/*.jsonl"))
    assert not (tmp_path / "outputs/store/calls").exists()


def test_jobs_on_what_has_changed_since_are_scored_anew_from_stored_replies(tmp_path: Path) -> None:
    run("generate", "-m", *SIM, "category=0,2", "hydra.sweep.dir=data", cwd=tmp_path)
    (first, other) = sorted(tmp_path.glob("data/*/items.jsonl"))
    items = first.read_text() + other.read_text()
    ids = [json.loads(line)["item"]["id"] for line in items.splitlines()]
    for image in other.parent.glob("images/*"):
        image.rename(first.parent / "images" / image.name)
    first.write_text(items)
    truth = tmp_path / "truth.json"
    asked = ["evaluate", "-m", f"dataset={first}", "truth=truth.json", "model@evaluated=simulator", *QUIET]
    asked += ["model@extractor=null", "ablation=nothing,no_image", "hydra.sweep.dir=sweep"]

    def told(letters: dict[str, str]) -> tuple[str, str, list[dict[str, str]]]:
        truth.write_text(json.dumps(letters))
        out, errors = run(*asked, cwd=tmp_path)
        said = [one for path in sorted(tmp_path.glob("sweep/*/responses.jsonl")) for one in read_log(path)]
        return out, errors, [{one["item"]: one["expected"]} for one in said]

    _, _, before = told(dict.fromkeys(ids, "a"))
    assert before == [{ids[0]: "a"}, {ids[1]: "a"}] * 2
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.glob("sweep/*/status.json")}
    _, errors, again = told(dict.fromkeys(ids, "a"))
    assert (again, "run again" in errors) == (before, False)
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps, "the same letters are no change"
    out, errors, after = told({ids[0]: "b"})
    assert after == [{ids[0]: "b"}] * 2
    assert "truth.json has changed since 2 of 2 jobs read it; they run again." in errors
    assert "calls: 0 sent" in out
    first.write_text(items.splitlines()[1] + "\n")
    out, errors, last = told({ids[1]: "c"})
    assert last == [{ids[1]: "c"}] * 2
    assert "items.jsonl has changed since 2 of 2 jobs read it" in errors
    assert "calls: 0 sent" in out


def test_mistakes_about_sweeps_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "How stands what?" in complaint("status", cwd=tmp_path)
    assert "There is no folder at absent" in complaint("status", "absent", cwd=tmp_path)
    assert "holds no run" in complaint("status", "empty", cwd=tmp_path)
    negative = complaint("generate", "-m", *SIM, "pipeline.max_revisions=0,-1", cwd=tmp_path)
    assert "must be 0 or more" in negative
    assert not list(tmp_path.glob("outputs/generate/*/*")), "nothing runs where one job's config does not fit"
    run("generate", "-m", *SIM, "category=0,2", cwd=tmp_path)
    assert "goes on as it was planned" in complaint("resume", str(the_sweep(tmp_path)), "samples=2", cwd=tmp_path)
