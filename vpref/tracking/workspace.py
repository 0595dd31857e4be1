"""The panels of a W&B workspace, by the names under which runs log. Needs the extra `dashboards`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from vpref.tracking.account import quiet

_GENERATING = ("generator", "reviewer", "revisor", "responder", "mapper")
_CATEGORIES = tuple(f"category_{number}" for number in range(4))


class Panels:
    """A workspace of one project. `issues` are the names of what reviews find."""

    def __init__(self, entity: str, project: str, title: str, issues: Sequence[str]) -> None:
        quiet()
        import wandb_workspaces.workspaces as ws

        sections = [
            ws.Section(name="Accuracy", panels=_accuracy(), is_open=True),
            ws.Section(name="Items", panels=_items(issues), is_open=True),
            ws.Section(name="Runs compared", panels=_comparing(), is_open=False),
        ]
        columns = ["config:about.model", "config:about.left_out", "summary:accuracy/plain/overall", "summary:usd"]
        shown = ws.RunsetSettings(
            order=[ws.Ordering(ws.Metric("CreatedTimestamp"), ascending=False)],
            pinned_columns=["run:displayName", "run:group", *columns],
        )
        self._workspace: Any = ws.Workspace(
            entity=entity, project=project, name=title, sections=sections, runset_settings=shown
        )

    def definition(self) -> dict[str, Any]:
        """What would be sent."""
        text = self._workspace._to_model().model_dump_json(by_alias=True, exclude_none=True)
        value: dict[str, Any] = json.loads(text)
        return value

    def save(self) -> str:
        """Make the workspace in W&B, and give its address."""
        return str(self._workspace.save().url)


def _accuracy() -> list[Any]:
    import wandb_workspaces.reports.v2 as wr

    def bars(title: str, variant: str, groups: Sequence[str], *names: str) -> Any:
        metrics = [f"{name}/{variant}/{group}" for group in groups for name in names]
        return wr.BarPlot(title=title, metrics=metrics, orientation="h")

    bounds = ("accuracy", "accuracy_low", "accuracy_high")
    typicality = ("typical", "atypical")
    return [
        bars("Accuracy with its 95 % interval, plain (%)", "plain", ["overall"], *bounds),
        bars("Accuracy with its 95 % interval, boxes (%)", "boxes", ["overall"], *bounds),
        bars("Typical and atypical, plain (%)", "plain", typicality, "accuracy"),
        bars("Typical and atypical, boxes (%)", "boxes", typicality, "accuracy"),
        bars("By category, plain (%)", "plain", _CATEGORIES, "accuracy"),
        bars("Items, and responses that name no choice, plain", "plain", ["overall"], "n", "unmatched", "failed"),
        wr.ScatterPlot(
            title="Cost (USD) and accuracy (%)", x=wr.SummaryMetric("usd"), y=wr.SummaryMetric("accuracy/plain/overall")
        ),
        wr.CustomChart(
            query={"summaryTable": {"tableKey": "confusion_table"}},
            chart_name="wandb/confusion_matrix/v1",
            chart_fields={"Actual": "expected", "Predicted": "found", "nPredictions": "count"},
        ),
        wr.WeavePanelSummaryTable(table_name="tables/accuracy"),
        wr.WeavePanelSummaryTable(table_name="responses"),
    ]


def _items(issues: Sequence[str]) -> list[Any]:
    import wandb_workspaces.reports.v2 as wr

    def by_role(title: str, name: str) -> Any:
        return wr.BarPlot(title=title, metrics=[f"roles/{role}/{name}" for role in _GENERATING])

    fates = ("accepted", "unresolved", "failed")
    return [
        wr.BarPlot(title="What became of items", metrics=[f"items/{name}" for name in fates]),
        wr.LinePlot(title="Accepted with so many revisions at most (share)", x="revisions", y=["depth/accepted"]),
        wr.LinePlot(
            title="Issues found by review", x="revisions", y=[f"depth/issues/{name}" for name in (*issues, "none")]
        ),
        by_role("Input tokens by role", "input"),
        by_role("Output tokens by role", "output"),
        by_role("Cost by role (USD)", "usd"),
        wr.WeavePanelSummaryTable(table_name="generations"),
    ]


def _comparing() -> list[Any]:
    import wandb_workspaces.reports.v2 as wr

    places = [wr.Config(name) for name in ("about.max_revisions", "about.model", "about.left_out")]
    ends = [wr.SummaryMetric(name) for name in ("usd", "accuracy/plain/overall", "accuracy/boxes/overall")]
    columns = [wr.ParallelCoordinatesPlotColumn(metric=one) for one in (*places, *ends)]
    return [wr.ParallelCoordinatesPlot(columns=columns), wr.RunComparer(diff_only=True)]
