"""The generation coroutine, driven by hand: next, send, assert."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpref.domain import (
    LETTERS,
    OUTCOME,
    Accepted,
    Category,
    Failed,
    ModelReply,
    ModelRequest,
    Role,
    Slot,
    Step,
    Unresolved,
)
from vpref.errors import CallFailed
from vpref.issues import ISSUES, allowed_issues, non_actionable
from vpref.pipeline import generate_item, shuffle_choices
from vpref.settings import MessageOrder, PipelineSettings

T = TypeVar("T")
SLOT = Slot(image="0" * 64, category=Category.TYPICAL_HIGH)
CHOICES = {"a": "Sort by colour", "b": "Sort by length", "c": "Sort by age", "d": "Make no changes"}
DRAFT = {"scene": "Crayons.", "preference": "I sort by length.", "question": "What now?", "choices": CHOICES}


def said(value: Any, **about: Any) -> ModelReply:
    return ModelReply(text=value if isinstance(value, str) else json.dumps(value), **about)


def review(issue: str) -> ModelReply:
    return said({"analysis": f"about {issue}", "issue": issue})


def revision(scene: str = "Longer crayons.") -> ModelReply:
    return said({"proposed_fix": "rewrite", "draft": DRAFT | {"scene": scene}})


def drive(step: Step[T], replies: Sequence[ModelReply | Exception]) -> tuple[T, list[ModelRequest]]:
    """Send the replies in turn; all of them must be asked for."""
    asked, left = [next(step)], list(replies)
    try:
        while True:
            reply = left.pop(0)
            asked.append(step.throw(reply) if isinstance(reply, Exception) else step.send(reply))
    except StopIteration as end:
        assert not left
        result: T = end.value
        return result, asked


def test_a_draft_without_issue_is_answered_at_once() -> None:
    outcome, asked = drive(
        generate_item(SLOT, PipelineSettings()), [said(DRAFT), review("none"), said({"answer": "b"})]
    )
    assert isinstance(outcome, Accepted)
    assert [request.role for request in asked] == [Role.GENERATOR, Role.REVIEWER, Role.RESPONDER]
    assert outcome.item.choices[outcome.item.answer or ""] == "Sort by length"
    assert sorted(outcome.item.choices.texts) == sorted(CHOICES.values())
    assert [call.role for call in outcome.calls] == [request.role for request in asked]


def test_an_issue_is_revised_and_reviewed_again_and_all_of_it_is_kept() -> None:
    outcome, asked = drive(
        generate_item(SLOT, PipelineSettings()),
        [said(DRAFT), review("low_image_dependency"), revision(), review("none"), said({"answer": "a"})],
    )
    assert isinstance(outcome, Accepted)
    assert [one.review.issue for one in outcome.rounds] == ["low_image_dependency", None]
    assert outcome.rounds[0].draft.scene == "Crayons."
    assert outcome.rounds[0].revision is not None
    assert outcome.rounds[0].revision.draft == outcome.rounds[1].draft
    assert outcome.item.scene == "Longer crayons."
    told = str(asked[2].messages)
    assert "about low_image_dependency" in told
    assert next(issue.fix for issue in ISSUES if issue.name == "low_image_dependency")[:30] in told


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_revisions_are_bounded_and_what_is_left_is_unresolved_yet_answered(depth: int) -> None:
    replies = [said(DRAFT)]
    for _ in range(depth):
        replies += [review("no_correct_choices"), revision()]
    replies += [review("no_correct_choices"), said({"answer": "d"})]
    outcome, _ = drive(generate_item(SLOT, PipelineSettings(max_revisions=depth)), replies)
    assert isinstance(outcome, Unresolved)
    assert len(outcome.rounds) == depth + 1
    assert outcome.rounds[-1].revision is None


def test_without_review_there_are_two_calls() -> None:
    outcome, asked = drive(generate_item(SLOT, PipelineSettings(review=False)), [said(DRAFT), said({"answer": "c"})])
    assert isinstance(outcome, Accepted)
    assert len(asked) == 2
    assert outcome.rounds == ()


MALFORMED = [
    (said("", finish="stop"), "empty"),
    (said("I cannot help with that.", finish="refusal"), "refused"),
    (said(json.dumps(DRAFT)[:40], finish="length"), "cut"),
    (said("no braces here"), "not_json"),
    (said('{"scene": '), "not_json"),
    (said(DRAFT | {"choices": {"a": "Go", "b": "Stop", "c": "Wait"}}), "wrong_shape"),
    (said(DRAFT | {"scene": 7}), "wrong_shape"),
    (said(DRAFT | {"question": "  "}), "wrong_shape"),
    (said(DRAFT | {"choices": CHOICES | {"c": " "}}), "bad_choices"),
    (said(DRAFT | {"choices": CHOICES | {"c": "sort by COLOUR."}}), "bad_choices"),
]


@pytest.mark.parametrize(("bad", "kind"), MALFORMED)
def test_a_malformed_reply_is_asked_again_with_what_was_wrong(bad: ModelReply, kind: str) -> None:
    outcome, asked = drive(
        generate_item(SLOT, PipelineSettings()), [bad, said(DRAFT), review("none"), said({"answer": "b"})]
    )
    assert isinstance(outcome, Accepted)
    assert [(request.role, request.attempt) for request in asked[:2]] == [(Role.GENERATOR, 0), (Role.GENERATOR, 1)]
    assert outcome.calls[0].problem is not None
    assert outcome.calls[0].problem.startswith(kind)
    assert outcome.calls[0].problem.split(": ", 1)[1] in str(asked[1].messages)


@pytest.mark.parametrize(("bad", "kind"), MALFORMED)
def test_re_asking_is_bounded(bad: ModelReply, kind: str) -> None:
    outcome, asked = drive(generate_item(SLOT, PipelineSettings(attempts=2)), [bad, bad])
    assert isinstance(outcome, Failed)
    assert outcome.kind == kind
    assert len(asked) == 2
    assert len(outcome.calls) == 2


def test_an_issue_outside_the_categorys_list_is_malformed() -> None:
    low = SLOT.model_copy(update={"category": Category.TYPICAL_LOW})
    outcome, asked = drive(
        generate_item(low, PipelineSettings()),
        [said(DRAFT), review("low_image_dependency"), review("none"), said({"answer": "b"})],
    )
    assert isinstance(outcome, Accepted)
    assert asked[2].attempt == 1
    assert asked[1].form is not None
    assert "low_image_dependency" not in asked[1].form.schema["properties"]["issue"]["enum"]
    assert {issue.name for issue in allowed_issues(SLOT.category)} - {
        issue.name for issue in allowed_issues(low.category)
    } == {"low_image_dependency"}


def test_a_failed_call_fails_the_item_and_keeps_what_there_was() -> None:
    outcome, _ = drive(
        generate_item(SLOT, PipelineSettings()),
        [said(DRAFT), review("no_correct_choices"), CallFailed("timeout", "late")],
    )
    assert isinstance(outcome, Failed)
    assert outcome.kind == "timeout"
    assert outcome.draft is not None
    assert len(outcome.rounds) == 1
    assert len(outcome.calls) == 2


def test_code_overrules_a_reviewer_that_lets_a_non_action_pass() -> None:
    noun = DRAFT | {"choices": CHOICES | {"a": "The longest crayon"}}
    outcome, _ = drive(
        generate_item(SLOT, PipelineSettings()),
        [said(noun), review("none"), revision(), review("none"), said({"answer": "b"})],
    )
    assert isinstance(outcome, Accepted)
    assert outcome.rounds[0].review.by == "code"
    assert outcome.rounds[0].review.issue == "non_actionable"


@pytest.mark.parametrize(
    ("text", "fine"),
    [("Put it down", True), ("Make no changes", True), ("“Leave” it", True), ("A cup", False), ("the cup", False),
     ("If it rains, go in", False), ("123", False), ("Tidy up", True), ("Remettre le livre", True)],
)  # fmt: skip
def test_what_code_can_tell_of_actions(text: str, fine: bool) -> None:
    draft = replies_draft(CHOICES | {"d": text})
    assert (non_actionable(draft) is None) == fine


def replies_draft(choices: dict[str, str]) -> Any:
    from vpref.domain import Choices

    return Choices(**choices)


def test_near_misses_are_read() -> None:
    fenced = "Here you are:\n```json\n" + json.dumps(DRAFT | {"mood": "good"}) + "\n```"
    labelled = DRAFT | {"choices": {letter.upper(): f"{letter}) {text}" for letter, text in CHOICES.items()}}
    for draft in (said(fenced), said(labelled)):
        outcome, _ = drive(
            generate_item(SLOT, PipelineSettings()),
            [draft, said({"analysis": "", "issue": "None"}), said({"answer": "(B)"})],
        )
        assert isinstance(outcome, Accepted)
        assert set(outcome.item.choices.texts) == set(CHOICES.values())


def test_message_order_is_config() -> None:
    first, *_ = (next(generate_item(SLOT, PipelineSettings(message_order=order))) for order in MessageOrder)
    last = next(generate_item(SLOT, PipelineSettings(message_order=MessageOrder.image_first)))
    assert isinstance(first.messages[0].parts[0], str)
    assert "Preference type: typical" in str(first.messages[0].parts)
    assert "Preference type: typical" in str(last.messages[1].parts[1:])
    assert not isinstance(last.messages[1].parts[0], str)


def test_the_shuffle_is_the_slots_and_moves_the_answer() -> None:
    from vpref.domain import Choices

    choices = Choices(**CHOICES)
    seen = set()
    for sample in range(40):
        slot = SLOT.model_copy(update={"sample": sample})
        order, shown, moved = shuffle_choices(Slot(**slot.model_dump()), choices, "b")
        assert shown[moved] == choices["b"]
        assert shown.texts == tuple(choices[letter] for letter in order)
        assert (order, shown, moved) == shuffle_choices(Slot(**slot.model_dump()), choices, "b")
        seen.add(moved)
    assert seen == set(LETTERS)


ISSUE = st.sampled_from(["none", "non_actionable", "odd"])
FIELD = st.sampled_from(["choices", "draft", "issue", "answer", "x"])
TREE = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.dictionaries(FIELD, inner, max_size=3),
    max_leaves=8,
)
JUNK = st.one_of(
    st.text(max_size=40),
    st.just(json.dumps(DRAFT)),
    ISSUE.map(lambda issue: json.dumps({"analysis": "x", "issue": issue})),
    st.just(json.dumps({"proposed_fix": "f", "draft": DRAFT})),
    st.sampled_from("abcde").map(lambda letter: json.dumps({"answer": letter})),
    TREE.map(json.dumps),
)
REPLIES = st.lists(
    st.builds(ModelReply, text=JUNK, finish=st.sampled_from(["stop", "stop", "stop", "length", "refusal"]))
    | st.builds(CallFailed, st.just("timeout"), st.just("late")),
    min_size=30,
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(replies=REPLIES, depth=st.integers(0, 3), review=st.booleans(), category=st.sampled_from(Category))
def test_any_replies_end_within_budget_and_replay_to_the_same(
    replies: list[ModelReply | CallFailed], depth: int, review: bool, category: Category
) -> None:
    pipeline = PipelineSettings(max_revisions=depth, review=review, attempts=2)
    slot = SLOT.model_copy(update={"category": category})
    ends = []
    for _ in range(2):
        step, count = generate_item(slot, pipeline), 0
        request = next(step)
        try:
            while True:
                reply = replies[count]
                count += 1
                request = step.throw(reply) if isinstance(reply, CallFailed) else step.send(reply)
                assert isinstance(request, ModelRequest)
        except StopIteration as end:
            ends.append(end.value)
        assert count <= 2 * (2 + (2 * depth + 1 if review else 0))
    assert ends[0] == ends[1]
    assert OUTCOME.validate_json(ends[0].model_dump_json()) == ends[0]
