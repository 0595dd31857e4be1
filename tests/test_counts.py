"""Models of which only counts are known, alone and beside runs: what is compared, what is said, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.commands import QUIET, complaint, run, run_folder
from tests.test_reports import PAPER, SHARED, graded, paper_responses
from vpref.domain import Variant
from vpref.errors import ConfigError
from vpref.reports import Count, Counted, Evaluation, Table, counted_tables
from vpref.runs.counts import read_counts


def named(tables: list[Table]) -> dict[str, Table]:
    return {table.name: table for table in tables}


def told(title: str, right: int, of: int) -> Counted:
    return Counted(title, "lab", {Variant.PLAIN: {"overall": Count(right, of)}})


def test_the_paper_s_counts_that_ship_are_the_paper_s() -> None:
    ours = {
        variant: {
            model.title: {name: list(model.counts[Variant(variant)][name]) for name in ("typical", "atypical")}
            for model in read_counts("paper")
        }
        for variant in ("boxes", "plain")
    }
    known = json.loads(SHARED.read_text(encoding="utf-8"))["tables"] if SHARED.exists() else PAPER
    assert ours == {
        variant: {
            title: {name: [row["correct"][name], known[variant]["n"][name]] for name in ("typical", "atypical")}
            for title, row in known[variant]["rows"].items()
        }
        for variant in ("boxes", "plain")
    }


def test_the_paper_s_figures_are_made_of_its_counts_to_the_digit() -> None:
    tables = named(counted_tables(read_counts("paper")))
    for variant in ("boxes", "plain"):
        for row in tables[f"counted_{variant}"].rows[:-1]:
            printed = PAPER[variant]["rows"][row[0]]["printed"]
            assert row[1:4] == tuple(f"{printed[name]}%" for name in ("overall", "typical", "atypical"))


def test_a_run_of_the_paper_s_own_items_is_compared_with_its_models_by_counts() -> None:
    run_ = Evaluation("mine", False, paper_responses(Variant.PLAIN, "GPT-5 mini"))
    tables = named(counted_tables(read_counts("paper"), [run_]))
    pairs = tables["counted_pairs_plain"]
    assert [row[0] for row in pairs.rows[:2]] == ["mine vs. GPT-4.1 (paper)", "mine vs. GPT-5 mini (paper)"]
    assert len(pairs.rows) == 6 + 15
    first = dict(zip(pairs.columns, pairs.rows[1], strict=True))
    assert (first["Difference"], first["p"], first["Verdict"]) == ("0.0", "1.000", "within noise")
    assert any("McNemar's test is impossible" in note for note in pairs.notes)
    assert any("very items" in note for note in pairs.notes)
    assert len(tables["counted_pairs_boxes"].rows) == 15, "a run without boxes is in no pair of boxes"


def test_failures_of_a_run_are_in_no_count_and_are_told() -> None:
    run_ = Evaluation("mine", False, graded(["++", "!+", "+?"]))
    [_, pairs] = counted_tables([told("theirs", 3, 6)], [run_])
    [record] = pairs.records
    assert (record["a"]["right"], record["a"]["of"]) == (4, 5)
    assert "No response from mine to 1 of 6 items: not scored." in pairs.notes


def test_two_runs_are_no_business_of_counts() -> None:
    runs = [Evaluation(name, False, graded(["+-"])) for name in ("a", "b")]
    assert counted_tables([], runs) == []


def test_simulated_runs_and_chance_are_named() -> None:
    run_ = Evaluation("sim", True, graded(["+-", "--"]))
    alone, pairs = counted_tables([told("blind", 5, 20)], [run_])
    assert "Within noise of chance: blind." in alone.notes
    assert pairs.rows[0][0] == "sim (simulated) vs. blind (lab)"
    assert "Simulated models: figures say nothing about real ones." in pairs.notes


COUNT = st.integers(1, 80).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@settings(deadline=None, max_examples=25)
@given(COUNT, COUNT)
def test_turning_a_pair_turns_its_figures(a: tuple[int, int], b: tuple[int, int]) -> None:
    def record(*pair: Counted) -> Any:
        return counted_tables(list(pair))[1].records[0]

    here, there = record(told("x", *a), told("y", *b)), record(told("y", *b), told("x", *a))
    assert here["difference"] == -there["difference"]
    assert here["interval"] == {"low": -there["interval"]["high"], "high": -there["interval"]["low"]}
    assert here["verdict"].translate(str.maketrans("AB", "BA")) == there["verdict"]


# --- files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no file of counts"),
        ("[1]", "no file of counts"),
        ('{"source": "lab", "models": {}}', "models"),
        ('{"source": "lab", "models": {"m": {"plain": {"overall": [9, 8]}}}}', "m, plain, overall: 9 of 8 cannot be"),
        ('{"source": "lab", "models": {"m": {"plain": {"overall": [0, 0]}}}}', "0 of 0 cannot be"),
        ('{"source": "lab", "models": {"m": {"plain": {"typical": [1, 8]}}}}', "give overall, or both"),
        ('{"source": "lab", "models": {"m": {"plane": {"overall": [1, 8]}}}}', "plane"),
        (
            '{"source": "lab", "models": {"m": {"plain": {"overall": [1, 8], "typical": [1, 2], "atypical": [3, 6]}}}}',
            "add up to 4 of 8, not to overall",
        ),
    ],
)
def test_a_file_that_cannot_be_is_refused_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "counts.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said) as refused:
        read_counts(str(path))
    assert "write it like" in str(refused.value)


def test_the_command_joins_runs_and_the_paper(tmp_path: Path) -> None:
    data = run_folder(run("generate", "model@pipeline.model=simulator", "preview=2", *QUIET, cwd=tmp_path)[0])
    own = ["model@evaluated=simulator", "model@extractor=null", *QUIET]
    evaluated = run_folder(run("evaluate", f"dataset={data}", *own, cwd=tmp_path)[0])
    out, _ = run("report", str(evaluated), "counts=paper", cwd=tmp_path)
    assert "simulator (simulated) vs." in out
    assert "Models in pairs by counts alone, plain (paper)" in out
    assert "counts=nothing.json cannot be read" in complaint("report", "counts=nothing.json", cwd=tmp_path)
    assert "counts=paper" in complaint("report", cwd=tmp_path)
