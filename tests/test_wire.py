"""Requests and replies on the wire: what is in a call's key, and what is read out of a response."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpref.backends import wire
from vpref.domain import Message, ModelRequest, Picture, Role
from vpref.errors import CallFailed
from vpref.replies import answer_form, draft_form
from vpref.settings import Api, ImageSettings, LimitSettings, ModelSettings, PriceSettings, Structured

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
        key(model=replace(MODEL, price=PriceSettings(input=9), limits=LimitSettings(concurrency=1, retries=0))),
    ],
)
def test_where_and_how_politely_one_asks_does_not_change_the_key(other: str) -> None:
    assert other == key()


def test_the_order_of_params_does_not_change_the_key() -> None:
    one, two = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    assert key(model=replace(MODEL, params=one)) == key(model=replace(MODEL, params=two))


@given(text=st.text(st.characters(codec="utf-8")), api=st.sampled_from(Api), structured=st.sampled_from(Structured))
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
@pytest.mark.parametrize("api", Api)
def test_what_is_no_response_is_a_failed_call(payload: bytes, api: Api) -> None:
    with pytest.raises(CallFailed, match="form"):
        wire.read(payload, api)
