"""The report's page in a real Chromium, from disk, without a network: no fault, filters, links, keyboard, contrast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browsers import faults_of_access, opened
from tests.commands import run
from tests.reported import Reported, embedded, make

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    return make(tmp_path_factory.mktemp("reported"))


@pytest.fixture(params=["light", "dark"])
def page(browser: Browser, reported: Reported, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The page opened; whatever its console complains of, or it asks the network for, fails the test."""
    told: list[str] = []
    with opened(browser, color_scheme=request.param, offline=True) as shown:
        shown.on("console", lambda message: told.append(message.text) if message.type in ("error", "warning") else None)
        shown.on("pageerror", lambda error: told.append(str(error)))
        shown.on("request", lambda one: told.append(one.url) if not one.url.startswith(("file:", "data:")) else None)
        shown.goto(reported.page.as_uri())
        shown.wait_for_selector("html[data-ready]")
        yield shown
    assert told == []


def count(page: Page) -> str:
    return page.locator("#count").inner_text()


def draw_all(page: Page) -> None:
    for place in page.locator(".chart").all():
        place.scroll_into_view_if_needed()
        place.locator("svg").wait_for()


def test_every_chart_is_drawn_and_access_has_no_fault(page: Page, reported: Reported) -> None:
    draw_all(page)
    assert page.locator(".chart svg").count() == len(embedded(reported.page, "charts")) > 8
    assert faults_of_access(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert "Simulated." in page.locator("header").inner_text()


def test_panels_show_their_own_points(page: Page, reported: Reported) -> None:
    draw_all(page)
    for number, spec in enumerate(embedded(reported.page, "charts")):
        if "facet" in spec:
            dots = page.locator(f".chart[data-chart='{number}'] .mark-symbol path").count()
            assert dots == len(spec["data"]["values"])


def test_filters_narrow_the_gallery_as_the_records_say(page: Page, reported: Reported) -> None:
    items = embedded(reported.page, "data")["items"]
    assert count(page) == f"{len(items)} of {len(items)} items"
    page.select_option("[name=variant]", "boxes")
    page.select_option("[name=model]", "0")
    page.select_option("[name=outcome]", "wrong")
    wrong = [
        one
        for one in items
        if one["variant"] == "boxes" and any(a["model"] == 0 and a["verdict"] == "wrong" for a in one["responses"])
    ]
    assert count(page).startswith(f"{len(wrong)} of")
    assert page.locator("#gallery li").count() == len(wrong)
    page.click("text=Show all")
    word = items[0]["preference"].split()[-1].strip(".").lower()
    page.fill("[name=q]", word)
    assert 0 < page.locator("#gallery li").count() < len(items)
    page.fill("[name=q]", "<script>")
    assert count(page).startswith("0 of")
    page.keyboard.press("Enter")
    assert page.url.endswith("script%3E")


def test_a_number_leads_to_the_items_behind_it(page: Page, reported: Reported) -> None:
    table = reported.tables()["comparison_plain"]
    place = table["columns"].index("Only A right")
    row, cell = next((n, row[place]) for n, row in enumerate(table["rows"]) if row[place] != "0")
    head = page.locator("#t-comparison_plain")
    link = head.locator("xpath=..").locator("tbody tr").nth(row).locator("td").nth(place - 1).locator("a")
    link.press("Enter")
    page.wait_for_function("document.querySelector('[name=right]').value !== ''")
    assert count(page).startswith(f"{cell} of")
    page.locator("a[href*='fate=accepted']").first.press("Enter")
    page.wait_for_function("document.querySelector('[name=fate]').value === 'accepted'")


def test_an_item_by_keyboard(page: Page) -> None:
    page.locator("#gallery button").first.focus()
    page.keyboard.press("Enter")
    dialog = page.locator("dialog[open]")
    first = dialog.locator("h2").inner_text()
    assert dialog.locator(".choices li").count() >= 4
    assert dialog.locator("h3").all_inner_texts() == ["Responses", "People", "How it came about"]
    assert faults_of_access(page) == []
    page.keyboard.press("ArrowRight")
    assert "2 of" in dialog.locator(".bar").inner_text()
    page.keyboard.press("ArrowLeft")
    assert dialog.locator("h2").inner_text() == first
    address = page.url
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    assert page.evaluate("document.activeElement.closest('#gallery') !== null")
    page.goto("about:blank")
    page.goto(address)
    assert page.locator("dialog[open] h2").inner_text() == first


def test_a_revision_is_shown_as_a_diff(page: Page, reported: Reported) -> None:
    revised = next(one for one in embedded(reported.page, "data")["items"] if any(r["changes"] for r in one["rounds"]))
    page.goto("about:blank")
    page.goto(f"{reported.page.as_uri()}#item={revised['id']}")
    dialog = page.locator("dialog[open]")
    assert dialog.locator("del").count() + dialog.locator("ins").count() > 0
    assert revised["rounds"][0]["analysis"] in dialog.inner_text()


def test_pictures_beside_the_page_are_shown_on_a_phone_too(browser: Browser, reported: Reported) -> None:
    out, _ = run("report", "data", "images=beside", cwd=reported.home)
    path = reported.home / next(line for line in out.splitlines() if line.startswith("page: ")).split()[1]
    with opened(browser, viewport={"width": 390, "height": 800}, offline=True) as shown:
        shown.goto(path.as_uri())
        shown.locator("#gallery img").first.scroll_into_view_if_needed()
        shown.wait_for_function("document.querySelector('#gallery img').naturalWidth > 0")
        assert shown.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert shown.pdf()[:4] == b"%PDF"
