"""The W&B mirror, read back from its offline files: every table, image, number and name."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.commands import environment, run, run_folder
from tests.wandb_files import mirror, mirrors

pytestmark = pytest.mark.slow

pytest.importorskip("wandb", reason="the W&B client is not installed")

SIM = ["model@pipeline.model=simulator", "driver.progress=none", "profile@simulator=faulty", "simulator.stall_s=0.1"]
ASKED = ["model@evaluated=simulator", "model@extractor=simulator", "driver.progress=none"]
THEIRS: dict[str, Any] = {"PYTHONWARNINGS": "default"}  # the W&B client leaves its temporary folders to chance


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of generate, boxes drawn too, and one of evaluate on it, as `generated` and `evaluated`."""
    place = tmp_path_factory.mktemp("made")
    home = {"HOME": str(place / "home"), **THEIRS}
    out, errors = run("generate", *SIM, "variant=both", "detection=file", "data.first=3", cwd=place, **home)
    assert "wandb" not in (out + errors).lower(), "no advertisements"
    (place / "generated").symlink_to(run_folder(out))
    items = [json.loads(line) for line in (place / "generated/items.jsonl").read_text().splitlines()]
    truth = {one["item"]["id"]: "b" for one in items if one["outcome"] == "accepted"}
    (place / "truth.json").write_text(json.dumps(truth))
    asked = ["ablation=no_image", "simulator.unmatched=0.2", "truth=truth.json", f"dataset={run_folder(out)}"]
    out, errors = run("evaluate", *ASKED, *asked, cwd=place, **home)
    assert "wandb" not in (out + errors).lower()
    (place / "evaluated").symlink_to(run_folder(out))
    return place


def records(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{kind}.jsonl").read_text().splitlines()]


def test_generated_items_are_shown_with_their_rounds_and_drawn_images(made: Path) -> None:
    folder = (made / "generated").resolve()
    outcomes, read = records(folder, "items"), mirror(folder)
    assert (read.code, read.job_type, read.tags) == (0, "generate", ["generate", "plain", "boxes", "simulated"])
    assert read.name.endswith(" (simulated)")
    rows = read.table("generations")
    assert len(rows) == len(outcomes) > 12
    drawn = 0
    for outcome, row in zip(outcomes, rows, strict=True):
        item, rounds = outcome.get("item"), outcome["rounds"]
        assert row["outcome"] == outcome["outcome"]
        assert row["issues"] == " > ".join(one["review"]["issue"] or "none" for one in rounds)
        for one in rounds:
            assert one["review"]["analysis"] in row["rounds"]
            assert one["revision"] is None or one["revision"]["proposed_fix"] in row["rounds"]
        if item:
            assert (row["item"], row["answer"], row["scene"]) == (item["id"], item["answer"], item["scene"])
            assert (
                row["image"]["local"].read_bytes() == next((folder / "images").glob(f"{item['shown']}.*")).read_bytes()
            )
            drawn += item["shown"] != item["slot"]["image"]
    assert drawn, "boxes are shown as they were drawn"


def test_issues_acceptance_tokens_and_cost_are_shown(made: Path) -> None:
    folder = (made / "generated").resolve()
    outcomes, read = records(folder, "items"), mirror(folder)
    for depth in range(3):
        found = [one["rounds"][depth]["review"]["issue"] or "none" for one in outcomes if len(one["rounds"]) > depth]
        kept = [one for one in outcomes if one["outcome"] == "accepted" and len(one["rounds"]) <= depth + 1]
        (point,) = (row for row in read.history if row.get("revisions") == depth)
        assert point["depth/accepted"] == pytest.approx(len(kept) / len(outcomes))
        assert point["depth/reviews"] == len(found)
        assert all(point[f"depth/issues/{issue}"] == found.count(issue) for issue in {*found, "none"})
    assert read.axes["depth/accepted"] == "revisions", "plotted over revisions, not time"
    calls = [call for one in outcomes for call in one["calls"]]
    roles = {row["role"]: row for row in read.table("tables/roles")}
    assert {"generator", "reviewer", "responder"} <= set(roles) == {call["role"] for call in calls}
    for role, row in roles.items():
        own = [call for call in calls if call["role"] == role]
        assert row["calls"] == len(own) == read.summary[f"roles/{role}/calls"]
        assert row["input"] == sum(call["usage"]["input"] for call in own) == read.summary[f"roles/{role}/input"]
        assert row["usd"] == pytest.approx(sum(call["usd"] for call in own), abs=1e-5)
    assert read.summary["items/accepted"] == sum(one["outcome"] == "accepted" for one in outcomes)
    assert read.config["pipeline"]["max_revisions"] == read.config["about"]["max_revisions"] == 4
    assert {"tables/generation", "tables/issues", "tables/boxes", "tables/depth"} <= set(read.summary)


def test_an_evaluation_is_shown_with_its_intervals_and_confusion(made: Path) -> None:
    folder = (made / "evaluated").resolve()
    responses, read = records(folder, "responses"), mirror(folder)
    summary = json.loads((folder / "manifest.json").read_text())["summary"]["accuracy"]
    groups = {(row["variant"], row["group"]): row for row in read.table("tables/accuracy")}
    assert {("plain", "overall"), ("plain", "typical"), ("boxes", "atypical"), ("plain", "category_3")} <= set(groups)
    for (variant, group), row in groups.items():
        figures = summary[variant][group]
        bounds = figures["clustered"] if figures["clustered"]["low"] is not None else figures["wilson"]
        assert (row["accuracy"], row["n"]) == (figures["accuracy"], figures["n"])
        assert (row["accuracy_low"], row["accuracy_high"]) == (bounds["low"], bounds["high"])
        for name in ("accuracy", "accuracy_low", "n", "unmatched", "failed"):
            assert read.summary[f"{name}/{variant}/{group}"] == row[name]
    confusion = {(row["expected"], row["found"]): row["count"] for row in read.table("confusion_table")}
    found = [one["letter"] if one["verdict"] == "matched" else one["verdict"] for one in responses]
    assert {one["expected"] for one in responses} == {"b"}
    assert {what: count for (_, what), count in confusion.items() if count} == {x: found.count(x) for x in set(found)}
    assert "unmatched" in found
    assert (read.config["about"]["left_out"], read.config["about"]["model"]) == ("no image", "simulator")
    assert read.tags == ["evaluate", "no image", "simulated"]


def test_rows_of_runs_join_by_item_and_slot(made: Path) -> None:
    folder = (made / "evaluated").resolve()
    responses, rows = records(folder, "responses"), mirror(folder).table("responses")
    generated = {row["item"]: row for row in mirror((made / "generated").resolve()).table("generations")}
    assert [row["item"] for row in rows] == [one["item"] for one in responses]
    for response, row in zip(responses, rows, strict=True):
        assert (row["verdict"], row["letter"]) == (response["verdict"], response["letter"] or "")
        assert row["correct"] == (response["letter"] == "b")
        assert row["text"] == response["text"]
        other = generated[row["item"]]
        assert (row["slot"], row["question"]) == (other["slot"], other["question"])
        assert row["image"]["sha256"] == other["image"]["sha256"]


def test_a_dataset_leads_from_the_run_that_made_it_to_those_that_used_it(made: Path) -> None:
    evaluated = mirror((made / "evaluated").resolve())
    product, used = mirror((made / "generated").resolve()).kept("dataset"), evaluated.kept("dataset")
    assert (product.used, used.used) == (False, True)
    assert (product.name, product.digest) == (used.name, used.digest), "W&B knows it as the same one"
    assert product.facts == used.facts
    assert {"items.jsonl"} < set(product.files)
    truth = evaluated.kept("truth")
    assert truth.used
    assert truth.files["truth.json"].read_text() == (made / "truth.json").read_text()
    assert not evaluated.kept("responses").used


def test_what_is_to_be_uploaded_lies_in_the_runs_folder_alone(made: Path) -> None:
    for name in ("generated", "evaluated"):
        folder = (made / name).resolve()
        files = mirror(folder).files()
        assert len(files) > 10
        assert all(path.is_relative_to(folder) and path.is_file() for path in files)
    home = made / "home"
    assert not home.exists() or not [path for path in home.rglob("*") if path.is_file()], "nothing is left at home"


def test_each_job_of_a_sweep_is_a_run_named_after_what_varies_and_a_failed_one_is_marked(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    shutil.copytree(Path(__file__).parents[1] / "vpref/images/photos", photos, ignore=shutil.ignore_patterns("[d-z]*"))
    job = ["data.root=photos", "samples=4", "pipeline.model.limits.retries=0", "profile@simulator=flawless"]
    job += ["store.root=kept/${simulator.faults.http_500}"]  # else the second would live on the first's replies
    out, _ = run("generate", "-m", *SIM[:2], *job, "simulator.faults.http_500=0,1", cwd=tmp_path, code=1, **THEIRS)
    assert "50 requests in a row failed" in out
    (sweep,) = (tmp_path / "outputs/generate").iterdir()
    runs = mirrors(sweep)
    assert [run.code for run in runs] == [0, 1]
    assert [run.name for run in runs] == [f"simulator.faults.http_500={share} (simulated)" for share in (0, 1)]
    assert {run.group for run in runs} == {sweep.name}
    assert [run.config["simulator"]["faults"]["http_500"] for run in runs] == [0, 1]
    assert len({run.path.name for run in runs}) == 2
    assert len(runs[1].table("generations")) == len(records(runs[1].path.parents[2], "items")), "what was done is shown"


@contextmanager
def proxy() -> Iterator[tuple[str, list[bytes]]]:
    """The one way out of this machine, which leads nowhere: its address, and the first line of whoever took it."""
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    seen.append(connection.recv(1000).split(b"\r\n")[0])

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}", seen
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_an_offline_run_stays_on_this_machine_and_tells_no_secret(tmp_path: Path) -> None:
    secret = "sk-" + "0123456789" * 4
    with proxy() as (address, seen):
        way_out: dict[str, Any] = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), address)
        more: dict[str, Any] = {
            "no_proxy": "127.0.0.1",
            "WANDB_ERROR_REPORTING": "true",
            "WANDB_API_KEY": secret,
            "OTHER_TOKEN": secret[::-1],
        }
        told = [f"pipeline.model.label=label {secret}", f"tracking.project=my-{secret[::-1]}"]
        out, _ = run("generate", *SIM, "data.first=1", *told, cwd=tmp_path, **way_out, **more, **THEIRS)
    assert seen == [], "no way out was tried"
    folder = tmp_path / run_folder(out)
    assert mirror(folder).config["pipeline"]["model"]["label"] == "label [WANDB_API_KEY]"
    for path in [*folder.glob("wandb/**/*"), *folder.glob("wandb-data/**/*")]:
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
            assert secret[::-1].encode() not in path.read_bytes(), path


def test_without_a_mirror_the_client_is_not_even_loaded(tmp_path: Path) -> None:
    (tmp_path / "wandb.py").write_text("raise SystemExit('the W&B client was loaded')\n")
    path = f"{tmp_path}:{environment()['PYTHONPATH']}"
    out, _ = run("generate", *SIM, "data.first=1", "tracking=none", cwd=tmp_path, PYTHONPATH=path)
    assert not (tmp_path / run_folder(out) / "wandb-data").exists()
    assert not os.listdir(tmp_path / run_folder(out)).count("wandb")
