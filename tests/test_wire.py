"""Requests and replies on the wire: what is in a call's key, and what is read out of a response."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpref.backends import wire
from vpref.domain import Message, ModelRequest, Picture, Role
from vpref.errors import CallFailed
from vpref.replies import answer_form, choice_form, draft_form
from vpref.settings import Api, Constrain, ImageSettings, LimitSettings, ModelSettings, PriceSettings, Structured

PICTURE = Picture("f" * 64)
REQUEST = ModelRequest(Role.RESPONDER, (Message("user", ("Which?", PICTURE)),), answer_form())
MODEL = ModelSettings(name="m", server="here", params={"temperature": 0.5})


def key(
    request: ModelRequest = REQUEST, model: ModelSettings = MODEL, server: str = "here", enc: str = "original"
) -> str:
    return wire.prepare(request, model, server, enc).key


@pytest.mark.parametrize(
    "other",
    [
        key(replace(REQUEST, attempt=1)),
        key(replace(REQUEST, sample=1)),
        key(replace(REQUEST, form=None)),
        key(replace(REQUEST, form=draft_form())),
        key(replace(REQUEST, messages=(Message("user", ("Which? ", PICTURE)),))),
        key(replace(REQUEST, messages=(Message("user", (PICTURE, "Which?")),))),
        key(replace(REQUEST, messages=(Message("system", ("x",)), *REQUEST.messages))),
        key(replace(REQUEST, messages=(Message("user", ("Which?", Picture("e" * 64))),))),
        key(model=replace(MODEL, name="n")),
        key(model=replace(MODEL, api=Api.responses)),
        key(model=replace(MODEL, structured=Structured.strict)),
        key(model=replace(MODEL, structured=Structured.prompt)),
        key(model=replace(MODEL, params={"temperature": 0.6})),
        key(model=replace(MODEL, params={})),
        key(model=replace(MODEL, image=ImageSettings(detail="low"))),
        key(server="there"),
        key(server="simulator/12345678"),
        key(enc="jpeg90-512"),
    ],
)
def test_whatever_can_change_a_reply_changes_the_key(other: str) -> None:
    assert other != key()


@pytest.mark.parametrize(
    "other",
    [
        key(replace(REQUEST, role=Role.EVALUATED)),
        key(model=replace(MODEL, base_url="http://elsewhere:9/v1", api_key_env="SOME_KEY", label="M")),
        key(
            model=replace(MODEL, price=PriceSettings(input=9, output=9), limits=LimitSettings(concurrency=1, retries=0))
        ),
    ],
)
def test_where_and_how_politely_one_asks_does_not_change_the_key(other: str) -> None:
    assert other == key()


def test_the_order_of_params_does_not_change_the_key() -> None:
    one, two = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    assert key(model=replace(MODEL, params=one)) == key(model=replace(MODEL, params=two))


@given(
    text=st.text(st.characters(codec="utf-8")),
    api=st.sampled_from(list(wire.PATHS)),
    structured=st.sampled_from(Structured),
)
def test_images_are_spliced_in_and_no_text_is_taken_for_one(text: str, api: Api, structured: Structured) -> None:
    fake = f'"vpref-picture:{PICTURE.digest}:original"'
    request = replace(REQUEST, messages=(Message("user", (text, fake, PICTURE, "and", PICTURE)),))
    call = wire.prepare(request, replace(MODEL, api=api, structured=structured), "here", "original")
    sent = json.loads(call.spliced({PICTURE.digest: b"data:image/png;base64,AAAA"}, "original"))
    parts = sent["messages" if api is Api.chat else "input"][0]["content"]
    urls = [part["image_url"] for part in parts if "image_url" in part]
    assert [url if isinstance(url, str) else url["url"] for url in urls] == ["data:image/png;base64,AAAA"] * 2
    assert [part["text"] for part in parts if "text" in part][:3] == [text, fake, "and"]


def test_schemas_go_where_each_api_wants_them() -> None:
    def body(api: Api, structured: Structured) -> Any:
        return json.loads(wire.prepare(REQUEST, replace(MODEL, api=api, structured=structured), "", "original").body)

    chat = body(Api.chat, Structured.strict)["response_format"]["json_schema"]
    assert (chat["name"], chat["strict"]) == ("answer", True)
    assert "strict" not in body(Api.chat, Structured.json_schema)["response_format"]["json_schema"]
    assert body(Api.responses, Structured.strict)["text"]["format"]["strict"] is True
    told = body(Api.chat, Structured.prompt)
    assert "response_format" not in told
    assert '"enum": ["a", "b", "c", "d"]' in told["messages"][-1]["content"][-1]["text"]


def test_strict_schemas_are_closed_and_all_their_fields_required() -> None:
    def check(schema: dict[str, Any]) -> None:
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
            for value in schema["properties"].values():
                check(value)

    check(draft_form().schema)
    assert list(draft_form().schema["properties"]) == ["scene", "preference", "question", "choices"]
    assert "$ref" not in str(draft_form().schema)


def chat(message: dict[str, Any], reason: str = "stop", **more: Any) -> bytes:
    return json.dumps({"model": "m-1", "choices": [{"message": message, "finish_reason": reason}], **more}).encode()


@pytest.mark.parametrize(
    ("payload", "api", "text", "finish"),
    [
        (chat({"content": "b"}), Api.chat, "b", "stop"),
        (chat({"content": None, "refusal": "No."}), Api.chat, "No.", "refusal"),
        (chat({"content": ""}, "content_filter"), Api.chat, "", "refusal"),
        (chat({"content": "half"}, "length"), Api.chat, "half", "length"),
        (chat({"content": None}), Api.chat, "", "stop"),
        (chat({"content": "\ud83d lone \x00"}), Api.chat, "\ufffd lone \x00", "stop"),
        (
            b'{"status":"completed","model":"m","output":[{"type":"reasoning"},{"type":"message","content":'
            b'[{"type":"output_text","text":"b"}]}]}',
            Api.responses,
            "b",
            "stop",
        ),
        (
            b'{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}',
            Api.responses,
            "",
            "length",
        ),
        (
            b'{"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"No."}]}]}',
            Api.responses,
            "No.",
            "refusal",
        ),
    ],
)
def test_how_a_reply_ended_is_read(payload: bytes, api: Api, text: str, finish: str) -> None:
    reply = wire.read(payload, api)
    assert (reply.text, reply.finish) == (text, finish)


def test_usage_is_read() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    read = wire.read(chat({"content": "b"}, usage=usage), Api.chat).usage
    assert (read.input, read.cached, read.output, read.reasoning) == (100, 64, 9, 5)


@pytest.mark.parametrize(
    "payload", [b"", b"<html>", b"[]", b'{"choices":[]}', b'{"output":3}', b'{"error":{"message":"x"}}']
)
@pytest.mark.parametrize("api", wire.PATHS)
def test_what_is_no_response_is_a_failed_call(payload: bytes, api: Api) -> None:
    with pytest.raises(CallFailed, match="form"):
        wire.read(payload, api)


BOUND = ModelRequest(Role.EVALUATED, REQUEST.messages, choice_form(), options=("a", "b", "c", "d"))
TELLING = replace(MODEL, logprobs=True)


def test_options_bind_by_schema_or_as_vllm_does_and_ask_for_probabilities() -> None:
    def body(model: ModelSettings) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(wire.prepare(BOUND, model, "here", "original").body)
        return value

    plain = body(MODEL)
    assert plain["response_format"]["json_schema"]["name"] == "choice"
    assert not {"logprobs", "structured_outputs"} & plain.keys()
    bound = body(replace(TELLING, constrain=Constrain.structured_outputs))
    assert bound["structured_outputs"] == {"choice": ["a", "b", "c", "d"]}
    assert "response_format" not in bound, "one token is all it has to say"
    assert (bound["logprobs"], bound["top_logprobs"]) == (True, 20)
    assert body(replace(TELLING, api=Api.responses))["include"] == ["message.output_text.logprobs"]
    unbound = json.loads(wire.prepare(replace(BOUND, options=()), TELLING, "here", "original").body)
    assert "logprobs" not in unbound


def tokens(*texts: str, **top: float) -> list[dict[str, Any]]:
    """Tokens with these alternatives at each that says an option."""
    alternatives = [{"token": text, "logprob": math.log(share)} for text, share in top.items()]
    said: list[dict[str, Any]] = [{"token": text, "logprob": math.log(0.9), "top_logprobs": []} for text in texts]
    return [
        one | ({"top_logprobs": alternatives} if one["token"].strip('" ').lower() in "abcd" else {}) for one in said
    ]


@pytest.mark.parametrize("api", list(wire.PATHS))
@pytest.mark.parametrize(
    "said",
    [("b",), ('{"', "answer", '":"', "b", '"}'), ("a", " or ", "b"), (" B",)],
    ids=["bare", "json", "last", "case"],
)
def test_probabilities_are_those_of_the_token_that_says_the_option(api: Api, said: tuple[str, ...]) -> None:
    content = tokens(*said, **{"b": 0.5, "B": 0.2, ' "a': 0.2, "answer": 0.1})
    text = "".join(said)
    value: dict[str, Any] = {"choices": [{"message": {"content": text}, "logprobs": {"content": content}}]}
    if api is Api.responses:
        value = {
            "output": [{"type": "message", "content": [{"type": "output_text", "text": text, "logprobs": content}]}]
        }
    reply = wire.read(json.dumps(value).encode(), api, ("a", "b", "c", "d"))
    assert reply.probabilities == {"a": 0.2, "b": 0.7, "c": 0.0, "d": 0.0}
    assert wire.read(json.dumps(value).encode(), api).probabilities is None, "not asked for"


def test_a_server_that_tells_no_probabilities_leaves_them_unknown() -> None:
    value = {"choices": [{"message": {"content": "b"}, "logprobs": None}]}
    assert wire.read(json.dumps(value).encode(), Api.chat, ("a", "b")).probabilities is None
