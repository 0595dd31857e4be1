"""Mirrored runs on another path: what they refer to is found again, before it is sent."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.commands import complaint, environment, run, run_folder
from tests.wandb_files import mirror, payloads, records
from vpref.tracking import find_mirrors
from vpref.tracking.offline import read_log, write_log

SIM = ["model@pipeline.model=simulator", "driver.progress=none", "profile@simulator=flawless", "data.first=2"]
ASKED = ["model@evaluated=simulator", "model@extractor=simulator", "driver.progress=none"]
THEIRS: dict[str, Any] = {"PYTHONWARNINGS": "default"}  # the W&B client leaves its temporary folders to chance


@given(st.lists(st.integers(0, 100_000) | st.integers(32_740, 32_790), max_size=6))
def test_a_log_is_written_as_it_is_read(sizes: list[int]) -> None:
    given = [bytes([number % 256]) * size for number, size in enumerate(sizes)]
    written = write_log(given)
    assert list(read_log(written)) == given
    assert list(payloads(written)) == given, "and another reader of the format agrees"


def test_a_torn_log_is_read_up_to_where_it_is_torn() -> None:
    given = [b"a" * 40_000, b"b" * 40_000, b"c" * 10]
    written = write_log(given)
    assert list(read_log(written[:-3])) == given[:2]
    assert list(read_log(written[:60_000])) == given[:1]
    changed = bytearray(written)
    changed[50_000] ^= 1
    assert list(read_log(bytes(changed))) == given[:1]
    with pytest.raises(ValueError, match="no file of W&B's"):
        list(read_log(b"something else"))


def test_of_a_resumed_run_the_last_mirror_counts(tmp_path: Path) -> None:
    for name in (
        "a/wandb/offline-run-20260101_000000-x",
        "a/wandb/offline-run-20260102_000000-y",
        "b/wandb/offline-run-2-z",
    ):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "run-1.wandb").write_bytes(b"")
    (tmp_path / "c/wandb/offline-run-3-empty").mkdir(parents=True)
    assert [path.name[-1] for path in find_mirrors(tmp_path)] == ["y", "z"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a mirrored run of generate, and one of evaluate on it, in `outputs`."""
    pytest.importorskip("wandb", reason="the W&B client is not installed")
    place = tmp_path_factory.mktemp("made")
    out, _ = run("generate", *SIM, cwd=place, **THEIRS)
    lines = (place / run_folder(out) / "items.jsonl").read_text().splitlines()
    items = [json.loads(line)["item"]["id"] for line in lines]
    (place / "truth.json").write_text(json.dumps(dict.fromkeys(items, "b")))
    run("evaluate", *ASKED, f"dataset={run_folder(out)}", "truth=truth.json", cwd=place, **THEIRS)
    return place


@pytest.mark.slow
def test_a_moved_run_keeps_every_table_image_and_artifact(made: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copied here"
    shutil.copytree(made / "outputs", copy / "outputs", symlinks=True)
    (made / "outputs").rename(made / "gone")  # for this test, what the paths say is no longer there
    try:
        before = {verb: mirror(copy / "outputs" / verb) for verb in ("generate", "evaluate")}
        assert not any(path.exists() for one in before.values() for path in one.files())
        kept = {verb: records(one.path) for verb, one in before.items()}
        out, _ = run("sync", "outputs", "dry_run=true", cwd=copy, **THEIRS)
        for verb, key in (("generate", "generations"), ("evaluate", "responses")):
            read = mirror(copy / "outputs" / verb)
            (folder,) = (copy / "outputs" / verb).iterdir()
            files = read.files()
            assert f"{len(files)} files, {len(files)} found where the run lies now; ended with exit code 0" in out
            assert len(files) > 8
            assert all(path.is_file() and path.is_relative_to(folder) for path in files)
            originals = [made / "gone" / path.relative_to(made / "outputs") for path in before[verb].files()]
            assert [path.read_bytes() for path in files] == [path.read_bytes() for path in originals]
            rows = read.table(key)
            assert len(rows) == 8
            assert all(row["image"]["local"].read_bytes()[:2] in (b"\xff\xd8", b"\x89P") for row in rows)
            assert (read.summary, read.config, read.name) == (
                before[verb].summary,
                before[verb].config,
                before[verb].name,
            )
            others = [one for one in kept[verb] if not _holds_files(one)]
            assert [one for one in records(read.path) if not _holds_files(one)] == others, "nothing else is touched"
            assert inspected(read.path.parent)["summary"]["usd"] == read.summary["usd"], "W&B's own reader takes it"
        again, _ = run("sync", "outputs", "dry_run=true", cwd=copy, **THEIRS)
        assert "found where" not in again
        assert again.endswith("dry_run: 2 would be sent, 0 left out\n")
    finally:
        (made / "gone").rename(made / "outputs")


def inspected(folder: Path) -> dict[str, Any]:
    """What W&B's inspector reads in an offline run."""
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--summary", "--json", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(PYTHONWARNINGS="ignore"))
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def _holds_files(record: Any) -> bool:
    return record.WhichOneof("record_type") in ("artifact", "request")


@pytest.mark.slow
def test_a_copy_refers_to_its_own_files_and_lacks_are_told(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "outputs", tmp_path / "outputs")
    run("sync", "outputs/generate", "dry_run=true", cwd=tmp_path, **THEIRS)
    files = mirror(tmp_path / "outputs/generate").files()
    assert all(path.is_relative_to(tmp_path) and path.is_file() for path in files)
    files[-1].unlink()
    (evaluated,) = (tmp_path / "outputs/evaluate").iterdir()
    mirror(evaluated).path.write_bytes(b":W&B\xe1\xbe\x00")  # what a kill in the first seconds leaves
    out, errors = run("sync", "outputs", "dry_run=true", cwd=tmp_path, code=2, **THEIRS)
    assert f"left out, 1 of its {len(files)} files are missing or changed" in out, out
    assert "left out, it ended before W&B wrote anything down" in out
    assert errors == "vpref: 2 of 2 runs cannot be sent; the lines above say why.\n"


@pytest.mark.slow
def test_a_run_that_goes_on_is_left_alone(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "outputs/generate", tmp_path / "runs")
    (folder,) = (tmp_path / "runs").iterdir()
    status = json.loads((folder / "status.json").read_text())
    (folder / "status.json").write_text(json.dumps(status | {"state": "running", "pid": os.getpid()}))
    was = mirror(folder).path.read_bytes()
    out, _ = run("sync", "runs", "dry_run=true", cwd=tmp_path, code=2, **THEIRS)
    assert "left out, it still runs" in out
    assert mirror(folder).path.read_bytes() == was


@pytest.mark.slow
def test_mistakes_of_syncing_are_one_sentence(made: Path, tmp_path: Path) -> None:
    alone: dict[str, Any] = {"HOME": str(tmp_path), **THEIRS}
    assert "Which runs?" in complaint("sync", cwd=tmp_path)
    assert "There is no run folder at nowhere" in complaint("sync", "nowhere", cwd=tmp_path)
    (tmp_path / "empty").mkdir()
    assert "holds no W&B files" in complaint("sync", "empty", cwd=tmp_path)
    assert "W&B has no key: set WANDB_API_KEY" in complaint("sync", str(made / "outputs"), cwd=tmp_path, **alone)


@pytest.mark.slow
def test_the_workspace_shows_what_runs_log(made: Path, tmp_path: Path) -> None:
    pytest.importorskip("wandb_workspaces", reason="the extra `dashboards` is not installed")
    alone: dict[str, Any] = {"HOME": str(tmp_path), "PYTHONWARNINGS": "ignore"}
    out, _ = run("workspace", "entity=team", "project=prefs", "dry_run=true", cwd=tmp_path, **alone)
    text = (tmp_path / out.removeprefix("workspace: ").strip()).read_text()
    workspace = json.loads(text)
    assert (workspace["entity"], workspace["project"]) == ("team", "prefs")
    logged: set[str] = set()
    for verb in ("generate", "evaluate"):
        read = mirror(made / "outputs" / verb)
        logged |= {*read.summary, *(key for row in read.history for key in row)}
    shown = set(re.findall(r'"((?:accuracy|accuracy_low|n|unmatched|depth|items|tables)/[a-z_/0-9]+)"', text))
    unseen = {"items/unresolved", "items/failed"}  # flawless models leave none
    assert {name for name in shown if "/boxes" not in name} - logged - unseen == set()
    assert {"accuracy/plain/category_3", "depth/accepted", "depth/issues/none", "tables/accuracy"} <= shown
    assert all(f'"{name}"' in text for name in ("generations", "responses", "confusion_table", "roles/reviewer/usd"))
    _, errors = run("workspace", "entity=team", cwd=tmp_path, code=2, **alone)
    assert errors.startswith("vpref: W&B has no key: set WANDB_API_KEY")
    assert "entity" in complaint("workspace", cwd=tmp_path)
