"""The simulator in the guise of services that speak OpenAI's Chat Completions in their own way.

What a service refuses is refused here, with its status and in its shape; what it ignores is ignored. Facts come from
the services' documents and from users' reports, named where they are used; what is marked [unchecked] is a guess that
no source at hand confirms. Of keys the simulator knows no more than that one which begins with `wrong` is wrong, and
that one which begins with `empty` has no credit left. Refuses to know what is said in reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vpref.settings import Service

Body = dict[str, Any]
_MOST_IMAGE_BYTES = 5 * 2**20

_PREFIXES = {
    Service.openrouter: "/api/v1",
    Service.gemini: "/v1beta/openai",
}
_NAMES = {
    Service.openrouter: ("qwen/qwen3-vl-8b-instruct", "openai/gpt-4.1", "google/gemini-2.5-flash"),
    Service.gemini: ("gemini-3-flash-preview", "gemini-2.5-flash"),
    Service.anthropic: ("claude-opus-4-6", "claude-sonnet-4-5"),
    Service.ollama: ("qwen3-vl:8b", "llava:latest"),
    Service.lm_studio: ("qwen/qwen3-vl-8b", "google/gemma-3-12b"),
}
_HOSTED = (Service.openrouter, Service.gemini, Service.anthropic)


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer in place of a reply."""

    status: int
    body: Any


class Refused(Exception):
    """The service would not take this request; `kind` is its own name for why, `more` goes into the error's body."""

    def __init__(self, status: int, message: str, kind: str = "", **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.more = more


@dataclass(frozen=True, slots=True)
class Guise:
    """One service's manners. `names` are models that it has besides those it always has here."""

    service: Service
    names: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        """Where its API lies on its host."""
        return _PREFIXES.get(self.service, "/v1")

    @property
    def worn(self) -> bool:
        return self.service is not Service.none

    def error(self, refused: Refused) -> Answer:
        return Answer(refused.status, _SHAPES[self.service](refused))

    def listing(self, key: str) -> Answer:
        """What GET /models gives."""
        try:
            if self.service is Service.anthropic:
                # Its list wants `x-api-key` and `anthropic-version` and no Bearer (docs, GET /v1/models; the answer
                # without the first as reported in QwenLM/qwen-code#3799).
                raise Refused(401, "x-api-key header is required", "authentication_error")
            if self.service is Service.gemini:  # OpenRouter's list is open to all
                _check_key(self.service, key)
        except Refused as refused:
            return self.error(refused)
        lead = "models/" if self.service is Service.gemini else ""
        data = [{"id": f"{lead}{name}", "object": "model", "owned_by": "simulated"} for name in self._known()]
        return Answer(200, {"object": "list", "data": data})

    def check(self, body: Body, key: str) -> None:
        """Raises Refused where the service would not take the request."""
        if self.service in _HOSTED:
            _check_key(self.service, key)
        if self.worn:
            _check_model(self.service, str(body.get("model")), self._known())
            _CHECKS[self.service](body)

    def heard(self, body: Body) -> Body:
        """The request without what the service ignores."""
        ignored = _ANTHROPIC_IGNORES if self.service is Service.anthropic else ()
        return {name: value for name, value in body.items() if name not in ignored}

    def withheld(self, written: Body) -> Answer:
        """The answer where a reply, written in OpenAI's way as a refusal, is withheld."""
        if not self.worn:
            return Answer(200, written)
        choice = written["choices"][0]
        words = choice["message"].pop("refusal")
        if self.service is Service.openrouter:  # docs, Errors: moderation
            why = {"reasons": ["simulated"], "flagged_input": "...", "provider_name": "simulated"}
            told = "Your chosen model requires moderation and your input was flagged"
            return self.error(Refused(403, told, metadata=why))
        if self.service is Service.gemini:
            # No content, and Gemini's own word for why (HKUDS/Vibe-Trading#308 lists reports).
            del choice["message"]["content"]
            choice["finish_reason"] = "SAFETY"
        else:  # models that nothing filters say no in words; so does Claude through this API [unchecked]
            choice["message"]["content"] = words
        return Answer(200, written)

    def broken(self) -> Answer:
        """A failure on the service's side. OpenRouter tells one of a provider's under status 200 (docs, Errors)."""
        told = self.error(Refused(502, "The simulator was told to fail here.", "api_error"))
        return Answer(200, told.body) if self.service is Service.openrouter else Answer(500, told.body)

    def _known(self) -> list[str]:
        return list(dict.fromkeys([*_NAMES[self.service], *self.names]))


# --- the shapes of errors --------------------------------------------------------------------------------


def _openai(refused: Refused) -> Body:
    return {"error": {"message": str(refused), "type": refused.kind, "param": None, "code": None} | refused.more}


def _openrouter(refused: Refused) -> Body:
    return {"error": {"message": str(refused), "code": refused.status} | refused.more, "user_id": "user_simulated"}


def _gemini(refused: Refused) -> list[Body]:
    """In a list, as many reports have it (Vali-98/ChatterUI#227)."""
    return [{"error": {"code": refused.status, "message": str(refused), "status": refused.kind} | refused.more}]


def _lm_studio(refused: Refused) -> Body:
    return {"error": str(refused)}


_SHAPES: Mapping[Service, Callable[[Refused], Any]] = {
    Service.none: _openai,
    Service.openrouter: _openrouter,
    Service.gemini: _gemini,
    Service.anthropic: _openai,  # "consistent error formats with the OpenAI API" (docs)
    Service.ollama: _openai,
    Service.lm_studio: _lm_studio,
}

# --- what is refused -------------------------------------------------------------------------------------


def _check_key(service: Service, key: str) -> None:
    if key.startswith("empty"):
        if service is Service.openrouter:
            raise Refused(402, "Insufficient credits. Add more using https://openrouter.ai/credits")
        if service is Service.anthropic:
            told = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
            raise Refused(400, told, "invalid_request_error")
    if key and not key.startswith("wrong"):
        return
    if service is Service.gemini:
        why = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
        raise Refused(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT", details=why)
    told = "No auth credentials found" if service is Service.openrouter else "Invalid bearer token"  # [unchecked]
    raise Refused(401, told, "authentication_error")


def _check_model(service: Service, name: str, known: list[str]) -> None:
    if service is Service.gemini and name.removeprefix("models/") not in known:
        told = f"models/{name} is not found for API version v1main, or is not supported for generateContent."
        raise Refused(404, told, "NOT_FOUND")
    if service is Service.openrouter and name.partition(":")[0] not in known:
        raise Refused(400, f"{name} is not a valid model ID")  # maxnowack/anthropic-proxy#4
    if service is Service.anthropic and name not in known:
        raise Refused(404, f"model: {name}", "not_found_error")
    if service is Service.ollama and name not in known and f"{name}:latest" not in known:
        raise Refused(404, f'model "{name}" not found, try pulling it first', "not_found_error")  # ollama's server
    if service is Service.lm_studio and name not in known:
        raise Refused(404, f"Model {name} not found. Load it, or turn on just-in-time loading.")  # [unchecked]


_GEMINI_TAKES = frozenset(
    {
        *("model", "messages", "max_tokens", "max_completion_tokens", "n", "temperature", "top_p", "stop", "stream"),
        *("stream_options", "tools", "tool_choice", "response_format", "reasoning_effort", "extra_body"),
    }
)
"""Reported as refused: seed, frequency_penalty (Vali-98/ChatterUI#227), reasoning, top_k
(MinLL/SkyrimNet-GamePlugin#77), web_search_options (FuzzAnything/PromptFuzz#42). Others not listed [unchecked]."""

_ANTHROPIC_IGNORES = frozenset(
    {
        *("logprobs", "metadata", "response_format", "prediction", "presence_penalty", "frequency_penalty", "seed"),
        *("service_tier", "audio", "logit_bias", "store", "user", "modalities", "top_logprobs", "reasoning_effort"),
    }
)
"""Docs, OpenAI SDK compatibility: the table of simple fields. An image's `detail` is ignored as well."""


def _images(body: Body) -> Iterator[str]:
    for message in body.get("messages") or ():
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            image = part.get("image_url")
            if image is not None:
                yield str(image.get("url") if isinstance(image, dict) else image)


def _check_gemini(body: Body) -> None:
    unknown = [name for name in body if name not in _GEMINI_TAKES]
    if unknown:
        told = (f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.' for name in unknown)
        raise Refused(400, "\n".join(told), "INVALID_ARGUMENT")
    if not all(url.startswith("data:image/") for url in _images(body)):  # docs show base64 alone [unchecked]
        raise Refused(400, "Invalid image URL: only base64 data URLs are supported.", "INVALID_ARGUMENT")


def _check_anthropic(body: Body) -> None:
    if body.get("n", 1) != 1:  # docs: must be exactly 1
        raise Refused(400, "n: must be 1", "invalid_request_error")
    for url in _images(body):
        size = len(url.partition(",")[2]) * 3 // 4
        if size > _MOST_IMAGE_BYTES:  # docs, Vision: 5 MB an image; the words [unchecked]
            told = f"image exceeds 5 MB maximum: {size} bytes > {_MOST_IMAGE_BYTES} bytes"
            raise Refused(400, told, "invalid_request_error")


def _check_ollama(body: Body) -> None:
    """Fields that it does not know it ignores, `max_completion_tokens` among them (docs list what it knows)."""
    kinds = tuple(f"data:image/{kind};base64," for kind in ("jpeg", "jpg", "png", "webp"))
    if not all(url.startswith(kinds) for url in _images(body)):
        raise Refused(400, "invalid image input", "invalid_request_error")  # ollama/ollama#6753, #7247


def _check_lm_studio(body: Body) -> None:
    kind = (body.get("response_format") or {}).get("type", "text")
    if kind not in ("json_schema", "text"):  # LoadShine/tada#16
        raise Refused(400, "'response_format.type' must be 'json_schema' or 'text'")
    kinds = tuple(f"data:image/{kind};base64," for kind in ("jpeg", "jpg", "png"))
    if not all(url.startswith(kinds) for url in _images(body)):  # WebP too: lmstudio-ai/lmstudio-bug-tracker#1752
        raise Refused(400, "'url' field must be a base64 encoded image.")


_CHECKS: Mapping[Service, Callable[[Body], None]] = {
    # OpenRouter leaves out what a model does not take, unless provider.require_parameters is set (docs, Routing).
    Service.openrouter: lambda body: None,
    Service.gemini: _check_gemini,
    Service.anthropic: _check_anthropic,
    Service.ollama: _check_ollama,
    Service.lm_studio: _check_lm_studio,
}
