"""Charts over the records of tables, so that a chart and its table cannot differ. Each is a Vega-Lite specification
with its data in it; Altair writes these, and nothing is drawn here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vpref.reports import Table

Rows = list[dict[str, Any]]
_WIDTH = 520


@dataclass(frozen=True)
class Chart:
    """`table` is the name of the table whose records are `rows`; `title` says what is seen."""

    table: str
    title: str
    rows: Rows
    spec: dict[str, Any]


def charts(tables: Sequence[Table]) -> list[Chart]:
    """The charts of the tables that have one."""
    made = [(table, how) for table in tables for prefix, how in _CHARTS.items() if table.name.startswith(prefix)]
    found = ((table, how(table)) for table, how in made)
    return [Chart(table.name, title, rows, spec) for table, (title, rows, spec) in found if rows]


Made = tuple[str, Rows, dict[str, Any]]


def _models(table: Table) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Each record under the name that its row shows."""
    return zip((row[0] for row in table.rows), table.records, strict=True)


def _ends(group: Mapping[str, Any]) -> dict[str, Any]:
    """The interval shown: that over images, Wilson's where there is none."""
    return dict(group["clustered"] if group["clustered"]["low"] is not None else group["wilson"])


def _accuracy(table: Table) -> Made:
    rows = [
        {"model": name, "accuracy": one["overall"]["accuracy"], "n": one["overall"]["responded"]}
        | _ends(one["overall"])
        for name, one in _models(table)
        if "n" in one.get("overall", {}) and one["overall"]["accuracy"] is not None
    ]
    return (
        "Accuracy with its 95 % interval; the line is chance",
        rows,
        _points(rows, "model", "accuracy", "accuracy in percent", [0, 100], line=25.0),
    )


def _categories(table: Table) -> Made:
    about = dict(zip((f"category_{number}" for number in range(4)), table.columns[1:5], strict=True))
    rows = [
        {"model": name, "category": about[key], "accuracy": group["accuracy"], "n": group["responded"]} | _ends(group)
        for name, one in _models(table)
        for key in about
        if (group := one[key])["accuracy"] is not None
    ]
    spec = _points(rows, "model", "accuracy", "accuracy in percent", [0, 100], line=25.0, facet="category")
    return "Accuracy by category, with 95 % intervals", rows, spec


def _pairs(table: Table) -> Made:
    rows = [
        {"pair": name, "difference": one["difference"], "verdict": one["verdict"], **one["interval"]}
        for name, one in _models(table)
        if one["difference"] is not None
    ]
    spec = _points(rows, "pair", "difference", "A − B, points", None, line=0.0, colour="verdict")
    return "Differences between models with their 95 % intervals", rows, spec


def _dependence(table: Table) -> Made:
    if table.name != "dependence":
        return "", [], {}
    groups = {"overall": "Overall", "low_dependence": "Low dependence", "high_dependence": "High dependence"}
    rows = [
        {"asked": f"{row[0]}: {row[1]}", "group": label, "n": one[key]["n"]}
        | {name: None if one[key][name] is None else 100 * one[key][name] for name in ("difference", "low", "high")}
        for row, one in zip(table.rows, table.records, strict=True)
        for key, label in groups.items()
        if one[key]["n"]
    ]
    spec = _points(rows, "asked", "difference", "points lost without it", None, line=0.0, facet="group")
    return "What answers depend on, with 95 % intervals", rows, spec


def _costs(table: Table) -> Made:
    import altair as alt

    rows = [
        {"model": name, "accuracy": one["accuracy"], "usd_per_1000": one["usd_per_1000"]}
        for name, one in _models(table)
        if one["usd_per_1000"] is not None and one["accuracy"] is not None
    ]
    x = alt.X("usd_per_1000:Q", title="dollars per 1,000 items")
    y = alt.Y("accuracy:Q", title="accuracy in percent", scale=alt.Scale(domain=[0, 100]))
    dots = alt.Chart(_data(rows)).encode(x=x, y=y, tooltip=["model:N", "accuracy:Q", "usd_per_1000:Q"])
    names = dots.mark_text(align="left", dx=9, dy=-6).encode(text="model:N")
    return "Cost against accuracy", rows, _spec((dots.mark_point(filled=True, size=90) + names), height=260)


def _depths(table: Table) -> Made:
    import altair as alt

    rows = [
        {"run": one["run"], "revisions": one["revisions"], "accepted": 100 * one["accepted"] / one["items"]}
        for one in table.records
    ]
    chart = alt.Chart(_data(rows)).mark_line(point=True)
    chart = chart.encode(
        x=alt.X("revisions:O", title="revisions at most", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("accepted:Q", title="accepted, percent of all items", scale=alt.Scale(domain=[0, 100])),
        color=alt.Color("run:N", title=None, legend=alt.Legend(orient="bottom", columns=1, labelLimit=500)),
        tooltip=["run:N", "revisions:O", alt.Tooltip("accepted:Q", format=".1f")],
    )
    return "Accepted by revisions", rows, _spec(chart, height=240)


def _issues(table: Table) -> Made:
    import altair as alt

    rows = [dict(one) for one in table.records]
    chart = alt.Chart(_data(rows)).mark_bar()
    chart = chart.encode(
        y=alt.Y("issue:N", title=None, sort=None),
        x=alt.X("count:Q", title="reviews"),
        color=alt.Color(
            "review:O", title="review", scale=alt.Scale(scheme="blues"), legend=alt.Legend(orient="bottom")
        ),
        order=alt.Order("review:O"),
        tooltip=["issue:N", "review:O", "count:Q"],
    )
    return "Issues found, by review (0: the first draft)", rows, _spec(chart)


def _funnel(table: Table) -> Made:
    import altair as alt

    rows = [{"step": row[0], "count": int(row[1].replace(",", ""))} for row in table.rows]
    chart = alt.Chart(_data(rows)).mark_bar()
    chart = chart.encode(
        y=alt.Y("step:N", title=None, sort=None),
        x=alt.X("count:Q", title=None),
        tooltip=["step:N", "count:Q"],
    )
    return "From images to boxes", rows, _spec(chart)


def _difficulty(table: Table) -> Made:
    import altair as alt

    groups = {"overall": "all", "typical": "typical", "atypical": "atypical", "low": "low dep.", "high": "high dep."}
    rows = [
        {"variant": one["variant"], "group": label, "difficulty": one[key]["mean"], "ratings": one[key]["ratings"]}
        for one in table.records
        for key, label in groups.items()
        if one["items"] == "kept" and key in one and one[key]["mean"] is not None
    ]
    chart = alt.Chart(_data(rows)).mark_point(filled=True, size=80)
    chart = chart.encode(
        y=alt.Y("group:N", title=None, sort=list(groups.values())),
        x=alt.X("difficulty:Q", title="mean difficulty", scale=alt.Scale(domain=[1, 5])),
        color=alt.Color("variant:N", title=None, legend=alt.Legend(orient="bottom")),
        tooltip=["variant:N", "group:N", alt.Tooltip("difficulty:Q", format=".2f"), "ratings:Q"],
    )
    return "Mean difficulty of the items kept, 1 (very easy) to 5 (very difficult)", rows, _spec(chart)


def _agreement(table: Table) -> Made:
    rows = [
        {"of": f"{one['variant']}, {what}", **one[what]}
        for one in table.records
        for what in ("choices", "difficulty")
        if one[what] and one[what].get("alpha") is not None
    ]
    spec = _points(rows, "of", "alpha", "Krippendorff's alpha", [-1, 1], line=0.0)
    return "How far annotators agree, with 95 % intervals", rows, spec


_CHARTS: dict[str, Callable[[Table], Made]] = {
    "table1_accuracy": _accuracy,
    "table2_accuracy": _accuracy,
    "categories_": _categories,
    "comparison_": _pairs,
    "dependence": _dependence,
    "costs": _costs,
    "depths": _depths,
    "issues": _issues,
    "boxes": _funnel,
    "table3_difficulty": _difficulty,
    "annotator_agreement": _agreement,
}


def _points(
    rows: Rows,
    name: str,
    value: str,
    title: str,
    domain: list[float] | None,
    *,
    line: float,
    facet: str | None = None,
    colour: str | None = None,
) -> dict[str, Any]:
    """Points with their intervals from `low` to `high`, one a name, and a line across for nothing."""
    import altair as alt

    scale = alt.Undefined if domain is None else alt.Scale(domain=domain)
    order = list(dict.fromkeys(row[name] for row in rows))
    y = alt.Y(f"{name}:N", title=None, sort=order)
    base = alt.Chart().encode(y=y)  # the whole chart has the data: a layer with its own would be on every facet whole
    tooltip = [f"{name}:N", *(f"{one}:Q" for one in (value, "low", "high", "n") if one in (rows or [{}])[0])]
    hue = alt.Undefined if colour is None else _verdicts(rows, colour)
    ends = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=title, scale=scale), x2="high:Q", color=hue)
    dots = base.mark_point(filled=True, size=80, opacity=1)
    dots = dots.encode(x=alt.X(f"{value}:Q", title=title, scale=scale), color=hue, tooltip=tooltip)
    mark = alt.Chart().mark_rule(strokeDash=[4, 4]).encode(x=alt.datum(line))
    layers = alt.layer(mark, ends, dots)
    if facet is None:
        return _spec(layers.properties(data=_data(rows)))
    kinds = list(dict.fromkeys(row[facet] for row in rows))
    panels = alt.Facet(f"{facet}:N", title=None, sort=kinds)
    faceted = layers.properties(width=_WIDTH // 2 - 40).facet(panels, data=_data(rows), columns=2)
    return _spec(faceted, width=None)


def _verdicts(rows: Rows, name: str) -> Any:
    """The same word in the same colour on every chart of a page."""
    import altair as alt

    known = {"within noise": "#8b95a1", "A better": "#3b7dd8", "B better": "#d0802a"}
    present = dict.fromkeys(row[name] for row in rows)
    colours = [known[word.partition(",")[0]] for word in present]
    scale = alt.Scale(domain=list(present), range=colours)
    return alt.Color(f"{name}:N", scale=scale, legend=alt.Legend(orient="bottom", title=None))


def _data(rows: Rows) -> Any:
    import altair as alt

    untyped: Any = alt.Data
    return untyped(values=rows)


def _spec(chart: Any, width: int | None = _WIDTH, height: int | None = None) -> dict[str, Any]:
    if width is not None:
        chart = chart.properties(width=width)
    if height is not None:
        chart = chart.properties(height=height)
    found: dict[str, Any] = chart.to_dict()
    return found
