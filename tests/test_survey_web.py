"""The survey's pages over HTTP, met without scripts: real process, real sockets, real database."""

from __future__ import annotations

import http.client
import json
import signal
import sqlite3
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.commands import ROOT, complaint
from tests.serving import PLENTY_S, Served, plan_of, planned, reply_to, served, votes_of
from vpref.domain import annotator_key
from vpref.survey.walking import SeenPage, Walker


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One survey for many tests; each brings people of its own."""
    with served(planned(tmp_path_factory.mktemp("web"), "places=40", "checks=1")) as running:
        yield running


def rows(survey: Path, query: str, *values: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(survey / "answers.sqlite", timeout=PLENTY_S)) as db:
        return db.execute(query, values).fetchall()


def annotator(served: Served, participant: str) -> str:
    return annotator_key((served.survey / "annotators.key").read_bytes().strip(), participant)


def first_question(walker: Walker, participant: str) -> SeenPage:
    """Come in, agree, and open the first question with its picture."""
    page = walker.get(f"?PROLIFIC_PID={participant}")
    form = page.form("/consent")
    assert form is not None
    walker.send(form)
    page = walker.get("question/1")
    for image in page.images:
        assert walker.get(image).status == 200
    return page


def answer(walker: Walker, page: SeenPage, **values: str) -> SeenPage:
    form = next(form for form in page.forms if "question" in form.values)
    return walker.send(form, **(reply_to(form.values["question"]) | values))


def test_what_is_answered_on_the_pages_is_what_the_votes_say(tmp_path: Path) -> None:
    survey = planned(tmp_path, "places=2", "checks=1")
    with served(survey) as running:
        assert running.greeting[0].endswith("8 of 8 places open, until Ctrl-C")
        for person in range(8):
            assert Walker(running.address).walk(f"person-{person}", reply_to) == "finished"
        assert Walker(running.address).walk("person-8", reply_to) == "full"
        code, out, errors = running.stop(signal.SIGINT)
    plan = plan_of(survey)
    votes = votes_of(survey)
    assert (code, errors) == (0, "")
    assert out.startswith(f"votes: {len(votes)} in ")
    asked = [(form.name, question) for form in plan.forms for _ in range(2) for question in form.questions]
    assert [(vote["form"], vote["item"]) for vote in votes] == asked
    for vote in votes:
        wanted = reply_to(vote["item"])
        assert vote["choice"] == wanted["choice"]
        assert sorted(vote["order"]) == ["a", "b", "c", "d"]
        assert (vote["status"], vote["source"]) == ("valid", "web")
        assert vote["seconds"] > 0
        assert vote["started"] < vote["submitted"]
        if vote["item"] in plan.checks:
            assert (vote["difficulty"], vote["justification"]) == (None, "")
        else:
            assert (str(vote["difficulty"]), vote["justification"]) == (wanted["difficulty"], wanted["justification"])
    assert len({vote["annotator"] for vote in votes}) == 8
    assert len({vote["order"] for vote in votes}) > 4, "each annotator and question has an order of its own"


def test_choices_are_shown_in_the_order_that_is_recorded_and_other_comes_last(running: Served) -> None:
    walker = Walker(running.address)
    page = first_question(walker, "ordered")
    form = next(form for form in page.forms if "question" in form.values)
    shown = "".join(form.options["choice"][:4])
    assert form.options["choice"][4:] == ["other"]
    again = next(form for form in walker.get("question/1").forms if "question" in form.values)
    assert again.options == form.options
    answer(walker, page, choice="other")
    found = rows(
        running.survey, "SELECT choice, shown_order FROM answer WHERE annotator = ?", annotator(running, "ordered")
    )
    assert found == [("other", shown)]


@pytest.mark.slow
def test_nobody_is_known_but_by_a_keyed_hash(tmp_path: Path) -> None:
    survey = planned(tmp_path, "places=2")
    with served(survey) as running:
        walker = Walker(running.address)
        page = walker.get("?PROLIFIC_PID=5e90aa11bb22cc33&STUDY_ID=study77&SESSION_ID=session88")
        assert "5e90aa11bb22cc33" not in page.url + page.text
        assert walker.walk("5e90aa11bb22cc33", reply_to) == "finished"
        running.stop()
        kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        for private in (b"5e90aa11bb22cc33", b"study77", b"session88", b"Python-urllib", running.token.encode()):
            assert not [one for one in kept if private in one]
    who = {(vote["annotator"], vote["submission"]) for vote in votes_of(survey)}
    secret = (survey / "annotators.key").read_bytes().strip()
    assert who == {(annotator_key(secret, "5e90aa11bb22cc33"), annotator_key(secret, "session88"))}
    for name in ("annotators.key", "answers.sqlite"):
        assert stat.S_IMODE((survey / name).stat().st_mode) == 0o600


def test_who_comes_without_an_id_is_asked_for_it_and_told_when_it_is_missing(running: Served) -> None:
    walker = Walker(running.address)
    for link in ("", "?PROLIFIC_PID=", "?PROLIFIC_PID=%7B%7B%25PROLIFIC_PID%25%7D%7D", "question/3", "review", "done"):
        page = walker.get(link)
        assert "give the participant ID" in page.text, link
    assert "Take part without an ID" not in page.text
    assert "Please give your participant ID." in walker.send(page.forms[0], participant="  ").text
    assert walker.send(page.forms[0], participant=" typed ").url.endswith("/consent")
    assert rows(running.survey, "SELECT 1 FROM person WHERE annotator = ?", annotator(running, "typed"))


def test_the_same_person_goes_on_anywhere_by_id_and_by_their_personal_link(running: Served) -> None:
    walker = Walker(running.address)
    after = answer(walker, first_question(walker, "mover"))
    assert after.url.endswith("/question/2")
    link = next(link for link in walker.get("instructions").links if "/resume/" in link)
    by_id, by_link, stranger = Walker(running.address), Walker(running.address), Walker(running.address)
    assert by_id.get("?PROLIFIC_PID=mover").url == after.url
    assert by_link.get(link).url == after.url
    assert "Welcome" in stranger.get("resume/no-such-link").text
    shown = next(form for form in by_link.get("question/1").forms if "question" in form.values)
    assert shown.values["justification"] == reply_to(shown.values["question"])["justification"]
    assert rows(running.survey, "SELECT count(*) FROM person WHERE annotator = ?", annotator(running, "mover")) == [
        (1,)
    ]


def test_sent_twice_or_from_two_tabs_an_answer_is_one_and_the_log_has_all(running: Served) -> None:
    walker = Walker(running.address)
    page = first_question(walker, "twice")
    with ThreadPoolExecutor(8) as many:
        ended = list(many.map(lambda number: answer(walker, page, justification=f"reason {number}"), range(8)))
    assert {one.url.rpartition("/")[2] for one in ended} == {"2"}
    who = annotator(running, "twice")
    assert len(rows(running.survey, "SELECT * FROM answer WHERE annotator = ?", who)) == 1
    log = rows(running.survey, "SELECT detail FROM event WHERE kind = 'answered' AND annotator = ?", who)
    assert {str(detail).rpartition(" ")[2] for (detail,) in log} == {str(number) for number in range(8)}
    assert answer(walker, page, justification="changed").url.endswith("/question/2"), "an old tab is still good"
    assert rows(running.survey, "SELECT justification FROM answer WHERE annotator = ?", who) == [("changed",)]


def test_what_is_missing_is_said_and_what_was_filled_in_stays(running: Served) -> None:
    walker = Walker(running.address)
    page = first_question(walker, "hasty")
    refused = answer(walker, page, choice="e", difficulty="6", justification=" ")
    assert refused.status == 422
    for said in ("Choose what this person should do.", "Say how difficult", "Give your reason"):
        assert said in refused.text
    refused = answer(walker, page, choice="", justification="kept <b>&amp; words")
    form = next(form for form in refused.forms if "question" in form.values)
    assert form.values["justification"] == "kept <b>&amp; words"
    refused = answer(walker, page, justification="x" * 2001)
    assert "2,001 characters; 2,000 are the most" in refused.text
    assert not rows(running.survey, "SELECT * FROM answer WHERE annotator = ?", annotator(running, "hasty"))
    assert answer(walker, page, justification="x" * 2000).status == 200


def test_questions_come_in_order_and_only_a_whole_form_is_handed_in(running: Served) -> None:
    walker = Walker(running.address)
    page = first_question(walker, "skipper")
    assert walker.get("question/2").url.endswith("/question/1")
    assert walker.get("review").url.endswith("/question/1")
    token = page.forms[0].values["csrf_token"]
    finish = type(page.forms[0])(running.address + "finish", {"csrf_token": token})
    assert walker.send(finish).url.endswith("/instructions"), "nothing answered yet"
    assert not rows(
        running.survey, "SELECT finished FROM person WHERE annotator = ? AND finished", annotator(running, "skipper")
    )
    assert walker.walk("skipper", reply_to) == "finished"
    assert walker.send(finish).url.endswith("/done"), "handed in twice is handed in once"
    assert answer(walker, page, justification="afterwards").url.endswith("/done")
    late = rows(running.survey, "SELECT detail FROM event WHERE kind = 'answered too late'")
    assert "afterwards" in str(late[-1])


def test_without_its_token_nothing_is_taken_and_the_page_says_why(running: Served) -> None:
    walker = Walker(running.address)
    page = first_question(walker, "forged")
    refused = answer(walker, page, csrf_token="forged")
    assert refused.status == 400
    assert "What you just sent was not kept" in refused.text
    other = Walker(running.address)
    other.get("?PROLIFIC_PID=somebody")
    assert answer(other, page).status == 400, "another browser's token"
    first_question(walker, "successor")
    assert answer(walker, page).status == 400, "the tab of somebody who came in before"
    assert not rows(running.survey, "SELECT * FROM answer WHERE annotator = ?", annotator(running, "forged"))


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.slow
def test_headers_keep_the_pages_private(tmp_path: Path, scheme: str) -> None:
    target = "https://app.prolific.com/submissions/complete?cc=C1"
    public = f"{scheme}://survey.example.org/study"
    with served(planned(tmp_path), "port=0", f"url={public}", f"completion_url='{target}'") as running:
        assert running.address == f"{public}/"
        port = urlsplit(running.listening).port
        for path in ("/study/?PROLIFIC_PID=x", "/study/static/survey.css", "/study/none", "/study/admin/"):
            with closing(http.client.HTTPConnection("127.0.0.1", port or 0, timeout=PLENTY_S)) as connection:
                connection.request("GET", path)
                reply = connection.getresponse()
                reply.read()
            policy = reply.headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none';")
            assert "form-action 'self' https://app.prolific.com;" in policy
            assert reply.headers["X-Content-Type-Options"] == "nosniff"
            assert "Server" not in reply.headers
            assert ("Strict-Transport-Security" in reply.headers) == (scheme == "https")
            if path.endswith("=x"):
                assert (reply.status, reply.headers["Location"]) == (303, "/study/consent")
                cookie = reply.headers["Set-Cookie"]
                assert "HttpOnly" in cookie
                assert "Path=/study;" in cookie
                assert "SameSite=Lax" in cookie
                assert ("Secure" in cookie) == (scheme == "https")
                assert reply.headers["Cache-Control"] == "no-store"


@pytest.mark.slow
def test_handing_in_leads_where_the_config_says(tmp_path: Path) -> None:
    with served(planned(tmp_path), "completion_code=C0DE", "contact=Ask (us), or ask@example.org") as running:
        walker = Walker(running.address)
        assert walker.walk("payee", reply_to) == "finished"
        page = walker.get("")
        assert "C0DE" in page.text
        assert "Ask (us), or ask@example.org" in page.text
    with served(running.survey, "completion_url=http://127.0.0.1:9/complete?cc=C0DE&x=1") as again:
        with pytest.raises(OSError, match="refused"):
            Walker(again.address).walk("payee-2", reply_to)
        walker = Walker(again.address)
        assert "http://127.0.0.1:9/complete?cc=C0DE&x=1" in walker.get("?PROLIFIC_PID=payee-2").links


@pytest.mark.slow
def test_without_ids_everybody_is_new_and_their_link_is_the_way_back(tmp_path: Path) -> None:
    (tmp_path / "hello.txt").write_text("Dear all,\n\nthis is <ours>.\n", encoding="utf-8")
    with served(planned(tmp_path), "anonymous=true", f"introduction={tmp_path / 'hello.txt'}") as running:
        links = set()
        for _ in range(2):
            walker = Walker(running.address)
            page = walker.send(walker.get("").forms[0], nobody="1")
            assert "<p>this is &lt;ours&gt;.</p>" in page.text
            form = page.form("/consent")
            assert form is not None
            links.add(next(link for link in walker.send(form).links if "/resume/" in link))
        assert len(links) == 2
        assert Walker(running.address).get(links.pop()).url.endswith("/instructions")


@pytest.mark.slow
def test_an_image_that_is_not_there_blocks_the_answer_and_is_logged(tmp_path: Path) -> None:
    survey = planned(tmp_path)
    with served(survey) as running:
        for image in (survey / "images").iterdir():
            image.rename(image.with_name("away-" + image.name))
        walker = Walker(running.address)
        page = walker.get("?PROLIFIC_PID=blind")
        form = page.form("/consent")
        assert form is not None
        walker.send(form)
        page = walker.get("question/1")
        assert answer(walker, page).status == 422, "not asked for"
        assert walker.get(page.images[0]).status == 404
        refused = answer(walker, page)
        assert "The image has not been shown" in refused.text
        unseen = page.form("/unseen")
        assert unseen is not None
        assert "Is the picture missing?" in walker.send(unseen).text
        details = [detail for (detail,) in rows(survey, "SELECT detail FROM event WHERE kind = 'no image' ORDER BY at")]
        assert details == ["the server could not read it", "the annotator cannot see it"]
        for image in (survey / "images").iterdir():
            image.rename(image.with_name(image.name.removeprefix("away-")))
        assert walker.get(page.images[0]).status == 200
        assert answer(walker, page).url.endswith("/question/2")


@pytest.mark.slow
def test_the_admin_page_shows_how_it_stands_to_who_has_the_token(tmp_path: Path) -> None:
    survey = planned(tmp_path, "places=2", "checks=1")
    plan = plan_of(survey)
    with served(survey, VPREF_ADMIN_TOKEN="a token of the environment") as running:
        assert running.token == "as in VPREF_ADMIN_TOKEN"
        boss = Walker(running.address)
        for page in ("admin/", "admin/votes.jsonl"):
            assert boss.get(page).status == 401
        assert "This is not the token." in boss.send(boss.get("admin/").forms[0], token="a token").text
        assert boss.get("admin/").status == 401

        def careless(question: str) -> dict[str, str]:
            if question not in plan.checks:
                return dict(reply_to(question))
            return {"choice": next(letter for letter in "abcd" if letter != plan.checks[question].expected)}

        Walker(running.address).walk("careless", careless)
        answer(halfway := Walker(running.address), first_question(halfway, "halfway"))
        overview = boss.send(boss.get("admin/").forms[0], token="a token of the environment")
        assert "1 of 8 places finished" in " ".join(overview.text.split())
        assert "failed 1 of 1 attention checks" in overview.text
        exported = boss.get("admin/votes.jsonl").text
        statuses = [json.loads(line)["status"] for line in exported.splitlines()]
        assert sorted(set(statuses)) == ["incomplete", "valid"]
        keep = boss.get("admin/").form("/keep")
        assert keep is not None
        assert "votes: " in boss.send(keep).text
        assert (survey / "votes.jsonl").read_text() == exported
        code, *_ = running.stop()
        assert code == 0
        kept = [path for path in tmp_path.rglob("*") if path.is_file() and b"of the environment" in path.read_bytes()]
        assert kept == []


@pytest.mark.slow
def test_a_database_that_is_taken_away_is_told_and_not_begun_anew(tmp_path: Path) -> None:
    survey = planned(tmp_path)
    with served(survey) as running:
        walker = Walker(running.address)
        page = first_question(walker, "unlucky")
        for part in survey.glob("answers.sqlite*"):
            part.rename(part.with_name("away-" + part.name))
        refused = answer(walker, page)
        assert refused.status == 500
        assert "Something went wrong on our side" in refused.text
        code, _, errors = running.stop()
    assert code == 1
    assert [line.partition(" (")[0] for line in errors.splitlines()] == [
        f"vpref: The database of answers, {survey}/answers.sqlite, cannot be used any more"
    ]
    assert not (survey / "answers.sqlite").exists()


@pytest.mark.slow
def test_who_withdraws_makes_room_and_does_not_count(tmp_path: Path) -> None:
    survey = planned(tmp_path, "places=1")
    with served(survey) as running:
        for person in range(3):
            first_question(Walker(running.address), f"holder-{person}")
        leaving = Walker(running.address)
        answer(leaving, first_question(leaving, "leaver"))
        assert Walker(running.address).walk("waiting", reply_to) == "full"
        form = leaving.get("withdraw").form("/withdraw")
        assert form is not None
        assert "You have stopped" in leaving.send(form).text
        assert "You have stopped" in leaving.get("question/1").text
        assert Walker(running.address).walk("waiting", reply_to) == "finished"
        running.stop()
    assert {vote["status"] for vote in votes_of(survey)} == {"returned", "valid"}


@pytest.mark.slow
def test_starting_again_goes_on_and_another_plan_is_refused(tmp_path: Path) -> None:
    survey = planned(tmp_path, "places=1")
    with served(survey) as running:
        walker = Walker(running.address)
        answer(walker, first_question(walker, "stayer"))
        running.stop()
    with served(survey) as running:
        assert running.greeting[0].endswith("3 of 4 places open, until Ctrl-C")
        assert Walker(running.address).walk("stayer", reply_to) == "finished"
        running.stop()
    assert {vote["status"] for vote in votes_of(survey)} == {"valid"}
    before = (survey / "votes.jsonl").read_bytes()
    other = planned(tmp_path / "other", "title=Another")
    (survey / "plan.json").write_bytes((other / "plan.json").read_bytes())
    said = complaint("survey", "serve", f"survey={survey}", "port=0", cwd=tmp_path)
    assert "put the old plan back, or serve the new one from a folder of its own" in said
    assert (survey / "votes.jsonl").read_bytes() == before


def test_a_port_in_use_and_a_short_token_are_one_sentence(running: Served, tmp_path: Path) -> None:
    survey = f"survey={running.survey}"
    port = urlsplit(running.address).port
    said = complaint("survey", "serve", survey, f"port={port}", cwd=tmp_path)
    assert said.startswith(f"vpref: The survey cannot listen on 127.0.0.1, port {port} (Address already in use)")
    said = complaint("survey", "serve", survey, "port=0", "host=no.such.host.invalid", cwd=tmp_path)
    assert "cannot listen on no.such.host.invalid" in said
    said = complaint("survey", "serve", survey, "port=0", cwd=tmp_path, VPREF_ADMIN_TOKEN="short")
    assert "VPREF_ADMIN_TOKEN is shorter than 16 characters" in said
    assert "give a whole address" in complaint("survey", "serve", survey, "url=survey.example.org", cwd=tmp_path)
    said = complaint("survey", "serve", survey, "port=0", cwd=tmp_path, VPREF_ANNOTATORS_KEY="0123456789abcdef")
    assert "is not the one" in said
    assert "0123456789abcdef" not in said
    said = complaint("survey", "serve", survey, "port=0", cwd=tmp_path, VPREF_ANNOTATORS_KEY="short")
    assert "VPREF_ANNOTATORS_KEY is shorter than 16 characters" in said
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "flask.py").write_text("raise ModuleNotFoundError('absent', name='flask')")
    said = complaint("survey", "serve", survey, "port=0", cwd=tmp_path, PYTHONPATH=f"{tmp_path / 'bare'}:{ROOT}")
    assert said == "vpref: The survey's pages need the package flask: pip install 'vpref[survey]'."
    said = complaint("survey", "serve", survey, "introduction=absent.txt", "port=0", cwd=tmp_path)
    assert "absent.txt cannot be read" in said
