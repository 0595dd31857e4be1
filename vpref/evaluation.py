"""Evaluating one item: a coroutine like the pipeline's, with the same refusals (no I/O, clock or logging)."""

from __future__ import annotations

from typing import Any

from vpref import prompts
from vpref.domain import Call, Item, ModelRequest, Picture, Response, Role, Step
from vpref.errors import CallFailed
from vpref.extraction import match


def evaluate_item(item: Item) -> Step[Response]:
    """Ask the evaluated model once and find the letter that its output means.

    `truth`, where people gave one, is the letter expected; else the responder's answer. The item must have
    one of the two.
    """
    expected = item.truth or item.answer
    if expected is None:
        raise ValueError(f"item {item.id} has neither a ground truth nor an answer")
    known: dict[str, Any] = {"item": item.id, "slot": item.slot, "expected": expected}
    try:
        reply = yield ModelRequest(Role.EVALUATED, prompts.evaluated(Picture(item.shown), item))
    except CallFailed as failure:
        return Response(**known, verdict="failed", reason=f"{failure.kind}: {failure}")
    known |= {"text": reply.text, "finish": reply.finish, "calls": (Call.of(Role.EVALUATED, 0, reply),)}
    if reply.finish == "refusal":
        return Response(**known, verdict="refused")
    # An output that direct matching cannot read goes on to a model-based extractor here, once there is one.
    found = match(reply.text, item.choices)
    if found is None:
        return Response(**known, verdict="unmatched")
    return Response(**known, verdict="matched", letter=found.letter, by=found.by)
