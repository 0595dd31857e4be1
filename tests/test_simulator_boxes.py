"""The simulator in the `boxes` variant: requests of the real coroutines, put on the wire and answered offline."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from vpref import prompts, replies
from vpref.backends.wire import prepare
from vpref.domain import (
    LETTERS,
    Accepted,
    Box,
    Category,
    Choices,
    Draft,
    Item,
    ModelReply,
    ModelRequest,
    Outcome,
    Picture,
    Review,
    Role,
    Slot,
    Step,
    Variant,
)
from vpref.errors import MalformedReply
from vpref.evaluation import evaluate_item
from vpref.issues import non_actionable
from vpref.naming import Naming, name_boxes
from vpref.pipeline import generate_item
from vpref.settings import FaultSettings, MessageOrder, ModelSettings, PipelineSettings, SimulatorSettings, Structured
from vpref.simulator import actor, bank, names, objects, wire
from vpref.tags import check_tags, tagged_object

T = TypeVar("T")
PLAIN = SimulatorSettings()
MODEL = ModelSettings(name="m", server="somewhere")
CATEGORIES = pytest.mark.parametrize("category", [Category.TYPICAL_LOW, Category.ATYPICAL_LOW])
TOOLBOXES = (
    ("leftmost cup", "cup"),
    ("dining table", "red bag", "potted plant"),
    ("cat", "bed", "remote", "tv"),
    ("small wooden picture frame", "surface", "wall", "dust", "Café (open) \\1"),
)
NOUNS = """bicycle car motorcycle airplane bus train truck boat bench bird cat dog horse sheep cow elephant bear zebra
giraffe backpack umbrella handbag tie suitcase frisbee skis snowboard kite skateboard surfboard bottle cup fork knife
spoon bowl banana apple sandwich orange broccoli carrot pizza donut cake chair couch bed toilet tv laptop mouse remote
keyboard phone microwave oven toaster sink refrigerator book clock vase scissors drier toothbrush box bag shelf plant
table lamp door window picture pillow curtain mirror towel hat shoe"""


def said(request: ModelRequest, settings: SimulatorSettings = PLAIN, model: ModelSettings = MODEL) -> ModelReply:
    """What the server would say to the request as a backend sends it."""
    call = prepare(request, model, "simulator", "png")
    reply = actor.reply(wire.read(wire.CHAT, call.body, call.key), settings)
    return ModelReply(text=reply.text, finish=reply.finish)


def driven(step: Step[T], settings: SimulatorSettings = PLAIN, model: ModelSettings = MODEL) -> T:
    """What the coroutine returns when the simulator answers it."""
    try:
        request = next(step)
        while True:
            request = step.send(said(request, settings, model))
    except StopIteration as end:
        value: T = end.value
        return value


def scenes(category: Category, count: int) -> Iterator[prompts.Scene]:
    orders = list(MessageOrder)
    for i in range(count):
        yield prompts.Scene(Picture(f"{i:064}"), category, orders[i % 2], TOOLBOXES[i % len(TOOLBOXES)])


def generate(scene: prompts.Scene) -> ModelRequest:
    return ModelRequest(Role.GENERATOR, prompts.generator(scene), replies.draft_form())


def drafts(category: Category, count: int) -> list[tuple[prompts.Scene, Draft]]:
    return [(scene, replies.read_draft(said(generate(scene)), scene.toolbox)) for scene in scenes(category, count)]


def boxed(toolbox: tuple[str, ...]) -> tuple[Box, ...]:
    return tuple(
        Box(name=name, letter=letter, x0=0, y0=0, x1=9, y1=9) for letter, name in zip("ABCDE", toolbox, strict=False)
    )


def finished(settings: SimulatorSettings, category: Category, count: int) -> list[Outcome]:
    """What becomes of slots in the whole pipeline."""
    found = []
    for scene in scenes(category, count):
        slot = Slot(image=scene.picture.digest, variant=Variant.BOXES, category=category)
        pipeline = PipelineSettings(message_order=scene.order)
        found.append(driven(generate_item(slot, pipeline, boxes=boxed(scene.toolbox), drawn="f" * 64), settings))
    return found


def accepted(category: Category, count: int) -> list[Item]:
    """Items made where nothing goes wrong: all of them are accepted."""
    outcomes = finished(PLAIN, category, count)
    items = [outcome.item for outcome in outcomes if isinstance(outcome, Accepted)]
    assert len(items) == count
    return items


# --- drafts ----------------------------------------------------------------------------------------------


def test_no_two_wishes_or_actions_can_be_confused() -> None:
    def confused(texts: list[str]) -> list[str]:
        lowered = list(map(str.casefold, texts))
        return [one for i, one in enumerate(lowered) for j, other in enumerate(lowered) if i != j and one in other]

    habits = objects.habits()
    others = [taste.wish for scenario in bank.scenarios() for taste in scenario.tastes]
    assert Counter(habit.typicality for habit in habits) == {"typical": 12, "atypical": 12}
    assert not confused([habit.wish for habit in habits] + others)
    acts = [act for habit in habits for act in habit.acts]
    assert not confused(acts)
    assert all(re.fullmatch(r"[A-Z][a-z]+ [^{}]*\{\}[^{}]*", act) for act in acts)
    nouns = "|".join(NOUNS.split())
    texts = [habit.wish for habit in habits] + acts + [*objects.SCENES, *objects.QUESTIONS]
    assert not [text for text in texts if re.search(rf"\b({nouns})s?\b", text.casefold())]


@CATEGORIES
def test_drafts_obey_the_rules_and_are_known_again(category: Category) -> None:
    made, right, idle = drafts(category, 400), Counter[str](), 0
    for scene, draft in made:
        known = objects.recognise(draft)
        assert known is not None
        assert known.category is category
        assert non_actionable(draft.choices) is None
        assert all(re.match(r"[A-Z][a-z]+ ", text) for text in draft.choices.texts)
        usual = [letter for letter in LETTERS if _typical(draft.choices[letter])]
        assert set(usual) - {known.right} or objects.INACTION in draft.choices.texts
        open_text = objects.TAG.sub("", prompts.item_block(draft))
        assert not [name for name in scene.toolbox if re.search(rf"\b{re.escape(name)}\b", open_text, re.IGNORECASE)]
        right[known.right] += 1
        idle += objects.INACTION in draft.choices.texts
        assert draft.choices.texts.count(objects.INACTION) <= 1
        assert draft.choices[known.right] != objects.INACTION
        assert len({*map(tagged_object, draft.choices.texts)} - {None}) >= min(4, len(scene.toolbox)) - 1
    assert idle / 400 == pytest.approx(objects.INACTION_SHARE, abs=0.07)
    assert min(right.values()) > 65
    assert len({prompts.item_block(draft) for _, draft in made}) > 395


def _typical(choice: str) -> bool:
    return any(habit.granted_by(choice) for habit in objects.habits() if habit.typicality == "typical")


def test_samples_of_a_slot_differ_and_requests_repeat() -> None:
    request = generate(next(scenes(Category.ATYPICAL_LOW, 1)))
    texts = [said(replace(request, sample=sample)).text for sample in range(20)]
    assert len(set(texts)) == 20
    assert texts == [said(replace(request, sample=sample)).text for sample in range(20)]


def test_the_last_toolbox_is_meant_and_told_schemas_are_obeyed() -> None:
    told = ModelSettings(name="m", server="somewhere", structured=Structured.prompt)
    for scene in scenes(Category.TYPICAL_LOW, 40):
        request = generate(replace(scene, toolbox=("thing", "other thing")))
        again = replace(request, messages=(*request.messages, *prompts.generator(scene)))
        replies.read_draft(said(again, model=told), scene.toolbox)


@CATEGORIES
def test_revisions_keep_the_wish_and_every_object(category: Category) -> None:
    for i, (scene, draft) in enumerate(drafts(category, 200)):
        issue = ("wrong_scene_description", "no_correct_choices", "non_actionable")[i % 3]
        asked = prompts.revisor(scene, draft, Review(analysis="So it is.", issue=issue))
        reply = said(ModelRequest(Role.REVISOR, asked, replies.revision_form()))
        revised = replies.read_revision(reply, draft, scene.toolbox)
        before, after = objects.recognise(draft), objects.recognise(revised.draft)
        assert before is not None
        assert before == after
        assert revised.draft.choices != draft.choices
        pairs = zip(draft.choices.texts, revised.draft.choices.texts, strict=True)
        assert all(tagged_object(old) == tagged_object(new) for old, new in pairs)
        assert issue in revised.proposed_fix


def test_a_foreign_draft_is_answered_by_overlap_and_revised() -> None:
    choices = Choices(
        a="Burn the <object>cup</object>",
        b="Fill the <object>cup</object> with marbles",
        c="Sell the <object>cat</object>",
        d="Do nothing",
    )
    draft = Draft(scene="Things.", preference="I want marbles in everything.", question="What now?", choices=choices)
    scene = prompts.Scene(Picture("0" * 64), Category.ATYPICAL_LOW, MessageOrder.image_first, ("cup", "cat"))
    assert objects.recognise(draft) is None
    assert objects.likeliest(draft) == "b"
    asked = prompts.revisor(scene, draft, Review(analysis="", issue="non_actionable"))
    revised = replies.read_revision(
        said(ModelRequest(Role.REVISOR, asked, replies.revision_form())), draft, ("cup", "cat")
    )
    assert revised.draft == draft.model_copy(update={"question": revised.draft.question}) != draft


# --- the pipeline ----------------------------------------------------------------------------------------


@CATEGORIES
def test_the_whole_pipeline_makes_items_that_name_boxes_alone(category: Category) -> None:
    faults = FaultSettings(refusal=0.02, cut=0.02, malformed=0.15, empty=0.02)
    settings = SimulatorSettings(issues={"no_correct_choices": 0.2, "wrong_scene_description": 0.2}, faults=faults)
    outcomes = finished(settings, category, 200)
    items = [outcome.item for outcome in outcomes if isinstance(outcome, Accepted)]
    # A repeated problem makes a repeated request, and that gets the same reply until the attempts are spent.
    assert len(items) > 150
    for item in items:
        letters = [box.letter for box in item.boxes]
        text = prompts.item_block(item)
        assert "<" not in text
        assert set(re.findall(r"object in bounding box (\w+)", text)) <= set(letters)
        known = objects.recognise(item)
        assert known is not None
        assert (known.category, known.right) == (category, item.answer)
    problems = Counter((call.problem or "").split(":")[0] for outcome in outcomes for call in outcome.calls)
    assert problems["bad_tags"] > 10
    assert any(len(outcome.rounds) > 2 for outcome in outcomes)
    assert outcomes[:50] == finished(settings, category, 50)


@CATEGORIES
def test_accuracy_follows_the_profile_as_the_extractor_reads_it(category: Category) -> None:
    items = accepted(category, 300)
    profile = SimulatorSettings(accuracy=[0.8, 0.1, 0.6, 0.1], skills={"strong": 0.15})
    for model, wanted in (("m", profile.accuracy[category]), ("strong", profile.accuracy[category] + 0.15)):
        found = [driven(evaluate_item(item), profile, replace(MODEL, name=model)) for item in items]
        assert {response.verdict for response in found} == {"matched"}
        assert sum(response.correct for response in found) / 300 == pytest.approx(wanted, abs=0.06)
    perfect = SimulatorSettings(accuracy=[1, 1, 1, 1])
    assert all(driven(evaluate_item(item), perfect).correct for item in items)


def test_without_the_preference_the_choice_is_a_guess() -> None:
    items = accepted(Category.TYPICAL_LOW, 300)
    asked = [prompts.evaluated(Picture("0"), _without_preference(item)) for item in items]
    right = [objects.likeliest(_without_preference(item)) == item.answer for item in items]
    assert sum(right) / 300 == pytest.approx(0.25, abs=0.08)
    assert all(said(ModelRequest(Role.EVALUATED, messages)).text for messages in asked)


def _without_preference(item: Item) -> Draft:
    return Draft(scene=item.scene, preference="", question=item.question, choices=item.choices)


# --- names -----------------------------------------------------------------------------------------------

CLASSES = ("cup", "dining table", "hot air balloon basket rope", "CUP", "leftmost cup")


def named(i: int, settings: SimulatorSettings = PLAIN, attempts: int = 1) -> Naming:
    toolbox = tuple(random.Random(i).sample(CLASSES, 2 + i % 4))
    return driven(name_boxes(f"{i:064}", boxed(toolbox), attempts), settings)


def test_names_can_be_read_and_most_are_the_class() -> None:
    share = Counter[str]()
    for i in range(500):
        naming, classes = named(i), random.Random(i).sample(CLASSES, 2 + i % 4)
        assert naming.names is not None
        assert tuple(naming.names) == tuple("ABCDE"[: len(classes)])
        assert naming.analysis
        share["all"] += len(classes)
        for name, kind in zip(naming.names.values(), classes, strict=True):
            share["none" if not name else "specific" if name.split()[0] in names.MARKS else "kept"] += 1
            assert not name or name.split()[-1] == kind.split()[-1]
    assert share["none"] / share["all"] == pytest.approx(names.UNNAMED_SHARE, abs=0.02)
    assert share["kept"] / share["all"] > 0.5  # two of the classes differ in case alone, and one opens with a mark
    assert [named(i) for i in range(20)] == [named(i) for i in range(20)]


def test_names_of_distinct_classes_change_by_their_share() -> None:
    classes = {"A": "cup", "B": "dining table", "C": "cat"}
    made = [names.naming(classes, str(i))["names"] for i in range(600)]
    changed = [name for one in made for letter, name in one.items() if name and name != classes[letter]]
    assert len(changed) / 1800 == pytest.approx(names.SPECIFIC_SHARE, abs=0.03)
    assert len(set(changed)) == 3 * len(names.MARKS)


def test_spoilt_names_are_asked_for_again() -> None:
    settings = SimulatorSettings(faults=FaultSettings(malformed=0.5))
    found = [named(i, settings, attempts=3) for i in range(120)]
    assert sum(naming.names is not None for naming in found) > 80
    problems = [call.problem.split(": ", 1) for naming in found for call in naming.calls if call.problem]
    assert {problem[0] for problem in problems} == {"bad_names", "wrong_shape"}
    told = [problem[1] for problem in problems if problem[0] == "bad_names"]
    assert {"same name" in text for text in told} == {"more than 4 words" in text for text in told} == {True, False}


# --- faults ----------------------------------------------------------------------------------------------


def test_malformed_tagged_drafts_break_tags_too() -> None:
    settings, kinds = SimulatorSettings(faults=FaultSettings(malformed=1.0)), Counter[str]()
    for scene, draft in drafts(Category.TYPICAL_LOW, 150):
        revise = prompts.revisor(scene, draft, Review(analysis="", issue="non_actionable"))
        for request in (generate(scene), ModelRequest(Role.REVISOR, revise, replies.revision_form())):
            try:
                _read(said(request, settings), draft, scene)
            except MalformedReply as problem:
                kinds[problem.kind] += 1
            else:
                kinds["readable"] += 1
    # A brace too many is no obstacle to a lenient reader.
    assert kinds["bad_tags"] / 300 == pytest.approx(4 / 8, abs=0.1)
    assert kinds["readable"] / 300 == pytest.approx(1 / 8, abs=0.07)


def _read(reply: ModelReply, before: Draft, scene: prompts.Scene) -> Any:
    if "proposed_fix" in reply.text:
        return replies.read_revision(reply, before, scene.toolbox)
    return replies.read_draft(reply, scene.toolbox)


def test_every_way_to_break_a_tag_is_seen() -> None:
    for scene, draft in drafts(Category.ATYPICAL_LOW, 60):
        texts = objects.broken(draft.model_dump())
        assert len(texts) == 4
        for text in texts:
            spoilt = Draft.model_validate(json.loads(text))
            with pytest.raises(MalformedReply, match=r"tag"):
                check_tags(spoilt, scene.toolbox)
    assert objects.broken({"answer": "a"}) == []
