"""`vpref survey import`: answers from elsewhere become votes, held against the plan. Nothing is dropped in silence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from vpref.domain import VoteSource
from vpref.errors import ConfigError
from vpref.forms.answers import Answers, Reader, join_votes, read_answers
from vpref.forms.grid import Grid, Problem, read_grid
from vpref.forms.prolific import Submissions, read_export
from vpref.forms.questions import sheets
from vpref.forms.responses import response_grids
from vpref.forms.times import DateOrder
from vpref.runs.folder import RunFolder, read_json
from vpref.runs.survey_aggregate import told
from vpref.runs.surveys import Survey, open_survey, read_votes
from vpref.runs.terminal import say, shown
from vpref.settings import Dates, SurveyImportSettings
from vpref.voting import Settled, settle

_MOST = 12  # problems printed; all are in the file


def import_answers(settings: SurveyImportSettings, folder: RunFolder) -> None:
    """Run the verb: `votes.jsonl`, each vote with the status that it ends with, and `problems.jsonl`."""
    if not settings.answers:
        raise ConfigError("Which answers? Give their files: vpref survey import survey=outputs/survey/TIME FILE ...")
    survey = open_survey(settings.survey)
    submissions = read_export(map(_csv, map(Path, settings.prolific))) if settings.prolific else None
    reader = _reader(settings, survey, submissions)
    grids, own = _files(settings.answers, reader)
    answers = read_answers(grids, reader)
    settled = settle(survey.plan, [*answers.votes, *join_votes(read_votes(own), reader, answers)])
    problems = [
        *(submissions.problems if submissions else []),
        *answers.problems,
        *_later(answers, settled, submissions),
    ]
    for kind, records in (("votes", settled.votes), ("problems", problems)):
        folder.begin(kind)
        for record in records:
            folder.record(kind, record)
    folder.note(survey={"path": str(survey.path.resolve()), "version": survey.plan.version}, answers=settings.answers)
    say("\n".join([told(settled), *_told(problems)]))
    say(f"records: {shown(folder.path)}")


def _reader(settings: SurveyImportSettings, survey: Survey, submissions: Submissions | None) -> Reader:
    zone = None
    if settings.timezone is not None:
        try:
            zone = ZoneInfo(settings.timezone)
        except (KeyError, ValueError, OSError) as error:
            raise ConfigError(f"There is no timezone {settings.timezone!r}; name one like Europe/Berlin.") from error
    order: DateOrder | None = None
    if settings.dates is not None:
        order = "day_first" if settings.dates is Dates.day_first else "month_first"
    return Reader(list(sheets(survey.plan, survey.items)), survey.secret, zone, order, submissions)


def _files(given: Sequence[str], reader: Reader) -> tuple[list[tuple[Grid, VoteSource]], list[str]]:
    """Grids of others' answers, and the files and folders that hold votes of ours, told apart by their names."""
    grids: list[tuple[Grid, VoteSource]] = []
    documents: list[tuple[str, Any]] = []
    own: list[str] = []
    for path in map(Path, given):
        kind = ".jsonl" if path.is_dir() else path.suffix.lower()
        if kind == ".csv":
            grids.append((_csv(path), "google_csv"))
        elif kind == ".json":
            documents.append((path.name, read_json(path)))
        elif kind == ".jsonl":
            own.append(str(path))
        else:
            raise ConfigError(f"{path} is none of .csv (Google Forms), .json (its API) and .jsonl (our votes).")
    grids += [(grid, "google_api") for grid in response_grids(documents, reader.sheets)]
    return grids, own


def _csv(path: Path) -> Grid:
    try:
        return read_grid(path.name, path.read_bytes())
    except OSError as error:
        raise ConfigError(f"Cannot read {path} ({error.strerror}).") from error


def _later(answers: Answers, settled: Settled, submissions: Submissions | None) -> Iterable[Problem]:
    """What only shows once all is read: people who answered twice, and those who gave no answers."""
    repeated = {vote.submission for vote in settled.votes if vote.status == "repeated"} & answers.places.keys()
    for submission in sorted(repeated, key=answers.places.__getitem__):
        file, row = answers.places[submission]
        yield Problem(file=file, row=row, column=None, what="its participant had answered before: kept as repeated")
    if submissions is not None:
        done = {who for who, ones in submissions.by_person.items() if any(one.status == "valid" for one in ones)}
        silent = len(done - answers.people)
        if silent:
            what = f"of the participants whose submission counts, {silent:,} gave no answers here"
            yield Problem(file="Prolific's export", row=None, column=None, what=what)


def _told(problems: Sequence[Problem]) -> list[str]:
    if not problems:
        return ["problems: none"]
    more = [f"  ... and {len(problems) - _MOST} more in problems.jsonl"] if len(problems) > _MOST else []
    return [f"problems: {len(problems)}", *(f"  {problem}" for problem in problems[:_MOST]), *more]
