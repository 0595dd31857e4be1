"""The simulator's imagination for the `boxes` variant: what people want done to things, whatever the things are.

Its drafts act on objects of a toolbox, named in tags. From a draft's text alone it finds the category and the
right choice again, by what is done and not by what it is done to, so that tags and box letters read alike. It
refuses to know requests, models and settings, and writes nothing that names an object outside tags where it can
help it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from vpref.domain import LETTERS, Category, Choices, Dependence, Draft, Letter, Typicality
from vpref.simulator import bank
from vpref.simulator.bank import DETAILS, ENDINGS, WISHES, category_of, plain

T = TypeVar("T")

# `+` typical and `-` atypical: a wish, then actions that grant it, `{}` for the object. A wish is in no other wish,
# an action in no other action, and no everyday object that a detector might find is in any.
TABLE = """
+ surfaces wiped clean | Wipe the {} clean | Rub the marks off the {} | Clean the {} with warm water
+ things within easy reach | Bring the {} within reach | Fetch the {} closer | Place the {} where a hand gets to it
+ things well away from the edge | Pull the {} back from the edge | Shift the {} further in | Save the {} from falling
+ things lined up straight | Straighten the {} | Align the {} with its surroundings | Square up the {}
+ things protected from dust | Cover the {} against dust | Shield the {} from dust | Put a dust cover over the {}
+ repairs done before anything breaks | Check the {} for damage | Tighten what is loose on the {} | Mend the {}
+ things labelled with their owner | Label the {} with a surname | Write the owner on the {} | Sign the {} underneath
+ a clear way through | Move the {} out of the way | Clear the {} from the passage | Push the {} to one side
+ bright light to see by | Shine a light on the {} | Brighten the space around the {} | Light up the {}
+ things sheltered from the sun | Carry the {} into the shade | Shade the {} | Keep the sun off the {}
+ a record kept of everything | Photograph the {} for the records | Add the {} to the inventory | List the {}
+ advice asked before buying | Ask the shop about the {} | Compare prices for the {} | Read reviews of the {}

- things turned upside down | Turn the {} upside down | Flip the {} over | Set the {} on its head
- things hidden from view | Hide the {} from view | Tuck the {} out of sight | Conceal the {}
- things facing the wall | Rotate the {} to the wall | Make the {} face the wall | Show the back of the {}
- things standing at odd angles | Tilt the {} | Lean the {} at an odd angle | Slant the {}
- things wrapped in newspaper | Wrap the {} in newspaper | Roll newspaper around the {} | Pack the {} in newsprint
- string wound around things | Wind a string around the {} | Knot some string onto the {} | Loop string about the {}
- things given pet names | Give the {} a pet name | Christen the {} | Find a nickname for the {}
- things greeted aloud | Say good morning to the {} | Greet the {} aloud | Wish the {} a pleasant day
- things sniffed before use | Sniff the {} | Smell the {} all over | Breathe in the scent of the {}
- three knocks for luck | Knock three times on the {} | Tap the {} thrice | Rap on the {} for luck
- things measured in thumbs | Measure the {} in thumbs | Count the thumbs along the {} | Lay thumbs along the {}
- things circled before they are used | Walk once around the {} | Circle the {} | March a lap about the {}
"""

SCENES = (
    "A few everyday things share a small space",
    "Several things have been left as they were last used",
    "Some belongings stand close to each other",
    "A handful of different things can be seen",
    "The view takes in a few ordinary things",
    "Things rest where somebody put them down",
)
QUESTIONS = (
    "What should be done?",
    "What should happen next?",
    "What would suit me best here?",
    "How can you help me with this?",
    "What should I do first?",
    "Which step comes next?",
)
INACTION = "Make no changes"
INACTION_SHARE = 0.3
TAG = re.compile(r"<object>(.*?)</object>")
MENTION = re.compile(rf"{TAG.pattern}|\bobject in bounding box [A-Z]\b")


@dataclass(frozen=True, slots=True)
class Habit:
    """One wish somebody may have of any object, and the actions that grant it."""

    typicality: Typicality
    wish: str
    acts: tuple[str, ...]

    def granted_by(self, choice: str) -> bool:
        """Whether this choice is one of the actions, on whatever object."""
        done = plain(MENTION.sub("{}", choice))
        return any(plain(act) in done for act in self.acts)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a draft that was written here."""

    habit: Habit
    category: Category
    right: Letter


@cache
def habits() -> tuple[Habit, ...]:
    """The table, parsed."""
    made = []
    for line in filter(None, TABLE.splitlines()):
        wish, *acts = line[2:].split(" | ")
        made.append(Habit(Typicality.TYPICAL if line[0] == "+" else Typicality.ATYPICAL, wish, tuple(acts)))
    return tuple(made)


def compose(typicality: Typicality, toolbox: Sequence[str], rng: random.Random) -> Draft:
    """A new draft about objects of the toolbox, which may not be empty."""
    right, place = rng.choice(_habits(typicality, toolbox)), rng.randrange(4)
    # Every object once before any comes again.
    dealt = [name for _ in range(4) for name in rng.sample(list(toolbox), len(toolbox))][:4]
    mentions: list[str | None] = [f"<object>{name}</object>" for name in dealt]
    if rng.random() < INACTION_SHARE:
        mentions[rng.choice([other for other in range(4) if other != place])] = None
    return _written(right, place, mentions, toolbox, rng)


def recompose(draft: Draft, toolbox: Sequence[str], rng: random.Random) -> Draft:
    """Another draft with the same wish, and each choice about the same object; a draft that is not of ours is
    left to the bank."""
    known = recognise(draft)
    if known is None:
        return bank.recompose(draft, rng)
    mentions = [found[0] if (found := MENTION.search(text)) else None for text in draft.choices.texts]
    while True:
        other = _written(known.habit, LETTERS.index(known.right), mentions, toolbox, rng)
        if other.choices != draft.choices:
            return other


def recognise(draft: Draft) -> Known | None:
    """What is known of this draft: None unless its choices mention objects, its preference is one of ours and
    exactly one choice grants it."""
    if not any(map(MENTION.search, draft.choices.texts)):
        return None
    preference = plain(draft.preference)
    habit = next((one for one in habits() if one.wish in preference), None)
    right = [letter for letter in LETTERS if habit and habit.granted_by(draft.choices[letter])]
    if habit is None or len(right) != 1:
        return None
    return Known(habit, category_of(habit.typicality, Dependence.LOW), right[0])


def likeliest(draft: Draft) -> Letter:
    """The right choice of a draft of ours; of any other, the bank's guess."""
    known = recognise(draft)
    return known.right if known else bank.likeliest(draft)


def broken(value: Any) -> list[str]:
    """A reply with a tagged draft in it as JSON whose first tag is broken, each way once; of another, nothing."""
    text = json.dumps(value)
    if not TAG.search(text):
        return []
    ways = (r"<object>\1 that is not there</object>", r"\1", r"<object>\1", r"<object>\1</object> and \g<0>")
    return [TAG.sub(way, text, count=1) for way in ways]


def _written(
    right: Habit, place: int, mentions: Sequence[str | None], toolbox: Sequence[str], rng: random.Random
) -> Draft:
    """A draft whose choice at `place` grants the habit; `mentions` by choice, None for the choice of inaction."""
    done = _wrong(right, toolbox, rng)
    done.insert(place, right)
    acts = [
        INACTION if mention is None else rng.choice(habit.acts).replace("{}", mention) + rng.choice(ENDINGS)
        for habit, mention in zip(done, mentions, strict=True)
    ]
    return Draft(
        scene=f"{rng.choice(_sparing(SCENES, toolbox))} {rng.choice(_sparing(DETAILS, toolbox))}.",
        preference=rng.choice(WISHES).format(right.wish),
        question=rng.choice(_sparing(QUESTIONS, toolbox)),
        choices=Choices.of(tuple(acts)),
    )


def _wrong(right: Habit, toolbox: Sequence[str], rng: random.Random) -> list[Habit]:
    """Three other habits, at least one of them what most people would want."""
    usual, unusual = ([one for one in _habits(kind, toolbox) if one is not right] for kind in Typicality)
    first = rng.choice(usual)
    done = [first, *rng.sample([one for one in (*usual, *unusual) if one is not first], 2)]
    rng.shuffle(done)
    return done


def _habits(typicality: Typicality, toolbox: Sequence[str]) -> Sequence[Habit]:
    held = [one for one in habits() if one.typicality is typicality]
    return _sparing(held, toolbox, lambda one: " | ".join((one.wish, *one.acts)))


def _sparing(options: Sequence[T], toolbox: Sequence[str], text: Callable[[T], str] = str) -> Sequence[T]:
    """The options that name no object of the toolbox; all of them where too few are left to choose from."""
    if not toolbox:
        return options
    named = re.compile(rf"(?<!\w)(?:{'|'.join(re.escape(plain(name)) for name in toolbox)})(?!\w)")
    free = [one for one in options if not named.search(plain(text(one)))]
    return free if len(free) > 3 else options
