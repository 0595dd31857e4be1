"""Every prompt as it is sent, word for word: a change of wording changes what models say, so it must be seen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from vpref import prompts
from vpref.domain import Category, Choices, Draft, Message, Picture, Review
from vpref.replies import answer_form, draft_form, read_draft
from vpref.settings import MessageOrder

PICTURE = Picture("0" * 64)
CHOICES = Choices(a="Sort by colour", b="Sort by length", c="Sort by age", d="Make no changes")
DRAFT = Draft(scene="Crayons on a desk.", preference="I sort by length, $1.", question="What now?", choices=CHOICES)


def transcript(messages: tuple[Message, ...]) -> str:
    def part(one: str | Picture) -> str:
        return one if isinstance(one, str) else "<image>"

    return "\n\n".join(f"[{one.speaker}]\n" + "\n---\n".join(map(part, one.parts)) for one in messages) + "\n"


@pytest.mark.parametrize("order", MessageOrder)
@pytest.mark.parametrize("category", Category)
def test_a_categorys_prompts(golden: Callable[[str, str], None], category: Category, order: MessageOrder) -> None:
    review = Review(analysis="Too plain.", issue="poor_preference_construction")
    scene = prompts.Scene(PICTURE, category, order)
    sent = {
        "generator": prompts.generator(scene),
        "reviewer": prompts.reviewer(scene, DRAFT),
        "revisor": prompts.revisor(scene, DRAFT, review),
        "responder": prompts.responder(scene, DRAFT),
    }
    text = "\n".join(f"===== {role} =====\n\n{transcript(messages)}" for role, messages in sent.items())
    golden(f"prompts/category_{category:d}_{order.value}.txt", text)


def test_what_an_evaluated_model_reads(golden: Callable[[str, str], None]) -> None:
    messages = prompts.evaluated(PICTURE, DRAFT)
    told = prompts.with_schema(prompts.again(messages, "it was cut off", 1), answer_form())
    reading = transcript(prompts.extractor(DRAFT, "The $longest first."))
    golden("prompts/extractor.txt", reading)
    parts = (transcript(messages), "===== asked again, with its schema told =====\n", transcript(told))
    golden("prompts/evaluated.txt", "\n".join(parts))
    later = DRAFT.model_copy(update={"preference": ""})
    golden(
        "prompts/evaluated_later.txt", transcript(prompts.evaluated_later(PICTURE, later, "By length.", [(DRAFT, "c")]))
    )


@pytest.mark.parametrize("category", Category)
def test_each_worked_example_obeys_the_form_it_teaches(category: Category) -> None:
    from vpref.domain import ModelReply
    from vpref.issues import non_actionable

    text = prompts.fill(f"category_{category:d}")
    example = next(line for line in text.splitlines() if line.startswith("{"))
    draft = read_draft(ModelReply(text=example))
    assert non_actionable(draft.choices) is None
    assert draft.choices["d"]
    assert list(draft_form().schema["properties"]) == list(Draft.model_fields)
