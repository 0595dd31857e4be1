"""Who a checkpoint is: moved it is the same, changed it is another."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from vpref.errors import ConfigError
from vpref.weights import identity

LONG_AGO = 1_600_000_000


def checkpoint(folder: Path) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "tiny"}')
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(os.urandom(2**20 + 7))
    os.utime(folder / "model.safetensors", (LONG_AGO, LONG_AGO))
    return folder


def test_a_moved_or_copied_folder_is_the_same_and_a_changed_one_is_not(tmp_path: Path) -> None:
    memory = tmp_path / "store" / "weights.json"
    folder = checkpoint(tmp_path / "a")
    first = identity(str(folder), None, memory)
    assert first.startswith("sha256:")
    assert identity(str(folder), "ignored", memory) == first
    moved = shutil.move(folder, tmp_path / "b")
    assert identity(str(moved), None, memory) == first
    copied = shutil.copytree(moved, tmp_path / "c")
    (copied / "README.md").write_text("of no account")
    (copied / ".cache").mkdir()
    (copied / ".cache" / "notes.json").write_text("{}")
    assert identity(str(copied), None, memory) == first
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (copied / name).write_bytes((copied / name).read_bytes() + b" ")
        changed = identity(str(copied), None, memory)
        assert changed != first
        first = changed
    (copied / "chat_template.jinja").write_text("{{ messages }}")
    assert identity(str(copied), None, memory) != first


def test_one_byte_amid_the_weights_counts_though_the_size_stays(tmp_path: Path) -> None:
    memory, folder = tmp_path / "weights.json", checkpoint(tmp_path / "a")
    first = identity(str(folder), None, memory)
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[2**19] ^= 1
    (folder / "model.safetensors").write_bytes(data)
    assert identity(str(folder), None, memory) != first


def test_large_files_are_read_once_and_a_spoilt_memory_is_no_harm(tmp_path: Path) -> None:
    memory, folder = tmp_path / "weights.json", checkpoint(tmp_path / "a")
    first = identity(str(folder), None, memory)
    ((path, entry),) = json.loads(memory.read_text()).items()
    assert path == str((folder / "model.safetensors").resolve())
    memory.write_text(json.dumps({path: [*entry[:3], "0" * 64]}))
    assert identity(str(folder), None, memory) != first, "the remembered digest was taken"
    for spoilt in ("{", "[]", json.dumps({path: 3}), json.dumps({path: entry[:3]})):
        memory.write_text(spoilt)
        assert identity(str(folder), None, memory) == first


def test_a_file_just_written_is_not_remembered(tmp_path: Path) -> None:
    memory, folder = tmp_path / "weights.json", checkpoint(tmp_path / "a")
    os.utime(folder / "model.safetensors")
    identity(str(folder), None, memory)
    assert not memory.exists()


def test_on_the_hub_it_is_name_and_revision(tmp_path: Path) -> None:
    memory = tmp_path / "weights.json"
    assert identity("org/name", None, memory) == "org/name@main"
    assert identity("org/name", "abc123", memory) == "org/name@abc123"
    assert not memory.exists()


@pytest.mark.parametrize("given", ["/no/such/folder", "./absent", "~/absent", "a/b/c"])
def test_what_is_neither_is_one_sentence(given: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no checkpoint folder"):
        identity(given, None, tmp_path / "weights.json")


def test_a_folder_without_a_checkpoint_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no config\.json"):
        identity(str(tmp_path), None, tmp_path / "weights.json")
