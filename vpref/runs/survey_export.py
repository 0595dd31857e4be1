"""`vpref survey export`: a planned survey as files for Google Forms and Prolific. Sends nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from vpref.forms import google, prolific
from vpref.forms.questions import Sheet, sheets
from vpref.images import Gallery
from vpref.runs.folder import RunFolder, write_json
from vpref.runs.surveys import Survey, open_survey
from vpref.runs.terminal import say, shown
from vpref.settings import SurveyExportSettings

SCRIPT = "make_forms.gs"


def export(settings: SurveyExportSettings, folder: RunFolder) -> None:
    """Run the verb: one script that makes all forms and the images under the names that it looks for, a study for
    each form, and with `image_url` its requests of the Forms API."""
    survey = open_survey(settings.survey)
    made = list(sheets(survey.plan, survey.items))
    images = Gallery(folder.path / "images")
    for item in survey.plan.items:
        survey.gallery.link_into(images, item.shown)

    def name(digest: str) -> str:
        return images.path(digest).name

    (folder.path / SCRIPT).write_text(google.apps_script(made, name), encoding="utf-8")
    _write_studies(settings, survey, folder.path / "prolific")
    if settings.image_url is not None:
        _write_requests(made, settings.image_url.rstrip("/"), name, folder.path / "google")
    folder.note(survey={"path": str(survey.path.resolve()), "version": survey.plan.version})
    say(f"forms: {len(made)}, of {len(survey.plan.items):,} items\nfiles: {shown(folder.path)}\n{_about(settings)}")


def _write_requests(made: Sequence[Sheet], root: str, name: Callable[[str], str], folder: Path) -> None:
    folder.mkdir()
    for sheet in made:
        requests = google.api_requests(sheet, lambda digest: f"{root}/{name(digest)}")
        write_json(folder / f"{sheet.form.name}.json", requests)


def _write_studies(settings: SurveyExportSettings, survey: Survey, folder: Path) -> None:
    folder.mkdir()
    reward = round(settings.pay_per_hour * settings.minutes / 60)
    for form in survey.plan.forms:
        url = settings.study_url and settings.study_url.replace("{form}", form.name)
        study = prolific.study(survey.plan, form, url, settings.completion_code, settings.minutes, reward)
        write_json(folder / f"{form.name}.json", study)


def _about(settings: SurveyExportSettings) -> str:
    missing = [name for name in ("study_url", "completion_code") if getattr(settings, name) is None]
    still = f"; still without {' and '.join(missing)}" if missing else ""
    sent = "the same as requests of the Forms API, sent by vpref survey upload"
    requests = sent if settings.image_url else "left out: wants image_url"
    return (
        f"  {SCRIPT:16}paste it at script.google.com: makes the forms, no key needed\n"
        f"  google/         {requests}\n"
        f"  prolific/       a study for each form, for Prolific's API{still}\n"
        "  images/         the images as shown, for the script and for image_url"
    )
