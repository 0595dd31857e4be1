"""What requests and replies look like on the wire, in the two dialects of the OpenAI API.

Pure. A body is built once, as JSON text in which every image is a placeholder: the request's key is taken
over that text, and the bytes sent are the same text with the images spliced in, so that nothing can be sent
that is not in the key. Refuses to know about connections, retries and stores.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, replace
from typing import Any

from vpref import prompts
from vpref.backends.in_process.body import build as _in_process
from vpref.domain import Finish, Message, ModelReply, ModelRequest, Picture, Usage
from vpref.errors import CallFailed
from vpref.settings import Api, Constrain, ModelSettings, Structured

KEY_VERSION = "vpref-call-1"

TOP_LOGPROBS = 20
"""The most that OpenAI's API and vLLM tell: a letter may come as `b`, `B`, `"b` and more."""

PATHS = {Api.chat: "/chat/completions", Api.responses: "/responses"}


@dataclass(frozen=True, slots=True)
class WireCall:
    """A request ready to send: its key, its JSON with placeholders, the images to put there, and the options whose
    probabilities are to be read from the reply."""

    key: str
    body: bytes
    pictures: tuple[str, ...]
    options: tuple[str, ...] = ()

    def spliced(self, data_urls: dict[str, bytes], encoding: str) -> bytes:
        """The bytes to send; `data_urls` by digest. A placeholder is a whole JSON string, quotes included,
        and inside another string quotes are escaped: no text of a model can look like one."""
        if not self.pictures:
            return self.body
        (first, *rest), parts = self.pictures, []
        head, tail = self.body.split(_token(first, encoding), 1)
        parts += [head, b'"', data_urls[first], b'"']
        for digest in rest:
            head, tail = tail.split(_token(digest, encoding), 1)
            parts += [head, b'"', data_urls[digest], b'"']
        return b"".join([*parts, tail])


def prepare(request: ModelRequest, model: ModelSettings, server: str, encoding: str) -> WireCall:
    """The request as this model's API wants it. `server` is the identity of who answers; `encoding` says how
    images are encoded (both are part of the key, the server's address is not)."""
    messages = request.messages
    if request.options and (model.constrain is Constrain.structured_outputs or model.api is Api.transformers):
        request = replace(request, form=None)  # the options alone bind the reply
    if request.form is not None and model.structured is Structured.prompt:
        messages = prompts.with_schema(messages, request.form)
    build = {Api.chat: _chat, Api.responses: _responses, Api.transformers: _in_process}[model.api]
    body = json.dumps(build(request, messages, model, encoding), ensure_ascii=False, separators=(",", ":")).encode()
    head = f"{KEY_VERSION}\n{server}\n{model.api.value}\n{request.attempt}\n{request.sample}\n".encode()
    pictures = tuple(part.digest for message in messages for part in message.parts if isinstance(part, Picture))
    options = request.options if model.logprobs else ()
    return WireCall(hashlib.sha256(head + body).hexdigest(), body, pictures, options)


def read(payload: bytes, api: Api, options: tuple[str, ...] = ()) -> ModelReply:
    """The reply in a response body, with the `options`' probabilities where the server told them. Raises
    CallFailed where the body is not one of the API's."""
    try:
        value = json.loads(payload)
        reply = _read_chat(value) if api is Api.chat else _read_responses(value)
        told = _option_probabilities(_tokens(value, api), options) if options else None
        return reply if told is None else reply.model_copy(update={"probabilities": told})
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise CallFailed("bad_response", f"the server's answer is not of the API's form ({error!r})") from error


def _token(digest: str, encoding: str) -> bytes:
    return f'"vpref-picture:{digest}:{encoding}"'.encode()


def _url(picture: Picture, encoding: str) -> str:
    return f"vpref-picture:{picture.digest}:{encoding}"


def _params(model: ModelSettings) -> dict[str, Any]:
    return {name: model.params[name] for name in sorted(model.params)}


def _chat(request: ModelRequest, messages: tuple[Message, ...], model: ModelSettings, encoding: str) -> dict[str, Any]:
    def content(message: Message) -> Any:
        if len(message.parts) == 1 and isinstance(message.parts[0], str):
            return message.parts[0]  # some servers take only plain text from the system
        return [part(one) for one in message.parts]

    def part(one: str | Picture) -> dict[str, Any]:
        if isinstance(one, str):
            return {"type": "text", "text": one}
        detail = {} if model.image.detail is None else {"detail": model.image.detail}
        return {"type": "image_url", "image_url": {"url": _url(one, encoding)} | detail}

    body: dict[str, Any] = {"model": model.name} | _params(model)
    body["messages"] = [{"role": message.speaker, "content": content(message)} for message in messages]
    if request.form is not None and model.structured is not Structured.prompt:
        form = {"name": request.form.name, "schema": request.form.schema}
        strict = {"strict": True} if model.structured is Structured.strict else {}
        body["response_format"] = {"type": "json_schema", "json_schema": form | strict}
    if request.options and model.constrain is Constrain.structured_outputs:
        body["structured_outputs"] = {"choice": list(request.options)}
    if request.options and model.logprobs:
        body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
    return body


def _responses(
    request: ModelRequest, messages: tuple[Message, ...], model: ModelSettings, encoding: str
) -> dict[str, Any]:
    def part(speaker: str, one: str | Picture) -> dict[str, Any]:
        if isinstance(one, str):
            return {"type": "output_text" if speaker == "assistant" else "input_text", "text": one}
        detail = {} if model.image.detail is None else {"detail": model.image.detail}
        return {"type": "input_image", "image_url": _url(one, encoding)} | detail

    body: dict[str, Any] = {"model": model.name} | _params(model)
    body["input"] = [
        {"role": message.speaker, "content": [part(message.speaker, one) for one in message.parts]}
        for message in messages
    ]
    if request.form is not None and model.structured is not Structured.prompt:
        strict = model.structured is Structured.strict
        form = {"name": request.form.name, "schema": request.form.schema, "strict": strict}
        body["text"] = {"format": {"type": "json_schema"} | form}
    if request.options and model.constrain is Constrain.structured_outputs:
        body["structured_outputs"] = {"choice": list(request.options)}
    if request.options and model.logprobs:
        body |= {"include": ["message.output_text.logprobs"], "top_logprobs": TOP_LOGPROBS}
    return body


def _tokens(value: dict[str, Any], api: Api) -> list[dict[str, Any]]:
    """The reply's tokens with their likeliest alternatives, as far as they were told."""
    if api is Api.chat:
        return (value["choices"][0].get("logprobs") or {}).get("content") or []
    parts = [part for out in value["output"] if out["type"] == "message" for part in out["content"]]
    return [token for part in parts for token in part.get("logprobs") or ()]


def _option_probabilities(tokens: list[dict[str, Any]], options: tuple[str, ...]) -> dict[str, float] | None:
    """The probability of each option at the token that says one: the last such, since a schema's own words come
    before its value. Tokens that differ in case, quotes or white space alone are one option. None without any."""

    def option(text: str) -> str | None:
        bare = text.strip(" \t\n\"'{}").lower()
        return bare if bare in options else None

    said = [token for token in tokens if option(token["token"]) is not None]
    if not said:
        return None
    found = dict.fromkeys(options, 0.0)
    for one in said[-1].get("top_logprobs") or (said[-1],):
        if (name := option(one["token"])) is not None:
            found[name] += math.exp(one["logprob"])
    return {name: round(min(share, 1.0), 6) for name, share in found.items()}


def _clean(text: str) -> str:
    """A lone surrogate (half a character) cannot be stored or sent as UTF-8; it becomes U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_BLOCKED = frozenset(
    {"content_filter", "refusal", "safety", "recitation", "blocklist", "prohibited_content", "spii", "image_safety"}
)
"""How replies end that a filter withheld. Gemini's own names come through its OpenAI-compatible API as they are."""


def _finish(reason: str | None) -> Finish:
    plain = (reason or "stop").lower().partition(":")[0]
    return "refusal" if plain in _BLOCKED else "length" if plain in ("length", "max_tokens") else "stop"


def _read_chat(value: dict[str, Any]) -> ModelReply:
    choice = value["choices"][0]
    message, reason = choice["message"], choice.get("finish_reason")
    refusal = message.get("refusal")
    finish: Finish = "refusal" if refusal else _finish(reason)
    usage = value.get("usage") or {}
    return ModelReply(
        text=_clean(refusal or message.get("content") or ""),
        finish=finish,
        model=str(value.get("model") or ""),
        usage=Usage(
            input=usage.get("prompt_tokens") or 0,
            cached=(usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0,
            output=usage.get("completion_tokens") or 0,
            reasoning=(usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0,
        ),
    )


def _read_responses(value: dict[str, Any]) -> ModelReply:
    parts = [part for out in value["output"] if out["type"] == "message" for part in out["content"]]
    refusals = [part["refusal"] for part in parts if part["type"] == "refusal"]
    text = "".join(part["text"] for part in parts if part["type"] == "output_text")
    if value.get("status") == "failed":
        raise CallFailed("server_error", str((value.get("error") or {}).get("message") or "the response failed"))
    reason = (value.get("incomplete_details") or {}).get("reason")
    finish: Finish = "refusal" if refusals or reason == "content_filter" else "length" if reason else "stop"
    usage = value.get("usage") or {}
    return ModelReply(
        text=_clean(" ".join(refusals) or text),
        finish=finish,
        model=str(value.get("model") or ""),
        usage=Usage(
            input=usage.get("input_tokens") or 0,
            cached=(usage.get("input_tokens_details") or {}).get("cached_tokens") or 0,
            output=usage.get("output_tokens") or 0,
            reasoning=(usage.get("output_tokens_details") or {}).get("reasoning_tokens") or 0,
        ),
    )
