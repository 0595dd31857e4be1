"""`vpref survey simulate`: made-up annotators answer a planned survey."""

from __future__ import annotations

from vpref.domain import LETTERS, Item, Letter
from vpref.runs.folder import RunFolder
from vpref.runs.surveys import open_survey
from vpref.runs.terminal import say, shown
from vpref.settings import SurveySimulateSettings
from vpref.voting.rehearsal import rehearse


def simulate(settings: SurveySimulateSettings, folder: RunFolder) -> None:
    """Run the verb: `votes.jsonl`, every place of every form filled."""
    survey = open_survey(settings.survey)
    folder.begin("votes")
    count = 0
    truth = {id: right(item) for id, item in survey.items.items()}
    for vote in rehearse(survey.plan, truth, settings.rehearsal):
        folder.record("votes", vote)
        count += 1
    folder.note(survey={"path": str(survey.path.resolve()), "version": survey.plan.version}, summary={"votes": count})
    annotators = len(survey.plan.forms) * survey.plan.places
    say(f"votes: {count:,} of {annotators:,} made-up annotators\nrecords: {shown(folder.path)}")


def right(item: Item) -> Letter:
    """What made-up annotators take for right: the responder's letter, or one out of the item's id without any."""
    return item.truth or item.answer or LETTERS[int(item.id, 16) % 4]
