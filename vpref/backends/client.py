"""One model behind an OpenAI-compatible server, by OpenAI's SDK.

The SDK owns transport retries (backoff, Retry-After), timeouts and authentication. Its typed calls are passed
by: the body is made of bytes already encoded, so that an image is never encoded twice or walked by a JSON
encoder. Foreign errors end here, as CallFailed (this request) or RunStopped (every request). Refuses to know
about items, stores and progress.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vpref.backends import wire
from vpref.domain import ModelReply, ModelRequest, Usage
from vpref.errors import CallFailed, ConfigError, RunStopped, VprefError
from vpref.redaction import redact
from vpref.settings import ModelSettings

if TYPE_CHECKING:
    import httpx2
    import openai

_POLICY = frozenset({"content_policy_violation", "content_filter", "moderation_blocked"})


@dataclass(frozen=True, slots=True)
class Images:
    """What a backend needs of images: the data URL of a digest, and the name of how it is encoded."""

    data_url: Callable[[str], bytes]
    encoding: str


class Backend:
    """Sends one model's requests. `troubles` counts transport faults by kind, retried ones included."""

    def __init__(self, model: ModelSettings, *, base_url: str | None, key: str, images: Images) -> None:
        import httpx2

        from vpref.backends.http import CountingClient, LeanOpenAI

        self.model = model
        self.server = model.server
        self.troubles: Counter[str] = Counter()
        self._images = images
        self._raw = httpx2.Response
        concurrency = model.limits.concurrency
        self._client = LeanOpenAI(
            api_key=key,
            base_url=base_url,
            max_retries=model.limits.retries,
            timeout=httpx2.Timeout(model.limits.timeout_s, connect=min(10.0, model.limits.timeout_s)),
            http_client=CountingClient(
                self.troubles,
                limits=httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency),
                # Certificates take a twentieth of a second to load, and are of no use to a plain address.
                verify=not (base_url or "").startswith("http://"),
            ),
        )
        self._url = f"{self._client.base_url}".rstrip("/") + wire.PATHS[model.api]  # whole: a path is merged each time

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

        data_urls = {digest: self._images.data_url(digest) for digest in call.pictures}
        body = call.spliced(data_urls, self._images.encoding)
        # A server may use the key to tell a retry from a new request; the simulator, two samples of one prompt.
        options: Any = {"headers": {"content-type": "application/json", "Idempotency-Key": call.key}}
        try:
            response = await self._client.post(self._url, content=body, cast_to=self._raw, options=options)
        except openai.OpenAIError as error:
            return self._refusal_or_raise(error)
        return wire.read(response.content, self.model.api, call.options)

    def stamp(self, reply: ModelReply, key: str) -> ModelReply:
        """The reply with what is not stored with it: its key, who answered, and its price by today's config."""
        return reply.model_copy(update={"key": key, "server": self.server, "usd": cost(self.model, reply.usage)})

    async def close(self) -> None:
        await self._client.close()

    async def probe(self) -> str:
        """Ask the server once who it is, before anything else is sent: is it there, does it take the key, has
        it the model? Returns its identity: `simulator/<profile>` when it says so, else the configured one.

        Raises ConfigError in one sentence otherwise.
        """
        import openai

        where = f"{self._client.base_url}".rstrip("/")
        try:
            response = await self._client.with_options(max_retries=1, timeout=15.0).get("/models", cast_to=self._raw)
        except openai.APIStatusError as error:
            if error.status_code in (401, 403):
                name = self.model.api_key_env
                hint = f"check the key in {name}" if name else "set api_key_env to the variable that holds the key"
                raise ConfigError(
                    f"{where} refused model {self.model.name!r}'s key ({error.status_code}); {hint}."
                ) from error
            if error.status_code in (404, 405, 501):
                return self.server  # many compatible servers list no models
            raise ConfigError(f"{where} answers with HTTP {error.status_code}: {self._said(error)}.") from error
        except openai.APIConnectionError as error:
            raise ConfigError(
                f"No answer from {where} for model {self.model.name!r} ({_cause(error)}); start the "
                "server, or check base_url in the model's config."
            ) from error
        return self._identity(response, where)

    def _identity(self, response: httpx2.Response, where: str) -> str:
        try:
            value = response.json()
            profile = (value.get("vpref_simulator") or {}).get("profile")
            names = [one["id"] for one in value.get("data") or []]
        except (ValueError, TypeError, KeyError, AttributeError):
            return self.server
        if profile is not None:
            return f"simulator/{profile}"
        if names and not any(_same_model(self.model.name, listed) for listed in names):
            raise ConfigError(
                f"{where} does not serve model {self.model.name!r}; it lists {', '.join(sorted(names)[:8])}. Set the "
                "model's name to one of these."
            )
        return self.server

    def _refusal_or_raise(self, error: openai.OpenAIError) -> ModelReply:
        """A request that the provider's policy turns down is a refusal, thus a reply; all else is raised."""
        import httpx2
        import openai

        # The SDK reports a connection that broke while connecting or waiting as a timeout of connecting.
        timed_out = isinstance(error, openai.APITimeoutError) and not isinstance(error.__cause__, httpx2.ConnectTimeout)
        if timed_out:
            raise CallFailed("timeout", f"no reply within {self.model.limits.timeout_s:g} s") from error
        if isinstance(error, openai.APIConnectionError):
            raise CallFailed("connection", f"the connection failed: {_cause(error)}") from error
        if not isinstance(error, openai.APIStatusError):
            raise CallFailed("client", redact(str(error))) from error
        if error.code in _POLICY:
            return ModelReply(text=self._said(error), finish="refusal", model=self.model.name)
        raise self._status_failure(error) from error

    def _status_failure(self, error: openai.APIStatusError) -> VprefError:
        status, said = error.status_code, self._said(error)
        if status in (401, 403):
            return RunStopped(f"The server refused model {self.model.name!r}'s key (HTTP {status}: {said}).")
        if status == 404:
            return RunStopped(f"The server does not know model {self.model.name!r} or its API (HTTP 404: {said}).")
        if status == 429 and error.code == "insufficient_quota":
            return RunStopped(f"The quota of model {self.model.name!r}'s key is spent (HTTP 429: {said}).")
        return CallFailed(f"http_{status}", said)

    def _said(self, error: openai.APIStatusError) -> str:
        body = error.body if isinstance(error.body, dict) else {}
        text = str(body.get("message") or error.response.text or error.message)
        return redact(" ".join(text.split())[:300]).rstrip(".")


def cost(model: ModelSettings, usage: Usage) -> float:
    """US dollars for these tokens by the model's config."""
    price = model.price
    fresh = usage.input - usage.cached
    return (fresh * price.input + usage.cached * price.cached + usage.output * price.output) / 1e6


def encode_reply(reply: ModelReply) -> bytes:
    """The reply as it is stored: what the model said, how it ended, what it used."""
    told = {"text", "finish", "model", "usage"} | ({"probabilities"} if reply.probabilities else set())
    return reply.model_dump_json(include=told).encode()


def decode_reply(data: bytes) -> ModelReply:
    return ModelReply.model_validate_json(data)


def _same_model(name: str, listed: str) -> bool:
    """Servers list what they take by a shorter name too: `llava:latest`, `models/gemini-...`."""
    return listed == name or listed.startswith(f"{name}:") or listed.endswith(f"/{name}")


def _cause(error: BaseException) -> str:
    cause = error.__cause__ or error
    return " ".join(str(cause).replace(" ssl:default", "").split())[:200] or type(cause).__name__
