"""What the Forms API returns, `forms.get` and `forms.responses.list`, as the grid that a CSV of it would be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vpref.errors import ConfigError
from vpref.forms.grid import Grid
from vpref.forms.questions import Sheet, one_line


@dataclass
class _Form:
    """A form's titles by question id, the options of each title, and the responses to it."""

    titles: dict[str, str]
    options: dict[str, list[str]]
    responses: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    whole: bool = False

    def add(self, name: str, page: Mapping[str, Any]) -> None:
        """Take in a page of responses."""
        self.responses += [(name, response) for response in page["responses"]]
        self.whole = self.whole or not page.get("nextPageToken")


def response_grids(documents: Iterable[tuple[str, Any]], sheets: Sequence[Sheet]) -> list[Grid]:
    """A grid for each form. A document is a form, a page of responses, both (`form` and `responses`), or a list of
    such; responses on their own find their form by their question ids. Raises ConfigError where a document is neither,
    or responses have no form."""
    parts = [(name, part) for name, document in documents for part in _parts(name, document)]
    forms: list[_Form] = []
    alone = []
    for name, part in parts:
        form = part.get("form") or (part if "items" in part else None)
        if form is not None:
            forms.append(_form(form))
        if "responses" in part:
            if form is not None:
                forms[-1].add(name, part)
            else:
                alone.append((name, part))
    for name, part in alone:
        _find(name, part, forms).add(name, part)
    return [_grid(form, sheets) for form in forms if form.responses]


def _parts(name: str, document: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(document, list):
        for one in document:
            yield from _parts(name, one)
    elif isinstance(document, dict) and (
        isinstance(document.get("form"), dict) or isinstance(document.get("items", document.get("responses")), list)
    ):
        yield document
    elif document:
        raise ConfigError(f"{name} holds neither a form (forms.get) nor responses (forms.responses.list).")


def _form(part: Mapping[str, Any]) -> _Form:
    titles, options = {}, {}
    for item in part["items"]:
        question = item.get("questionItem", {}).get("question", {})
        if "questionId" in question:
            title = one_line(item.get("title", ""))
            titles[question["questionId"]] = title
            listed = question.get("choiceQuestion", {}).get("options", [])
            options[title] = [one_line(option.get("value", "")) for option in listed]
    return _Form(titles, options)


def _find(name: str, page: Mapping[str, Any], forms: Sequence[_Form]) -> _Form:
    asked = {id for response in page["responses"] for id in response.get("answers", {})}
    found = [form for form in forms if asked & form.titles.keys()]
    if len(found) != 1:
        raise ConfigError(
            f"{name} holds responses without their form, so that nobody knows what was asked; give what forms.get "
            "returns for it too."
        )
    return found[0]


def _grid(form: _Form, sheets: Sequence[Sheet]) -> Grid:
    name = form.responses[0][0]
    places = list(form.titles)
    rows = [_cells(response, places) for _, response in form.responses]
    header = ["Timestamp", *form.titles.values()]
    grid = Grid(name, header, rows, list(range(2, len(rows) + 2)))
    if not form.whole:
        what = "ends with a page that is followed by another (nextPageToken): give all pages"
        grid.report(None, None, what)
    _check_options(form, grid, sheets)
    return grid


def _cells(response: Mapping[str, Any], places: Sequence[str]) -> list[str]:
    answers = response.get("answers", {})
    values = ([one.get("value", "") for one in _texts(answers.get(place, {}))] for place in places)
    time = response.get("lastSubmittedTime") or response.get("createTime") or ""
    return [time, *("; ".join(texts) for texts in values)]


def _texts(answer: Mapping[str, Any]) -> Sequence[Mapping[str, str]]:
    texts: Sequence[Mapping[str, str]] = answer.get("textAnswers", {}).get("answers", [])
    return texts


def _check_options(form: _Form, grid: Grid, sheets: Sequence[Sheet]) -> None:
    """Tell of questions whose options are no longer those exported."""
    exported = {asked.titles["choice"]: list(asked.options.values()) for sheet in sheets for asked in sheet.asked}
    for title, options in form.options.items():
        if title in exported and options != exported[title]:
            what = "has other options than were exported: the form was edited; answers with these make no votes"
            grid.report(None, title, what)
