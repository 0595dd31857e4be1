"""Tables from records: the paper's figures to the digit, and the files they are written to."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from vpref.domain import Category, Response, Slot, Variant, Verdict
from vpref.reports import Evaluation, Table, accuracy_tables, write_tables

PAPER = json.loads((Path(__file__).parent / "golden" / "paper_tables.json").read_text(encoding="utf-8"))
SHARED = Path(__file__).parents[2] / "shared" / "paper" / "tables.json"
PAPER_COLUMNS = ("Overall Accuracy", "Typical Preference Accuracy", "Atypical Preference Accuracy")


def response(place: int, category: Category, variant: Variant, verdict: Verdict, right: bool) -> Response:
    slot = Slot(image=f"{place:064x}", variant=variant, category=category)
    letter = ("a" if right else "d") if verdict == "matched" else None
    return Response(item=f"{place:016x}", slot=slot, expected="a", verdict=verdict, letter=letter)


def answers(variant: Variant, first: Category, n: int, correct: int) -> list[Response]:
    """n items of one typicality, of both dependences where the variant has both; the first `correct` are right."""
    step = 1 if variant is Variant.BOXES else 2
    return [response(i, Category(first + i % step), variant, "matched", i < correct) for i in range(n)]


def paper_responses(variant: Variant, model: str) -> list[Response]:
    n, correct = PAPER[variant]["n"], PAPER[variant]["rows"][model]["correct"]
    return [
        *answers(variant, Category.TYPICAL_LOW, n["typical"], correct["typical"]),
        *answers(variant, Category.ATYPICAL_LOW, n["atypical"], correct["atypical"]),
    ]


def paper_evaluations() -> list[Evaluation]:
    models = PAPER["plain"]["rows"]
    return [
        Evaluation(title=model, simulated=False, responses=[r for v in Variant for r in paper_responses(v, model)])
        for model in models
    ]


def troubled_evaluations() -> list[Evaluation]:
    """A simulated model with an outage, and one that refuses, on few items of one variant each or both."""
    plain = answers(Variant.PLAIN, Category.TYPICAL_LOW, 5, 3)
    outage = [response(i, Category.ATYPICAL_LOW, Variant.PLAIN, "failed", False) for i in range(20, 23)]
    odd = [
        response(30, Category.ATYPICAL_HIGH, Variant.PLAIN, "refused", False),
        response(31, Category.ATYPICAL_HIGH, Variant.PLAIN, "unmatched", False),
    ]
    return [
        Evaluation(title="Qwen3-VL-32B-Instruct", simulated=True, responses=plain + outage),
        Evaluation(title="a|model [bold]", simulated=False, responses=plain + odd),
        Evaluation(title="boxes only", simulated=False, responses=answers(Variant.BOXES, Category.TYPICAL_LOW, 8, 1)),
    ]


def named(tables: list[Table]) -> dict[str, Table]:
    return {table.name: table for table in tables}


def shown(table: Table, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(table.rich())
    file = console.file
    assert isinstance(file, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


# --- the paper's figures ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("variant", "number"), [("boxes", 1), ("plain", 2)])
def test_the_paper_s_tables_to_the_digit(variant: str, number: int) -> None:
    table = named(accuracy_tables(paper_evaluations()))[f"table{number}_accuracy_{variant}"]
    assert table.title == f"Table {number}: accuracy, {variant}"
    assert table.columns[:4] == ("Model", *PAPER_COLUMNS)
    printed = {model: row["printed"] for model, row in PAPER[variant]["rows"].items()}
    figures = {row[0]: dict(zip(("overall", "typical", "atypical"), row[1:4], strict=True)) for row in table.rows}
    assert figures.pop("Chance") == {"overall": "25.0%", "typical": "25.0%", "atypical": "25.0%"}
    assert figures == {
        model: {group: f"{figure}%" for group, figure in groups.items()} for model, groups in printed.items()
    }


def test_our_copy_of_the_paper_s_figures_is_the_shared_one() -> None:
    if not SHARED.exists():
        pytest.skip(f"{SHARED} is not here")
    shared = json.loads(SHARED.read_text(encoding="utf-8"))["tables"]
    for variant, ours in PAPER.items():
        assert ours["rows"] == shared[variant]["rows"]
        assert ours["n"].items() <= shared[variant]["n"].items()


# --- what a table says -----------------------------------------------------------------------------------


def test_a_variant_without_responses_has_no_table() -> None:
    assert accuracy_tables([]) == []
    only_boxes = accuracy_tables(troubled_evaluations()[2:])
    assert list(named(only_boxes)) == ["table1_accuracy_boxes", "categories_boxes"]


def test_failures_lower_coverage_and_not_accuracy() -> None:
    table = named(accuracy_tables(troubled_evaluations()))["table2_accuracy_plain"]
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert rows[0] == {
        "Model": "Qwen3-VL-32B-Instruct (simulated)",
        **dict(zip(PAPER_COLUMNS, ("60.0%", "60.0%", "–"), strict=True)),
        "n": "8",
        "Coverage": "62.5%",
        "Unmatched": "0",
        "Refused": "0",
        "Failed": "3",
    }
    assert (rows[1]["Overall Accuracy"], rows[1]["Unmatched"], rows[1]["Refused"]) == ("42.9%", "1", "1")
    assert table.notes == (
        "No response from Qwen3-VL-32B-Instruct (simulated) to 3 of 8 items: not scored.",
        "Simulated models: figures say nothing about real ones.",
    )


def test_real_models_that_all_answered_need_no_notes() -> None:
    assert all(table.notes == () for table in accuracy_tables(paper_evaluations()))


def test_boxes_have_no_low_dependence() -> None:
    table = named(accuracy_tables(paper_evaluations()))["categories_boxes"]
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    assert cells == {
        "Model": "GPT-4.1",
        "0 typical, low": "68.8 (16)",
        "1 typical, high": "–",
        "2 atypical, low": "100.0 (20)",
        "3 atypical, high": "–",
        "Low dependence": "–",
        "High dependence": "86.1 (36)",
    }


@pytest.mark.parametrize("name", ["table2_accuracy_plain", "categories_plain"])
def test_every_figure_can_be_made_again_from_the_records(name: str) -> None:
    table = named(accuracy_tables(troubled_evaluations()))[name]
    for record in json.loads(table.json())["records"]:
        groups: list[dict[str, Any]] = [group for group in record.values() if isinstance(group, dict)]
        for group in groups if record["model"] != "Chance" else []:
            assert group["n"] == group["responded"] + group["failed"]
            if group["responded"]:
                assert group["accuracy"] == pytest.approx(100 * group["correct"] / group["responded"], abs=0.051)
            else:
                assert group["accuracy"] is None


# --- how it is shown and written -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["paper", "troubled"])
def test_rendered_tables(kind: str, golden: Callable[[str, str], None]) -> None:
    evaluations = paper_evaluations() if kind == "paper" else troubled_evaluations()
    for table in accuracy_tables(evaluations):
        golden(f"reports/{kind}/{table.name}.md", table.markdown())
        golden(f"reports/{kind}/{table.name}.csv", table.csv())
        golden(f"reports/{kind}/{table.name}.json", table.json())
        golden(f"reports/{kind}/{table.name}.80.txt", shown(table, 80))
        golden(f"reports/{kind}/{table.name}.120.txt", shown(table, 120))


def test_the_terminal_s_table_fits_80_columns_and_leaves_brackets_alone() -> None:
    tables = accuracy_tables(paper_evaluations() + troubled_evaluations())
    for text in (shown(table, 80) for table in tables):
        assert max(map(len, text.splitlines())) <= 80
        assert "…" not in text
        assert "Atypical" in text or "atypical" in text
    assert "[bold]" in shown(named(tables)["categories_plain"], 80)


def test_csv_holds_numbers() -> None:
    table = named(accuracy_tables(troubled_evaluations()))["table2_accuracy_plain"]
    rows = list(csv.DictReader(io.StringIO(table.csv())))
    assert rows[0]["overall_accuracy"] == "60.0"
    assert rows[0]["atypical_accuracy"] == ""
    assert rows[-1] | {"model": "Chance", "overall_accuracy": "25.0", "overall_n": ""} == rows[-1]


def test_a_table_without_records_writes_its_grid() -> None:
    table = Table(name="depth", title="Depth", columns=("Depth", "Calls"), rows=(("0", "4"), ("1", "6")))
    assert table.csv() == "Depth,Calls\n0,4\n1,6\n"
    assert table.data()["records"] == [{"Depth": "0", "Calls": "4"}, {"Depth": "1", "Calls": "6"}]


def test_writing_leaves_whole_files_and_nothing_else(tmp_path: Path) -> None:
    tables = accuracy_tables(paper_evaluations())
    folder = tmp_path / "run" / "tables"
    written = write_tables(tables, folder)
    assert write_tables(tables, folder) == written
    assert sorted(folder.iterdir()) == sorted(written)
    assert [path.name for path in written[:3]] == [f"table1_accuracy_boxes.{kind}" for kind in ("md", "csv", "json")]
    assert written[0].read_text(encoding="utf-8") == tables[0].markdown()
