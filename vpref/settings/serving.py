"""How vpref starts vLLM itself, for models with `serve: managed`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from vpref.settings.base import require

SECRET_ENDINGS = ("KEY", "TOKEN", "SECRET", "PASSWORD")

OWN_ARGUMENTS = frozenset({"model", "served_model_name", "revision", "host", "port", "api_key", "hf_token"})
"""Those that vpref gives itself, and those that would be a secret in a file."""


@dataclass
class VllmSettings:
    """A vLLM server for the run, of a folder or a name on the Hugging Face hub (`checkpoint`; null: the model's name).

    `python` is the interpreter that has vLLM, null vpref's own. `arguments` are vLLM's, without their dashes:
    `{max_model_len: 8192, enforce_eager: true}`; null leaves one out. `gpus` becomes CUDA_VISIBLE_DEVICES. `port`
    0 takes a free one. `start_s`: seconds until it must serve, downloads included.
    """

    checkpoint: str | None = None
    revision: str | None = None
    python: str | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    gpus: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    port: int = 0
    start_s: float = 1800.0

    def __post_init__(self) -> None:
        self.arguments = {name.lstrip("-").replace("-", "_"): value for name, value in self.arguments.items()}
        own = sorted(OWN_ARGUMENTS.intersection(self.arguments))
        require(
            not own,
            f"vllm.arguments may not hold {', '.join(own)}: vpref gives these itself, or they would be a secret in "
            "a file (vllm.checkpoint, vllm.revision and vllm.port are settings; secrets belong in the environment).",
        )
        secret = sorted(name for name in self.environment if name.upper().endswith(SECRET_ENDINGS))
        require(
            not secret,
            f"vllm.environment may not hold {', '.join(secret)}: it is recorded with every run. Export it instead; "
            "the server gets vpref's own environment.",
        )
        require(0 <= self.port < 65536, f"vllm.port is {self.port}; it must be 0 (a free one) to 65535.")
        require(self.start_s > 0, f"vllm.start_s is {self.start_s}; it must be above 0.")
