"""What the simulator says: which role a request wants it to play, and that role's reply.

A pure function of the request and the profile. It refuses to know HTTP, time, and earlier requests.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

from vpref.domain import LETTERS, Category, Choices, Dependence, Draft, Letter, Role, Typicality
from vpref.settings import FaultSettings, SimulatorSettings
from vpref.simulator import bank, names, objects
from vpref.simulator.bank import category_of
from vpref.simulator.dice import dice, draw
from vpref.simulator.shapes import instance, malformed, resolve
from vpref.simulator.wire import Asked, Form, Said

FORMS = {
    "draft": (Role.GENERATOR, {"scene", "preference", "question", "choices"}),
    "review": (Role.REVIEWER, {"analysis", "issue"}),
    "revision": (Role.REVISOR, {"proposed_fix", "draft"}),
    "answer": (Role.RESPONDER, {"answer"}),
    "naming": (Role.MAPPER, {"analysis", "names"}),
    "extraction": (Role.EXTRACTOR, {"letter"}),
    "choice": (Role.EVALUATED, {"answer"}),
}
SHOWN = re.compile(
    r"(?:^Scene: (?P<scene>.*)\n+)?(?:^Preference: (?P<preference>.*)\n+)?^Question: (?P<question>.*)\n+"
    r"^a\) (?P<a>.*)\n+^b\) (?P<b>.*)\n+^c\) (?P<c>.*)\n+^d\) (?P<d>.*)",
    re.MULTILINE,
)
EARLIER = re.compile(r"^My preference: (.*)$", re.MULTILINE)
TOOLBOX = re.compile(r"^These objects of the image can be referred to:\n+((?:- .+\n?)+)", re.MULTILINE)
BOXES = re.compile(r"^The boxes:\s*(?=\{)", re.MULTILINE)
ANALYSES = {
    "wrong_scene_description": "The scene mentions something that cannot be found in the picture.",
    "poor_preference_construction": "It is hard to tell what the preference asks for in this picture.",
    "no_correct_choices": "None of the four actions follows from the preference.",
    "multiple_correct_choices": "Two of the four actions would satisfy the preference.",
    "low_image_dependency": "The right action can be told from the words alone, without the picture.",
    "non_actionable": "One of the choices is a remark, not something that can be done.",
}
REFUSAL = "I'm sorry, but I can't help with that."
UNMATCHED = (
    "It is hard to say without knowing more.",
    "None of these seem right to me.",
    "Everything shown here could be useful.",
    "I would ask the user first.",
)


def role_of(form: Form | None) -> Role | None:
    """The role that the reply's form tells; None where the form is not one of vpref's."""
    if form is None:
        return Role.EVALUATED
    role, fields = FORMS.get(form.name, (None, set()))
    return role if fields == set(form.schema.get("properties", ())) else None


def content_fault(asked: Asked, faults: FaultSettings) -> str | None:
    """How the reply is spoilt; each time the same for the same content."""
    shares = {name: getattr(faults, name) for name in ("refusal", "cut", "malformed", "empty")}
    fault = draw(shares, dice(asked.digest, "content fault").random())
    return None if fault == "malformed" and asked.form is None else fault


def reply(asked: Asked, settings: SimulatorSettings) -> Said:
    """What is said to this request under this profile."""
    fault = content_fault(asked, settings.faults)
    if fault == "refusal":
        return Said(REFUSAL, "refusal")
    if fault == "empty":
        return Said("")
    text: str
    if asked.options:
        text = _answered(asked, settings)
    elif asked.form is None:
        text = _evaluated(asked, settings)
    else:
        value = _value(asked, asked.form, settings)
        text = _malformed(asked, asked.form, value) if fault == "malformed" else json.dumps(value)
        text = _unforced(text, dice(asked.digest, "wrapping")) if asked.form.told else text
    return Said(text[: len(text) // 2], "length") if fault == "cut" else Said(text)


def _malformed(asked: Asked, form: Form, value: Any) -> str:
    more = names.broken(value) if role_of(form) is Role.MAPPER else objects.broken(value)
    return malformed(value, dice(asked.digest, "malformed"), more)


def _unforced(text: str, rng: random.Random) -> str:
    """JSON as models write it that no server holds to the form."""
    fenced = f"```json\n{text}\n```"
    lead = "Here is the JSON you asked for:\n\n"
    return rng.choice((text, fenced, lead + text, lead + fenced))


def _value(asked: Asked, form: Form, settings: SimulatorSettings) -> Any:
    rng = dice(asked.digest, "reply")
    match role_of(form):
        case Role.GENERATOR:
            # Other samples of one slot differ in their key alone, and deserve another draft.
            return _fresh(asked.text, rng, dice(asked.digest, asked.key, "draft")).model_dump()
        case Role.REVIEWER:
            return _review(form, settings, rng)
        case Role.REVISOR:
            return _revision(asked.text, settings, rng)
        case Role.RESPONDER:
            item = shown(asked.text)
            return {"answer": objects.likeliest(item) if item else rng.choice(LETTERS)}
        case Role.EVALUATED:
            return {"answer": _answered(asked, settings)}
        case Role.MAPPER:
            return names.naming(_classes(asked.text, form), asked.digest)
        case Role.EXTRACTOR:
            return {"letter": _meant(asked.text)}
        case _:
            return instance(form.schema, form.schema, rng)


# --- what prompts tell -----------------------------------------------------------------------------------


def shown(text: str) -> Draft | None:
    """The last item shown in a prompt; earlier ones are worked examples. A field left out is empty."""
    blocks = list(SHOWN.finditer(text))
    if not blocks:
        return None
    said = {name: (value or "").strip() for name, value in blocks[-1].groupdict().items()}
    choices = Choices(**{letter: said.pop(letter) for letter in LETTERS})
    if not said["preference"] and (told := EARLIER.search(text)):
        said["preference"] = told[1].strip()
    return Draft(choices=choices, **said)


def _category(text: str, rng: random.Random) -> Category:
    typicality = re.findall(r"Preference type: (typical|atypical)\b", text)
    # Every item with boxes depends on its image, so their prompts name the kind of preference alone.
    dependence = ["low"] if _toolbox(text) else re.findall(r"Image dependence: (low|high)\b", text)
    if typicality and dependence:
        return category_of(Typicality(typicality[-1]), Dependence(dependence[-1]))
    return rng.choice(list(Category))


def _toolbox(text: str) -> tuple[str, ...]:
    """The objects that a draft may name; none in the `plain` variant."""
    lists = TOOLBOX.findall(text)
    return tuple(line[2:].strip() for line in lists[-1].splitlines()) if lists else ()


def _classes(text: str, form: Form) -> dict[str, str]:
    """The class of each letter that a name is asked for."""
    letters = resolve(form.schema["properties"]["names"], form.schema).get("properties", ())
    try:
        given = json.JSONDecoder().raw_decode(text, list(BOXES.finditer(text))[-1].end())[0]
    except (IndexError, ValueError):
        given = {}
    return {letter: str(given.get(letter, "object")) for letter in letters}


# --- roles -----------------------------------------------------------------------------------------------


def _fresh(text: str, brief: random.Random, rng: random.Random) -> Draft:
    """A draft by the prompt's terms; `brief` settles what they leave open."""
    category, toolbox = _category(text, brief), _toolbox(text)
    return objects.compose(category.typicality, toolbox, rng) if toolbox else bank.compose(category, rng)


def _review(form: Form, settings: SimulatorSettings, rng: random.Random) -> dict[str, str]:
    allowed = resolve(form.schema["properties"]["issue"], form.schema).get("enum", ())
    issue = draw({name: share for name, share in settings.issues.items() if name in allowed}, rng.random())
    if issue is None:
        return {"analysis": "Scene, preference and choices fit together, and one choice is right.", "issue": "none"}
    return {"analysis": ANALYSES.get(issue, f"The draft suffers from {issue.replace('_', ' ')}."), "issue": issue}


def _revision(text: str, settings: SimulatorSettings, rng: random.Random) -> dict[str, Any]:
    item = shown(text)
    draft = objects.recompose(item, _toolbox(text), rng) if item else _fresh(text, rng, rng)
    # The issue named last is the one at hand: a list of possible ones would precede it.
    issue = max({*ANALYSES, *settings.issues}, key=lambda name: (text.rfind(name), name))
    named = issue if issue in text else "the issue"
    return {"proposed_fix": f"Reword the draft so that {named} no longer applies.", "draft": draft.model_dump()}


def _evaluated(asked: Asked, settings: SimulatorSettings) -> str:
    rng = dice(asked.digest, "style")
    if rng.random() < settings.unmatched:
        return rng.choice(UNMATCHED)
    item = shown(asked.text)
    letter = _answered(asked, settings)
    return letter.upper() if item is None else rng.choice(_wordings(letter, item.choices[letter]))


def _answered(asked: Asked, settings: SimulatorSettings) -> Letter:
    item = shown(asked.text)
    if item is None:
        return dice(asked.digest, "blind").choice(LETTERS)
    # At a temperature above 0 samples of one prompt differ; they do so in their key alone.
    sample = asked.key if asked.body.get("temperature") else ""
    if dice(asked.model, item.model_dump_json(), sample, "bias").random() < settings.letter_bias:
        return "a"
    return _choice(asked.model, item, settings, sees=asked.image_tokens > 0, sample=sample)


def _choice(model: str, item: Draft, settings: SimulatorSettings, sees: bool, sample: str = "") -> Letter:
    """The letter this model chooses: the same for one item however the question is put."""
    known, right = objects.recognise(item) or bank.recognise(item), objects.likeliest(item)
    # A foreign item tells no category, so it is met with the profile's average skill.
    skill = settings.accuracy[known.category] if known else sum(settings.accuracy) / 4
    if known and known.category.dependence is Dependence.HIGH and not sees:
        skill = 0.25  # one cannot see where things are
    rng = dice(model, item.model_dump_json(), sample, "choice")
    if rng.random() < skill + settings.skills.get(model, 0.0):
        return right
    return rng.choice([letter for letter in LETTERS if letter != right])


def _meant(text: str) -> str:
    """The choice most of whose words are in the quoted output, or `none`."""
    question, _, output = text.rpartition("What the model said:")
    said = set(re.findall(r"\w+", output.lower()))
    shares = {}
    for letter, choice in re.findall(r"^([a-d])\) (.*)$", question, re.MULTILINE):
        words = set(re.findall(r"\w+", choice.lower()))
        shares[letter] = len(words & said) / max(1, len(words))
    clear = [letter for letter, share in shares.items() if share >= 0.8]
    return clear[0] if len(clear) == 1 else "none"


def _wordings(letter: Letter, choice: str) -> tuple[str, ...]:
    upper = letter.upper()
    return (
        upper,
        f"({letter})",
        f"{letter}.",
        f"Answer: {upper}",
        f"**{upper}**",
        f"The answer is {letter}) {choice}",
        choice,
        f"The stated preference rules out the other options, so one remains.\n\nAnswer: {upper}",
        json.dumps({"answer": letter}),
    )
