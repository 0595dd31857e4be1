"""vLLM started, waited for and ended by vpref, seen from outside; a small real server stands in for it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands import QUIET, ROOT, complaint, read_log, run, run_folder, start
from vpref.serving.keeper import KEEPS, KEPT, processes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("serving"),  # one after another: a run tells of any server that another one left
]

STAND_IN: dict[str, Any] = {"PYTHONPATH": f"{ROOT / 'tests' / 'stand_in'}{os.pathsep}{ROOT}"}
PATIENCE_S = 120


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Items to evaluate on: six photos in four categories."""
    folder = tmp_path_factory.mktemp("dataset")
    out, _ = run("generate", "model@pipeline.model=simulator", *QUIET, cwd=folder)
    return folder / run_folder(out)


@pytest.fixture
def served(tmp_path: Path) -> dict[str, Any]:
    """The environment in which vLLM is the stand-in, which notes its starts and the requests it gets."""
    return STAND_IN | {"STAND_IN_LOG": str(tmp_path / "log.jsonl"), "STAND_IN_STARTS": str(tmp_path / "starts.jsonl")}


def evaluating(dataset: Path, *more: str) -> list[str]:
    return ["evaluate", f"dataset={dataset}", "model@evaluated=qwen3-vl-2b", "model@extractor=null", *QUIET, *more]


def until(condition: Callable[[], Any], process: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.05)


def theirs(variable: str, folder: Path) -> list[int]:
    """The live processes with the mark that were started in a folder: other tests have servers too."""
    found = []
    for pid in (pid for pids in processes(variable).values() for pid in pids):
        try:
            if Path(os.readlink(f"/proc/{pid}/cwd")) == folder:
                found.append(pid)
        except OSError:
            continue
    return found


def manifest(folder: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return value


def requests(tmp_path: Path) -> int:
    path = tmp_path / "log.jsonl"
    return len(read_log(path)) if path.exists() else 0


def test_a_managed_run_from_start_to_end(tmp_path: Path, dataset: Path, served: dict[str, Any]) -> None:
    gpus = [
        f"evaluated.vllm.python={sys.executable}",
        "evaluated.vllm.gpus='1,3'",
        "+evaluated.vllm.arguments.enforce_eager=true",
        "evaluated.vllm.revision=abc",
    ]
    out, errors = run(*evaluating(dataset, *gpus, "driver.progress=plain"), cwd=tmp_path, **served)
    assert "vLLM: starting Qwen/Qwen3-VL-2B-Instruct on port" in errors
    assert "is ready after" in errors
    folder = tmp_path / run_folder(out)
    (started,) = read_log(tmp_path / "starts.jsonl")
    assert started["model"] == started["served_model_name"] == "Qwen/Qwen3-VL-2B-Instruct"
    assert (started["gpus"], started["revision"], started["host"]) == ("1,3", "abc", "127.0.0.1")
    assert (started["enforce_eager"], started["limit_mm_per_prompt"]) == (True, {"image": 1, "video": 0})
    assert len((folder / "responses.jsonl").read_text().splitlines()) == requests(tmp_path) == 24
    noted = manifest(folder)
    assert noted["servers"] == {"evaluated": "vllm/Qwen/Qwen3-VL-2B-Instruct@abc"}
    assert noted["serving"][0]["vllm"] == "0.0-stand-in"
    (log,) = folder.glob("vllm_*.log")
    assert "Application startup complete." in log.read_text()
    assert not theirs(KEPT, tmp_path)
    assert not theirs(KEEPS, tmp_path)


def test_a_dry_run_starts_nothing_and_counts_what_is_stored(
    tmp_path: Path, dataset: Path, served: dict[str, Any]
) -> None:
    run(*evaluating(dataset), cwd=tmp_path, **served)
    (tmp_path / "starts.jsonl").unlink()
    out, _ = run(*evaluating(dataset, "dry_run=true", "evaluated.vllm.python=/nowhere"), cwd=tmp_path, **served)
    assert "24 replies are stored already" in out
    assert not (tmp_path / "starts.jsonl").exists()


def test_roles_of_one_model_share_a_server_and_two_models_have_two(tmp_path: Path, served: dict[str, Any]) -> None:
    models = ["model@pipeline.model=qwen3-vl-2b", "model@pipeline.reviewer=qwen3-vl-2b"]
    models += ["pipeline.reviewer.params.temperature=0.5", "model@pipeline.responder=smolvlm-2b"]
    out, _ = run("generate", *models, "category=0", *QUIET, cwd=tmp_path, **served)
    started = [one["served_model_name"] for one in read_log(tmp_path / "starts.jsonl")]
    assert sorted(started) == ["HuggingFaceTB/SmolVLM2-2.2B-Instruct", "Qwen/Qwen3-VL-2B-Instruct"]
    asked = {(one["role"], one["model"]) for one in read_log(tmp_path / "log.jsonl")}
    assert ("reviewer", "Qwen/Qwen3-VL-2B-Instruct") in asked
    assert ("responder", "HuggingFaceTB/SmolVLM2-2.2B-Instruct") in asked
    assert len(list((tmp_path / run_folder(out)).glob("vllm_*.log"))) == 2
    assert not theirs(KEPT, tmp_path)


def test_a_sweep_keeps_a_server_up_between_jobs(tmp_path: Path, dataset: Path, served: dict[str, Any]) -> None:
    sweep = ["model@evaluated=qwen3-vl-2b,smolvlm-2b", "ablation=nothing,no_image"]
    rest = [one for one in evaluating(dataset) if not one.startswith("model@evaluated")]
    out, _ = run(rest[0], "-m", *rest[1:], *sweep, cwd=tmp_path, **served)
    assert out.count("records: ") == 4
    assert len(read_log(tmp_path / "starts.jsonl")) == 2
    assert not theirs(KEPT, tmp_path)
    assert not theirs(KEEPS, tmp_path)


def test_a_moved_checkpoint_keeps_its_replies(tmp_path: Path, dataset: Path, served: dict[str, Any]) -> None:
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"one")

    def sent(where: Path) -> int:
        local = ["evaluated.name=mine", f"evaluated.vllm.checkpoint={where}"]
        out, _ = run(*evaluating(dataset, *local), cwd=tmp_path, **served)
        assert read_log(tmp_path / "starts.jsonl")[-1]["model"] == str(where)
        noted = manifest(tmp_path / run_folder(out))
        assert noted["servers"]["evaluated"].startswith("vllm/sha256:")
        return int(noted["summary"]["calls"]["sent"])

    assert sent(folder) == 24
    moved = folder.rename(tmp_path / "moved")
    assert sent(moved) == 0
    (moved / "model.safetensors").write_bytes(b"two")
    assert sent(moved) == 24


# --- what goes wrong at the start --------------------------------------------------------------------------


def test_an_early_death_shows_the_log_s_end_and_says_why(tmp_path: Path, dataset: Path, served: dict[str, Any]) -> None:
    dies: dict[str, Any] = {"STAND_IN_DIES": "torch.OutOfMemoryError: CUDA out of memory."}
    _, errors = run(*evaluating(dataset), cwd=tmp_path, code=1, **served, **dies)
    *lines, last = errors.splitlines()
    assert lines[0] == "vLLM's last lines:"
    assert "  torch.OutOfMemoryError: CUDA out of memory." in lines
    assert last.startswith("vpref: vLLM ended with exit code 1 before it served Qwen/Qwen3-VL-2B-Instruct: torch.OutOf")
    assert "Traceback (most recent call last):\n  File" not in errors
    assert requests(tmp_path) == 0
    assert not theirs(KEPT, tmp_path)


def test_a_start_past_its_limit_is_ended(tmp_path: Path, dataset: Path, served: dict[str, Any]) -> None:
    slow = evaluating(dataset, "evaluated.vllm.start_s=1.5")
    _, errors = run(*slow, cwd=tmp_path, code=1, **served, STAND_IN_HANGS="1")
    assert "did not serve Qwen/Qwen3-VL-2B-Instruct within 1.5 s" in errors.splitlines()[-1]
    assert "vllm.start_s" in errors.splitlines()[-1]
    assert not theirs(KEPT, tmp_path)


def test_another_model_s_server_is_not_asked(tmp_path: Path, dataset: Path, served: dict[str, Any]) -> None:
    _, errors = run(*evaluating(dataset), cwd=tmp_path, code=1, **served, STAND_IN_SERVES="other")
    assert "serves other and not Qwen/Qwen3-VL-2B-Instruct" in errors.splitlines()[-1]
    assert requests(tmp_path) == 0
    assert not theirs(KEPT, tmp_path)


def test_a_port_in_use_is_said(tmp_path: Path, dataset: Path, served: dict[str, Any]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = complaint(*evaluating(dataset, f"evaluated.vllm.port={port}"), cwd=tmp_path, **served)
    assert f"Port {port}" in said
    assert "set vllm.port to another one, or to 0" in said


def test_where_vllm_is_not_installed_it_is_said(tmp_path: Path, dataset: Path) -> None:
    said = complaint(*evaluating(dataset, f"evaluated.vllm.python={sys.executable}"), cwd=tmp_path)
    assert f"vLLM is not installed for {sys.executable}" in said
    said = complaint(*evaluating(dataset, "evaluated.vllm.python=/no/python"), cwd=tmp_path)
    assert "There is no Python at vllm.python=/no/python" in said


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("+evaluated.vllm.environment.HF_TOKEN=x", "may not hold HF_TOKEN"),
        ("+evaluated.vllm.arguments.api-key=x", "may not hold api_key"),
        ("+evaluated.vllm.arguments.port=8000", "may not hold port"),
        ("evaluated.base_url=http://localhost:8000/v1", "serve=external"),
        ("evaluated.vllm.checkpoint=./absent", "no checkpoint folder"),
    ],
)
def test_settings_that_do_not_fit_are_one_sentence(
    tmp_path: Path, dataset: Path, served: dict[str, Any], override: str, expected: str
) -> None:
    assert expected in complaint(*evaluating(dataset, override), cwd=tmp_path, **served)
    assert not (tmp_path / "starts.jsonl").exists()


# --- ends --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_starts_ends_both_in_good_order(
    tmp_path: Path, dataset: Path, served: dict[str, Any], number: signal.Signals
) -> None:
    process = start(*evaluating(dataset), cwd=tmp_path, **served, STAND_IN_HANGS="1")
    until(lambda: (tmp_path / "starts.jsonl").exists(), process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number, errors
    assert errors.splitlines() == [
        f"vpref: Interrupted by {number.name}; give the same command again to go on from here."
    ]
    (status,) = (tmp_path / "outputs/evaluate").glob("*/status.json")
    assert json.loads(status.read_text())["state"] == "interrupted"
    assert not theirs(KEPT, tmp_path)


def test_a_signal_during_the_run_keeps_what_is_in_flight(tmp_path: Path, dataset: Path, served: dict[str, Any]) -> None:
    slow = served | {"STAND_IN_LATENCY": "0.5"}
    process = start(*evaluating(dataset, "evaluated.limits.concurrency=4"), cwd=tmp_path, **slow)
    until(lambda: requests(tmp_path) > 5, process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, errors
    stored = sum(path.read_bytes().count(b"\n") for path in tmp_path.glob("outputs/store/calls/*.jsonl"))
    assert stored == requests(tmp_path) < 24
    assert not theirs(KEPT, tmp_path)


def test_after_vpref_is_killed_no_process_is_left_and_the_next_run_goes_on(
    tmp_path: Path, dataset: Path, served: dict[str, Any]
) -> None:
    slow = served | {"STAND_IN_LATENCY": "0.5", "STAND_IN_IGNORES": "1"}
    process = start(*evaluating(dataset, "evaluated.limits.concurrency=4"), cwd=tmp_path, **slow)
    until(lambda: requests(tmp_path) > 5, process)
    assert len(theirs(KEPT, tmp_path)) == 2
    process.kill()
    process.communicate()
    until(lambda: not theirs(KEPT, tmp_path) and not theirs(KEEPS, tmp_path))
    out, errors = run(*evaluating(dataset), cwd=tmp_path, **served)
    assert "earlier run" not in errors
    calls = manifest(tmp_path / run_folder(out))["summary"]["calls"]
    assert calls["replayed"] > 0
    assert calls["sent"] + calls["replayed"] == 24


def test_what_a_killed_keeper_left_is_told_by_the_next_run(
    tmp_path: Path, dataset: Path, served: dict[str, Any]
) -> None:
    process = start(*evaluating(dataset), cwd=tmp_path, **served, STAND_IN_HANGS="1")
    until(lambda: len(theirs(KEPT, tmp_path)) == 2, process)
    left = sorted(theirs(KEPT, tmp_path))
    try:
        for pid in theirs(KEEPS, tmp_path):
            os.kill(pid, signal.SIGKILL)
        process.kill()
        process.communicate()
        _, errors = run(*evaluating(dataset), cwd=tmp_path, **served)
        pids = " ".join(map(str, left))
        (told,) = (line for line in errors.splitlines() if pids in line)
        assert told.startswith("A server of an earlier run is still there, since 20")
        assert told.endswith(f"kill -9 {pids}")
        assert sorted(theirs(KEPT, tmp_path)) == left, "a run ends no processes but its own"
    finally:
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    until(lambda: not theirs(KEPT, tmp_path))
    _, errors = run(*evaluating(dataset), cwd=tmp_path, **served)
    assert "earlier run" not in errors


def test_a_killed_keeper_of_a_living_run_leaves_nothing(tmp_path: Path, dataset: Path, served: dict[str, Any]) -> None:
    slow = served | {"STAND_IN_LATENCY": "0.5"}
    process = start(*evaluating(dataset, "evaluated.limits.concurrency=8"), cwd=tmp_path, **slow)
    until(lambda: requests(tmp_path) > 1, process)
    (keeper,) = theirs(KEEPS, tmp_path)
    os.kill(keeper, signal.SIGKILL)
    out, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    assert "100.0%" in out
    assert not theirs(KEPT, tmp_path)


def test_a_server_that_ends_midway_stops_the_run_and_says_why(
    tmp_path: Path, dataset: Path, served: dict[str, Any]
) -> None:
    few = ["evaluated.limits.retries=1", "evaluated.limits.concurrency=2"]
    _, errors = run(*evaluating(dataset, *few), cwd=tmp_path, code=1, **served, STAND_IN_ENDS_AFTER="7")
    (said,) = errors.splitlines()
    assert "vLLM ended with exit code 3 after it had served Qwen/Qwen3-VL-2B-Instruct" in said
    assert "RuntimeError: the device is lost" in said
    assert not theirs(KEPT, tmp_path)
    out, _ = run(*evaluating(dataset), cwd=tmp_path, **served)
    assert manifest(tmp_path / run_folder(out))["summary"]["calls"]["replayed"] == 7
