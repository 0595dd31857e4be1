"""The report's page and `vpref compare`: what is in them equals the records, and what models wrote stays text."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.commands import complaint, run
from tests.reported import Reported, embedded, make
from vpref.domain import Accepted, Response
from vpref.pages import Items
from vpref.pages.diff import words
from vpref.pages.page import embedded as as_script
from vpref.runs.datasets import read_outcomes
from vpref.scoring import score, tally

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    return make(tmp_path_factory.mktemp("reported"))


def rows(spec: dict[str, Any]) -> list[dict[str, Any]]:
    values: list[dict[str, Any]] = spec["data"]["values"]
    return values


def chart(reported: Reported, axis: str, title: str) -> dict[str, Any]:
    """The one chart whose axis has a title."""
    found = [one for one in embedded(reported.page, "charts") if f'"title": "{title}"' in json.dumps(one)]
    assert found, axis
    return found[0]  # type: ignore[no-any-return]


def evaluations(reported: Reported) -> list[list[Response]]:
    paths = sorted(reported.home.glob("outputs/evaluate/**/responses.jsonl"))
    return [[Response.model_validate_json(line) for line in path.read_text().splitlines()] for path in paths]


def test_every_table_is_on_the_page_as_it_is_printed(reported: Reported) -> None:
    page = reported.page.read_text()
    for name, table in reported.tables().items():
        assert f'id="t-{name}"' in page
        for row in table["rows"]:
            for cell in row:
                escaped = cell.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("'", "&#39;")
                assert f">{escaped}<" in page, (name, cell)


def test_accuracy_charts_show_the_counts_of_the_records(reported: Reported) -> None:
    for variant in ("plain", "boxes"):
        expected = Counter(
            (round(100 * float(whole.accuracy), 1), whole.responded)
            for one in evaluations(reported)
            if (whole := tally([each for each in one if each.slot.variant.value == variant])).accuracy is not None
        )
        drawn = [one for one in embedded(reported.page, "charts") if "accuracy" in rows(one)[0] and "n" in rows(one)[0]]
        found = [Counter((row["accuracy"], row["n"]) for row in rows(one)) for one in drawn if "facet" not in one]
        assert expected in found, (variant, expected, found)
    for one in embedded(reported.page, "charts"):
        if "facet" in one:
            assert "data" not in json.dumps(one["spec"]), "a layer with data of its own is on every panel whole"


def test_charts_of_generation_show_the_outcomes(reported: Reported) -> None:
    deep = list(read_outcomes(reported.home / "data/items.jsonl"))
    within = chart(reported, "depths", "revisions at most")
    label = next(row["run"] for row in rows(within) if "max_revisions=1" in row["run"] or row["run"] == "data")
    shares = {row["revisions"]: row["accepted"] for row in rows(within) if row["run"] == label}
    for depth, share in shares.items():
        good = [
            one
            for one in deep
            if isinstance(one, Accepted) and sum(each.revision is not None for each in one.rounds) <= depth
        ]
        assert share == pytest.approx(100 * len(good) / len(deep))


def test_cost_and_people_are_charted_from_their_tables(reported: Reported) -> None:
    costs = rows(chart(reported, "costs", "dollars per 1,000 items"))
    spent = [sum(call.usd or 0 for one in each for call in one.calls) / len(each) for each in evaluations(reported)]
    assert sorted(row["usd_per_1000"] for row in costs) == pytest.approx(sorted(1000 * one for one in spent))
    alphas = rows(chart(reported, "agreement", "Krippendorff's alpha"))
    records = reported.tables()["annotator_agreement"]["records"]
    assert {(row["of"], row["alpha"]) for row in alphas} == {
        (f"{one['variant']}, {what}", one[what]["alpha"])
        for one in records
        for what in ("choices", "difficulty")
        if one[what]
    }


def test_the_gallery_holds_every_item_response_and_vote(reported: Reported) -> None:
    data = embedded(reported.page, "data")
    items = {one["id"]: one for one in data["items"]}
    outcomes = list(read_outcomes(reported.home / "data/items.jsonl"))
    for outcome in outcomes:
        assert isinstance(outcome, Accepted) or outcome.outcome in ("unresolved", "failed")
        if outcome.outcome != "failed":
            shown = items[outcome.item.id]
            assert shown["choices"] == list(outcome.item.choices.texts)
            assert [one["issue"] for one in shown["rounds"]] == [one.review.issue for one in outcome.rounds]
    said = {(item, one["model"]): one["verdict"] for item, each in items.items() for one in each["responses"]}
    for number, responses in enumerate(evaluations(reported)):
        for response in responses:
            right = score(response)
            expected = response.verdict if response.letter is None else "right" if right else "wrong"
            assert said.pop((response.item, number)) == expected
    assert not said
    (path,) = reported.home.glob("outputs/survey_aggregate/*/votes.jsonl")
    votes = [json.loads(line) for line in path.read_text().splitlines()]
    counted = Counter((one["item"], one["choice"]) for one in votes if one["status"] == "valid")
    shown_votes = {(id, choice): n for id, each in items.items() for choice, n in each.get("votes", {}).items()}
    assert shown_votes == {key: n for key, n in counted.items() if key[0] in items}
    assert set(data["images"]) == {one["image"] for one in data["items"]}


def test_pictures_can_lie_beside_the_page_or_be_left_out(reported: Reported) -> None:
    inline = reported.page.stat().st_size
    for images in ("beside", "none"):
        out, _ = run("report", "data", f"images={images}", cwd=reported.home)
        page = reported.home / next(line for line in out.splitlines() if line.startswith("page: ")).split()[1]
        addresses = embedded(page, "data")["images"]
        assert page.stat().st_size < inline
        assert bool(addresses) == (images == "beside")
        assert all((page.parent / address).exists() for address in addresses.values())


def test_what_models_and_users_write_ends_no_script_and_is_no_markup(reported: Reported) -> None:
    page = reported.page.read_text()
    assert "Other &lt;b&gt;model&lt;/b&gt;" in page
    assert "Other <b>model" not in page
    spoilt = as_script({"text": "</script><script>alert(1)</script>\u2028"})
    assert "<" not in spoilt
    assert "\u2028" not in spoilt
    assert json.loads(spoilt)["text"].startswith("</script>")


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_diff_holds_both_texts(before: str, after: str) -> None:
    pieces = words(before, after)
    kept = {sign: "".join(text for one, text in pieces if one in ("=", sign)) for sign in "-+"}
    letters = {sign: "".join(text.split()) for sign, text in kept.items()}
    assert letters == {"-": "".join(before.split()), "+": "".join(after.split())}


def test_responses_to_items_that_are_gone_are_shown_all_the_same(reported: Reported) -> None:
    responses = evaluations(reported)[0]
    items = Items()
    for one in responses:
        items.add_response(one, 0)
    assert len(items) == len(responses)
    assert {one["right"] for one in items.data()} == {one.expected for one in responses}


def test_compare_tells_what_changed(reported: Reported) -> None:
    whole, less = sorted(reported.home.glob("outputs/evaluate/*/*_*"))
    out, _ = run("compare", str(whole), str(less), cwd=reported.home)
    (folder,) = (reported.home / "outputs/compare").iterdir()
    changed = json.loads((folder / "tables/changed.json").read_text())["records"]
    a, b = ({one.item: one for one in evaluations(reported)[number]} for number in _numbers(reported, whole, less))
    expected = {id for id in a if score(a[id]) != score(b[id])}
    assert {one["item"] for one in changed} == expected != set()
    for one in changed:
        assert one["change"].split(" → ") == ["right" if score(each[one["item"]]) else "wrong" for each in (a, b)]
        assert one["question"]
    assert f"In both runs: {len(a)} items, of which {len(changed)} changed." in out
    assert "The datasets differ" not in out
    assert "Asked in different ways" in out
    compared = json.loads((folder / "tables/compared_plain.json").read_text())["records"][0]
    plain = [id for id in a if a[id].slot.variant.value == "plain"]
    assert compared["only_a"] == sum(bool(score(a[id])) and not score(b[id]) for id in plain)
    assert compared["only_b"] == sum(bool(score(b[id])) and not score(a[id]) for id in plain)
    shares = [f"{100 * sum(bool(score(one[id])) for id in plain) / len(plain):.1f}%" for one in (a, b)]
    told = " ".join(out.split())
    assert re.search(rf"Of {len(plain)} items .* A has {shares[0]} \([\d.–]+\) right and B {shares[1]}", told)
    assert len(embedded(folder / "compare.html", "data")["models"]) == 2


def _numbers(reported: Reported, *runs: Path) -> list[int]:
    paths = sorted(reported.home.glob("outputs/evaluate/**/responses.jsonl"))
    return [paths.index(one / "responses.jsonl") for one in runs]


def test_a_run_that_says_over_what_another_says_is_left_out_and_told_of(reported: Reported) -> None:
    whole = sorted(reported.home.glob("outputs/evaluate/*/0_*"))[0]
    copy = shutil.copytree(whole, reported.home / "copy")
    _, errors = run("report", str(whole), str(copy), "html=false", cwd=reported.home)
    assert "copy is left out: its answers are those of outputs/evaluate" in errors


def test_mistakes_are_one_sentence(reported: Reported) -> None:
    home = reported.home
    assert "Two runs are compared, not 1" in complaint("compare", "outputs/evaluate", cwd=home)
    assert "holds 3 evaluation runs" in complaint("compare", "outputs/evaluate", "data", cwd=home)
    assert "only those are compared" in complaint("compare", "data", "data", cwd=home)
    assert "There is no run folder at nowhere" in complaint("compare", "nowhere", "data", cwd=home)
    one = str(next(home.glob("outputs/evaluate/*/0_*")))
    apart = shutil.copytree(one, home / "apart")
    (first, *_) = (apart / "responses.jsonl").read_text().splitlines()
    (apart / "responses.jsonl").write_text(first.replace(json.loads(first)["item"], "f" * 16) + "\n")
    out, _ = run("compare", one, "apart", "html=false", cwd=home)
    assert ", apart (simulated)." in " ".join(out.split()), "two of one name are told apart"
    assert "In both runs: 0 items" in out
    assert "is both of the two runs" in complaint("compare", one, f"{one}/", cwd=home)
    out, _ = run("report", "data", "html=false", cwd=home)
    assert "page: " not in out


def test_runs_of_one_name_are_told_apart_where_they_answered_the_same(reported: Reported, tmp_path: Path) -> None:
    again = shutil.copytree(next(reported.home.glob("outputs/evaluate/*/0_*")), tmp_path / "again")
    first, *others = (again / "responses.jsonl").read_text().splitlines()
    changed = json.dumps(json.loads(first) | {"verdict": "unmatched", "letter": None, "by": None})
    (again / "responses.jsonl").write_text("\n".join([changed, *others]) + "\n")
    run("report", "outputs/evaluate", str(again), f"outputs={tmp_path}", cwd=reported.home)
    (page,) = tmp_path.glob("report/*/report.html")
    models = embedded(page, "data")["models"]
    assert len(set(models)) == len(models) == 4
    assert sum("again" in name for name in models) == 1
    leading = re.findall(r'href="#items\?model=(\d)&amp;variant=plain"', page.read_text())
    assert set(leading) == {"0", "1", "2", "3"}


def test_a_model_s_runs_on_other_items_are_one_to_the_page(reported: Reported, tmp_path: Path) -> None:
    whole = next(reported.home.glob("outputs/evaluate/*/0_*"))
    lines = (whole / "responses.jsonl").read_text().splitlines()
    for variant in ("plain", "boxes"):
        part = tmp_path / "runs" / variant
        part.mkdir(parents=True)
        shutil.copy(whole / "manifest.json", part)
        kept = [line for line in lines if json.loads(line)["slot"]["variant"] == variant]
        (part / "responses.jsonl").write_text("\n".join(kept) + "\n")
    run("report", "runs", cwd=tmp_path)
    (page,) = tmp_path.glob("outputs/report/*/report.html")
    data = embedded(page, "data")
    assert len(data["models"]) == 1
    assert {answer["model"] for item in data["items"] for answer in item["responses"]} == {0}


def test_a_picture_that_cannot_be_read_is_told_of_and_left_out(reported: Reported, tmp_path: Path) -> None:
    shutil.copytree(reported.home / "data", tmp_path / "data")
    spoilt = next(iter((tmp_path / "data/images").iterdir()))
    spoilt.unlink()  # a link to the store's
    spoilt.write_text("no picture")
    _, errors = run("report", "data", cwd=tmp_path)
    assert errors.count("cannot be read; the page is without it") == 1
    (page,) = tmp_path.glob("outputs/report/*/report.html")
    assert spoilt.stem not in embedded(page, "data")["images"]


def test_what_people_said_is_the_records(reported: Reported) -> None:
    (path,) = reported.home.glob("outputs/survey_aggregate/*/votes.jsonl")
    votes = [one for line in path.read_text().splitlines() if (one := json.loads(line))["status"] == "valid"]
    for item in embedded(reported.page, "data")["items"]:
        own = [vote for vote in votes if vote["item"] == item["id"]]
        ratings = [vote["difficulty"] for vote in own if vote["difficulty"] is not None]
        assert item.get("difficulty") == (sum(ratings) / len(ratings) if ratings else None)
        assert item.get("why", []) == [[vote["choice"], vote["justification"]] for vote in own if vote["justification"]]


def test_what_was_lost_without_the_image_leads_to_its_items(reported: Reported) -> None:
    assert re.search(r'href="#items\?right=\d&amp;wrong=\d"', reported.page.read_text())
