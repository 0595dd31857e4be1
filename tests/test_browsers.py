"""The browser that other tests drive is there where it must be, and finds faults where there are some."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import browsers

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_a_real_browser_runs_scripts_and_its_checker_finds_what_nobody_could_read(browser: Browser) -> None:
    with browsers.opened(browser, viewport={"width": 360, "height": 640}) as page:
        page.set_content("<html lang=en><title>t</title><main><h1>A page</h1><p id=w></p></main>")
        page.evaluate("document.getElementById('w').textContent = String(innerWidth)")
        assert page.locator("#w").inner_text() == "360"
        assert browsers.faults_of_access(page) == []
        page.set_content("<html lang=en><title>t</title><main><h1>A page</h1><img src=data:,x><input></main>")
        assert {fault.partition(":")[0] for fault in browsers.faults_of_access(page)} == {"image-alt", "label"}


@pytest.mark.parametrize(("needed", "outcome"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)])
def test_where_there_is_no_browser_tests_are_skipped_unless_it_is_needed(
    needed: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv(browsers.NEEDED, needed)
    with pytest.raises(outcome, match="there is no Chromium"), browsers.chromium():
        pass
