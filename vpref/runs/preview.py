"""Listening in on a coroutine: the full transcript of an item, for `preview=N`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from vpref.domain import Message, ModelReply, ModelRequest, Picture, Step, dollars
from vpref.errors import CallFailed

T = TypeVar("T")


def overheard(step: Step[T], show: Callable[[str], None], title: str) -> Step[T]:
    """The same coroutine, its transcript shown when it ends (so that items side by side do not mix)."""
    lines = [f"{'=' * 20} {title} {'=' * 20}"]
    try:
        request = next(step)
        while True:
            lines.append(_asked(request))
            try:
                reply = yield request
            except CallFailed as failure:
                lines.append(f"<<< no reply: {failure.kind}: {failure}")
                request = step.throw(failure)
            else:
                lines.append(_replied(reply))
                request = step.send(reply)
    except StopIteration as end:
        result: T = end.value
        show("\n".join(lines))
        return result


def _asked(request: ModelRequest) -> str:
    again = f", asked again ({request.attempt})" if request.attempt else ""
    form = f", reply form `{request.form.name}`" if request.form else ""
    return f"\n>>> to the {request.role}{again}{form}\n" + "\n".join(map(_turn, request.messages))


def _turn(message: Message) -> str:
    parts = (f"[image {part.digest[:12]}]" if isinstance(part, Picture) else part for part in message.parts)
    return f"[{message.speaker}]\n" + "\n".join(parts)


def _replied(reply: ModelReply) -> str:
    usage = reply.usage
    about = f"{reply.model}, {reply.finish}, {usage.input} tokens in, {usage.output} out, price {dollars(reply.usd, 5)}"
    return f"\n<<< {about}\n{reply.text}"
