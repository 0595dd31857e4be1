"""Two evaluations side by side: what they differ by in each group of items, and which items changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vpref.domain import Response, Variant
from vpref.reports.accuracy import GROUP_NAMES, Evaluation, accuracy_text
from vpref.reports.comparison import COLUMNS, Pair, Side, cells, corrected, method_notes, record, side_notes
from vpref.reports.table import Table
from vpref.scoring import GROUPS, score
from vpref.statistics import Paired


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
        notes=(_in_words(variant, a, b, whole), *method_notes(wholes), *side_notes([whole.a, whole.b])),
        records=tuple({"group": key, **record(pair)} for key, _, pair in names),
    )


def _in_words(variant: Variant, a: Evaluation, b: Evaluation, pair: Pair) -> str:
    """What a reader takes along: each one's accuracy on the items that both answered, and whether they differ."""
    named = f"A: {a.shown}. B: {b.shown}."
    if not isinstance(pair.found, Paired):
        return named
    shared = pair.a.right.keys() & pair.b.right.keys()
    told_a, told_b = (accuracy_text(one for one in each.of(variant) if one.item in shared) for each in (a, b))
    verdict = "which is within noise" if pair.verdict == "within noise" else f"so {pair.verdict[0]} is better"
    return f"{named} Of {_counted(len(shared))} that both answered A has {told_a} right and B {told_b}, {verdict}."


def _counted(items: int) -> str:
    return f"{items:,} item" if items == 1 else f"{items:,} items"


def _cells(group: str, pair: Pair) -> Iterator[str]:
    """A verdict is on all items alone: one on each group would need a correction of its own."""
    told = list(cells(pair))
    yield from told if group == "overall" else (*told[:-2], "", "")


def changed_table(a: Evaluation, b: Evaluation, questions: Mapping[str, str]) -> Table:
    """Each item that is right in one and not in the other, or was answered by one alone. `questions` by item id."""
    known = {response.item: response for response in a.responses}
    both = [(known[one.item], one) for one in b.responses if one.item in known]
    changed = [_changed(one, other, questions) for one, other in both if score(one) != score(other)]
    records = sorted(changed, key=lambda one: (one["change"], one["variant"], one["category"], one["item"]))
    return Table(
        name="changed",
        title="Items that changed",
        columns=("Item", "Question", "Of", "Right", "A", "B", "Change"),
        texts=frozenset({"Question", "Of", "Right", "A", "B", "Change"}),
        rows=tuple(_row(one) for one in records),
        notes=tuple(_notes(a, b, both, len(changed))),
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
        "expected_b": other.expected,
        "a": one.letter or one.verdict,
        "b": other.letter or other.verdict,
        "change": f"{_word(one)} → {_word(other)}",
    }


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    of = f"{one['variant']} {one['category']}"
    right = one["expected"] if one["expected"] == one["expected_b"] else f"{one['expected']} → {one['expected_b']}"
    return (one["item"], one["question"], of, right, one["a"], one["b"], one["change"])


def _word(response: Response) -> str:
    right = score(response)
    return "failed" if right is None else "right" if right else "wrong"


def _notes(a: Evaluation, b: Evaluation, both: list[tuple[Response, Response]], changed: int) -> Iterator[str]:
    yield f"In both runs: {_counted(len(both))}, of which {f'{changed:,}' if changed else 'none'} changed."
    for name, one in (("A", a), ("B", b)):
        alone = len(one.responses) - len(both)
        if alone:
            yield f"In {name} alone, and so not here: {_counted(alone)}."
    other_truth = sum(one.expected != other.expected for one, other in both)
    if other_truth:
        yield f"Another letter is right in B than in A for {_counted(other_truth)}: the ground truth is not the same."
    if a.ablation != b.ablation:
        yield f"Asked in different ways. A: {a.ablation or 'plainly'}. B: {b.ablation or 'plainly'}."
