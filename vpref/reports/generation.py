"""Tables over generated items: what became of them, and what the reviews found. Records in, tables out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from vpref.domain import Accepted, Category, Failed, Outcome, Role, Variant, dollars, is_simulated, spent
from vpref.issues import ISSUES
from vpref.reports.table import SIMULATED_NOTE, Table
from vpref.scoring import percent


@dataclass
class GenerationCounts:
    """Sums over outcomes, added one by one, so that a run of any size is counted in flat memory."""

    outcomes: Counter[tuple[Variant, Category, str]] = field(default_factory=Counter)
    revisions: Counter[tuple[Variant, Category]] = field(default_factory=Counter)
    usd: defaultdict[tuple[Variant, Category], float | None] = field(default_factory=lambda: defaultdict(float))
    issues: Counter[tuple[int, str]] = field(default_factory=Counter)
    reviews: Counter[int] = field(default_factory=Counter)
    accepted: Counter[int] = field(default_factory=Counter)
    roles: Counter[tuple[Role, str]] = field(default_factory=Counter)
    role_usd: defaultdict[Role, float | None] = field(default_factory=lambda: defaultdict(float))
    failures: Counter[str] = field(default_factory=Counter)
    asked_again: Counter[str] = field(default_factory=Counter)
    simulated: bool = False

    def add(self, outcome: Outcome) -> None:
        place = outcome.slot.variant, outcome.slot.category
        self.outcomes[(*place, outcome.outcome)] += 1
        self.revisions[place] += sum(one.revision is not None for one in outcome.rounds)
        self.usd[place] = spent((self.usd[place], *(call.usd for call in outcome.calls)))
        for depth, one in enumerate(outcome.rounds):
            self.reviews[depth] += 1
            self.issues[depth, one.review.issue or "none"] += 1
        if isinstance(outcome, Failed):
            self.failures[outcome.kind] += 1
        if isinstance(outcome, Accepted):
            self.accepted[sum(one.revision is not None for one in outcome.rounds)] += 1
        for call in outcome.calls:
            self.role_usd[call.role] = spent((self.role_usd[call.role], call.usd))
            self.roles.update({(call.role, "calls"): 1, **{(call.role, kind): n for kind, n in call.usage}})
            self.simulated = self.simulated or is_simulated(call.server)
            if call.problem is not None:
                self.asked_again[call.problem.split(":", 1)[0]] += 1

    def made(self, variant: Variant) -> dict[str, int]:
        """Items of a variant by outcome."""
        found = {name: sum(n for key, n in self.outcomes.items() if key[::2] == (variant, name)) for name in _FATES}
        return {name: count for name, count in found.items() if count}

    def by_role(self) -> dict[str, dict[str, float | None]]:
        """Calls, tokens and dollars (None where a price is unknown) of each role that was asked."""
        kinds = ("calls", "input", "cached", "output", "reasoning")
        return {
            role.value: {kind: self.roles[role, kind] for kind in kinds}
            | {"usd": None if (usd := self.role_usd[role]) is None else round(usd, 6)}
            for role in Role
            if self.roles[role, "calls"]
        }

    def summary(self) -> dict[str, Any]:
        """Nested counts for the manifest and dashboards."""
        return {
            "issues": {
                f"review_{depth}": {name: n for (at, name), n in sorted(self.issues.items()) if at == depth}
                for depth in sorted(self.reviews)
            },
            "roles": self.by_role(),
            "failures": dict(sorted(self.failures.items())),
            "asked_again": dict(sorted(self.asked_again.items())),
        }


def generation_tables(counts: GenerationCounts) -> list[Table]:
    """Outcomes by category, and issues by review (the first reviews the generator's draft, the next the first
    revision, and so on)."""
    tables = [_outcome_table(counts)]
    if counts.reviews:
        tables.append(_issue_table(counts))
    return tables


def generations_tables(runs: Sequence[tuple[str, GenerationCounts]]) -> list[Table]:
    """Runs under their names: what became of their items and what that cost, and the share of items accepted within
    so many revisions. None for a single run, except the latter, where it was reviewed."""
    tables = [_runs_table(runs)] if len(runs) > 1 else []
    return [*tables, _depth_table(runs)] if any(counts.reviews for _, counts in runs) else tables


def _runs_table(runs: Sequence[tuple[str, GenerationCounts]]) -> Table:
    records = [{"run": name, **_total(counts), "simulated": counts.simulated} for name, counts in runs]
    return Table(
        name="generations",
        title="Generating runs",
        columns=("Run", "Items", "Accepted", "Unresolved", "Failed", "Revisions per item", "Cost"),
        heads=("Run", "Items", "Accepted", "Un-\nresolved", "Failed", "Revisions\nper item", "Cost"),
        rows=tuple((str(one["run"]), *_outcome_cells(one)) for one in records),
        notes=(SIMULATED_NOTE,) if any(counts.simulated for _, counts in runs) else (),
        records=tuple(records),
    )


def _depth_table(runs: Sequence[tuple[str, GenerationCounts]]) -> Table:
    """Accepted after at most so many revisions, of all items of the run."""
    deepest = max(max(counts.accepted, default=0) for _, counts in runs)
    records = [
        {
            "run": name,
            "revisions": depth,
            "items": items,
            "accepted": sum(counts.accepted[one] for one in range(depth + 1)),
            "simulated": counts.simulated,
        }
        for name, counts in runs
        if (items := _total(counts)["items"])
        for depth in range(deepest + 1)
    ]
    by_run = {name: [one for one in records if one["run"] == name] for name, _ in runs}
    return Table(
        name="depths",
        title="Accepted by revisions: percent of all items",
        columns=("Run", *(f"Within {depth}" if depth else "At once" for depth in range(deepest + 1))),
        rows=tuple(
            (name, *(percent(Fraction(one["accepted"], one["items"])) for one in own))
            for name, own in by_run.items()
            if own
        ),
        notes=(SIMULATED_NOTE,) if any(counts.simulated for _, counts in runs) else (),
        records=tuple(records),
    )


def _total(counts: GenerationCounts) -> dict[str, Any]:
    places = {key[:2] for key in counts.outcomes}
    records = [_outcome_record(counts, *place) for place in places]
    total: dict[str, Any] = {name: sum(one[name] for one in records) for name in ("items", *_FATES, "revisions")}
    return total | {"usd": spent(one["usd"] for one in records)}


def _notes(counts: GenerationCounts) -> tuple[str, ...]:
    notes = [SIMULATED_NOTE] if counts.simulated else []
    for title, found in (("Failed", counts.failures), ("Replies asked for again", counts.asked_again)):
        if found:
            notes.append(f"{title}: " + ", ".join(f"{kind} {count}" for kind, count in sorted(found.items())) + ".")
    return tuple(notes)


_FATES = ("accepted", "unresolved", "failed")


def _outcome_table(counts: GenerationCounts) -> Table:
    records = [_outcome_record(counts, *place) for place in sorted({key[:2] for key in counts.outcomes})]
    rows = [(f"{one['variant']} {one['category']} {one['typicality']}, {one['dependence']}", one) for one in records]
    total = _total(counts)
    return Table(
        name="generation",
        title="Generated items",
        columns=("Category", "Items", "Accepted", "Unresolved", "Failed", "Revisions per item", "Cost"),
        heads=("Category", "Items", "Accepted", "Un-\nresolved", "Failed", "Revisions\nper item", "Cost"),
        rows=tuple((name, *_outcome_cells(one)) for name, one in [*rows, ("all", total)]),
        notes=_notes(counts),
        records=tuple(records),
    )


def _outcome_record(counts: GenerationCounts, variant: Variant, category: Category) -> dict[str, Any]:
    fates = {name: counts.outcomes[variant, category, name] for name in _FATES}
    usd = counts.usd[variant, category]
    return {
        "variant": variant.value,
        "category": int(category),
        "typicality": category.typicality.value,
        "dependence": category.dependence.value,
        "items": sum(fates.values()),
        **fates,
        "revisions": counts.revisions[variant, category],
        "usd": None if usd is None else round(usd, 6),
    }


def _outcome_cells(record: Mapping[str, Any]) -> tuple[str, ...]:
    revisions = f"{record['revisions'] / record['items']:.2f}" if record["items"] else "–"
    return (*(f"{record[name]:,}" for name in ("items", *_FATES)), revisions, dollars(record["usd"]))


def _issue_table(counts: GenerationCounts) -> Table:
    names = [*(issue.name for issue in ISSUES), "none"]
    depths = sorted(counts.reviews)
    rows = [(name, *(f"{counts.issues[depth, name]:,}" for depth in depths)) for name in names]
    return Table(
        name="issues",
        title="Issues by review",
        columns=("Issue", *("First draft" if depth == 0 else f"Revision {depth}" for depth in depths)),
        heads=("Issue", *("First\ndraft" if depth == 0 else f"Revi-\nsion {depth}" for depth in depths)),
        rows=(*rows, ("reviews", *(f"{counts.reviews[depth]:,}" for depth in depths))),
        records=tuple(
            {"issue": name, "review": depth, "count": counts.issues[depth, name]} for name in names for depth in depths
        ),
    )
