"""Forms for Google and answers from there: what is exported, what comes back, and what was spoilt on the way."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.commands import complaint, run, run_folder
from tests.surveys import api_documents, dataset, filled, generic_items, made_up_votes, person, plan_survey, write_csv
from vpref.domain import OTHER, Vote, annotator_key
from vpref.errors import ConfigError
from vpref.forms.answers import Answers, Reader, join_votes, read_answers
from vpref.forms.google import api_requests, apps_script
from vpref.forms.grid import read_grid
from vpref.forms.prolific import read_export, study
from vpref.forms.questions import sheets
from vpref.forms.responses import response_grids
from vpref.forms.times import date_order, parse_time
from vpref.runs.surveys import Survey, open_survey, read_votes

Rows = list[list[str]]
PROLIFIC = ["Submission id", "Participant id", "Status", "Custom study tncs accepted at", "Started at", "Completed at"]


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Survey:
    """Four images and one attention check: forms of four items."""
    home = tmp_path_factory.mktemp("survey")
    dataset(home / "data", generic_items(plain=4))
    return open_survey(str(plan_survey(home, "dataset=data", "checks=1", "places=3")))


@pytest.fixture
def sheet(survey: Survey) -> tuple[list[str], Rows]:
    """A file of answers to the first form: header and rows."""
    header, rows = filled(survey, made_up_votes(survey))["plain-1"]
    return list(header), [list(row) for row in rows]


def read(survey: Survey, header: list[str], rows: Rows, **how: Any) -> Answers:
    return read_bytes(survey, "\r\n".join(_line(row) for row in [header, *rows]).encode(), **how)


def _line(cells: list[str]) -> str:
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)


def read_bytes(survey: Survey, data: bytes, **how: Any) -> Answers:
    reader = Reader(list(sheets(survey.plan, survey.items)), b"secret", **how)
    return read_answers([(read_grid("a.csv", data), "google_csv")], reader)


def told(votes: list[Vote]) -> list[tuple[str, str, int | None]]:
    return [(vote.item, vote.choice, vote.difficulty) for vote in votes]


def problems(answers: Answers) -> list[str]:
    return [str(problem) for problem in answers.problems]


# --- out --------------------------------------------------------------------------------------------------


def test_exported_forms(survey: Survey, golden: Callable[[str, str], None]) -> None:
    first = next(sheets(survey.plan, survey.items))
    requests = api_requests(first, lambda digest: f"https://example.org/{digest[:8]}.png")
    golden("survey/plain-1.json", json.dumps(requests, indent=1, ensure_ascii=False) + "\n")
    golden("survey/make_forms.gs", apps_script([first], lambda digest: f"{digest[:8]}.png"))
    about = study(survey.plan, first.form, "https://x.org", "C0DE", 10, 200)
    golden("survey/prolific.json", json.dumps(about, indent=1) + "\n")


def test_titles_and_options_are_one_line_and_distinct(survey: Survey) -> None:
    """The API refuses line breaks, and a CSV cannot tell equal titles apart."""
    for sheet in sheets(survey.plan, survey.items):
        asked = api_requests(sheet, lambda digest: f"https://example.org/{digest}.jpg")["batchUpdate"]["requests"]
        items = [request["createItem"]["item"] for request in asked if "createItem" in request]
        titles = [item["title"] for item in items]
        assert len(set(titles)) == len(titles)
        assert not any("\n" in title for title in titles)
        assert [request["createItem"]["location"]["index"] for request in asked[1:]] == list(range(len(items)))
        for one in sheet.asked:
            assert len(set(one.options.values())) == len(one.options)
            assert (OTHER in one.options) == (one.shown is not None)


GOOGLE = """
const made = [];
const chained = item => new Proxy({}, {get: (_, name) => (...given) => { item[name] = given; return chained(item); }});
const form = new Proxy({}, {get: (_, name) => (...given) => {
  if (name.startsWith('get')) return name;
  const item = {kind: name}; made.push(item); return name.startsWith('add') ? chained(item) : form; }});
const FormApp = {create: () => form};
const file = name => ({getBlob: () => name});
const files = name => ({hasNext: () => true, next: () => file(name)});
const DriveApp = {getFolderById: () => ({getFilesByName: files})};
const show = () => console.log(JSON.stringify(made));
"""
"""Google's services, which write down what they are told."""


def test_the_script_makes_every_question(survey: Survey, tmp_path: Path) -> None:
    """Run by node with Google's services written down as a log of what was called."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    first = next(sheets(survey.plan, survey.items))
    script = GOOGLE + apps_script([first], lambda digest: f"{digest}.png") + "make_plain_1(); show();"
    (tmp_path / "run.js").write_text(script)
    done = subprocess.run([node, str(tmp_path / "run.js")], capture_output=True, text=True, check=True)
    made = json.loads(done.stdout.splitlines()[-1])
    titles = [item["setTitle"][0] for item in made if item["kind"].startswith("add") and "setRequired" in item]
    assert titles == [first.person, *first.meanings]
    options = [item["setChoiceValues"][0] for item in made if item["kind"] == "addMultipleChoiceItem"]
    assert options == [list(asked.options.values()) for asked in first.asked]
    images = [item["setImage"][0] for item in made if item["kind"] == "addImageItem"]
    assert images == [f"{asked.shown}.png" for asked in first.asked if asked.shown]


# --- back, whole ------------------------------------------------------------------------------------------


def test_a_csv_gives_the_votes_it_was_filled_with(survey: Survey, sheet: tuple[list[str], Rows]) -> None:
    header, rows = sheet
    answers = read(survey, header, rows)
    assert problems(answers) == []
    given = [vote for vote in made_up_votes(survey) if vote.form == "plain-1"]
    assert [(v.item, v.choice, v.difficulty, v.justification) for v in answers.votes] == [
        (v.item, v.choice, v.difficulty, v.justification if v.item in survey.items else "") for v in given
    ]
    assert {vote.submitted for vote in answers.votes} == {f"2026-03-07T04:3{n}:16+00:00" for n in range(3)}
    assert {vote.source for vote in answers.votes} == {"google_csv"}
    assert person(given[0].annotator) not in "".join(vote.model_dump_json() for vote in answers.votes)


@pytest.mark.parametrize("spoilt", ["bom", "utf16", "semicolons", "tabs", "reordered", "crlf in cells"])
def test_what_other_programs_do_to_a_csv_changes_nothing(
    survey: Survey, sheet: tuple[list[str], Rows], tmp_path: Path, spoilt: str
) -> None:
    header, rows = sheet
    whole = read(survey, header, rows).votes
    if spoilt == "reordered":
        order = [1, *range(len(header) - 1, 1, -1), 0]
        header, rows = [header[place] for place in order], [[row[place] for place in order] for row in rows]
    if spoilt == "crlf in cells":
        why = next(place for place, title in enumerate(header) if "Why" in title)
        rows[0][why] += '\r\n\r\nAnd, "because"; NA'
    separator = {"semicolons": ";", "tabs": "\t"}.get(spoilt, ",")
    data = write_csv(tmp_path / "a.csv", header, rows, separator).read_bytes()
    data = {"bom": b"\xef\xbb\xbf" + data, "utf16": data.decode().encode("utf-16")}.get(spoilt, data)
    answers = read_bytes(survey, data)
    assert problems(answers) == []
    assert told(answers.votes) == told(whole)
    if spoilt == "crlf in cells":
        assert 'And, "because"; NA' in "".join(vote.justification for vote in answers.votes)


def test_na_is_an_answer(survey: Survey, sheet: tuple[list[str], Rows]) -> None:
    header, rows = sheet
    why = next(place for place, title in enumerate(header) if "Why" in title)
    for row, text in zip(rows, ("NA", "None", "null"), strict=True):
        row[why] = text
    texts = {vote.justification for vote in read(survey, header, rows).votes}
    assert {"NA", "None", "null"} <= texts


# --- back, spoilt: each is told by row and column ---------------------------------------------------------


def test_half_filled_rows(survey: Survey, sheet: tuple[list[str], Rows]) -> None:
    header, rows = sheet
    choice = next(place for place, title in enumerate(header) if "What should I do" in title)
    difficulty = next(place for place, title in enumerate(header) if "difficult" in title)
    rows[0][choice] = ""
    rows[1][difficulty] = "6"
    rows[2][difficulty] = " "
    answers = read(survey, header, rows)
    assert len(answers.votes) == 3 * 5 - 1
    told = problems(answers)
    asked = f"column “{header[difficulty]}”"
    assert f"a.csv, row 2, column “{header[choice]}”: no answer: no vote" in told
    assert f"a.csv, row 3, {asked}: “6” is no number from 1 to 5: the vote counts without it" in told
    assert f"a.csv, row 4, {asked}: no answer: the vote counts without it" in told
    assert len(told) == 3


def test_renamed_missing_unknown_and_doubled_columns(survey: Survey, sheet: tuple[list[str], Rows]) -> None:
    header, rows = sheet
    choices = [place for place, title in enumerate(header) if "What should I do" in title]
    renamed, doubled, missing = choices[0], choices[1], choices[2]
    gone, twice = header[missing], header[doubled]
    header[renamed] = header[renamed].replace("What should I do", "What would you do")
    header += [twice, "Score"]
    rows = [[*row, "d. Something else", "0"] for row in rows]
    header = header[:missing] + header[missing + 1 :]
    rows = [row[:missing] + row[missing + 1 :] for row in rows]
    answers = read(survey, header, rows)
    told = "\n".join(problems(answers))
    assert "What would you do" in told
    assert "was edited after the export" in told
    assert f"column “{gone}”: is missing" in told
    assert f"column “{twice}”: is there 2 times with different answers: not read" in told
    assert "column “Score”: is no question of the form: not read" in told
    assert len(answers.votes) == 3 * 2


def test_a_doubled_column_with_the_same_answers_is_read(survey: Survey, sheet: tuple[list[str], Rows]) -> None:
    header, rows = sheet
    answers = read(survey, [*header, header[2]], [[*row, row[2]] for row in rows])
    assert len(answers.votes) == 15
    assert problems(answers) == []


def test_an_edited_option_is_no_vote(survey: Survey, sheet: tuple[list[str], Rows]) -> None:
    header, rows = sheet
    place = next(place for place, title in enumerate(header) if "What should I do" in title)
    rows[0][place] = "a. Take another thing entirely"
    answers = read(survey, header, rows)
    assert len(answers.votes) == 14
    assert "“a. Take another thing entirely” is none of the choices as exported: no vote" in problems(answers)[0]


def test_short_long_and_empty_rows(survey: Survey, sheet: tuple[list[str], Rows]) -> None:
    header, rows = sheet
    answers = read(survey, header, [rows[0][:-1], [*rows[1], "more"], ["", ""], rows[2]])
    told = problems(answers)
    assert any("row 2: has" in one for one in told)
    assert any("row 3: has" in one for one in told)
    assert "a.csv, row 4: is empty" in told
    assert len({vote.submission for vote in answers.votes}) == 3


def test_a_row_of_nobody_is_kept_and_not_counted(survey: Survey, sheet: tuple[list[str], Rows]) -> None:
    header, rows = sheet
    rows[0][1] = "  "
    answers = read(survey, header, rows)
    assert sorted({(vote.status, vote.submission) for vote in answers.votes})[0][0] == "unidentified"
    assert sum(vote.status == "unidentified" for vote in answers.votes) == 5
    assert "row 2" in problems(answers)[0]


def test_files_that_are_none_of_this_survey(survey: Survey, sheet: tuple[list[str], Rows]) -> None:
    header, rows = sheet
    other = [header[0], header[1].replace(survey.plan.version, "0" * 12), *header[2:]]
    with pytest.raises(ConfigError, match=r"another plan \(version 000000000000"):
        read(survey, other, rows)
    with pytest.raises(ConfigError, match="asks nothing that this survey asks"):
        read(survey, ["Timestamp", "Name", "Colour"], [["", "", ""]])
    with pytest.raises(ConfigError, match="no column of participants' ids"):
        read(survey, [header[0], "Who", *header[2:]], rows)
    with pytest.raises(ConfigError, match="no text in UTF-8"):
        read_bytes(survey, b"Timestamp,\xe9\n")
    with pytest.raises(ConfigError, match="is empty"):
        read_bytes(survey, b"")
    with pytest.raises(ConfigError, match="no whole CSV"):
        read_bytes(survey, b'Timestamp,"never closed\n')


# --- times ------------------------------------------------------------------------------------------------

MORNING = datetime(2018, 6, 28, 4, 59, 47, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2018/06/28 10:29:47 AM GMT+5:30", MORNING),
        ("2018/06/28 12:59:47 AM GMT-4", MORNING),
        ("2018/06/27 10:59:47 PM MDT", MORNING),
        ("2018/06/28 4:59:47 AM UTC", MORNING),
        ("2018/06/28 4:59:47\u202fAM UTC", MORNING),
        ("2018-06-28T04:59:47.123456789Z", MORNING),
        ("2018-06-28 06:59:47+02:00", MORNING),
        ("28.06.2018 06:59:47 CEST", MORNING),
        ("28.6.2018 04:59:47 +0000", MORNING),
        ("2018/06/28 12:00:00 PM UTC", datetime(2018, 6, 28, 12, tzinfo=UTC)),
        ("2018/06/28 12:00:00 AM UTC", datetime(2018, 6, 28, 0, tzinfo=UTC)),
    ],
)
def test_times_in_utc(text: str, utc: datetime) -> None:
    assert parse_time(text, None, None) == utc


def test_local_times_want_a_zone_and_an_order() -> None:
    berlin, chicago = ZoneInfo("Europe/Berlin"), ZoneInfo("America/Chicago")
    assert parse_time("28/6/2018 06:59:47", berlin, "day_first") == MORNING
    assert parse_time("6/28/2018 06:59:47", berlin, "month_first") == MORNING
    assert parse_time("2018/01/28 6:59:47 AM CST", chicago, None) == datetime(2018, 1, 28, 12, 59, 47, tzinfo=UTC)
    assert "timezone=" in str(parse_time("28/6/2018 06:59:47", None, "day_first"))
    assert "dates=day_first" in str(parse_time("3/7/2018 06:59:47", berlin, None))
    assert "zone" in str(parse_time("2018/01/28 6:59:47 AM IST", None, None))
    assert "not that of timezone=" in str(parse_time("2018/01/28 6:59:47 AM IST", chicago, None))
    assert "is no time" in str(parse_time("31.2.2018 06:59:47", berlin, None))
    assert "is no time" in str(parse_time("2018/06/28 上午 10:29", berlin, None))
    assert date_order(["3/7/2018 06:59", "13/7/2018 06:59"]) == "day_first"
    assert date_order(["3/7/2018 06:59", "3/17/2018 06:59"]) == "month_first"
    assert date_order(["3/7/2018 06:59"]) is None


def test_a_time_that_cannot_be_read_is_told_and_costs_no_vote(survey: Survey, sheet: tuple[list[str], Rows]) -> None:
    header, rows = sheet
    rows[1][0] = "gestern"
    answers = read(survey, header, rows)
    assert len(answers.votes) == 15
    (told,) = problems(answers)
    assert told.startswith("a.csv, row 3, column “Timestamp”: 'gestern' is no time of a form known here")


# --- the API ----------------------------------------------------------------------------------------------


def exported(survey: Survey) -> dict[str, Any]:
    first = next(sheets(survey.plan, survey.items))
    return api_requests(first, lambda digest: f"https://example.org/{digest}.jpg")


def read_api(survey: Survey, *documents: Any) -> Answers:
    known = list(sheets(survey.plan, survey.items))
    grids = response_grids([("r.json", document) for document in documents], known)
    return read_answers([(grid, "google_api") for grid in grids], Reader(known, b"secret"))


def test_the_api_gives_the_votes_that_the_csv_gives(survey: Survey, sheet: tuple[list[str], Rows]) -> None:
    header, rows = sheet
    whole = api_documents(exported(survey), header, rows)
    by_csv, by_api = read(survey, header, rows), read_api(survey, whole)
    assert problems(by_api) == []
    assert [vote.model_copy(update={"source": "google_csv"}) for vote in by_api.votes] == by_csv.votes
    first = {"responses": whole["responses"][:1], "nextPageToken": "x"}
    parts = read_api(survey, whole["form"], first, [{"responses": whole["responses"][1:]}])
    assert parts.votes == by_api.votes


def test_pages_and_forms_that_are_missing_are_told(survey: Survey, sheet: tuple[list[str], Rows]) -> None:
    whole = api_documents(exported(survey), *sheet)
    cut = read_api(survey, whole | {"nextPageToken": "x"})
    assert "give all pages" in problems(cut)[0]
    with pytest.raises(ConfigError, match="responses without their form"):
        read_api(survey, {"responses": whole["responses"]})
    with pytest.raises(ConfigError, match="neither a form"):
        read_api(survey, {"error": {"code": 403}})


def test_a_form_edited_in_google_is_told(survey: Survey, sheet: tuple[list[str], Rows]) -> None:
    whole = api_documents(exported(survey), *sheet)
    options = whole["form"]["items"][3]["questionItem"]["question"]["choiceQuestion"]["options"]
    options[0]["value"] = "a. Another"
    told = problems(read_api(survey, whole))
    assert len(told) == 1
    assert "has other options than were exported: the form was edited" in told[0]


# --- Prolific ---------------------------------------------------------------------------------------------


def prolific_csv(*rows: tuple[str, str, str]) -> bytes:
    """Rows of (participant, status, time started of 2026-03-07)."""
    lines = [[f"s{n}", who, status, "", f"2026-03-07T{at}:00.000000Z", ""] for n, (who, status, at) in enumerate(rows)]
    return "\n".join(_line(row) for row in [PROLIFIC, *lines]).encode()


def test_returned_and_timed_out_submissions_do_not_count(survey: Survey, sheet: tuple[list[str], Rows]) -> None:
    header, rows = sheet
    who = [row[1] for row in rows]
    rows[1][1] = who[1].upper() + " "
    assert annotator_key(b"secret", rows[1][1]) == annotator_key(b"secret", who[1])
    data = prolific_csv((who[0], "APPROVED", "04:25"), (who[1], "TIMED-OUT", "04:25"), (who[2], "Returned", "04:25"))
    answers = read(survey, header, rows, submissions=read_export([read_grid("prolific.csv", data)]))
    assert [vote.status for vote in answers.votes] == ["valid"] * 5 + ["returned"] * 10
    assert answers.votes[0].started == "2026-03-07T04:25:00+00:00"
    assert problems(answers) == []


def test_of_several_submissions_the_one_in_whose_time_it_falls_counts(
    survey: Survey, sheet: tuple[list[str], Rows]
) -> None:
    header, rows = sheet
    who = [row[1] for row in rows]
    data = prolific_csv(
        (who[0], "RETURNED", "00:25"),
        (who[0], "AWAITING REVIEW", "04:25"),
        (who[1], "APPROVED", "00:25"),
        (who[1], "RETURNED", "04:25"),
        ("DATA_EXPIRED", "APPROVED", "04:25"),
        (who[0], "PAUSED?", "14:25"),
    )
    submissions = read_export([read_grid("prolific.csv", data)])
    answers = read(survey, header, rows, submissions=submissions)
    assert [vote.status for vote in answers.votes[::5]] == ["valid", "returned", "unidentified"]
    assert "row 4: its participant is in no export" in problems(answers)[0]
    assert [str(one) for one in submissions.problems] == [
        "prolific.csv, row 6, column “Participant id”: names nobody (DATA_EXPIRED)",
        "prolific.csv, row 7, column “Status”: 'PAUSED?' is unknown: not counted",
    ]
    rows[0][0] = ""
    assert read(survey, header, rows, submissions=submissions).votes[0].status == "incomplete"


def test_votes_of_our_own_pages_are_joined_too(survey: Survey) -> None:
    given = [vote for vote in made_up_votes(survey) if vote.form == "plain-1"]
    who = {name: person(name) for name in dict.fromkeys(vote.annotator for vote in given)}
    web = [
        vote.model_copy(update={"source": "web", "annotator": annotator_key(b"secret", who[vote.annotator])})
        for vote in given
    ]
    first, second, _ = who.values()
    export = read_export(
        [read_grid("p.csv", prolific_csv((first, "APPROVED", "04:25"), (second, "RETURNED", "04:25")))]
    )
    reader = Reader(list(sheets(survey.plan, survey.items)), b"secret", submissions=export)
    answers = Answers()
    joined = list(join_votes([*web, given[0]], reader, answers))
    assert [vote.status for vote in joined[::5]] == ["valid", "returned", "unidentified", "valid"]
    assert answers.people == {first, second}
    assert len(answers.problems) == 1
    assert list(join_votes(web, Reader(reader.sheets, b"secret"), answers)) == web


def test_a_file_that_is_no_export_of_prolific_s() -> None:
    with pytest.raises(ConfigError, match="no export of Prolific's"):
        read_export([read_grid("p.csv", b"a,b\n1,2\n")])


# --- the commands -----------------------------------------------------------------------------------------


def test_export_and_import_as_commands(survey: Survey, sheet: tuple[list[str], Rows], tmp_path: Path) -> None:
    header, rows = sheet
    out, _ = run(
        "survey", "export", f"survey={survey.path}", "completion_code=C0DE", "image_url=https://x.org", cwd=tmp_path
    )
    (made,) = (tmp_path / "outputs/survey_export").iterdir()
    assert "forms: 4" in out
    assert {path.name for path in (made / "google").iterdir()} == {f"plain-{n}.json" for n in range(1, 5)}
    assert json.loads((made / "prolific/plain-1.json").read_text())["completion_codes"][0]["code"] == "C0DE"
    assert len(list((made / "images").iterdir())) == 4
    assert "still without study_url\n" in out
    assert "image_url is 'x'" in complaint("survey", "export", f"survey={survey.path}", "image_url=x", cwd=tmp_path)
    again = [*rows[0][:1], rows[0][1], *rows[1][2:]]
    again[0] = "2026/03/07 11:00:00 AM GMT+5:30"
    write_csv(tmp_path / "a b.csv", header, [*rows, again])
    out, _ = run("survey", "import", f"survey={survey.path}", "a b.csv", cwd=tmp_path)
    assert "votes: 15 valid, 5 repeated" in out
    (tmp_path / "p q.csv").write_bytes(prolific_csv((rows[0][1], "APPROVED", "04:25"), ("0" * 24, "APPROVED", "04:25")))
    joined, _ = run("survey", "import", f"survey={survey.path}", "a b.csv", "prolific=p q.csv", cwd=tmp_path)
    assert "votes: 10 unidentified, 5 valid, 5 repeated" in joined
    assert "of the participants whose submission counts, 1 gave no answers here" in joined
    assert "row 5: its participant had answered before" in out
    votes = read_votes([str(tmp_path / run_folder(out))])
    assert sum(vote.status == "repeated" for vote in votes) == 5
    folder = tmp_path / run_folder(out)
    assert not [path for path in folder.rglob("*.json*") if rows[0][1] in path.read_text()], "no id of Prolific's stays"
    for wrong, said in (("a.xlsx", "none of .csv"), ("absent.csv", "Cannot read"), ("timezone=Mars/Base", "timezone")):
        assert said in complaint("survey", "import", f"survey={survey.path}", "a b.csv", wrong, cwd=tmp_path)
    assert "Which answers?" in complaint("survey", "import", f"survey={survey.path}", cwd=tmp_path)
    assert Vote.model_validate_json((folder / "votes.jsonl").read_text().splitlines()[0]).form == "plain-1"


@given(st.lists(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])), min_size=3, max_size=3))
def test_whatever_people_write_comes_back(texts: list[str]) -> None:
    header = ["Timestamp", "Why, “really”?", "x"]
    data = "\r\n".join(_line(row) for row in [header, texts, ["1", "2", "3"]]).encode()
    grid = read_grid("a.csv", data)
    assert grid.header == header
    assert grid.rows == ([texts] if any(text.strip() for text in texts) else []) + [["1", "2", "3"]]
