"""What several test files share."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browsers import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew instead of comparing")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with tests/golden/<name>, or writes it there under --update-golden."""

    def check(name: str, text: str) -> None:
        path = Path(__file__).parent / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        assert path.read_text(encoding="utf-8") == text

    return check


@pytest.fixture
def own_logging() -> Iterator[None]:
    """Hydra configures the process's logging; a test that runs it in this process gets its own."""
    root, handlers, level, argv = logging.getLogger(), list(logging.getLogger().handlers), logging.root.level, sys.argv
    yield
    for handler in set(root.handlers) - set(handlers):
        handler.close()
    root.handlers[:], sys.argv = handlers, argv
    root.setLevel(level)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium. For one module at a time: other modules need the thread's event loop for themselves."""
    with chromium() as started:
        yield started
