"""Models in this process, as far as it goes without torch: keys, settings that do not fit, what is missing."""

from __future__ import annotations

import asyncio
import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from tests.commands import QUIET, complaint, run, run_folder
from vpref.backends import wire
from vpref.backends.client import Images, encode_reply
from vpref.backends.in_process.backend import Backend
from vpref.backends.in_process.body import question
from vpref.domain import LETTERS, Message, ModelReply, ModelRequest, Picture, Role
from vpref.errors import ConfigError
from vpref.evaluation import Exhibit
from vpref.replies import answer_form, choice_form
from vpref.runs.datasets import open_dataset
from vpref.settings import AblationSettings, Api, Dtype, InProcessSettings, ModelSettings, Structured
from vpref.store import CallStore
from vpref.weights import identity

MODEL = ModelSettings(name="org/tiny", server="transformers", api=Api.transformers, structured=Structured.prompt)
RUNNING = InProcessSettings()
PICTURE = Picture("f" * 64)
REQUEST = ModelRequest(Role.EVALUATED, (Message("user", (PICTURE, "Which?")),))
TRANSFORMERS = ["model@evaluated=transformers", "model@extractor=null", *QUIET]


def key(
    request: ModelRequest = REQUEST, model: ModelSettings = MODEL, server: str = "s", encoding: str = "original"
) -> str:
    return wire.prepare(request, model, server, encoding).key


def running(**changes: object) -> str:
    return key(model=replace(MODEL, in_process=replace(RUNNING, **changes)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "other",
    [
        key(replace(REQUEST, attempt=1)),
        key(replace(REQUEST, sample=1)),
        key(replace(REQUEST, form=answer_form())),
        key(replace(REQUEST, options=LETTERS)),
        key(replace(REQUEST, messages=(Message("user", ("Which?", PICTURE)),))),
        key(replace(REQUEST, messages=(Message("user", (Picture("e" * 64), "Which?")),))),
        key(model=replace(MODEL, params={"temperature": 0.6})),
        key(server="transformers/sha256:1234"),
        key(encoding="jpeg90-512"),
        running(dtype=Dtype.bfloat16),
        running(max_new_tokens=8),
        running(prompt="Question: {text} Answer:"),
    ],
)
def test_whatever_can_change_a_reply_changes_the_key(other: str) -> None:
    assert other != key()


@pytest.mark.parametrize(
    "other",
    [
        running(batch_size=1),
        running(device="cuda:1"),
        running(revision="abc"),  # it is in the server's identity
        key(model=replace(MODEL, name="/elsewhere/tiny", label="Tiny")),
        key(replace(REQUEST, role=Role.RESPONDER)),
    ],
)
def test_where_it_runs_and_lies_does_not_change_the_key(other: str) -> None:
    assert other == key()


def test_the_question_holds_what_was_asked() -> None:
    request = ModelRequest(
        Role.EVALUATED,
        (Message("system", ("Be brief.",)), Message("user", (PICTURE, "Which?"))),
        form=choice_form(),
        options=LETTERS,
    )
    call = wire.prepare(request, MODEL, "s", "original")
    assert call.pictures == (PICTURE.digest,)
    asked = question(call.body, call.key, (b"bytes",))
    assert asked.options == LETTERS
    assert asked.images == (b"bytes",)
    assert asked.turns == (
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Which?"}]},
    )
    told = wire.prepare(replace(request, options=()), MODEL, "s", "original")
    assert "JSON schema" in question(told.body, told.key, ()).turns[1]["content"][-1]["text"]


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["evaluated.structured=strict"], "set structured: prompt"),
        (["evaluated.base_url=http://localhost:1/v1"], "set base_url to null"),
        (["evaluated.api_key_env=SOME_KEY"], "set api_key_env to null"),
        (["evaluated.serve=simulator"], "set serve to external"),
        (["+evaluated.params.max_new_tokens=5"], "set in_process.max_new_tokens"),
        (["+evaluated.params.num_return_sequences=5"], "may not hold num_return_sequences"),
        (["evaluated.in_process.device=gpu"], "choose auto, cpu, cuda, or cuda:N"),
        (["evaluated.in_process.dtype=int8"], "float32, bfloat16, float16"),
        (["evaluated.in_process.batch_size=0"], "must be at least 1"),
        (["evaluated.in_process.max_new_tokens=0"], "must be at least 1"),
        (["evaluated.in_process.prompt=Hello"], "must hold {text} once"),
        (["evaluated.in_process.bach_size=2"], "did you mean batch_size?"),
    ],
)
def test_a_setting_that_does_not_fit_is_one_sentence(tmp_path: Path, overrides: list[str], said: str) -> None:
    given = ["evaluate", "dataset=x", *TRANSFORMERS, "evaluated.name=org/tiny", *overrides]
    assert said in complaint(*given, cwd=tmp_path)


def test_a_model_is_shown_under_the_last_part_of_its_name() -> None:
    assert MODEL.title == "tiny"
    assert replace(MODEL, name="/data/models/tiny/").title == "tiny"
    assert replace(MODEL, label="Tiny").title == "Tiny"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    out, _ = run("generate", "model@pipeline.model=simulator", "category=0", "data.first=2", *QUIET, cwd=folder)
    return folder / run_folder(out)


def test_without_torch_the_way_out_is_said(generated: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is not None and importlib.util.find_spec("transformers") is not None:
        pytest.skip("torch is installed here")
    said = complaint("evaluate", f"dataset={generated}", *TRANSFORMERS, "evaluated.name=org/tiny", cwd=tmp_path)
    assert "pip install 'vpref[hf]'" in said


def test_a_folder_that_is_not_there_is_said_also_in_a_dry_run(generated: Path, tmp_path: Path) -> None:
    given = ["evaluate", f"dataset={generated}", *TRANSFORMERS, "evaluated.name=./absent", "dry_run=true"]
    assert "no checkpoint folder at ./absent" in complaint(*given, cwd=tmp_path)


def test_a_dry_run_finds_what_is_stored_and_needs_no_torch(generated: Path, tmp_path: Path) -> None:
    """A reply stored under the key of a folder is found again after the folder has moved, and not after it changed."""
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    items = list(open_dataset(str(generated), False))
    model = replace(MODEL, name=str(folder))
    server = f"transformers/{identity(model.name, None, tmp_path / 'memory.json')}"
    with CallStore(tmp_path / "outputs" / "store") as store:
        for item in items:
            request = Exhibit.of(item, AblationSettings()).request(0)
            store.put(wire.prepare(request, model, server, "original").key, encode_reply(ModelReply(text="a")))
    given = ["evaluate", f"dataset={generated}", *TRANSFORMERS, "dry_run=true"]
    out, _ = run(*given, f"evaluated.name={folder}", cwd=tmp_path)
    assert "still to be sent: 0 to 0 calls" in out
    folder.rename(tmp_path / "moved")
    out, _ = run(*given, "evaluated.name=moved", cwd=tmp_path)
    assert "still to be sent: 0 to 0 calls" in out
    (tmp_path / "moved" / "config.json").write_text("{} ")
    out, _ = run(*given, "evaluated.name=moved", cwd=tmp_path)
    assert f"still to be sent: {len(items)} to {len(items)} calls" in out


def test_a_probe_refuses_a_folder_that_is_not_there(tmp_path: Path) -> None:
    images = Images(data_url=lambda digest: b"", encoding="original")
    backend = Backend(replace(MODEL, name="./absent"), images=images, memory=tmp_path / "weights.json")
    with pytest.raises(ConfigError):
        asyncio.run(backend.probe())
    asyncio.run(backend.close())
