"""One model behind an OpenAI-compatible server, by OpenAI's SDK.

The SDK owns transport retries (backoff, Retry-After), timeouts and authentication. Its typed calls are passed
by: the body is made of bytes already encoded, so that an image is never encoded twice or walked by a JSON
encoder. Foreign errors end here, as CallFailed (this request) or RunStopped (every request). Refuses to know
about items, stores and progress.
"""

from __future__ import annotations

import asyncio
import difflib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vpref.backends import complaints, wire
from vpref.backends.complaints import Complaint, Kind
from vpref.backends.servers import Servers, affinity
from vpref.domain import ModelReply, ModelRequest, Usage
from vpref.errors import CallFailed, ConfigError, Misconfigured, RunStopped, VprefError
from vpref.redaction import redact
from vpref.settings import ModelSettings

if TYPE_CHECKING:
    import httpx2
    import openai

_CONFIG_S = frozenset({Kind.KEY, Kind.MODEL, Kind.IMAGES, Kind.SCHEMA, Kind.PARAMETER})
_FIRST_WAIT_S = 0.5


SIMULATED = "x-vpref-simulator"
"""The header by which the simulator tells its profile where the body of its answer is another service's."""


@dataclass(frozen=True, slots=True)
class Images:
    """What a backend needs of images: the data URL of a digest, and the name of how it is encoded."""

    data_url: Callable[[str], bytes]
    encoding: str


class _Unreachable(ConfigError):
    """No server there, or none that answers."""


class Backend:
    """Sends one model's requests, to one of its `addresses` (none: the SDK's own). `troubles` counts transport faults
    by kind, retried ones included; `passed_over` are servers that the probe did not find. `check` raises where a
    failed connection means that the server is gone for good.
    """

    def __init__(
        self,
        model: ModelSettings,
        *,
        addresses: Sequence[str],
        key: str,
        images: Images,
        check: Callable[[], None] | None = None,
    ) -> None:
        import httpx2

        from vpref.backends.http import CountingClient, LeanOpenAI, SpreadingClient

        self.model = model
        self.server = model.server
        self.troubles: Counter[str] = Counter()
        self.passed_over: list[str] = []
        self._images = images
        self._check = check
        self._servers = Servers(addresses)
        self._raw = httpx2.Response
        self._answered = False
        concurrency = model.limits.concurrency
        options: dict[str, Any] = {
            "limits": httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency),
            # Certificates take a twentieth of a second to load, and are of no use to a plain address.
            "verify": not addresses or any(not one.startswith("http://") for one in addresses),
        }
        several, path = len(addresses) > 1, wire.PATHS[model.api]
        self._client = LeanOpenAI(
            api_key=key,
            base_url=next(iter(addresses), None),
            max_retries=model.limits.retries,
            timeout=httpx2.Timeout(model.limits.timeout_s, connect=min(10.0, model.limits.timeout_s)),
            http_client=SpreadingClient(self.troubles, self._servers, path, **options)
            if several
            else CountingClient(self.troubles, **options),
        )
        self._url = f"{self._client.base_url}".rstrip("/") + path  # whole: a path is merged each time

    @property
    def concurrency(self) -> int:
        return self.model.limits.concurrency

    def prepare(self, request: ModelRequest) -> wire.WireCall:
        """The request's key and body."""
        return wire.prepare(request, self.model, self.server, self._images.encoding)

    async def send(self, call: wire.WireCall) -> ModelReply:
        """Send and wait for the completed reply. Raises CallFailed when it failed for good, RunStopped when
        every further request would fail too."""
        import openai

        affinity.set(call.pictures[0] if call.pictures else call.key)
        data_urls = {digest: self._images.data_url(digest) for digest in call.pictures}
        body = call.spliced(data_urls, self._images.encoding)
        # A server may use the key to tell a retry from a new request; the simulator, two samples of one prompt.
        options: Any = {"headers": {"content-type": "application/json", "Idempotency-Key": call.key}}
        attempt = 0
        while True:
            try:
                response = await self._client.post(self._url, content=body, cast_to=self._raw, options=options)
            except openai.OpenAIError as error:
                return self._refusal_or_raise(error)
            complaint = self._complaint_inside(response)
            if complaint is None:
                reply = wire.read(response.content, self.model.api, call.options)
                self._answered = True
                return reply
            # Such a failure has status 200, so that the SDK does not see it.
            self.troubles[f"inside_{complaint.status}"] += 1
            if not complaint.passing or attempt == self.model.limits.retries:
                return self._refusal_or_failure(complaint)
            await asyncio.sleep(_FIRST_WAIT_S * min(2**attempt, 16))
            attempt += 1

    def _complaint_inside(self, response: httpx2.Response) -> Complaint | None:
        # The word alone is looked for first: parsing every reply twice would cost more than all else here.
        return complaints.inside(response.content) if b'"error"' in response.content else None

    def stamp(self, reply: ModelReply, key: str) -> ModelReply:
        """The reply with what is not stored with it: its key, who answered, and its price by today's config."""
        return reply.model_copy(update={"key": key, "server": self.server, "usd": cost(self.model, reply.usage)})

    async def close(self) -> None:
        await self._client.close()

    async def probe(self) -> str:
        """Ask the server once who it is, before anything else is sent: is it there, does it take the key, has
        it the model? Returns its identity: `simulator/<profile>` when it says so, else the configured one. Of
        several servers those that do not answer are passed over.

        Raises ConfigError in one sentence otherwise.
        """
        found: dict[str, str] = {}
        unreachable: _Unreachable | None = None
        for address in self._servers.addresses or (f"{self._client.base_url}",):
            try:
                found[address] = await self._probe(address.rstrip("/"))
            except _Unreachable as error:
                unreachable = error
                self._servers.gone(address)
                self.passed_over.append(address)
        if unreachable is not None and not found:
            raise unreachable
        if len(set(found.values())) > 1:
            told = ", ".join(f"{address} is {who}" for address, who in found.items())
            raise ConfigError(f"The base_urls of model {self.model.name!r} are not of one model: {told}.")
        return next(iter(found.values()))

    async def _probe(self, where: str) -> str:
        import openai

        asking = self._client.with_options(max_retries=1, timeout=15.0)
        try:
            response = await asking.get(f"{where}/models", cast_to=self._raw)
        except openai.APIStatusError as error:
            return self._unlisted(error, where)
        except openai.APIConnectionError as error:
            raise _Unreachable(
                f"No answer from {where} for model {self.model.name!r} ({_cause(error)}); start the "
                "server, or check base_url in the model's config."
            ) from error
        return self._identity(response, where)

    def _unlisted(self, error: openai.APIStatusError, where: str) -> str:
        """Who answers, where the list of models is refused: many compatible servers have none, or want it asked
        for in their own way."""
        complaint = complaints.read(error.status_code, error.response.content)
        if "header is required" not in complaint.said and error.status_code not in (404, 405, 501):
            if complaint.kind is Kind.KEY:
                raise ConfigError(
                    f"{where} refused model {self.model.name!r}'s key ({error.status_code}: {complaint.said}); "
                    f"{self._key_hint()}."
                ) from error
            raise ConfigError(f"{where} answers with HTTP {error.status_code}: {complaint.said}.") from error
        return self._who(error.response)

    def _who(self, response: httpx2.Response) -> str:
        profile = response.headers.get(SIMULATED)
        return f"simulator/{profile}" if profile else self.server

    def _identity(self, response: httpx2.Response, where: str) -> str:
        try:
            value = response.json()
            profile = (value.get("vpref_simulator") or {}).get("profile")
            names = [one["id"] for one in value.get("data") or []]
        except (ValueError, TypeError, KeyError, AttributeError):
            return self.server
        if profile is not None:
            return f"simulator/{profile}"  # it answers for any model
        if names and not any(_same_model(self.model.name, listed) for listed in names):
            near = difflib.get_close_matches(self.model.name, names, n=5, cutoff=0.3) or sorted(names)[:8]
            raise ConfigError(
                f"{where} does not serve model {self.model.name!r}; it lists {', '.join(near)}"
                f"{f' and {len(names) - len(near)} more' if len(names) > len(near) else ''}. Set the model's name to "
                "one of these."
            )
        return self._who(response)

    def _refusal_or_raise(self, error: openai.OpenAIError) -> ModelReply:
        """A request that the provider's policy turns down is a refusal, thus a reply; all else is raised."""
        import httpx2
        import openai

        # The SDK reports a connection that broke while connecting or waiting as a timeout of connecting.
        timed_out = isinstance(error, openai.APITimeoutError) and not isinstance(error.__cause__, httpx2.ConnectTimeout)
        if timed_out:
            raise CallFailed("timeout", f"no reply within {self.model.limits.timeout_s:g} s") from error
        if isinstance(error, openai.APIConnectionError):
            if self._check is not None:
                self._check()
            raise CallFailed("connection", f"the connection failed: {_cause(error)}") from error
        if not isinstance(error, openai.APIStatusError):
            raise CallFailed("client", redact(str(error))) from error
        complaint = complaints.read(error.status_code, error.response.content)
        return self._refusal_or_failure(complaint, error)

    def _refusal_or_failure(self, complaint: Complaint, cause: Exception | None = None) -> ModelReply:
        if complaint.kind is Kind.BLOCKED:
            return ModelReply(text=complaint.said, finish="refusal", model=self.model.name)
        raise self._failure(complaint) from cause

    def _failure(self, complaint: Complaint) -> VprefError:
        """What the complaint means for the run: config that no request can pass stops it at once. After a first
        answer a schema, parameter or image cannot be to blame for all."""
        kind, told = complaint.kind, f"(HTTP {complaint.status}: {complaint.said})"
        if kind is Kind.CREDIT:
            return RunStopped(
                f"The credit of model {self.model.name!r}'s key is spent {told}; add some and give the same command "
                "again, replies so far are stored."
            )
        if kind in (Kind.KEY, Kind.MODEL) or (kind in _CONFIG_S and not self._answered):
            return Misconfigured(f"The server refuses {self._way_out(complaint, told)}.")
        name = kind.value if kind in (Kind.TOO_LONG, Kind.IMAGE) else f"http_{complaint.status}"
        return CallFailed(name, complaint.said)

    def _way_out(self, complaint: Complaint, told: str) -> str:
        name = f"model {self.model.name!r}"
        match complaint.kind:
            case Kind.KEY:
                return f"{name}'s key {told}; {self._key_hint()}"
            case Kind.MODEL:
                return (
                    f"{name}, or its API {told}; set name in the model's config to one that it serves, or mend base_url"
                )
            case Kind.IMAGES:
                return f"images for {name} {told}; choose a vision model"
            case Kind.SCHEMA:
                return f"the reply's JSON schema for {name} {told}; set structured=prompt in the model's config"
            case _:
                what = f"parameter {complaint.parameter!r}" if complaint.parameter else "a parameter"
                return f"{what} for {name} {told}; take it out of params in the model's config"

    def _key_hint(self) -> str:
        name = self.model.api_key_env
        return f"check the key in {name}" if name else "set api_key_env to the variable that holds the key"


def cost(model: ModelSettings, usage: Usage) -> float | None:
    """US dollars for these tokens by the model's config; None where it tells no price."""
    price = model.price
    if price.input is None or price.output is None:
        return None
    cached = price.input if price.cached is None else price.cached
    fresh = usage.input - usage.cached
    return (fresh * price.input + usage.cached * cached + usage.output * price.output) / 1e6


def encode_reply(reply: ModelReply) -> bytes:
    """The reply as it is stored: what the model said, how it ended, what it used."""
    told = {"text", "finish", "model", "usage"} | ({"probabilities"} if reply.probabilities else set())
    return reply.model_dump_json(include=told).encode()


def decode_reply(data: bytes) -> ModelReply:
    return ModelReply.model_validate_json(data)


def _same_model(name: str, listed: str) -> bool:
    """Servers list what they take by a shorter name too (`llava:latest`, `models/gemini-...`), and take names with
    an addition (OpenRouter's `some/model:nitro`)."""
    return listed in (name, name.partition(":")[0]) or listed.startswith(f"{name}:") or listed.endswith(f"/{name}")


def _cause(error: BaseException) -> str:
    cause = error.__cause__ or error
    return " ".join(str(cause).replace(" ssl:default", "").split())[:200] or type(cause).__name__
