"""What an annotator's answers look like beside the others'. Flags point at what to look into, and exclude nobody."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from statistics import median

from vpref.domain import OTHER, AnnotatorChecks, Flag, Plan, Vote
from vpref.voting.majority import majority

LEAST_AGREEMENT = 0.5
"""Flagged below: careful annotators agree with nine majorities of ten, guessing ones with three."""

MOST_AT_ONE_PLACE = 10 / 12
"""Flagged from here: right choices lie at all four places."""

LEAST_VOTES = 6
"""Shares of fewer votes say little, and flag nobody."""

FAST = 3.0
"""Flagged below the middle time by this many standard deviations of log times, robustly estimated; never unless
it is under half of the middle time."""


def check_annotators(plan: Plan, votes: Iterable[Vote]) -> list[AnnotatorChecks]:
    """One record for each annotator and form, from valid votes, attention checks included."""
    counting = [vote for vote in votes if vote.status == "valid"]
    by_item: defaultdict[str, list[Vote]] = defaultdict(list)
    by_person: defaultdict[tuple[str, str], list[Vote]] = defaultdict(list)
    for vote in counting:
        by_item[vote.item].append(vote)
        by_person[vote.form, vote.annotator].append(vote)
    found = [_checks(plan, ones, by_item) for _, ones in sorted(by_person.items())]
    limit = _limit(found)
    return [_flagged(one, limit) for one in found]


def _checks(plan: Plan, votes: Sequence[Vote], by_item: Mapping[str, Sequence[Vote]]) -> AnnotatorChecks:
    asked = [vote for vote in votes if vote.item in plan.by_id]
    checks = [vote for vote in votes if vote.item in plan.checks]
    agreed = compared = 0
    for vote in asked:
        letter, _ = majority(other.choice for other in by_item[vote.item] if other.annotator != vote.annotator)
        compared += letter is not None
        agreed += letter == vote.choice
    places = Counter(vote.order.index(vote.choice) for vote in asked if vote.choice != OTHER)
    return AnnotatorChecks(
        annotator=votes[0].annotator,
        form=votes[0].form,
        votes=len(asked),
        agreed=agreed,
        compared=compared,
        others=sum(vote.choice == OTHER for vote in asked),
        same_place=max(places.values(), default=0) / max(len(asked), 1),
        seconds=_seconds(votes),
        failed=sum(vote.choice != plan.checks[vote.item].expected for vote in checks),
        checks=len(checks),
    )


def _seconds(votes: Sequence[Vote]) -> float | None:
    """The time for all of the form: that on its questions, or else from its start to its end."""
    known = [vote.seconds for vote in votes if vote.seconds is not None]
    if len(known) == len(votes):
        return sum(known)
    started = [datetime.fromisoformat(vote.started) for vote in votes if vote.started]
    ended = [datetime.fromisoformat(vote.submitted) for vote in votes if vote.submitted]
    return (max(ended) - min(started)).total_seconds() if started and ended else None


def _limit(found: Iterable[AnnotatorChecks]) -> float | None:
    """The time for one vote below which an annotator is flagged, in seconds."""
    paces = [math.log(one.seconds / one.votes) for one in found if one.seconds and one.seconds > 0 and one.votes]
    if len(paces) < 4:
        return None
    middle = median(paces)
    deviation = 1.4826 * median(abs(pace - middle) for pace in paces)  # that of a normal distribution
    return math.exp(min(middle - FAST * deviation, middle - math.log(2)))


def _flagged(one: AnnotatorChecks, limit: float | None) -> AnnotatorChecks:
    flags: list[Flag] = []
    if one.compared >= LEAST_VOTES and one.agreed < LEAST_AGREEMENT * one.compared:
        flags.append("disagrees")
    if limit is not None and one.seconds is not None and one.votes and one.seconds / one.votes < limit:
        flags.append("fast")
    if one.votes >= LEAST_VOTES and one.same_place >= MOST_AT_ONE_PLACE:
        flags.append("straight_lines")
    if one.failed:
        flags.append("failed_checks")
    return one.model_copy(update={"flags": tuple(flags)})
