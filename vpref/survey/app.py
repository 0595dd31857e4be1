"""The web application: its settings, headers and error pages, and what its pages share."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias
from urllib.parse import urlsplit

from flask import Flask, Response, current_app, render_template
from flask_wtf.csrf import CSRFError, CSRFProtect
from werkzeug.exceptions import HTTPException

from vpref.domain import AnnotatorChecks, Vote
from vpref.settings import SurveyServeSettings
from vpref.survey.questions import Questionnaire
from vpref.survey.store import Store

Pictures: TypeAlias = Callable[[str], tuple[bytes, str]]
"""An image's bytes and media type by its digest. Raises ConfigError where it cannot be read."""

LARGEST_BODY = 64 * 1024
log = logging.getLogger("vpref")


@dataclass(frozen=True)
class Parts:
    """What the pages work on. `token` opens the admin page, `check` looks at annotators' answers, `keep` writes all
    votes into the survey's folder and says where; `introduction` are the paragraphs of the consent page."""

    questionnaire: Questionnaire
    store: Store
    settings: SurveyServeSettings
    secret: bytes
    token: str
    picture: Pictures
    check: Callable[[Iterable[Vote]], list[AnnotatorChecks]]
    keep: Callable[[], str]
    introduction: tuple[str, ...] = ()


def create_app(parts: Parts) -> Flask:
    """The application, ready to be served."""
    from vpref.survey import admin, people

    app = Flask("vpref.survey", static_url_path="/static")
    secure = urlsplit(parts.settings.url or "").scheme == "https"
    app.config.update(
        SECRET_KEY=derived(parts.secret, "cookies"),
        SESSION_COOKIE_NAME=f"survey_{parts.questionnaire.plan.version}",  # cookies do not tell ports apart
        SESSION_COOKIE_PATH=urlsplit(parts.settings.url or "").path.rstrip("/") or "/",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=secure,
        SESSION_REFRESH_EACH_REQUEST=False,
        PERMANENT_SESSION_LIFETIME=timedelta(days=60),
        MAX_CONTENT_LENGTH=LARGEST_BODY,
        WTF_CSRF_TIME_LIMIT=None,  # a long pause must not cost an answer
        WTF_CSRF_SSL_STRICT=False,  # TLS ends at the proxy, so there is no telling here
    )
    app.extensions["survey"] = parts
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.globals.update(plan=parts.questionnaire.plan, settings=parts.settings)
    CSRFProtect(app)
    app.register_blueprint(people.pages)
    app.register_blueprint(admin.pages, url_prefix="/admin")
    app.after_request(_headers(parts.settings, secure=secure))
    app.register_error_handler(CSRFError, _stale)
    app.register_error_handler(HTTPException, _refused)
    app.register_error_handler(Exception, _failed)
    return app


def parts() -> Parts:
    """What the running application works on."""
    found: Parts = current_app.extensions["survey"]
    return found


def derived(secret: bytes, purpose: str) -> bytes:
    """A key for one purpose out of the survey's own."""
    return hmac.new(secret, purpose.encode(), hashlib.sha256).digest()


def _headers(settings: SurveyServeSettings, *, secure: bool) -> Callable[[Response], Response]:
    """Nothing is loaded from elsewhere, framed elsewhere, or kept by browsers and proxies."""
    target = urlsplit(settings.completion_url or "")
    elsewhere = f" {target.scheme}://{target.netloc}" if target.netloc else ""  # where handing in leads to
    policy = (
        "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        f"form-action 'self'{elsewhere}; base-uri 'none'; frame-ancestors 'none'"
    )

    def add(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = policy
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "same-origin"
        response.headers["X-Robots-Tag"] = "noindex"
        if "ETag" not in response.headers:  # images and styles are checked anew instead, which costs less
            response.headers["Cache-Control"] = "no-store"
        if secure:
            response.headers["Strict-Transport-Security"] = "max-age=31536000"
        return response

    return add


def _stale(error: CSRFError) -> tuple[str, int]:
    return render_template("stale.html"), 400


def _refused(error: HTTPException) -> tuple[str, int]:
    code = error.code or 500
    return render_template("error.html", heading="This page is not here" if code == 404 else "That did not work"), code


def _failed(error: Exception) -> tuple[str, int]:
    log.error("a page failed", exc_info=error)
    return render_template("error.html", heading="Something went wrong on our side"), 500
