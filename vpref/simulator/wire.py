"""OpenAI's two wire forms, read and written: Chat Completions and Responses, without streaming.

It knows where the API keeps texts, images and schemas, and what a reply looks like. It refuses to know what
a request is about and what is said in return.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from vpref.simulator.dice import dice

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"

# Where the prompt itself tells the schema (`structured: prompt`).
TOLD = re.compile(r"JSON schema named `([^`\n]+)`.*?```json\s*(\{.*?)```", re.DOTALL)


class BadRequest(ValueError):
    """What OpenAI's API would answer with status 400; `param` names the field at fault."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


@dataclass(frozen=True, slots=True)
class Form:
    """The JSON schema a reply must obey; `told` in the prompt only, so that nothing enforces it."""

    name: str
    schema: dict[str, Any]
    told: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. `digest` is the identity of its content; `key` the Idempotency-Key, not part of it."""

    path: str
    body: dict[str, Any]
    digest: str
    key: str
    text: str
    image_tokens: int
    form: Form | None
    options: tuple[str, ...] = ()

    @property
    def model(self) -> str:
        return str(self.body["model"])


@dataclass(frozen=True, slots=True)
class Said:
    """A reply before it takes a wire form."""

    text: str
    finish: Literal["stop", "length", "refusal"] = "stop"


# --- reading ---------------------------------------------------------------------------------------------


def read(path: str, raw: bytes, key: str = "") -> Asked:
    """The request in these bytes. Raises BadRequest."""
    return understand(path, parse(raw), key)


def parse(raw: bytes) -> dict[str, Any]:
    """The JSON object in these bytes. Raises BadRequest."""
    try:
        body = json.loads(raw)
    except ValueError as exc:
        raise BadRequest("We could not parse the JSON body of your request.") from exc
    if not isinstance(body, dict):
        raise BadRequest("The JSON body of your request must be an object.")
    return body


def understand(path: str, body: dict[str, Any], key: str = "") -> Asked:
    """The request of this body. Raises BadRequest."""
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise BadRequest("You must provide a model parameter.", "model")
    if body.get("stream"):
        raise BadRequest("The simulator does not stream; leave out 'stream'.", "stream")
    turns = "messages" if path == CHAT else "input"
    if not body.get(turns):
        raise BadRequest(f"Missing required parameter: '{turns}'.", turns)
    try:
        parts = list(_parts(body, turns))
        text = "\n".join(part for part in parts if isinstance(part, str))
        form = _enforced(body, path) or _told(text)
    except (TypeError, KeyError, AttributeError) as exc:
        raise BadRequest(f"Invalid value: '{turns}' or the reply's format is not of the documented shape.") from exc
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    options = tuple((body.get("structured_outputs") or {}).get("choice") or ())
    return Asked(path, body, digest, key, text, sum(part for part in parts if isinstance(part, int)), form, options)


def _parts(body: dict[str, Any], turns: str) -> Iterator[str | int]:
    """The request's texts, and in place of each image the tokens that it costs, in order."""
    if instructions := body.get("instructions"):
        yield str(instructions)
    given = body[turns]
    for turn in [{"content": given}] if isinstance(given, str) else given:
        content = turn.get("content")
        for part in [{"text": content}] if isinstance(content, str) else content or ():
            if "image_url" in part:
                image = part["image_url"]
                yield _image_tokens(**image) if isinstance(image, dict) else _image_tokens(image, part.get("detail"))
            elif "text" in part:
                yield str(part["text"])


def _image_tokens(url: str, detail: str | None = None) -> int:
    """OpenAI's 85 + 170 a tile; the tiles are guessed from the file's size, since nothing here decodes images."""
    tiles = 0 if detail == "low" else min(8, 1 + len(url) // 60_000)
    return 85 + 170 * tiles


def _enforced(body: dict[str, Any], path: str) -> Form | None:
    if path == CHAT:
        given = (body.get("response_format") or {}).get("json_schema")
    else:
        given = (body.get("text") or {}).get("format")
    return Form(given["name"], given["schema"]) if given and "schema" in given else None


def _told(text: str) -> Form | None:
    for name, schema in reversed(TOLD.findall(text)):
        try:
            return Form(name, json.loads(schema), told=True)
        except ValueError:
            continue
    return None


# --- writing ---------------------------------------------------------------------------------------------


def write(asked: Asked, said: Said, fingerprint: str) -> dict[str, Any]:
    """The reply in the wire form of the request's endpoint."""
    return (_chat if asked.path == CHAT else _response)(asked, said, fingerprint)


def error(message: str, kind: str, *, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """OpenAI's error body."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _usage(asked: Asked, said: Said) -> tuple[int, int, int]:
    """Tokens in, of these cached, and out. Like OpenAI, caches steps of 128 in prompts from 1024 on."""
    tokens = max(1, len(asked.text) // 4) + asked.image_tokens
    steps = tokens // 128 if tokens >= 1024 else 0
    return tokens, 128 * dice(asked.digest, "cached").randint(0, steps), max(1, len(said.text) // 4)


def _chat(asked: Asked, said: Said, fingerprint: str) -> dict[str, Any]:
    refused = said.finish == "refusal"
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if refused else said.text,
        "refusal": said.text if refused else None,
        "annotations": [],
    }
    tokens, cached, output = _usage(asked, said)
    finish = "length" if said.finish == "length" else "stop"
    return {
        "id": f"chatcmpl-{asked.digest[:24]}",
        "object": "chat.completion",
        "created": 0,
        "model": asked.model,
        "choices": [{"index": 0, "message": message, "logprobs": _logprobs(asked, said), "finish_reason": finish}],
        "usage": {
            "prompt_tokens": tokens,
            "completion_tokens": output,
            "total_tokens": tokens + output,
            "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": fingerprint,
    }


def _response(asked: Asked, said: Said, fingerprint: str) -> dict[str, Any]:
    body, cut = asked.body, said.finish == "length"
    reasoning = body.get("reasoning") or {}
    thought = {"type": "reasoning", "id": f"rs_{asked.digest[:24]}", "summary": []}
    tokens, cached, output = _usage(asked, said)
    return {
        "id": f"resp_{asked.digest[:24]}",
        "object": "response",
        "created_at": 0,
        "status": "incomplete" if cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": {"system_fingerprint": fingerprint},
        "model": asked.model,
        "output": [*([thought] if reasoning else []), _response_message(asked, said)],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": reasoning.get("effort"), "summary": None},
        "temperature": 1.0,
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": {
            "input_tokens": tokens,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens + output,
        },
    }


def _logprobs(asked: Asked, said: Said) -> dict[str, Any] | None:
    """The reply's characters as tokens with their probabilities, where these were asked for. A letter that stands
    alone has its rivals beside it."""
    if not (asked.body.get("logprobs") or "message.output_text.logprobs" in (asked.body.get("include") or ())):
        return None
    tokens = re.findall(r"\w+|\W+", said.text)
    return {"content": [_token(text, dice(asked.digest, place, "logprob")) for place, text in enumerate(tokens)]}


def _token(text: str, rng: random.Random) -> dict[str, Any]:
    likely = rng.uniform(0.4, 0.97)
    rivals = [letter for letter in "abcd" if letter != text.lower()] if text.lower() in set("abcd") else []
    shares = {text: likely} | dict.fromkeys(rivals, 0.95 * (1 - likely) / 3)
    top = [{"token": name, "logprob": math.log(share)} for name, share in shares.items()]
    return top[0] | {"top_logprobs": top}


def _response_message(asked: Asked, said: Said) -> dict[str, Any]:
    if said.finish == "refusal":
        part: dict[str, Any] = {"type": "refusal", "refusal": said.text}
    else:
        told = (_logprobs(asked, said) or {}).get("content", [])
        part = {"type": "output_text", "text": said.text, "annotations": [], "logprobs": told}
    return {
        "type": "message",
        "id": f"msg_{asked.digest[:24]}",
        "status": "incomplete" if said.finish == "length" else "completed",
        "role": "assistant",
        "content": [part],
    }
