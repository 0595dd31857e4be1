"""`vpref VERB --help`: the verb's configs as they are written, comments and all. Loads nothing heavy."""

from __future__ import annotations

import re
from importlib.resources import files
from importlib.resources.abc import Traversable

EXAMPLES = {
    "generate": (
        "vpref generate data.root=my_photos model@pipeline.model=gpt-5-mini",
        "vpref generate model@pipeline.model=simulator profile@simulator=faulty",
        "vpref generate model@pipeline.reviewer=gpt-4.1 pipeline.max_revisions=2 category=2",
        "vpref generate data.root=my_photos variant=boxes",
        "vpref generate -m pipeline.max_revisions=0,1,2,4",
    ),
    "evaluate": (
        "vpref evaluate dataset=outputs/generate/TIME model@evaluated=gpt-4.1",
        "vpref evaluate -m dataset=outputs/generate/TIME model@evaluated=gpt-4.1,gpt-5-mini",
        "vpref evaluate dataset=outputs/generate/TIME model@evaluated=smolvlm-256m model@extractor=null",
        "vpref evaluate dataset=outputs/generate/TIME model@evaluated=compatible model@extractor=null \\\n"
        "      evaluated.base_url=http://localhost:8000/v1 evaluated.name=my-model",
    ),
    "boxes": (
        "vpref boxes data.root=my_photos model@mapper=gpt-5-mini",
        "vpref boxes detection=file model@mapper=simulator",
    ),
    "import": ("vpref import items=items.json data.root=images",),
    "report": ("vpref report outputs/evaluate/*", "vpref report outputs/evaluate/TIME counts=paper"),
    "compare": ("vpref compare outputs/evaluate/TIME outputs/evaluate/TIME",),
    "sync": ("vpref sync outputs/generate/TIME outputs/evaluate/*", "vpref sync copied_runs dry_run=true"),
    "workspace": ("vpref workspace entity=my-team", "vpref workspace entity=my-team dry_run=true"),
    "simulate": (
        "vpref simulate simulator.port=8000 profile@simulator=faulty",
        "vpref simulate simulator.service=gemini",
    ),
    "survey_plan": (
        "vpref survey plan dataset=outputs/generate/TIME",
        "vpref survey plan dataset=outputs/generate/TIME places=7 checks=1 per_form=10",
        "vpref survey plan dataset=outputs/generate/TIME undecided=outputs/survey_aggregate/TIME places=2",
    ),
    "survey_export": (
        "vpref survey export survey=outputs/survey/TIME image_url=https://my.server/images completion_code=C1AB2CD3",
    ),
    "survey_upload": ("vpref survey upload export=outputs/survey_export/TIME",),
    "survey_fetch": ("vpref survey fetch export=outputs/survey_export/TIME",),
    "survey_serve": (
        "vpref survey serve survey=outputs/survey/TIME",
        "vpref survey serve survey=outputs/survey/TIME url=https://survey.example.org \\\n"
        "      completion_url='https://app.prolific.com/submissions/complete?cc=CODE'",
    ),
    "survey_import": (
        "vpref survey import survey=outputs/survey/TIME answers.csv prolific=prolific_export.csv",
        "vpref survey import survey=outputs/survey/TIME answers_1.csv answers_2.csv timezone=Europe/Berlin",
    ),
    "survey_simulate": (
        "vpref survey simulate survey=outputs/survey/TIME",
        "vpref survey simulate survey=outputs/survey/TIME url=http://127.0.0.1:8000",
    ),
    "survey_aggregate": (
        "vpref survey aggregate survey=outputs/survey/TIME",
        "vpref survey aggregate survey=outputs/survey/TIME outputs/survey_import/TIME",
    ),
    "demo": ("vpref demo", "vpref demo data.root=my_photos"),
    "status": ("vpref status outputs/generate/TIME", "vpref status outputs/evaluate"),
    "resume": ("vpref resume outputs/generate/TIME",),
}


def manual(verb: str) -> str:
    """The help text of a verb."""
    parts = ["Examples:\n" + "\n".join(f"  {line}" for line in EXAMPLES[verb])]
    conf = files("vpref.conf")
    if verb not in ("resume", "status"):
        text = (conf / f"{'generate' if verb == 'demo' else verb}.yaml").read_text(encoding="utf-8")
        groups = re.findall(r"^  - ([a-z]+)(?:@([a-z.]+))?: (\S+)", text, re.MULTILINE)
        if groups:
            parts.append("Groups, turned as group=option or group@place=option:\n" + _groups(conf, groups))
        parts.append("Settings, turned as key=value:\n\n" + _indented(text.partition("\n\n")[2]))
        chosen = [group for group in groups if group[2] != "null"]
        parts += [f"  {place or group}:" + _option(conf, group, option) for group, place, option in chosen]
        if "  - base\n" in text:
            parts.append(_indented((conf / "base.yaml").read_text(encoding="utf-8")))
        name = verb.replace("_", " ")
        parts.append(f"Hydra's own options (--cfg job: the composed config, -m: a sweep): vpref {name} --hydra-help")
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _groups(conf: Traversable, groups: list[tuple[str, str, str]]) -> str:
    lines = []
    for group in dict.fromkeys(group for group, _, _ in groups):
        places = [place for name, place, _ in groups if name == group and place]
        lines.append(f"\n  {group}" + (f", at {', '.join(places)}" if places else ""))
        for option in sorted(entry.name for entry in (conf / group).iterdir() if entry.name.endswith(".yaml")):
            about = _about((conf / group / option).read_text(encoding="utf-8"))
            lines.append(f"    {option.removesuffix('.yaml'):16}{about}")
    return "\n".join(lines)


def _about(text: str) -> str:
    """A config's first comment that is not for Hydra."""
    comments = (line[2:] for line in text.splitlines() if line.startswith("# ") and "@package" not in line)
    return next(comments, "")


def _option(conf: Traversable, group: str, option: str) -> str:
    text = (conf / group / f"{option}.yaml").read_text(encoding="utf-8")
    return f"    # as in {group}={option}\n" + _indented(text, 4)


def _indented(text: str, by: int = 2) -> str:
    kept = (line for line in text.splitlines() if not line.startswith("# @package"))
    return "\n".join(" " * by + line if line else "" for line in kept)
