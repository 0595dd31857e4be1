"""The reference implementation's JSON, out and in again, and ground truth from a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import QUIET, ROOT, complaint, run, run_folder
from vpref.domain import OUTCOME, Accepted, Response

SIM = ["model@pipeline.model=simulator", *QUIET]
ASK = ["model@evaluated=simulator", "model@extractor=null", "profile@simulator=flawless", *QUIET]
PHOTOS = ROOT / "vpref/images/photos"


def items(folder: Path) -> list[Accepted]:
    outcomes = [OUTCOME.validate_json(line) for line in (folder / "items.jsonl").read_text().splitlines()]
    return [outcome for outcome in outcomes if isinstance(outcome, Accepted)]


def responses(folder: Path) -> list[Response]:
    return [Response.model_validate_json(line) for line in (folder / "responses.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("reference")
    out, _ = run("generate", *SIM, "profile@simulator=plausible", cwd=home)
    return home / run_folder(out)


def test_an_export_has_the_reference_forms(generated: Path) -> None:
    exported = json.loads((generated / "reference.json").read_text())
    kept = items(generated)
    assert len(exported["items"]) == len(kept)
    assert {frozenset(one) for one in exported["drafts"]} == {frozenset({"metadata", "prompt"})}
    for session, outcome in zip(exported["sessions"], kept, strict=False):
        *revised, last = session["revised_prompts"]
        assert [one["issue"]["issue"] for one in revised] == [
            one.review.issue for one in outcome.rounds if one.revision is not None
        ]
        assert last["issue"]["issue"] == "none"
        assert last["prompt_revision"]["proposed_fix"] == outcome.item.answer
    assert all(set(one["prompt"]) == {"scene", "preference", "question", "choices"} for one in exported["items"])


def test_an_export_read_again_gives_the_same_items(generated: Path) -> None:
    home = generated.parents[2]
    source = generated / "reference.json"
    out, _ = run("import", f"items={source}", f"data.root={PHOTOS}", QUIET[1], cwd=home)
    imported = home / run_folder(out)
    assert {one.item.id for one in items(imported)} == {one.item.id for one in items(generated)}
    out, _ = run("evaluate", f"dataset={imported}", *ASK, cwd=home)
    assert all(response.correct for response in responses(home / run_folder(out)))


@pytest.mark.parametrize("form", ["sessions", "items", "drafts"])
def test_every_form_of_the_reference_is_read(generated: Path, tmp_path: Path, form: str) -> None:
    value = json.loads((generated / "reference.json").read_text())[form]
    (tmp_path / "given.json").write_text(json.dumps(value))
    out, _ = run("import", "items=given.json", f"data.root={PHOTOS}", QUIET[1], cwd=tmp_path)
    lines = (tmp_path / run_folder(out) / "items.jsonl").read_text().splitlines()
    imported = [OUTCOME.validate_json(line) for line in lines]
    kept = [OUTCOME.validate_json(line) for line in (generated / "items.jsonl").read_text().splitlines()]
    if form == "drafts":
        assert len(imported) == len(kept)
        assert all(isinstance(one, Accepted) and one.item.answer is None for one in imported)
        said = complaint("evaluate", f"dataset={tmp_path / run_folder(out)}", *ASK, cwd=tmp_path)
        assert "truth" in said
        return
    kept = [one for one in kept if form == "sessions" or isinstance(one, Accepted)]
    assert [one.outcome for one in imported] == [one.outcome for one in kept]
    assert [one.item.id for one in imported] == [one.item.id for one in kept]  # type: ignore[union-attr]
    if form == "sessions":
        assert any(one.rounds[0].revision is not None for one in kept)
        assert [one.rounds for one in imported] == [one.rounds for one in kept]
        assert [one.order for one in imported] == [one.order for one in kept]  # type: ignore[union-attr]


def test_ground_truth_from_a_file_decides_what_is_asked_and_right(generated: Path) -> None:
    home, kept = generated.parents[2], items(generated)
    truth = {one.item.id: one.item.answer for one in kept[:5]}
    wrong = next(letter for letter in "abcd" if letter != kept[0].item.answer)
    (home / "truth.json").write_text(json.dumps(truth | {kept[0].item.id: wrong}))
    out, _ = run("evaluate", f"dataset={generated}", "truth=truth.json", *ASK, cwd=home)
    assert [response.correct for response in responses(home / run_folder(out))] == [False, True, True, True, True]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"0000": "a"}', "1 items of the truth are not in"),
        ('{"x": "e"}', "with letters a to d"),
        ("[1]", "with letters a to d"),
        ("{", "is not JSON"),
    ],
)
def test_a_truth_that_does_not_fit_is_refused(generated: Path, tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "truth.json").write_text(content)
    assert said in complaint("evaluate", f"dataset={generated}", "truth=truth.json", *ASK, cwd=tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{}", "holds no list of items"),
        ('[{"img": "a.jpg"}]', "item 1: category"),
        ('[{"img": "a.jpg", "category": 0, "revised_prompts": []}]', "item 1: original_prompt"),
        ('[{"metadata": {"img": "a.jpg", "category": 0}}]', "item 1: prompt"),
        ("[]", "holds no list of items"),
    ],
)
def test_what_is_no_reference_dataset_is_refused(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "items.json").write_text(content)
    assert said in complaint("import", "items=items.json", f"data.root={PHOTOS}", QUIET[1], cwd=tmp_path)


def test_images_that_are_not_there_are_named(generated: Path, tmp_path: Path) -> None:
    value = json.loads((generated / "reference.json").read_text())["items"]
    (tmp_path / "items.json").write_text(json.dumps([value[0] | {"img": "elsewhere.jpg"}]))
    given = ["items=items.json", f"data.root={PHOTOS}", QUIET[1]]
    assert "elsewhere.jpg" in complaint("import", *given, cwd=tmp_path)
