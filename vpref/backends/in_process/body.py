"""What is asked of a checkpoint in this process, as the JSON that a call's key is taken over. Pure.

All that can change a reply is in it, but for whose weights answer: that is the call's server.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from vpref.domain import Message, ModelRequest, Picture
from vpref.settings import ModelSettings


@dataclass(frozen=True, slots=True)
class Question:
    """One request as the checkpoint gets it. `turns` are `{"role", "content": [{"type": "text", "text"} or
    {"type": "image"}]}`, `images` encoded files in the order of their places, `options` the words that the reply
    is bound to (empty: free), `seed` what sampling draws from."""

    turns: tuple[dict[str, Any], ...]
    images: tuple[bytes, ...]
    options: tuple[str, ...]
    seed: int

    @property
    def kind(self) -> tuple[bool, tuple[str, ...]]:
        """Only questions of one kind can be asked together."""
        return bool(self.images), self.options


def build(request: ModelRequest, messages: tuple[Message, ...], model: ModelSettings, encoding: str) -> dict[str, Any]:
    """The body of a request. Pictures are known by digest and `encoding`; the question gets their bytes apart."""

    def part(one: str | Picture) -> dict[str, Any]:
        if isinstance(one, str):
            return {"type": "text", "text": one}
        return {"type": "image", "digest": f"{one.digest}:{encoding}"}

    running = model.in_process
    generation = {"max_new_tokens": running.max_new_tokens} | {
        name: model.params[name] for name in sorted(model.params)
    }
    body: dict[str, Any] = {"dtype": running.dtype.value, "prompt": running.prompt, "generation": generation}
    body["messages"] = [{"role": one.speaker, "content": [part(piece) for piece in one.parts]} for one in messages]
    return body | ({"options": list(request.options)} if request.options else {})


def question(body: bytes, key: str, images: tuple[bytes, ...]) -> Question:
    """The question in a body, with its images' bytes."""
    value = json.loads(body)
    for turn in value["messages"]:
        for piece in turn["content"]:
            piece.pop("digest", None)
    return Question(tuple(value["messages"]), images, tuple(value.get("options", ())), int(key[:8], 16))
