"""Boxes and their letters drawn on an image, so that a person or a model can say "the object in box B".

What is drawn follows from the image and the boxes alone: their order does not matter, and letters are shapes of
our own rather than a font's. Knows nothing of where boxes come from, what they are called, or who looks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor
from typing import NamedTuple, TypeAlias

from PIL import Image

from vpref.domain import Box
from vpref.images.decoding import Pixels, jpeg, opened, upright_rgb

Colour: TypeAlias = tuple[int, int, int]
Size: TypeAlias = tuple[int, int]

BLACK: Colour = (0, 0, 0)
WHITE: Colour = (255, 255, 255)
COLOURS: dict[str, Colour] = {
    "A": (213, 94, 0),  # vermilion, sky blue and yellow of Okabe and Ito
    "B": (86, 180, 233),
    "C": (240, 228, 66),
    "D": (0, 111, 80),  # their bluish green, darkened
    "E": (51, 34, 136),  # Tol's indigo
}
"""By letter. Their lightness is at least 12 L* apart, so they differ to colour-blind readers and in grey too."""

_QUALITY = 95
_MEGAPIXELS_EVER = 1000.0


class Rectangle(NamedTuple):
    """Whole pixels: columns from x0 up to but not including x1, rows likewise."""

    x0: int
    y0: int
    x1: int
    y1: int

    @property
    def area(self) -> int:
        return max(0, self.x1 - self.x0) * max(0, self.y1 - self.y0)

    def shared(self, other: Rectangle) -> int:
        """How many pixels both cover."""
        width = min(self.x1, other.x1) - max(self.x0, other.x0)
        height = min(self.y1, other.y1) - max(self.y0, other.y0)
        return width * height if width > 0 and height > 0 else 0

    def inset(self, by: int) -> Rectangle:
        return Rectangle(self.x0 + by, self.y0 + by, self.x1 - by, self.y1 - by)


@dataclass(frozen=True, slots=True)
class Pen:
    """The sizes of what is drawn, in px. A line is `edge` black, `core` coloured and `edge` white from outside to
    inside: whatever lies behind, one of the three stands out. A label is framed by the same black and white."""

    cap: int
    core: int
    edge: int
    label: int

    @property
    def line(self) -> int:
        return self.core + 2 * self.edge

    @classmethod
    def for_size(cls, size: Size) -> Pen:
        """Letters 4.5 % of the longer side high, 13 to 90 px; a label at most a third of the shorter side, so that
        nine fit whatever the image."""
        cap = min(90, max(13, max(size) * 9 // 200))
        label = min(_label(cap), max(1, min(size) // 3))
        while cap > 1 and _label(cap) > label:
            cap -= 1
        return cls(cap=cap, core=_core(cap), edge=_edge(cap), label=label)


def _core(cap: int) -> int:
    return max(2, cap // 6)


def _edge(cap: int) -> int:
    return max(1, cap // 24)


def _label(cap: int) -> int:
    return cap + 2 * (2 * _edge(cap) + max(1, cap // 8))


def draw(data: bytes, boxes: Sequence[Box]) -> bytes:
    """A normalised image's file with `boxes` drawn on it: a JPEG that `normalise` keeps as it is.

    Coordinates are pixels of the image; what lies outside of it is clipped. Raises BadImage when `data` cannot be
    decoded, ValueError for a letter that is not A to E or stands twice, or a coordinate that is no number.
    """
    with opened(data, _MEGAPIXELS_EVER) as image:
        picture = upright_rgb(image, max(image.size))
    return jpeg(with_boxes(picture, boxes), _QUALITY)


def with_boxes(picture: Pixels, boxes: Sequence[Box]) -> Pixels:
    """A copy of the RGB `picture` with `boxes` drawn on it; only pixels of lines and labels differ.

    Raises ValueError as `draw` does.
    """
    pen = Pen.for_size(picture.size)
    frames = outlines(picture.size, boxes)
    places = label_places(picture.size, boxes)
    drawn = picture.copy()
    for letter in sorted(frames, key=lambda letter: (-frames[letter].area, letter)):  # small ones on top
        _paint_frame(drawn, frames[letter], pen, COLOURS[letter])
    for letter, place in places.items():
        _paint_label(drawn, place, pen, letter)
    return drawn


def ink(colour: Colour) -> Colour:
    """Black or white, whichever is read better on `colour`."""
    return max(BLACK, WHITE, key=lambda candidate: contrast(candidate, colour))


def contrast(one: Colour, other: Colour) -> float:
    """The contrast ratio of WCAG 2, 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Colour) -> float:
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (c / 255 for c in colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# --- where lines and labels go ---------------------------------------------------------------------------


def outlines(size: Size, boxes: Sequence[Box]) -> dict[str, Rectangle]:
    """The outer edge of each box's line, by letter in order. It runs around the box rather than on it, as far as
    the image allows, and a box too small for that gets a line that can still be seen. Raises ValueError."""
    by_letter = {box.letter: box for box in boxes}
    if len(by_letter) < len(boxes) or not by_letter.keys() <= COLOURS.keys():
        letters = ", ".join(sorted(box.letter for box in boxes))
        raise ValueError(f"The boxes' letters are {letters}; each must be one of A to E and stand once.")
    pen = Pen.for_size(size)
    frames = {}
    for letter, box in sorted(by_letter.items()):
        x0, x1 = _stretch(box.x0, box.x1, size[0], pen)
        y0, y1 = _stretch(box.y0, box.y1, size[1], pen)
        frames[letter] = Rectangle(x0, y0, x1, y1)
    return frames


def _stretch(start: float, end: float, limit: int, pen: Pen) -> tuple[int, int]:
    """One axis of an outline around [start, end] within [0, limit]."""
    low, high = sorted(floor(min(max(value, 0.0), limit) + 0.5) for value in (start, end))
    low, high = max(0, low - pen.edge - pen.core), min(limit, high + pen.edge + pen.core)
    length = min(limit, max(high - low, 3 * pen.line))
    low = min(max(0, low - (length - (high - low)) // 2), limit - length)
    return low, low + length


def label_places(size: Size, boxes: Sequence[Box]) -> dict[str, Rectangle]:
    """Where each box's label goes, by letter in order: inside the image, none on another.

    The first choice is on top of the box's upper left corner; one that would hide objects or lines, or is taken,
    gives way to the next place along the box. Raises ValueError as `outlines` does.
    """
    pen = Pen.for_size(size)
    frames = outlines(size, boxes)
    places: dict[str, Rectangle] = {}
    for letter in sorted(frames, key=lambda letter: (frames[letter].area, letter)):  # small boxes have least choice
        place = _best_place(letter, frames, tuple(places.values()), size, pen)
        if place is None:
            return _in_cells(size, frames, pen)
        places[letter] = place
    return {letter: places[letter] for letter in frames}


def _best_place(
    letter: str, frames: dict[str, Rectangle], taken: Sequence[Rectangle], size: Size, pen: Pen
) -> Rectangle | None:
    """The free place with the least sum of rank and harm, None where nothing is free."""
    best: tuple[int, Rectangle] | None = None
    for rank, place in sorted(_candidates(frames[letter], size, pen)):
        if best is not None and rank >= best[0]:
            break
        if not any(place.shared(other) for other in taken):
            found = (rank + _harm(place, letter, frames, pen), place)
            best = found if best is None else min(best, found)
    return best and best[1]


def _candidates(frame: Rectangle, size: Size, pen: Pen) -> Iterator[tuple[int, Rectangle]]:
    """Places along the frame with their ranks, lower is better, then anywhere. Outside, the black edge of label and
    line are the same pixels; inside, the label sits in the line's corner."""
    x0, y0, x1, y1 = frame
    label, edge = pen.label, pen.edge
    tops = (y0 - label + edge, y0, y1 - edge, y1 - label)  # above, inside the top, below, inside the bottom
    lefts = (x0 - label + edge, x0, x1 - edge, x1 - label)
    for step in range(len(COLOURS)):
        for from_end in (0, 1):
            x = x1 - label - step * label if from_end else x0 + step * label
            y = y1 - label - step * label if from_end else y0 + step * label
            for side in range(4):
                rank = 40 * (side + from_end) + 30 * step
                if step * label < x1 - x0:
                    yield from _if_inside(rank, x, tops[side], size, label, along="x")
                if step * label < y1 - y0:
                    yield from _if_inside(rank + 60, lefts[side], y, size, label, along="y")
    near = [(x0 + i * label, y0 - label + edge + j * label) for i in range(-2, 3) for j in range(-2, 4)]
    for x, y in (*near, *(place[:2] for place in _cells(size, label))):
        distance = max(x - x1, x0 - x - label, y - y1, y0 - y - label, 0)
        for _, place in _if_inside(0, x, y, size, label, along="x"):
            yield 400 + 100 * distance // label, place


def _if_inside(rank: int, x: int, y: int, size: Size, label: int, *, along: str) -> Iterator[tuple[int, Rectangle]]:
    """The label at (x, y), moved into the image along one axis, unless the other one leaves it."""
    inside_x, inside_y = min(max(x, 0), size[0] - label), min(max(y, 0), size[1] - label)
    if (inside_y == y) if along == "x" else (inside_x == x):
        yield rank, Rectangle(inside_x, inside_y, inside_x + label, inside_y + label)


def _harm(place: Rectangle, letter: str, frames: dict[str, Rectangle], pen: Pen) -> int:
    """How much a label there would hide, on the scale of ranks: 1000 for one whole object."""
    harm = 0
    for other, frame in frames.items():
        object_ = frame.inset(pen.line)
        hidden = place.shared(object_)
        harm += 1000 * hidden // max(1, object_.area)
        if other != letter:
            # Inside another box it may be taken for that one's label; on its line it breaks the line.
            harm += (300 * hidden + 600 * (place.shared(frame) - hidden)) // place.area
    return harm


def _in_cells(size: Size, frames: dict[str, Rectangle], pen: Pen) -> dict[str, Rectangle]:
    """For images too crowded for more: every label in the free cell nearest to its box's upper left corner."""
    cells = _cells(size, pen.label)
    places = {}
    for letter, frame in frames.items():
        places[letter] = min(cells, key=lambda cell: (abs(cell.x0 - frame.x0) + abs(cell.y0 - frame.y0), cell))
        cells.remove(places[letter])
    return places


def _cells(size: Size, label: int) -> list[Rectangle]:
    """Nine label-sized places that do not touch one another's pixels in any image of 3 x 3 px or more."""
    lefts, tops = ((0, (side - label) // 2, side - label) for side in size)
    return [Rectangle(x, y, x + label, y + label) for y in tops for x in lefts]


# --- painting --------------------------------------------------------------------------------------------


def _paint_frame(picture: Pixels, frame: Rectangle, pen: Pen, colour: Colour) -> None:
    for width, paint in ((pen.edge, BLACK), (pen.core, colour), (pen.edge, WHITE)):
        x0, y0, x1, y1 = frame
        inner = frame.inset(width)
        for strip in ((x0, y0, x1, inner.y0), (x0, inner.y1, x1, y1), (x0, y0, inner.x0, y1), (inner.x1, y0, x1, y1)):
            picture.paste(paint, strip)
        frame = inner
        if frame.x1 - frame.x0 < 2 * pen.core or frame.y1 - frame.y0 < 2 * pen.core:
            return  # no room for the rest: only in images of a few pixels


def _paint_label(picture: Pixels, place: Rectangle, pen: Pen, letter: str) -> None:
    colour = COLOURS[letter]
    picture.paste(BLACK, place)
    for inset, paint in ((pen.edge, WHITE), (2 * pen.edge, colour)):
        inner = place.inset(inset)
        if inner.x0 < inner.x1:
            picture.paste(paint, inner)
    picture.paste(ink(colour), place, _letter_mask(letter, pen))


# --- letters ---------------------------------------------------------------------------------------------

_Contour: TypeAlias = tuple[tuple[int, ...], ...]

# Bold capitals without serifs, 700 units high, y upwards. Each contour is a start (x, y) followed by points (x, y) that
# lines go to and by cubic curves (x1, y1, x2, y2, x, y); a contour inside another is a hole.
_GLYPHS: dict[str, tuple[_Contour, ...]] = {
    "A": (
        ((0, 0), (255, 700), (435, 700), (690, 0), (528, 0), (478, 148), (212, 148), (162, 0)),
        ((254, 274), (436, 274), (345, 545)),
    ),
    "B": (
        (
            (0, 0),
            (0, 700),
            (325, 700),
            (475, 700, 565, 630, 565, 520),
            (565, 445, 530, 392, 467, 368),
            (550, 342, 600, 283, 600, 200),
            (600, 75, 505, 0, 340, 0),
        ),
        ((152, 578), (152, 425), (305, 425), (370, 425, 412, 450, 412, 502), (412, 554, 370, 578, 305, 578)),
        ((152, 308), (152, 124), (320, 124), (400, 124, 445, 155, 445, 216), (445, 277, 400, 308, 320, 308)),
    ),
    "C": (
        (
            (495, 462),
            (645, 462),
            (630, 620, 515, 712, 350, 712),
            (140, 712, 0, 565, 0, 350),
            (0, 135, 140, -12, 350, -12),
            (515, -12, 630, 80, 645, 238),
            (495, 238),
            (485, 160, 432, 118, 350, 118),
            (230, 118, 156, 205, 156, 350),
            (156, 495, 230, 582, 350, 582),
            (432, 582, 485, 540, 495, 462),
        ),
    ),
    "D": (
        ((0, 0), (0, 700), (285, 700), (505, 700, 635, 570, 635, 350), (635, 130, 505, 0, 285, 0)),
        ((152, 574), (152, 126), (275, 126), (410, 126, 480, 205, 480, 350), (480, 495, 410, 574, 275, 574)),
    ),
    "E": (
        (
            *((0, 0), (0, 700), (535, 700), (535, 572), (152, 572), (152, 420)),
            *((500, 420), (500, 294), (152, 294), (152, 128), (545, 128), (545, 0)),
        ),
    ),
}
_UNITS = 700
_CURVE_STEPS = 16
_FINER = 8


def _letter_mask(letter: str, pen: Pen) -> Pixels:
    """How much of each pixel of a label its letter covers, 0 to 255.

    Scan lines at `_FINER` times the resolution, so that the bytes are the same whatever rasteriser Pillow has.
    """
    contours = [_points(contour) for contour in _GLYPHS[letter]]
    side, scale = pen.label * _FINER, pen.cap * _FINER / _UNITS
    left = (side - scale * max(x for points in contours for x, _ in points)) / 2
    base = ((pen.label - pen.cap) // 2 + pen.cap) * _FINER
    crossings: list[list[int]] = [[] for _ in range(side)]
    for points in contours:
        for start, end in pairwise((left + x * scale, base - y * scale) for x, y in points):
            (x0, y0), (x1, y1) = sorted((start, end), key=lambda point: point[1])
            for row in range(ceil(y0 - 0.5), ceil(y1 - 0.5)):
                crossings[row].append(floor(x0 + (row + 0.5 - y0) * (x1 - x0) / (y1 - y0) + 0.5))
    rows = b"".join(_filled(sorted(xs), side) for xs in crossings)
    return Image.frombytes("L", (side, side), rows).reduce(_FINER)


def _points(contour: _Contour) -> list[tuple[float, float]]:
    """The corners of a contour, closed, its curves as chains of short lines."""
    points: list[tuple[float, float]] = []
    for part in (*contour, contour[0]):
        if len(part) == 2:
            points.append((part[0], part[1]))
            continue
        (x0, y0), (x1, y1, x2, y2, x3, y3) = points[-1], part
        for step in range(1, _CURVE_STEPS + 1):
            t = step / _CURVE_STEPS
            a, b, c, d = (1 - t) * (1 - t) * (1 - t), 3 * (1 - t) * (1 - t) * t, 3 * (1 - t) * t * t, t * t * t
            points.append((a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3))
    return points


def _filled(crossings: list[int], width: int) -> bytes:
    """One scan line, 255 from every odd crossing to the next even one."""
    line = bytearray(width)
    for start, end in zip(crossings[::2], crossings[1::2], strict=True):
        line[start:end] = b"\xff" * (end - start)
    return bytes(line)
