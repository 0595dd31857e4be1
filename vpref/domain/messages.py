"""What is asked of a model, and what comes back."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from vpref.domain.terms import Record, Role

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Picture:
    """An image by reference: the sha256 of its normalised file. The core holds digests, never bytes."""

    digest: str


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; `speaker` is `system`, `user` or `assistant`."""

    speaker: Literal["system", "user", "assistant"]
    parts: tuple[str | Picture, ...]


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """The JSON schema that a reply must obey, under the name the API is told."""

    name: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to one role. `attempt` and `sample` are part of its key, so that asking again, or for
    another sample, does not find the earlier reply. With `options` the reply is bound to one of these words, by
    its `form` or by whatever else the server has for that, and their probabilities are asked for."""

    role: Role
    messages: tuple[Message, ...]
    form: ReplyForm | None = None
    attempt: int = 0
    sample: int = 0
    options: tuple[str, ...] = ()


class Usage(Record):
    """Tokens as the server counted them; `cached` is part of `input`, `reasoning` part of `output`."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0


Finish: TypeAlias = Literal["stop", "length", "refusal"]


class ModelReply(Record):
    """A completed reply and how it ended. `server` is who answered (`simulator/...` for simulated ones);
    `usd` is its price by the model's config, None where
    that tells none. `probabilities` (0 to 1) are those of the request's options, as far
    as the server told them."""

    text: str
    finish: Finish = "stop"
    model: str = ""
    server: str = ""
    usage: Usage = Usage()
    usd: float | None = None
    key: str = ""
    probabilities: dict[str, float] | None = None

    @property
    def simulated(self) -> bool:
        return is_simulated(self.server)


def is_simulated(server: str) -> bool:
    """Whether replies of this server come from the simulator."""
    return server.split("/", 1)[0] == "simulator"


Step: TypeAlias = Generator[ModelRequest, ModelReply, T]
"""A coroutine of the core: yields requests, is sent replies, returns a T. It does no I/O of its own."""
