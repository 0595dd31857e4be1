"""How to reach models, and which plays which role."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from vpref.domain import Role
from vpref.settings.base import MISSING, require
from vpref.settings.serving import VllmSettings


class Api(Enum):
    """Endpoint family: OpenAI's Responses, or Chat Completions as many servers speak it; or none, where a checkpoint
    is run in this process by Hugging Face `transformers`."""

    responses = "responses"
    chat = "chat"
    transformers = "transformers"


class Structured(Enum):
    """How a reply's JSON schema reaches the model: enforced by the server (`strict`), passed on without
    the strict flag (`json_schema`), or only told in the prompt (`prompt`)."""

    strict = "strict"
    json_schema = "json_schema"
    prompt = "prompt"


class Constrain(Enum):
    """How an answer is bound to the letters a-d: by a JSON schema, as `structured` has it, or by vLLM's
    `structured_outputs`, which leaves the model one token to say."""

    schema = "schema"
    structured_outputs = "structured_outputs"


class Serve(Enum):
    """Who runs the server: somebody else (`external`), or vpref itself for the run: vLLM (`managed`) or the
    `simulator`."""

    external = "external"
    managed = "managed"
    simulator = "simulator"


@dataclass
class ImageSettings:
    """How images are sent. `detail` is OpenAI's (null: not sent); `max_side` px bounds the longer side."""

    detail: str | None = "high"
    max_side: int | None = None

    def __post_init__(self) -> None:
        require(self.max_side is None or self.max_side >= 32, "image.max_side must be at least 32 pixels, or null.")


@dataclass
class PriceSettings:
    """US dollars for a million tokens; `cached` is the price of input tokens read from the server's cache, as the
    others' where it is null. Where `input` and `output` are null nobody told the price, which is not nothing: a server
    of one's own says 0."""

    input: float | None = None
    cached: float | None = None
    output: float | None = None

    def __post_init__(self) -> None:
        require(
            (self.input is None) == (self.output is None) and (self.cached is None or self.input is not None),
            "price needs both input and output (dollars a million tokens), or neither where it is unknown.",
        )


@dataclass
class LimitSettings:
    """Bounds on one model: requests at once, seconds for a request, and how often a failed one is retried
    (the server's Retry-After is obeyed)."""

    concurrency: int = 32
    timeout_s: float = 180.0
    retries: int = 6

    def __post_init__(self) -> None:
        require(self.concurrency >= 1, f"limits.concurrency is {self.concurrency}; it must be at least 1.")
        require(self.timeout_s > 0, f"limits.timeout_s is {self.timeout_s}; it must be above 0.")
        require(self.retries >= 0, f"limits.retries is {self.retries}; it must be 0 or more.")


class Dtype(Enum):
    """The numbers a checkpoint computes in. In halves, what a batch holds can tip a close answer."""

    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


@dataclass
class InProcessSettings:
    """How `api: transformers` runs a checkpoint: the model's `name` is a folder, or a name on the Hugging Face hub at a
    `revision` (branch or commit). `device` auto takes a GPU where there is one. `prompt`, a text with `{text}` where
    the request goes, replaces the chat template; a checkpoint that has neither gets the request's text as it is."""

    revision: str | None = None
    device: str = "auto"
    dtype: Dtype = Dtype.float32
    batch_size: int = 4
    max_new_tokens: int = 512
    prompt: str | None = None

    def __post_init__(self) -> None:
        require(
            re.fullmatch(r"auto|cpu|cuda(:\d+)?", self.device) is not None,
            f"in_process.device is {self.device!r}; choose auto, cpu, cuda, or cuda:N for one of several.",
        )
        require(self.batch_size >= 1, f"in_process.batch_size is {self.batch_size}; it must be at least 1.")
        require(self.max_new_tokens >= 1, f"in_process.max_new_tokens is {self.max_new_tokens}; it must be at least 1.")
        require(
            self.prompt is None or self.prompt.count("{text}") == 1,
            "in_process.prompt must hold {text} once, where the request goes.",
        )


RESERVED_PARAMS = frozenset({"model", "messages", "input", "instructions", "stream", "n", "response_format", "text"})
IN_PROCESS_PARAMS = frozenset(
    {"max_new_tokens", "max_length", "num_return_sequences", "return_dict_in_generate", "eos_token_id", "pad_token_id"}
)
SECRET_PARAMS = frozenset({"api_key", "authorization", "headers", "extra_headers"})


@dataclass
class ModelSettings:
    """How to reach one model.

    `server` is the identity of who answers, part of every call's key: two servers with one name are taken
    to give the same replies. `params` go into the request as they are. `api_key_env` names the environment
    variable that holds the key, null where the server wants none. `base_urls` are several servers of this one
    model: an image's requests go to one of them, and to the others while it is gone. `logprobs` says that the
    server tells tokens' probabilities; answers bound to the letters are then recorded with these.
    """

    name: str = MISSING
    label: str | None = None
    server: str = MISSING
    api: Api = Api.chat
    base_url: str | None = None
    base_urls: list[str] = field(default_factory=list)
    api_key_env: str | None = None
    serve: Serve = Serve.external
    structured: Structured = Structured.json_schema
    constrain: Constrain = Constrain.schema
    logprobs: bool = False
    params: dict[str, Any] = field(default_factory=dict)
    image: ImageSettings = field(default_factory=ImageSettings)
    price: PriceSettings = field(default_factory=PriceSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    in_process: InProcessSettings = field(default_factory=InProcessSettings)
    vllm: VllmSettings = field(default_factory=VllmSettings)

    def __post_init__(self) -> None:
        taken = sorted(RESERVED_PARAMS.intersection(self.params))
        require(not taken, f"params of model {self.name!r} may not hold {', '.join(taken)}: vpref sets these itself.")
        secret = sorted(SECRET_PARAMS.intersection(self.params))
        require(not secret, f"params may not hold {', '.join(secret)}: keys belong in the environment (api_key_env).")
        require(
            not any("@" in url for url in self.addresses),
            f"base_url of model {self.name!r} may not hold a user or password: it would be recorded with every run.",
        )
        require(
            not (self.base_url and self.base_urls),
            f"Model {self.name!r} has a base_url and base_urls; give one server, or all of them in base_urls.",
        )
        require(
            not (self.addresses and self.serve is Serve.managed),
            f"Model {self.name!r} has the address of a server and is to be served by vpref; with serve=external the "
            "server that is there answers, without base_url vpref starts one.",
        )
        require(
            self.server.split("/")[0] != "simulator" or self.serve is Serve.simulator,
            f"server: simulator is kept for the built-in simulator; give model {self.name!r} another server name.",
        )

        if self.api is Api.transformers:
            self._check_in_process()

    def _check_in_process(self) -> None:
        idle = {"base_url": self.addresses or None, "api_key_env": self.api_key_env}
        given = [name for name, value in idle.items() if value is not None]
        require(
            not given and self.serve is Serve.external,
            f"Model {self.name!r} runs in this process (api: transformers); set {given[0] if given else 'serve'} to "
            f"{'null' if given else 'external'}.",
        )
        require(
            self.structured is Structured.prompt,
            f"Model {self.name!r} runs in this process, where no server enforces a schema; set structured: prompt.",
        )
        taken = sorted(IN_PROCESS_PARAMS.intersection(self.params))
        require(
            not taken,
            f"params of model {self.name!r} may not hold {', '.join(taken)}: vpref sets these itself; set "
            "in_process.max_new_tokens for longer replies.",
        )

    @property
    def addresses(self) -> tuple[str, ...]:
        """Of its server, or of each of several; none where the client's own default is meant, or vpref serves."""
        return (self.base_url,) if self.base_url else tuple(self.base_urls)

    @property
    def title(self) -> str:
        """The name shown in tables; of a checkpoint its last part."""
        short = self.name.rstrip("/").rpartition("/")[2] if self.api is Api.transformers else self.name
        return self.label or short


def api_key(model: ModelSettings, instead: str = "choose another model") -> str:
    """The model's key from the environment, or a placeholder where the server wants none.

    Raises ConfigError naming the variable when it is unset or empty, and what to do `instead` of setting it.
    """
    if model.api_key_env is None:
        return "none"
    value = os.environ.get(model.api_key_env, "").strip()
    require(
        bool(value),
        f"Model {model.name!r} needs an API key in the environment variable {model.api_key_env}; set it, or {instead}.",
    )
    return value


class MessageOrder(Enum):
    """`instructions_first` shares the role's text across images in a prefix cache, `image_first` the image
    across roles; which one saves more depends on their lengths."""

    instructions_first = "instructions_first"
    image_first = "image_first"


@dataclass
class PipelineSettings:
    """The loop generator -> reviewer -> (revisor -> reviewer)* -> responder and who plays each role; the mapper
    names boxes before it.

    A role left null is played by `model`. `attempts` bounds how often a malformed reply is asked for.
    """

    model: ModelSettings = field(default_factory=ModelSettings)
    generator: ModelSettings | None = None
    reviewer: ModelSettings | None = None
    revisor: ModelSettings | None = None
    responder: ModelSettings | None = None
    mapper: ModelSettings | None = None
    review: bool = True
    max_revisions: int = 4
    attempts: int = 3
    message_order: MessageOrder = MessageOrder.instructions_first

    def __post_init__(self) -> None:
        require(self.max_revisions >= 0, f"pipeline.max_revisions is {self.max_revisions}; it must be 0 or more.")
        require(self.attempts >= 1, f"pipeline.attempts is {self.attempts}; it must be at least 1.")

    def roles(self) -> dict[Role, ModelSettings]:
        """The model of each role."""
        return {
            Role.GENERATOR: self.generator or self.model,
            Role.REVIEWER: self.reviewer or self.model,
            Role.REVISOR: self.revisor or self.model,
            Role.RESPONDER: self.responder or self.model,
            Role.MAPPER: self.mapper or self.model,
        }
