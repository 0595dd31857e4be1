"""Evaluating one item: a coroutine like the pipeline's, with the same refusals (no I/O, clock or logging)."""

from __future__ import annotations

from typing import Any

from vpref import prompts, replies
from vpref.asking import ask
from vpref.domain import Ablation, Call, Item, ModelRequest, Picture, Response, Role, Step
from vpref.errors import CallFailed, MalformedReply
from vpref.extraction import match
from vpref.settings import AblationSettings, BoxesShown, ImageShown, PreferenceShown, SceneShown

EXTRACTIONS = 3
"""How often the extractor is asked at most for a usable reply."""


def evaluate_item(
    item: Item,
    *,
    extractor: bool = False,
    attempts: int = EXTRACTIONS,
    ablation: AblationSettings | None = None,
    other: Item | None = None,
) -> Step[Response]:
    """Ask the evaluated model once and find the letter that its output means: by direct matching and, with
    an `extractor`, by a model where that fails. With an `ablation` it is shown less, or something of the `other`.

    `truth`, where people gave one, is the letter expected; else the responder's answer. The item must have
    one of the two. An extractor that gives no usable reply fails the item: it says nothing about the answer.
    """
    expected = item.truth or item.answer
    if expected is None:
        raise ValueError(f"item {item.id} has neither a ground truth nor an answer")
    known: dict[str, Any] = {"item": item.id, "slot": item.slot, "expected": expected}
    picture: Picture | None = Picture(item.shown)
    shown = item
    if ablation is not None and ablation.label:
        picture, shown, known["ablation"] = ablate(item, ablation, other)
    try:
        reply = yield ModelRequest(Role.EVALUATED, prompts.evaluated(picture, shown))
    except CallFailed as failure:
        return Response(**known, verdict="failed", reason=f"{failure.kind}: {failure}")
    calls = [Call.of(Role.EVALUATED, 0, reply)]
    known |= {"text": reply.text, "finish": reply.finish}
    if reply.finish == "refusal":
        return Response(**known, calls=tuple(calls), verdict="refused")
    found = match(reply.text, item.choices)
    if found is not None:
        return Response(**known, calls=tuple(calls), verdict="matched", letter=found.letter, by=found.by)
    if not extractor or not reply.text.strip():
        return Response(**known, calls=tuple(calls), verdict="unmatched")
    request = ModelRequest(Role.EXTRACTOR, prompts.extractor(item, reply.text), replies.extraction_form())
    try:
        letter = yield from ask(request, replies.read_extraction, attempts, calls)
    except (MalformedReply, CallFailed) as failure:
        return Response(**known, calls=tuple(calls), verdict="failed", reason=f"extractor, {failure.kind}: {failure}")
    verdict = "unmatched" if letter is None else "matched"
    return Response(**known, calls=tuple(calls), verdict=verdict, letter=letter, by="model")


def ablate(item: Item, ablation: AblationSettings, other: Item | None) -> tuple[Picture | None, Item, Ablation]:
    """What is shown of an item, and the record of what is not."""
    lender = other if ablation.borrows else None
    if ablation.borrows and lender is None:
        raise ValueError(f"item {item.id} has no other item to borrow from")
    source = lender if ablation.image is ImageShown.other_item and lender is not None else item
    picture = Picture(source.slot.image if ablation.boxes is BoxesShown.hidden else source.shown)
    preferences = {PreferenceShown.stated: item.preference, PreferenceShown.none: ""}
    preference = preferences.get(ablation.preference, lender.preference if lender is not None else "")
    scene = "" if ablation.scene is SceneShown.hidden else item.scene
    left = {
        "image": ablation.image.value,
        "preference": ablation.preference.value,
        "scene": ablation.scene.value,
        "boxes": ablation.boxes.value,
    }
    record = Ablation(**left, other=None if lender is None else lender.id)
    shown = item.model_copy(update={"scene": scene, "preference": preference})
    return None if ablation.image is ImageShown.none else picture, shown, record
