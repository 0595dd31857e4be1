"""`vpref survey aggregate`: votes in; majority letters, a labelled dataset and what is to be known of both out."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel

from vpref.domain import AnnotatorChecks, Failed, Label, Vote
from vpref.errors import ConfigError
from vpref.images import Gallery
from vpref.reports import People, people_tables, write_tables
from vpref.runs.datasets import read_outcomes
from vpref.runs.folder import RunFolder, read_json, write_json
from vpref.runs.surveys import ATTRIBUTION, PLAN, VOTES, Survey, listed, open_survey, read_lines, read_plan, read_votes
from vpref.runs.terminal import say, show_tables, shown
from vpref.settings import SurveyAggregateSettings
from vpref.voting import Settled, check_annotators, label_items, settle

PEOPLE = "people.json"


def aggregate(settings: SurveyAggregateSettings, folder: RunFolder) -> None:
    """Run the verb. Nothing is left out in silence: votes that do not count stay in `votes.jsonl` with the reason
    as their status, and those on what was not planned are counted by id."""
    survey = open_survey(settings.survey)
    settled = settle(survey.plan, read_votes(_where(settings, survey)))
    _check_sources(settled.votes)
    answers = {item.id: item.answer for item in survey.items.values()}
    labels = label_items(survey.plan, settled.votes, answers, settings.least)
    annotators = check_annotators(survey.plan, settled.votes)
    people = People(survey.plan, settled.votes, labels, annotators, settings.least)
    _write(folder, survey, people, settled)
    tables = people_tables(people)
    write_tables(tables, folder.path / "tables")
    say(told(settled))
    say(f"annotators: {len(annotators):,}, {len(people.flagged):,} flagged")
    show_tables(table for table in tables if table.rows)
    say(f"\nground truth: {shown(folder.path / 'truth.json')}\nrecords: {shown(folder.path)}")


def read_people(folder: Path) -> People:
    """What an aggregate run wrote, for reports. Raises ConfigError where the folder holds none."""
    known = read_json(folder / PEOPLE)
    if not isinstance(known, dict) or not isinstance(known.get("least"), int):
        raise ConfigError(f"{folder / PEOPLE} is not of a `vpref survey aggregate` run.")
    return People(
        plan=read_plan(folder / PLAN),
        votes=read_votes([str(folder)]),
        labels=read_lines(folder / "labels.jsonl", Label),
        annotators=read_lines(folder / "annotators.jsonl", AnnotatorChecks),
        least=known["least"],
    )


def told(settled: Settled) -> str:
    """How many votes count and what became of the others, in a line or two."""
    statuses = Counter(vote.status for vote in settled.votes)
    lines = ["votes: " + (", ".join(f"{count:,} {status}" for status, count in statuses.most_common()) or "none")]
    if settled.twice:
        lines.append(f"given twice: {settled.twice:,} votes were there already, word for word")
    if settled.unplanned:
        ids = [f"{id} ({count} votes)" for id, count in settled.unplanned.most_common()]
        lines.append(
            f"left out: votes on {len(ids)} items that are not in the plan, so were changed since or never planned: "
            + listed(ids)
        )
    return "\n".join(lines)


def _where(settings: SurveyAggregateSettings, survey: Survey) -> Sequence[str]:
    if settings.votes or (survey.path / VOTES).exists():
        return settings.votes or [str(survey.path)]
    raise ConfigError(
        f"Nothing was answered on the pages of {settings.survey}; give what was imported or rehearsed: "
        "vpref survey aggregate survey=... outputs/survey_import/TIME."
    )


def _check_sources(votes: Sequence[Vote]) -> None:
    made_up = {vote.source == "rehearsal" for vote in votes}
    if len(made_up) > 1:
        raise ConfigError("Some of these votes are people's and some a rehearsal's; together they make no truth.")
    if not votes:
        raise ConfigError("There is no vote on any item of this survey; give the folders that hold some.")


def _write(folder: RunFolder, survey: Survey, people: People, settled: Settled) -> None:
    for kind, records in (("votes", people.votes), ("labels", people.labels), ("annotators", people.annotators)):
        _record_all(folder, kind, records)
    shutil.copyfile(survey.path / PLAN, folder.path / PLAN)
    _keep_dataset(folder, survey, people)
    truth = {label.item.id: label.letter for label in people.labels if label.letter is not None}
    write_json(folder.path / "truth.json", truth)
    facts = {
        "least": people.least,
        "rehearsed": people.rehearsed,
        "simulated_items": people.plan.simulated,
        "votes": dict(Counter(vote.status for vote in people.votes)),
        "sources": dict(Counter(vote.source for vote in people.votes)),
        "given_twice": settled.twice,
        "unplanned": dict(settled.unplanned),
        "kept": len(truth),
        "items": len(people.labels),
    }
    write_json(folder.path / PEOPLE, facts)
    folder.note(survey={"path": str(survey.path.resolve()), "version": people.plan.version}, summary=facts)


def _record_all(folder: RunFolder, kind: str, records: Sequence[BaseModel]) -> None:
    folder.begin(kind)
    for record in records:
        folder.record(kind, record)


def _keep_dataset(folder: RunFolder, survey: Survey, people: People) -> None:
    """The kept items with their letters, and their images: a dataset that `evaluate` takes."""
    letters = {label.item.id: label.letter for label in people.labels if label.letter is not None}
    folder.begin("items")
    kept = Gallery(folder.path / "images")
    for outcome in read_outcomes(survey.path / "items.jsonl"):
        if isinstance(outcome, Failed) or outcome.item.id not in letters:
            continue
        item = outcome.item.model_copy(update={"truth": letters[outcome.item.id]})
        folder.record("items", outcome.model_copy(update={"item": item}))
        survey.gallery.link_into(kept, item.shown)
    if (survey.path / ATTRIBUTION).exists():
        shutil.copyfile(survey.path / ATTRIBUTION, folder.path / ATTRIBUTION)
