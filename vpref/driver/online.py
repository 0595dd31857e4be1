"""The asyncio driver: runs coroutines of the core against models, with every reply kept in the store.

A reply comes from the store, or from an equal request in flight (here or in another process), or from the
model. Results are handed on in the order of the jobs, whatever order they finish in, so that a run's records
are the same bytes each time. Refuses to know what is asked, what a reply means, and what becomes of results.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from vpref import interrupts
from vpref.domain import ModelReply, ModelRequest, Role, Step
from vpref.driver.meter import Meter
from vpref.errors import CallFailed, Interrupted, RunStopped

log = logging.getLogger(__name__)

T = TypeVar("T")
C = TypeVar("C", bound="Keyed")

GIVE_UP_AFTER = 50
"""Requests of one model that fail for good in a row, with no success between, before the run is stopped:
the server is gone or rejects what we send, and going on would only fail every item."""


class Keyed(Protocol):
    """A prepared request."""

    @property
    def key(self) -> str: ...


class Backend(Protocol[C]):
    """How the driver sees a model."""

    @property
    def concurrency(self) -> int: ...
    def prepare(self, request: ModelRequest) -> C: ...
    async def send(self, call: C) -> ModelReply: ...
    def stamp(self, reply: ModelReply, key: str) -> ModelReply: ...


class Store(Protocol):
    """How the driver sees the call store."""

    def get(self, key: str) -> bytes | None: ...
    def put(self, key: str, reply: bytes) -> None: ...
    def claim(self, key: str) -> bool: ...
    def release(self, key: str) -> None: ...
    def sync(self) -> None: ...


class _Lane(Generic[C]):
    """One model: its backend, how many requests may be out, and how many failed in a row."""

    def __init__(self, backend: Backend[C]) -> None:
        self.backend = backend
        self.slots = asyncio.Semaphore(backend.concurrency)
        self.failed_in_a_row = 0


class Driver(Generic[C]):
    """Use once: `run` the jobs to their end, or to an interruption."""

    def __init__(
        self,
        backends: Mapping[Role, Backend[C]],
        store: Store,
        meter: Meter,
        *,
        encode: Callable[[ModelReply], bytes],
        decode: Callable[[bytes], ModelReply],
        drain_s: float,
    ) -> None:
        self._store = store
        self._meter = meter
        self._encode = encode
        self._decode = decode
        self._drain_s = drain_s
        distinct = {id(backend): backend for backend in backends.values()}
        lanes = {name: _Lane(backend) for name, backend in distinct.items()}
        # An item has one request out at a time. A few more items than requests keep every slot busy; many more
        # would all be under way for long and none done, and a stop would find little finished.
        self._window = sum(backend.concurrency for backend in distinct.values()) * 5 // 4 + 1
        self._lanes = {role: lanes[id(backend)] for role, backend in backends.items()}
        self._flights: dict[str, asyncio.Task[ModelReply]] = {}
        self._stop: RunStopped | None = None
        self._stopping = asyncio.Event()

    async def run(
        self,
        jobs: Iterable[Step[T]],
        *,
        done: Callable[[T], None],
        emit: Callable[[T], None],
        ticker: Callable[[], None],
    ) -> None:
        """Drive all jobs; `done` gets each result as it comes, `emit` in the order of the jobs. `ticker` is
        called once a second. Raises Interrupted after SIGINT or SIGTERM, RunStopped when going on makes no sense; both
        only after what was in flight has been stored (within `drain_s`)."""
        queue, ordered = enumerate(jobs), _Ordered(emit)
        loop = asyncio.get_running_loop()

        def told(number: int) -> None:
            loop.call_soon_threadsafe(self._interrupt, number)

        with interrupts.taken(told):
            clock = asyncio.create_task(self._tick(ticker))
            workers = [asyncio.create_task(self._work(queue, done, ordered)) for _ in range(self._window)]
            everything: asyncio.Future[Any] = asyncio.gather(*workers)
            stopping: asyncio.Future[Any] = asyncio.ensure_future(self._stopping.wait())
            await asyncio.wait({everything, stopping}, return_when=asyncio.FIRST_COMPLETED)
            for task in (*workers, stopping, clock):
                task.cancel()
            await self._drain()
            ended = await asyncio.gather(*workers, everything, stopping, clock, return_exceptions=True)
            self._store.sync()
        for error in ended:
            if isinstance(error, RunStopped):
                self._halt(error)
            elif isinstance(error, Exception):
                raise error
        if self._stop is not None:
            raise self._stop

    async def _drain(self) -> None:
        """After a stop: let requests that are out come back and be stored, for a while."""
        flights = [flight for flight in self._flights.values() if not flight.done()]
        if flights:
            await asyncio.wait(flights, timeout=self._drain_s)
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    async def _work(
        self, queue: Iterator[tuple[int, Step[T]]], done: Callable[[T], None], ordered: _Ordered[T]
    ) -> None:
        for number, step in queue:
            # A slow item must not let its finished successors pile up in memory.
            while number >= ordered.next + 32 * self._window:
                await asyncio.sleep(0.05)
            result = await self._drive(step)
            done(result)
            ordered.add(number, result)

    async def _drive(self, step: Step[T]) -> T:
        try:
            request = next(step)
            while True:
                try:
                    reply = await self._reply(request)
                except CallFailed as failure:
                    request = step.throw(failure)
                else:
                    request = step.send(reply)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _reply(self, request: ModelRequest) -> ModelReply:
        lane = self._lanes[request.role]
        call = lane.backend.prepare(request)
        if (stored := self._stored(lane, call.key)) is not None:
            return stored
        flight = self._flights.get(call.key)
        if flight is None:
            if self._stop is not None:
                raise self._stop
            flight = self._flights[call.key] = asyncio.create_task(self._fly(lane, call))
            flight.add_done_callback(lambda done: self._landed(call.key, done))
        else:
            self._meter.shared += 1
        # Shielded: an item that is cancelled must not take down a request that has been paid for.
        return await asyncio.shield(flight)

    def _landed(self, key: str, flight: asyncio.Task[ModelReply]) -> None:
        del self._flights[key]
        if not flight.cancelled():
            flight.exception()  # seen, even if the item that asked is gone

    def _stored(self, lane: _Lane[C], key: str) -> ModelReply | None:
        data = self._store.get(key)
        if data is None:
            return None
        reply = lane.backend.stamp(self._decode(data), key)
        self._meter.count_replayed(reply)
        return reply

    async def _fly(self, lane: _Lane[C], call: C) -> ModelReply:
        """Send one request and store its reply, as the only process on this machine to do so."""
        async with lane.slots:
            while not self._store.claim(call.key):
                if self._stop is not None:
                    raise self._stop  # what another process is asking is not ours to wait for
                await asyncio.sleep(0.05)
            try:
                if (stored := self._stored(lane, call.key)) is not None:
                    return stored  # another process got it meanwhile
                if self._stop is not None:
                    raise self._stop
                reply = await self._send(lane, call)
                self._store.put(call.key, self._encode(reply))
            except RunStopped as stop:
                self._halt(stop)
                raise
            finally:
                self._store.release(call.key)
        reply = lane.backend.stamp(reply, call.key)
        self._meter.count_sent(reply)
        return reply

    async def _send(self, lane: _Lane[C], call: C) -> ModelReply:
        self._meter.in_flight += 1
        try:
            reply = await lane.backend.send(call)
        except CallFailed as failure:
            self._meter.failures[failure.kind] += 1
            log.warning("a request failed for good, %s: %s", failure.kind, failure)
            lane.failed_in_a_row += 1
            if lane.failed_in_a_row >= GIVE_UP_AFTER:
                raise RunStopped(
                    f"{GIVE_UP_AFTER} requests in a row failed, the last with: {failure}. Replies so far are stored; "
                    "mend the cause and give the same command again."
                ) from failure
            raise
        finally:
            self._meter.in_flight -= 1
        lane.failed_in_a_row = 0
        return reply

    async def _tick(self, ticker: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(1.0)
            ticker()
            await asyncio.to_thread(self._store.sync)

    def _halt(self, stop: RunStopped) -> None:
        self._stop = self._stop or stop
        self._meter.stopping = True
        self._stopping.set()

    def _interrupt(self, number: int) -> None:
        if self._stop is not None:
            raise KeyboardInterrupt  # told twice: do not wait for what is in flight
        name = signal.Signals(number).name
        self._halt(Interrupted(number, f"Interrupted by {name}; give the same command again to go on from here."))


class _Ordered(Generic[T]):
    """Passes results on in the order of their numbers."""

    def __init__(self, emit: Callable[[T], None]) -> None:
        self.next = 0
        self._emit = emit
        self._early: dict[int, T] = {}

    def add(self, number: int, result: T) -> None:
        self._early[number] = result
        while self.next in self._early:
            self._emit(self._early.pop(self.next))
            self.next += 1
