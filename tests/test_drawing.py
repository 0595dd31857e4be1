"""Boxes on images: the same bytes every time, labels that can be read, pixels beside them left alone."""

from __future__ import annotations

import io
import subprocess
import sys
from itertools import combinations, pairwise, permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops

import vpref.images.drawing
from vpref.domain import Box
from vpref.errors import BadImage
from vpref.images.drawing import (
    COLOURS,
    WHITE,
    Colour,
    Pen,
    Rectangle,
    contrast,
    draw,
    ink,
    label_places,
    outlines,
    with_boxes,
)
from vpref.images.normalising import normalise
from vpref.settings import DataSettings

PHOTOS = Path(vpref.images.drawing.__file__).parent / "photos"
COFFEE = (PHOTOS / "coffee.jpg").read_bytes()


def box(letter: str, x0: float, y0: float, x1: float, y1: float) -> Box:
    return Box(name="thing", letter=letter, x0=x0, y0=y0, x1=x1, y1=y1)


FIVE = [
    box("A", 10.5, 20.49, 300, 250),
    box("B", 200, 100, 420.2, 390),
    box("C", 0, 0, 600, 400),
    box("D", 500, -20, 700, 90),
    box("E", 320, 200, 323, 203),
]


@st.composite
def layouts(draw: st.DrawFn, longest: int = 4000) -> tuple[tuple[int, int], list[Box]]:
    """A size, and boxes in and around it: often tiny, alike, or along the same edge."""
    size = draw(st.tuples(st.integers(64, longest), st.integers(64, longest)))
    share = st.one_of(st.sampled_from([0.0, 0.01, 0.5, 0.99, 1.0]), st.floats(-0.2, 1.2))
    corners = draw(st.lists(st.tuples(share, share, share, share), min_size=1, max_size=5))
    letters = draw(st.permutations("ABCDE"))
    width, height = size
    return size, [
        box(letter, min(x, u) * width, min(y, v) * height, max(x, u) * width, max(y, v) * height)
        for letter, (x, y, u, v) in zip(letters, corners, strict=False)
    ]


def within(inner: Rectangle, size: tuple[int, int]) -> bool:
    return 0 <= inner.x0 < inner.x1 <= size[0] and 0 <= inner.y0 < inner.y1 <= size[1]


# --- the same every time -----------------------------------------------------------------------------------


def test_neither_order_nor_repetition_changes_a_byte() -> None:
    first = draw(COFFEE, FIVE)
    assert first == draw(COFFEE, FIVE)
    assert {draw(COFFEE, order) for order in list(permutations(FIVE))[::17]} == {first}


def test_another_process_draws_the_same_bytes() -> None:
    code = (
        "import sys; from vpref.domain import Box; from vpref.images.drawing import draw;"
        "boxes = [Box.model_validate_json(line) for line in sys.argv[2:]];"
        "sys.stdout.buffer.write(draw(open(sys.argv[1], 'rb').read(), boxes))"
    )
    lines = [each.model_dump_json() for each in reversed(FIVE)]
    command = [sys.executable, "-c", code, str(PHOTOS / "coffee.jpg"), *lines]
    assert subprocess.run(command, capture_output=True, check=True, timeout=60).stdout == draw(COFFEE, FIVE)


def test_a_drawn_image_is_in_normal_form_already() -> None:
    drawn = draw(COFFEE, FIVE)
    again = normalise(drawn, DataSettings())
    assert (again.data, again.suffix, again.width, again.height) == (drawn, ".jpg", 600, 400)


def test_a_png_may_be_drawn_on_and_a_broken_file_is_said_to_be_one() -> None:
    out = io.BytesIO()
    Image.new("RGB", (100, 80), "navy").save(out, "PNG")
    assert draw(out.getvalue(), [box("B", 20, 20, 60, 60)]).startswith(b"\xff\xd8\xff")
    with pytest.raises(BadImage):
        draw(COFFEE[:4000], FIVE)


@pytest.mark.parametrize(
    "boxes",
    [
        [box("F", 0, 0, 9, 9)],
        [box("a", 0, 0, 9, 9)],
        [box("A", 0, 0, 9, 9), box("A", 50, 50, 60, 60)],
        [box("A", float("nan"), 0, 9, 9)],
    ],
    ids=["unknown", "lower case", "twice", "no number"],
)
def test_boxes_that_mean_nothing_are_refused(boxes: list[Box]) -> None:
    with pytest.raises(ValueError, match=r"A to E|NaN"):
        draw(COFFEE, boxes)


# --- where things lie ----------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=150)
@given(layouts())
def test_labels_lie_in_the_image_and_never_on_one_another(layout: tuple[tuple[int, int], list[Box]]) -> None:
    size, boxes = layout
    places = label_places(size, boxes)
    assert list(places) == sorted(each.letter for each in boxes)
    assert all(within(place, size) for place in places.values())
    assert not any(one.shared(other) for one, other in combinations(places.values(), 2))
    assert places == label_places(size, boxes[::-1])


@settings(deadline=None, max_examples=30)
@given(layouts(longest=300))
def test_only_pixels_of_lines_and_labels_change(layout: tuple[tuple[int, int], list[Box]]) -> None:
    size, boxes = layout
    before = Image.effect_noise(size, 60).convert("RGB")
    kept = before.tobytes()
    after = with_boxes(before, boxes)
    changed = ImageChops.difference(before, after).convert("RGB")
    for frame in outlines(size, boxes).values():
        assert within(frame, size)
        inner = frame.inset(Pen.for_size(size).line)
        hole = changed.crop(inner) if inner.area else None
        changed.paste("black", frame)
        if hole is not None:
            changed.paste(hole, inner)
    for place in label_places(size, boxes).values():
        changed.paste("black", place)
    assert changed.getbbox() is None
    assert before.tobytes() == kept


def test_a_label_sits_on_top_of_its_box_or_inside_it_where_that_leaves_the_image() -> None:
    size = (640, 480)
    pen = Pen.for_size(size)
    boxes = [box("A", 100, 100, 300, 300), box("B", 0, 0, 640, 480), box("C", 620, 470, 640, 480)]
    frames, places = outlines(size, boxes), label_places(size, boxes)
    assert places["A"][0] == frames["A"].x0
    assert places["A"].y1 == frames["A"].y0 + pen.edge
    assert places["B"] == (0, 0, pen.label, pen.label)
    assert not places["C"].shared(frames["C"].inset(pen.line))


def test_small_objects_side_by_side_are_not_hidden_by_labels() -> None:
    size = (640, 480)
    boxes = [box(letter, 100 + 60 * at, 200, 140 + 60 * at, 240) for at, letter in enumerate("ABCDE")]
    frames, places = outlines(size, boxes), label_places(size, boxes)
    assert not any(place.shared(frame.inset(4)) for place in places.values() for frame in frames.values())


def test_labels_of_boxes_in_one_place_stay_near_it() -> None:
    boxes = [box(letter, 300, 200, 306, 206) for letter in "ABCDE"]
    near = Rectangle(303, 203, 303, 203).inset(-3 * Pen.for_size((640, 480)).label)
    assert all(place.shared(near) for place in label_places((640, 480), boxes).values())


def test_outlines_run_around_boxes_and_are_clipped() -> None:
    size = (640, 480)
    pen = Pen.for_size(size)
    around = pen.core + pen.edge
    frames = outlines(size, [box("A", 100.5, 100.4, 200.6, 199.5), box("B", -50, 400, 90, 900)])
    assert frames["A"] == Rectangle(101, 100, 201, 200).inset(-around)
    assert frames["B"] == (0, 400 - around, 90 + around, 480)


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (7, 3), (12, 12), (31, 8), (64, 4000), (4000, 64)])
def test_no_image_is_too_small_or_too_thin(size: tuple[int, int]) -> None:
    width, height = size
    boxes = [box("A", 0, 0, width, height), box("B", width + 9, -9, width + 10, -8), box("C", 0, 0, 0, 0)]
    assert with_boxes(Image.new("RGB", size), boxes).size == size


# --- what can be read ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("longest", "cap", "line"), [(64, 13, 4), (200, 13, 4), (640, 28, 6), (1000, 45, 9), (2000, 90, 21), (4000, 90, 21)]
)
def test_letters_and_lines_grow_with_the_image(longest: int, cap: int, line: int) -> None:
    pen = Pen.for_size((longest, longest))
    assert (pen.cap, pen.line) == (cap, line)
    assert pen.label <= 1.5 * pen.cap


@pytest.mark.parametrize("letter", COLOURS)
@pytest.mark.parametrize("longest", [200, 640, 4000])
def test_a_letter_stands_in_its_ink_on_its_colour_between_edges(letter: str, longest: int) -> None:
    size = (longest, longest // 2)
    boxes = [box(letter, longest // 4, longest // 5, longest // 2, longest // 3)]
    drawn = with_boxes(Image.new("RGB", size, COLOURS[letter]), boxes)
    place, pen = label_places(size, boxes)[letter], Pen.for_size(size)
    label = drawn.crop(place)
    assert label.getpixel((0, 0)) == (0, 0, 0)
    assert label.getpixel((pen.edge, pen.edge)) == WHITE
    assert label.getpixel((2 * pen.edge, 2 * pen.edge)) == COLOURS[letter]
    inside = label.crop(Rectangle(0, 0, pen.label, pen.label).inset(2 * pen.edge))
    found = dict(_counted(inside))
    assert 0.15 < found[ink(COLOURS[letter])] / pen.cap**2 < 0.6


def test_every_letter_has_a_shape_of_its_own() -> None:
    size = (640, 480)
    shapes = set()
    for letter in COLOURS:
        boxes = [box(letter, 100, 100, 200, 200)]
        label = with_boxes(Image.new("RGB", size), boxes).crop(label_places(size, boxes)[letter])
        paint = ink(COLOURS[letter])
        inside = label.crop(Rectangle(0, 0, *label.size).inset(2 * Pen.for_size(size).edge))
        pixels = zip(*(band.tobytes() for band in inside.split()), strict=True)
        shapes.add(tuple(pixel == paint for pixel in pixels))
    assert len(shapes) == len(COLOURS)


def _counted(image: Image.Image) -> list[tuple[Colour, int]]:
    counts: dict[Colour, int] = {}
    for red, green, blue in zip(*(band.tobytes() for band in image.split()), strict=True):
        counts[red, green, blue] = counts.get((red, green, blue), 0) + 1
    return list(counts.items())


@pytest.mark.parametrize("colour", COLOURS.values(), ids=COLOURS)
def test_letters_contrast_with_their_labels(colour: Colour) -> None:
    assert contrast(ink(colour), colour) >= 4.5


def test_contrast_is_that_of_wcag() -> None:
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((118, 118, 118), (255, 255, 255)) == pytest.approx(4.54, abs=0.01)


# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
SIGHTS = {
    "full": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def _lab(colour: Colour, sight: str) -> tuple[float, float, float]:
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    red, green, blue = (
        min(1.0, max(0.0, sum(weight * part for weight, part in zip(row, linear, strict=True))))
        for row in SIGHTS[sight]
    )
    x, y, z = (
        value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116
        for value in (
            (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
            0.2126 * red + 0.7152 * green + 0.0722 * blue,
            (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089,
        )
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize(
    ("sight", "least"), [("full", 50), ("protanopia", 33), ("deuteranopia", 33), ("tritanopia", 28)]
)
def test_colours_are_told_apart_by_every_eye(sight: str, least: float) -> None:
    seen = [_lab(colour, sight) for colour in COLOURS.values()]
    distances = [
        sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5 for one, other in combinations(seen, 2)
    ]
    assert min(distances) >= least


def test_colours_are_told_apart_in_grey() -> None:
    lightness = sorted(_lab(colour, "full")[0] for colour in COLOURS.values())
    assert min(high - low for low, high in pairwise(lightness)) >= 12
