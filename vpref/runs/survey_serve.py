"""`vpref survey serve`: a planned survey as web pages on this machine, answers kept in the survey's own folder."""

from __future__ import annotations

import os
import secrets
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vpref.errors import ConfigError, RunStopped
from vpref.images import Gallery
from vpref.runs.folder import RunFolder
from vpref.runs.surveys import SHORTEST_SECRET, VOTES, Survey, open_survey
from vpref.runs.terminal import say, shown
from vpref.settings import SurveyServeSettings
from vpref.voting import check_annotators

if TYPE_CHECKING:
    from vpref.survey.questions import Questionnaire
    from vpref.survey.store import Store

DATABASE = "answers.sqlite"
TOKEN = "VPREF_ADMIN_TOKEN"


def serve(settings: SurveyServeSettings, folder: RunFolder) -> None:
    """Run the verb until SIGINT or SIGTERM; then `votes.jsonl` in the survey's folder has all that was answered."""
    try:
        from vpref.survey.app import Parts, create_app, derived
        from vpref.survey.questions import Questionnaire
        from vpref.survey.server import serve as serve_pages
        from vpref.survey.store import Store
    except ModuleNotFoundError as error:
        raise ConfigError(f"The survey's pages need the package {error.name}: pip install 'vpref[survey]'.") from error
    survey = open_survey(settings.survey)
    token, made = _token()
    questionnaire = Questionnaire(survey.plan, survey.items)
    key = derived(survey.secret, "which key").hex()
    store = Store(survey.path / DATABASE, survey.plan, key=key, reopen_s=60 * settings.reopen_minutes)
    keep = partial(_keep, survey, questionnaire, store)
    app = create_app(
        Parts(
            questionnaire=questionnaire,
            store=store,
            settings=settings,
            secret=survey.secret,
            token=token,
            picture=partial(_picture, survey.gallery),
            check=partial(check_annotators, survey.plan),
            keep=lambda: _kept(survey, keep()),
            introduction=_paragraphs(settings.introduction),
        )
    )
    folder.note(survey={"path": str(survey.path.resolve()), "version": survey.plan.version})

    def ready(address: str) -> None:
        places = _open_places(questionnaire, store)
        say(_greeting(survey, settings.url, address, places, token if made else None))

    try:
        serve_pages(app, settings.host, settings.port, settings.url, ready)
    except ConfigError:
        raise  # nothing was served: what an earlier run kept stays as it is
    else:
        say(_kept(survey, keep()))
    finally:
        store.close()


def _token() -> tuple[str, bool]:
    """The admin page's token, and whether it was made just now."""
    given = os.environ.get(TOKEN, "").strip()
    if given and len(given) < SHORTEST_SECRET:
        raise ConfigError(f"{TOKEN} is shorter than {SHORTEST_SECRET} characters; give a longer one, or none.")
    return (given, False) if given else (secrets.token_hex(16), True)


def _greeting(survey: Survey, url: str | None, listening: str, places: int, token: str | None) -> str:
    """What is printed once the pages are there. A token of the environment is not printed."""
    address = (url or listening).rstrip("/")
    behind = f"listens at:     {listening}\n" if url else ""
    prolific = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    total = len(survey.plan.forms) * survey.plan.places
    return (
        f"{survey.plan.title}: {places} of {total} places open, until Ctrl-C\n"
        f"{behind}for annotators: {address}/\n"
        f"on Prolific:    {address}/?{prolific}\n"
        f"admin page:     {address}/admin/\n"
        f"its token:      {token or f'as in {TOKEN}'}"
    )


def _open_places(questionnaire: Questionnaire, store: Store) -> int:
    from vpref.survey.votes import progress

    return sum(form.open for form in progress(questionnaire, store))


def _keep(survey: Survey, questionnaire: Questionnaire, store: Store) -> int:
    """Write `votes.jsonl` whole or not at all; returns how many votes it has."""
    from vpref.survey.votes import votes

    path = survey.path / VOTES
    lines = [vote.model_dump_json() + "\n" for vote in votes(questionnaire, store)]
    partial_path = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        partial_path.write_text("".join(lines), encoding="utf-8")
        partial_path.replace(path)
    except OSError as error:
        raise RunStopped(f"{path} cannot be written ({error.strerror}); the answers are in {DATABASE}.") from error
    return len(lines)


def _kept(survey: Survey, count: int) -> str:
    return f"votes: {count:,} in {shown(survey.path / VOTES)}"


def _picture(gallery: Gallery, digest: str) -> tuple[bytes, str]:
    kinds = {".jpg": "image/jpeg", ".png": "image/png"}
    return gallery.read(digest), kinds[gallery.path(digest).suffix]


def _paragraphs(path: str | None) -> tuple[str, ...]:
    if path is None:
        return ()
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The introduction {path} cannot be read ({error}); give a text file in UTF-8.") from error
    return tuple(part.strip() for part in text.split("\n\n") if part.strip())
