"""Who holds which place, and what was answered: one SQLite file that several threads and restarts share.

A person is known by the keyed hash of an id; ids, addresses and browsers are not stored. Every change is one
transaction that is on disk when the method returns, so that a killed server loses no answer that it confirmed.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from vpref.domain import Plan
from vpref.errors import ConfigError, RunStopped
from vpref.survey.answers import Answer

_SCHEMA = """
CREATE TABLE IF NOT EXISTS survey (version TEXT NOT NULL, key TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS person (
    annotator TEXT PRIMARY KEY, submission TEXT NOT NULL, resume TEXT NOT NULL UNIQUE, arrived REAL NOT NULL,
    form TEXT, held INTEGER NOT NULL DEFAULT 0, seen REAL, finished REAL, withdrew REAL,
    viewing TEXT, since REAL
) STRICT;
CREATE TABLE IF NOT EXISTS visit (
    annotator TEXT NOT NULL, question TEXT NOT NULL, started REAL NOT NULL, seconds REAL NOT NULL DEFAULT 0,
    pictured INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (annotator, question)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answer (
    annotator TEXT NOT NULL, question TEXT NOT NULL, choice TEXT NOT NULL, difficulty INTEGER,
    justification TEXT NOT NULL, shown_order TEXT NOT NULL, seconds REAL NOT NULL, submitted REAL NOT NULL,
    PRIMARY KEY (annotator, question)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS event (
    at REAL NOT NULL, annotator TEXT NOT NULL, kind TEXT NOT NULL, question TEXT, detail TEXT
) STRICT;
"""

_PATIENCE_S = 60.0  # how long a transaction waits for others; hundreds arriving at once take seconds


@dataclass(frozen=True)
class Person:
    """An annotator: `form` once they hold or held a place, `held` while it counts."""

    annotator: str
    submission: str
    resume: str
    form: str | None
    held: bool
    finished: float | None
    withdrew: float | None


@dataclass(frozen=True)
class Given:
    """An answer as stored, with the order its choices were shown in, and UTC times in seconds since 1970."""

    answer: Answer
    order: str
    seconds: float
    started: float
    submitted: float


class Store:
    """The survey's database. Methods may be called from any thread; each opens what it needs."""

    def __init__(
        self, path: Path, plan: Plan, *, key: str, reopen_s: float, clock: Callable[[], float] = time.time
    ) -> None:
        """Opens or makes the file; `key` tells which secret people are hashed with. Raises ConfigError where it cannot
        be used, or holds answers about another plan or of people hashed with another secret."""
        self.path, self._reopen_s, self._clock = path, reopen_s, clock
        self._places = plan.places
        self._forms = tuple(form.name for form in plan.forms)
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # what people write is nobody else's to read
            self._keep = self._connect()  # the last connection to close would empty the log each time
            self._keep.execute("PRAGMA journal_mode = WAL")
            self._keep.executescript(_SCHEMA)
            self._hold_against(plan, key)
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"{path} cannot be used as the database of answers ({error}).") from error

    def _hold_against(self, plan: Plan, key: str) -> None:
        with self._writing() as db:
            row = db.execute("SELECT version, key FROM survey").fetchone()
            if row is None:
                db.execute("INSERT INTO survey VALUES (?, ?)", (plan.version, key))
                return
        if row["key"] != key:
            raise ConfigError(
                f"The key that annotators are hashed with is not the one that {self.path} was begun with: those who "
                "come back would be strangers. Put the old key back."
            )
        if row["version"] != plan.version:
            raise ConfigError(
                f"{self.path} holds answers about version {row['version']} of the plan, and the plan beside it is now "
                f"version {plan.version}; put the old plan back, or serve the new one from a folder of its own."
            )

    def close(self) -> None:
        self._keep.close()

    def _connect(self) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?mode=rw"  # a file that was taken away is not made anew, empty
        db = sqlite3.connect(address, uri=True, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False)
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA synchronous = FULL")
        return db

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(self._connect()) as db:
                yield db
        except sqlite3.Error as error:
            raise RunStopped(f"The database of answers, {self.path}, cannot be used any more ({error}).") from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    def _log(
        self, db: sqlite3.Connection, annotator: str, kind: str, question: str | None = None, detail: str | None = None
    ) -> None:
        db.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?)", (self._clock(), annotator, kind, question, detail))

    # --- people and places -----------------------------------------------------------------------------------

    def arrive(self, annotator: str, submission: str) -> Person:
        """Somebody opened their link: known from now on, and the same person whenever they come back."""
        with self._writing() as db:
            fresh = (annotator, submission, secrets.token_urlsafe(16), self._clock())
            db.execute(
                "INSERT INTO person (annotator, submission, resume, arrived) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                fresh,
            )
            # What was open when they left is not counted as time on that question.
            db.execute("UPDATE person SET viewing = NULL, since = NULL WHERE annotator = ?", (annotator,))
            self._log(db, annotator, "arrived")
            return _person(db, annotator)

    def person(self, annotator: str) -> Person | None:
        with self._reading() as db:
            row = db.execute("SELECT * FROM person WHERE annotator = ?", (annotator,)).fetchone()
        return None if row is None else _as_person(row)

    def resumed(self, token: str) -> Person | None:
        """Whose personal link this is."""
        with self._reading() as db:
            row = db.execute("SELECT annotator, submission FROM person WHERE resume = ?", (token,)).fetchone()
        return None if row is None else self.arrive(row["annotator"], row["submission"])

    def claim(self, annotator: str) -> Person:
        """Give a person a place on the emptiest form, if they have none and one is open: their `form` says which.
        One transaction, so that no form ever gets more people than it has places."""
        with self._writing() as db:
            person = _person(db, annotator)
            if person.form is None:
                self._reopen(db)
                held = self._held(db)
                form = min(self._forms, key=lambda name: held[name])
                if held[form] >= self._places:
                    self._log(db, annotator, "full")
                    return person
                db.execute("UPDATE person SET form = ?, held = 1 WHERE annotator = ?", (form, annotator))
                self._log(db, annotator, "placed", detail=form)
            self._touch(db, annotator)
            return _person(db, annotator)

    def has_room(self) -> bool:
        """Whether somebody new would get a place now."""
        with self._writing() as db:
            self._reopen(db)
            return min(self._held(db).values()) < self._places

    def withdraw(self, annotator: str) -> None:
        """A person stops for good: their place is open at once, their answers count no longer."""
        with self._writing() as db:
            db.execute(
                "UPDATE person SET withdrew = ?, held = 0, viewing = NULL WHERE annotator = ? AND withdrew IS NULL",
                (self._clock(), annotator),
            )
            self._log(db, annotator, "withdrew")
            self._promote(db)

    def _held(self, db: sqlite3.Connection) -> dict[str, int]:
        counts = dict(db.execute("SELECT form, count(*) FROM person WHERE held GROUP BY form").fetchall())
        return {form: counts.get(form, 0) for form in self._forms}

    def _reopen(self, db: sqlite3.Connection) -> None:
        """Take back the places of people who have not been seen for a time."""
        late = db.execute(
            "UPDATE person SET held = 0 WHERE held AND finished IS NULL AND seen < ? RETURNING annotator",
            (self._clock() - self._reopen_s,),
        ).fetchall()
        for row in late:
            self._log(db, row["annotator"], "lapsed")
        if late:
            self._promote(db)

    def _promote(self, db: sqlite3.Connection) -> None:
        """Whoever finished too late takes a place of their form that has come open again, before anybody new."""
        waiting = db.execute(
            "SELECT annotator FROM person WHERE NOT held AND finished NOT NULL AND withdrew IS NULL ORDER BY finished"
        ).fetchall()
        for row in waiting:
            self._take_back(db, row["annotator"])

    def _take_back(self, db: sqlite3.Connection, annotator: str) -> None:
        """A person whose place was taken back gets one of the same form again, if there is one."""
        person = _person(db, annotator)
        if person.form and not person.held and not person.withdrew and self._held(db)[person.form] < self._places:
            db.execute("UPDATE person SET held = 1 WHERE annotator = ?", (annotator,))
            self._log(db, annotator, "placed again", detail=person.form)

    def _touch(self, db: sqlite3.Connection, annotator: str) -> None:
        db.execute("UPDATE person SET seen = ? WHERE annotator = ?", (self._clock(), annotator))
        self._take_back(db, annotator)

    # --- questions and answers -------------------------------------------------------------------------------

    def view(self, annotator: str, question: str | None) -> None:
        """A person looks at this question now (None: at none), and so no longer at another."""
        with self._writing() as db:
            self._touch(db, annotator)
            self._look(db, annotator, question)

    def _look(self, db: sqlite3.Connection, annotator: str, question: str | None) -> None:
        now = self._clock()
        row = db.execute("SELECT viewing, since FROM person WHERE annotator = ?", (annotator,)).fetchone()
        if row["viewing"] is not None and row["viewing"] == question:
            return  # looked at again, or from a second tab: the time goes on
        if row["viewing"] is not None:
            db.execute(
                "UPDATE visit SET seconds = seconds + ? WHERE annotator = ? AND question = ?",
                (max(0.0, now - row["since"]), annotator, row["viewing"]),
            )
        if question is not None:
            db.execute(
                "INSERT INTO visit (annotator, question, started) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (annotator, question, now),
            )
        db.execute("UPDATE person SET viewing = ?, since = ? WHERE annotator = ?", (question, now, annotator))

    def pictured(self, annotator: str, question: str) -> None:
        """The question's image was sent to this person's browser."""
        with self._writing() as db:
            db.execute(
                "INSERT INTO visit (annotator, question, started, pictured) VALUES (?, ?, ?, 1) "
                "ON CONFLICT DO UPDATE SET pictured = 1",
                (annotator, question, self._clock()),
            )

    def not_pictured(self, annotator: str, question: str, detail: str) -> None:
        """The question's image could not be sent or shown, or the person says so."""
        with self._writing() as db:
            self._log(db, annotator, "no image", question, detail)
            db.execute("UPDATE visit SET pictured = 0 WHERE annotator = ? AND question = ?", (annotator, question))

    def is_pictured(self, annotator: str, question: str) -> bool:
        with self._reading() as db:
            row = db.execute(
                "SELECT pictured FROM visit WHERE annotator = ? AND question = ?", (annotator, question)
            ).fetchone()
        return row is not None and bool(row["pictured"])

    def answer(self, annotator: str, question: str, answer: Answer, order: str) -> bool:
        """Keep an answer, in place of an earlier one to the same question; every one stays in the log. False once
        the person has finished or withdrawn: then it is in the log alone."""
        detail = f"{answer.choice} {answer.difficulty or '-'} {answer.justification}"
        with self._writing() as db:
            person = _person(db, annotator)
            if person.finished or person.withdrew:
                self._log(db, annotator, "answered too late", question, detail)
                return False
            self._log(db, annotator, "answered", question, detail)
            self._touch(db, annotator)
            self._look(db, annotator, question)
            self._look(db, annotator, None)
            db.execute(
                "INSERT OR REPLACE INTO answer SELECT annotator, question, ?, ?, ?, ?, seconds, ? FROM visit "
                "WHERE annotator = ? AND question = ?",
                (
                    answer.choice,
                    answer.difficulty,
                    answer.justification,
                    order,
                    self._clock(),
                    annotator,
                    question,
                ),
            )
            return True

    def answers(self, annotator: str) -> dict[str, Given]:
        """A person's answers by question."""
        with self._reading() as db:
            rows = db.execute(
                "SELECT answer.*, started FROM answer JOIN visit USING (annotator, question) WHERE annotator = ?",
                (annotator,),
            ).fetchall()
        return {row["question"]: _given(row) for row in rows}

    def finish(self, annotator: str, questions: tuple[str, ...]) -> bool:
        """A person hands in their form. False, and nothing is changed, while one of its questions is unanswered."""
        with self._writing() as db:
            person = _person(db, annotator)
            rows = db.execute("SELECT question FROM answer WHERE annotator = ?", (annotator,)).fetchall()
            if person.withdrew or set(questions) - {row["question"] for row in rows}:
                return False
            if person.finished is None:
                self._touch(db, annotator)
                self._look(db, annotator, None)
                db.execute("UPDATE person SET finished = ? WHERE annotator = ?", (self._clock(), annotator))
                self._log(db, annotator, "finished")
            return True

    # --- the whole -------------------------------------------------------------------------------------------

    def people(self) -> list[Person]:
        """Everybody who was ever given a place, in order of arrival."""
        with self._writing() as db:
            self._reopen(db)
            rows = db.execute("SELECT * FROM person WHERE form NOT NULL ORDER BY arrived, annotator").fetchall()
        return [_as_person(row) for row in rows]

    def events(self, kind: str) -> list[tuple[str, str | None, str | None]]:
        """Annotator, question and detail of each event of a kind, in order."""
        with self._reading() as db:
            rows = db.execute(
                "SELECT annotator, question, detail FROM event WHERE kind = ? ORDER BY rowid", (kind,)
            ).fetchall()
        return [tuple(row) for row in rows]


def _person(db: sqlite3.Connection, annotator: str) -> Person:
    return _as_person(db.execute("SELECT * FROM person WHERE annotator = ?", (annotator,)).fetchone())


def _as_person(row: sqlite3.Row) -> Person:
    return Person(
        annotator=row["annotator"],
        submission=row["submission"],
        resume=row["resume"],
        form=row["form"],
        held=bool(row["held"]),
        finished=row["finished"],
        withdrew=row["withdrew"],
    )


def _given(row: sqlite3.Row) -> Given:
    answer = Answer(row["choice"], row["difficulty"], row["justification"])
    return Given(answer, row["shown_order"], row["seconds"], row["started"], row["submitted"])
