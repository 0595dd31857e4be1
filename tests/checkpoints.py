"""Tiny, untrained checkpoints, made on the spot: a few layers of each family and a tokenizer of bytes. Their replies
are noise by design; what they test is the road to a reply. Needs torch and transformers."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

_SPECIAL = ["<unk>", "<s>", "</s>", "<pad>", "<image>", "<|im_start|>", "<|im_end|>"]
_SPECIAL += ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
_SPECIAL += ["<fake_token_around_image>", "<global-img>", "<end_of_utterance>", "<video>"]
_VISION = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
_VISION |= {"image_size": 56, "patch_size": 14}
CHAT = (
    "{% for turn in messages %}<|im_start|>{{ turn['role'] }}\n{% for part in turn['content'] %}"
    "{% if part['type'] == 'image' %}IMAGE{% else %}{{ part['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
NO_SYSTEM = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system turn') }}{% endif %}" + CHAT


def _tokenizer(hf: Any) -> Any:
    tok = importlib.import_module("tokenizers")
    made = tok.Tokenizer(tok.models.BPE())
    made.pre_tokenizer = tok.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tok.decoders.ByteLevel()
    alphabet = tok.pre_tokenizers.ByteLevel.alphabet()
    words = ["choose the action that follows their preference answer with the letter of the one right choice"]
    trainer = tok.trainers.BpeTrainer(
        vocab_size=500, special_tokens=_SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(words * 10, trainer)
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=made,
        bos_token="<s>",
        eos_token="<|im_end|>",
        pad_token="<pad>",
        unk_token="<unk>",
        additional_special_tokens=_SPECIAL[4:],
    )


def _text(hf: Any, tokenizer: Any, positions: int = 4096) -> Any:
    return hf.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=positions,
        bos_token_id=1,
        eos_token_id=6,
        pad_token_id=3,
    )


def instructblip(folder: Path, *, former_positions: int = 512, template: str | None = None) -> Path:
    """As the real one: no chat template (but one that its language model brought), and a Q-Former of bounded length."""
    hf, tokenizer = _start()
    tokenizer.chat_template = template and template.replace("IMAGE", "<image>")
    config = hf.InstructBlipConfig(
        vision_config=hf.InstructBlipVisionConfig(**_VISION).to_dict(),
        qformer_config=hf.InstructBlipQFormerConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            encoder_hidden_size=32,
            max_position_embeddings=former_positions,
        ).to_dict(),
        text_config=_text(hf, tokenizer).to_dict(),
        num_query_tokens=4,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
    )
    images = hf.BlipImageProcessor(size={"height": 56, "width": 56})
    processor = hf.InstructBlipProcessor(
        image_processor=images, tokenizer=tokenizer, qformer_tokenizer=tokenizer, num_query_tokens=4
    )
    return _saved(folder, hf.InstructBlipForConditionalGeneration(config), processor)


def llava(folder: Path, *, template: str | None = CHAT, positions: int = 4096) -> Path:
    hf, tokenizer = _start()
    config = hf.LlavaConfig(
        vision_config=hf.CLIPVisionConfig(**_VISION, projection_dim=32),
        text_config=_text(hf, tokenizer, positions),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
    )
    images = hf.CLIPImageProcessor(size={"shortest_edge": 56}, crop_size={"height": 56, "width": 56})
    processor = hf.LlavaProcessor(
        image_processor=images,
        tokenizer=tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=template and template.replace("IMAGE", "<image>\n"),
    )
    return _saved(folder, hf.LlavaForConditionalGeneration(config), processor)


def qwen2_vl(folder: Path) -> Path:
    """Images as many tokens as they are large."""
    hf, tokenizer = _start()
    number = tokenizer.convert_tokens_to_ids
    text = _text(hf, tokenizer).to_dict() | {"rope_scaling": {"rope_type": "default", "mrope_section": [4, 6, 6]}}
    text.pop("rope_parameters", None)
    text.pop("model_type", None)
    config = hf.Qwen2VLConfig(
        text_config=text,
        vision_config={"depth": 2, "embed_dim": 32, "num_heads": 2, "hidden_size": 64, "patch_size": 14},
        image_token_id=number("<|image_pad|>"),
        video_token_id=number("<|video_pad|>"),
        vision_start_token_id=number("<|vision_start|>"),
        vision_end_token_id=number("<|vision_end|>"),
    )
    processor = hf.Qwen2VLProcessor(
        image_processor=hf.Qwen2VLImageProcessor(min_pixels=28 * 28, max_pixels=140 * 140),
        video_processor=hf.Qwen2VLVideoProcessor(),
        tokenizer=tokenizer,
        chat_template=CHAT.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>"),
    )
    return _saved(folder, hf.Qwen2VLForConditionalGeneration(config), processor)


def smolvlm(folder: Path) -> Path:
    """Large images in tiles: how many images the network sees differs by item."""
    hf, tokenizer = _start()
    config = hf.SmolVLMConfig(
        vision_config=_VISION | {"patch_size": 14, "model_type": "smolvlm_vision"},
        text_config=_text(hf, tokenizer).to_dict(),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=3,
    )
    images = hf.SmolVLMImageProcessor(size={"longest_edge": 112}, max_image_size={"longest_edge": 56})
    processor = hf.SmolVLMProcessor(
        image_processor=images,
        tokenizer=tokenizer,
        video_processor=hf.SmolVLMVideoProcessor(
            size={"longest_edge": 56}, max_image_size={"longest_edge": 56}, video_sampling={"fps": 1, "max_frames": 2}
        ),
        image_seq_len=4,
        chat_template=CHAT.replace("IMAGE", "<image>"),
    )
    return _saved(folder, hf.SmolVLMForConditionalGeneration(config), processor)


def _start() -> tuple[Any, Any]:
    hf = importlib.import_module("transformers")
    importlib.import_module("torch").manual_seed(0)
    return hf, _tokenizer(hf)


def _saved(folder: Path, network: Any, processor: Any) -> Path:
    """Weights are drawn wide, so that the untrained do not all say the same."""
    torch = importlib.import_module("torch")
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, 0.2)
    network.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
