"""Which votes count: one by a person on an item, one image a person, and none on what was not planned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from vpref.domain import Plan, Vote


@dataclass
class Settled:
    """Votes with the status that each ends with, and those that are about nothing in the plan, by the id they name:
    an item that changed since has another id."""

    votes: list[Vote] = field(default_factory=list)
    unplanned: Counter[str] = field(default_factory=Counter)
    twice: int = 0
    """Lines that were there before, word for word: a file given twice."""


def settle(plan: Plan, votes: Iterable[Vote]) -> Settled:
    """Hold votes against the plan. What a person submitted first counts; of one submission the line that came last
    stands for the earlier ones on the same item, as the person went back and changed it. A vote on an item, or on
    another item of an image, that the person has seen in an earlier submission is `repeated`."""
    settled = Settled()
    known: dict[tuple[str, str, str], Vote] = {}
    for vote in votes:
        if vote.item not in plan.form_of:
            settled.unplanned[vote.item] += 1
            continue
        key = (vote.annotator, vote.submission, vote.item)
        settled.twice += known.get(key) == vote
        known[key] = vote
    met: dict[tuple[str, str], str] = {}
    for vote in sorted(known.values(), key=_when):
        seen = _seen(plan, vote.item)
        if vote.status == "valid" and met.setdefault((vote.annotator, seen), vote.submission) != vote.submission:
            vote = vote.model_copy(update={"status": "repeated"})
        settled.votes.append(vote)
    return settled


def _when(vote: Vote) -> tuple[str, str, str, str, str]:
    """Earlier submissions first, those of an unknown time last; the order of the lines does not matter."""
    return (vote.submitted or "9999", vote.submission, vote.annotator, vote.form, vote.item)


def _seen(plan: Plan, item: str) -> str:
    """What a person has met who answered this: an image, or an attention check."""
    planned = plan.by_id.get(item)
    return item if planned is None else planned.image
