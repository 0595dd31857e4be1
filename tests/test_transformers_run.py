"""Runs of models in this process, as commands: records, resumption, interruption, the hub's cache."""

from __future__ import annotations

import importlib.util
import json
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.commands import QUIET, complaint, run, run_folder, start

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
    pytest.skip("torch and transformers are not installed here: make test-hf", allow_module_level=True)

from tests import checkpoints

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

THEIRS: dict[str, Any] = {"PYTHONWARNINGS": "default", "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": "hub"}
"""Warnings of others are theirs, and no test needs the internet."""


def evaluating(dataset: Path, checkpoint: Path | str, new: int = 16) -> list[str]:
    given = [f"dataset={dataset}", "model@evaluated=transformers", "model@extractor=null", *QUIET]
    return [*given, f"evaluated.name={checkpoint}", f"evaluated.in_process.max_new_tokens={new}"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ten items and two tiny checkpoints."""
    folder = tmp_path_factory.mktemp("place")
    given = ["model@pipeline.model=simulator", "profile@simulator=flawless", "categories=[0,3]", "data.first=5", *QUIET]
    out, _ = run("generate", *given, cwd=folder)
    (folder / run_folder(out)).rename(folder / "dataset")
    checkpoints.instructblip(folder / "instructblip")
    checkpoints.llava(folder / "llava")
    return folder


def summary(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text())["summary"]


def loaded(folder: Path) -> bool:
    return "loading" in (folder / "evaluate.log").read_text()


@pytest.mark.parametrize("family", ["instructblip", "llava"])
def test_ten_items_are_evaluated_once_whatever_the_batch(family: str, place: Path, tmp_path: Path) -> None:
    given = evaluating(place / "dataset", place / family)
    out, _ = run("evaluate", *given, "evaluated.in_process.batch_size=4", cwd=tmp_path, **THEIRS)
    assert "accuracy, plain" in out
    assert family in out
    first = tmp_path / run_folder(out)
    responses = [json.loads(line) for line in (first / "responses.jsonl").read_text().splitlines()]
    assert len(responses) == 10
    assert {one["verdict"] for one in responses} <= {"matched", "unmatched"}
    assert {one["calls"][0]["model"] for one in responses} == {family}
    assert all(one["calls"][0]["server"].startswith("transformers/sha256:") for one in responses)
    assert all(one["calls"][0]["usage"]["input"] > 100 for one in responses)
    assert all(one["calls"][0]["usage"]["output"] <= 16 for one in responses)
    assert len({one["text"] for one in responses}) > 5
    assert summary(first)["calls"]["sent"] == 10
    assert "torch" in json.loads((first / "manifest.json").read_text())["versions"]

    # The same command again sends nothing and loads nothing; nor does it for the checkpoint in another place.
    shutil.copytree(place / family, tmp_path / "moved" / family)
    for name in (place / family, f"moved/{family}"):
        out, _ = run("evaluate", *evaluating(place / "dataset", name), cwd=tmp_path, **THEIRS)
        again = tmp_path / run_folder(out)
        assert (again / "responses.jsonl").read_bytes() == (first / "responses.jsonl").read_bytes()
        assert summary(again)["calls"]["sent"] == 0
        assert loaded(first)
        assert not loaded(again)

    for size in (1, 8):
        elsewhere = [*given, f"evaluated.in_process.batch_size={size}", f"store.root=store{size}"]
        out, _ = run("evaluate", *elsewhere, cwd=tmp_path, **THEIRS)
        other = tmp_path / run_folder(out)
        assert (other / "responses.jsonl").read_bytes() == (first / "responses.jsonl").read_bytes()
        assert summary(other)["calls"]["sent"] == 10


def test_an_interrupted_run_ends_in_good_order_and_goes_on(place: Path, tmp_path: Path) -> None:
    given = [*evaluating(place / "dataset", place / "llava", new=300), "evaluated.in_process.batch_size=1"]
    process = start("evaluate", *given, cwd=tmp_path, **THEIRS)
    deadline = time.monotonic() + 120
    while not any(path.read_bytes() for path in tmp_path.glob("outputs/evaluate/*/responses.jsonl")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert errors.count("\n") == 1, errors
    assert "Interrupted by SIGINT" in errors
    (stopped,) = tmp_path.glob("outputs/evaluate/*")
    assert json.loads((stopped / "status.json").read_text())["state"] == "interrupted"
    out, _ = run("evaluate", *given, cwd=tmp_path, **THEIRS)
    counts = summary(tmp_path / run_folder(out))["calls"]
    assert counts["sent"] + counts["replayed"] == 10
    assert 0 < counts["sent"] < 10
    out, _ = run("evaluate", *given, "store.root=fresh", cwd=tmp_path, **THEIRS)
    whole = tmp_path / run_folder(out) / "responses.jsonl"
    newest = sorted(tmp_path.glob("outputs/evaluate/*/responses.jsonl"))[-2]
    assert newest.read_bytes() == whole.read_bytes()


def test_generation_is_attempted_and_what_breaks_the_form_is_recorded_as_such(place: Path, tmp_path: Path) -> None:
    given = ["model@pipeline.model=transformers", f"pipeline.model.name={place / 'llava'}", "data.first=1", *QUIET]
    given += ["categories=[0,3]", "pipeline.attempts=2", "pipeline.model.in_process.max_new_tokens=16"]
    out, _ = run("generate", *given, cwd=tmp_path, **THEIRS)
    outcomes = [json.loads(line) for line in (tmp_path / run_folder(out) / "items.jsonl").read_text().splitlines()]
    assert [one["outcome"] for one in outcomes] == ["failed", "failed"]
    assert {one["kind"] for one in outcomes} <= {"cut", "not_json", "empty"}
    assert [len(one["calls"]) for one in outcomes] == [2, 2]
    assert all(call["problem"] for one in outcomes for call in one["calls"])


def test_bound_answers_come_with_probabilities(place: Path, tmp_path: Path) -> None:
    given = evaluating(place / "dataset", place / "instructblip")
    out, _ = run("evaluate", *given, "ablation=constrained", cwd=tmp_path, **THEIRS)
    path = tmp_path / run_folder(out) / "responses.jsonl"
    responses = [json.loads(line) for line in path.read_text().splitlines()]
    assert [one["verdict"] for one in responses] == ["matched"] * 10
    for one in responses:
        assert sorted(one["probabilities"]) == list("abcd")
        assert one["letter"] == max(one["probabilities"], key=one["probabilities"].__getitem__)


def test_items_too_long_for_it_fail_and_are_not_scored(place: Path, tmp_path: Path) -> None:
    checkpoints.instructblip(tmp_path / "narrow", former_positions=64)
    out, _ = run("evaluate", *evaluating(place / "dataset", tmp_path / "narrow"), cwd=tmp_path, **THEIRS)
    assert "to 10 of 10 items: not scored" in out
    lines = (tmp_path / run_folder(out) / "responses.jsonl").read_text().splitlines()
    assert all("too_long: the prompt has" in json.loads(line)["reason"] for line in lines)


def test_a_name_on_the_hub_is_taken_from_the_cache_where_the_hub_does_not_answer(place: Path, tmp_path: Path) -> None:
    commit = "c" * 40
    cached = tmp_path / "hub" / "hub" / "models--org--tiny"
    shutil.copytree(place / "llava", cached / "snapshots" / commit)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text(commit)
    out, _ = run("evaluate", *evaluating(place / "dataset", "org/tiny"), "preview=1", cwd=tmp_path, **THEIRS)
    (line,) = (tmp_path / run_folder(out) / "responses.jsonl").read_text().splitlines()
    (call,) = json.loads(line)["calls"]
    assert call["server"] == "transformers/org/tiny@main"
    assert call["model"] == f"org/tiny@{commit}"
    said = complaint("evaluate", *evaluating(place / "dataset", "org/other"), cwd=tmp_path, **THEIRS)
    assert "org/other is neither a folder nor in the cache" in said
