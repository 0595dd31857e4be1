"""The command `vpref`: picks the verb, and turns every failure into one sentence and an exit code.

Loads nothing heavy itself: `vpref --help` costs an interpreter's start.
"""

from __future__ import annotations

import difflib
import gc
import os
import re
import signal
import sys
from pathlib import Path
from typing import NoReturn

from vpref import __version__, interrupts
from vpref.errors import ConfigError, Ended, VprefError
from vpref.redaction import redact

VERBS = {
    "generate": "images in, benchmark items out: generator -> reviewer -> revisor -> responder",
    "boxes": "images in, lettered boxes out: the first stage of variant=boxes, alone",
    "evaluate": "items in, one model's responses and accuracy out",
    "import": "a dataset in the reference implementation's JSON, made ready for evaluate",
    "report": "tables over evaluation runs: vpref report outputs/evaluate/*",
    "compare": "two evaluations, and the items that changed between them: vpref compare A B",
    "survey": "human ground truth: items in, forms, votes and majority letters out: vpref survey plan",
    "sync": "offline runs to Weights & Biases, from wherever their folders are now: vpref sync outputs/*/*",
    "workspace": "the panels of a Weights & Biases project, laid out once: vpref workspace entity=TEAM",
    "demo": "all of it on shipped photos against the built-in simulator; no key, no GPU",
    "simulate": "the simulator alone: an OpenAI-compatible server that makes things up",
    "status": "how runs, or a sweep's jobs, stand: vpref status outputs/generate/TIME",
    "resume": "go on with an interrupted run, or a sweep's unfinished jobs: vpref resume outputs/generate/TIME",
}

SURVEY_STEPS = {
    "plan": "a dataset in, the forms of a survey out; every later step is held against the plan",
    "export": "the forms for Google Forms, and studies for Prolific, as files; nothing is sent",
    "upload": "the exported forms made in a Google account, by its API",
    "fetch": "the responses to uploaded forms, as files for import",
    "serve": "the survey as web pages on this machine, until Ctrl-C",
    "import": "answers from Google Forms or Prolific, or our own JSONL, in; votes out",
    "simulate": "a rehearsal: made-up annotators answer the plan",
    "aggregate": "votes in; majority letters, a labelled dataset, agreement and difficulty out",
}

HELP = f"""vpref {__version__}: a benchmark of dynamic human preferences for vision language models.

usage: vpref VERB [key=value ...] [group=option ...]

{chr(10).join(f"  {verb:10}{what}" for verb, what in VERBS.items())}

A first run, without a key:       vpref demo
On your photos, with a key:       vpref generate data.root=my_photos model@pipeline.model=gpt-5-mini
A model's accuracy on them:       vpref evaluate dataset=outputs/generate/TIME model@evaluated=gpt-4.1
A sweep (one run a value):        vpref generate -m pipeline.max_revisions=0,1,2,4
Before you spend:                 preview=3 shows three items in full, dry_run=true estimates the cost

vpref VERB --help shows every setting and option. Runs are kept in outputs/VERB/TIME/, and nothing that
was answered once is asked for again: give the same command to go on after an interruption.
"""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line; always ends in sys.exit: 0 done, 1 failed, 2 a mistake in what was given,
    128 + n ended by signal n."""
    given = sys.argv[1:] if arguments is None else arguments
    sys.exit(_run(given))


def _run(given: list[str]) -> int:
    if not given or given[0] in ("-h", "--help", "help"):
        print(HELP, end="")
        return 0
    if given[0] in ("-V", "--version", "version"):
        print(__version__)
        return 0
    with interrupts.watched():
        return _attempt(given)


def _attempt(given: list[str]) -> int:
    try:
        interrupts.heed()
        verb, rest = _verb(given)
        _start(verb, rest)
    except KeyboardInterrupt as stop:
        _complain(str(stop) or "Interrupted; give the same command again to go on from here.")
        return 128 + (interrupts.noted() or signal.SIGINT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # `vpref ... | head` is no failure
        return 0
    except Ended as end:
        _complain(str(end.error))
        return end.error.exit_code
    except VprefError as error:
        _complain(str(error))
        return error.exit_code
    except Exception as error:
        from vpref.runs.mistakes import config_mistake

        sentence = config_mistake(error)
        if sentence is None and isinstance(error, OSError) and error.filename:
            sentence = f"Cannot use {error.filename} ({error.strerror or error}); runs are kept below outputs=DIR."
        if sentence is None:
            raise
        _complain(sentence)
        return 2
    return 0


def _verb(given: list[str]) -> tuple[str, list[str]]:
    verb, rest = given[0], given[1:]
    if verb not in VERBS:
        raise ConfigError(f"There is no verb {verb!r}; {_choose(verb, VERBS)}")
    if verb == "survey":
        verb, rest = _survey_step(rest)
    if "--help" in rest or "-h" in rest:
        from vpref.runs.manual import manual

        print(manual(verb), end="")
        raise SystemExit(0)
    if verb == "resume":
        return _resumed(rest)
    if verb in _POSITIONAL:
        return verb, _positional(rest, _POSITIONAL[verb])
    sweeping = [one for one in rest if one in ("-m", "--multirun")]  # Hydra's parser loses what follows a late one
    return verb, sweeping + [_as_hydra_wants(one) for one in rest if one not in sweeping]


_TEXTS = ("title", "contact", "introduction", "completion_code", "completion_url")
"""Settings whose values are for people or addresses: their commas, brackets and equals signs mean nothing."""

_PATHS = ("dataset", "truth", "items", "plan", "data.root", "outputs", "store.root")
"""Settings whose value is a path, which may hold such signs: a job's folder is named after its overrides."""


def _as_hydra_wants(override: str) -> str:
    """What people write and Hydra's grammar has no word for: an option of a group that is a number, the
    place of a model left empty, a path that is there, and plain text."""
    name, _, value = override.partition("=")
    if name == "category":
        return f"{name}=" + re.sub(r"\b(\d+)\b", r"'\1'", value)
    if name.startswith("model@") and value == "null":
        return f"~{name}"
    if name in _PATHS and re.search(r"[=,(){}\[\]: ]", value) and Path(value).exists():
        return f"{name}={_quoted(value)}"
    if name in _TEXTS and value != "null" and value[:1] not in ("", "'", '"'):
        return f"{name}={_quoted(value)}"
    return override


def _survey_step(rest: list[str]) -> tuple[str, list[str]]:
    """`survey plan ...` is the verb `survey_plan`."""
    step = rest[0] if rest else ""
    if step in ("-h", "--help"):
        print(_SURVEY_HELP, end="")
        raise SystemExit(0)
    if step not in SURVEY_STEPS:
        what = f"There is no step {step!r} of a survey;" if step else "Which step of a survey?"
        raise ConfigError(f"{what} {_choose(step, SURVEY_STEPS)} See vpref survey --help.")
    return f"survey_{step}", rest[1:]


_SURVEY_HELP = f"""The steps of a survey, from items to ground truth:

{chr(10).join(f"  {step:10}{what}" for step, what in SURVEY_STEPS.items())}

usage: vpref survey STEP [key=value ...]; vpref survey STEP --help shows every setting of it.
"""

_POSITIONAL = {
    "report": "runs",
    "compare": "runs",
    "sync": "runs",
    "survey_import": "answers",
    "survey_aggregate": "votes",
}
"""The verbs that take paths without a key, and which setting these are."""


def _choose(given: str, known: dict[str, str]) -> str:
    near = difflib.get_close_matches(given, known, n=1)
    return f"choose from {', '.join(known)}." + (f" Did you mean {near[0]}?" if near else "")


def _positional(rest: list[str], setting: str) -> list[str]:
    """`report A B` means `report runs=[A,B]`; quoted, since a path may hold what Hydra's grammar takes for its own."""
    paths = [one for one in rest if not one.startswith("-") and ("=" not in one or Path(one).exists())]
    others = [_as_hydra_wants(_as_list(one)) for one in rest if one not in paths]
    return [*others, f"{setting}=[{','.join(map(_in_quotes, paths))}]"] if paths else others


def _as_list(override: str) -> str:
    """One file of Prolific's, where a list of them is wanted."""
    name, _, value = override.partition("=")
    return override if name != "prolific" or value.startswith("[") else f"{name}=[{_in_quotes(value)}]"


def _in_quotes(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _resumed(rest: list[str]) -> tuple[str, list[str]]:
    from vpref.runs.folder import read_json

    if not rest:
        raise ConfigError("Resume which run? Give its folder: vpref resume outputs/generate/TIME")
    folder = Path(rest[0])
    if (folder / "sweep.json").exists():
        return _resumed_sweep(folder, rest[1:])
    manifest = read_json(folder / "manifest.json")
    if str(manifest.get("verb")).startswith("survey_"):
        raise ConfigError("The steps of a survey are not resumed; what is missing, the same command makes again.")
    if manifest.get("verb") not in VERBS or not isinstance(manifest.get("command"), list):
        raise ConfigError(f"{folder / 'manifest.json'} is no manifest of ours.")
    return manifest["verb"], [*manifest["command"], *rest[1:], f"hydra.run.dir={_quoted(folder)}"]


def _resumed_sweep(folder: Path, more: list[str]) -> tuple[str, list[str]]:
    """The same command in the same folder: what the plan there says is done already is not done again."""
    from vpref.runs.sweeps import read_plan

    changed = [one for one in more if not one.startswith(("hydra/launcher=", "hydra.launcher."))]
    if changed:
        raise ConfigError(
            f"A sweep goes on as it was planned; its launcher (hydra/launcher=...) alone can change, not {changed[0]}."
        )
    plan = read_plan(folder)
    kept = [one for one in plan.command if not one.startswith("hydra.sweep.dir=")]
    if any(one.startswith("hydra/launcher=") for one in more):
        kept = [one for one in kept if not one.startswith(("hydra/launcher=", "hydra.launcher."))]
    return plan.verb, [*kept, *more, f"hydra.sweep.dir={_quoted(folder)}"]


def _quoted(path: Path | str) -> str:
    return "'" + str(path).replace("\\", "\\\\").replace("'", "\\'") + "'"


def _start(verb: str, rest: list[str]) -> None:
    gc.set_threshold(50_000)  # imports and composing make much and drop little: collecting meanwhile costs 0.3 s
    if verb == "status":
        from vpref.runs.sweep_table import status

        status(rest)
        return
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # errors reach us instead of being printed and lost
    sys.argv = [f"vpref {verb}", *rest]
    from vpref.runs import mains

    mains.MAINS[verb]()


def _complain(sentence: str) -> None:
    print(f"vpref: {redact(' '.join(sentence.split()))}", file=sys.stderr, flush=True)
