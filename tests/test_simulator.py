"""The simulator as its clients meet it: the real OpenAI SDK over real HTTP; shares are measured on its pure core."""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, TypeAlias

import openai
import pytest
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from vpref.domain import LETTERS, Category, Choices, Draft, Revision
from vpref.errors import ConfigError
from vpref.settings import FaultSettings, SimulatorSettings
from vpref.simulator import actor, bank, profile_digest, running, shapes, wire
from vpref.simulator.dice import dice

Connect: TypeAlias = Callable[..., openai.OpenAI]
PIXEL = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAAAAE" * 4
API = pytest.mark.parametrize("api", ["chat", "responses"])


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


TEXT = {"type": "string"}
DRAFT = closed(scene=TEXT, preference=TEXT, question=TEXT, choices=closed(a=TEXT, b=TEXT, c=TEXT, d=TEXT))
ISSUES = ["no_correct_choices", "non_actionable", "none"]
SCHEMAS = {
    "draft": DRAFT,
    "review": closed(analysis=TEXT, issue={"type": "string", "enum": ISSUES}),
    "revision": closed(proposed_fix=TEXT, draft=DRAFT),
    "answer": closed(answer={"type": "string", "enum": list(LETTERS)}),
}


def brief(category: int, image: object = "") -> str:
    made = Category(category)
    return f"For image {image}.\nPreference type: {made.typicality}\nImage dependence: {made.dependence}\n"


def block(draft: Draft, *leave_out: str) -> str:
    fields = [f"{name.title()}: {getattr(draft, name)}" for name in ("scene", "preference") if name not in leave_out]
    choices = [f"{letter}) {draft.choices[letter]}" for letter in LETTERS]
    return "\n".join([*fields, f"Question: {draft.question}", *choices])


def drafts(count: int, category: int) -> list[Draft]:
    """Drafts of the bank, their choices shuffled as the pipeline shuffles them."""
    made = [bank.compose(Category(category), dice(i, category, "test")) for i in range(count)]
    orders = [random.Random(i).sample(draft.choices.texts, 4) for i, draft in enumerate(made)]
    return [
        draft.model_copy(update={"choices": Choices.of(tuple(order))})
        for draft, order in zip(made, orders, strict=True)
    ]


def body(api: str, text: str, schema: str | None = None, image: str = PIXEL, /, **more: Any) -> dict[str, Any]:
    form = {"name": schema, "schema": SCHEMAS[schema], "strict": True} if schema else None
    if api == "chat":
        content: list[Any] = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": image}}]
        made: dict[str, Any] = {"messages": [{"role": "user", "content": content}]}
        made |= {"response_format": {"type": "json_schema", "json_schema": form}} if form else {}
    else:
        content = [{"type": "input_text", "text": text}, {"type": "input_image", "image_url": image, "detail": "auto"}]
        made = {"input": [{"role": "user", "content": content}]}
        made |= {"text": {"format": {"type": "json_schema", **form}}} if form else {}
    return {"model": "m", **made, **more}


def asked(text: str, schema: str | None = None, **more: Any) -> wire.Asked:
    return wire.read(wire.CHAT, json.dumps(body("chat", text, schema, **more)).encode())


def offline(settings: SimulatorSettings, text: str, schema: str | None = None, **more: Any) -> str:
    """What the server would say, without the server."""
    return actor.reply(asked(text, schema, **more), settings).text


def chat(client: openai.OpenAI, *args: Any, **more: Any) -> ChatCompletion:
    # The SDK takes any JSON for its types, so its models are made to check it.
    return ChatCompletion.model_validate(client.chat.completions.create(**body("chat", *args, **more)).to_dict())


def responses(client: openai.OpenAI, *args: Any, **more: Any) -> Response:
    return Response.model_validate(client.responses.create(**body("responses", *args, **more)).to_dict())


def said(client: openai.OpenAI, api: str, *args: Any, **more: Any) -> str:
    if api == "responses":
        return responses(client, *args, **more).output_text
    return chat(client, *args, **more).choices[0].message.content or ""


@pytest.fixture
def connect() -> Iterator[Connect]:
    with ExitStack() as stack:

        def connected(settings: SimulatorSettings, retries: int = 0) -> openai.OpenAI:
            url = stack.enter_context(running(settings))
            return stack.enter_context(openai.OpenAI(base_url=url, api_key="sk-secret", max_retries=retries))

        yield connected


@pytest.fixture
def client(connect: Connect) -> openai.OpenAI:
    return connect(SimulatorSettings())


# --- the wire --------------------------------------------------------------------------------------------


@API
def test_the_sdk_parses_every_role(client: openai.OpenAI, api: str) -> None:
    item = drafts(1, 0)[0]
    replies = {name: json.loads(said(client, api, brief(0) + block(item), name)) for name in SCHEMAS}
    assert bank.recognise(Draft.model_validate(replies["draft"]))
    assert replies["review"]["issue"] == "none"
    assert Revision.model_validate(replies["revision"]).draft.choices != item.choices
    assert replies["answer"] == {"answer": bank.likeliest(item)}
    assert said(client, api, block(item))


def test_usage_counts_text_and_images(client: openai.OpenAI) -> None:
    usage = chat(client, "word " * 4000).usage
    assert usage is not None
    assert usage.prompt_tokens == pytest.approx(5000 + 85 + 170, abs=2)
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert responses(client, "hi", reasoning={"effort": "low"}).output[0].type == "reasoning"
    assert said(client, "chat", "hi", reasoning_effort="low")


def test_models_are_labelled(connect: Connect) -> None:
    settings = SimulatorSettings(skills={"strong": 0.1})
    listed = connect(settings).models.list()
    assert [one.id for one in listed.data] == ["simulator", "strong"]
    assert listed.to_dict()["vpref_simulator"] == {"profile": profile_digest(settings)}


@pytest.mark.parametrize(
    ("path", "content", "named"),
    [
        ("/chat/completions", b"{", "parse"),
        ("/chat/completions", b"[]", "object"),
        ("/chat/completions", b'{"messages": [{"role": "user", "content": "hi"}]}', "model"),
        ("/chat/completions", b'{"model": "m"}', "messages"),
        ("/chat/completions", b'{"model": "m", "messages": ["hi"]}', "messages"),
        ("/chat/completions", b'{"model": "m", "messages": [{"content": "hi"}], "stream": true}', "stream"),
        ("/responses", b'{"model": "m", "input": ""}', "input"),
    ],
)
def test_bad_requests_are_told_in_openais_shape(client: openai.OpenAI, path: str, content: bytes, named: str) -> None:
    with pytest.raises(openai.BadRequestError, match=named) as caught:
        client.post(path, cast_to=object, content=content, options={"headers": {"Content-Type": "application/json"}})
    assert isinstance(caught.value.body, dict)
    assert caught.value.body.keys() == {"message", "type", "param", "code"}


def test_order_of_arrival_changes_nothing(client: openai.OpenAI) -> None:
    bodies = [body("chat", brief(i % 4), "draft", f"{PIXEL}{i // 4}") for i in range(24)] * 2

    async def ask(order: list[int]) -> dict[int, str]:
        async with openai.AsyncOpenAI(base_url=client.base_url, api_key="none", max_retries=0) as sdk:
            replies = await asyncio.gather(*(sdk.chat.completions.create(**bodies[i]) for i in order))
        return {i: reply.to_json() for i, reply in zip(order, replies, strict=True)}

    numbers = list(range(48))
    once, again = asyncio.run(ask(numbers)), asyncio.run(ask(random.Random(1).sample(numbers, 48)))
    assert once == again
    assert all(once[i] == once[i + 24] for i in range(24))
    assert len(set(once.values())) == 24


def test_the_idempotency_key_chooses_among_drafts_only(client: openai.OpenAI) -> None:
    def keyed(key: str, schema: str) -> str:
        return said(client, "chat", brief(0) + block(drafts(1, 0)[0]), schema, extra_headers={"Idempotency-Key": key})

    assert keyed("1", "draft") == keyed("1", "draft") != keyed("2", "draft")
    assert all(keyed("1", schema) == keyed("2", schema) for schema in ("review", "revision", "answer"))


# --- drafts ----------------------------------------------------------------------------------------------


def test_no_two_wishes_or_actions_of_the_bank_can_be_confused() -> None:
    def confused(texts: list[str]) -> list[tuple[str, str]]:
        lowered = list(map(str.casefold, texts))
        return [
            (one, other) for i, one in enumerate(lowered) for j, other in enumerate(lowered) if i != j and one in other
        ]

    assert not confused([taste.wish for scenario in bank.scenarios() for taste in scenario.tastes])
    for scenario in bank.scenarios():
        assert not confused([mark for taste in scenario.tastes for mark in (*taste.acts, *taste.spots)])
        assert Counter(taste.typicality for taste in scenario.tastes) == {"typical": 3, "atypical": 3}


@pytest.mark.parametrize("category", Category)
def test_drafts_differ_and_are_known_again(category: Category) -> None:
    made = drafts(250, category)
    assert len(set(map(block, made))) > 245
    assert min(Counter(map(bank.likeliest, made)).values()) > 35
    for draft in made:
        revised = bank.recompose(draft, dice(draft.preference))
        known, again = bank.recognise(draft), bank.recognise(revised)
        assert known is not None
        assert again is not None
        assert (known.category, known.taste) == (again.category, again.taste) == (category, known.taste)
        assert revised.choices != draft.choices
        assert len(set(draft.choices.texts)) == 4
        assert all(re.fullmatch(r"[A-Z][a-z]+ .+", choice) for choice in draft.choices.texts)


def test_foreign_items_are_answered_by_overlap_and_revised() -> None:
    choices = Choices(a="Paint it", b="Sort the stamps by country", c="Burn it", d="Make no changes")
    item = Draft(scene="Stamps.", preference="I want stamps sorted by country.", question="What now?", choices=choices)
    assert bank.recognise(item) is None
    assert bank.likeliest(item) == "b"
    revised = Revision.model_validate_json(offline(SimulatorSettings(), block(item), "revision")).draft
    assert revised == item.model_copy(update={"question": revised.question}) != item


def test_the_last_item_shown_is_meant_and_fields_may_be_missing() -> None:
    example, item = drafts(2, 1)
    assert actor.shown(f"Example:\n{block(example)}\n\nYours:\n{block(item)}\nAnswer with one letter.") == item
    assert actor.shown(block(item, "scene")) == item.model_copy(update={"scene": ""})
    assert actor.shown(block(item, "preference")) == item.model_copy(update={"preference": ""})
    assert actor.shown("Nothing here.") is None


# --- roles -----------------------------------------------------------------------------------------------


def letter_in(output: str, item: Draft) -> str | None:
    """The letter that an output names, by the styles the simulator has."""
    return next((one for one in LETTERS if output in actor._wordings(one, item.choices[one])), None)


def accuracy(settings: SimulatorSettings, items: list[Draft], *leave_out: str, model: str = "m") -> float:
    outputs = [offline(settings, block(item, *leave_out), model=model) for item in items]
    right = [letter_in(output, item) == bank.likeliest(item) for output, item in zip(outputs, items, strict=True)]
    return sum(right) / len(right)


@pytest.mark.parametrize("category", Category)
def test_accuracy_follows_the_profile(category: Category) -> None:
    items = drafts(400, category)
    settings = SimulatorSettings(accuracy=[0.9, 0.6, 0.75, 0.4], skills={"strong": 0.1, "perfect": 1.0, "lost": -1.0})
    wanted = settings.accuracy[category]
    assert accuracy(settings, items) == pytest.approx(wanted, abs=0.06)
    assert accuracy(settings, items, "scene") == pytest.approx(wanted, abs=0.06)
    assert accuracy(settings, items, model="strong") == pytest.approx(wanted + 0.1, abs=0.06)
    assert accuracy(settings, items[:100], model="perfect") == 1
    assert accuracy(settings, items[:100], model="lost") == 0
    always = SimulatorSettings(accuracy=[1, 1, 1, 1])
    assert accuracy(always, items) == 1
    assert accuracy(always, items, "preference") == pytest.approx(0.25, abs=0.07)


def test_outputs_come_in_many_styles_and_some_match_nothing() -> None:
    items = drafts(300, 0)
    outputs = [offline(SimulatorSettings(unmatched=0.3), block(item)) for item in items]
    unmatched = [output for output in outputs if output in actor.UNMATCHED]
    assert len(unmatched) / 300 == pytest.approx(0.3, abs=0.07)
    assert not [text for text in unmatched if re.search(r"\b[a-d]\b", text.casefold())]
    assert all(letter_in(output, item) for output, item in zip(outputs, items, strict=True) if output not in unmatched)
    assert len({re.sub(r"[A-Za-z]{2,}", "w", output) for output in outputs}) > 20


def test_reviews_name_allowed_issues_by_their_share() -> None:
    settings = SimulatorSettings(issues={"low_image_dependency": 0.5, "non_actionable": 0.2, "no_correct_choices": 0.1})
    named = Counter(json.loads(offline(settings, block(item), "review"))["issue"] for item in drafts(500, 0))
    assert set(named) == set(ISSUES)
    assert named["non_actionable"] / 500 == pytest.approx(0.2, abs=0.05)
    assert named["no_correct_choices"] / 500 == pytest.approx(0.1, abs=0.04)


def test_the_revisor_names_the_issue() -> None:
    text = f"{block(drafts(1, 2)[0])}\nPossible: no_correct_choices.\nThe issue: poor_preference_construction."
    assert "poor_preference_construction" in json.loads(offline(SimulatorSettings(), text, "revision"))["proposed_fix"]


class Leaf(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = Field(min_length=12, max_length=20)
    kind: Literal["x", "y"]


class Tree(BaseModel):
    model_config = ConfigDict(extra="forbid")
    leaf: Leaf
    leaves: list[Leaf] = Field(min_length=2)
    count: int = Field(ge=3, le=9)
    share: float = Field(gt=0, lt=2)
    flag: bool
    fixed: Literal["always"]
    nothing: None
    parent: Tree | None
    either: Leaf | int


def test_any_other_schema_is_obeyed(client: openai.OpenAI) -> None:
    form = {"name": "mapping", "schema": Tree.model_json_schema()}
    asking = {"response_format": {"type": "json_schema", "json_schema": form}}
    Tree.model_validate_json(said(client, "chat", "Name them.", **asking))
    Tree.model_validate_json(said(client, "responses", "Name them.", text={"format": {"type": "json_schema", **form}}))
    part = {"properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]}
    assert shapes.instance({"allOf": [part, {"required": []}]}, {}, dice()) == {"a": None}
    assert shapes.instance({"type": "integer", "maximum": -2}, {}, dice()) == -2


def test_a_schema_told_in_the_prompt_is_obeyed_in_loose_dress() -> None:
    told = f"Obey the JSON schema named `answer`:\n```json\n{json.dumps(SCHEMAS['answer'], indent=2)}\n```\n"
    styles = set()
    for item in drafts(60, 0):
        text = offline(SimulatorSettings(), told + block(item))
        found = re.search(r"\{.*\}", text, re.DOTALL)
        assert found is not None
        assert json.loads(found[0]) == {"answer": bank.likeliest(item)}
        styles.add((text[0] in "{`", "```" in text))
    assert len(styles) == 4


# --- faults ----------------------------------------------------------------------------------------------


def test_spoilt_replies_have_their_shape_and_stay(connect: Connect) -> None:
    def spoilt(fault: str) -> tuple[Any, Any]:
        sdk = connect(SimulatorSettings(faults=FaultSettings(**{fault: 1.0})))
        first, second = ((chat(sdk, brief(0), "draft"), responses(sdk, brief(0), "draft")) for _ in range(2))
        assert first == second
        return first[0].choices[0], first[1]

    choice, response = spoilt("refusal")
    assert (choice.message.content, choice.finish_reason, response.status) == (None, "stop", "completed")
    assert choice.message.refusal == response.output[0].content[0].refusal == actor.REFUSAL
    choice, response = spoilt("cut")
    assert (choice.finish_reason, response.status) == ("length", "incomplete")
    assert response.incomplete_details.reason == "max_output_tokens"
    assert not choice.message.content.endswith("}")
    choice, response = spoilt("empty")
    assert choice.message.content == response.output_text == ""
    assert spoilt("malformed")[0].message.content


def test_content_faults_occur_near_their_shares() -> None:
    faults = FaultSettings(refusal=0.1, cut=0.2, malformed=0.3, empty=0.1)
    counts = Counter(actor.content_fault(asked(block(item), "answer"), faults) for item in drafts(600, 0))
    for name in ("refusal", "cut", "malformed", "empty"):
        assert counts[name] / 600 == pytest.approx(getattr(faults, name), abs=0.05)
    assert "malformed" not in {actor.content_fault(asked(block(item)), faults) for item in drafts(100, 0)}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_malformed_replies_break_json_or_shape(schema: str) -> None:
    settings = SimulatorSettings(faults=FaultSettings(malformed=1.0))
    texts = [offline(settings, block(item), schema) for item in drafts(60, 0)]
    fields, shapes_met = list(SCHEMAS[schema]["properties"]), set()
    for text in texts:
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            shapes_met.add("no json")
            continue
        odd = {value.get("issue"), *map(str, value.values())} & {"ugly_frame", "e"}
        wrong = "missing" if list(value) != fields else "outside" if odd else "type"
        assert wrong != "type" or isinstance(value[fields[0]], list)
        shapes_met.add(wrong)
    assert shapes_met >= {"no json", "missing", "type"}


def test_transport_faults_occur_near_their_shares(connect: Connect) -> None:
    sdk = connect(SimulatorSettings(faults=FaultSettings(http_429=0.2, http_500=0.2, drop=0.2), retry_after_s=0.5))
    met: list[openai.APIError] = []
    for i in range(150):
        try:
            chat(sdk, str(i))
        except openai.APIError as exc:
            met.append(exc)
    for kind in (openai.RateLimitError, openai.InternalServerError, openai.APIConnectionError):
        assert sum(type(exc) is kind for exc in met) / 150 == pytest.approx(0.2, abs=0.08)
    limited = next(exc for exc in met if isinstance(exc, openai.RateLimitError)).response.headers
    assert (limited["Retry-After"], limited["retry-after-ms"]) == ("0.5", "500")


def test_a_limited_request_succeeds_when_retried(connect: Connect) -> None:
    patient = connect(SimulatorSettings(faults=FaultSettings(http_429=0.6), retry_after_s=0.001), retries=30)
    plain = connect(SimulatorSettings())
    assert all(said(patient, "chat", str(i)) == said(plain, "chat", str(i)) for i in range(10))


def test_a_stall_outlasts_a_short_timeout(connect: Connect) -> None:
    sdk = connect(SimulatorSettings(faults=FaultSettings(stall=1.0), stall_s=0.15))
    with pytest.raises(openai.APITimeoutError):
        chat(sdk, "hi", timeout=0.05)
    assert said(sdk, "chat", "hi")


# --- log, profile, lifetime ------------------------------------------------------------------------------


def test_the_log_tells_what_arrived_and_no_secrets(connect: Connect, tmp_path: Path) -> None:
    path = tmp_path / "arrivals.jsonl"
    sdk = connect(SimulatorSettings(log=str(path), faults=FaultSettings(empty=1.0)))
    for _ in range(2):
        chat(sdk, brief(0), "draft")
    responses(sdk, "Which?")
    first, second, third = (json.loads(line) for line in path.read_text().splitlines())
    common = {"model": "m", "fault": "empty"}
    assert first == {**common, "digest": first["digest"], "path": wire.CHAT, "role": "generator", "n": 1}
    assert second == {**first, "n": 2}
    assert third == {**common, "digest": third["digest"], "path": wire.RESPONSES, "role": "evaluated", "n": 1}
    assert not any(secret in path.read_text() for secret in ("sk-secret", PIXEL[30:50]))


def test_the_profile_covers_content_only() -> None:
    transport = FaultSettings(http_429=0.5, http_500=0.1, stall=0.1, drop=0.1)
    same = SimulatorSettings(host="::1", port=9, latency_s=1, stall_s=9, retry_after_s=3, log="x", faults=transport)
    changes: list[dict[str, Any]] = [{"accuracy": [1] * 4}, {"skills": {"m": 0.1}}, {"issues": {"x": 0.1}}]
    changes += [{"unmatched": 0.1}, *({"faults": FaultSettings(**{name: 0.1})} for name in ("refusal", "cut"))]
    changes += [{"faults": FaultSettings(**{name: 0.1})} for name in ("malformed", "empty")]
    digests = {profile_digest(SimulatorSettings(**change)) for change in changes}
    assert all(re.fullmatch(r"[0-9a-f]{8}", digest) for digest in digests)
    assert profile_digest(same) == profile_digest(SimulatorSettings()) not in digests
    assert len(digests) == len(changes)


def test_a_port_in_use_or_a_bad_log_is_the_users_mistake(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"port {port} .*simulator\.port"), running(SimulatorSettings(port=port)):
            pass
    with pytest.raises(ConfigError, match=r"simulator\.log"), running(SimulatorSettings(log=str(tmp_path))):
        pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal(number: signal.Signals) -> None:
    code = (
        "import sys; from vpref import simulator; from vpref.settings import SimulatorSettings\n"
        "assert not {'aiohttp', 'asyncio', 'openai'} & set(sys.modules)\n"
        "simulator.serve(SimulatorSettings(), lambda url: print(url, flush=True))"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        with openai.OpenAI(base_url=process.stdout.readline().strip(), api_key="none", max_retries=0) as client:
            assert said(client, "chat", "hi")
        process.send_signal(number)
        _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (0, "")
