"""The survey's pages in a real Chromium: by keyboard, with every way of going astray, with and without scripts."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from tests.browsers import PATIENCE_MS, faults_of_access, opened
from tests.serving import PLENTY_S, Served, plan_of, planned, served, votes_of
from vpref.domain import annotator_key

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

REASON = "It’s the one they’d like – “ß😀”"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One survey for many tests; each brings people of its own."""
    survey = planned(tmp_path_factory.mktemp("browser"), "places=40", "checks=1")
    with served(survey, "completion_code=C0DE", "anonymous=true") as running:
        yield running


def came_in(page: Page, running: Served, participant: str) -> None:
    """As far as the first question."""
    page.goto(f"{running.address}?PROLIFIC_PID={participant}")
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("link", name="Start").click()
    page.wait_for_url("**/question/1")


def fill_in(page: Page, reason: str = REASON) -> None:
    page.locator(".choice").first.click()
    page.locator("#difficulty-4").check()
    page.locator("#justification").fill(reason)


def save(page: Page) -> None:
    page.get_by_role("button", name="Save and go on").click()


def stored(running: Served, participant: str, table: str = "answer") -> list[dict[str, Any]]:
    who = annotator_key((running.survey / "annotators.key").read_bytes().strip(), participant)
    with closing(sqlite3.connect(running.survey / "answers.sqlite", timeout=PLENTY_S)) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute(f"SELECT * FROM {table} WHERE annotator = ?", (who,))]


def focused(page: Page) -> str:
    """What the keyboard is at: its id, else its text."""
    return str(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))


def tab_to(page: Page, wanted: str) -> None:
    for _ in range(40):
        page.keyboard.press("Tab")
        if re.fullmatch(wanted, focused(page)):
            return
    raise AssertionError(f"Tab never reaches {wanted}")


def test_a_whole_form_by_keyboard_alone(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    survey = planned(tmp_path_factory.mktemp("keyboard"), "places=1", "checks=1")
    with served(survey, "completion_code=C0DE") as running, opened(browser) as page:
        page.goto(running.address)
        tab_to(page, "participant")
        page.keyboard.type("keys")
        page.keyboard.press("Enter")
        page.wait_for_url("**/consent")
        tab_to(page, "I agree.*")
        page.keyboard.press("Space")
        page.wait_for_url("**/instructions")
        tab_to(page, "Start")
        page.keyboard.press("Enter")
        questions = plan_of(survey).forms[0].questions
        chosen = []
        for number, question in enumerate(questions, 1):
            page.wait_for_url(f"**/question/{number}")
            page.locator("#save:enabled").wait_for()
            tab_to(page, "choice-[abcd]")
            page.keyboard.press("ArrowDown")
            chosen.append(focused(page).removeprefix("choice-"))
            if question not in plan_of(survey).checks:
                tab_to(page, "difficulty-1")
                page.keyboard.press("ArrowRight")
                tab_to(page, "justification")
                page.keyboard.type(f"{REASON} {number}")
            tab_to(page, "save")
            page.keyboard.press("Enter")
        page.wait_for_url("**/review")
        tab_to(page, "Hand in my answers")
        page.keyboard.press("Enter")
        page.wait_for_url("**/done")
        assert page.locator(".code").inner_text() == "C0DE"
        running.stop()
    votes = votes_of(survey)
    assert [vote["item"] for vote in votes] == list(questions)
    assert [vote["choice"] for vote in votes] == chosen
    assert all(vote["choice"] == vote["order"][1] for vote in votes), "the second of the list as shown"
    items = [vote for vote in votes if vote["item"] not in plan_of(survey).checks]
    assert {vote["difficulty"] for vote in items} == {2}
    assert all(vote["justification"].startswith(REASON) for vote in items)


def test_refresh_back_and_a_second_tab_lose_and_double_nothing(browser: Browser, running: Served) -> None:
    with opened(browser) as page:
        came_in(page, running, "astray")
        fill_in(page, "typed, not sent")
        page.reload()
        assert page.locator("#justification").input_value() == "typed, not sent"
        assert page.locator("#difficulty-4").is_checked()
        second = page.context.new_page()
        second.goto(running.address)
        second.wait_for_url(re.compile("instructions"))
        save(page)
        page.wait_for_url("**/question/2")
        page.reload()
        page.go_back()
        page.wait_for_url("**/question/1")
        assert page.locator("#justification").input_value() == "typed, not sent"
        page.locator("#justification").fill("thought again")
        save(page)
        page.wait_for_url("**/question/2")
        second.goto(running.address + "question/1")
        assert second.locator("#justification").input_value() == "thought again"
        second.locator("#justification").fill("from the second tab")
        save(second)
        second.wait_for_url("**/question/2")
        page.go_back()
        assert page.locator("#justification").input_value() == "from the second tab"
    assert [row["justification"] for row in stored(running, "astray")] == ["from the second tab"]
    answered = [row for row in stored(running, "astray", "event") if row["kind"] == "answered"]
    assert [row["detail"].partition(" ")[2][2:] for row in answered] == [
        "typed, not sent",
        "thought again",
        "from the second tab",
    ]


def test_a_double_click_sends_once(browser: Browser, running: Served) -> None:
    with opened(browser) as page:
        came_in(page, running, "clicker")
        fill_in(page)
        posts = []
        page.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
        page.locator("#save").dblclick()
        page.wait_for_url("**/question/2")
        assert len(posts) == 1
    assert len(stored(running, "clicker")) == 1


def test_another_device_goes_on_where_the_first_stopped(browser: Browser, running: Served) -> None:
    with opened(browser) as page, opened(browser, viewport={"width": 360, "height": 640}) as phone:
        came_in(page, running, "traveller")
        fill_in(page)
        save(page)
        page.wait_for_url("**/question/2")
        page.goto(running.address + "instructions")
        phone.goto(page.locator(".link a").inner_text())
        phone.wait_for_url("**/question/2")
        phone.get_by_role("link", name="Back to question 1").click()
        phone.wait_for_url("**/question/1")
        assert phone.locator("#justification").input_value() == REASON
        assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out on a phone"


@pytest.mark.parametrize("fault", ["missing", "broken"])
def test_an_image_that_does_not_load_blocks_the_answer(browser: Browser, running: Served, fault: str) -> None:
    with opened(browser) as page:

        def spoil(route: Any) -> None:
            route.fulfill(
                status=200, content_type="image/jpeg", body=b"no picture"
            ) if fault == "broken" else route.abort()

        page.route("**/image/*", spoil)
        with page.expect_response("**/unseen"):
            came_in(page, running, f"blind-{fault}")
        page.get_by_role("heading", name="Is the picture missing?").wait_for()
        fill_in(page)
        assert page.locator("#save").is_disabled()
        assert "without its picture" in page.locator("#state").inner_text()
        assert faults_of_access(page) == []
        kinds = [(row["kind"], row["detail"]) for row in stored(running, f"blind-{fault}", "event")]
        assert ("no image", "the browser could not show it") in kinds
        page.evaluate("document.getElementById('answer').submit()")  # around the script, the server still refuses
        page.locator("#problems").wait_for()
        assert "The image has not been shown" in page.locator("#problems").inner_text()
        assert stored(running, f"blind-{fault}") == []
        page.unroute("**/image/*")
        page.get_by_role("link", name="load this page again").click()
        page.locator("#save:enabled").wait_for()
        fill_in(page)
        save(page)
        page.wait_for_url("**/question/2")
    assert len(stored(running, f"blind-{fault}")) == 1


def test_without_scripts_all_of_it_works(browser: Browser, running: Served) -> None:
    with opened(browser, java_script_enabled=False) as page:
        came_in(page, running, "scriptless")
        page.get_by_role("button", name="I cannot see the picture").click()
        page.get_by_role("heading", name="Is the picture missing?").wait_for()
        save(page)
        page.locator("#problems").wait_for()
        page.get_by_role("link", name="Say how difficult the choice was.").click()
        for number in range(1, 20):
            if "/review" in page.url:
                break
            page.locator(".choice").first.click()
            if page.locator("#justification").count():
                page.locator("#difficulty-4").check()
                page.locator("#justification").fill(f"{REASON} {number}")
            with page.expect_navigation():
                save(page)
        page.get_by_role("button", name="Hand in my answers").click()
        page.wait_for_url("**/done")
    assert stored(running, "scriptless", "person")[0]["finished"] is not None
    assert ("no image", "the annotator cannot see it") in [
        (row["kind"], row["detail"]) for row in stored(running, "scriptless", "event")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_every_page_can_be_read_by_everybody(browser: Browser, running: Served, width: int, scheme: str) -> None:
    errors: list[str] = []
    with opened(browser, viewport={"width": width, "height": 800}, color_scheme=scheme) as page:
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: errors.append(request.url) if running.address not in request.url else None)

        def look(ending: str) -> None:
            page.wait_for_url(re.compile(ending))
            assert faults_of_access(page) == [], page.url
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), page.url

        page.goto(running.address)
        look("/$")
        page.goto(f"{running.address}?PROLIFIC_PID=reader-{width}-{scheme}")
        look("consent")
        page.get_by_role("button", name="I agree").click()
        look("instructions")
        page.get_by_role("link", name="Start").click()
        page.locator("#save:enabled").wait_for()
        look("question/1")
        save(page)
        page.locator("#problems").wait_for()
        assert focused(page) == "problems"
        assert page.title().startswith("Error: ")
        look("question/1")
        errors = [error for error in errors if "422" not in error]  # which Chromium notes of every refused form
        for _ in range(20):
            if "/review" in page.url:
                break
            page.locator(".choice").first.click()
            if page.locator("#justification").count():
                page.locator("#difficulty-4").check()
                page.locator("#justification").fill(REASON)
            else:
                look("question")
            with page.expect_navigation():
                save(page)
        look("review")
        page.goto(running.address + "withdraw")
        look("withdraw")
        page.goto(running.address + "review")
        page.get_by_role("button", name="Hand in my answers").click()
        look("done")
        assert errors == []
        page.goto(running.address + "admin/")
        look("admin/$")
        page.locator("#token").fill(running.token)
        page.get_by_role("button", name="Enter").click()
        page.get_by_role("heading", name="To look at").wait_for()
        look("admin/$")
        page.goto(running.address + "nowhere")
        look("nowhere")


def test_when_all_is_taken_the_page_says_so(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    with served(planned(tmp_path_factory.mktemp("full"), "places=1")) as running:
        for person in range(4):
            with opened(browser) as page:
                came_in(page, running, f"early-{person}")
        with opened(browser) as page:
            page.goto(f"{running.address}?PROLIFIC_PID=late")
            page.get_by_role("heading", name="All places are taken").wait_for(timeout=PATIENCE_MS)
            assert faults_of_access(page) == []
