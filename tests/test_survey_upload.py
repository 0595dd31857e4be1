"""Exported forms made in an account of Google's, and their responses fetched: against a service that takes only what
the client's own description of the APIs allows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.commands import complaint, run
from tests.google_account import Google, google, misfits, service_account
from tests.surveys import api_documents, dataset, filled, generic_items, made_up_votes, plan_survey
from vpref.forms.account import SCOPE
from vpref.forms.google import api_requests
from vpref.forms.questions import sheets
from vpref.runs.surveys import open_survey, read_votes

pytestmark = pytest.mark.slow


@dataclass
class World:
    """A planned and exported survey, and the service."""

    home: Path
    survey: Path
    export: Path
    google: Google

    def give(self, step: str, does: Callable[..., object] = run, **more: object) -> object:
        login = {"GOOGLE_APPLICATION_CREDENTIALS": str(self.home / "login.json")}
        where = [f"export={self.export}", f"endpoint={self.google.url}"]
        return does("survey", step, *where, cwd=self.home, **login | more)

    @property
    def made(self) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = json.loads((self.export / "google" / "forms.json").read_text())
        return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    dataset(tmp_path / "data", generic_items(plain=3, boxes=2))
    survey = plan_survey(tmp_path, "dataset=data", "checks=1", "places=3")
    run("survey", "export", f"survey={survey}", "image_url=https://example.org/images", cwd=tmp_path)
    (export,) = (tmp_path / "outputs/survey_export").iterdir()
    with google() as service:
        service_account(tmp_path / "login.json", service.url)
        yield World(tmp_path, survey, export, service)


def test_the_requests_have_the_shapes_that_google_describes(world: World) -> None:
    for path in (world.export / "google").iterdir():
        bodies = json.loads(path.read_text())
        assert misfits(bodies["create"], {"$ref": "Form"}) == []
        assert misfits(bodies["batchUpdate"], {"$ref": "BatchUpdateFormRequest"}) == []
        assert misfits(bodies["setPublishSettings"], {"$ref": "SetPublishSettingsRequest"}) == []
    bodies["batchUpdate"]["requests"][1]["createItem"]["item"]["question"] = {}
    assert misfits(bodies["batchUpdate"], {"$ref": "BatchUpdateFormRequest"}) == [
        ".requests[1].createItem.item.question: unknown"
    ]


def test_forms_are_made_published_and_answered(world: World) -> None:
    world.give("upload")
    survey = open_survey(str(world.survey))
    made = world.made
    assert sorted(made) == sorted(form.name for form in survey.plan.forms)
    votes = made_up_votes(survey)
    for sheet in sheets(survey.plan, survey.items):
        id = made[sheet.form.name]["id"]
        form = world.google.forms[id]
        assert form["publishSettings"]["publishState"] == {"isPublished": True, "isAcceptingResponses": True}
        assert world.google.shared[id] == [{"type": "anyone", "role": "reader", "view": "published"}]
        assert made[sheet.form.name]["responder"] == form["responderUri"]
        header, rows = filled(survey, votes)[sheet.form.name]
        documents = api_documents(api_requests(sheet, lambda digest: digest), header, rows)
        form["items"] = documents["form"]["items"]
        world.google.responses[id] = documents["responses"]
    world.give("fetch")
    (fetched,) = (world.home / "outputs/survey_fetch").iterdir()
    files = [str(fetched / f"{name}.json") for name in made]
    out, _ = run("survey", "import", f"survey={world.survey}", *files, cwd=world.home)
    assert "problems: none" in out
    (imported,) = (world.home / "outputs/survey_import").iterdir()
    back = [(vote.item, vote.choice, vote.difficulty, vote.form) for vote in read_votes([str(imported)])]
    assert sorted(back) == sorted((vote.item, vote.choice, vote.difficulty, vote.form) for vote in votes)


@pytest.mark.parametrize("where", [":batchUpdate", ":setPublishSettings", "/permissions"])
@pytest.mark.parametrize("done", [False, True])
def test_a_form_is_made_once_whatever_was_cut_off(world: World, where: str, done: bool) -> None:
    world.google.faults = [(where, done)]
    told = world.give("upload", complaint, code=1)
    assert "403, Quota is spent" in str(told)
    assert "give the same command to go on" in str(told)
    world.give("upload")
    world.give("upload")
    assert world.google.calls.count("POST /v1/forms") == len(world.made) == len(world.google.forms)
    exported = {path.stem: json.loads(path.read_text()) for path in (world.export / "google").glob("*-*.json")}
    for name, form in world.made.items():
        asked = sum("createItem" in one for one in exported[name]["batchUpdate"]["requests"])
        assert len(world.google.forms[form["id"]]["items"]) == asked
        assert world.google.shared[form["id"]]


def test_a_form_that_somebody_changed_is_left_alone(world: World) -> None:
    world.google.faults = [(":setPublishSettings", False)]
    world.give("upload", complaint, code=1)
    world.google.forms["form0"]["items"].pop()
    told = str(world.give("upload", complaint, code=1))
    assert "somebody changed it" in told
    assert "https://docs.google.com/forms/d/form0/edit" in told


def test_what_cannot_be_done_is_said(world: World, tmp_path: Path) -> None:
    assert "was uploaded yet" in str(world.give("fetch", complaint))
    nobody = {"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "none.json")}
    told = str(world.give("upload", complaint, **nobody))
    assert SCOPE in told
    assert "GOOGLE_APPLICATION_CREDENTIALS" in told
    assert "no requests" in complaint("survey", "upload", f"export={world.survey}", cwd=world.home)
    key = json.loads((world.home / "login.json").read_text())["private_key"]
    world.google.faults = [("/v1/forms", False)]
    assert "making a form" in str(world.give("upload", complaint, code=1))
    kept = [path for path in (world.home / "outputs").rglob("*") if path.is_file()]
    assert not any(part in path.read_bytes() for path in kept for part in (key[100:160].encode(), b"let-me-in"))
