"""A made-up annotator who answers the pages over HTTP, as a browser without scripts does: follows links, sees the
pictures, fills in and sends the forms that are there. Knows the pages only by what they say."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.cookiejar import CookieJar
from typing import Literal
from urllib.parse import urlencode, urljoin

TIMEOUT_S = 120.0
_MOST_PAGES = 1000
"""An annotator who has seen so many pages is going round in circles."""

Ending = Literal["finished", "full"]


@dataclass
class PageForm:
    """A form on a page: where it goes, and what it would send as it stands. `options` are the values of its radios
    by name."""

    action: str
    values: dict[str, str] = field(default_factory=dict)
    options: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class SeenPage:
    """A page as it came."""

    status: int
    url: str
    text: str
    forms: list[PageForm] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    def form(self, ending: str) -> PageForm | None:
        """The form whose address ends so."""
        return next((form for form in self.forms if form.action.rstrip("/").endswith(ending)), None)


class Walker:
    """One annotator and their cookies."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/") + "/"
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(CookieJar())
        )

    def get(self, url: str) -> SeenPage:
        """A page, by its address or one relative to the survey's. Raises OSError where nothing answers."""
        return self._fetch(urllib.request.Request(urljoin(self.address, url)))

    def send(self, form: PageForm, **values: str) -> SeenPage:
        """Send a form with these values filled in; leads to the page that it leads to."""
        body = urlencode(form.values | values).encode()
        return self._fetch(urllib.request.Request(form.action, data=body, method="POST"))

    def _fetch(self, request: urllib.request.Request) -> SeenPage:
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as reply:
                return _read(reply.status, reply.url, reply.read())
        except urllib.error.HTTPError as refusal:
            with refusal:
                return _read(refusal.code, refusal.url, refusal.read())

    def walk(self, participant: str, respond: Callable[[str], Mapping[str, str]]) -> Ending:
        """Come in, answer every question as `respond` says by its id, hand in.

        Raises OSError where nothing answers, RuntimeError on a page that leads nowhere.
        """
        page = self.get("?" + urlencode({"PROLIFIC_PID": participant}))
        for _ in range(_MOST_PAGES):
            path = page.url.partition("?")[0].rstrip("/")
            if path.endswith("/full"):
                return "full"
            if path.endswith("/done"):
                return "finished"
            page = self._step(page, path, respond)
        raise RuntimeError(f"The survey at {self.address} does not end.")

    def _step(self, page: SeenPage, path: str, respond: Callable[[str], Mapping[str, str]]) -> SeenPage:
        if page.status >= 400:
            raise RuntimeError(f"The survey at {self.address} answered {page.status} at {path}.")
        number = path.rpartition("/question/")[2]
        if number != path and (form := page.form(f"/question/{number}")):
            for image in page.images:
                self.get(image)
            return self.send(form, **respond(form.values["question"]))
        if path.endswith("/instructions"):
            return self.get(next(link for link in page.links if link.endswith("/question/1")))
        for ending in ("/consent", "/finish"):
            if form := page.form(ending):
                return self.send(form)
        raise RuntimeError(f"The survey at {self.address} leads nowhere from {path}.")


class _Reader(HTMLParser):
    def __init__(self, page: SeenPage) -> None:
        super().__init__()
        self._page = page
        self._area: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        at = {name: value or "" for name, value in attrs}
        page = self._page
        if tag == "form":
            page.forms.append(PageForm(urljoin(page.url, at.get("action") or page.url)))
        elif tag == "img":
            page.images.append(urljoin(page.url, at["src"]))
        elif tag == "a":
            page.links.append(urljoin(page.url, at.get("href", "")))
        elif tag == "textarea" and page.forms:
            self._area = at["name"]
            page.forms[-1].values[self._area] = ""
        elif tag == "input" and page.forms:
            self._input(page.forms[-1], at)

    def _input(self, form: PageForm, at: dict[str, str]) -> None:
        if at.get("type") != "radio":
            form.values[at["name"]] = at.get("value", "")
            return
        form.options.setdefault(at["name"], []).append(at["value"])
        if "checked" in at:
            form.values[at["name"]] = at["value"]

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = None

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self._page.forms[-1].values[self._area] += data.removeprefix("\n")


def _read(status: int, url: str, body: bytes) -> SeenPage:
    page = SeenPage(status, url, body.decode("utf-8", "replace"))
    if page.text.lstrip().startswith("<!doctype html>"):
        _Reader(page).feed(page.text)
    return page
