"""A loaded checkpoint's replies to batches of questions.

Replies are greedy unless the config's params say otherwise, and do not depend on what else is in the batch: padding
is masked, and sampling draws from each call's own seed. Refuses to know about stores, events and items.
"""

from __future__ import annotations

import importlib
import inspect
import io
import logging
import threading
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from PIL import Image

from vpref.backends.in_process.body import Question
from vpref.backends.in_process.loading import Loaded, load, out_of_memory, reason
from vpref.domain import ModelReply, Usage
from vpref.errors import CallFailed, ConfigError
from vpref.settings import ModelSettings

log = logging.getLogger(__name__)

_SPACED = " \t\n▁Ġ"
"""White space, and what tokenizers write it as."""


class Checkpoint:
    """Made in the thread that uses it. `troubles` counts batches too large for memory; once `stopping` is set,
    answering ends in an exception at the next token."""

    def __init__(self, model: ModelSettings, troubles: Counter[str], stopping: threading.Event) -> None:
        self._loaded: Loaded = load(model)
        self._torch: Any = importlib.import_module("torch")
        self._prompt = model.in_process.prompt
        self._troubles = troubles
        self._stopping = stopping

    def answer(self, questions: Sequence[Question]) -> list[ModelReply | CallFailed]:
        """The replies, in order, of questions of one kind. What fails together is asked in halves, so that each
        fails for itself alone."""
        try:
            return self._together(questions)
        except Exception as error:  # each model's own code fails in its own ways
            if self._stopping.is_set() or isinstance(error, ConfigError):
                raise
            short = out_of_memory(error)
            self._troubles["out_of_memory" if short else "model_error"] += 1
            log.info("a batch of %d failed", len(questions), exc_info=error)
            said = reason(error)
        if short and self._loaded.device.type == "cuda":
            self._torch.cuda.empty_cache()
        if len(questions) > 1:
            middle = len(questions) // 2
            return self.answer(questions[:middle]) + self.answer(questions[middle:])
        if short:
            advice = "set image.max_side or in_process.max_new_tokens lower, or in_process.dtype to bfloat16"
            return [CallFailed("out_of_memory", f"one request alone does not fit into memory ({said}); {advice}")]
        return [CallFailed("model_error", said)]

    def _together(self, questions: Sequence[Question]) -> list[ModelReply | CallFailed]:
        refused = [self._refusal(question) for question in questions]
        if not any(refused):
            inputs = self._inputs(questions)
            refused = self._too_long(inputs, 1 if questions[0].options else self._loaded.generation["max_new_tokens"])
        if any(refused):
            fitting = [question for question, refusal in zip(questions, refused, strict=True) if refusal is None]
            answers = iter(self.answer(fitting) if fitting else ())
            return [next(answers) if refusal is None else refusal for refusal in refused]
        if questions[0].options:
            return self._bound(inputs, questions[0].options)
        if self._loaded.generation["do_sample"] and len(questions) > 1:
            return [reply for question in questions for reply in self.answer([question])]
        self._torch.manual_seed(questions[0].seed)
        return self._free(inputs)

    # --- asking ----------------------------------------------------------------------------------------------

    def _refusal(self, question: Question) -> CallFailed | None:
        if self._image_needed and not question.images:
            return CallFailed("no_image", f"{self._loaded.name} answers about an image alone, and is shown none")
        if len(question.images) > 1 and (self._prompt is not None or self._template is None):
            return CallFailed(
                "several_images", f"{self._loaded.name} has no chat template, and takes one image at most"
            )
        return None

    @cached_property
    def _image_needed(self) -> bool:
        pixels = inspect.signature(self._loaded.network.generate).parameters.get("pixel_values")
        return pixels is not None and pixels.default is inspect.Parameter.empty

    @cached_property
    def _template(self) -> Any:
        """What applies the checkpoint's chat template, if it has one. BLIP's kind, asked about an image alone, puts the
        image before the text by itself: a template that came with its language model would place it twice."""
        if self._image_needed:
            return None
        processor = self._loaded.processor
        for owner in (processor, processor.tokenizer):
            if getattr(owner, "chat_template", None):
                return owner.apply_chat_template
        return None

    def _text(self, question: Question) -> str:
        if self._prompt is not None:
            return self._prompt.replace("{text}", _flat(question.turns))
        if self._template is None:
            return _flat(question.turns)
        try:
            return str(self._template(list(question.turns), tokenize=False, add_generation_prompt=True))
        except importlib.import_module("jinja2").TemplateError:  # some know no system turn
            return str(self._template(_without_system(question.turns), tokenize=False, add_generation_prompt=True))

    def _inputs(self, questions: Sequence[Question]) -> Any:
        """Nothing is cut: what is too long is found afterwards."""
        texts = [self._text(question) for question in questions]
        begin = self._loaded.tokenizer.bos_token
        more = {"add_special_tokens": False} if begin and all(text.startswith(begin) for text in texts) else {}
        images = [[_decoded(data) for data in question.images] for question in questions]
        inputs = self._loaded.processor(
            text=texts, images=images if any(images) else None, return_tensors="pt", padding=True, **more
        )
        return inputs.to(self._loaded.device, dtype=self._loaded.dtype)

    def _too_long(self, inputs: Any, room: int) -> list[CallFailed | None]:
        config, name = self._loaded.network.config, self._loaded.name
        text = config.get_text_config(decoder=True)
        limits = {"attention_mask": (getattr(text, "max_position_embeddings", None), room, name)}
        if (former := getattr(config, "qformer_config", None)) is not None:
            limits["qformer_attention_mask"] = (former.max_position_embeddings, 0, f"the Q-Former of {name}")
        found: list[CallFailed | None] = [None] * len(inputs["input_ids"])
        for mask, (limit, more, who) in limits.items():
            if limit is None or mask not in inputs:
                continue
            for row, length in enumerate(inputs[mask].sum(dim=1).tolist()):
                if length + more > limit:
                    reply = f" and its reply up to {more}" if more else ""
                    found[row] = CallFailed("too_long", f"the prompt has {length} tokens{reply}; {who} takes {limit}")
        return found

    def _generate(self, inputs: Any, **arguments: Any) -> Any:
        rows, torch = len(inputs["input_ids"]), self._torch

        def stop(*_: Any, **__: Any) -> Any:
            if self._stopping.is_set():
                raise InterruptedError("told to stop")
            return torch.zeros(rows, dtype=torch.bool, device=self._loaded.device)

        with torch.inference_mode():
            return self._loaded.network.generate(**inputs, **arguments, stopping_criteria=[stop])

    # --- answers ---------------------------------------------------------------------------------------------

    def _free(self, inputs: Any) -> list[ModelReply | CallFailed]:
        asked = inputs["input_ids"]
        told = self._generate(inputs, **self._loaded.generation)
        width = asked.shape[1]
        # Some models return the prompt's tokens before their own, some (encoder-decoder ones, say) do not.
        echoed = told.shape[1] >= width and bool((told[:, :width] == asked).all())
        rows = (told[:, width:] if echoed else told).tolist()
        return [self._reply(row, used) for row, used in zip(rows, _lengths(inputs), strict=True)]

    def _reply(self, tokens: list[int], used: int) -> ModelReply:
        end = next((place for place, token in enumerate(tokens) if token in self._loaded.ends), None)
        kept = tokens if end is None else tokens[:end]
        text = self._loaded.tokenizer.decode(kept, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return ModelReply(
            text=text.strip(),
            finish="length" if end is None else "stop",
            model=self._loaded.name,
            usage=Usage(input=used, output=len(kept) + (end is not None)),
        )

    def _bound(self, inputs: Any, options: tuple[str, ...]) -> list[ModelReply | CallFailed]:
        """The likeliest option by the next token's probabilities."""
        told = self._generate(
            inputs, max_new_tokens=1, do_sample=False, output_logits=True, return_dict_in_generate=True
        )
        shares = told.logits[0].double().softmax(dim=-1)
        places = [self._tokens_of(option) for option in options]
        by_option = [shares[:, place].sum(dim=1).tolist() for place in places]
        replies: list[ModelReply | CallFailed] = []
        for row, used in enumerate(_lengths(inputs)):
            found = {option: by_option[number][row] for number, option in enumerate(options)}
            replies.append(
                ModelReply(
                    text=max(found, key=lambda option: found[option]),
                    model=self._loaded.name,
                    usage=Usage(input=used, output=1),
                    probabilities={option: float(f"{share:.4g}") for option, share in found.items()},
                )
            )
        return replies

    def _tokens_of(self, option: str) -> list[int]:
        """The tokens that say an option, in any case and after any white space."""
        vocabulary = self._loaded.tokenizer.get_vocab()
        found = [number for token, number in vocabulary.items() if token.strip(_SPACED).lower() == option]
        if not found:
            raise ConfigError(f"{self._loaded.name} has no single token for {option!r}; set ablation.answer=free.")
        return sorted(found)


def _lengths(inputs: Any) -> list[int]:
    """Tokens of each prompt, an image's places included."""
    lengths: list[int] = inputs["attention_mask"].sum(dim=1).tolist()
    return lengths


def _decoded(data: bytes) -> Image.Image:
    with Image.open(io.BytesIO(data)) as image:
        return image.convert("RGB")


def _flat(turns: Sequence[dict[str, Any]]) -> str:
    """A conversation as one text, for a checkpoint without turns; who speaks is told where models speak too."""
    texts = ("\n\n".join(piece["text"] for piece in turn["content"] if "text" in piece) for turn in turns)
    said = [(turn["role"], text) for turn, text in zip(turns, texts, strict=True)]
    if all(speaker != "assistant" for speaker, _ in said):
        return "\n\n".join(text for _, text in said)
    return "\n\n".join(f"{speaker.title()}: {text}" for speaker, text in said) + "\n\nAssistant:"


def _without_system(turns: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same turns with the system's words at the start of the user's first."""
    system = [piece for turn in turns if turn["role"] == "system" for piece in turn["content"]]
    first, *rest = (turn for turn in turns if turn["role"] != "system")
    return [{**first, "content": [*system, *first["content"]]}, *rest]
