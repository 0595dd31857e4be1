"""The pages of annotators: enter, agree, answer one question a page, look it all over, hand it in."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from flask import Blueprint, Response, abort, make_response, redirect, render_template, request, session, url_for
from flask_wtf.csrf import generate_csrf
from werkzeug.wrappers import Response as AnyResponse

from vpref.domain import OTHER_TEXT, annotator_key
from vpref.errors import ConfigError
from vpref.survey.answers import DIFFICULTIES, LONGEST, Sent, read_answer
from vpref.survey.app import log, parts
from vpref.survey.questions import choice_order
from vpref.survey.store import Given, Person

pages = Blueprint("people", __name__)

P = ParamSpec("P")
Page = AnyResponse | str | tuple[str, int]


def known(page: Callable[Concatenate[Person, P], Page]) -> Callable[P, Page]:
    """A page for people who came in by their link or id."""

    @wraps(page)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Page:
        person = _came_in()
        return to("people.welcome") if person is None else page(person, *args, **kwargs)

    return wrapped


def answering(page: Callable[Concatenate[Person, tuple[str, ...], P], Page]) -> Callable[P, Page]:
    """A page for people who are at their form; others are led to where they are. Given the form's questions."""

    @wraps(page)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Page:
        person = _came_in()
        if person is None or person.form is None or person.finished or person.withdrew:
            return to("people.welcome") if person is None else onward(person)
        return page(person, parts().questionnaire.ids(person.form), *args, **kwargs)

    return wrapped


def _came_in() -> Person | None:
    return parts().store.person(session.get("annotator", ""))


def to(endpoint: str, **values: Any) -> AnyResponse:
    """Seen by a GET, so that going back or refreshing sends nothing twice."""
    return redirect(url_for(endpoint, **values), 303)


def onward(person: Person) -> AnyResponse:
    """Where a person has got to."""
    if person.withdrew:
        return to("people.withdraw")
    if person.finished:
        return to("people.done")
    if person.form is None:
        return to("people.consent")
    answered = parts().store.answers(person.annotator)
    if not answered:
        return to("people.instructions")
    return _next(parts().questionnaire.ids(person.form), answered)


def _next(questions: tuple[str, ...], answered: dict[str, Given]) -> AnyResponse:
    for number, question in enumerate(questions, 1):
        if question not in answered:
            return to("people.question", number=number)
    return to("people.review")


# --- coming in -----------------------------------------------------------------------------------------------


@pages.get("/")
def welcome() -> Page:
    """Prolific's link, or any with an id, leads on at once; the address then says no more who it is."""
    participant = request.args.get("PROLIFIC_PID", "").strip()
    if participant and not participant.startswith("{{"):
        return _enter(participant, request.args.get("SESSION_ID", "").strip())
    person = _came_in()
    return onward(person) if person else render_template("welcome.html", problem=None)


@pages.post("/")
def enter() -> Page:
    """An id typed in; where the survey allows it, none."""
    if "nobody" in request.form and parts().settings.anonymous:
        return _enter(secrets.token_hex(16), "")
    participant = request.form.get("participant", "").strip()
    if participant:
        return _enter(participant, "")
    return render_template("welcome.html", problem="Please give your participant ID."), 422


@pages.get("/resume/<token>")
def resume(token: str) -> Page:
    person = parts().store.resumed(token)
    return to("people.welcome") if person is None else _remember(person)


def _enter(participant: str, submission: str) -> AnyResponse:
    secret = parts().secret
    annotator = annotator_key(secret, participant)
    return _remember(parts().store.arrive(annotator, annotator_key(secret, submission or participant)))


def _remember(person: Person) -> AnyResponse:
    if session.get("annotator") != person.annotator:
        session.clear()  # what another person left open in this browser is refused from now on
    session["annotator"], session.permanent = person.annotator, True
    generate_csrf()
    return onward(person)


@pages.route("/consent", methods=["GET", "POST"])
@known
def consent(person: Person) -> Page:
    """Only who agrees holds a place."""
    if person.form is not None or person.withdrew:
        return onward(person)
    if request.method == "POST":
        return onward(placed) if (placed := parts().store.claim(person.annotator)).form else to("people.full")
    if not parts().store.has_room():
        return to("people.full")
    most = max(len(form.questions) for form in parts().questionnaire.forms)
    return render_template("consent.html", introduction=parts().introduction, most=most)


@pages.get("/full")
@known
def full(person: Person) -> Page:
    return render_template("full.html") if person.form is None else onward(person)


@pages.get("/instructions")
@answering
def instructions(person: Person, questions: tuple[str, ...]) -> Page:
    parts().store.view(person.annotator, None)
    link = _public(url_for("people.resume", token=person.resume))
    return render_template("instructions.html", questions=len(questions), link=link, other=OTHER_TEXT)


def _public(path: str) -> str:
    """A link that works elsewhere: below the survey's public address, where it has one."""
    url = parts().settings.url
    return url.rstrip("/") + path.removeprefix(request.script_root) if url else request.host_url.rstrip("/") + path


# --- answering -----------------------------------------------------------------------------------------------


@pages.get("/question/<int:number>")
@answering
def question(person: Person, questions: tuple[str, ...], number: int) -> Page:
    """A question is open once all before it are answered."""
    answered = parts().store.answers(person.annotator)
    first_open = next((n for n, one in enumerate(questions, 1) if one not in answered), len(questions))
    if not 1 <= number <= max(first_open, 1):
        return _next(questions, answered)
    parts().store.view(person.annotator, questions[number - 1])
    return _question(person, questions, number, _filled_in(answered.get(questions[number - 1])))


@pages.post("/question/<int:number>")
@known
def answer(person: Person, number: int) -> Page:
    """Keep what was answered, under the id of the question that was shown. What comes from a page left open after
    handing in changes nothing, but is in the log."""
    if person.form is None:
        return onward(person)
    questions, shown = parts().questionnaire.ids(person.form), request.form.get("question", "")
    if shown not in questions:
        abort(409)
    number = questions.index(shown) + 1
    asked = parts().questionnaire[shown]
    sent = read_answer(request.form, is_check=asked.is_check)
    if not asked.is_check and not parts().store.is_pictured(person.annotator, shown):
        sent.problems["image"] = "The image has not been shown, so that this cannot be answered yet."
    if sent.problems:
        over = person.finished or person.withdrew
        return onward(person) if over else (_question(person, questions, number, sent), 422)
    order = choice_order(person.annotator, shown)
    if not parts().store.answer(person.annotator, shown, sent.answer, order):
        return to("people.welcome")  # which knows where they are by now
    return _next(questions, parts().store.answers(person.annotator))


@pages.post("/question/<int:number>/unseen")
@answering
def unseen(person: Person, questions: tuple[str, ...], number: int) -> Page:
    """The person, or their browser, says that the image is not to be seen."""
    if not 1 <= number <= len(questions):
        abort(404)
    by_script = "browser" in request.form
    detail = "the browser could not show it" if by_script else "the annotator cannot see it"
    log.warning("question %s: %s", questions[number - 1], detail)
    parts().store.not_pictured(person.annotator, questions[number - 1], detail)
    return ("", 204) if by_script else to("people.question", number=number, unseen=1)


@pages.get("/image/<shown>")
@answering
def image(person: Person, questions: tuple[str, ...], shown: str) -> Page:
    """A question's image. That it was sent is noted: no answer counts without."""
    asked = parts().questionnaire[shown] if shown in questions else None
    if asked is None or asked.image is None:
        abort(404)
    try:
        data, kind = parts().picture(asked.image)
    except ConfigError as error:
        log.error("question %s: %s", shown, error)
        parts().store.not_pictured(person.annotator, shown, "the server could not read it")
        abort(404)
    if not parts().store.is_pictured(person.annotator, shown):
        parts().store.pictured(person.annotator, shown)
    response: Response = make_response(data)
    response.mimetype = kind
    response.set_etag(asked.image)
    response.headers["Cache-Control"] = "private, no-cache"  # asked for each time, so that we know it was shown
    return response.make_conditional(request)


def _question(person: Person, questions: tuple[str, ...], number: int, sent: Sent) -> str:
    asked = parts().questionnaire[questions[number - 1]]
    choices = [(letter, asked.choices[letter]) for letter in choice_order(person.annotator, asked.id)]
    return render_template(
        "question.html",
        asked=asked,
        number=number,
        total=len(questions),
        choices=[*choices, ("other", OTHER_TEXT)],
        difficulties=list(enumerate(DIFFICULTIES, 1)),
        longest=LONGEST,
        sent=sent,
        answered=asked.id in parts().store.answers(person.annotator),
        unseen="unseen" in request.args,
    )


def _filled_in(given: Given | None) -> Sent:
    if given is None:
        return Sent()
    return Sent(given.answer.choice, str(given.answer.difficulty or ""), given.answer.justification)


# --- handing in ----------------------------------------------------------------------------------------------


@pages.get("/review")
@answering
def review(person: Person, questions: tuple[str, ...]) -> Page:
    parts().store.view(person.annotator, None)
    answered = parts().store.answers(person.annotator)
    if set(questions) - set(answered):
        return _next(questions, answered)
    rows = []
    for number, one in enumerate(questions, 1):
        asked, given = parts().questionnaire[one], answered[one].answer
        text = OTHER_TEXT if given.choice == "other" else asked.choices[given.choice]
        rows.append((number, asked, text, given))
    return render_template("review.html", rows=rows, difficulties=("", *DIFFICULTIES))


@pages.post("/finish")
@known
def finish(person: Person) -> Page:
    """The way out, once everything is kept. Handing in twice is the same as once."""
    if person.form is None:
        return onward(person)
    if not parts().store.finish(person.annotator, parts().questionnaire.ids(person.form)):
        return onward(person)
    target = parts().settings.completion_url
    return redirect(target, 303) if target else to("people.done")


@pages.get("/done")
@known
def done(person: Person) -> Page:
    return render_template("done.html") if person.finished else onward(person)


@pages.route("/withdraw", methods=["GET", "POST"])
@known
def withdraw(person: Person) -> Page:
    """Stopping for good, asked once more before."""
    if request.method == "POST" and person.withdrew is None:
        parts().store.withdraw(person.annotator)
        return to("people.withdraw")
    if person.finished and not person.withdrew:
        return onward(person)
    return render_template("withdraw.html", withdrew=person.withdrew is not None)
