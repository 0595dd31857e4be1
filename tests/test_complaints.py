"""Servers' complaints as they really look, each in its own shape: what kind they are and what is left of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vpref.backends.complaints import LONGEST, Kind, inside, read

KEY = "sk-verysecretkeyvalue1234567890"


def openai(message: str, code: str | None = None, kind: str = "invalid_request_error") -> Any:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def openrouter(message: str, code: int, **metadata: Any) -> Any:
    return {"error": {"message": message, "code": code, "metadata": metadata}, "user_id": "user_1"}


CASES = [json.loads(line) for line in (Path(__file__).parent / "complaints.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_what_is_meant(case: dict[str, Any]) -> None:
    body = case["body"]
    found = read(case["status"], (body if isinstance(body, str) else json.dumps(body)).encode())
    assert found.kind == case["kind"]
    assert case["said"] in found.said
    assert "\n" not in found.said


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ('Invalid JSON payload received. Unknown name "seed": Cannot find field.', "seed"),
        ("Unsupported parameter: 'max_tokens' is not supported with this model.", "max_tokens"),
        ("Unrecognized request argument supplied: top_k", "top_k"),
    ],
)
def test_the_parameter_at_fault_is_named(message: str, name: str) -> None:
    assert read(400, json.dumps(openai(message)).encode()).parameter == name


def test_only_busy_and_broken_servers_are_worth_asking_again() -> None:
    assert [status for status in (400, 401, 404, 408, 413, 429, 500, 503, 529) if read(status, b"{}").passing] == [
        408,
        429,
        500,
        503,
        529,
    ]


def test_a_failure_under_status_200_is_found() -> None:
    assert inside(json.dumps({"choices": [{"message": {"content": 'an "error" in words'}}]}).encode()) is None
    assert inside(b"[]") is None
    midway = inside(
        json.dumps({"choices": [{"finish_reason": "error", "error": {"code": 502, "message": "gone"}}]}).encode()
    )
    whole = inside(json.dumps(openrouter("gone", 429)).encode())
    words = inside(json.dumps({"error": "Context size has been exceeded."}).encode())
    nameless = inside(json.dumps({"error": {"message": "gone"}}).encode())
    assert midway is not None
    assert whole is not None
    assert words is not None
    assert nameless is not None
    assert (midway.status, whole.status, words.kind, nameless.status) == (502, 429, Kind.TOO_LONG, 500)


def test_a_key_in_a_complaint_is_struck_out_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", KEY)
    for before in (0, LONGEST - 12):  # where a cut through the key would leave half of it
        found = read(401, json.dumps(openai("x" * before + f" {KEY} is wrong")).encode())
        assert "sk-verysecret" not in found.said


WORDS = st.sampled_from(
    ["loc", "msg", "error", "message", "code", "metadata", "raw", "reasons", "details", "detail", "choices", "type"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda more: st.lists(more) | st.dictionaries(WORDS | st.text(), more),
)


@settings(deadline=None)
@example(400, {"detail": [{"loc": []}]})
@example(400, {"choices": [{"error": True}], "details": True})
@given(st.integers(200, 599), st.dictionaries(WORDS, JSON) | JSON)
def test_no_body_is_too_odd(status: int, body: Any) -> None:
    payload = json.dumps(body).encode()
    assert read(status, payload).said
    inside(payload)


@settings(deadline=None)
@given(st.binary(max_size=50))
def test_no_bytes_are_too_odd(payload: bytes) -> None:
    assert read(500, payload).kind is not None
    inside(payload)
