"""`vpref survey export`: a planned survey as files for Google Forms and Prolific. Sends nothing."""

from __future__ import annotations

from vpref.forms import google, prolific
from vpref.forms.questions import sheets
from vpref.images import Gallery
from vpref.runs.folder import RunFolder, write_json
from vpref.runs.surveys import open_survey
from vpref.runs.terminal import say, shown
from vpref.settings import SurveyExportSettings

SCRIPT = "make_forms.gs"


def export(settings: SurveyExportSettings, folder: RunFolder) -> None:
    """Run the verb: for each form `google/NAME.json` and `prolific/NAME.json`; one script that makes all forms, and
    the images under the names that it looks for."""
    survey = open_survey(settings.survey)
    made = list(sheets(survey.plan, survey.items))
    images = Gallery(folder.path / "images")
    for item in survey.plan.items:
        survey.gallery.link_into(images, item.shown)

    def name(digest: str) -> str:
        return images.path(digest).name

    for part in ("google", "prolific"):
        (folder.path / part).mkdir()
    for sheet in made:
        requests = google.api_requests(sheet, lambda digest: f"{settings.image_url.rstrip('/')}/{name(digest)}")
        write_json(folder.path / "google" / f"{sheet.form.name}.json", requests)
        url = settings.study_url.replace("{form}", sheet.form.name)
        reward = round(settings.pay_per_hour * settings.minutes / 60)
        study = prolific.study(survey.plan, sheet.form, url, settings.completion_code, settings.minutes, reward)
        write_json(folder.path / "prolific" / f"{sheet.form.name}.json", study)
    (folder.path / SCRIPT).write_text(google.apps_script(made, name), encoding="utf-8")
    folder.note(survey={"path": str(survey.path.resolve()), "version": survey.plan.version})
    say(f"forms: {len(made)}, of {len(survey.plan.items):,} items\nfiles: {shown(folder.path)}")
    say(
        f"  {SCRIPT:16}paste it at script.google.com: makes the forms, no key needed\n"
        "  google/         the same as requests of the Forms API\n"
        "  prolific/       a study for each form, for Prolific's API\n"
        "  images/         the images as shown, for the script and for image_url"
    )
