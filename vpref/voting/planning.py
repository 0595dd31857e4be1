"""Which items make a form: spread so that nobody meets an image twice, and balanced. Knows nothing of people."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from vpref.domain import LETTERS, Check, Choices, Form, PlannedItem, Variant
from vpref.errors import ConfigError

_ACTIONS = ("Close the window", "Water the plant", "Switch off the lamp", "Open the drawer")
"""Choices of attention checks: none is right but the one asked for."""


def plan_forms(items: Iterable[PlannedItem], *, per_form: int, forms: int | None, checks: int) -> list[Form]:
    """The forms of a survey, for each variant its own.

    Without `forms`, the number of them, there are as few as hold at most `per_form` items each. The same items give
    the same forms, in whatever order they come. Raises ConfigError where an image has more items than there are forms.
    """
    known = sorted(items, key=lambda item: (item.variant, item.image, item.category, item.id))
    made = []
    for variant in Variant:
        of_variant = [item for item in known if item.variant is variant]
        if of_variant:
            number = _number(of_variant, per_form, forms)
            for place, members in enumerate(_spread(of_variant, number), 1):
                made.append(_form(f"{variant.value}-{place}", members, checks))
    return made


def _number(items: Sequence[PlannedItem], per_form: int, forms: int | None) -> int:
    image, most = Counter(item.image for item in items).most_common(1)[0]
    number = max(-(-len(items) // per_form), most) if forms is None else forms
    if number < most:
        raise ConfigError(
            f"Image {image[:12]}… has {most} items of the {items[0].variant} variant, so that they need {most} forms "
            f"at least for nobody to meet an image twice; forms={number} are too few."
        )
    if number > len(items):
        raise ConfigError(f"{number} forms cannot share {len(items)} items of the {items[0].variant} variant.")
    return number


def _spread(items: Sequence[PlannedItem], number: int) -> list[list[PlannedItem]]:
    """The items of each form: category c of image i in form (i + c) mod F, as the paper has it, where that is
    balanced and shows no image twice; else spread image by image."""
    ranks = {image: rank for rank, image in enumerate(dict.fromkeys(item.image for item in items))}
    wanted = {item.id: (ranks[item.image] + item.category) % number for item in items}
    members: list[list[PlannedItem]] = [[] for _ in range(number)]
    for item in items:
        members[wanted[item.id]].append(item)
    apart = all(len({item.image for item in form}) == len(form) for form in members)
    sizes = [len(form) for form in members]
    return members if apart and max(sizes) - min(sizes) <= 1 else _balanced(items, wanted, number)


def _balanced(items: Sequence[PlannedItem], wanted: dict[str, int], number: int) -> list[list[PlannedItem]]:
    """An image's items go to the emptiest forms, each to the one that the paper's rule wants where it is among
    these, else to the one with fewest of its category. Sizes never differ by more than one."""
    members: list[list[PlannedItem]] = [[] for _ in range(number)]
    by_image: defaultdict[str, list[PlannedItem]] = defaultdict(list)
    for item in items:
        by_image[item.image].append(item)
    for ones in by_image.values():
        start = wanted[ones[0].id]
        emptiest = sorted(range(number), key=lambda form: (len(members[form]), (form - start) % number))
        free = emptiest[: len(ones)]
        for item in ones:
            same = {form: sum(other.category is item.category for other in members[form]) for form in free}
            chosen = min(free, key=lambda form: (form != wanted[item.id], same[form], free.index(form)))
            members[chosen].append(item)
            free.remove(chosen)
    return members


def _form(name: str, items: Sequence[PlannedItem], checks: int) -> Form:
    """A form in a random order that is the same each time, its checks spread evenly and never first or last."""
    asked = sorted((item.id for item in items), key=lambda item: _digest(name, item))
    places = [(number + 1) * len(asked) // (checks + 1) for number in range(checks)]
    return Form(
        name=name,
        items=tuple(asked),
        checks=tuple(_check(name, number, place) for number, place in enumerate(places, 1)),
    )


def _check(form: str, number: int, place: int) -> Check:
    id = f"check-{form}-{number}"
    letter = LETTERS[int(_digest(id), 16) % 4]
    choices = Choices.of(_ACTIONS)
    question = f"This question only shows that you read with care. Please choose “{choices[letter]}”."
    return Check(id=id, place=place, question=question, choices=choices, expected=letter)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
