"""Tiny checkpoints in this process: what is asked of each family, what is read of its reply, what fails and how."""

from __future__ import annotations

import importlib
import importlib.util
import io
import json
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from vpref.backends.in_process.body import Question
from vpref.domain import LETTERS, ModelReply
from vpref.errors import CallFailed, ConfigError
from vpref.settings import Api, Dtype, InProcessSettings, ModelSettings, Structured

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
    pytest.skip("torch and transformers are not installed here: make test-hf", allow_module_level=True)

from tests import checkpoints
from vpref.backends.in_process.checkpoint import Checkpoint
from vpref.backends.in_process.loading import out_of_memory

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

FAMILIES = ("instructblip", "llava", "qwen2_vl", "smolvlm")
NEW = 12


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A checkpoint's folder by family and its options, made once."""
    root, made = tmp_path_factory.mktemp("checkpoints"), dict[str, Path]()

    def make(family: str, **options: Any) -> Path:
        name = f"{family}{len(made)}" if options else family
        known = f"{family}{sorted(options.items())}"
        if known not in made:
            made[known] = getattr(checkpoints, family)(root / name, **options)
        return made[known]

    return make


def load(folder: Path, params: dict[str, Any] | None = None, **running: Any) -> Checkpoint:
    given: dict[str, Any] = {"device": "cpu", "max_new_tokens": NEW} | running
    settings = InProcessSettings(**given)
    model = ModelSettings(
        name=str(folder),
        server="transformers",
        api=Api.transformers,
        structured=Structured.prompt,
        params=params or {},
        in_process=settings,
    )
    return Checkpoint(model, Counter(), threading.Event())


def picture(number: int) -> bytes:
    """A PNG of its own size and colours."""
    file = io.BytesIO()
    image = Image.linear_gradient("L").resize((60 + 30 * number, 90)).convert("RGB")
    image.paste((20 * number, 90, 250 - 20 * number), (10, 10, 40, 50))
    image.save(file, "PNG")
    return file.getvalue()


def asked(
    text: str, number: int | None = 0, *, system: str = "", seed: int = 7, options: Sequence[str] = ()
) -> Question:
    images = () if number is None else (picture(number),)
    content: list[dict[str, Any]] = [{"type": "image"} for _ in images]
    turns: list[dict[str, Any]] = [{"role": "user", "content": [*content, {"type": "text", "text": text}]}]
    if system:
        turns.insert(0, {"role": "system", "content": [{"type": "text", "text": system}]})
    return Question(tuple(turns), images, tuple(options), seed)


EIGHT = [asked(f"Which one? {'Look well. ' * (number % 5) * number}", number, seed=number) for number in range(8)]


def in_batches(checkpoint: Checkpoint, questions: Sequence[Question], size: int) -> list[ModelReply | CallFailed]:
    starts = range(0, len(questions), size)
    return [reply for start in starts for reply in checkpoint.answer(questions[start : start + size])]


def replies(found: Sequence[ModelReply | CallFailed]) -> list[ModelReply]:
    return [one for one in found if isinstance(one, ModelReply)]


def texts(found: Sequence[ModelReply | CallFailed]) -> list[str]:
    return [one.text for one in replies(found)]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_reply_is_what_the_network_says_after_the_prompt_greedily(family: str, tiny: Callable[..., Path]) -> None:
    """Against a plain loop over the network's own forward pass."""
    torch, hf = importlib.import_module("torch"), importlib.import_module("transformers")
    folder, text = tiny(family), "Which one is it?"
    (reply,) = replies(load(folder).answer([asked(text)]))
    processor = hf.AutoProcessor.from_pretrained(folder)
    network = hf.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)
    shown = text
    if family != "instructblip":
        turn = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": text}]}
        shown = processor.apply_chat_template([turn], add_generation_prompt=True)
    image = Image.open(io.BytesIO(picture(0))).convert("RGB")
    inputs = dict(processor(text=[shown], images=[image], return_tensors="pt"))
    prompt, said = inputs["input_ids"], list[int]()
    while len(said) < NEW and 6 not in said:
        inputs["input_ids"] = torch.cat([prompt, torch.tensor([said], dtype=torch.long)], dim=1)
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        if "mm_token_type_ids" in inputs:
            kinds = torch.zeros_like(inputs["input_ids"])
            kinds[:, : prompt.shape[1]] = inputs["mm_token_type_ids"][:, : prompt.shape[1]]
            inputs["mm_token_type_ids"] = kinds
        with torch.no_grad():
            said.append(int(network(**inputs).logits[0, -1].argmax()))
    assert reply.text == processor.tokenizer.decode(said, skip_special_tokens=True).strip()
    assert (reply.usage.input, reply.usage.output) == (prompt.shape[1], len(said))
    assert reply.finish == ("stop" if 6 in said else "length")
    assert reply.model == folder.name


@pytest.mark.parametrize("family", FAMILIES)
def test_replies_do_not_depend_on_the_batch(family: str, tiny: Callable[..., Path]) -> None:
    checkpoint = load(tiny(family))
    alone = in_batches(checkpoint, EIGHT, 1)
    assert len(replies(alone)) == len(EIGHT)
    assert len({one.text for one in replies(alone)}) > 4, "the tiny model says different things"
    assert in_batches(checkpoint, EIGHT, 4) == alone
    assert in_batches(checkpoint, EIGHT, 8) == alone


@pytest.mark.parametrize("family", FAMILIES)
def test_the_image_and_its_absence_are_seen(family: str, tiny: Callable[..., Path]) -> None:
    checkpoint = load(tiny(family))
    found = checkpoint.answer([asked("Which?", 0), asked("Which?", 5)])
    assert len({one.text for one in replies(found)}) == 2
    (without,) = checkpoint.answer([asked("Which?", None)])
    if family == "instructblip":
        assert isinstance(without, CallFailed)
        assert without.kind == "no_image"
    else:
        assert isinstance(without, ModelReply)


def test_a_reply_ends_where_the_checkpoint_says_so(tiny: Callable[..., Path], tmp_path: Path) -> None:
    """With the fourth token that it says declared an end, the reply is the three before."""
    hf = importlib.import_module("transformers")
    folder = Path(shutil.copytree(tiny("llava"), tmp_path / "ends"))
    (whole,) = replies(load(folder).answer([asked("Which?")]))
    tokens = _said(load(folder), asked("Which?"))
    place = next(number for number, token in enumerate(tokens) if number > 2 and token not in tokens[:number])
    config = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps(config | {"eos_token_id": [6, tokens[place]]}))
    (ended,) = replies(load(folder).answer([asked("Which?")]))
    assert (whole.finish, ended.finish) == ("length", "stop")
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    assert ended.text == tokenizer.decode(tokens[:place], skip_special_tokens=True).strip()
    assert ended.usage.output == place + 1


def _said(checkpoint: Checkpoint, question: Question) -> list[int]:
    inputs = checkpoint._inputs([question])
    told = checkpoint._generate(inputs, max_new_tokens=NEW, do_sample=False)[0].tolist()
    tokens: list[int] = told[inputs["input_ids"].shape[1] :]
    return tokens


def test_a_checkpoints_own_taste_in_sampling_is_left_out(tiny: Callable[..., Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny("llava"), tmp_path / "spiced"))
    config = json.loads((folder / "generation_config.json").read_text())
    spice = {"do_sample": True, "temperature": 1.7, "top_k": 5, "repetition_penalty": 1.8}
    (folder / "generation_config.json").write_text(json.dumps(config | spice))
    assert texts(load(folder).answer(EIGHT[:3])) == texts(load(tiny("llava")).answer(EIGHT[:3]))


def test_sampling_draws_from_each_calls_own_seed(tiny: Callable[..., Path]) -> None:
    checkpoint = load(tiny("llava"), {"temperature": 1.0})
    same = [asked("Which?", seed=seed) for seed in (1, 1, 2, 3)]
    one, again, *others = (reply.text for reply in replies(checkpoint.answer(same)))
    assert one == again
    assert len({one, *others}) == 3
    greedy = load(tiny("llava"), {"temperature": 0}).answer(same)
    assert len({reply.text for reply in replies(greedy)}) == 1


@pytest.mark.parametrize(
    ("family", "options", "said"),
    [
        ("instructblip", {"former_positions": 64}, "the Q-Former of"),
        ("llava", {"positions": 128}, f"and its reply up to {NEW}"),
    ],
)
def test_what_is_too_long_fails_alone_and_is_never_cut(
    family: str, options: dict[str, int], said: str, tiny: Callable[..., Path]
) -> None:
    checkpoint = load(tiny(family, **options))
    short, long = asked("Which?", 1), asked("Which? " * 60, 2)
    first, failed, last = checkpoint.answer([short, long, short])
    assert isinstance(failed, CallFailed)
    assert failed.kind == "too_long"
    assert said in str(failed)
    assert str(next(iter(options.values()))) in str(failed)
    assert [first] == checkpoint.answer([short]) == [last]
    assert isinstance(first, ModelReply)


def test_one_that_breaks_the_model_fails_alone(tiny: Callable[..., Path]) -> None:
    """An image's placeholder in the text, with no image for it."""
    troubles: Counter[str] = Counter()
    checkpoint = load(tiny("llava"))
    checkpoint._troubles = troubles
    first, broken, last = checkpoint.answer([EIGHT[0], asked("Is <image> the word?", 1), EIGHT[2]])
    assert isinstance(broken, CallFailed)
    assert broken.kind == "model_error"
    assert [first, last] == checkpoint.answer([EIGHT[0], EIGHT[2]])
    assert troubles == {"model_error": 3}, "three together, the last two, the one"


@pytest.mark.parametrize("dtype", [Dtype.float16, Dtype.bfloat16])
@pytest.mark.parametrize("family", FAMILIES)
def test_halves_will_do(family: str, dtype: Dtype, tiny: Callable[..., Path]) -> None:
    assert len(replies(load(tiny(family), dtype=dtype).answer(EIGHT[:2]))) == 2


def test_memory_that_is_spent_is_told_from_other_errors() -> None:
    torch = importlib.import_module("torch")
    with pytest.raises(RuntimeError) as spent:
        torch.empty(2**52)
    assert out_of_memory(spent.value)
    with pytest.raises(RuntimeError) as other:
        torch.ones(2) @ torch.ones(3)
    assert not out_of_memory(other.value)


def test_a_template_without_system_turn_gets_its_words_in_the_users(tiny: Callable[..., Path]) -> None:
    """After the image's place nothing changes but that: the same text as a user's turn gives the same reply."""
    strict = load(tiny("llava", template=checkpoints.NO_SYSTEM))
    (folded,) = strict.answer([asked("Which?", None, system="Be brief. ")])
    (told,) = strict.answer([asked("Be brief. Which?", None)])
    assert isinstance(folded, ModelReply)
    assert folded == told
    (own,) = load(tiny("llava")).answer([asked("Which?", None, system="Be brief. ")])
    assert texts([own]) != texts([folded]), "a template that knows system turns gets one"


def test_a_template_that_instructblips_language_model_brought_is_not_used(tiny: Callable[..., Path]) -> None:
    brought = load(tiny("instructblip", template=checkpoints.CHAT)).answer(EIGHT)
    assert texts(brought) == texts(load(tiny("instructblip")).answer(EIGHT))
    assert len(texts(brought)) == len(EIGHT)


def test_a_prompt_of_the_config_is_used_instead_of_a_template(tiny: Callable[..., Path]) -> None:
    bare = tiny("llava", template=None)
    prompted = load(bare, prompt="USER: <image>\n{text} ASSISTANT:").answer(EIGHT)
    assert len(replies(prompted)) == len(EIGHT)
    assert texts(prompted) == texts(load(tiny("llava"), prompt="USER: <image>\n{text} ASSISTANT:").answer(EIGHT))
    assert texts(prompted) != texts(load(tiny("llava")).answer(EIGHT))
    (unplaced,) = load(bare).answer([asked("Which?")])
    assert isinstance(unplaced, CallFailed), "a text with no place for the image is no question about it"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_bound_answer_is_the_likeliest_letter_with_the_networks_probabilities(
    family: str, tiny: Callable[..., Path]
) -> None:
    torch = importlib.import_module("torch")
    checkpoint = load(tiny(family))
    questions = [replace(question, options=LETTERS) for question in EIGHT]
    found = replies(checkpoint.answer(questions))
    assert len(found) == len(EIGHT)
    tokenizer = checkpoint._loaded.tokenizer
    for question, reply in zip(questions, found, strict=True):
        with torch.no_grad():
            logits = checkpoint._loaded.network(**checkpoint._inputs([question])).logits[0, -1]
        shares = torch.softmax(logits.double(), dim=-1)
        numbers = {letter: [n for t, n in tokenizer.get_vocab().items() if t in _forms(letter)] for letter in LETTERS}
        wanted = {letter: float(shares[places].sum()) for letter, places in numbers.items()}
        assert reply.probabilities == pytest.approx(wanted, rel=1e-3)
        assert reply.text == max(wanted, key=lambda letter: wanted[letter])
        assert reply.finish == "stop"
    alone = replies(in_batches(checkpoint, questions, 1))
    assert [one.text for one in alone] == [one.text for one in found]


def _forms(letter: str) -> set[str]:
    return {letter, letter.upper(), f"Ġ{letter}", f"Ġ{letter.upper()}"}


def test_a_checkpoint_that_lacks_weights_is_refused(tiny: Callable[..., Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny("llava"), tmp_path / "holed"))
    safetensors = importlib.import_module("safetensors.torch")
    held = safetensors.load_file(folder / "model.safetensors")
    gone = next(name for name in held if "layers.1" in name and "mlp" in name)
    del held[gone]
    safetensors.save_file(held, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigError, match="lacks 1 of the model's weights"):
        load(folder)


@pytest.mark.parametrize(
    ("params", "running", "said"),
    [
        ({"seed": 1}, {}, "may not hold seed"),
        ({"temperature": -1}, {}, "must be 0 or more"),
        ({"early_stopping": "perhaps"}, {}, "do not fit"),
        ({}, {"device": "cuda:77"}, "no GPU cuda:77"),
    ],
)
def test_what_cannot_be_run_as_wanted_is_one_sentence(
    params: dict[str, Any], running: dict[str, Any], said: str, tiny: Callable[..., Path]
) -> None:
    with pytest.raises(ConfigError, match=said):
        load(tiny("llava"), params, **running)


def test_what_is_no_checkpoint_for_images_is_one_sentence(tiny: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "config.json").write_text('{"model_type": "gpt2"}')
    spoilt = Path(shutil.copytree(tiny("llava"), tmp_path / "spoilt"))
    (spoilt / "model.safetensors").write_bytes((spoilt / "model.safetensors").read_bytes()[:100_000])
    for folder in (tmp_path / "text", spoilt):
        with pytest.raises(ConfigError, match="cannot be loaded") as refused:
            load(folder)
        assert "\n" not in str(refused.value)
