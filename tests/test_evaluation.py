"""The evaluation coroutine, driven by hand, and the extractor as a command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.commands import QUIET, complaint, run, run_folder
from tests.surveys import generic_items
from tests.test_pipeline import drive as by_hand
from tests.test_pipeline import said
from vpref.domain import (
    LETTERS,
    Answer,
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
from vpref.errors import CallFailed, ConfigError
from vpref.evaluation import Exhibit, evaluate_item
from vpref.runs.lending import lenders
from vpref.scoring import score
from vpref.settings import AblationSettings, AnswerForm, BoxesShown, ImageShown, PreferenceShown, SceneShown

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


# --- how an answer is given, and how often ------------------------------------------------------------------

BOUND = AblationSettings(answer=AnswerForm.constrained)


def drive_asked(
    ablation: AblationSettings, *replies: ModelReply | Exception, others: Sequence[Item] = (), extractor: bool = False
) -> tuple[Response, list[ModelRequest]]:
    return by_hand(evaluate_item(ITEM, ablation=ablation, others=others, extractor=extractor), replies)


def words(request: ModelRequest) -> str:
    return "\n".join(part for message in request.messages for part in message.parts if isinstance(part, str))


def test_rotations_move_the_choices_and_letters_are_read_back_as_the_items_own() -> None:
    rotated = AblationSettings(permutations=4)
    response, asked = drive_asked(rotated, said("b"), said("a"), said("d"), said("c"))
    assert "a) Sort by colour\nb) Sort by length" in words(asked[0])
    assert "a) Sort by length\nb) Sort by age\nc) Make no changes\nd) Sort by colour" in words(asked[1])
    assert [one.letter for one in response.asks] == ["b"] * 4
    assert [one.shown for one in response.asks] == ["b", "a", "d", "c"]
    assert (response.verdict, response.letter, response.correct) == ("matched", "b", True)
    assert response.text == ""
    assert len(response.calls) == 4


def test_an_item_is_right_when_all_its_rotations_are() -> None:
    rotated = AblationSettings(permutations=4)
    response, _ = drive_asked(rotated, said("b"), said("b"), said("d"), said("c"))
    assert (response.verdict, response.letter, score(response)) == ("split", None, False)
    response, _ = drive_asked(rotated, *[said("None of these.")] * 4)
    assert (response.verdict, score(response)) == ("unmatched", False)
    response, asked = drive_asked(rotated, said("b"), CallFailed("timeout", "late"))
    assert (response.verdict, response.reason, score(response)) == ("failed", "timeout: late", None)
    assert len(asked) == 2, "what is not scored is not asked further"


@pytest.mark.parametrize(
    ("said_letters", "letter"), [("bbc", "b"), ("bcd", None), ("cbc", "c"), ("b??", None), ("bb?", "b")]
)
def test_of_several_samples_the_letter_is_what_most_say(said_letters: str, letter: str | None) -> None:
    replies = [said(one) if one != "?" else said("Hard to say.") for one in said_letters]
    response, asked = drive_asked(AblationSettings(samples=3), *replies)
    assert (response.letter, response.verdict) == (letter, "matched" if letter else "split")
    assert [request.sample for request in asked] == [0, 1, 2]
    assert len({request.messages for request in asked}) == 1


@given(rotation=st.integers(0, 3), place=st.integers(0, 3))
def test_rotating_is_undone_by_reading_back(rotation: int, place: int) -> None:
    show = Exhibit.of(ITEM, AblationSettings(permutations=4)).rotated(rotation)
    own = show.own(LETTERS[place])
    assert show.shown.choices[LETTERS[place]] == ITEM.choices[own]
    assert Answer(rotation=rotation, verdict="matched", letter=own).shown == LETTERS[place]


def test_a_bound_answer_is_a_letter_by_form_or_option_and_its_probabilities_are_kept() -> None:
    told = {"a": 0.1, "b": 0.7, "c": 0.2, "d": 0.0}
    for text in ('{"answer": "b"}', "b", " B\n"):
        response, (asked,) = drive_asked(BOUND, ModelReply(text=text, probabilities=told))
        assert asked.options == ("a", "b", "c", "d")
        assert asked.form is not None
        assert (response.letter, response.by, response.probabilities) == ("b", "bound", told)
    rotated = AblationSettings(answer=AnswerForm.constrained, permutations=4)
    response, _ = drive_asked(rotated, *[ModelReply(text="a", probabilities=told)] * 4)
    assert response.asks[1].probabilities == {"b": 0.1, "c": 0.7, "d": 0.2, "a": 0.0}, "of the item's own letters"
    assert response.verdict == "split"


def test_a_bound_answer_that_breaks_the_form_is_asked_again_and_then_names_no_choice() -> None:
    response, asked = drive_asked(BOUND, said("Hm."), ModelReply(text='{"answer": "b', finish="length"), said("c"))
    assert (response.letter, [request.attempt for request in asked]) == ("c", [0, 1, 2])
    response, asked = drive_asked(BOUND, *[ModelReply(text='{"answer": "b"   ', finish="length")] * 3)
    assert (response.verdict, len(asked)) == ("unmatched", 3), "never read by luck"
    response, asked = drive_asked(BOUND, ModelReply(text="I would rather not.", finish="refusal"))
    assert (response.verdict, len(asked)) == ("refused", 1)
    response, _ = drive_asked(BOUND, CallFailed("http_500", "down"))
    assert (response.verdict, response.reason) == ("failed", "http_500: down")


def test_a_preference_stated_earlier_is_told_first_and_once() -> None:
    earlier = AblationSettings(preference=PreferenceShown.earlier, distance=2)
    response, (asked,) = drive_asked(earlier, said("b"), others=[OTHER, OTHER])
    assert [message.speaker for message in asked.messages] == ["user", "assistant"] * 3 + ["user"]
    turns = ["".join(part for part in message.parts if isinstance(part, str)) for message in asked.messages]
    assert ITEM.preference in turns[0]
    assert words(asked).count(ITEM.preference) == 1
    assert OTHER.preference not in words(asked), "two preferences would be a riddle"
    assert turns[3] == turns[5] == "c", "what was answered there is right there"
    assert Picture(ITEM.shown) in asked.messages[-1].parts
    assert response.correct
    assert response.ablation is not None
    assert response.ablation.between == (OTHER.id, OTHER.id)
    with pytest.raises(ValueError, match="1 other items to borrow from, not 2"):
        next(evaluate_item(ITEM, ablation=earlier, others=[OTHER]))


def test_too_few_lenders_are_found_before_anything_is_asked() -> None:
    items = generic_items(plain=2, boxes=1)
    with pytest.raises(ConfigError, match="has 0 boxes items of other images to borrow from"):
        lenders(items, 1)
    assert [one[0].slot.image for one in lenders(items[:8], 1)] == [items[4].slot.image] * 4 + [items[0].slot.image] * 4


def test_mistakes_in_an_ablation_are_said(tmp_path: Path) -> None:
    given = ["evaluate", "dataset=nowhere", "model@evaluated=simulator", "model@extractor=null", *QUIET]
    assert "ablation.preference=earlier" in complaint(*given, "ablation.distance=2", cwd=tmp_path)
    assert "choose 1, or 4" in complaint(*given, "ablation.permutations=3", cwd=tmp_path)
    assert "at least 1" in complaint(*given, "ablation.samples=0", cwd=tmp_path)
    run("generate", "model@pipeline.model=simulator", *QUIET, cwd=tmp_path)
    (items,) = tmp_path.glob("outputs/generate/*")
    given[1] = f"dataset={items}"
    far = ["ablation=earlier_preference", "ablation.distance=100"]
    assert "needs 100; take a larger dataset" in complaint(*given, *far, cwd=tmp_path)


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_bound_rotated_answers_of_a_biased_model(tmp_path: Path, api: str) -> None:
    run("generate", "model@pipeline.model=simulator", *QUIET, cwd=tmp_path)
    (items,) = tmp_path.glob("outputs/generate/*")
    asked = ["evaluate", f"dataset={items}", "model@evaluated=simulator", "model@extractor=null", *QUIET]
    asked += [f"evaluated.api={api}", "evaluated.logprobs=true", "ablation=constrained"]
    asked += ["profile@simulator=flawless", "simulator.letter_bias=0.5"]
    run(*asked, cwd=tmp_path)
    out, _ = run(*asked, "ablation.permutations=4", cwd=tmp_path)
    folder = tmp_path / run_folder(out)
    calls = json.loads((folder / "manifest.json").read_text())["summary"]["calls"]
    assert (calls["sent"], calls["replayed"]) == (72, 24), "the first rotation is the plain question"
    responses = [Response.model_validate_json(line) for line in (folder / "responses.jsonl").read_text().splitlines()]
    for answer in (answer for response in responses for answer in response.asks):
        assert answer.probabilities is not None
        assert max(answer.probabilities, key=answer.probabilities.__getitem__) == answer.letter
        assert 0.9 < sum(answer.probabilities.values()) <= 1.0001
    (row,) = json.loads((folder / "tables/steadiness.json").read_text())["records"]
    assert row["letters"]["a"] > 45, "half of the answers are a, and a quarter of the others"
    assert row["items_right"] == pytest.approx(100 * sum(r.correct for r in responses) / 24, abs=0.06)
    assert row["answers_right"] > row["items_right"]
    assert "Steadiness" in out


def test_samples_differ_at_a_temperature_and_an_earlier_preference_is_remembered(tmp_path: Path) -> None:
    run("generate", "model@pipeline.model=simulator", *QUIET, cwd=tmp_path)
    (items,) = tmp_path.glob("outputs/generate/*")
    asked = ["evaluate", f"dataset={items}", "model@evaluated=simulator", "model@extractor=null", *QUIET]
    steady = {}
    for temperature in ("0", "1"):
        more = ["ablation=sampled", f"+evaluated.params.temperature={temperature}", "simulator.accuracy=[.5,.5,.5,.5]"]
        out, _ = run(*asked, *more, cwd=tmp_path)
        (row,) = json.loads((tmp_path / run_folder(out) / "tables/steadiness.json").read_text())["records"]
        steady[temperature] = row["steady"]
    assert steady["0"] == 100.0
    assert steady["1"] < 60
    out, _ = run(*asked, "ablation=earlier_preference", "profile@simulator=flawless", cwd=tmp_path)
    summary = json.loads((tmp_path / run_folder(out) / "manifest.json").read_text())["summary"]
    assert summary["accuracy"]["plain"]["overall"]["accuracy"] == 100.0
