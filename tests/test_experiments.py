"""The experiments: their READMEs' own commands from end to end on the simulator, and the paper's figures in them."""

from __future__ import annotations

import glob
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.commands import QUIET, ROOT, complaint, run
from tests.reported import embedded

EXPERIMENTS = ROOT / "experiments"
PAPER = ROOT.parent / "shared" / "paper" / "tables.json"
READMES = sorted(EXPERIMENTS.glob("*/README.md"))
CONFIGS = sorted(path for path in EXPERIMENTS.glob("*/*") if path.name != "README.md")


def commands(readme: Path) -> list[list[str]]:
    """The commands that a README gives, without `vpref`, long ones joined."""
    text = readme.read_text().replace("\\\n", " ")
    return [shlex.split(line, comments=True)[1:] for line in text.splitlines() if line.startswith("    vpref ")]


def rehearsed(words: list[str]) -> list[str]:
    """A command on four shipped photos and the simulator."""
    small = {"generate": ["rehearse=true", "data.first=4", "detection=file"], "evaluate": ["rehearse=true"]}
    kept = [word.replace("experiments/", f"{EXPERIMENTS}/") for word in words if not word.startswith("data.root=")]
    return kept + (small[words[0]] + QUIET if words[0] in small else [])


def test_there_is_one_folder_a_question_of_configs_and_a_readme() -> None:
    named = re.findall(r"^\| \[(\w+)\]", (EXPERIMENTS / "README.md").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(path.parent.name for path in READMES) == sorted({one.parent.name for one in CONFIGS})
    assert {path.suffix for path in CONFIGS} == {".yaml"}
    for readme in READMES:
        assert "**Cost**" in readme.read_text()
        assert "**The paper**" in readme.read_text()


def test_every_config_is_used_by_its_readme() -> None:
    used = {
        EXPERIMENTS / Path(words[at + 1]).name / f"{words[words.index('--config-name') + 1]}.yaml"
        for readme in READMES
        for words in commands(readme)
        if "--config-dir" in words
        for at in [words.index("--config-dir")]
    }
    assert used == set(CONFIGS)


@pytest.mark.slow
def test_all_commands_of_the_readmes_run_from_end_to_end(tmp_path: Path) -> None:
    """In one folder, each command once: several experiments ask about the same items."""
    done: set[tuple[str, ...]] = set()
    for readme in READMES:
        for words in commands(readme):
            if tuple(words) in done:
                continue
            done.add(tuple(words))
            given = [name for word in rehearsed(words) for name in _expanded(word, tmp_path)]
            out, errors = run(*given, cwd=tmp_path, timeout_s=600)
            assert "failed" not in errors, (given, errors)
            assert out
    for name in ("models", "responders", "revision_depth", "generator_models", "dependence", "model_pairs"):
        page = tmp_path / "outputs/report" / name / "report.html"
        assert embedded(page, "data")["items"], name
        assert "Simulated." in page.read_text()
    pair = tmp_path / "outputs/report/pair/compare.html"
    assert len(embedded(pair, "data")["models"]) == 2


def _expanded(word: str, home: Path) -> list[str]:
    """As a shell does."""
    return sorted(glob.glob(word, root_dir=home)) if "*" in word else [word]


def test_the_tables_of_the_paper_are_those_that_its_counts_give() -> None:
    models = json.loads((ROOT / "vpref/reports/paper.json").read_text())["models"]
    rows = re.findall(
        r"^\| ([\w. -]+?) \|(.*)\|$", (EXPERIMENTS / "tables_1_and_2/README.md").read_text(), re.MULTILINE
    )
    told = {name: [float(cell) for cell in cells.split("|")] for name, cells in rows if name in models}
    assert told.keys() == models.keys()
    for name, counts in models.items():
        expected = []
        for variant in ("boxes", "plain"):
            (a, n), (b, m) = counts[variant]["typical"], counts[variant]["atypical"]
            expected += [100 * (a + b) / (n + m), 100 * a / n, 100 * b / m]
        assert told[name] == [int(10 * one + 0.5) / 10 for one in expected], name


@pytest.mark.skipif(not PAPER.exists(), reason="needs shared/paper, which is beside the project")
def test_table_3_and_agreement_are_told_as_the_paper_prints_them() -> None:
    printed = json.loads(PAPER.read_text())
    text = (EXPERIMENTS / "table_3/README.md").read_text()
    rows = {name: cells.split("|") for name, cells in re.findall(r"^\| (boxes|plain) \|(.*)\|$", text, re.MULTILINE)}
    for variant, means in printed["difficulty_table_3"].items():
        expected = [means[name] for name in ("typical", "atypical", "low", "high")]
        assert [None if cell.strip() == "–" else float(cell) for cell in rows[variant]] == expected
    text = (EXPERIMENTS / "responder_agreement/README.md").read_text()
    for variant, kind in (("plain", "on plain images"), ("boxes", "with boxes")):
        agreement = printed["responder_vs_majority_agreement_percent"][variant]
        kept = printed["survey"][variant]["kept"]
        assert f"{agreement} % {kind} ({kept} items)" in text


def test_what_was_made_of_other_photos_is_not_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "asked").write_text("rehearse=true data.root=others\n")
    (tmp_path / "unfinished").touch()
    make = ["make", "--no-print-directory", "-o", ".venv/dev.stamp", "paper", f"PAPER={tmp_path}"]
    for more in ([], ["REHEARSE=", "ITEMS=data.root=mine"]):
        end = subprocess.run([*make, *more], cwd=ROOT, capture_output=True, text=True, check=False)
        assert end.returncode != 0
        assert f"{tmp_path} is of other items (rehearse=true data.root=others); choose another folder" in end.stdout
        assert "vpref generate" not in end.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["asked"]


def test_another_sweep_is_not_taken_for_one_that_is_there(tmp_path: Path) -> None:
    sweep = ["generate", "-m", "rehearse=true", "data.first=1", *QUIET, "hydra.sweep.dir=outputs/here"]
    run(*sweep, "category=0,1", cwd=tmp_path)
    assert "holds another sweep of 2 jobs" in complaint(*sweep, "category=0,2", cwd=tmp_path)
    out, _ = run(*sweep, "category=0,1", cwd=tmp_path)
    assert "jobs: 2 finished" in out
