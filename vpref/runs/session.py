"""Wiring: from settings to backends, store and driver, and one run of jobs through them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from urllib.parse import urlsplit

from vpref.backends import client
from vpref.backends.in_process import backend as in_process
from vpref.domain import Role, Step, is_simulated
from vpref.driver.meter import Meter
from vpref.driver.online import Driver
from vpref.driver.progress import ProgressView
from vpref.errors import ConfigError
from vpref.images import Gallery
from vpref.redaction import redact
from vpref.runs.folder import RunFolder
from vpref.settings import Api, ModelSettings, RunSettings, Serve, api_key
from vpref.store import CallStore

if TYPE_CHECKING:
    from vpref.serving.vllm import Server

T = TypeVar("T")
Backend: TypeAlias = client.Backend | in_process.Backend


@dataclass
class Session:
    """The models of a run, checked and reachable. `servers` says by role who answers; the simulator's address and
    the vLLM servers are there as far as a model wants them."""

    settings: RunSettings
    models: Mapping[Role, ModelSettings]
    gallery: Gallery
    simulator: str | None = None
    managed: Callable[[ModelSettings], Server] | None = None
    servers: dict[Role, str] = field(default_factory=dict)

    @property
    def simulated(self) -> bool:
        """Whether any reply will be made up."""
        return any(is_simulated(server) for server in self.servers.values())

    def backend(self, model: ModelSettings) -> Backend:
        """One model, behind a server or in this process; made inside the event loop that uses it."""
        images = client.Images(
            data_url=lambda digest: self.gallery.data_url(digest, model.image),
            encoding=self.gallery.encoding(model.image),
        )
        if model.api is Api.transformers:
            return in_process.Backend(model, images=images, memory=self.memory)
        addresses, check = model.addresses, None
        if model.serve is Serve.simulator and self.simulator is not None:
            addresses = (self.simulator,)
        if model.serve is Serve.managed and self.managed is not None:
            server = self.managed(model)
            addresses, check = (server.base_url,), server.check
        return client.Backend(model, addresses=addresses, key=api_key(model), images=images, check=check)

    @property
    def memory(self) -> Path:
        """Where the digests of checkpoints are kept."""
        return Path(self.settings.store.root) / "weights.json"

    def backends(self) -> dict[Role, Backend]:
        """One backend a role; roles played by equal models share it, and so its bound on requests at once."""
        made: list[Backend] = []
        by_role: dict[Role, Backend] = {}
        for role, model in self.models.items():
            backend = next((one for one in made if one.model == model), None)
            if backend is None:
                backend = self.backend(model)
                backend.server = self.servers.get(role, model.server)
                made.append(backend)
            by_role[role] = backend
        return by_role

    def probe(self) -> None:
        """Ask each server once who it is. Raises ConfigError before anything else is sent."""
        asyncio.run(self._probe())

    async def _probe(self) -> None:
        by_role = self.backends()
        distinct = {id(backend): backend for backend in by_role.values()}
        try:
            found = await asyncio.gather(*(backend.probe() for backend in distinct.values()))
        finally:
            for backend in distinct.values():
                await backend.close()
        for backend in distinct.values():
            for address in backend.passed_over if isinstance(backend, client.Backend) else ():
                told = f"No answer from {redact(address)}; the other base_urls are asked."
                print(told, file=sys.stderr, flush=True)
        identity = dict(zip(distinct, found, strict=True))
        self.servers |= {role: identity[id(backend)] for role, backend in by_role.items()}

    def run(
        self, jobs: Iterable[Step[T]], *, name: Callable[[T], str], emit: Callable[[T], None], meter: Meter
    ) -> None:
        """Drive the jobs to their end; `emit` gets the results in order, `name` says what each is counted as."""
        asyncio.run(self._run(jobs, name, emit, meter))

    async def _run(
        self, jobs: Iterable[Step[T]], name: Callable[[T], str], emit: Callable[[T], None], meter: Meter
    ) -> None:
        by_role, settings = self.backends(), self.settings.driver
        distinct = {id(backend): backend for backend in by_role.values()}.values()
        meter.troubles = [backend.troubles for backend in distinct]
        with (
            CallStore(Path(self.settings.store.root)) as store,
            ProgressView(meter, self.settings.verb, settings.progress, settings.every_s) as view,
        ):
            driver = Driver(
                by_role,
                store,
                meter,
                encode=client.encode_reply,
                decode=client.decode_reply,
                drain_s=settings.drain_s,
            )
            try:
                await driver.run(jobs, done=lambda result: meter.count_done(name(result)), emit=emit, ticker=view.tick)
            finally:
                for backend in distinct:
                    await backend.close()


@contextlib.contextmanager
def session(
    settings: RunSettings, models: Mapping[Role, ModelSettings], gallery: Gallery, folder: RunFolder
) -> Iterator[Session]:
    """A session with its keys and addresses checked, the simulator and vLLM running where a model wants them, and
    every server asked who it is (unless `dry_run`). Raises ConfigError before any request of the run is sent."""
    _check_store(Path(settings.store.root))
    for role, model in models.items():
        _check_address(model)
        if not settings.dry_run:  # what a run would cost is to be known before one has a key
            _check_key(role, model)
    with contextlib.ExitStack() as stack:
        made = Session(settings, models, gallery)
        if any(model.serve is Serve.simulator for model in models.values()):
            from vpref.simulator import profile_digest, running

            if settings.dry_run:
                digest = f"simulator/{profile_digest(settings.simulator)}"
                made.servers |= {role: digest for role, model in models.items() if model.serve is Serve.simulator}
            else:
                made.simulator = stack.enter_context(running(settings.simulator))
        if any(model.serve is Serve.managed for model in models.values()):
            _serve(made, stack, folder)
        if settings.dry_run:
            local = {role: model for role, model in models.items() if model.api is Api.transformers}
            made.servers |= {role: in_process.identity(model, made.memory) for role, model in local.items()}
        else:
            made.probe()
        yield made


def _serve(made: Session, stack: contextlib.ExitStack, folder: RunFolder) -> None:
    """Bring up the vLLM servers, unless the run is a dry one; who will answer is known without them."""
    from vpref.runs.serving import brought_up
    from vpref.serving.identity import identity

    managed = {role: model for role, model in made.models.items() if model.serve is Serve.managed}
    made.servers |= {role: identity(model, made.memory) for role, model in managed.items()}
    if not made.settings.dry_run:
        made.managed = stack.enter_context(brought_up(managed.values(), folder, made.settings.driver))


def _check_store(root: Path) -> None:
    try:
        root.mkdir(parents=True, exist_ok=True)
        writable = os.access(root, os.W_OK | os.X_OK)
    except OSError:
        writable = False
    if not writable:
        raise ConfigError(f"The call store cannot be kept in {root}, no folder that can be written; set store.root.")


def _check_key(role: Role, model: ModelSettings) -> None:
    if role is Role.EXTRACTOR:
        api_key(model, "leave what direct matching cannot read unmatched (model@extractor=null)")
    else:
        place = role.value if role in (Role.EVALUATED, Role.MAPPER) else "pipeline.model"
        api_key(model, f"choose another model (model@{place}=simulator runs without a key)")


def _check_address(model: ModelSettings) -> None:
    for address in model.addresses:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"base_url {address!r} of model {model.name!r} is no address like http://host:8000/v1.")
