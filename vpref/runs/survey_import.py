"""`vpref survey import`: answers from elsewhere become votes, held against the plan."""

from __future__ import annotations

from vpref.errors import ConfigError
from vpref.runs.folder import RunFolder
from vpref.runs.survey_aggregate import told
from vpref.runs.surveys import open_survey, read_votes
from vpref.runs.terminal import say, shown
from vpref.settings import SurveyImportSettings
from vpref.voting import settle


def import_answers(settings: SurveyImportSettings, folder: RunFolder) -> None:
    """Run the verb: `votes.jsonl`, each vote with the status that it ends with."""
    if not settings.answers:
        raise ConfigError("Which answers? Give their files: vpref survey import survey=outputs/survey/TIME FILE ...")
    survey = open_survey(settings.survey)
    settled = settle(survey.plan, read_votes(settings.answers))
    folder.begin("votes")
    for vote in settled.votes:
        folder.record("votes", vote)
    say(told(settled))
    say(f"records: {shown(folder.path)}")
