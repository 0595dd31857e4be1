"""Two evaluations side by side: what they differ by in each group of items, and which items changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vpref.domain import Response, Variant
from vpref.reports.accuracy import GROUP_NAMES, Evaluation
from vpref.reports.comparison import COLUMNS, Pair, Side, cells, corrected, method_notes, record, side_notes
from vpref.reports.table import Table
from vpref.scoring import GROUPS, score


def compared_tables(a: Evaluation, b: Evaluation) -> list[Table]:
    """For each variant that both have responses of: all items, then each group. Holm's correction is over the rows
    of all items alone; those of groups are there to look at."""
    variants = [one for one in (Variant.BOXES, Variant.PLAIN) if a.of(one) and b.of(one)]
    wholes = corrected([Pair.of(Side.of(a, a.of(one)), Side.of(b, b.of(one))) for one in variants])
    return [_compared(variant, a, b, whole, wholes) for variant, whole in zip(variants, wholes, strict=True)]


def _compared(variant: Variant, a: Evaluation, b: Evaluation, whole: Pair, wholes: list[Pair]) -> Table:
    groups = {"overall": whole}
    for name, belongs in GROUPS.items():
        kept = [list(filter(belongs, one.of(variant))) for one in (a, b)]
        if name != "overall" and all(kept):
            groups[name] = Pair.of(Side.of(a, kept[0]), Side.of(b, kept[1]))
    names = [(key, GROUP_NAMES[key], pair) for key, pair in groups.items()]
    return Table(
        name=f"compared_{variant}",
        title=f"A and B, {variant}: percent, differences in points",
        columns=("Items", *list(COLUMNS)[1:]),
        heads=("Items", *list(COLUMNS.values())[1:]),
        rows=tuple((name, *_cells(key, pair)) for key, name, pair in names),
        notes=(f"A: {a.shown}. B: {b.shown}.", *method_notes(wholes), *side_notes([whole.a, whole.b])),
        records=tuple({"group": key, **record(pair)} for key, _, pair in names),
    )


def _cells(group: str, pair: Pair) -> Iterator[str]:
    """A verdict is on all items alone: one on each group would need a correction of its own."""
    told = list(cells(pair))
    yield from told if group == "overall" else (*told[:-2], "", "")


def changed_table(a: Evaluation, b: Evaluation, questions: Mapping[str, str]) -> Table:
    """Each item that is right in one and not in the other, or was answered by one alone. `questions` by item id."""
    known = {response.item: response for response in a.responses}
    both = [(known[one.item], one) for one in b.responses if one.item in known]
    changed = [(one, other) for one, other in both if score(one) != score(other)]
    records = [_changed(one, other, questions) for one, other in changed]
    return Table(
        name="changed",
        title="Items that changed",
        columns=("Item", "Question", "Of", "Right", "A", "B", "Change"),
        texts=frozenset({"Question", "Of", "Right", "A", "B", "Change"}),
        rows=tuple(_row(one) for one in records),
        notes=tuple(_notes(a, b, both)),
        records=tuple(records),
    )


def _changed(one: Response, other: Response, questions: Mapping[str, str]) -> dict[str, Any]:
    return {
        "item": one.item,
        "question": questions.get(one.item, ""),
        "variant": one.slot.variant.value,
        "category": int(one.slot.category),
        "image": one.slot.image,
        "expected": one.expected,
        "a": one.letter or one.verdict,
        "b": other.letter or other.verdict,
        "change": f"{_word(one)} → {_word(other)}",
    }


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    of = f"{one['variant']} {one['category']}"
    return (one["item"], one["question"], of, one["expected"], one["a"], one["b"], one["change"])


def _word(response: Response) -> str:
    right = score(response)
    return "failed" if right is None else "right" if right else "wrong"


def _notes(a: Evaluation, b: Evaluation, both: list[tuple[Response, Response]]) -> Iterator[str]:
    yield f"{len(both):,} items are in both runs."
    for name, one in (("A", a), ("B", b)):
        alone = len(one.responses) - len(both)
        if alone:
            yield f"{alone:,} items are in {name} alone, and in no comparison."
    other_truth = sum(one.expected != other.expected for one, other in both)
    if other_truth:
        yield f"{other_truth:,} items have another right letter in B than in A: the runs used different ground truth."
    if a.ablation != b.ablation:
        yield f"Asked in different ways. A: {a.ablation or 'plainly'}. B: {b.ablation or 'plainly'}."
