"""Asking a role until its reply can be read: the step that the coroutines are made of. Pure, like them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from vpref import prompts
from vpref.domain import Call, ModelReply, ModelRequest, Step
from vpref.errors import MalformedReply

T = TypeVar("T")


def ask(request: ModelRequest, read: Callable[[ModelReply], T], attempts: int, calls: list[Call]) -> Step[T]:
    """Yield the request until its reply can be read, at most `attempts` times; each time the model is told
    what was wrong. Every reply is noted in `calls`. Raises the last MalformedReply. A failed call passes
    through: its retries are not ours."""
    messages, attempt = request.messages, 0
    while True:
        reply = yield replace(request, messages=messages, attempt=attempt)
        try:
            value = read(reply)
        except MalformedReply as problem:
            calls.append(Call.of(request.role, attempt, reply, f"{problem.kind}: {problem}"))
            attempt += 1
            if attempt == attempts:
                raise MalformedReply(problem.kind, f"{request.role}, {attempt} replies, the last: {problem}") from None
            messages = prompts.again(request.messages, str(problem), attempt)
        else:
            calls.append(Call.of(request.role, attempt, reply))
            return value
