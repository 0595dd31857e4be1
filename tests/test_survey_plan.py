"""Forms of a survey: the paper's shape, any other, and plans that later steps can be held against."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hydra import compose, initialize_config_module
from hypothesis import given
from hypothesis import strategies as st

from tests.commands import complaint, run
from tests.surveys import dataset, generic_items, plan_survey
from vpref.domain import LETTERS, Category, PlannedItem, Variant
from vpref.errors import ConfigError
from vpref.runs import schema
from vpref.runs.datasets import open_dataset
from vpref.runs.surveys import open_survey
from vpref.voting import plan_forms

CATEGORIES = st.lists(st.integers(0, 3), min_size=0, max_size=6)


def planned(images: int, variant: Variant, categories: tuple[int, ...]) -> list[PlannedItem]:
    return [
        PlannedItem(
            id=f"{variant}-{image:02}-{category}",
            image=f"image {image:02}",
            shown=f"image {image:02}",
            variant=variant,
            category=Category(category),
        )
        for image in range(images)
        for category in categories
    ]


def test_the_paper_s_forms() -> None:
    """Section 3.3: 84 plain items in 7 forms of 12, 44 with boxes in 4 forms of 11; category c of image i in form
    (i + c) mod F, c the category's own number."""
    items = planned(21, Variant.PLAIN, (0, 1, 2, 3)) + planned(22, Variant.BOXES, (0, 2))
    forms = plan_forms(items, per_form=12, forms=None, checks=0)
    assert [form.name for form in forms] == [f"plain-{n}" for n in range(1, 8)] + [f"boxes-{n}" for n in range(1, 5)]
    assert [len(form.items) for form in forms] == [12] * 7 + [11] * 4
    place = {item: form.name for form in forms for item in form.items}
    for item in items:
        number = 7 if item.variant is Variant.PLAIN else 4
        assert place[item.id] == f"{item.variant}-{(int(item.image[-2:]) + item.category) % number + 1}"


@given(st.lists(CATEGORIES, max_size=30), st.integers(1, 14), st.integers(0, 5), st.randoms(use_true_random=False))
def test_forms_of_any_items_are_balanced_and_show_no_image_twice(
    images: list[list[int]], per_form: int, more: int, random: Random
) -> None:
    items = [
        PlannedItem(id=f"{i}-{n}", image=str(i), shown=str(i), variant=Variant.PLAIN, category=Category(category))
        for i, categories in enumerate(images)
        for n, category in enumerate(categories)
    ]
    least = max((len(categories) for categories in images), default=0)
    forced = min(least + more, len(items)) if more else None
    forms = plan_forms(items, per_form=per_form, forms=forced or None, checks=2)
    image = {item.id: item.image for item in items}
    assert Counter(one for form in forms for one in form.items) == Counter(image.keys())
    assert all(len({image[one] for one in form.items}) == len(form.items) for form in forms)
    sizes = [len(form.items) for form in forms]
    assert max(sizes, default=0) - min(sizes, default=0) <= 1
    random.shuffle(items)
    assert plan_forms(items, per_form=per_form, forms=forced or None, checks=2) == forms


def test_too_few_forms_for_an_image_are_refused_in_words() -> None:
    with pytest.raises(ConfigError, match=r"has 4 items of the plain variant, so that they need 4 forms"):
        plan_forms(planned(3, Variant.PLAIN, (0, 1, 2, 3)), per_form=12, forms=3, checks=0)
    with pytest.raises(ConfigError, match="cannot share"):
        plan_forms(planned(1, Variant.PLAIN, (0, 1)), per_form=12, forms=3, checks=0)


def test_checks_lie_between_items_and_say_what_to_choose() -> None:
    (form,) = plan_forms(planned(12, Variant.PLAIN, (0,)), per_form=12, forms=None, checks=2)
    assert [check.place for check in form.checks] == [4, 8]
    assert len(form.questions) == 14
    assert form.questions[4] == form.checks[0].id
    for check in form.checks:
        assert check.expected in LETTERS
        assert check.choices[check.expected] in check.question
        assert sum(text in check.question for text in check.choices.texts) == 1


def test_a_plan_holds_all_that_later_steps_need(tmp_path: Path) -> None:
    dataset(tmp_path / "data", generic_items(plain=6, boxes=4))
    folder = plan_survey(tmp_path, "dataset=data", "checks=1")
    survey = open_survey(str(folder))
    assert survey.plan.places == 5
    assert set(survey.items) == {one for form in survey.plan.forms for one in form.items}
    assert all(item.shown in survey.gallery for item in survey.plan.items)
    assert len(survey.plan.checks) == len(survey.plan.forms)
    assert oct((folder / "annotators.key").stat().st_mode)[-3:] == "600"
    assert survey.secret.decode() not in (folder / "manifest.json").read_text() + (folder / "plan.json").read_text()
    assert open_dataset(str(folder), False).count == 32
    again = plan_survey(tmp_path, "dataset=data", "checks=1")
    assert (again / "plan.json").read_bytes() == (folder / "plan.json").read_bytes()


def test_what_changed_after_planning_is_named(tmp_path: Path) -> None:
    dataset(tmp_path / "data", generic_items(plain=4))
    folder = plan_survey(tmp_path, "dataset=data")
    kept = tmp_path / "kept"
    shutil.copytree(folder, kept)
    lines = (folder / "items.jsonl").read_text().splitlines()
    first = json.loads(lines[0])["item"]["id"]
    (folder / "items.jsonl").write_text("\n".join(lines[1:]) + "\n")
    with pytest.raises(ConfigError, match=f"1 planned items .*{first}"):
        open_survey(str(folder))
    (folder / "items.jsonl").write_text("\n".join(lines).replace("Scene 0", "Scene zero") + "\n")
    with pytest.raises(ConfigError, match=f"{first} .* was changed"):
        open_survey(str(folder))
    text = (kept / "plan.json").read_text()
    (kept / "plan.json").write_text(text.replace('"title": "', '"title": "My '))
    with pytest.raises(ConfigError, match="changed after it was made"):
        open_survey(str(kept))
    (kept / "plan.json").write_text('{"title": 1}')
    with pytest.raises(ConfigError, match="no survey plan"):
        open_survey(str(kept))
    fresh = plan_survey(tmp_path, "dataset=data")
    (fresh / "annotators.key").unlink()
    survey = open_survey(str(fresh))
    with pytest.raises(ConfigError, match=r"annotators\.key"):
        _ = survey.secret


@pytest.mark.parametrize("verb", [verb for verb in schema.SCHEMAS if verb.startswith("survey_")])
def test_every_step_composes_with_the_defaults_of_its_settings(verb: str) -> None:
    wanted = {"survey_plan": "dataset", "survey_upload": "export", "survey_fetch": "export"}.get(verb, "survey")
    schema.register()
    with initialize_config_module("vpref.conf", version_base="1.3"):
        composed: object = schema.typed(compose(verb, overrides=[f"{wanted}=x"]), schema.SCHEMAS[verb])
    assert composed == schema.SCHEMAS[verb](verb=verb, **{wanted: "x"})


def test_mistakes_and_help(tmp_path: Path) -> None:
    dataset(tmp_path / "data", generic_items(plain=2))
    folder = plan_survey(tmp_path, "dataset=data")
    assert "not resumed" in complaint("resume", str(folder), cwd=tmp_path)
    assert "Which step of a survey?" in complaint("survey", cwd=tmp_path)
    assert "Did you mean plan?" in complaint("survey", "plann", cwd=tmp_path)
    assert "dataset=VALUE" in complaint("survey", "plan", cwd=tmp_path)
    assert "need 4 forms" in complaint("survey", "plan", "dataset=data", "forms=2", cwd=tmp_path)
    assert "places is 0" in complaint("survey", "plan", "dataset=data", "places=0", cwd=tmp_path)
    out, _ = run("survey", "--help", cwd=tmp_path)
    assert "vpref survey STEP" in out
    out, _ = run("survey", "plan", "--help", cwd=tmp_path)
    assert "per_form: 12" in out
    assert "Groups" not in out
