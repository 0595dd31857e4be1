"""OpenAI's SDK with less work a request. Imports the SDK, so it is imported late.

The SDK builds each request anew from its client's defaults: addresses parsed, headers merged and copied, options
checked. Of a run's requests only the body and one header differ, and building them this way would cost more CPU
than sending them (benchmarks/overhead.py: 0.4 ms of 1.7 an item). What the SDK is for stays its own:
authentication, timeouts, retries with Retry-After, and its errors.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import httpx2
import openai

from vpref.backends.servers import Servers, affinity

_OF_ONE_REQUEST = frozenset({b"content-length", b"idempotency-key"})


class CountingClient(openai.DefaultAioHttpClient):
    """`troubles` counts failed answers by status (`http_429`), and the SDK's retries (`retried`)."""

    def __init__(self, troubles: Counter[str], **options: Any) -> None:
        super().__init__(**options)
        self._troubles = troubles

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if request.headers.get("x-stainless-retry-count", "0") != "0":
            self._troubles["retried"] += 1
        response = await super().send(request, **options)
        if response.status_code >= 400:
            self._troubles[f"http_{response.status_code}"] += 1
        return response


class SpreadingClient(CountingClient):
    """Sends what is posted to one of several servers, and on to the next where it is gone (`passed_over`), below the
    SDK's own retries. `path` is that of the endpoint."""

    def __init__(self, troubles: Counter[str], servers: Servers, path: str, **options: Any) -> None:
        super().__init__(troubles, **options)
        self._servers = servers
        self._urls = {address: httpx2.URL(address.rstrip("/") + path) for address in servers.addresses}

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if request.method != "POST":
            return await super().send(request, **options)
        failure: Exception | None = None
        for address in self._servers.order(affinity.get(), int(request.headers.get("x-stainless-retry-count", 0))):
            try:
                response = await super().send(_sent_to(self._urls[address], request), **options)
            except (httpx2.ReadTimeout, httpx2.WriteTimeout, httpx2.PoolTimeout):
                raise  # it is there, and slow
            except httpx2.TransportError as error:
                self._servers.gone(address)
                self._troubles["passed_over"] += 1
                failure = error
            else:
                self._servers.there(address)
                return response
        assert failure is not None
        raise failure


def _sent_to(url: httpx2.URL, request: httpx2.Request) -> httpx2.Request:
    headers = [pair for pair in request.headers.raw if pair[0].lower() != b"host"]
    return httpx2.Request("POST", url, headers=headers, stream=request.stream, extensions=request.extensions)


class LeanOpenAI(openai.AsyncOpenAI):
    """For one URL and one set of options: the first request is built by the SDK, later ones after its pattern.

    A retry, and whatever else is not a POST of ready bytes, is the SDK's own business. Should a later SDK build
    its requests elsewhere, this is never called and nothing but the saving is lost.
    """

    _pattern: httpx2.Request | None = None

    def _build_request(self, options: Any, **more: Any) -> httpx2.Request:
        if more.get("retries_taken") or not isinstance(options.content, bytes):
            return super()._build_request(options, **more)
        if self._pattern is None:
            self._pattern = super()._build_request(options, **more)
            self._kept = [pair for pair in self._pattern.headers.raw if pair[0].lower() not in _OF_ONE_REQUEST]
            return self._pattern
        length = (b"Content-Length", str(len(options.content)).encode())
        key = (b"Idempotency-Key", options.headers["Idempotency-Key"].encode())
        return httpx2.Request(
            "POST",
            self._pattern.url,
            headers=[*self._kept, length, key],
            stream=httpx2.ByteStream(options.content),
            extensions=self._pattern.extensions,
        )
