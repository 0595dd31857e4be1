"""The ground truth of an item: the letter that more than half of its votes chose, or why there is none."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from vpref.domain import LETTERS, OTHER, Label, Letter, NoLabel, Plan, Vote, VoteChoice


def majority(choices: Iterable[VoteChoice], least: int = 1) -> tuple[Letter | None, NoLabel | None]:
    """The letter that more than half of all the choices are, or the reason why none is. "Other" votes are votes, but
    "other" is never the answer. Fewer than `least` choices give none (paper, section 3.3)."""
    counts = Counter(choices)
    if counts.total() < max(least, 1):
        return None, "too_few"
    letter = max(LETTERS, key=lambda one: counts[one])
    if 2 * counts[letter] > counts.total():
        return letter, None
    top = max(counts.values())
    leading = [choice for choice in counts if counts[choice] == top]
    if len(leading) > 1:
        return None, "tie"
    return None, "other" if leading == [OTHER] else "no_majority"


def votes_wanting(choices: Iterable[VoteChoice], least: int = 1) -> int:
    """How many votes more could give a majority at the least: all of them for the leading letter. 0 with one."""
    counts = Counter(choices)
    total, top = counts.total(), max(counts[letter] for letter in LETTERS)
    return max(total - 2 * top + 1, least - total, 0)


def label_items(plan: Plan, votes: Iterable[Vote], answers: Mapping[str, Letter | None], least: int = 1) -> list[Label]:
    """One label for each planned item, in the plan's order, from its valid votes. `answers` are the responder's
    letters by item id."""
    by_item: defaultdict[str, list[Vote]] = defaultdict(list)
    for vote in votes:
        if vote.status == "valid":
            by_item[vote.item].append(vote)
    return [_label(plan, item, by_item[item], answers.get(item), least) for item in plan.by_id]


def _label(plan: Plan, item: str, votes: Sequence[Vote], answer: Letter | None, least: int) -> Label:
    choices = [vote.choice for vote in votes]
    counts = Counter(choices)
    letter, reason = majority(choices, least)
    ratings = [vote.difficulty for vote in votes if vote.difficulty is not None]
    return Label(
        item=plan.by_id[item],
        letter=letter,
        reason=reason,
        counts={choice: counts[choice] for choice in (*LETTERS, OTHER) if counts[choice]},
        more=votes_wanting(choices, least),
        difficulty=sum(ratings) / len(ratings) if ratings else None,
        ratings=len(ratings),
        answer=answer,
    )
