"""One model over real HTTP by the real SDK: what each way to fail becomes."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from vpref.backends.client import Backend, Images, decode_reply, encode_reply
from vpref.domain import Message, ModelReply, ModelRequest, Picture, Role, Usage
from vpref.errors import CallFailed, ConfigError, Misconfigured, RunStopped, VprefError
from vpref.settings import Api, LimitSettings, ModelSettings, PriceSettings

KEY = "sk-verysecretkeyvalue1234567890"
PIXEL = b"data:image/png;base64,AA"
MODEL = ModelSettings(
    name="m", server="here", api=Api.chat, api_key_env="SOME_API_KEY", limits=LimitSettings(timeout_s=1.0, retries=2)
)
REQUEST = ModelRequest(Role.EVALUATED, (Message("user", ("Which?", Picture("f" * 64))),))
FINE = {"model": "m-1", "choices": [{"message": {"content": "b"}, "finish_reason": "stop"}]}
Handler = Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]]


@contextmanager
def serving(handler: Handler) -> Iterator[str]:
    """A real server on a free port, in a thread of its own."""
    loop, ready, port = asyncio.new_event_loop(), threading.Event(), []

    async def start() -> web.AppRunner:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port.append(runner.addresses[0][1])
        return runner

    def serve() -> None:
        runner = loop.run_until_complete(start())
        ready.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=serve)
    thread.start()
    ready.wait(10)
    try:
        yield f"http://127.0.0.1:{port[0]}/v1"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def replies(
    *statuses: int, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[Handler, list[dict[str, Any]]]:
    """Answers with each status in turn, the last one for good; what came is noted."""
    came: list[dict[str, Any]] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        status = statuses[min(len(came), len(statuses) - 1)]
        came.append({"headers": request.headers.copy(), "body": await request.text(), "path": request.path})
        said = FINE if status == 200 else body or {"error": {"message": "no"}}
        return web.json_response(said, status=status, headers=headers)

    return handler, came


def ask(handler: Handler, model: ModelSettings = MODEL) -> tuple[ModelReply, Backend]:
    async def go(url: str) -> tuple[ModelReply, Backend]:
        backend = Backend(model, addresses=[url], key=KEY, images=Images(lambda digest: PIXEL, "original"))
        try:
            return await backend.send(backend.prepare(REQUEST)), backend
        finally:
            await backend.close()

    with serving(handler) as url:
        return asyncio.run(go(url))


def probe(handler: Handler, model: ModelSettings = MODEL) -> str:
    async def go(url: str) -> str:
        backend = Backend(model, addresses=[url], key=KEY, images=Images(lambda digest: b"", "original"))
        try:
            return await backend.probe()
        finally:
            await backend.close()

    with serving(handler) as url:
        return asyncio.run(go(url))


def test_what_is_sent() -> None:
    handler, came = replies(200)
    reply, _ = ask(handler)
    (request,) = came
    assert reply.text == "b"
    assert request["path"] == "/v1/chat/completions"
    assert request["headers"]["Authorization"] == f"Bearer {KEY}"
    assert json.loads(request["body"])["messages"][0]["content"][1]["image_url"]["url"] == PIXEL.decode()


def test_faults_that_pass_are_retried_and_counted() -> None:
    handler, came = replies(429, 500, 200, headers={"retry-after-ms": "20"})
    reply, backend = ask(handler)
    assert reply.text == "b"
    assert [request["headers"]["x-stainless-retry-count"] for request in came] == ["0", "1", "2"]
    assert backend.troubles == {"http_429": 1, "http_500": 1, "retried": 2}
    assert len({request["headers"]["Idempotency-Key"] for request in came}) == 1


def test_retrying_is_bounded() -> None:
    handler, came = replies(503, headers={"retry-after-ms": "5"})
    with pytest.raises(CallFailed) as failed:
        ask(handler)
    assert failed.value.kind == "http_503"
    assert len(came) == 3


@pytest.mark.parametrize(
    ("status", "error", "expected"),
    [
        (401, {"message": f"Incorrect API key provided: {KEY}"}, Misconfigured),
        (403, {"message": "forbidden"}, Misconfigured),
        (404, {"message": "no such model"}, Misconfigured),
        (429, {"message": "you ran out", "code": "insufficient_quota"}, RunStopped),
        (400, {"message": f"bad image, key {KEY}", "code": "invalid_image"}, CallFailed),
        (422, {"message": "bad"}, CallFailed),
        (400, {"message": "Unsupported parameter: 'seed'", "code": "unsupported_parameter"}, Misconfigured),
    ],
)
def test_what_cannot_be_retried_away(
    monkeypatch: pytest.MonkeyPatch, status: int, error: dict[str, str], expected: type[VprefError]
) -> None:
    monkeypatch.setenv("SOME_API_KEY", KEY)
    handler, _ = replies(status, body={"error": error}, headers={"x-should-retry": "false"})
    with pytest.raises(expected) as failed:
        ask(handler)
    assert type(failed.value) is expected
    assert failed.value.exit_code == (2 if expected is Misconfigured else 1)
    assert KEY not in str(failed.value)
    assert error["message"].split(KEY)[0].strip(" :,") in str(failed.value)


def test_a_request_turned_down_by_policy_is_a_refusal() -> None:
    handler, _ = replies(400, body={"error": {"message": "not allowed", "code": "content_policy_violation"}})
    reply, _ = ask(handler)
    assert (reply.finish, reply.text) == ("refusal", "not allowed")


def test_a_server_that_stalls_or_hangs_up_fails_the_call() -> None:
    async def stall(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3)
        return web.Response()

    async def hang_up(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    once = replace(MODEL, limits=LimitSettings(timeout_s=0.2, retries=0))
    for handler, kind in ((stall, "timeout"), (hang_up, "connection")):
        with pytest.raises(CallFailed) as failed:
            ask(handler, once)
        assert failed.value.kind == kind


def test_the_probe_tells_who_answers() -> None:
    def listing(value: Any, status: int = 200) -> Handler:
        async def handler(request: web.Request) -> web.StreamResponse:
            assert request.path == "/v1/models"
            return web.json_response(value, status=status)

        return handler

    assert probe(listing({"data": [{"id": "m"}]})) == "here"
    assert probe(listing({"data": [{"id": "m:latest"}, {"id": "x"}]})) == "here"
    assert probe(listing({"data": [], "vpref_simulator": {"profile": "12345678"}})) == "simulator/12345678"
    assert probe(listing({"error": {}}, 404)) == "here"
    assert probe(listing(["odd"])) == "here"
    with pytest.raises(ConfigError, match=r"does not serve model 'm'; it lists a, z"):
        probe(listing({"data": [{"id": "z"}, {"id": "a"}]}))
    with pytest.raises(ConfigError, match="check the key in SOME_API_KEY"):
        probe(listing({"error": {"message": "bad key"}}, 401))


def test_a_stored_reply_comes_back_as_it_ended_and_is_priced_by_todays_config() -> None:
    handler, _ = replies(200)
    _, backend = ask(handler, replace(MODEL, price=PriceSettings(input=2.0, cached=0.5, output=8.0)))
    reply = ModelReply(text="half \ufffd", finish="length", model="m-1", usage=Usage(input=1000, cached=400, output=50))
    back = backend.stamp(decode_reply(encode_reply(reply)), "k")
    assert back.model_copy(update={"key": "", "server": "", "usd": None}) == reply
    assert back.usd == pytest.approx((600 * 2.0 + 400 * 0.5 + 50 * 8.0) / 1e6)
    assert back.server == "here"
