"""The evaluation coroutine, driven by hand, and the extractor as a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands import QUIET, complaint, run, run_folder
from tests.test_pipeline import drive as by_hand
from tests.test_pipeline import said
from vpref.domain import (
    Category,
    Choices,
    Draft,
    Item,
    ModelReply,
    ModelRequest,
    Picture,
    Response,
    Role,
    Slot,
    make_item,
)
from vpref.errors import CallFailed
from vpref.evaluation import evaluate_item
from vpref.settings import AblationSettings, BoxesShown, ImageShown, PreferenceShown, SceneShown

CHOICES = Choices(a="Sort by colour", b="Sort by length", c="Sort by age", d="Make no changes")
DRAFT = Draft(scene="Crayons.", preference="I sort by length.", question="What now?", choices=CHOICES)
ITEM = make_item(Slot(image="0" * 64, category=Category.TYPICAL_LOW), DRAFT, shown="1" * 64, answer="b")
VAGUE = ModelReply(text="The long ones should come after the short ones.")


def drive(
    *replies: ModelReply | Exception, item: Item = ITEM, extractor: bool = True
) -> tuple[Response, list[ModelRequest]]:
    return by_hand(evaluate_item(item, extractor=extractor), replies)


def test_an_output_that_direct_matching_reads_costs_one_call() -> None:
    response, (asked,) = drive(said("Answer: B"))
    assert (response.verdict, response.letter, response.correct) == ("matched", "b", True)
    assert Picture("1" * 64) in asked.messages[0].parts, "the image as shown"
    assert asked.form is None


def test_other_outputs_go_to_the_extractor_with_question_choices_and_output() -> None:
    response, asked = drive(VAGUE, said({"letter": "B"}))
    assert (response.verdict, response.letter, response.by) == ("matched", "b", "model")
    assert [call.role for call in response.calls] == [Role.EVALUATED, Role.EXTRACTOR]
    told = str(asked[1].messages)
    assert all(text in told for text in (ITEM.question, CHOICES.c, VAGUE.text))
    assert ITEM.preference not in told, "it must not be tempted to answer"
    response, _ = drive(VAGUE, said({"letter": "none"}))
    assert (response.verdict, response.letter, response.correct) == ("unmatched", None, False)


def test_without_an_extractor_they_stay_unmatched() -> None:
    response, _ = drive(VAGUE, extractor=False)
    assert response.verdict == "unmatched"


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_output_means_no_choice_and_needs_no_extractor(text: str) -> None:
    response, asked = drive(ModelReply(text=text, finish="length"))
    assert response.verdict == "unmatched"
    assert len(asked) == 1


def test_a_refusal_is_an_answer_and_a_failure_is_none() -> None:
    response, _ = drive(ModelReply(text="I cannot say; maybe b.", finish="refusal"))
    assert (response.verdict, response.letter) == ("refused", None)
    response, _ = drive(CallFailed("timeout", "late"))
    assert (response.verdict, response.reason) == ("failed", "timeout: late")
    response, _ = drive(VAGUE, CallFailed("http_500", "down"))
    assert response.verdict == "failed", "what the output means is not known, so it is not scored"
    response, asked = drive(VAGUE, said("hm"), said({"letter": "e"}), said(""))
    assert response.verdict == "failed"
    assert [request.attempt for request in asked[1:]] == [0, 1, 2]


def test_the_humans_letter_comes_before_the_responders() -> None:
    response, _ = drive(said("c"), item=ITEM.model_copy(update={"truth": "c"}))
    assert (response.expected, response.correct) == ("c", True)
    with pytest.raises(ValueError, match="neither"):
        next(evaluate_item(ITEM.model_copy(update={"answer": None})))


def test_the_extractor_is_a_model_of_its_own_and_tabled(tmp_path: Path) -> None:
    sim = ["model@pipeline.model=simulator", *QUIET]
    out, _ = run("generate", *sim, cwd=tmp_path)
    asked = ["evaluate", f"dataset={run_folder(out)}", "model@evaluated=simulator", "simulator.unmatched=0.3", *QUIET]
    assert "model@extractor=null" in complaint(*asked, cwd=tmp_path)
    out, _ = run(*asked, "model@extractor=simulator", "extractor.name=reader", cwd=tmp_path)
    assert "How letters were found" in out
    folder = tmp_path / run_folder(out)
    responses = [Response.model_validate_json(line) for line in (folder / "responses.jsonl").read_text().splitlines()]
    read = [response for response in responses if response.by == "model" or response.verdict == "unmatched"]
    assert read
    assert all([call.model for call in response.calls] == ["simulator", "reader"] for response in read)
    (row,) = json.loads((folder / "tables/extraction.json").read_text())["records"]
    assert row["n"] == len(responses)
    assert sum(row["by"].values()) + row["unmatched"] + row["refused"] + row["failed"] == len(responses)
    out, _ = run(*asked, "model@extractor=null", cwd=tmp_path)
    calls = json.loads((tmp_path / run_folder(out) / "manifest.json").read_text())["summary"]["calls"]
    assert (calls["sent"], calls["replayed"]) == (0, 24)


OTHER = make_item(
    Slot(image="2" * 64, category=Category.TYPICAL_LOW),
    DRAFT.model_copy(update={"preference": "I sort by age."}),
    shown="3" * 64,
    answer="c",
)


@pytest.mark.parametrize(
    ("left_out", "picture", "told", "not_told"),
    [
        ({"image": ImageShown.none}, None, "I sort by length.", ""),
        ({"image": ImageShown.other_item}, "3" * 64, "I sort by length.", "by age."),
        ({"preference": PreferenceShown.none}, "1" * 64, "Crayons.", "Preference:"),
        ({"preference": PreferenceShown.other_item}, "1" * 64, "I sort by age.", "I sort by length."),
        ({"scene": SceneShown.hidden}, "1" * 64, "I sort by length.", "Scene:"),
        ({"boxes": BoxesShown.hidden}, "0" * 64, "Crayons.", ""),
        ({"image": ImageShown.none, "scene": SceneShown.hidden}, None, "I sort by length.", "Scene:"),
    ],
)
def test_what_is_left_out_is_left_out_and_recorded(
    left_out: dict[str, Any], picture: str | None, told: str, not_told: str
) -> None:
    ablation = AblationSettings(**left_out)
    step = evaluate_item(ITEM, ablation=ablation, others=[OTHER])
    parts = next(step).messages[0].parts
    assert [part.digest for part in parts if isinstance(part, Picture)] == ([picture] if picture else [])
    text = "".join(part for part in parts if isinstance(part, str))
    assert told in text
    assert not not_told or not_told not in text
    with pytest.raises(StopIteration) as end:
        step.send(said("B"))
    response: Response = end.value.value
    assert response.correct, "what counts as right is the item's own answer"
    assert response.ablation is not None
    assert (response.ablation.other is not None) == ablation.lends
    assert ablation.label


def test_image_and_preference_dependence_are_measured(tmp_path: Path) -> None:
    out, _ = run("generate", "model@pipeline.model=simulator", "samples=3", *QUIET, cwd=tmp_path)
    asked = ["evaluate", f"dataset={run_folder(out)}", "model@evaluated=simulator", "model@extractor=null", *QUIET]
    asked += ["profile@simulator=flawless"]
    run(*asked, "-m", "ablation=nothing,no_image,no_preference,other_image", cwd=tmp_path)
    out, _ = run("report", "outputs/evaluate", cwd=tmp_path)
    assert "What answers depend on" in out
    (path,) = tmp_path.glob("outputs/report/*/tables/dependence.json")
    rows = {row["without"]: row for row in json.loads(path.read_text())["records"]}
    assert set(rows) == {"no image", "no preference", "another item's image"}
    image = rows["no image"]
    assert image["low_dependence"]["difference"] == 0.0
    assert image["high_dependence"]["difference"] > 0.4
    assert image["high_dependence"]["low"] > 0
    assert rows["no preference"]["overall"]["difference"] > 0.4
    assert rows["another item's image"]["overall"]["n"] == 72
