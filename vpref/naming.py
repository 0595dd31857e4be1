"""Naming the boxes of one image: the mapping revision as a coroutine, pure like the pipeline's (paper, section 3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal

from vpref import prompts, replies
from vpref.asking import ask
from vpref.domain import Box, Call, Detection, ModelRequest, Picture, Record, Role, Step
from vpref.errors import CallFailed, MalformedReply


class Naming(Record):
    """What became of an image's letter-to-class mapping. `names` is None where no usable reply came; a name of
    the empty string takes its box out."""

    analysis: str = ""
    names: Mapping[str, str] | None = None
    calls: tuple[Call, ...] = ()
    kind: str | None = None
    reason: str | None = None

    @property
    def outcome(self) -> Literal["named", "failed"]:
        return "failed" if self.names is None else "named"


def name_boxes(drawn: str, boxes: tuple[Box, ...], attempts: int) -> Step[Naming]:
    """Ask for each box's name so that no name can mean two objects. `drawn` is the digest of the image with
    these boxes drawn on it."""
    calls: list[Call] = []
    classes = {box.letter: box.name for box in boxes}
    request = ModelRequest(Role.MAPPER, prompts.mapper(Picture(drawn), classes), replies.naming_form(tuple(classes)))
    read = partial(replies.read_naming, letters=tuple(classes))
    try:
        analysis, names = yield from ask(request, read, attempts, calls)
    except (MalformedReply, CallFailed) as problem:
        return Naming(calls=tuple(calls), kind=problem.kind, reason=str(problem))
    return Naming(analysis=analysis, names=names, calls=tuple(calls))


def renamed(boxes: tuple[Box, ...], names: Mapping[str, str]) -> tuple[list[Detection], list[Detection]]:
    """The boxes under their new names, and those that got none, without letters: they are given anew, so that
    exactly the boxes that remain have one."""
    bare = {box.letter: Detection(**box.model_dump(exclude={"letter"})) for box in boxes}
    kept = [box.model_copy(update={"name": names[letter]}) for letter, box in bare.items() if names[letter]]
    return kept, [box for letter, box in bare.items() if not names[letter]]
