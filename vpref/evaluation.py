"""Evaluating one item: a coroutine like the pipeline's, with the same refusals (no I/O, clock or logging)."""

from __future__ import annotations

from typing import Any

from vpref import prompts, replies
from vpref.asking import ask
from vpref.domain import Call, Item, ModelRequest, Picture, Response, Role, Step
from vpref.errors import CallFailed, MalformedReply
from vpref.extraction import match

EXTRACTIONS = 3
"""How often the extractor is asked at most for a usable reply."""


def evaluate_item(item: Item, *, extractor: bool = False, attempts: int = EXTRACTIONS) -> Step[Response]:
    """Ask the evaluated model once and find the letter that its output means: by direct matching and, with an
    `extractor`, by a model where that fails.

    `truth`, where people gave one, is the letter expected; else the responder's answer. The item must have
    one of the two. An extractor that gives no usable reply fails the item: it says nothing about the answer.
    """
    expected = item.truth or item.answer
    if expected is None:
        raise ValueError(f"item {item.id} has neither a ground truth nor an answer")
    known: dict[str, Any] = {"item": item.id, "slot": item.slot, "expected": expected}
    try:
        reply = yield ModelRequest(Role.EVALUATED, prompts.evaluated(Picture(item.shown), item))
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
