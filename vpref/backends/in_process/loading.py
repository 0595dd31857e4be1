"""Loading a checkpoint: its processor and its network, ready on a device, or one sentence why not.

With `checkpoint`, alone in vpref to know torch and transformers. Refuses to know what will be asked.
"""

from __future__ import annotations

import importlib
import logging
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vpref.errors import ConfigError
from vpref.redaction import redact
from vpref.settings import ModelSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Loaded:
    """A checkpoint on its device. `name` is what its replies are recorded under: on the hub with the commit loaded.
    `ends` are the tokens that end a reply, `generation` the arguments of each generate()."""

    name: str
    processor: Any
    network: Any
    device: Any
    dtype: Any
    ends: tuple[int, ...]
    generation: dict[str, Any]

    @property
    def tokenizer(self) -> Any:
        return self.processor.tokenizer


def load(model: ModelSettings) -> Loaded:
    """The checkpoint of a model's config. Raises ConfigError where it is not to be had, is none that answers about
    images, lacks weights, does not fit into memory or is not to be run as `params` want it."""
    torch, transformers = _quiet()
    generation = _generation(model, transformers)
    device = _device(model, torch)
    dtype = getattr(torch, model.in_process.dtype.value)
    folder = Path(model.name).expanduser()
    place, given = (str(folder), {}) if folder.is_dir() else (model.name, _at_the_hub(model))
    log.info("loading %s on %s in %s", model.name, device, model.in_process.dtype.value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            processor = transformers.AutoProcessor.from_pretrained(place, trust_remote_code=False, **given)
            network, told = transformers.AutoModelForImageTextToText.from_pretrained(
                place, trust_remote_code=False, dtype=dtype, output_loading_info=True, **given
            )
            network = network.to(device).eval()
    except Exception as error:  # the hub, its files and each model's own code fail in their own ways
        raise ConfigError(_why_not(model, error, given)) from error
    _check(model, processor, network, told["missing_keys"])
    ends = _made_plain(processor.tokenizer, network, transformers)
    name = f"{model.name}@{given['revision']}" if given else folder.resolve().name
    return Loaded(name, processor, network, device, dtype, ends, generation)


def reason(error: BaseException) -> str:
    """An error of others in a line."""
    lines = str(error).strip().splitlines()
    return redact(" ".join((lines[0] if lines else type(error).__name__).split())[:300]).rstrip(".")


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory is spent, the GPU's or the machine's."""
    return isinstance(error, MemoryError) or any(
        said in str(error).lower() for said in ("out of memory", "can't allocate memory", "alloc_failed")
    )


def _quiet() -> tuple[Any, Any]:
    """torch and transformers, which are to ask and tell nobody anything."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch, transformers = (importlib.import_module(name) for name in ("torch", "transformers"))
            spoken = importlib.import_module("transformers.utils.logging")
    except (ImportError, OSError) as error:  # installed, but a library beneath is missing
        raise ConfigError(
            f"torch or transformers cannot be loaded ({reason(error)}); pip install 'vpref[hf]'."
        ) from error
    spoken.set_verbosity_error()
    spoken.disable_progress_bar()
    importlib.import_module("huggingface_hub.utils.logging").set_verbosity_error()
    return torch, transformers


def _at_the_hub(model: ModelSettings) -> dict[str, Any]:
    """The commit to load, asked for once so that all files are of one; what is in the cache, where the hub does not
    answer. Raises ConfigError where it knows no such checkpoint."""
    hub, errors = (importlib.import_module(name) for name in ("huggingface_hub", "huggingface_hub.errors"))
    revision = model.in_process.revision
    try:
        return {"revision": hub.HfApi().model_info(model.name, revision=revision, timeout=20.0).sha}
    except errors.RevisionNotFoundError as error:
        raise ConfigError(f"Checkpoint {model.name} has no revision {revision!r}; set in_process.revision.") from error
    except errors.RepositoryNotFoundError as error:
        raise ConfigError(
            f"There is no checkpoint {model.name} on the Hugging Face hub, nor a folder of that name; check the name, "
            "or set HF_TOKEN where it is not for everybody."
        ) from error
    except Exception as error:  # no network, HF_HUB_OFFLINE, a proxy's page: each fails in its own way
        log.info("the hub does not answer; the cache must do", exc_info=error)
        cached = hub.try_to_load_from_cache(model.name, "config.json", revision=revision)
        commit = Path(cached).parent.name if isinstance(cached, str) else revision or "main"
        return {"revision": commit, "local_files_only": True}


def _device(model: ModelSettings, torch: Any) -> Any:
    wanted = model.in_process.device
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(wanted)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"There is no GPU {wanted} that torch can use for model {model.name!r}; set in_process.device to cpu."
        )
    return device


def _generation(model: ModelSettings, transformers: Any) -> dict[str, Any]:
    """The arguments of generate(): greedy, unless `params` hold a temperature above 0 or say `do_sample`."""
    params = dict(model.params)
    temperature = params.pop("temperature", None)
    sampling = bool(params.pop("do_sample", bool(temperature)))
    generation = {"max_new_tokens": model.in_process.max_new_tokens, "do_sample": sampling} | params
    generation |= {"temperature": temperature} if sampling and temperature else {}
    known = transformers.GenerationConfig().to_dict()
    if not isinstance(temperature or 0, (int, float)) or (temperature or 0) < 0:
        raise ConfigError(f"params.temperature of model {model.name!r} is {temperature!r}; it must be 0 or more.")
    unknown = sorted(name for name in params if name not in known)
    if unknown:
        raise ConfigError(
            f"params of model {model.name!r} may not hold {', '.join(unknown)}: transformers' generate() knows no such."
        )
    try:
        transformers.GenerationConfig(**generation).validate()
    except (ValueError, TypeError) as error:
        raise ConfigError(f"params of model {model.name!r} do not fit: {reason(error)}.") from error
    return generation


def _why_not(model: ModelSettings, error: BaseException, given: dict[str, Any]) -> str:
    if out_of_memory(error):
        return (
            f"Checkpoint {model.name} does not fit into memory ({reason(error)}); take a smaller one, or set "
            "in_process.dtype to bfloat16 or in_process.device to cpu."
        )
    if isinstance(error, ImportError):
        return f"Checkpoint {model.name} needs a package that is not installed: {reason(error)}."
    if "local_files_only" in given and isinstance(error, OSError):
        return (
            f"Checkpoint {model.name} is neither a folder nor in the cache, and the Hugging Face hub does not answer; "
            "mend the connection, or give a folder."
        )
    return (
        f"Checkpoint {model.name} cannot be loaded ({reason(error)}); give an image-text-to-text model, by its folder "
        "or its name on the Hugging Face hub (some need HF_TOKEN)."
    )


def _check(model: ModelSettings, processor: Any, network: Any, missing: set[str]) -> None:
    if getattr(processor, "tokenizer", None) is None or getattr(processor, "image_processor", None) is None:
        raise ConfigError(f"Checkpoint {model.name} has no processor of images and text; give another.")
    random = sorted(missing & {name for name, _ in network.named_parameters()})
    if random:
        raise ConfigError(
            f"Checkpoint {model.name} lacks {len(random)} of the model's weights, the first {random[0]}, so that its "
            "replies would be noise; download it again, or give another."
        )


def _made_plain(tokenizer: Any, network: Any, transformers: Any) -> tuple[int, ...]:
    """Takes away the checkpoint's own taste in sampling and penalties (it is no part of the experiment), and pads
    on the left. Returns the tokens that end a reply."""
    own = network.generation_config
    listed = own.eos_token_id if isinstance(own.eos_token_id, list) else [own.eos_token_id]
    ends = tuple(dict.fromkeys(end for end in (*listed, tokenizer.eos_token_id) if end is not None))
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token_id = ends[0] if ends else 0
    tokenizer.padding_side = "left"
    plain = transformers.GenerationConfig(
        bos_token_id=own.bos_token_id,
        eos_token_id=list(ends) or None,
        pad_token_id=tokenizer.pad_token_id,
        decoder_start_token_id=own.decoder_start_token_id,
    )
    for module in network.modules():  # InstructBLIP generates by a model within the model
        if getattr(module, "generation_config", None) is not None:
            module.generation_config = plain
    return ends
