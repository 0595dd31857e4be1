"""What a user types and sees: mistakes in one sentence, previews, plans, tables, sweeps."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

from tests.commands import QUIET, ROOT, complaint, run, run_folder
from vpref.cli import main
from vpref.domain import OUTCOME, Response

SIM = ["model@pipeline.model=simulator", *QUIET]
EVALUATED = ["model@evaluated=simulator", "model@extractor=null"]
KEY = "sk-verysecretkeyvalue1234567890"
SHARED_IMAGES = ROOT.parent / "shared" / "images"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generate run of the packaged photos, with everything that can be done to it in one folder."""
    folder = tmp_path_factory.mktemp("user")
    out, _ = run("generate", *SIM, cwd=folder)
    return folder / run_folder(out)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["generate"], "OPENAI_API_KEY"),
        (["generat"], "Did you mean generate?"),
        (["generate", "model@pipeline.model=nope"], "choose from anthropic, compatible, gemini"),
        (["generate", "category=7"], "choose from 0, 1, 2, 3, all"),
        (["generate", "categories=[7]", *SIM], "category 7 is unknown"),
        (["generate", "variants=[cubes]", *SIM], "variant 'cubes' is unknown"),
        (["generate", "model@pipeline.critic=gpt-4.1"], "There is no role 'critic'"),
        (["import", "tracking=none"], "There is no place 'tracking'"),
        (["generate", "pipeline.max_revision=1"], "did you mean max_revisions?"),
        (["generate", "nonsense=1"], "There is no setting 'nonsense'"),
        (["generate", "simulator.faults.http_428=1"], "did you mean http_429?"),
        (["generate", "pipeline.max_revisions=abc"], "pipeline.max_revisions does not fit"),
        (["generate", "pipeline.max_revisions=-1", *SIM], "must be 0 or more"),
        (["generate", "data.source=web"], "folder, visual_genome"),
        (["generate", "data.first=1", "data.sample=1", *SIM], "exclude one another"),
        (["generate", "category=0,1"], "add -m"),
        (["generate", "a=b=c"], "cannot be read"),
        (["generate", "+pipeline.model.params.api_key=x", *SIM], "keys belong in the environment"),
        (["generate", "pipeline.model.params.seed=1", *SIM], "add it: +pipeline.model.params.seed=VALUE"),
        (["generate", "model@pipeline.model=compatible"], "pipeline.model.name=VALUE"),
        (["generate", *SIM, "data.root=empty"], "No image file is in empty"),
        (["generate", *SIM, "data.root=absent"], "does not exist"),
        (["generate", *SIM, "outputs=file"], "outputs=DIR"),
        (["generate", *SIM, "store.root=file"], "set store.root"),
        (["evaluate"], "dataset=VALUE"),
        (["evaluate", "dataset=absent"], "There is no dataset at absent"),
        (["evaluate", "dataset=file", "model@evaluated=simulator"], "line 1 is no item of ours"),
        (["evaluate", "dataset=void", "model@evaluated=simulator"], "void is empty"),
        (["report"], "vpref report outputs/evaluate/*"),
        (["report", "absent"], "There is no run folder at absent"),
        (["report", "empty"], "holds no evaluation run"),
        (["resume"], "Resume which run?"),
        (["resume", "empty"], "Cannot read empty/manifest.json"),
    ],
)
@pytest.mark.usefixtures("own_logging")
def test_a_mistake_is_one_sentence_and_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("not ours\n")
    (tmp_path / "void").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("vpref: ")
    assert said in line
    assert ended.value.code == 2


def test_a_server_that_does_not_answer_is_said_before_any_image_is_touched(tmp_path: Path) -> None:
    nobody = ["generate", "model@pipeline.model=compatible", "pipeline.model.name=m"]
    said = complaint(*nobody, "pipeline.model.base_url=http://127.0.0.1:9/v1", cwd=tmp_path)
    assert "No answer from http://127.0.0.1:9/v1" in said
    assert not list(tmp_path.rglob("*.jpg"))
    assert "http://host:8000/v1" in complaint(*nobody, "pipeline.model.base_url=x:9", cwd=tmp_path)


def test_help_teaches_without_loading_hydra(tmp_path: Path) -> None:
    out, _ = run(cwd=tmp_path)
    assert "vpref demo" in out
    for verb in ("generate", "evaluate", "report", "simulate", "demo", "resume"):
        out, _ = run(verb, "--help", cwd=tmp_path)
        assert f"vpref {verb}" in out
    out, _ = run("generate", "--help", cwd=tmp_path)
    assert "max_revisions: 4            # k allows k revisions" in out
    assert "gpt-5-mini" in out
    assert not (tmp_path / "outputs").exists()


def test_a_run_leaves_all_that_leads_back_from_its_numbers(generated: Path) -> None:
    manifest = json.loads((generated / "manifest.json").read_text())
    assert manifest["config"]["pipeline"]["max_revisions"] == 4
    assert set(manifest["servers"]) == {"generator", "reviewer", "revisor", "responder"}
    assert all(server.startswith("simulator/") for server in manifest["servers"].values())
    assert {"python", "openai", "hydra-core", "pydantic"} <= set(manifest["versions"])
    assert json.loads((generated / "status.json").read_text())["state"] == "finished"
    outcomes = [OUTCOME.validate_json(line) for line in (generated / "items.jsonl").read_text().splitlines()]
    assert len(outcomes) == 24
    digests = {path.stem for path in (generated / "images").iterdir()}
    assert {outcome.slot.image for outcome in outcomes} == digests
    items = json.loads((generated / "reference.json").read_text())["items"]
    assert set(items[0]) == {"img", "model", "category", "uuid", "prompt", "answer"}
    assert "CC BY 2.0" in (generated / "ATTRIBUTION.md").read_text()


def test_evaluating_and_reporting(generated: Path) -> None:
    home = generated.parents[2]
    folders = []
    asked = [
        "evaluate",
        f"dataset={generated}",
        "model@evaluated=simulator",
        "model@extractor=null",
        "profile@simulator=flawless",
        *QUIET,
    ]
    for name, accuracy in (("good", "[1,1,1,1]"), ("poor", "[0,0,0.5,0.5]")):
        out, _ = run(*asked, f"evaluated.name={name}", f"simulator.accuracy={accuracy}", cwd=home)
        folders.append(home / run_folder(out))
        assert "Table 2: accuracy, plain" in out
        assert "(simulated)" in out
    lines = (folders[0] / "responses.jsonl").read_text().splitlines()
    responses = [Response.model_validate_json(line) for line in lines]
    assert all(response.correct for response in responses)
    assert len({response.by for response in responses}) > 1
    out, _ = run("report", *map(str, folders), cwd=home)
    assert "good (simulated)" in out
    assert "100.0%" in out
    csv = next(home.glob("outputs/report/*/tables/table2_accuracy_plain.csv")).read_text().splitlines()
    assert csv[1].startswith("good,,True,24,24,24,")
    out, _ = run("report", "outputs/evaluate", cwd=home)
    assert "good (simulated)" in out
    assert "poor (simulated)" in out


def test_an_item_changed_by_hand_or_without_its_image_is_refused(generated: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(generated, copy)
    text = (copy / "items.jsonl").read_text()
    preference = json.loads(text.splitlines()[0])["item"]["preference"]
    (copy / "items.jsonl").write_text(text.replace(preference, "I like none of it."))
    asked = ["evaluate", f"dataset={copy}", "model@evaluated=simulator"]
    assert "was changed after it was made" in complaint(*asked, cwd=tmp_path)
    (copy / "items.jsonl").write_text(text)
    next((copy / "images").iterdir()).unlink()
    assert "is missing" in complaint(*asked, cwd=tmp_path)


def test_preview_shows_whole_transcripts_and_is_reused(tmp_path: Path) -> None:
    out, _ = run("generate", *SIM, "preview=2", cwd=tmp_path)
    assert out.count(">>> to the generator") == 2
    assert "Preference type: typical" in out
    assert '"scene"' in out
    assert len((tmp_path / run_folder(out) / "items.jsonl").read_text().splitlines()) == 2
    out, _ = run("generate", *SIM, cwd=tmp_path)
    calls = json.loads((tmp_path / run_folder(out) / "manifest.json").read_text())["summary"]["calls"]
    assert calls["replayed"] >= 6


def test_a_dry_run_bounds_the_calls_and_sends_nothing(tmp_path: Path) -> None:
    def plan(*more: str) -> tuple[int, int]:
        out, _ = run("generate", *SIM, "dry_run=true", *more, cwd=tmp_path)
        words = out.partition("still to be sent: ")[2].split()
        return int(words[0].replace(",", "")), int(words[2].replace(",", ""))

    least, most = plan()
    assert (least, most) == (24 * 3, 24 * 3 * (1 + 5 + 4 + 1))
    assert plan("pipeline=unreviewed") == (24 * 2, 24 * 2 * 3)
    assert not list(tmp_path.glob("outputs/store/calls/*.jsonl"))
    out, _ = run("generate", "dry_run=true", *QUIET, cwd=tmp_path)
    assert "GPT-5 mini             24 to 72 calls" in out, "what a run would cost is told without a key"
    out, _ = run("generate", *SIM, cwd=tmp_path)
    sent = json.loads((tmp_path / run_folder(out) / "manifest.json").read_text())["summary"]["calls"]["sent"]
    assert least <= sent <= most
    assert plan() == (0, 0)
    evaluating = [
        "evaluate",
        f"dataset={run_folder(out)}",
        "model@evaluated=simulator",
        "model@extractor=null",
        "dry_run=true",
        *QUIET,
    ]
    assert "still to be sent: 24 to 24 calls" in run(*evaluating, cwd=tmp_path)[0]


def test_a_sweep_keeps_the_jobs_that_work_and_says_which_failed(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    sweep_of = ["data.first=1", "data.root=null,empty", "category=0,2"]
    out, errors = run("generate", "-m", *SIM, *sweep_of, cwd=tmp_path, code=1)
    assert "No image file is in empty" in out
    assert "2 of 4 jobs did not finish" in errors
    (sweep,) = (tmp_path / "outputs/generate").iterdir()
    jobs = {path.parent.name: json.loads(path.read_text()) for path in sweep.glob("*/status.json")}
    assert sorted(job["state"] for job in jobs.values()) == ["failed", "failed", "finished", "finished"]
    for name, job in jobs.items():
        log = (sweep / name / "generate.log").read_text()
        assert (job["state"] == "failed") == ("Traceback" in log)
        assert (job["error"] is None) == (job["state"] == "finished")
    assert len({name.split("_", 1)[0] for name in jobs}) == 4


def test_folder_names_hold_no_separator_and_never_collide(tmp_path: Path) -> None:
    photos = tmp_path / "my photos" / "ü"
    photos.mkdir(parents=True)
    Image.effect_noise((64, 64), 90).convert("RGB").save(photos / "straße 1.jpg")
    out, _ = run("generate", "-m", *SIM, f"'data.root=\"{photos}\"'".strip("'"), "category=1,3", cwd=tmp_path)
    assert out.count("records: ") == 2
    (sweep,) = (tmp_path / "outputs/generate").iterdir()
    assert len([path for path in sweep.iterdir() if path.is_dir() and path.name != ".hydra"]) == 2
    record = json.loads(next(sweep.glob("*/images.jsonl")).read_text())
    assert record["source"] == "straße 1.jpg"


def test_no_key_reaches_any_file_or_output(tmp_path: Path) -> None:
    url = f"pipeline.model.base_url=http://127.0.0.1:9/{KEY}"
    named = [*SIM, "data.first=1", "pipeline.model.api_key_env=OPENAI_API_KEY"]
    told = [
        *run("generate", *named, cwd=tmp_path, OPENAI_API_KEY=KEY),
        complaint("generate", url, cwd=tmp_path, OPENAI_API_KEY=KEY),
        complaint("generate", f"nonsense={KEY}", cwd=tmp_path, OPENAI_API_KEY=KEY),
    ]
    assert not any(KEY in text for text in told)
    leaks = [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    # What a user typed on the command line is Hydra's to keep; a key read from the environment is nowhere.
    assert [path for path in leaks if ".hydra" not in path.parts] == []


def test_the_main_job_on_real_photos(tmp_path: Path) -> None:
    if not SHARED_IMAGES.is_dir():
        pytest.skip("the photos beside the project are not here")
    out, _ = run("generate", *SIM, f"data.root={SHARED_IMAGES}", cwd=tmp_path)
    assert "images: 8 used" in out
    assert len((tmp_path / run_folder(out) / "items.jsonl").read_text().splitlines()) == 32


def test_bad_images_are_counted_and_the_run_goes_on(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    good = Image.effect_noise((80, 60), 90).convert("RGB")
    good.save(photos / "a.jpg")
    good.save(photos / "copy.png")
    shutil.copy(photos / "a.jpg", photos / "b.jpg")
    (photos / "zero.jpg").write_bytes(b"")
    (photos / "cut.jpg").write_bytes((photos / "a.jpg").read_bytes()[:900])
    (photos / "page.jpg").write_bytes(b"<html>")
    out, _ = run("generate", *SIM, "data.root=photos", cwd=tmp_path)
    records = [json.loads(line) for line in (tmp_path / run_folder(out) / "images.jsonl").read_text().splitlines()]
    assert {record["source"]: record["kind"] or record["status"] for record in records} == {
        "a.jpg": "used",
        "b.jpg": "duplicate",
        "copy.png": "used",
        "cut.jpg": "truncated",
        "page.jpg": "not_an_image",
        "zero.jpg": "empty",
    }


@pytest.mark.parametrize(
    "settings",
    [
        ["pipeline.model.api=chat"],
        ["pipeline.model.structured=prompt"],
        ["pipeline.model.structured=json_schema", "pipeline.message_order=image_first"],
        ["pipeline=unreviewed", "samples=2"],
        ["model@pipeline.reviewer=simulator", "pipeline.reviewer.name=other"],
    ],
)
def test_every_way_to_ask_gives_items(tmp_path: Path, settings: list[str]) -> None:
    out, _ = run("generate", *SIM, "profile@simulator=flawless", "data.first=2", *settings, cwd=tmp_path)
    lines = (tmp_path / run_folder(out) / "items.jsonl").read_text().splitlines()
    assert all(json.loads(line)["outcome"] == "accepted" for line in lines)
    drafts = {json.dumps(json.loads(line)["item"]["choices"]) for line in lines}
    assert len(drafts) == len(lines)
