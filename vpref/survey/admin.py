"""The page of whoever runs the survey: how the forms stand, what looks odd, and the votes so far."""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from flask import Blueprint, Response, redirect, render_template, request, session, url_for
from werkzeug.wrappers import Response as AnyResponse

from vpref.domain import AnnotatorChecks
from vpref.survey.app import derived, parts
from vpref.survey.votes import progress, votes

pages = Blueprint("admin", __name__)

P = ParamSpec("P")
Page = AnyResponse | str | tuple[str, int]


def _pass() -> str:
    """What a browser that gave the token carries; another token makes it worthless."""
    return derived(parts().secret, f"admin {parts().token}").hex()


def admitted(page: Callable[P, Page]) -> Callable[P, Page]:
    """A page behind the token."""

    @wraps(page)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Page:
        if not hmac.compare_digest(session.get("admin", "").encode(), _pass().encode()):
            return render_template("admin_login.html", problem=None), 401
        return page(*args, **kwargs)

    return wrapped


@pages.post("/login")
def login() -> Page:
    """The token comes in the body of a POST, so that no address and no proxy's log ever holds it."""
    if not hmac.compare_digest(request.form.get("token", "").strip().encode(), parts().token.encode()):
        return render_template("admin_login.html", problem="This is not the token."), 401
    session["admin"] = _pass()
    return redirect(url_for("admin.overview"), 303)


@pages.get("/")
@admitted
def overview() -> Page:
    questionnaire, store = parts().questionnaire, parts().store
    checked = parts().check(votes(questionnaire, store))
    unseen = Counter(question for _, question, _ in store.events("no image"))
    return render_template(
        "admin.html",
        forms=progress(questionnaire, store),
        people=[(one, _why(one)) for one in checked if one.flags],
        checked=len(checked),
        unseen=unseen.most_common(),
        refused=len({annotator for annotator, _, _ in store.events("full")}),
        kept=request.args.get("kept"),
    )


def _why(checks: AnnotatorChecks) -> str:
    """Each flag with the numbers behind it."""
    said = {
        "disagrees": f"agrees with {checks.agreed} of {checks.compared} majorities of the others",
        "fast": f"took {checks.seconds or 0:.0f} s for the form",
        "straight_lines": f"{checks.same_place:.0%} of choices at one place of the list",
        "failed_checks": f"failed {checks.failed} of {checks.checks} attention checks",
    }
    return "; ".join(said[flag] for flag in checks.flags)


@pages.get("/votes.jsonl")
@admitted
def export() -> Page:
    lines = "".join(f"{vote.model_dump_json()}\n" for vote in votes(parts().questionnaire, parts().store))
    headers = {"Content-Disposition": "attachment; filename=votes.jsonl"}
    return Response(lines, mimetype="application/jsonl", headers=headers)


@pages.post("/keep")
@admitted
def keep() -> Page:
    """Write the votes into the survey's folder, where `vpref survey aggregate` looks for them."""
    return redirect(url_for("admin.overview", kept=parts().keep()), 303)
