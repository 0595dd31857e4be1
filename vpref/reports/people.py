"""What people made of the items: ground truth kept and lost, difficulty (table 3), agreement, how firm it is.

Reads records alone; refuses to know where votes came from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, get_args

from vpref.domain import (
    AnnotatorChecks,
    Label,
    NoLabel,
    Plan,
    Variant,
    Vote,
    reported_dependence,
)
from vpref.reports.table import Table
from vpref.scoring import percent
from vpref.statistics import clustered, wilson
from vpref.voting import Alpha, Rating, alpha, firmness, label_items

SHAKY = 0.1  # four votes of five flip in 6 % of resamples, three in 32 %
_SIMULATED_ITEMS = "The items were made up by the simulator."
REHEARSED_NOTE = "Rehearsal: votes were made up by vpref and say nothing about people."
_REASONS: tuple[NoLabel, ...] = get_args(NoLabel)
_VARIANTS = (Variant.BOXES, Variant.PLAIN)  # in the paper's order


@dataclass(frozen=True)
class People:
    """A survey's plan, every vote on it with the status it ended with, the labels they come to, and how annotators
    answered. `least` is the number of votes that a label needs."""

    plan: Plan
    votes: Sequence[Vote]
    labels: Sequence[Label]
    annotators: Sequence[AnnotatorChecks]
    least: int

    @property
    def rehearsed(self) -> bool:
        return any(vote.source == "rehearsal" for vote in self.votes)

    @property
    def counting(self) -> list[Vote]:
        """The valid votes on items."""
        return [vote for vote in self.votes if vote.status == "valid" and vote.item in self.plan.by_id]

    @property
    def variants(self) -> list[Variant]:
        asked = {item.variant for item in self.plan.items}
        return [variant for variant in _VARIANTS if variant in asked]

    @property
    def flagged(self) -> set[tuple[str, str]]:
        """Form and key of each annotator with a flag."""
        return {(one.form, one.annotator) for one in self.annotators if one.flags}

    def of(self, variant: Variant) -> list[Label]:
        return [label for label in self.labels if label.item.variant is variant]


def people_tables(people: People) -> list[Table]:
    """Every table, in the order of reading."""
    tables = [truth_table(people), difficulty_table(people), agreement_table(people), firmness_table(people)]
    tables += [top_up_table(people)] if any(label.letter is None for label in people.labels) else []
    return [*tables, annotator_table(people)]


def truth_table(people: People) -> Table:
    """Items kept and why the others are not, and how often the responder agrees with the majority."""
    records = [_truth(variant, people.of(variant)) for variant in people.variants]
    return Table(
        name="ground_truth",
        title="Ground truth by majority",
        columns=(
            "Variant",
            "Items",
            "Kept",
            "Tie",
            "Other",
            "No majority",
            "Too few votes",
            "Responder agrees",
            "95 % interval",
            "of",
        ),
        heads=(
            "Variant",
            "Items",
            "Kept",
            "Tie",
            "Other",
            "No ma-\njority",
            "Too\nfew",
            "Responder\nagrees",
            "95 %\ninterval",
            "of",
        ),
        rows=tuple(
            (
                *(str(one[name]) for name in ("variant", "items", "kept", *_REASONS)),
                *(str(one["responder"][name]) for name in ("shown", "span", "compared")),
            )
            for one in records
        ),
        notes=("Kept: more than half of the valid votes on one letter.", *_notes(people)),
        records=tuple(records),
    )


def _truth(variant: Variant, labels: Sequence[Label]) -> dict[str, Any]:
    reasons = Counter(label.reason for label in labels)
    return {
        "variant": variant.value,
        "items": len(labels),
        "kept": reasons[None],
        **{reason: reasons[reason] for reason in _REASONS},
        "responder": _agreement(labels),
    }


def _agreement(labels: Iterable[Label]) -> dict[str, Any]:
    """The responder against the majority, on the items that have both."""
    both = [label for label in labels if label.letter is not None and label.answer is not None]
    agreed = sum(label.answer == label.letter for label in both)
    interval = clustered((label.item.image, label.answer == label.letter) for label in both) or wilson(
        agreed, len(both)
    )
    share = Fraction(agreed, len(both)) if both else None
    return {
        "agreed": agreed,
        "compared": len(both),
        "share": None if share is None else float(percent(share)),
        "low": interval and float(percent(Fraction(interval.low))),
        "high": interval and float(percent(Fraction(interval.high))),
        "shown": percent(share) + ("%" if both else ""),
        "span": "–" if interval is None else "–".join(percent(Fraction(end)) for end in interval),
    }


_GROUPS = {
    "typical": "Typical Pref.",
    "atypical": "Atypical Pref.",
    "low": "Low Dep.",
    "high": "High Dep.",
}


def difficulty_table(people: People) -> Table:
    """The paper's table 3: mean difficulty of the items kept, and beyond it of all items asked."""
    rows, records = [], []
    for variant in people.variants:
        kept = [label for label in people.of(variant) if label.letter is not None]
        for name, labels in ((variant.value, kept), (f"{variant.value}, all asked", people.of(variant))):
            means = {group: _mean(_group(labels, group)) for group in _GROUPS}
            rows.append((name, *(_two(mean) for mean, _ in means.values()), str(sum(one.ratings for one in labels))))
            records.append(
                {"variant": variant.value, "items": "kept" if labels is kept else "all"}
                | {group: {"mean": mean and float(mean), "ratings": n} for group, (mean, n) in means.items()}
            )
    return Table(
        name="table3_difficulty",
        title="Table 3: mean difficulty, 1 (very easy) to 5 (very difficult)",
        columns=("Variant", *_GROUPS.values(), "Ratings"),
        rows=tuple(rows),
        notes=("Items with boxes count as of high dependence.", *_notes(people)),
        records=tuple(records),
    )


def _group(labels: Iterable[Label], name: str) -> list[Label]:
    def belongs(label: Label) -> bool:
        category, variant = label.item.category, label.item.variant
        return name in (category.typicality, reported_dependence(category, variant))

    return [label for label in labels if belongs(label)]


def _mean(labels: Iterable[Label]) -> tuple[Fraction | None, int]:
    """The mean of all ratings of some items, and their number. Exact: an item's mean times its ratings is whole."""
    rated = [(label.difficulty, label.ratings) for label in labels if label.difficulty is not None]
    n = sum(ratings for _, ratings in rated)
    return (Fraction(sum(round(mean * ratings) for mean, ratings in rated), n) if n else None, n)


def _two(mean: Fraction | None) -> str:
    """Two decimals, halves up."""
    return percent(None if mean is None else mean / 100, 2)


def agreement_table(people: People) -> Table:
    """Krippendorff's alpha of choices and of difficulty, and how large the leading choice is."""
    rows, records = [], []
    for variant in people.variants:
        votes = [vote for vote in people.counting if people.plan.by_id[vote.item].variant is variant]
        choices = alpha((Rating(v.annotator, v.item, v.choice) for v in votes), "nominal")
        ratings = [Rating(v.annotator, v.item, v.difficulty) for v in votes if v.difficulty is not None]
        difficulty = alpha(ratings, "ordinal")
        top = [max(label.counts.values()) / label.votes for label in people.of(variant) if label.votes]
        whole = sum(share == 1 for share in top)
        who = len({vote.annotator for vote in votes})
        rows.append((variant.value, str(who), str(len(votes)), str(whole), _alpha(choices), _alpha(difficulty)))
        records.append(
            {"variant": variant.value, "annotators": who, "votes": len(votes), "unanimous_items": whole}
            | {"mean_top_share": sum(top) / len(top) if top else None}
            | {"choices": _alpha_record(choices), "difficulty": _alpha_record(difficulty)}
        )
    return Table(
        name="annotator_agreement",
        title="Agreement of annotators: Krippendorff's alpha (95 % interval)",
        columns=("Variant", "Annotators", "Votes", "Unanimous items", "Choices", "Difficulty"),
        heads=("Variant", "Anno-\ntators", "Votes", "Unani-\nmous", "Choices", "Difficulty"),
        rows=tuple(rows),
        notes=(
            "Choices as nominal, difficulty as ordinal; interval: jackknife over annotators and items.",
            *_notes(people),
        ),
        records=tuple(records),
    )


def _alpha(one: Alpha | None) -> str:
    if one is None:
        return "–"
    return f"{one.value:.2f}" if one.low is None else f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f})"


def _alpha_record(one: Alpha | None) -> dict[str, Any]:
    return {} if one is None else {"alpha": one.value, "low": one.low, "high": one.high, "items": one.items}


def firmness_table(people: People) -> Table:
    """How many labels would be others with other annotators, with all and without the flagged ones."""
    trusted = [vote for vote in people.votes if (vote.form, vote.annotator) not in people.flagged]
    records = _firmness(people, "all", people.votes)
    records += _firmness(people, "without flagged", trusted) if people.flagged else []
    shares = ("lost", "another_letter", "gained")
    return Table(
        name="label_firmness",
        title="How firm labels are: annotators of each form drawn anew",
        columns=("Variant", "Annotators", "Kept", "Changed", "Lost", "Another letter", "Gained", "Shaky"),
        heads=("Variant", "Annotators", "Kept", "Changed", "Lost", "Another\nletter", "Gained", "Shaky"),
        texts=frozenset({"Annotators"}),
        rows=tuple(
            (
                *(str(one[name]) for name in ("variant", "annotators", "kept", "changed")),
                *(f"{one[name]:.1f}" for name in shares),
                str(one["shaky"]),
            )
            for one in records
        ),
        notes=(
            "Changed: against the ground truth. Lost, another letter, gained: labels in a mean resample. Shaky: labels "
            "that flip in more than 10 % of resamples.",
            *_notes(people),
        ),
        records=tuple(records),
    )


def _firmness(people: People, who: str, votes: Sequence[Vote]) -> list[dict[str, Any]]:
    """One record a variant: the labels that these votes come to, and what resampling does to them."""
    before = {label.item.id: label.letter for label in people.labels}
    labels = label_items(people.plan, votes, {}, people.least)
    firm = firmness(labels, votes, people.least)
    flips = firm.flips
    records = []
    for variant in people.variants:
        now = {label.item.id: label.letter for label in labels if label.item.variant is variant}
        kept = [id for id, letter in now.items() if letter is not None]
        records.append(
            {
                "variant": variant.value,
                "annotators": who,
                "kept": len(kept),
                "changed": sum(letter != before[id] for id, letter in now.items()),
                "lost": sum(firm.lost[id] for id in kept),
                "another_letter": sum(firm.another[id] for id in kept),
                "gained": sum(share for id, share in firm.gained.items() if id in now),
                "shaky": sum(flips[id] > SHAKY for id in kept),
                "flips": {id: flips[id] for id in kept if flips[id] > SHAKY},
            }
        )
    return records


def top_up_table(people: People) -> Table:
    """The items without ground truth, those first that fewest votes more could decide."""
    undecided = sorted(
        (label for label in people.labels if label.letter is None), key=lambda label: (label.more, label.item.id)
    )
    return Table(
        name="top_up",
        title="Items without ground truth, and how many votes more could decide them",
        columns=("Item", "Category", "Votes", "Reason", "More votes"),
        texts=frozenset({"Category", "Votes", "Reason"}),
        rows=tuple(
            (
                label.item.id,
                f"{label.item.variant} {label.item.category:d}",
                " ".join(f"{choice} {count}" for choice, count in label.counts.items()) or "none",
                str(label.reason).replace("_", " "),
                str(label.more),
            )
            for label in undecided
        ),
        notes=_notes(people),
        records=tuple(label.model_dump(mode="json") for label in undecided),
    )


def annotator_table(people: People) -> Table:
    """Annotators with a flag; all of them are in the records."""
    flagged = [one for one in people.annotators if one.flags]
    return Table(
        name="annotators",
        title=f"Flagged annotators: {len(flagged)} of {len(people.annotators)}",
        columns=("Annotator", "Form", "Votes", "Agree with others", "Same place", "Time", "Checks failed", "Flags"),
        heads=("Annotator", "Form", "Votes", "Agree", "Same\nplace", "Time", "Checks\nfailed", "Flags"),
        texts=frozenset({"Form", "Flags"}),
        rows=tuple(_annotator(one) for one in flagged),
        notes=("Flagged annotators are to be looked at; their votes count like all others.", *_notes(people)),
        records=tuple(one.model_dump(mode="json") for one in people.annotators),
    )


def _annotator(one: AnnotatorChecks) -> tuple[str, ...]:
    minutes = "–" if one.seconds is None else f"{one.seconds / 60:.1f} min"
    flags = ", ".join(flag.replace("_", " ") for flag in one.flags)
    same = percent(Fraction(one.same_place).limit_denominator(1000), 0)
    failed = f"{one.failed}/{one.checks}" if one.checks else "–"
    return (one.annotator, one.form, str(one.votes), f"{one.agreed}/{one.compared}", f"{same}%", minutes, failed, flags)


def _notes(people: People) -> tuple[str, ...]:
    return (*[REHEARSED_NOTE] * people.rehearsed, *[_SIMULATED_ITEMS] * people.plan.simulated)
