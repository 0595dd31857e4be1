"""The paper's survey end to end, on made-up annotators whose accuracy is known, through every way that answers come."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.commands import QUIET, complaint, run, run_folder, start
from tests.serving import served
from tests.surveys import api_documents, dataset, filled, generic_items, plan_survey, write_csv
from vpref.domain import Label, Variant, Vote
from vpref.reports import people_tables
from vpref.runs.datasets import open_dataset
from vpref.runs.survey_aggregate import read_people
from vpref.runs.surveys import Survey, open_survey, read_lines, read_votes

ACCURACY = "rehearsal.accuracy=[0.9,0.8,0.9,0.8]"


@dataclass(frozen=True)
class World:
    """A folder in which the paper's shape was generated, planned and rehearsed."""

    home: Path
    survey: Survey
    votes: list[Vote]
    rehearsal: Path

    def given(self) -> str:
        return f"survey={self.survey.path}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    home = tmp_path_factory.mktemp("world")
    dataset(home / "data", generic_items(plain=21, boxes=22))
    survey = open_survey(str(plan_survey(home, "dataset=data")))
    out, _ = run("survey", "simulate", f"survey={survey.path}", ACCURACY, cwd=home)
    folder = home / run_folder(out)
    return World(home, survey, read_votes([str(folder)]), folder)


@pytest.fixture(scope="module")
def aggregated(world: World) -> Path:
    out, _ = run("survey", "aggregate", world.given(), str(world.rehearsal), cwd=world.home)
    assert "Table 3: mean difficulty" in out
    return world.home / run_folder(out)


def truth_of(world: World, *answers: Path) -> dict[str, str]:
    out, _ = run("survey", "import", world.given(), *map(str, answers), cwd=world.home)
    assert "problems: none" in out
    imported = world.home / run_folder(out)
    out, _ = run("survey", "aggregate", world.given(), str(imported), cwd=world.home)
    truth: dict[str, str] = json.loads((world.home / run_folder(out) / "truth.json").read_text())
    return truth


def test_the_paper_s_shape(world: World) -> None:
    sizes = Counter(
        (world.survey.plan.by_id[form.items[0]].variant, len(form.items)) for form in world.survey.plan.forms
    )
    assert sizes == {(Variant.PLAIN, 12): 7, (Variant.BOXES, 11): 4}
    assert Counter(Counter(vote.item for vote in world.votes).values()) == {5: 128}
    assert len({vote.annotator for vote in world.votes}) == 55


def test_every_way_that_answers_come_gives_the_same_labels(world: World, aggregated: Path, tmp_path: Path) -> None:
    truth = json.loads((aggregated / "truth.json").read_text())
    own = tmp_path / "own.jsonl"
    own.write_bytes((world.rehearsal / "votes.jsonl").read_bytes())
    assert truth_of(world, own) == truth
    out, _ = run("survey", "export", world.given(), "image_url=https://x.org", cwd=world.home)
    exported = next(path for path in (world.home / "outputs/survey_export").iterdir())
    assert f"{len(world.survey.plan.forms)}" in out
    sheets = filled(world.survey, world.votes)
    csvs = [write_csv(tmp_path / f"{name}.csv", *sheet) for name, sheet in sheets.items()]
    assert truth_of(world, *csvs) == truth
    documents = []
    for name, sheet in sheets.items():
        requests: dict[str, Any] = json.loads((exported / "google" / f"{name}.json").read_text())
        documents.append(tmp_path / f"{name}.json")
        documents[-1].write_text(json.dumps(api_documents(requests, *sheet)))
    assert truth_of(world, *documents) == truth


def test_labels_are_what_the_made_up_annotators_tried_to_find(world: World, aggregated: Path) -> None:
    """Annotators are right with 0.8 to 0.9, so three of five are on more than nine items of ten."""
    labels = read_lines(aggregated / "labels.jsonl", Label)
    assert len(labels) == 128
    kept = [label for label in labels if label.letter is not None]
    assert len(kept) >= 110
    assert sum(label.letter == world.survey.items[label.item.id].answer for label in kept) / len(kept) >= 0.97
    assert all(label.reason is not None for label in labels if label.letter is None)
    assert all(label.votes == 5 and label.ratings == 5 for label in labels)


def test_table_3_has_the_paper_s_layout(aggregated: Path) -> None:
    table = json.loads((aggregated / "tables/table3_difficulty.json").read_text())
    assert table["columns"] == ["Variant", "Typical Pref.", "Atypical Pref.", "Low Dep.", "High Dep.", "Ratings"]
    boxes, plain = (next(row for row in table["rows"] if row[0] == name) for name in ("boxes", "plain"))
    assert boxes[3] == "–", "every item with boxes counts as of high dependence"
    assert all(1 <= float(cell) <= 5 for cell in (*boxes[1:3], boxes[4], *plain[1:5]))
    records = {(one["variant"], one["items"]): one for one in table["records"]}
    assert records["plain", "all"]["typical"]["ratings"] == 42 * 5
    assert records["boxes", "all"]["high"]["ratings"] == 44 * 5


def test_the_truth_and_the_labelled_dataset_are_taken_by_evaluate(world: World, aggregated: Path) -> None:
    kept = json.loads((aggregated / "truth.json").read_text())
    labelled = open_dataset(str(aggregated), include_unresolved=False)
    assert {item.id: item.truth for item in labelled} == kept
    asked = ["model@evaluated=simulator", "model@extractor=null", *QUIET]
    for given in ([f"dataset={aggregated}"], ["dataset=data", f"truth={aggregated / 'truth.json'}"]):
        out, _ = run("evaluate", *given, *asked, cwd=world.home)
        lines = (world.home / run_folder(out) / "responses.jsonl").read_text().splitlines()
        assert {one["item"]: one["expected"] for one in map(json.loads, lines)} == kept


def test_the_tables_of_the_paper_s_shape(aggregated: Path, golden: Callable[[str, str], None]) -> None:
    golden("survey/tables.md", "\n".join(table.markdown() for table in people_tables(read_people(aggregated))))


def test_what_was_aggregated_reads_back_as_it_was_shown(aggregated: Path) -> None:
    people = read_people(aggregated)
    assert people.rehearsed
    assert len(people.annotators) == 55
    for table in people_tables(people):
        assert table.json() == (aggregated / "tables" / f"{table.name}.json").read_text()


def test_an_item_changed_after_planning_is_named(world: World, tmp_path: Path) -> None:
    """The same survey planned anew on a dataset in which one item's question was mended."""
    items = generic_items(plain=21, boxes=22)
    mended = generic_items(plain=21, boxes=22)[1:]
    dataset(tmp_path / "data", mended)
    later = plan_survey(tmp_path, "dataset=data")
    out, _ = run("survey", "aggregate", f"survey={later}", str(world.rehearsal), cwd=tmp_path)
    assert f"not in the plan, so were changed since or never planned: {items[0].id} (5 votes)" in out
    facts = json.loads((tmp_path / run_folder(out) / "people.json").read_text())
    assert facts["unplanned"] == {items[0].id: 5}


def test_undecided_items_are_asked_about_again(world: World, aggregated: Path) -> None:
    before = json.loads((aggregated / "truth.json").read_text())
    more = ["dataset=data", f"undecided={aggregated}", "places=4"]
    second = plan_survey(world.home, *more)
    plan = open_survey(str(second)).plan
    assert {item.id for item in plan.items} == {item.id for item in world.survey.plan.items} - before.keys()
    assert (second / "annotators.key").read_text() == (world.survey.path / "annotators.key").read_text()
    out, _ = run("survey", "simulate", f"survey={second}", "rehearsal.accuracy=[1,1,1,1]", cwd=world.home)
    votes = [str(world.rehearsal), str(world.home / run_folder(out))]
    out, _ = run("survey", "aggregate", world.given(), *votes, cwd=world.home)
    after = json.loads((world.home / run_folder(out) / "truth.json").read_text())
    assert before.items() <= after.items()
    assert len(after) >= 126


def test_people_and_rehearsals_are_not_mixed_and_mistakes_are_told(world: World, tmp_path: Path) -> None:
    human = tmp_path / "human.jsonl"
    lines = [vote.model_copy(update={"source": "web", "annotator": "h"}).model_dump_json() for vote in world.votes[:2]]
    human.write_text("\n".join(lines) + "\n")
    asked = ["survey", "aggregate", world.given()]
    assert "some a rehearsal's" in complaint(*asked, str(human), str(world.rehearsal), cwd=tmp_path)
    assert "Nothing was answered on the pages" in complaint(*asked, cwd=tmp_path)
    human.write_text(lines[0].replace('"choice":"', '"choice":"x') + "\n")
    assert "line 1 is no vote of ours (choice" in complaint(*asked, str(human), cwd=tmp_path)
    human.write_text("")
    assert "There is no vote" in complaint(*asked, str(human), cwd=tmp_path)
    assert "There is no survey at absent" in complaint("survey", "simulate", "survey=absent", cwd=tmp_path)
    assert "least is 0" in complaint(*asked, str(human), "least=0", cwd=tmp_path)
    assert "no share" in complaint("survey", "simulate", world.given(), "rehearsal.other=2", cwd=tmp_path)


@pytest.mark.slow
def test_the_pages_give_the_same_labels(world: World, aggregated: Path) -> None:
    asked = ["survey", "simulate", world.given(), ACCURACY]
    with served(world.survey.path) as running:
        walking = start(*asked, f"url={running.address}", cwd=world.home)
        out, errors = walking.communicate(timeout=1200)
        assert "annotators: 55 made-up ones answered" in out, errors
        code, _, errors = running.stop()
        assert (code, errors) == (0, "")
    out, _ = run("survey", "aggregate", world.given(), cwd=world.home)
    truth = json.loads((world.home / run_folder(out) / "truth.json").read_text())
    assert truth == json.loads((aggregated / "truth.json").read_text())
    assert "Rehearsal" in out
    said = complaint(*asked, f"url={running.address}", cwd=world.home)
    assert "start one with vpref survey serve" in said
