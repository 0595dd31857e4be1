"""One checkpoint behind the driver's interface: requests come in by asyncio, and go in batches to one thread.

The checkpoint is loaded at the first request that is not stored, so that a run replayed from the store loads
nothing. Refuses to know about torch, items, stores and progress.
"""

from __future__ import annotations

import asyncio
import importlib.util
import threading
from base64 import b64decode
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from vpref import weights
from vpref.backends import wire
from vpref.backends.client import Images, cost
from vpref.backends.in_process.body import Question, question
from vpref.domain import ModelReply, ModelRequest
from vpref.errors import CallFailed, ConfigError, VprefError
from vpref.settings import ModelSettings

if TYPE_CHECKING:
    from vpref.backends.in_process.checkpoint import Checkpoint

_GATHER_S = 0.01
"""How long a batch waits for company: what a round of the event loop brings, nothing beside a forward pass."""


def identity(model: ModelSettings, memory: Path) -> str:
    """Who answers: the configured server and the checkpoint's content or name (see `vpref.weights`)."""
    return f"{model.server}/{weights.identity(model.name, model.in_process.revision, memory)}"


class Backend:
    """Answers one model's requests in this process. `troubles` counts batches that did not fit into memory."""

    def __init__(self, model: ModelSettings, *, images: Images, memory: Path) -> None:
        self.model = model
        self.server = model.server
        self.troubles: Counter[str] = Counter()
        self._images = images
        self._memory = memory
        self._waiting: list[tuple[Question, asyncio.Future[ModelReply]]] = []
        self._running: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "vpref-checkpoint")
        self._stopping = threading.Event()
        self._checkpoint: Checkpoint | None = None

    @property
    def concurrency(self) -> int:
        return 2 * self.model.in_process.batch_size  # the next batch waits while one is answered

    def prepare(self, request: ModelRequest) -> wire.WireCall:
        """The request's key and body."""
        return wire.prepare(request, self.model, self.server, self._images.encoding)

    async def probe(self) -> str:
        """Who answers. Raises ConfigError where the packages or the checkpoint's folder are not there; a name on
        the hub is looked up when the checkpoint is loaded."""
        missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
        if missing:
            raise ConfigError(
                f"Model {self.model.name!r} runs in this process and needs {' and '.join(missing)}: "
                "pip install 'vpref[hf]'."
            )
        return await asyncio.to_thread(identity, self.model, self._memory)

    async def send(self, call: wire.WireCall) -> ModelReply:
        """Wait for the reply of the batch that the call gets into. Raises CallFailed where this call cannot be
        answered, ConfigError or RunStopped where none can."""
        images = tuple(b64decode(self._images.data_url(digest).partition(b",")[2]) for digest in call.pictures)
        future: asyncio.Future[ModelReply] = asyncio.get_running_loop().create_future()
        self._waiting.append((question(call.body, call.key, images), future))
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        return await future

    def stamp(self, reply: ModelReply, key: str) -> ModelReply:
        """The reply with what is not stored with it: its key, who answered, and its price by today's config."""
        return reply.model_copy(update={"key": key, "server": self.server, "usd": cost(self.model, reply.usage)})

    async def close(self) -> None:
        """What is being answered ends at its next token, and is lost."""
        self._stopping.set()
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            await asyncio.sleep(_GATHER_S)
            batch = self._next_batch()
            if not batch:
                return  # all who asked are gone
            try:
                answers = await loop.run_in_executor(self._thread, self._answer, [one for one, _ in batch])
            except Exception as error:
                self._fail([*batch, *self._waiting], error)
                self._waiting.clear()
                return
            for (_, future), answer in zip(batch, answers, strict=True):
                _settle(future, answer)

    def _next_batch(self) -> list[tuple[Question, asyncio.Future[ModelReply]]]:
        self._waiting = [(one, future) for one, future in self._waiting if not future.done()]
        kind = self._waiting[0][0].kind if self._waiting else None
        alike = [pair for pair in self._waiting if pair[0].kind == kind]
        batch = alike[: self.model.in_process.batch_size]
        taken = {id(future) for _, future in batch}
        self._waiting = [pair for pair in self._waiting if id(pair[1]) not in taken]
        return batch

    def _answer(self, questions: list[Question]) -> list[ModelReply | CallFailed]:
        """In the thread: load what is not loaded yet, and answer."""
        if self._checkpoint is None:
            from vpref.backends.in_process.checkpoint import Checkpoint

            self._checkpoint = Checkpoint(self.model, self.troubles, self._stopping)
        return self._checkpoint.answer(questions)

    def _fail(self, pairs: list[tuple[Question, asyncio.Future[ModelReply]]], error: Exception) -> None:
        for _, future in pairs:
            if not future.done():
                future.set_exception(error)


def _settle(future: asyncio.Future[ModelReply], answer: ModelReply | VprefError) -> None:
    if future.done():
        return  # who asked is gone
    if isinstance(answer, VprefError):
        future.set_exception(answer)
    else:
        future.set_result(answer)
