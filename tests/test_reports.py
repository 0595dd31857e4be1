"""Tables from records: the paper's figures to the digit, and the files they are written to."""

from __future__ import annotations

import csv
import gc
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from vpref.domain import Category, Response, Slot, Variant, Verdict
from vpref.reports import (
    Evaluation,
    Table,
    accuracy_tables,
    changed_table,
    compared_tables,
    comparison_tables,
    write_tables,
)

PAPER = json.loads((Path(__file__).parent / "golden" / "paper_tables.json").read_text(encoding="utf-8"))
SHARED = Path(__file__).parents[2] / "shared" / "paper" / "tables.json"
PAPER_COLUMNS = ("Overall Accuracy", "Typical Preference Accuracy", "Atypical Preference Accuracy")


def response(place: int, category: Category, variant: Variant, verdict: Verdict, right: bool) -> Response:
    slot = Slot(image=f"{place:064x}", variant=variant, category=category)
    letter = ("a" if right else "d") if verdict == "matched" else None
    return Response(item=f"{category:d}{place:015x}", slot=slot, expected="a", verdict=verdict, letter=letter)


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
        "95 % interval": "20.0–100.0",
        "n": "8",
        "Coverage": "62.5%",
        "Unmatched": "0",
        "Refused": "0",
        "Failed": "3",
    }
    assert (rows[1]["Overall Accuracy"], rows[1]["Unmatched"], rows[1]["Refused"]) == ("42.9%", "1", "1")
    assert table.notes == (
        "95 % interval: bootstrap over images, whose items are not independent.",
        "Within noise of chance: Qwen3-VL-32B-Instruct (simulated), a|model [bold].",
        "No response from Qwen3-VL-32B-Instruct (simulated) to 3 of 8 items: not scored.",
        "Simulated models: figures say nothing about real ones.",
    )


def test_real_models_that_all_answered_need_no_notes_but_on_the_interval() -> None:
    notes = {table.name: table.notes for table in accuracy_tables(paper_evaluations())}
    method = ("95 % interval: bootstrap over images, whose items are not independent.",)
    assert notes["table1_accuracy_boxes"] == notes["table2_accuracy_plain"] == method
    assert notes["categories_boxes"] == notes["categories_plain"] == ()


def test_where_images_say_nothing_wilson_s_interval_is_shown_and_named() -> None:
    perfect = answers(Variant.PLAIN, Category.TYPICAL_LOW, 36, 36)
    silent = [response(0, Category.TYPICAL_LOW, Variant.PLAIN, "failed", False)]
    [table, _] = accuracy_tables([Evaluation("perfect", False, perfect), Evaluation("silent", False, silent)])
    assert [row[4] for row in table.rows] == ["90.4–100.0", "–", "–"]
    assert (
        table.notes[0] == "95 % interval: Wilson's, as if items were independent, where images do not differ: perfect."
    )
    overall = table.records[0]["overall"]
    assert overall["wilson"] == {"low": 90.4, "high": 100.0}
    assert overall["clustered"] == {"low": None, "high": None}
    assert overall["images"] == 36


def test_both_intervals_are_in_the_records() -> None:
    table = named(accuracy_tables(paper_evaluations()))["table2_accuracy_plain"]
    overall = table.records[0]["overall"]
    assert overall["wilson"] == {"low": 83.8, "high": 96.3}
    assert table.rows[0][4] == "{low}–{high}".format(**overall["clustered"])
    assert overall["images"] == 39


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


# --- models in pairs -------------------------------------------------------------------------------------


def graded(images: list[str], *, first: int = 0) -> list[Response]:
    """One image a text, one item a sign: `+` right, `-` wrong, `?` unmatched, `!` failed."""
    kinds: dict[str, tuple[Verdict, bool]] = {
        "+": ("matched", True),
        "-": ("matched", False),
        "?": ("unmatched", False),
        "!": ("failed", False),
    }
    made: list[Response] = []
    for image, signs in enumerate(images, first):
        for place, sign in enumerate(signs):
            slot = Slot(image=f"{image:064x}", category=Category.TYPICAL_LOW, sample=place)
            verdict, right = kinds[sign]
            letter = ("a" if right else "d") if verdict == "matched" else None
            item = f"{image:08x}{place:08x}"
            made.append(Response(item=item, slot=slot, expected="a", verdict=verdict, letter=letter))
    return made


def compared(*runs: list[Response]) -> Table:
    [table] = comparison_tables(Evaluation(f"m{place}", False, run) for place, run in enumerate(runs))
    return table


def test_models_are_compared_where_they_were_asked_in_the_same_way() -> None:
    runs = [Evaluation(name, False, graded(["++-"]), ablation) for name in ("x", "y") for ablation in ("", "no image")]
    [table] = comparison_tables(runs)
    assert [row[0] for row in table.rows] == ["x vs. y", "x, no image vs. y, no image"]


def test_one_model_has_nothing_to_be_compared_with() -> None:
    assert comparison_tables(paper_evaluations()[:1]) == []
    assert list(named(comparison_tables(troubled_evaluations()))) == ["comparison_plain"]


def test_every_pair_in_order_and_in_words() -> None:
    tables = named(comparison_tables(paper_evaluations()))
    assert list(tables) == ["comparison_boxes", "comparison_plain"]
    table = tables["comparison_plain"]
    models = list(PAPER["plain"]["rows"])
    assert [row[0] for row in table.rows] == [f"{a} vs. {b}" for i, a in enumerate(models) for b in models[i + 1 :]]
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    close = rows["GPT-4.1 vs. GPT-5 mini"]
    assert (close["Items shared"], close["Accuracy A"], close["Accuracy B"]) == ("76", "92.1", "94.7")
    assert (close["Difference"], close["Only A right"], close["Only B right"]) == ("-2.6", "0", "2")
    assert (close["p"], close["p (Holm)"], close["Verdict"]) == ("0.500", "1.000", "within\nnoise")
    assert rows["GPT-4.1 vs. InstructBLIP-7B"]["Verdict"] == "A better"


def test_failures_are_left_out_and_unmatched_is_wrong() -> None:
    table = compared(graded(["++", "!+", "+?"]), graded(["+-", "++", "-!"]))
    [record] = table.records
    assert [record[name] for name in ("shared", "both", "only_a", "only_b", "neither")] == [4, 2, 2, 0, 0]
    assert (record["accuracy_a"], record["accuracy_b"], record["difference"]) == (100.0, 50.0, 50.0)
    assert (record["a"]["failed"], record["a"]["unmatched"], record["b"]["failed"]) == (1, 1, 1)
    assert table.notes[-4:] == (
        "Models share only some of the items they answered in 1 of 1 pairs.",
        "No response from m0 to 1 of 6 items: not scored.",
        "No response from m1 to 1 of 6 items: not scored.",
        "Wrong for naming no choice: m0 1.",
    )


def changes(a: list[Response], b: list[Response]) -> Table:
    return changed_table(Evaluation("x", False, a), Evaluation("y", False, b, "no image"), {})


def test_what_changed_is_told_by_kind_of_change_and_what_is_in_one_run_alone_is_told_of() -> None:
    table = changes(graded(["+-+", "?!+", "--"]), graded(["-++", "-+!"]))
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [(row["Change"], row["A"], row["B"], row["Right"]) for row in rows] == [
        ("failed → right", "failed", "a", "a"),
        ("right → failed", "a", "failed", "a"),
        ("right → wrong", "a", "d", "a"),
        ("wrong → right", "d", "a", "a"),
    ]
    assert table.notes == (
        "In both runs: 6 items, of which 4 changed.",
        "In A alone, and so not here: 2 items.",
        "Asked in different ways. A: plainly. B: no image.",
    )
    assert [int(record["image"], 16) for record in table.records] == [1, 1, 0, 0]


def test_another_right_letter_and_nothing_in_common_are_told_in_a_sentence() -> None:
    a = graded(["++"])
    b = [a[0], a[1].model_copy(update={"expected": "b"})]
    notes = changes(a, b).notes
    assert "Another letter is right in B than in A for 1 item: the ground truth is not the same." in notes
    [row] = changes(a, [b[0], b[1].model_copy(update={"letter": "a"})]).rows
    assert row[3:] == ("a → b", "a", "a", "right → wrong")
    apart = changes(a, graded(["+"], first=100))
    assert apart.rows == ()
    assert apart.notes[:3] == (
        "In both runs: 0 items, of which none changed.",
        "In A alone, and so not here: 2 items.",
        "In B alone, and so not here: 1 item.",
    )


def test_two_runs_are_told_in_words_on_the_items_that_both_answered() -> None:
    better, worse = graded(["+"] * 9 + ["-", "!", "+"]), graded(["+", *"-" * 9, "+", "!"])
    [table] = compared_tables(Evaluation("x", False, better), Evaluation("y", False, worse))
    assert table.notes[0].startswith("A: x. B: y. Of 10 items that both answered A has 90.0% (")
    assert re.search(r"right and B 10\.0% \([\d.]+–[\d.]+\), so A is better\.$", table.notes[0])
    assert [record["shared"] for record in table.records if record["group"] == "overall"] == [10]
    [table] = compared_tables(Evaluation("x", False, worse), Evaluation("y", False, worse))
    assert table.notes[0].endswith(", which is within noise.")
    [table] = compared_tables(Evaluation("x", False, worse), Evaluation("y", False, graded(["+"], first=100)))
    assert table.notes[0] == "A: x. B: y."


def test_without_shared_items_only_counts_are_compared_and_the_row_says_so() -> None:
    table = compared(graded(["++++"] * 10), graded(["+---"] * 10, first=100), graded(["+---"] * 10))
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [row["Verdict"] for row in rows] == ["A better,\nunpaired", "A better", "within\nnoise,\nunpaired"]
    assert (rows[0]["Items shared"], rows[0]["Only A right"], rows[0]["Only B right"]) == ("0", "–", "–")
    assert table.records[0]["method"] == "unpaired"
    assert any(note.startswith("Unpaired: no shared items") for note in table.notes)
    assert rows[1]["95 % interval"] == "–"  # every image shows the same difference
    assert any(note.startswith("No interval where") for note in table.notes)


def test_a_model_without_any_answer_is_shown_and_not_judged() -> None:
    table = compared(graded(["++", "+-"]), graded(["!!", "!!"]))
    assert table.rows[0][1:] == ("0", *"––––––––", "no answers")
    assert "No response from m1 to 4 of 4 items: not scored." in table.notes


def test_items_of_one_image_alone_make_no_model_better() -> None:
    """McNemar's test takes twelve items as twelve witnesses; they are of two images, which disagree."""
    [record] = compared(graded(["+" * 10, "--"]), graded(["-" * 10, "++"])).records
    assert record["p_holm"] < 0.05
    assert record["interval"]["low"] < 0
    assert record["verdict"] == "within noise"


def test_many_pairs_are_corrected_for() -> None:
    better, worse = graded(["+"] * 6 + ["-"] * 4), graded(["-"] * 10)
    [alone] = compared(better, worse).records
    assert (alone["p"], alone["verdict"]) == (0.03125, "A better")
    among = compared(better, worse, graded(["+", *"-" * 9])).records
    assert (among[0]["p"], among[0]["p_holm"], among[0]["verdict"]) == (0.03125, 0.09375, "within noise")


@pytest.fixture(scope="module")
def frozen_heap() -> Iterator[None]:
    """statsmodels' Holm collects garbage at every call, which a heap of test objects makes slow."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("frozen_heap")
@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.tuples(st.text("+-?!", min_size=3, max_size=3), st.text("+-?!", min_size=3, max_size=3)), min_size=1),
    st.randoms(use_true_random=False),
)
def test_comparing_ignores_order_and_swapping_turns_signs(images: list[tuple[str, str]], dice: Random) -> None:
    a, b = graded([one for one, _ in images]), graded([other for _, other in images])
    table = compared(a, b)
    mixed = dice.sample(a, len(a)), dice.sample(b, len(b))
    assert compared(*mixed).rows == table.rows
    [here], [there] = table.records, compared(b, a).records
    assert (here["only_a"], here["only_b"], here["p"]) == (there["only_b"], there["only_a"], there["p"])
    if here["difference"] is not None:
        assert here["difference"] == -there["difference"]
        assert here["verdict"].translate(str.maketrans("AB", "BA")) == there["verdict"]
    if here["interval"]["low"] is not None:
        ends = here["interval"]
        assert ends == {"low": -there["interval"]["high"], "high": -there["interval"]["low"]}
        assert -100 <= ends["low"] <= here["difference"] <= ends["high"] <= 100


# --- how it is shown and written -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["paper", "troubled"])
def test_rendered_tables(kind: str, golden: Callable[[str, str], None]) -> None:
    evaluations = paper_evaluations() if kind == "paper" else troubled_evaluations()
    if kind == "troubled":
        evaluations.append(Evaluation("another dataset's", False, graded(["++-", "+++", "-!-"], first=100)))
    for table in accuracy_tables(evaluations) + comparison_tables(evaluations):
        golden(f"reports/{kind}/{table.name}.md", table.markdown())
        golden(f"reports/{kind}/{table.name}.csv", table.csv())
        golden(f"reports/{kind}/{table.name}.json", table.json())
        golden(f"reports/{kind}/{table.name}.80.txt", shown(table, 80))
        golden(f"reports/{kind}/{table.name}.120.txt", shown(table, 120))


def test_the_terminal_s_table_fits_80_columns_and_leaves_brackets_alone() -> None:
    evaluations = paper_evaluations() + troubled_evaluations()
    tables = accuracy_tables(evaluations) + comparison_tables(evaluations)
    for text in (shown(table, 80) for table in tables):
        assert max(map(len, text.splitlines())) <= 80
        assert "…" not in text
        assert "typical" in text or ("Holm's" in text and "within" in text)
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
