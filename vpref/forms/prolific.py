"""Prolific: a study's description for its API, and its export of submissions. Sends nothing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from vpref.domain import Form, Plan, VoteStatus
from vpref.forms.grid import Grid, Problem
from vpref.forms.times import parse_time

_STATUSES: Mapping[str, VoteStatus] = {
    "approved": "valid",
    "awaiting review": "valid",
    "returned": "returned",
    "timed out": "returned",
    "rejected": "returned",
    "screened out": "returned",
    "active": "incomplete",
    "reserved": "incomplete",
}
_LATE = timedelta(minutes=15)


def study(plan: Plan, form: Form, url: str | None, code: str | None, minutes: int, reward: int) -> dict[str, Any]:
    """The body of `POST /api/v1/studies/` for one form, without what is not known yet; `reward` is in cents or
    pence."""
    codes = [{"code": code, "code_type": "COMPLETED", "actions": [{"action": "MANUALLY_REVIEW"}]}]
    later = {"external_study_url": url, "completion_codes": codes if code else None}
    return {
        "name": plan.title,
        "internal_name": f"{plan.title} {form.name} {plan.version}",
        "description": (
            f"You will see {len(form.items)} images. With each, somebody states a preference; choose which of four "
            "actions suits it best, say how difficult that was, and why, in one sentence each. No personal information "
            "is asked for."
        ),
        **{name: value for name, value in later.items() if value is not None},
        "prolific_id_option": "url_parameters" if url and "PROLIFIC_PID" in url else "question",
        "total_available_places": plan.places,
        "estimated_completion_time": minutes,
        "reward": reward,
        "device_compatibility": ["desktop", "tablet", "mobile"],
        "peripheral_requirements": [],
    }


@dataclass(frozen=True)
class Submission:
    """One row of an export. `status` is what it makes of answers."""

    person: str
    status: VoteStatus
    named: str
    started: datetime | None
    completed: datetime | None


@dataclass
class Submissions:
    """Everybody's submissions, and what could not be read of the exports."""

    by_person: defaultdict[str, list[Submission]]
    problems: list[Problem]

    def of(self, person: str, at: datetime | None) -> Submission | Literal["ambiguous"] | None:
        """The submission that an answer given at a time belongs to, None where the person has none. Of several it
        is the one in whose time the answer falls; where that does not tell and they differ, it is ambiguous."""
        known = self.by_person.get(person, [])
        during = [one for one in known if _during(one, at)]
        candidates = during or known
        if len({one.status for one in candidates}) > 1:
            return "ambiguous"
        return candidates[0] if candidates else None


def _during(one: Submission, at: datetime | None) -> bool:
    if at is None or one.started is None:
        return False
    return one.started - _LATE <= at <= (one.completed or one.started + timedelta(hours=3)) + _LATE


def person_id(text: str) -> str:
    """A participant's id as it is compared: no space around, and 24 hex digits in small letters."""
    bare = text.strip().strip("\u200b\ufeff")
    return bare.lower() if re.fullmatch(r"[0-9a-fA-F]{24}", bare) else bare


def read_export(grids: Iterable[Grid]) -> Submissions:
    """Prolific's exports of submissions. Columns are found by name, any others are left alone."""
    found = Submissions(defaultdict(list), [])
    for grid in grids:
        columns = [grid.column(name) for name in ("Participant id", "Status")]
        if None in columns:
            grid.refuse("is no export of Prolific's: it has no columns 'Participant id' and 'Status'")
        for row in grid.rows:
            _read(grid, row, found)
        found.problems += grid.problems
    return found


def _read(grid: Grid, row: Sequence[str], found: Submissions) -> None:
    number = grid.number(row)

    def cell(name: str) -> str:
        place = grid.column(name)
        return "" if place is None else row[place].strip()

    person, named = person_id(cell("Participant id")), cell("Status")
    if not person or person.isupper():  # DATA_EXPIRED, CONSENT_REVOKED
        grid.report(number, "Participant id", f"names nobody ({person or 'empty'})")
        return
    status = _STATUSES.get(re.sub(r"[\s_-]+", " ", named.lower()).strip())
    if status is None:
        grid.report(number, "Status", f"{named!r} is unknown: not counted")
    times = (parse_time(cell("Started at"), None, None), parse_time(cell("Completed at"), None, None))
    started, completed = (time if isinstance(time, datetime) else None for time in times)
    found.by_person[person].append(Submission(person, status or "incomplete", named, started, completed))
