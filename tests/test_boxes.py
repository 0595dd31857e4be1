"""The boxes variant's rules, driven by hand: tags, names, letters."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.test_pipeline import drive, review, said
from vpref import prompts
from vpref.detection import letter, select
from vpref.domain import OUTCOME, Accepted, Box, Category, Choices, Detection, Draft, Failed, ModelReply, Slot, Variant
from vpref.errors import CallFailed, MalformedReply
from vpref.naming import Naming, name_boxes, renamed
from vpref.pipeline import generate_item
from vpref.replies import read_naming
from vpref.settings import DetectionSettings, Duplicates, PipelineSettings
from vpref.tags import check_kept, check_tags, tagged_object, with_letters

SLOT = Slot(image="0" * 64, variant=Variant.BOXES, category=Category.TYPICAL_LOW)
TOOLBOX = ("leftmost cup", "spoon")
BOXES = tuple(
    Box(letter=letter, name=name, x0=10 * n, y0=0, x1=10 * n + 8, y1=8)
    for n, (letter, name) in enumerate(zip("AB", TOOLBOX, strict=True))
)
CHOICES = {
    "a": "Wash the <object>leftmost cup</object>",
    "b": "Move the <object>spoon</object> away",
    "c": "Dry the <object>leftmost cup</object>",
    "d": "Make no changes",
}
DRAFT: dict[str, Any] = {"scene": "A table.", "preference": "I like it dry.", "question": "What?", "choices": CHOICES}


def draft(**choices: str) -> Draft:
    return Draft(**DRAFT | {"choices": Choices(**CHOICES | choices)})


def test_an_item_names_letters_and_shows_the_drawn_image() -> None:
    step = generate_item(SLOT, PipelineSettings(), boxes=BOXES, drawn="1" * 64)
    outcome, asked = drive(step, [said(DRAFT), review("none"), said({"answer": "c"})])
    assert isinstance(outcome, Accepted)
    assert outcome.item.shown == "1" * 64
    assert outcome.item.boxes == BOXES
    assert outcome.item.choices[outcome.item.answer or ""] == "Dry the object in bounding box A"
    assert "Move the object in bounding box B away" in outcome.item.choices.texts
    assert outcome.rounds[0].draft.choices.a == CHOICES["a"], "the history keeps the tags"
    assert all("1" * 64 not in str(request.messages) for request in asked), "the pipeline sees the original image"
    assert all("- leftmost cup\n- spoon" in str(request.messages).replace("\\n", "\n") for request in asked)
    assert OUTCOME.validate_json(outcome.model_dump_json()) == outcome


@pytest.mark.parametrize(
    "change",
    [
        {"choices": CHOICES | {"a": "Wash the leftmost cup"}},
        {"choices": CHOICES | {"a": "Wash the <object>cup</object>"}},
        {"choices": CHOICES | {"a": "Wash the <object>Leftmost cup</object>"}},
        {"choices": CHOICES | {"a": "Wash <object>spoon</object> and <object>leftmost cup</object>"}},
        {"choices": CHOICES | {"a": "Wash the <object>leftmost cup"}},
        {"choices": CHOICES | {"a": "Wash the <object><object>spoon</object></object>"}},
        {"choices": CHOICES | {"d": "Wait for a while"}},
        {"scene": "A <object>spoon</object>."},
        {"question": "What of the <object>?"},
    ],
)
def test_a_draft_that_breaks_the_tags_is_asked_again(change: dict[str, Any]) -> None:
    step = generate_item(SLOT, PipelineSettings(attempts=2), boxes=BOXES)
    outcome, asked = drive(step, [said(DRAFT | change), said(DRAFT | change)])
    assert isinstance(outcome, Failed)
    assert outcome.kind == "bad_tags"
    assert asked[1].attempt == 1


def test_a_revision_keeps_every_tagged_object() -> None:
    moved = {"a": CHOICES["b"], "b": CHOICES["a"]}
    check_kept(draft(), draft(**moved))
    with pytest.raises(MalformedReply, match="must stay as they are"):
        check_kept(draft(), draft(a="Wash the <object>spoon</object>"))
    lost = DRAFT | {"choices": CHOICES | {"a": "Lift the <object>spoon</object>"}}
    step = generate_item(SLOT, PipelineSettings(), boxes=BOXES)
    mended = {"proposed_fix": "f", "draft": DRAFT}
    replies = [said(DRAFT), review("multiple_correct_choices"), said(mended | {"draft": lost}), said(mended)]
    outcome, _ = drive(step, [*replies, review("none"), said({"answer": "c"})])
    assert isinstance(outcome, Accepted)
    assert [call.problem is not None for call in outcome.calls] == [False, False, True, False, False, False]


def test_boxes_prompts_name_the_toolbox_and_the_tags() -> None:
    from vpref.domain import Picture, Review
    from vpref.settings import MessageOrder

    scene = prompts.Scene(Picture("0" * 64), Category.ATYPICAL_LOW, MessageOrder.instructions_first, TOOLBOX)
    sent = str(prompts.revisor(scene, draft(), Review(analysis="", issue="non_actionable")))
    assert "Keep every tagged object as it stands" in sent
    assert "Preference type: atypical" in sent
    for category in (0, 2):
        example = next(one for one in prompts.fill(f"boxes_{category}", objects="").splitlines() if one.startswith("{"))
        names = {name for text in json.loads(example)["choices"].values() if (name := tagged_object(text))}
        check_tags(Draft.model_validate_json(example), sorted(names))


def named(*replies: ModelReply | Exception) -> Naming:
    result, asked = drive(name_boxes("1" * 64, BOXES, attempts=2), replies)
    assert asked[0].form is not None
    assert asked[0].form.schema["properties"]["names"]["required"] == ["A", "B"]
    return result


def naming(**names: str) -> ModelReply:
    return said({"analysis": "seen", "names": {"A": "cup", "B": "spoon"} | names})


def test_names_are_taken_as_given_and_checked() -> None:
    assert named(naming(A="left most red cup", B="")).names == {"A": "left most red cup", "B": ""}
    incomplete = said({"analysis": "", "names": {"A": "cup"}})
    for bad in (naming(A="the cup on the left"), naming(A="Spoon"), naming(A="<object>"), incomplete):
        assert named(bad, naming()).names == {"A": "cup", "B": "spoon"}
        failed = named(bad, bad)
        assert failed.names is None
        assert failed.outcome == "failed"
        assert len(failed.calls) == 2
    assert named(CallFailed("timeout", "late")).kind == "timeout"


WORDS = st.sampled_from(["cup", "spoon", "leftmost cup", "a", "object", "box"])
TEXTS = st.one_of(
    st.builds("Move the <object>{}</object> away".format, WORDS),
    st.just("Make no changes"),
    st.text(st.sampled_from("ab <>/objectcup"), max_size=40),
    st.builds("Lift {} and <object>{}</object>".format, WORDS, WORDS),
)


@settings(max_examples=300, deadline=None)
@given(
    toolbox=st.lists(WORDS, min_size=2, max_size=5, unique=True),
    texts=st.lists(TEXTS, min_size=4, max_size=4, unique_by=lambda text: text.casefold().strip()),
    answer=st.sampled_from("abcd"),
)
def test_whatever_a_generator_says_no_tag_and_no_unknown_letter_comes_out(
    toolbox: list[str], texts: list[str], answer: str
) -> None:
    boxes = tuple(Box(letter="ABCDE"[n], name=name, x0=0, y0=0, x1=9, y1=9) for n, name in enumerate(toolbox))
    step = generate_item(SLOT, PipelineSettings(review=False, attempts=1), boxes=boxes)
    next(step)
    reply = said(DRAFT | {"choices": dict(zip("abcd", texts, strict=True))})
    try:
        step.send(reply)
        step.send(said({"answer": answer}))
    except StopIteration as end:
        outcome = end.value
    if isinstance(outcome, Failed):
        return
    assert isinstance(outcome, Accepted)
    shown = {box.letter for box in boxes}
    for text in outcome.item.choices.texts:
        assert "<object" not in text.lower()
        assert "</object" not in text.lower()
        assert set(re.findall(r"bounding box ([A-Z])", text)) <= shown


def test_letters_replace_names_word_for_word() -> None:
    lettered = with_letters(draft(), {"leftmost cup": "A", "spoon": "B"})
    assert lettered.choices.a == "Wash the object in bounding box A"
    assert lettered.choices.d == "Make no changes"


def found_at(name: str, x: float, y: float, width: float, height: float, confidence: float | None) -> Detection:
    return Detection(name=name, x0=x, y0=y, x1=x + width, y1=y + height, confidence=confidence)


FOUND = st.builds(
    found_at,
    st.sampled_from(["cup", "Cup", "spoon", "person", "plate", "fork", "lamp", "vase"]),
    st.floats(-50, 680),
    st.floats(-50, 500),
    st.floats(0, 200),
    st.floats(0, 200),
    st.none() | st.floats(0.3, 1),
)
NAMES = st.one_of(
    st.sampled_from(["", "cup", "Cup ", "one two three four five", "<b>"]), st.text("abc dé\n", max_size=9)
)


@settings(max_examples=600, deadline=None)
@given(
    found=st.lists(FOUND, max_size=8),
    names=st.fixed_dictionaries(dict.fromkeys("ABCD", NAMES), optional={"E": NAMES, "F": NAMES}),
    duplicates=st.sampled_from(Duplicates),
)
def test_any_boxes_and_any_names_leave_letters_without_gaps_and_names_that_differ(
    found: list[Detection], names: dict[str, str], duplicates: Duplicates
) -> None:
    selection = select(found, (640, 480), DetectionSettings(duplicates=duplicates))
    candidates = letter(selection.kept)
    assert [box.letter for box in candidates] == list("ABCDE"[: len(candidates)])
    if selection.discarded:
        return
    try:
        _, called = read_naming(said({"analysis": "", "names": names}), tuple(box.letter for box in candidates))
    except MalformedReply:
        return
    kept, unnamed = renamed(candidates, called)
    boxes = letter(kept)
    assert len(kept) + len(unnamed) == len(candidates)
    assert [box.letter for box in boxes] == list("ABCDE"[: len(boxes)])
    assert len({box.name.casefold() for box in boxes}) == len(boxes)
    places = {(box.x0, box.y0, box.x1, box.y1) for box in candidates}
    assert all((box.x0, box.y0, box.x1, box.y1) in places for box in boxes)
    assert all(0 <= box.x0 < box.x1 <= 640 and 0 <= box.y0 < box.y1 <= 480 for box in boxes)
