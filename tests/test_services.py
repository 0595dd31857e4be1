"""Ready-made configs against the simulator in the guise of their services, by real commands and the real SDK."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.commands import QUIET, complaint, run, run_folder, simulator
from tests.test_configs import settings_of
from vpref.backends import complaints
from vpref.backends.client import Backend, Images, cost
from vpref.domain import Message, ModelReply, ModelRequest, Picture, ReplyForm, Role, Usage
from vpref.errors import CallFailed, ConfigError, Misconfigured, RunStopped
from vpref.settings import Api, EvaluateSettings, FaultSettings, ModelSettings, Service, SimulatorSettings, Structured
from vpref.simulator import profile_digest, running

SERVICES = [service.value for service in Service if service is not Service.none]
HOSTED = {"openrouter": "OPENROUTER_API_KEY", "gemini": "GEMINI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
KEY = "sk-rightkeyvalue1234567890"
JPEG = b"data:image/jpeg;base64,/9j/4AAQSkZJRg=="
FORM = ReplyForm(
    "answer",
    {
        "type": "object",
        "properties": {"answer": {"type": "string", "enum": ["a", "b", "c", "d"]}},
        "required": ["answer"],
        "additionalProperties": False,
    },
)
ASKED = ModelRequest(Role.EVALUATED, (Message("user", ("Which?", Picture("f" * 64))),), FORM)
EVERY = pytest.mark.parametrize("service", SERVICES)


def asking(number: int) -> ModelRequest:
    return replace(ASKED, messages=(Message("user", (f"Which, {number}?", Picture("f" * 64))),))


def model_of(service: str, **changes: Any) -> ModelSettings:
    settings = settings_of("evaluate", "dataset=x", f"model@evaluated={service}", "model@extractor=o4-mini")
    assert isinstance(settings, EvaluateSettings)
    return replace(settings.evaluated, **changes)


def guise(service: str, **more: Any) -> SimulatorSettings:
    return SimulatorSettings(service=Service(service), **more)


def talk(
    simulated: SimulatorSettings, model: ModelSettings, *, key: str = KEY, picture: bytes = JPEG, times: int = 1
) -> tuple[list[ModelReply], Backend]:
    """Questions, asked at once, to a server of their own. Each differs, so that each meets the same faults every
    time, in whatever order they arrive."""

    async def go(url: str) -> tuple[list[ModelReply], Backend]:
        backend = Backend(model, addresses=[url], key=key, images=Images(lambda digest: picture, "original"))
        try:
            asked = [asking(n) for n in range(times)]
            return await asyncio.gather(*(backend.send(backend.prepare(one)) for one in asked)), backend
        finally:
            await backend.close()

    with running(simulated) as url:
        return asyncio.run(go(url))


def probe(simulated: SimulatorSettings, model: ModelSettings, key: str = KEY) -> str:
    async def go(url: str) -> str:
        backend = Backend(model, addresses=[url], key=key, images=Images(lambda digest: b"", "original"))
        try:
            return await backend.probe()
        finally:
            await backend.close()

    with running(simulated) as url:
        return asyncio.run(go(url))


# --- whole runs ------------------------------------------------------------------------------------------


@pytest.mark.slow
@EVERY
def test_its_config_generates_and_evaluates(service: str, tmp_path: Path) -> None:
    env: dict[str, Any] = {HOSTED[service]: KEY} if service in HOSTED else {}
    with simulator(tmp_path / "log.jsonl", f"simulator.service={service}") as url:
        made, progress = run(
            "generate",
            f"model@pipeline.model={service}",
            f"pipeline.model.base_url={url}",
            *("category=0", "tracking=none", "driver.progress=plain", "driver.every_s=0.1"),
            cwd=tmp_path,
            **env,
        )
        data = run_folder(made)
        evaluating = [f"dataset={data}", f"model@evaluated={service}", f"evaluated.base_url={url}"]
        shown, _ = run("evaluate", *evaluating, "model@extractor=null", *QUIET, cwd=tmp_path, **env)
    manifest = json.loads((tmp_path / data / "manifest.json").read_text())
    assert manifest["summary"]["items"] == {"accepted": 6}
    assert set(manifest["servers"].values()) == {f"simulator/{profile_digest(plausible(service))}"}
    assert "Table 2: accuracy, plain" in shown
    responses = [
        json.loads(line) for line in (tmp_path / run_folder(shown) / "responses.jsonl").read_text().splitlines()
    ]
    assert [one["verdict"] for one in responses].count("matched") == 6
    if service in HOSTED:
        assert "| cost unknown" in progress
        assert manifest["summary"]["usd"] is None
        assert manifest["summary"]["calls_of_unknown_price"] == manifest["summary"]["calls"]["sent"]
        assert "unknown" in made
        assert "$" not in made
        assert all(call["usd"] is None for one in responses for call in one["calls"])
    else:
        assert manifest["summary"]["usd"] == 0.0
        assert "$0.0000" in made


def plausible(service: str) -> SimulatorSettings:
    """The profile of `vpref simulate` in this guise."""
    settings = settings_of("simulate", f"simulator.service={service}")
    simulated = settings.simulator  # type: ignore[attr-defined]
    assert isinstance(simulated, SimulatorSettings)
    return simulated


@pytest.mark.slow
def test_what_no_request_can_pass_ends_the_run_at_once_with_code_2(tmp_path: Path) -> None:
    dataset = run_folder(run("generate", "model@pipeline.model=simulator", "category=0", *QUIET, cwd=tmp_path)[0])

    def said(service: str, url: str, *more: str, key: str = KEY, code: int = 2) -> str:
        command = ["evaluate", f"dataset={dataset}", f"model@evaluated={service}", f"evaluated.base_url={url}"]
        env = {HOSTED[service]: key} if service in HOSTED else {}
        return complaint(*command, "model@extractor=null", *QUIET, *more, cwd=tmp_path, code=code, **env)

    wrong, empty = "wrong-key-value-123", "empty-key-value-123"
    log = tmp_path / "log.jsonl"
    with simulator(log, "simulator.service=openrouter") as url:
        # Its list of models is open to all, so only the first request finds the key out.
        sentence = said("openrouter", url, key=wrong)
        assert "check the key in OPENROUTER_API_KEY" in sentence
        assert wrong not in sentence
        assert "add some" in said("openrouter", url, key=empty, code=1)
        assert "it lists qwen/qwen3-vl-8b-instruct" in said("openrouter", url, "evaluated.name=qwen3-vl-8b")
    with simulator(log, "simulator.service=gemini") as url:
        assert "check the key in GEMINI_API_KEY" in said("gemini", url, key=wrong)
        assert "it lists models/gemini-" in said("gemini", url, "evaluated.name=gemini-9")
        sentence = said("gemini", url, "+evaluated.params.seed=7")
        assert "parameter 'seed'" in sentence
        assert "take it out of params" in sentence
    with simulator(log, "simulator.service=anthropic") as url:
        assert "check the key in ANTHROPIC_API_KEY" in said("anthropic", url, key=wrong)
        assert "set name in the model's config" in said("anthropic", url, "evaluated.name=claude-0")
        assert "credit" in said("anthropic", url, key=empty, code=1)
    with simulator(log, "simulator.service=ollama") as url:
        assert "it lists qwen3-vl:8b" in said("ollama", url, "evaluated.name=qwen3")
    with simulator(log, "simulator.service=lm_studio") as url:
        assert "it lists google/gemma-3-12b" in said("lm_studio", url, "evaluated.name=nothing")
        assert "HTTP 404" in said("lm_studio", url, "evaluated.api=responses")
    assert not log.read_text(), "nothing was asked in vain"


def test_a_dry_run_says_that_a_price_is_unknown(tmp_path: Path) -> None:
    mixed = ["model@pipeline.model=gemini", "model@pipeline.reviewer=gpt-4.1"]
    alone, _ = run("generate", "model@pipeline.model=gemini", "dry_run=true", cwd=tmp_path)
    some, _ = run("generate", *mixed, "dry_run=true", cwd=tmp_path)
    free, _ = run("generate", "model@pipeline.model=ollama", "dry_run=true", cwd=tmp_path)
    assert "calls, at an unknown price (no price in the config of gemini-3-flash-preview)" in alone
    assert "$" not in alone
    assert " and at an unknown price (no price in the config of gemini-3-flash-preview)" in some
    assert "about $0.00 to $0.00" in free
    assert "unknown" not in free


# --- one request -----------------------------------------------------------------------------------------


@EVERY
def test_its_config_s_requests_are_answered(service: str) -> None:
    [reply], _ = talk(guise(service), model_of(service))
    assert reply.finish == "stop"
    assert reply.usage.input > 0


@EVERY
def test_the_simulator_is_known_in_every_guise(service: str) -> None:
    settings = guise(service)
    assert probe(settings, model_of(service)) == f"simulator/{profile_digest(settings)}"
    assert profile_digest(settings) != profile_digest(SimulatorSettings())


@EVERY
def test_the_simulator_lists_models_as_the_service_does(service: str) -> None:
    if service == "anthropic":
        assert probe(guise(service), model_of(service, name="anything")).startswith("simulator/")
        return
    with pytest.raises(ConfigError, match="does not serve model 'anything'; it lists"):
        probe(guise(service), model_of(service, name="anything"))
    probe(guise(service, skills={"anything": 0.0}), model_of(service, name="anything"))


@pytest.mark.parametrize(
    ("service", "key", "expected", "said"),
    [
        ("openrouter", "wrong-1", Misconfigured, "OPENROUTER_API_KEY"),
        ("openrouter", "empty-1", RunStopped, "add some"),
        ("gemini", "wrong-1", Misconfigured, "GEMINI_API_KEY"),
        ("anthropic", "wrong-1", Misconfigured, "ANTHROPIC_API_KEY"),
        ("anthropic", "empty-1", RunStopped, "add some"),
    ],
)
def test_keys(service: str, key: str, expected: type[RunStopped], said: str) -> None:
    with pytest.raises(expected, match=said) as stopped:
        talk(guise(service), model_of(service), key=key)
    assert stopped.value.exit_code == (2 if expected is Misconfigured else 1)


@EVERY
def test_an_unknown_model_stops_at_once(service: str) -> None:
    with pytest.raises(Misconfigured, match="set name in the model's config"):
        talk(guise(service), model_of(service, name="nobody/knows"))


@EVERY
@pytest.mark.parametrize("parameter", ["seed", "logprobs", "reasoning_effort", "max_completion_tokens"])
def test_parameters(service: str, parameter: str) -> None:
    value = {"seed": 1, "logprobs": True, "reasoning_effort": "low", "max_completion_tokens": 99}[parameter]
    model = model_of(service, params={parameter: value})
    if service == "gemini" and parameter in ("seed", "logprobs"):
        with pytest.raises(Misconfigured, match=f"parameter '{parameter}'"):
            talk(guise(service), model)
    else:
        talk(guise(service), model)


def test_a_parameter_is_no_reason_to_stop_once_there_was_an_answer() -> None:
    backend = Backend(
        model_of("gemini"), addresses=["http://127.0.0.1:1/v1"], key=KEY, images=Images(lambda digest: b"", "original")
    )
    refused = complaints.read(400, b'{"error": {"message": "Unknown name \\"seed\\": Cannot find field."}}')
    assert isinstance(backend._failure(refused), Misconfigured)
    backend._answered = True
    assert isinstance(backend._failure(refused), CallFailed)


@pytest.mark.parametrize(
    ("service", "picture", "taken"),
    [
        ("lm_studio", b"data:image/webp;base64,AA", False),
        ("lm_studio", b"https://example.org/a.jpg", False),
        ("ollama", b"https://example.org/a.jpg", False),
        ("ollama", b"data:image/webp;base64,AA", True),
        ("gemini", b"https://example.org/a.jpg", False),
        ("openrouter", b"https://example.org/a.jpg", True),
        ("anthropic", b"data:image/jpeg;base64," + b"A" * 7_000_000, False),
        ("anthropic", b"data:image/jpeg;base64," + b"A" * 6_000_000, True),
    ],
)
@pytest.mark.filterwarnings("ignore:Sending a large body")  # aiohttp's advice, for the largest pictures
def test_images(service: str, picture: bytes, taken: bool) -> None:
    if taken:
        talk(guise(service), model_of(service), picture=picture)
        return
    with pytest.raises(CallFailed) as failed:
        talk(guise(service), model_of(service), picture=picture)
    assert failed.value.kind == "image", "this one image is to blame, and the run goes on"


def test_claude_is_told_the_form_in_words_since_it_ignores_schemas() -> None:
    model = model_of("anthropic")
    assert model.structured is Structured.prompt
    [told], _ = talk(guise("anthropic"), model)
    assert '{"answer":' in told.text
    [unheard], _ = talk(guise("anthropic"), replace(model, structured=Structured.json_schema))
    assert '{"answer":' not in unheard.text


@EVERY
def test_a_blocked_request_is_a_refusal_or_words_and_never_a_failure(service: str) -> None:
    [reply], _ = talk(guise(service, faults=FaultSettings(refusal=1.0)), model_of(service))
    if service in ("openrouter", "gemini"):
        assert reply.finish == "refusal"
    else:
        assert (reply.finish, reply.text) == ("stop", "I'm sorry, but I can't help with that.")


@pytest.mark.slow
@EVERY
def test_faults_that_pass_are_retried_in_every_guise(service: str) -> None:
    faults = FaultSettings(http_429=0.2, http_500=0.1)
    replies, backend = talk(guise(service, faults=faults, retry_after_s=0.01), model_of(service), times=24)
    assert len(replies) == 24
    assert backend.troubles["http_429"]
    assert backend.troubles["inside_502" if service == "openrouter" else "http_500"]


def test_a_failure_under_status_200_that_does_not_pass_fails_the_request() -> None:
    faults = FaultSettings(http_500=1.0)
    model = model_of("openrouter")
    with pytest.raises(CallFailed) as failed:
        talk(guise("openrouter", faults=faults), replace(model, limits=replace(model.limits, retries=1)))
    assert failed.value.kind == "http_502"


@EVERY
def test_errors_look_like_the_service_s(service: str) -> None:
    """Read without the SDK: what stands on the wire."""
    with running(guise(service)) as url:
        body = {"model": "nobody", "messages": [{"role": "user", "content": "x"}]}
        request = urllib.request.Request(
            f"{url}/chat/completions", json.dumps(body).encode(), {"Authorization": f"Bearer {KEY}"}
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request)
        value = json.load(refused.value)
        assert refused.value.headers["x-vpref-simulator"]
        refused.value.close()
    match service:
        case "gemini":
            assert value[0]["error"]["status"] == "NOT_FOUND"
        case "openrouter":
            assert (value["error"]["code"], value["user_id"]) == (400, "user_simulated")
        case "lm_studio":
            assert isinstance(value["error"], str)
        case _:
            assert value["error"]["type"] == "not_found_error"


@EVERY
def test_configs_speak_chat_and_name_no_key(service: str) -> None:
    model = model_of(service)
    assert model.api is Api.chat
    assert model.api_key_env == HOSTED.get(service)
    assert model.server == service
    assert (model.price.input is None) == (service in HOSTED)


def test_a_price_can_be_told_on_the_command_line() -> None:
    def priced(*overrides: str) -> ModelSettings:
        settings = settings_of("evaluate", "dataset=x", "model@evaluated=gemini", *overrides)
        assert isinstance(settings, EvaluateSettings)
        return settings.evaluated

    usage = Usage(input=1000, cached=400, output=100)
    assert cost(priced(), usage) is None
    told = priced("evaluated.price.input=2", "evaluated.price.output=10")
    assert cost(told, usage) == pytest.approx(0.003)
    whole = priced("evaluated.price={input: 2, cached: 0.5, output: 10}")
    assert cost(whole, usage) == pytest.approx(0.0024)
    with pytest.raises(ConfigError, match="price needs both"):
        priced("evaluated.price.input=2")
