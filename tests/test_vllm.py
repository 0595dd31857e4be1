"""A real vLLM, started by vpref, on tiny untrained checkpoints: their replies are noise, the road to them is not."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.commands import QUIET, run, run_folder, start
from vpref.domain import LETTERS
from vpref.serving.keeper import KEEPS, KEPT, processes

PYTHON, TINY = os.environ.get("VLLM_PYTHON"), os.environ.get("TINY_CHECKPOINTS")
pytestmark = pytest.mark.skipif(
    not (PYTHON and TINY), reason="VLLM_PYTHON (a Python with vLLM) and TINY_CHECKPOINTS (a folder) are not set"
)
PATIENCE_S = 600
CPU: dict[str, Any] = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "PYTHONWARNINGS": "default",  # those of others' packages are theirs
}
DRAFT = ("scene", "preference", "question", "choices")
SHAPES = {DRAFT, ("analysis", "issue"), ("proposed_fix", "draft"), ("answer",)}
CHECKPOINTS = {"qwen3-vl-2b": ("qwen3-vl", []), "llava-next-7b": ("llava-next", ["load_format=dummy"])}


def managed(role: str, config: str, **more: str) -> list[str]:
    """Overrides that put a tiny checkpoint of a family, on this machine's CPU, into a role."""
    folder, arguments = CHECKPOINTS[config]
    arguments = ["dtype=float32", "max_model_len=4096", "enforce_eager=true", *arguments]
    return [
        f"model@{role}={config}",
        f"{role}.vllm.python={PYTHON}",
        f"{role}.vllm.checkpoint={TINY}/{folder}",
        f"{role}.vllm.start_s={PATIENCE_S}",
        f"{role}.params.max_tokens={more.pop('max_tokens', 40)}",
        *(f"++{role}.vllm.arguments.{one}" for one in arguments),
        *QUIET,
    ]


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def none_left() -> bool:
    return not processes(KEPT) and not processes(KEEPS)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten items on five photos."""
    folder = tmp_path_factory.mktemp("dataset")
    asked = ["model@pipeline.model=simulator", "profile@simulator=flawless", "data.first=5", "category=0", "samples=2"]
    out, _ = run("generate", *asked, *QUIET, cwd=folder)
    return folder / run_folder(out)


@pytest.mark.parametrize("config", CHECKPOINTS)
def test_a_plain_and_a_bound_evaluation_on_one_server(tmp_path: Path, dataset: Path, config: str) -> None:
    asked = [f"dataset={dataset}", *managed("evaluated", config), "model@extractor=null"]
    run("evaluate", "-m", *asked, "ablation=nothing,constrained", cwd=tmp_path, timeout_s=PATIENCE_S, **CPU)
    assert none_left()
    plain, bound = sorted(tmp_path.glob("outputs/evaluate/*/*_*"))
    free = records(plain / "responses.jsonl")
    assert len(free) == 10
    assert not any(one["verdict"] == "failed" for one in free), [one["reason"] for one in free]
    assert all(one["calls"][0]["usage"]["input"] > 100 for one in free), "an image is hundreds of tokens"
    answers = records(bound / "responses.jsonl")
    assert len(answers) == 10
    for one in answers:
        assert (one["verdict"], one["by"]) == ("matched", "bound")
        shares = one["probabilities"]
        assert sorted(shares) == list(LETTERS)
        assert 0 < sum(shares.values()) <= 1.001
    assert len(list(plain.glob("vllm_*.log")) + list(bound.glob("vllm_*.log"))) == 1


def test_two_items_are_generated_by_schema(tmp_path: Path) -> None:
    """An untrained model writes noise within the schema, made short by a liking for quotation marks: what is cut is
    asked for again, and what is whole has the schema's shape."""
    vocabulary = json.loads(Path(str(TINY), "qwen3-vl", "tokenizer.json").read_text())["model"]["vocab"]
    quote = vocabulary['"']
    asked = [*managed("pipeline.model", "qwen3-vl-2b", max_tokens="1500"), "data.first=2", "category=0"]
    asked += ["pipeline.model.params.temperature=1.0", f"+pipeline.model.params.logit_bias={{{quote}: 4.0}}"]
    compact = "{backend: xgrammar, disable_any_whitespace: true}"  # else it would write white space to the end
    asked.append(f"++pipeline.model.vllm.arguments.structured_outputs_config={compact}")
    out, _ = run("generate", *asked, "pipeline.max_revisions=1", cwd=tmp_path, timeout_s=PATIENCE_S, **CPU)
    assert none_left()
    items = records(tmp_path / run_folder(out) / "items.jsonl")
    assert len(items) == 2
    assert not {one.get("kind") for one in items} & {"not_json", "http_400"}
    for one in (one for one in items if one.get("kind") == "wrong_shape"):
        assert one["reason"].endswith(" is empty"), "noise may be an empty text, which a schema allows"
    replies = [one["reply"] for path in tmp_path.glob("outputs/store/calls/*.jsonl") for one in records(path)]
    assert len(replies) >= 2
    for reply in replies:
        assert reply["text"].startswith('{"'), "bound to the schema from its first character on"
    whole = [json.loads(reply["text"]) for reply in replies if reply["finish"] == "stop"]
    assert whole
    for value in whole:
        assert tuple(value) in SHAPES
        draft = value.get("draft", value)
        assert tuple(draft.get("choices", LETTERS)) == LETTERS


def test_after_vpref_is_killed_nothing_is_left_and_the_next_run_goes_on(tmp_path: Path, dataset: Path) -> None:
    asked = ["evaluate", f"dataset={dataset}", *managed("evaluated", "qwen3-vl-2b"), "model@extractor=null"]
    asked.append("evaluated.limits.concurrency=1")
    process = start(*asked, cwd=tmp_path, **CPU)
    deadline = time.monotonic() + PATIENCE_S
    while not any(path.stat().st_size for path in tmp_path.glob("outputs/store/calls/*.jsonl")):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    assert processes(KEPT)
    process.kill()
    process.communicate()
    while not none_left():
        assert time.monotonic() < deadline, processes(KEPT)
        time.sleep(0.1)
    out, errors = run(*asked, cwd=tmp_path, timeout_s=PATIENCE_S, **CPU)
    assert "earlier run" not in errors
    calls = json.loads((tmp_path / run_folder(out) / "manifest.json").read_text())["summary"]["calls"]
    assert calls["replayed"] > 0
    assert calls["sent"] + calls["replayed"] == 10
    assert none_left()
