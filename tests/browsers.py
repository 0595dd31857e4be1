"""A real Chromium for tests of pages: the system's own, driven through Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NEEDED = "VPREF_NEEDS_BROWSER"
"""Set where a browser must be there: tests that would be skipped without one fail instead."""

PATIENCE_MS = 60_000
"""How long a page may take; a busy machine is slow."""

_FLAGS = (
    "--no-sandbox",  # also as root, in a container
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, as long as the context lasts; the test is skipped, with the reason, where there is none.

    Playwright keeps an event loop running in this thread meanwhile, so that `asyncio.run` cannot be used.
    """
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing("Playwright is not installed (pip install -e '.[browser]')")
    if found is None:
        _missing("there is no Chromium on the path (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=list(_FLAGS), timeout=2 * PATIENCE_MS)
        try:
            yield started
        finally:
            started.close()


def _missing(reason: str) -> NoReturn:
    if os.environ.get(NEEDED):
        pytest.fail(f"{NEEDED} is set, and {reason}")
    pytest.skip(reason)


@contextmanager
def opened(browser: Browser, **options: object) -> Iterator[Page]:
    """A page in a context of its own (cookies, storage), with this repository's patience. Options are those of
    Playwright's `new_context`: `viewport`, `color_scheme`, `java_script_enabled`, `base_url`, ..."""
    context = browser.new_context(**options)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    try:
        yield context.new_page()
    finally:
        context.close()


def faults_of_access(page: Page) -> list[str]:
    """What axe, the accessibility checker, finds wrong with the page as it stands: rule, and where."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{fault['id']}: {fault['help']}: {node['html']}" for fault in found for node in fault["nodes"]]
