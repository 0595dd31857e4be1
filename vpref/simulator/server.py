"""The simulator's HTTP side: routes, transport faults, the log of arrivals, starting and stopping.

It counts how often each content arrived, and that count may delay or break a reply but never changes its
words, which are `actor`'s. Nothing of a request reaches the log but its digest and what it was taken for.
"""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TextIO, TypeVar

from aiohttp import web

from vpref.errors import ConfigError
from vpref.settings import SimulatorSettings
from vpref.simulator import actor, profile_digest, wire
from vpref.simulator.dice import dice, draw
from vpref.simulator.services import Answer, Guise, Refused
from vpref.simulator.wire import CHAT, RESPONSES

T = TypeVar("T")

LARGEST_BODY = 64 * 2**20
GRACE_S = 0.2
"""What replies under way get when the server stops; the client of a stopped simulator is leaving as well."""


class Simulator:
    """The handlers of one server and what they share: the profile, the arrivals, the log."""

    def __init__(self, settings: SimulatorSettings, log: TextIO | None) -> None:
        self.settings = settings
        self.log = log
        self.profile = profile_digest(settings)
        self.guise = Guise(settings.service, tuple(settings.skills))
        self.arrivals: Counter[str] = Counter()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=LARGEST_BODY)
        app.on_response_prepare.append(self.sign)
        app.router.add_get(f"{self.guise.prefix}/models", self.models)
        app.router.add_post(f"{self.guise.prefix}/chat/completions", self.complete)
        if not self.guise.worn:
            app.router.add_post(RESPONSES, self.complete)
        return app

    async def sign(self, request: web.Request, response: web.StreamResponse) -> None:
        """Whatever is answered says that it is simulated."""
        response.headers["x-vpref-simulator"] = self.profile

    async def models(self, request: web.Request) -> web.Response:
        if self.guise.worn:
            return _sent(self.guise.listing(_key(request)))
        names = dict.fromkeys(["simulator", *self.settings.skills])
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "vpref-simulator"} for name in names]
        return web.json_response({"object": "list", "data": data, "vpref_simulator": {"profile": self.profile}})

    async def complete(self, request: web.Request) -> web.Response:
        path = RESPONSES if request.path.endswith("/responses") else CHAT
        try:
            body = wire.parse(await request.read())
            asked = wire.understand(path, self.guise.heard(body), request.headers.get("Idempotency-Key", ""))
            self.guise.check(body, _key(request))
        except Refused as refused:
            return _sent(self.guise.error(refused))
        except wire.BadRequest as exc:
            if self.guise.worn:
                return _sent(self.guise.error(Refused(400, str(exc), "invalid_request_error")))
            return web.json_response(wire.error(str(exc), "invalid_request_error", param=exc.param), status=400)
        fault = self.arrive(asked)
        await asyncio.sleep(self.settings.latency_s + (self.settings.stall_s if fault == "stall" else 0.0))
        if fault == "drop" and request.transport is not None:
            request.transport.abort()
            return web.Response()  # reaches nobody
        if fault == "http_429":
            return self.too_many()
        if fault == "http_500":
            return _sent(self.guise.broken())
        said = actor.reply(asked, self.settings)
        written = wire.write(asked, said, f"vpref-simulator-{self.profile}")
        return _sent(self.guise.withheld(written)) if said.finish == "refusal" else web.json_response(written)

    def arrive(self, asked: wire.Asked) -> str | None:
        """Count and log a request; returns the transport fault that it meets, another draw each time."""
        self.arrivals[asked.digest] += 1
        n = self.arrivals[asked.digest]
        faults = self.settings.faults
        shares = {name: getattr(faults, name) for name in ("http_429", "http_500", "stall", "drop")}
        fault = draw(shares, dice(asked.digest, n, "transport fault").random())
        if self.log is not None:
            line = {
                "digest": asked.digest,
                "path": asked.path,
                "model": asked.model,
                "role": actor.role_of(asked.form) or "other",
                "fault": fault or actor.content_fault(asked, faults),
                "n": n,
            }
            self.log.write(json.dumps(line) + "\n")
            self.log.flush()
        return fault

    def too_many(self) -> web.Response:
        wait = self.settings.retry_after_s
        told = "The simulator was told to limit this request."
        body = wire.error(told, "requests", code="rate_limit_exceeded")
        if self.guise.worn:
            body = self.guise.error(Refused(429, told, "RESOURCE_EXHAUSTED")).body
        headers = {"Retry-After": f"{wait:g}", "retry-after-ms": f"{wait * 1000:g}"}
        return web.json_response(body, status=429, headers=headers)


def _sent(answer: Answer) -> web.Response:
    return web.json_response(answer.body, status=answer.status)


def _key(request: web.Request) -> str:
    return request.headers.get("Authorization", "").removeprefix("Bearer ").strip()


# --- starting and stopping -------------------------------------------------------------------------------


@contextmanager
def _opened(path: str | None) -> Iterator[TextIO | None]:
    if path is None:
        yield None
        return
    try:
        log = open(path, "a", encoding="utf-8")  # noqa: SIM115 (closed below; only opening it is the user's mistake)
    except OSError as exc:
        raise ConfigError(f"simulator.log cannot be written to {path} ({exc.strerror}); choose another file.") from exc
    with log:
        yield log


@asynccontextmanager
async def listening(settings: SimulatorSettings) -> AsyncIterator[str]:
    """The server on the running event loop; yields its base URL. Raises ConfigError."""
    with _opened(settings.log) as log:
        simulator = Simulator(settings, log)
        runner = web.AppRunner(simulator.app(), access_log=None, shutdown_timeout=GRACE_S)
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, settings.host, settings.port).start()
            except OSError as exc:
                raise ConfigError(
                    f"The simulator cannot listen on {settings.host}, port {settings.port} ({exc.strerror}); set "
                    "simulator.port to another one, or to 0 for any free port."
                ) from exc
            yield f"http://{settings.host}:{runner.addresses[0][1]}{simulator.guise.prefix}"
        finally:
            await runner.cleanup()


@contextmanager
def in_thread(settings: SimulatorSettings) -> Iterator[str]:
    """The server on an event loop of its own, in a daemon thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="vpref-simulator", daemon=True)
    thread.start()

    def there(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    try:
        server = listening(settings)
        url = there(server.__aenter__())
        try:
            yield url
        finally:
            there(server.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def until_signal(settings: SimulatorSettings, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with listening(settings) as url:
        ready(url)
        await stop.wait()
