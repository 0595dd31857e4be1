"""Times as forms and spreadsheets write them. Libraries take GMT+5:30 for five and a half hours west of Greenwich,
and drop the names of zones; this refuses what it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Literal

DateOrder = Literal["day_first", "month_first"]

_ZONES = {"Z": 0, "UTC": 0, "GMT": 0, "WET": 0, "EDT": -4, "EST": -5, "CDT": -5, "MDT": -6, "MST": -7, "PDT": -7}
_ZONES |= {"PST": -8, "AKDT": -8, "AKST": -9, "HST": -10, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3}
"""Hours from UTC of the names that mean but one zone; CST and IST do not, and are taken where timezone= has them."""

_TIME = re.compile(
    r"(?P<first>\d{1,4})(?P<sep>[/.-])(?P<second>\d{1,2})(?P=sep)(?P<third>\d{1,4})"
    r"(?:T|,?\s+)(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<s>\d{2})(?:[.,]\d+)?)?"
    r"\s*(?P<half>[AaPp]\.?\s?[Mm]\.?)?\s*(?P<zone>Z|[A-Z]{2,4}|(?:GMT|UTC)?[+-]\d{1,2}(?::?\d{2})?)?"
)


def parse_time(text: str, zone: tzinfo | None, order: DateOrder | None) -> datetime | str:
    """The time in UTC, or in words why it cannot be told. `zone` is taken where the text names none, `order` where
    a date like 3/7/2026 does not tell days from months."""
    found = _TIME.fullmatch(text.strip().replace("\u202f", " ").replace("\u00a0", " "))
    if found is None:
        return f"{text!r} is no time of a form known here"
    there = (found["zone"] and _zone(found["zone"])) or zone
    if there is None:
        return f"{text!r} names no zone that is known; give timezone=, like timezone=Europe/Berlin"
    date = _date(found, order)
    if isinstance(date, str):
        return f"{text!r} {date}"
    hour = int(found["hour"])
    if found["half"]:
        if not 1 <= hour <= 12:
            return f"{text!r} is no time"
        hour = hour % 12 + (12 if found["half"][0] in "Pp" else 0)
    try:
        local = datetime(*date, hour, int(found["minute"]), int(found["s"] or 0), tzinfo=there)
    except ValueError:
        return f"{text!r} is no time"
    if found["zone"] and not _zone(found["zone"]) and local.tzname() != found["zone"]:
        return f"{text!r} names a zone that is not known, and not that of timezone="
    return local.astimezone(UTC)


def date_order(texts: Iterable[str]) -> DateOrder | None:
    """Whether days or months come first in a column of times: the one that some date cannot be read in the other
    order; None where all can be read both ways, or neither."""
    seen: set[DateOrder] = set()
    for text in texts:
        found = _TIME.fullmatch(text.strip())
        if found and len(found["first"]) < 3:
            seen |= {"day_first"} if int(found["first"]) > 12 else set()
            seen |= {"month_first"} if int(found["second"]) > 12 else set()
    return seen.pop() if len(seen) == 1 else None


def _date(found: re.Match[str], order: DateOrder | None) -> tuple[int, int, int] | str:
    first, second, third = int(found["first"]), int(found["second"]), int(found["third"])
    if len(found["first"]) == 4:
        return first, second, third
    if len(found["third"]) != 4:
        return "is no date with a year of four digits"
    if found["sep"] == ".":
        return third, second, first  # dots are of languages that put the day first
    if order is None:
        return "could be day or month first; give dates=day_first or dates=month_first"
    return (third, second, first) if order == "day_first" else (third, first, second)


def _zone(text: str) -> tzinfo | None:
    offset = re.fullmatch(r"(?:GMT|UTC)?([+-])(\d{1,2}):?(\d{2})?", text)
    if offset:
        minutes = 60 * int(offset[2]) + int(offset[3] or 0)
        return timezone(timedelta(minutes=minutes if offset[1] == "+" else -minutes)) if minutes < 1440 else None
    return timezone(timedelta(hours=_ZONES[text])) if text in _ZONES else None
