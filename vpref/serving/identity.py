"""Who answers, for a call's key: the checkpoint and what vLLM was told of it, never an address or a port."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from vpref import weights
from vpref.settings import ModelSettings

HOW_FAST = frozenset(
    {
        "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "distributed_executor_backend",
        "gpu_memory_utilization", "kv_cache_memory_bytes", "swap_space", "cpu_offload_gb", "max_num_seqs",
        "max_num_batched_tokens", "max_model_len", "limit_mm_per_prompt", "mm_processor_cache_gb", "block_size",
        "enforce_eager", "enable_prefix_caching", "enable_chunked_prefill", "async_scheduling", "download_dir",
        "max_parallel_loading_workers", "api_server_count", "disable_log_stats", "enable_log_requests",
        "uvicorn_log_level",
    }
)  # fmt: skip
"""Arguments that say where, how fast and up to what length a model runs, not what it is: changing them keeps its
replies."""


def identity(model: ModelSettings, memory: Path) -> str:
    """`<server>/<checkpoint's identity>`, with a digest of vLLM's other arguments where there are any. `memory` is
    where the digests of large files are kept.

    Raises ConfigError where the checkpoint is a folder that holds none.
    """
    who = f"{model.server}/{weights.identity(model.vllm.checkpoint or model.name, model.vllm.revision, memory)}"
    told = {name: value for name, value in model.vllm.arguments.items() if name not in HOW_FAST and value is not None}
    if not told:
        return who
    return f"{who}+{hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:8]}"
