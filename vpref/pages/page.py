"""The page itself: templates filled in, scripts and data put in place. One file of text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from vpref.pages.charts import Chart, charts
from vpref.pages.items import Items
from vpref.pages.links import links
from vpref.reports import Table

SECTIONS = {
    "Accuracy": ("table1_", "table2_", "categories_", "extraction", "steadiness", "counted_"),
    "Models in pairs": ("comparison_", "compared_", "changed"),
    "What answers depend on": ("dependence",),
    "Cost": ("costs",),
    "Generation": ("generation", "depths", "issues", "boxes"),
    "People": ("ground_truth", "table3_", "annotator", "label_firmness", "top_up"),
}
"""Headings, and the tables below each by how their names begin."""


@dataclass(frozen=True)
class Page:
    """What a page shows. `models` and `runs` are the names of evaluations and of generating runs, which items know
    by number; `images` gives the address of each picture by its digest (a data URL, a file beside the page)."""

    title: str
    about: Sequence[str]
    tables: Sequence[Table]
    models: Sequence[str]
    runs: Sequence[str]
    items: Items
    images: Mapping[str, str]
    simulated: bool
    notes: Sequence[str] = field(default=())


def render(page: Page) -> str:
    """The page as HTML. Text that models wrote is escaped, and its data can end no script."""
    from jinja2 import Environment, PackageLoader, select_autoescape

    environment = Environment(
        loader=PackageLoader("vpref.pages"), autoescape=select_autoescape(), trim_blocks=True, lstrip_blocks=True
    )
    drawn = charts(page.tables)
    return environment.get_template("page.html").render(
        page=page,
        sections=_sections(page, drawn),
        style=_static("page.css"),
        script=_static("page.js"),
        library=_library() if drawn else "",
        charts=embedded([chart.spec for chart in drawn]),
        data=embedded(
            {
                "items": page.items.data(),
                "models": list(page.models),
                "runs": list(page.runs),
                "images": dict(page.images),
            }
        ),
    )


def embedded(value: Any) -> str:
    """JSON that can stand within a script element: no text in it can end that."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _sections(page: Page, drawn: Sequence[Chart]) -> list[dict[str, Any]]:
    numbers = {id(chart): number for number, chart in enumerate(drawn)}
    found = []
    for name, starts in SECTIONS.items():
        tables = [table for table in page.tables if table.name.startswith(starts)]
        blocks = [
            {
                "table": table,
                "links": links(table, page.models, _run_of(table, page)),
                "charts": [(numbers[id(one)], one.title) for one in drawn if one.table == table.name],
            }
            for table in tables
        ]
        if blocks:
            found.append({"name": name, "id": name.lower().replace(" ", "-"), "blocks": blocks})
    return found


def _run_of(table: Table, page: Page) -> int | None:
    """Which generating run a table is of, where there are several: its name ends in that run's number."""
    number = table.name.rpartition("_")[2]
    return int(number) - 1 if len(page.runs) > 1 and number.isdigit() else None


def _static(name: str) -> str:
    return files("vpref.pages").joinpath("static", name).read_text(encoding="utf-8")


@cache
def _library() -> str:
    """Vega, Vega-Lite and what embeds them, as one script without any address in it that is fetched."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")
