"""A run comes through a server on a bad day, over real HTTP, and through being killed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands import QUIET, at, environment, read_log, run, run_folder, simulator, start
from vpref.domain import OUTCOME, Failed, Outcome
from vpref.pipeline import shuffle_choices

pytestmark = pytest.mark.slow

EXPORTS = ("items.jsonl", "images.jsonl", "reference.json", "tables/generation.csv", "tables/issues.csv")


def outcomes(folder: Path) -> list[Outcome]:
    return [OUTCOME.validate_json(line) for line in (folder / "items.jsonl").read_bytes().splitlines()]


def exported(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in EXPORTS}


def test_200_items_end_on_a_faulty_server_and_replies_are_never_mixed_up(tmp_path: Path) -> None:
    log = tmp_path / "simulator.jsonl"
    faults = ["profile@simulator=faulty", "simulator.stall_s=2", "simulator.retry_after_s=0.1"]
    with simulator(log, *faults) as url:
        out, _ = run("generate", *at(url), "samples=9", *QUIET, cwd=tmp_path)
    folder = tmp_path / run_folder(out)
    ended = outcomes(folder)
    assert len(ended) == 6 * 4 * 9
    assert len({outcome.slot.key for outcome in ended}) == len(ended)
    assert all(outcome.reason for outcome in ended if isinstance(outcome, Failed))
    counted = Counter(outcome.outcome for outcome in ended)
    assert counted["accepted"] > 150
    for outcome in ended:
        if isinstance(outcome, Failed):
            continue
        # The simulator's right choice follows from the preference: a reply of another item would not fit.
        last = outcome.rounds[-1].draft
        assert outcome.item.preference == last.preference
        order, shown, _ = shuffle_choices(outcome.slot, last.choices, "a")
        assert (outcome.order, outcome.item.choices) == (order, shown)
    seen = {entry["fault"] for entry in read_log(log)}
    assert {"http_429", "http_500", "stall", "drop", "refusal", "cut", "malformed"} <= seen
    summary = json.loads((folder / "manifest.json").read_text())["summary"]
    assert summary["faults"]["http_429"] > 50
    assert set(summary["asked_again"]) & {"refused", "cut", "not_json", "wrong_shape"}


def stored_replies(root: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in root.glob("calls/*.jsonl"))


def until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait for a condition while the process lives, a bounded time."""
    deadline = time.monotonic() + 30
    while not condition() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_killed_at_random_points_it_resumes_to_the_same_bytes_and_asks_nothing_twice(tmp_path: Path) -> None:
    command = ["samples=4", *QUIET]
    log, store, dice = tmp_path / "simulator.jsonl", tmp_path / "outputs/store", random.Random(7)
    with simulator(log, "simulator.latency_s=0.05") as url:
        undisturbed, _ = run("generate", *at(url), *command, f"store.root={tmp_path}/other", cwd=tmp_path)
        wanted = Counter(entry["digest"] for entry in read_log(log))
        total = len(read_log(log))
        for _ in range(4):
            process, goal = start("generate", *at(url), *command, cwd=tmp_path), dice.randrange(5, total // 5)
            goal += stored_replies(store)
            until(lambda goal=goal: stored_replies(store) >= goal, process)  # type: ignore[misc]
            process.send_signal(signal.SIGKILL)
            process.communicate()
            assert process.returncode == -signal.SIGKILL
        kept = stored_replies(store)
        before = len(read_log(log))
        out, _ = run("generate", *at(url), *command, cwd=tmp_path)
        asked = read_log(log)
    folder = tmp_path / run_folder(out)
    assert exported(folder) == exported(tmp_path / run_folder(undisturbed))
    calls = json.loads((folder / "manifest.json").read_text())["summary"]["calls"]
    assert 0 < kept < total
    assert calls["replayed"] >= kept
    assert len(asked) - before == calls["sent"] == total - kept, "no stored call is asked again"
    assert stored_replies(store) == total == sum(wanted.values()), "every reply is stored once"


def test_a_killed_run_is_resumed_in_its_own_folder(tmp_path: Path) -> None:
    log = tmp_path / "simulator.jsonl"
    with simulator(log, "simulator.latency_s=0.1") as url:
        process = start("generate", *at(url), "samples=3", *QUIET, cwd=tmp_path)
        until(lambda: stored_replies(tmp_path / "outputs/store") > 10, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        (folder,) = (path for path in (tmp_path / "outputs/generate").iterdir())
        assert json.loads((folder / "status.json").read_text())["state"] == "running"
        out, _ = run("resume", str(folder.relative_to(tmp_path)), cwd=tmp_path)
    assert tmp_path / run_folder(out) == folder
    assert len(outcomes(folder)) == 72
    assert json.loads((folder / "status.json").read_text())["state"] == "finished"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stores_what_is_in_flight(tmp_path: Path, number: signal.Signals) -> None:
    log = tmp_path / "simulator.jsonl"
    with simulator(log, "simulator.latency_s=0.2") as url:
        process = start("generate", *at(url), "samples=3", *QUIET, cwd=tmp_path)
        until(lambda: stored_replies(tmp_path / "outputs/store") > 10, process)
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 128 + number, errors
        assert errors.strip().splitlines() == [
            f"vpref: Interrupted by {number.name}; give the same command again to go on from here."
        ]
        asked = len(read_log(log))
        assert stored_replies(tmp_path / "outputs/store") == asked
        out, _ = run("generate", *at(url), "samples=3", *QUIET, cwd=tmp_path)
        calls = json.loads((tmp_path / run_folder(out) / "manifest.json").read_text())["summary"]["calls"]
        assert calls["sent"] == len(read_log(log)) - asked
    (status,) = (
        status
        for path in sorted((tmp_path / "outputs/generate").glob("*/status.json"))
        if (status := json.loads(path.read_text()))["state"] == "interrupted"
    )
    assert number.name in status["error"]
    logs = [path.read_text() for path in (tmp_path / "outputs/generate").glob("*/generate.log")]
    assert not any("never retrieved" in text for text in logs)


def test_two_processes_on_one_store_share_their_calls(tmp_path: Path) -> None:
    log = tmp_path / "simulator.jsonl"
    with simulator(log, "simulator.latency_s=0.05") as url:
        both = [start("generate", *at(url), "samples=2", *QUIET, cwd=tmp_path) for _ in range(2)]
        outs = []
        for process in both:
            out, errors = process.communicate(timeout=60)
            assert process.returncode == 0, errors
            outs.append(tmp_path / run_folder(out))
    assert exported(outs[0]) == exported(outs[1])
    sent = [json.loads((folder / "manifest.json").read_text())["summary"]["calls"]["sent"] for folder in outs]
    assert sum(sent) == len(read_log(log))
    assert stored_replies(tmp_path / "outputs/store") == len(read_log(log)), "no request was sent by both"


def figures(folder: Path) -> dict[str, Any]:
    """What the accuracy table's record says of the one model in it."""
    record: dict[str, Any] = json.loads((folder / "tables/table2_accuracy_plain.json").read_text())["records"][0]
    return record["overall"]  # type: ignore[no-any-return]


def responses(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "responses.jsonl").read_bytes().splitlines()]


def test_an_outage_in_the_middle_of_an_evaluation_changes_coverage_and_nothing_else(tmp_path: Path) -> None:
    store = tmp_path / "replies"
    made, _ = run("generate", "model@pipeline.model=simulator", "samples=3", *QUIET, cwd=tmp_path)
    log = tmp_path / "simulator.jsonl"
    profile = ["simulator.latency_s=0.15", "simulator.accuracy=[0.7,0.6,0.7,0.6]"]

    def evaluating(url: str) -> list[str]:
        server = [f"evaluated.base_url={url}", "evaluated.name=simulator"]
        few = ["evaluated.limits.concurrency=4", "evaluated.limits.retries=0", "evaluated.image.max_side=64"]
        return [
            f"dataset={run_folder(made)}",
            "model@evaluated=compatible",
            "model@extractor=null",
            *server,
            *few,
            f"store.root={store}",
            *QUIET,
        ]

    with simulator(log, *profile) as url:
        out, _ = run("evaluate", *evaluating(url), f"store.root={tmp_path}/other", cwd=tmp_path)
    undisturbed = tmp_path / run_folder(out)
    with simulator(log, *profile) as url:
        process = start("evaluate", *evaluating(url), cwd=tmp_path)
        until(lambda: stored_replies(store) > 30, process)
    # The server is gone while requests are out and most of the items are still to be asked.
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    folder = tmp_path / run_folder(out)
    hit, whole = figures(folder), figures(undisturbed)
    assert (whole["n"], whole["failed"]) == (72, 0)
    assert hit["n"] == 72
    assert 0 < hit["failed"] < 50
    assert hit["coverage"] == pytest.approx(100 * (72 - hit["failed"]) / 72, abs=0.051)
    assert f"to {hit['failed']} of 72 items: not scored" in out
    same = {one["item"]: one for one in responses(undisturbed)}
    answered = [one for one in responses(folder) if one["verdict"] != "failed"]
    assert answered == [same[one["item"]] for one in answered], "what was answered is as it would have been"
    right = sum(one["verdict"] == "matched" and one["letter"] == one["expected"] for one in answered)
    assert (hit["correct"], hit["responded"]) == (right, len(answered)), "and alone makes the accuracy"
    assert 0 < right < len(answered)
    before = len(read_log(log))
    with simulator(log, *profile) as url:
        run("resume", str(folder.relative_to(tmp_path)), f"evaluated.base_url={url}", cwd=tmp_path)
    assert len(read_log(log)) - before == hit["failed"], "only the failed ones are asked again"
    assert (folder / "responses.jsonl").read_bytes() == (undisturbed / "responses.jsonl").read_bytes()
    assert figures(folder) == whole


def test_a_server_that_stays_away_stops_the_run_and_loses_nothing(tmp_path: Path) -> None:
    store = tmp_path / "replies"
    made, _ = run("generate", "model@pipeline.model=simulator", "samples=3", *QUIET, cwd=tmp_path)
    log = tmp_path / "simulator.jsonl"
    few = ["evaluated.name=simulator", "evaluated.limits.concurrency=2", "evaluated.limits.retries=0"]
    command = [
        f"dataset={run_folder(made)}",
        "model@evaluated=compatible",
        "model@extractor=null",
        *few,
        f"store.root={store}",
        *QUIET,
    ]
    with simulator(log, "simulator.latency_s=0.2") as url:
        process = start("evaluate", *command, f"evaluated.base_url={url}", cwd=tmp_path)
        until(lambda: stored_replies(store) > 3, process)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1, errors
    assert "50 requests in a row failed" in errors
    kept, before = stored_replies(store), len(read_log(log))
    with simulator(log) as url:
        out, _ = run("evaluate", *command, f"evaluated.base_url={url}", cwd=tmp_path)
    assert len(read_log(log)) - before == 72 - kept
    assert figures(tmp_path / run_folder(out))["failed"] == 0


def test_a_depth_study_asks_no_more_than_its_deepest_run_and_the_answers_that_differ(tmp_path: Path) -> None:
    log = tmp_path / "simulator.jsonl"
    issues = "simulator.issues={multiple_correct_choices: 0.5}"
    with simulator(log, issues) as url:
        run("generate", *at(url), "pipeline.max_revisions=4", *QUIET, f"store.root={tmp_path}/deep", cwd=tmp_path)
        deep = read_log(log)
        run("generate", "-m", *at(url), "pipeline.max_revisions=0,1,2,4", *QUIET, cwd=tmp_path)
        study = read_log(log)[len(deep) :]
    deepest = {(entry["role"], entry["digest"]) for entry in deep}
    more = {(entry["role"], entry["digest"]) for entry in study} - deepest
    assert {role for role, _ in more} == {"responder"}
    assert len(study) == len({entry["digest"] for entry in study}), "nothing is asked twice"


def test_a_full_disk_stops_the_run_and_tears_no_record(tmp_path: Path) -> None:
    sim = ["model@pipeline.model=simulator", *QUIET]
    run("generate", *sim, "dry_run=true", cwd=tmp_path)  # the images are there now; only replies are written below
    full = [sys.executable, "-c", FULL, "generate", *sim]
    done = subprocess.run(
        full, cwd=tmp_path, env=environment(PYTHONDONTWRITEBYTECODE="1"), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1, done.stderr
    assert "Make room and give the same command again" in done.stderr
    assert "Traceback" not in done.stderr
    for path in tmp_path.rglob("*.jsonl"):
        assert path.read_bytes()[-1:] in (b"", b"\n"), path
        assert all(json.loads(line) for line in path.read_text().splitlines())
    kept = stored_replies(tmp_path / "outputs/store")
    assert kept > 0
    out, _ = run("generate", *sim, cwd=tmp_path)
    assert (
        json.loads((tmp_path / run_folder(out) / "manifest.json").read_text())["summary"]["calls"]["replayed"] >= kept
    )


FULL = (
    "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); from vpref.cli import main; main()"
)
