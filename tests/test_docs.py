"""What documents show as a command's output is what the command gives."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.commands import ROOT, run

COMPARING = ROOT / "docs" / "comparing.md"
TABLES = re.compile(r"(<!-- tables -->\n).*?(<!-- end of tables -->)", re.DOTALL)


def counted(folder: Path, *arguments: str) -> Path:
    """The folder of tables that `vpref report` wrote."""
    out, _ = run("report", *arguments, cwd=folder)
    line = next(line for line in out.splitlines() if line.startswith("tables: "))
    return folder / line.removeprefix("tables: ")


def test_comparing_shows_what_the_command_prints(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    tables = counted(tmp_path, "counts=paper")
    wanted = "\n".join(path.read_text(encoding="utf-8") for path in sorted(tables.glob("*.md"), key=written_order))
    if request.config.getoption("--update-golden"):
        text = COMPARING.read_text(encoding="utf-8")
        COMPARING.write_text(TABLES.sub(lambda found: found[1] + wanted + found[2], text), encoding="utf-8")
    found = TABLES.search(COMPARING.read_text(encoding="utf-8"))
    assert found is not None
    assert found[0] == f"<!-- tables -->\n{wanted}<!-- end of tables -->"


def written_order(path: Path) -> tuple[str, bool]:
    return path.stem.rpartition("_")[2], "pairs" in path.stem


def test_what_comparing_says_of_the_paper_s_models_is_in_the_tables(tmp_path: Path) -> None:
    tables = counted(tmp_path, "counts=paper")
    for variant in ("boxes", "plain"):
        pairs = json.loads((tables / f"counted_pairs_{variant}.json").read_text())["records"]
        said = {(one["a"]["model"], one["b"]["model"]): one["verdict"] for one in pairs}
        assert len(said) == 15
        assert said["Qwen3-VL-8B-Instruct", "Qwen3-VL-32B-Instruct"] == "within noise"
        assert said["GPT-5 mini", "InstructBLIP-7B"] == "A better"


def test_the_example_of_a_counts_file_works(tmp_path: Path) -> None:
    example = next(line.strip() for line in COMPARING.read_text().splitlines() if line.startswith('    {"source"'))
    (tmp_path / "counts.json").write_text(example)
    tables = counted(tmp_path, "counts=counts.json")
    [record] = json.loads((tables / "counted_plain.json").read_text())["records"]
    assert record["overall"] == {"right": 65, "of": 76, "accuracy": 85.5}
