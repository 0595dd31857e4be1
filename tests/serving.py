"""`vpref survey serve` as a process of its own, for tests that answer over HTTP or in a browser."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.commands import start
from tests.surveys import dataset, generic_items, plan_survey
from vpref.domain import Plan

PLENTY_S = 120


@dataclass
class Served:
    """A running survey."""

    survey: Path
    address: str
    listening: str
    token: str
    greeting: list[str]
    process: subprocess.Popen[str]

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """End it: exit code, and what it printed since the greeting."""
        self.process.send_signal(number)
        out, errors = self.process.communicate(timeout=PLENTY_S)
        return self.process.returncode, out, errors


@contextmanager
def served(survey: Path, *settings: str, **environment: str) -> Iterator[Served]:
    """The survey's pages on a free port until the context ends, or `stop` was called."""
    given = settings if any(one.startswith("port=") for one in settings) else (*settings, "port=0")
    process = start("survey", "serve", f"survey={survey}", *given, cwd=survey.parents[2], **environment)
    try:
        assert process.stdout is not None
        greeting: list[str] = []
        while not (greeting and greeting[-1].startswith("its token:")):
            line = process.stdout.readline()
            assert line, (greeting, process.stderr and process.stderr.read())
            greeting.append(line.rstrip("\n"))
        said = dict(line.split(": ", 1) for line in greeting)
        address = said["for annotators"].strip()
        yield Served(
            survey, address, said.get("listens at", address).strip(), said["its token"].strip(), greeting, process
        )
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=PLENTY_S)


def planned(folder: Path, *settings: str, plain: int = 2, boxes: int = 0) -> Path:
    """The folder of a survey planned over small made-up items."""
    folder.mkdir(parents=True, exist_ok=True)
    return plan_survey(folder, f"dataset={dataset(folder / 'data', generic_items(plain, boxes))}", *settings)


def plan_of(survey: Path) -> Plan:
    return Plan.model_validate_json((survey / "plan.json").read_text())


def votes_of(survey: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (survey / "votes.jsonl").read_text().splitlines()]


def reply_to(question: str) -> dict[str, str]:
    """An answer that follows from the question alone, so that it can be looked for."""
    letter = "abcd"[sum(question.encode()) % 4]
    return {
        "choice": letter,
        "difficulty": str(1 + sum(question.encode()) % 5),
        "justification": f"“{question}” ß😀",
    }
