"""`vpref survey simulate`: made-up annotators answer a planned survey, into a file or by its pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from vpref.domain import LETTERS, REHEARSED, Item, Letter, Plan, Vote
from vpref.errors import ConfigError
from vpref.runs.folder import RunFolder
from vpref.runs.surveys import open_survey
from vpref.runs.terminal import say, shown
from vpref.settings import SurveySimulateSettings
from vpref.voting.rehearsal import made_up, rehearse


def simulate(settings: SurveySimulateSettings, folder: RunFolder) -> None:
    """Run the verb: every place of every form filled, in `votes.jsonl` or on the pages at `url`."""
    survey = open_survey(settings.survey)
    truth = {id: right(item) for id, item in survey.items.items()}
    votes = rehearse(survey.plan, truth, settings.rehearsal)
    people = len(survey.plan.forms) * survey.plan.places
    folder.note(survey={"path": str(survey.path.resolve()), "version": survey.plan.version})
    if settings.url is not None:
        _walk(settings.url, survey.plan, votes)
        return
    folder.begin("votes")
    made = list(votes)
    for vote in made:
        folder.record("votes", vote)
    say(f"votes: {len(made):,} of {people:,} made-up annotators\nrecords: {shown(folder.path)}")


def right(item: Item) -> Letter:
    """What made-up annotators take for right: the responder's letter, or one out of the item's id without any."""
    return item.truth or item.answer or LETTERS[int(item.id, 16) % 4]


def _walk(url: str, plan: Plan, votes: Iterable[Vote]) -> None:
    """One annotator after the other by the pages, each as the form that they are given was rehearsed."""
    from vpref.survey.walking import Walker

    answers = {(vote.annotator, vote.item): vote for vote in votes}
    given: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    for number in range(1, len(plan.forms) * plan.places + 1):
        try:
            ended[Walker(url).walk(f"{REHEARSED}{number}", _replies(plan, answers, given))] += 1
        except (OSError, ValueError) as error:
            raise ConfigError(f"No survey answers at {url} ({error}); start one with vpref survey serve.") from error
        except (RuntimeError, StopIteration, KeyError) as error:
            raise ConfigError(f"The pages at {url} are not those of this survey ({error}).") from error
    found = f"; {ended['full']:,} found no place" if ended["full"] else ""
    say(f"annotators: {ended['finished']:,} made-up ones answered at {url}{found}")
    say("The votes are where the pages are served from, in its survey's votes.jsonl.")


def _replies(
    plan: Plan, answers: Mapping[tuple[str, str], Vote], given: Counter[str]
) -> Callable[[str], Mapping[str, str]]:
    """What one annotator answers: as the next of the form that their first question is of."""
    who = ""

    def reply(question: str) -> Mapping[str, str]:
        nonlocal who
        if not who:
            form = plan.form_of[question].name
            given[form] += 1
            who = made_up(plan, form, given[form])
        vote = answers[who, question]
        rating = {} if vote.difficulty is None else {"difficulty": str(vote.difficulty)}
        return {"choice": vote.choice, "justification": vote.justification} | rating

    return reply
