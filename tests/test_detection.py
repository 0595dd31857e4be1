"""Detection: which boxes are found, by a real detector and in annotations, and which of them are shown."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from vpref.detection import Found, Selection, check, detect, letter, select
from vpref.domain import Detection
from vpref.errors import ConfigError
from vpref.images import Gallery, ImageRecord, prepare
from vpref.settings import BoxSource, DataSettings, DetectionSettings, Duplicates, Source

SHARED = Path(__file__).parents[2] / "shared"
WEIGHTS = SHARED / "yolo" / "yolov8n_int8_openvino_model"
COCO_PHOTOS = SHARED / "images"
YOLO = DetectionSettings()
DROP = DetectionSettings(duplicates=Duplicates.drop_class)
FILE = DetectionSettings(source=BoxSource.file)
SIZE = (400, 300)


def box(name: str, x0: float, y0: float, x1: float, y1: float, confidence: float | None = 0.5) -> Detection:
    return Detection(name=name, x0=x0, y0=y0, x1=x1, y1=y1, confidence=confidence)


def names(selection: Selection) -> list[str]:
    return [kept.name for kept in selection.kept]


def reasons(selection: Selection) -> list[tuple[str, str]]:
    return [(gone.box.name, gone.reason) for gone in selection.removed]


# --- selection -------------------------------------------------------------------------------------------

CUP, FORK, VASE = box("cup", 200, 10, 250, 60), box("fork", 10, 100, 60, 150), box("vase", 300, 10, 340, 60)


def test_what_is_left_is_shown_from_left_to_right_under_letters_without_a_gap() -> None:
    selection = select([CUP, VASE, FORK], SIZE, YOLO)
    assert names(selection) == ["fork", "cup", "vase"]
    assert [(shown.letter, shown.name) for shown in letter(selection.kept)] == [
        ("A", "fork"),
        ("B", "cup"),
        ("C", "vase"),
    ]
    assert letter(letter(selection.kept)[1:])[0].letter == "A"  # boxes that had letters get new ones


def test_people_go_before_their_number_can_discard_the_image() -> None:
    people = [box("person", 0, 0, 40, 40), box("Person ", 50, 0, 90, 40)]
    selection = select([*people, CUP, FORK], SIZE, YOLO)
    assert names(selection) == ["fork", "cup"]
    assert reasons(selection) == [("person", "person"), ("Person ", "person")]


def test_two_of_a_class_discard_the_image_or_only_the_class() -> None:
    boxes = [CUP, FORK, VASE, box("Cup", 100, 200, 150, 250)]
    discarded = select(boxes, SIZE, YOLO)
    assert (discarded.kept, discarded.discarded) == ((), "duplicate_class")
    dropped = select(boxes, SIZE, DROP)
    assert (names(dropped), dropped.discarded) == (["fork", "vase"], None)
    assert reasons(dropped) == reasons(discarded) == [("Cup", "duplicate_class"), ("cup", "duplicate_class")]


def test_duplicates_count_before_geometry() -> None:
    assert select([CUP, FORK, box("fork", 0, 0, 400, 290)], SIZE, YOLO).discarded == "duplicate_class"


def test_boxes_over_half_of_the_image_and_boxes_around_others_are_removed() -> None:
    table, tray = box("table", 0, 0, 400, 151), box("tray", 190, 0, 260, 70)
    selection = select([table, tray, CUP, FORK, VASE], SIZE, YOLO)
    assert names(selection) == ["fork", "cup", "vase"]
    assert reasons(selection) == [("table", "too_large"), ("tray", "contains_others")]
    half = table.model_copy(update={"y1": 150.0})
    assert names(select([half, box("rug", 0, 200, 50, 250)], SIZE, YOLO)) == ["table", "rug"]


def test_of_two_that_hold_each_other_only_one_goes() -> None:
    mug = CUP.model_copy(update={"name": "mug", "x1": 251.0, "confidence": 0.9})
    assert reasons(select([CUP, mug, FORK], SIZE, YOLO)) == [("mug", "contains_others")]  # the larger
    mug = CUP.model_copy(update={"name": "mug", "confidence": 0.9})
    assert reasons(select([CUP, mug, FORK], SIZE, YOLO)) == [("cup", "contains_others")]  # the less certain


def test_the_surest_boxes_stay_and_of_annotations_the_largest() -> None:
    row = [box(f"thing {place}", 50 * place, 0, 50 * place + 20 + place, 20, place / 10) for place in range(1, 8)]
    selection = select(row, SIZE, replace(YOLO, max_boxes=2))
    assert names(selection) == ["thing 6", "thing 7"]
    assert {gone.reason for gone in selection.removed} == {"beyond_limit"}
    drawn = [one.model_copy(update={"confidence": None}) for one in row]
    assert names(select(drawn, SIZE, replace(YOLO, max_boxes=3))) == ["thing 5", "thing 6", "thing 7"]


def test_boxes_are_clipped_to_the_image_and_those_outside_are_none() -> None:
    strange = [box("cup", -20, -5, 30, 30), box("cup", 500, 10, 600, 50), box("cup", 10, 299, 50, 400)]
    nan = box("cup", float("nan"), 0, 10, 10)
    selection = select([*strange, nan, FORK], SIZE, YOLO)
    assert [(one.name, one.x0, one.y0) for one in selection.kept] == [("cup", 0, 0), ("fork", 10, 100)]
    assert selection.removed == ()


@pytest.mark.parametrize("boxes", [[], [CUP], [CUP, box("person", 0, 0, 50, 50)]])
def test_fewer_than_two_boxes_discard_the_image(boxes: list[Detection]) -> None:
    selection = select(boxes, SIZE, YOLO)
    assert (selection.kept, selection.discarded) == ((), "too_few")


def corners(limit: int) -> st.SearchStrategy[tuple[float, float]]:
    return st.lists(st.integers(-5, limit), min_size=2, max_size=2, unique=True).map(
        lambda pair: (float(min(pair)), float(max(pair)))
    )


DETECTIONS = st.lists(
    st.builds(
        lambda name, across, down, confidence: box(name, across[0], down[0], across[1], down[1], confidence),
        st.sampled_from(["cup", "Cup", "fork", "vase", "dog", "tray", "lamp", "book", "person"]),
        corners(45),
        corners(35),
        st.sampled_from([None, 0.3, 0.5, 0.9]),
    ),
    max_size=12,
)


@given(
    DETECTIONS,
    st.randoms(use_true_random=False),
    st.sampled_from(Duplicates),
    st.integers(2, 5),
    st.sampled_from([0.5, 1]),
)
def test_selection_holds_its_promises_in_any_order(
    detections: list[Detection], dice: random.Random, duplicates: Duplicates, limit: int, share: float
) -> None:
    settings = replace(YOLO, duplicates=duplicates, max_boxes=limit, max_share=share)
    selection = select(detections, (40, 30), settings)
    dice.shuffle(detections)
    assert select(detections, (40, 30), settings) == selection
    kept = selection.kept
    assert (len(kept) >= 2) == (selection.discarded is None)
    assert len(kept) <= limit
    assert "person" not in names(selection)
    assert len({one.name.lower() for one in kept}) == len(kept)
    assert all(
        0 <= one.x0 <= one.x1 - 2 and one.x1 <= 40 and 0 <= one.y0 <= one.y1 - 2 and one.y1 <= 30 for one in kept
    )
    assert [one.x0 for one in kept] == sorted(one.x0 for one in kept)
    assert selection.discarded or select(kept, (40, 30), settings) == Selection(kept, ())  # nothing more to remove


# --- annotations -----------------------------------------------------------------------------------------


def images_of(folder: Path, sizes: dict[str, tuple[int, int]], **data: Any) -> tuple[list[ImageRecord], Gallery]:
    for seed, (name, size) in enumerate(sizes.items()):
        path = folder / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.frombytes("RGB", size, random.Random(seed).randbytes(3 * size[0] * size[1])).save(path)
    gallery = Gallery(folder / "gallery")
    settings = {"root": str(folder / "images"), "max_side": 100, **data}
    return [record for record in prepare(DataSettings(**settings), gallery) if record.status == "used"], gallery


def coco_file(path: Path, sizes: dict[str, tuple[int, int]], boxes: dict[str, list[list[float]]]) -> str:
    ids = {name: number for number, name in enumerate(sizes)}
    path.write_text(
        json.dumps(
            {
                "images": [
                    {"id": ids[name], "file_name": name, "width": width, "height": height, "license": 3}
                    for name, (width, height) in sizes.items()
                ],
                "annotations": [
                    {"id": 1, "image_id": ids[name], "category_id": 7, "bbox": one, "segmentation": [[1, 2]]}
                    for name, several in boxes.items()
                    for one in several
                ],
                "categories": [{"id": 7, "name": "cup"}],
            }
        )
    )
    return str(path)


def test_coco_boxes_are_matched_by_name_and_scaled_to_the_image_as_normalised(tmp_path: Path) -> None:
    images, gallery = images_of(tmp_path, {"a/x.png": (200, 100), "b/y.png": (80, 60), "b/z.png": (80, 60)})
    sizes = {"./a/x.png": (200, 100), "train/y.png": (160, 120), "other.png": (10, 10)}
    file = coco_file(tmp_path / "coco.json", sizes, {"./a/x.png": [[20, 10, 100, 50]], "train/y.png": [[0, 0, 8, 6.5]]})
    found = detect(images, gallery, replace(FILE, file=file), tmp_path / "found")
    by_source = {image.source: found[str(image.digest)] for image in images}
    assert by_source["a/x.png"].detections == (box("cup", 10, 5, 60, 30, None),)  # 200 x 100 became 100 x 50
    assert by_source["b/y.png"].detections == (box("cup", 0, 0, 4, 3.25, None),)
    assert by_source["b/z.png"] == Found(error="coco.json does not list it, or not by one name alone.")


def test_a_last_name_that_two_images_share_matches_neither(tmp_path: Path) -> None:
    images, gallery = images_of(tmp_path, {"a/x.png": (90, 60), "b/x.png": (90, 60), "c.png": (90, 60)})
    file = coco_file(tmp_path / "coco.json", {"x.png": (90, 60), "c.png": (90, 60)}, {})
    found = detect(images, gallery, replace(FILE, file=file), tmp_path / "found")
    assert [bool(found[str(image.digest)].error) for image in images] == [True, True, False]


def test_a_size_of_another_shape_is_an_error_of_the_image(tmp_path: Path) -> None:
    images, gallery = images_of(tmp_path, {"x.png": (90, 60), "y.png": (301, 200)})
    file = coco_file(tmp_path / "coco.json", {"x.png": (60, 90), "y.png": (301, 200)}, {"x.png": [[0, 0, 10, 10]]})
    first, second = detect(images, gallery, replace(FILE, file=file), tmp_path / "found").values()
    assert first == Found(error="coco.json has it as 60 x 90 px, another shape than its 90 x 60 px.")
    assert second == Found()


COCO_IMAGE = {"id": 1, "file_name": "x.png", "width": 9, "height": 5}
COCO_BOX = {"image_id": 1, "category_id": 9, "bbox": [1, 2, 3, 4]}
BAD_COCO = {
    "is not COCO's format": "{",
    "an object": "[]",
    "annotations: Field required": json.dumps({"images": [], "categories": []}),
    "images.0.width": json.dumps({"images": [COCO_IMAGE | {"width": 0}], "annotations": [], "categories": []}),
    "has no category 9": json.dumps({"images": [COCO_IMAGE], "annotations": [COCO_BOX], "categories": []}),
    "lists x.png more than once": json.dumps({"images": [COCO_IMAGE] * 2, "annotations": [], "categories": []}),
}


@pytest.mark.parametrize("sentence", BAD_COCO)
def test_a_bad_coco_file_is_refused_in_one_sentence(tmp_path: Path, sentence: str) -> None:
    (tmp_path / "coco.json").write_text(BAD_COCO[sentence])
    with pytest.raises(ConfigError, match=r"coco\.json") as refused:
        check(replace(FILE, file=str(tmp_path / "coco.json")))
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_absent_or_of_other_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a file"):
        check(replace(FILE, file="absent.json"))
    images, gallery = images_of(tmp_path, {"mine.png": (90, 60)})
    with pytest.raises(ConfigError, match=r"lists none of the 1 images.*mine\.png"):
        detect(images, gallery, FILE, tmp_path / "found")


def visual_genome(folder: Path, objects: object, sizes: Sequence[tuple[int, int, int]]) -> DataSettings:
    for name in ("VG_100K", "VG_100K_2"):
        (folder / name).mkdir()
    records = [{"image_id": number, "width": width, "height": height, "url": ""} for number, width, height in sizes]
    (folder / "image_data.json").write_text(json.dumps(records))
    (folder / "objects.json").write_text(json.dumps(objects))
    for number, width, height in sizes:
        pixels = random.Random(number).randbytes(3 * width * height)
        Image.frombytes("RGB", (width, height), pixels).save(folder / "VG_100K" / f"{number}.jpg")
    return DataSettings(source=Source.visual_genome, root=str(folder), max_side=100)


def test_visual_genome_boxes_are_scaled_to_the_image_as_normalised(tmp_path: Path) -> None:
    thing = {"object_id": 1, "synsets": [], "names": ["cup ", "mug"], "x": 20, "y": 10, "w": 100, "h": 50}
    objects = [
        {"image_id": 9, "objects": [], "image_url": "..."},
        {"image_id": 2, "objects": [thing, thing | {"names": []}, thing | {"names": ["", "table"]}]},
    ]
    data = visual_genome(tmp_path, objects, [(2, 200, 100), (3, 90, 60), (9, 90, 60)])
    gallery = Gallery(tmp_path / "gallery")
    settings = DetectionSettings(source=BoxSource.visual_genome)
    check(settings, data.root)
    images = prepare(data, gallery)
    found = list(detect(images, gallery, settings, tmp_path / "found", data_root=data.root).values())
    assert found == [
        Found((box("cup", 10, 5, 60, 30, None), box("table", 10, 5, 60, 30, None))),
        Found(error="objects.json or image_data.json does not list it."),
        Found(),
    ]


def test_visual_genome_objects_are_read_through_any_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = [{"image_id": number, "objects": [], "note": "]},[{" * (number % 5)} for number in range(100)]
    (tmp_path / "objects.json").write_text(" \n" + json.dumps(objects, indent=1) + " ", encoding="utf-8-sig")
    from vpref.detection import visual_genome as module

    for chunk in (1, 2, 3, 7, 64, 2**20):
        monkeypatch.setattr(module, "_CHUNK", chunk)
        assert list(module._entries(tmp_path / "objects.json")) == objects


@pytest.mark.parametrize(
    "text", ["", "{}", "[", "[1", '[{"image_id": 2}', '[{"image_id": 2} 3]', '[{"image_id": "x"}]', "[3]"]
)
def test_a_bad_objects_file_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    data = visual_genome(tmp_path, [], [(2, 90, 60)])
    (tmp_path / "objects.json").write_text(text)
    with pytest.raises(ConfigError, match=r"objects\.json") as refused:
        check(DetectionSettings(source=BoxSource.visual_genome), data.root)
    assert "\n" not in str(refused.value)


def test_visual_genome_without_its_files_says_which(tmp_path: Path) -> None:
    settings = DetectionSettings(source=BoxSource.visual_genome)
    with pytest.raises(ConfigError, match="data=visual_genome"):
        check(settings, None)
    with pytest.raises(ConfigError, match=r"objects\.json\.zip"):
        check(settings, str(tmp_path))


# --- the packaged boxes ----------------------------------------------------------------------------------


def test_the_packaged_photos_have_boxes_that_survive_selection(tmp_path: Path) -> None:
    check(FILE)
    gallery = Gallery(tmp_path / "gallery")
    images = prepare(DataSettings(), gallery)
    found = detect(images, gallery, FILE, tmp_path / "found")
    shown = {}
    for image in images:
        one = found[str(image.digest)]
        width, height = image.width or 0, image.height or 0
        assert one.error is None
        assert all(0 <= at.x0 < at.x1 <= width and 0 <= at.y0 < at.y1 <= height for at in one.detections)
        selection = select(one.detections, (width, height), FILE)
        assert selection.removed == ()
        shown[image.source] = names(selection)
    assert shown == {
        "astronaut.jpg": ["flag", "neck ring", "mission patch", "helmet", "space shuttle model"],
        "chelsea.jpg": [],
        "china.jpg": ["pagoda", "island", "rightmost tree"],
        "coffee.jpg": ["cup", "spoon"],
        "flower.jpg": ["large dahlia", "lower dahlia", "yellow bud"],
        "rocket.jpg": ["leftmost tower", "launch platform", "rocket", "rightmost tower"],
    }


# --- what is kept ----------------------------------------------------------------------------------------


def test_what_was_found_is_read_back_whatever_a_kill_left_of_the_last_line(tmp_path: Path) -> None:
    gallery, root = Gallery(tmp_path / "gallery"), tmp_path / "found"
    images = prepare(DataSettings(), gallery)
    found = detect(images, gallery, FILE, root)
    (journal,) = root.iterdir()
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:3]) + lines[3][:40])
    told: list[tuple[str, int]] = []
    assert detect(images, gallery, FILE, root, on_image=lambda *image: told.append(image)) == found
    assert Counter(told) == Counter({(digest, len(one.detections)): 1 for digest, one in found.items()})
    assert len(journal.read_bytes().splitlines()) == len(images) + 1  # three, the torn one, three again
    before = journal.read_bytes()
    assert list(detect(images, gallery, FILE, root)) == [image.digest for image in images]
    assert journal.read_bytes() == before


def test_a_changed_file_is_read_anew_and_an_error_is_not_kept(tmp_path: Path) -> None:
    sizes = {"x.png": (90, 60), "y.png": (90, 60)}
    images, gallery = images_of(tmp_path, sizes)
    settings = replace(FILE, file=coco_file(tmp_path / "coco.json", {"x.png": (90, 60)}, {}))
    first = detect(images, gallery, settings, tmp_path / "found")
    assert [one.error is None for one in first.values()] == [True, False]
    coco_file(tmp_path / "coco.json", sizes, {"x.png": [[0, 0, 9, 6]], "y.png": [[0, 0, 9, 6]]})
    second = detect(images, gallery, settings, tmp_path / "found")
    assert [len(one.detections) for one in second.values()] == [1, 1]
    assert len(list((tmp_path / "found").iterdir())) == 2


# --- the detector ----------------------------------------------------------------------------------------

# Looked for, not imported: its import writes into the user's home unless vpref does it.
HAS_ULTRALYTICS = importlib.util.find_spec("ultralytics") is not None


@pytest.mark.skipif(HAS_ULTRALYTICS, reason="ultralytics is installed")
def test_without_ultralytics_the_extra_is_named() -> None:
    for settings in (YOLO, replace(YOLO, weights=__file__)):
        with pytest.raises(ConfigError, match="pip install 'vpref\\[boxes\\]'") as refused:
            check(settings)
        assert "\n" not in str(refused.value)


def test_a_description_of_a_model_is_no_weights() -> None:
    with pytest.raises(ConfigError, match="holds no weights"):
        check(replace(YOLO, weights="yolo26n.yaml"))


needs_ultralytics = [
    pytest.mark.skipif(not HAS_ULTRALYTICS, reason="ultralytics is not installed: pip install 'vpref[boxes]'"),
    pytest.mark.filterwarnings("default"),  # its own and torch's are not ours to mend
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of untrained models, so that ultralytics runs though nothing can be downloaded."""
    from vpref.detection import yolo

    folder = tmp_path_factory.mktemp("models")
    for name in ("yolo26n", "yolo26n-cls", "yolo26n-seg"):
        yolo._ultralytics().YOLO(f"{name}.yaml").save(folder / f"{name}.pt")
    return folder


@pytest.fixture
def untrained(models: Path) -> DetectionSettings:
    """A detector that is sure of nothing and finds much."""
    return replace(YOLO, weights=str(models / "yolo26n.pt"), confidence=1e-6, image_size=160, device="cpu", batch=3)


class Detector:
    """Tests that run ultralytics."""

    pytestmark = needs_ultralytics


class TestAnyDetector(Detector):
    def test_each_image_has_boxes_the_same_in_batches_and_alone(
        self, untrained: DetectionSettings, tmp_path: Path
    ) -> None:
        gallery = Gallery(tmp_path / "gallery")
        images = prepare(DataSettings(), gallery)
        together = detect(images, gallery, untrained, tmp_path / "together")
        alone = detect(images, gallery, replace(untrained, batch=1), tmp_path / "alone")
        assert [(tmp_path / way).is_dir() for way in ("together", "alone")] == [True, True]
        assert [path.name for path in (tmp_path / "together").iterdir()] == [
            path.name for path in (tmp_path / "alone").iterdir()
        ]
        for image in images:
            boxes, same = together[str(image.digest)].detections, alone[str(image.digest)].detections
            assert len(boxes) == len(same) > 0
            assert all(0 <= at.x0 <= at.x1 <= (image.width or 0) for at in boxes)
            for one, other in zip(boxes[:5], same[:5], strict=True):
                assert one.confidence == pytest.approx(other.confidence, abs=1e-3)
                assert (one.x0, one.y1) == pytest.approx((other.x0, other.y1), abs=0.5)

    def test_an_image_that_fails_stops_no_other(self, untrained: DetectionSettings, tmp_path: Path) -> None:
        gallery, root = Gallery(tmp_path / "gallery"), tmp_path / "found"
        images = prepare(DataSettings(), gallery)
        whole = gallery.path(str(images[1].digest)).read_bytes()
        gallery.path(str(images[1].digest)).write_bytes(whole[:5000])
        found = list(detect(images, gallery, untrained, root).values())
        assert [one.error is None for one in found] == [True, False, True, True, True, True]
        assert "was changed since it was stored" in str(found[1].error)
        gallery.path(str(images[1].digest)).write_bytes(whole)
        again = list(detect(images, gallery, untrained, root).values())
        assert again[1].error is None  # tried again
        assert again[2:] == found[2:]

    def test_a_batch_that_fails_is_taken_apart(self, untrained: DetectionSettings) -> None:
        from vpref.detection import yolo

        numpy = importlib.import_module("numpy")
        good, bad = numpy.zeros((64, 64, 3), numpy.uint8), numpy.zeros((64, 64), "U3")
        detector = yolo._Detector(yolo.load(untrained), untrained)
        errors = [one.error for one in detector.find([good, bad, good])]
        assert [error is None for error in errors] == [True, False, True]
        assert "The detector failed" in str(errors[1])

    def test_a_model_for_something_else_is_refused(self, models: Path) -> None:
        for name, task in (("yolo26n-cls", "classify"), ("yolo26n-seg", "segment")):
            with pytest.raises(ConfigError, match=f"is no detector but a model for {task}"):
                check(replace(YOLO, weights=str(models / f"{name}.pt"), image_size=64))

    def test_weights_that_cannot_be_had_are_refused_quickly(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
        (tmp_path / "junk.pt").write_bytes(b"junk")
        (tmp_path / "folder").mkdir()
        start = time.monotonic()
        for weights, sentence in {
            "yolo26x.pt": "cannot be downloaded",
            "elsewhere/yolo26n.pt": "does not exist",
            "absent.onnx": "does not exist",
            "junk.pt": "cannot be loaded",
            "folder": "cannot be run",
            __file__: "cannot be run",
        }.items():
            with pytest.raises(ConfigError, match=sentence) as refused:
                check(replace(YOLO, weights=weights))
            assert "\n" not in str(refused.value)
        assert time.monotonic() - start < 20
        assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "junk.pt"]

    def test_weights_run_no_code_of_whoever_made_them(self, tmp_path: Path) -> None:
        class Payload:
            def __reduce__(self) -> tuple[Any, ...]:
                return Path.touch, (tmp_path / "ran",)

        importlib.import_module("torch").save({"model": Payload()}, tmp_path / "made.pt")
        with pytest.raises(ConfigError, match="types outside the supported"):
            check(replace(YOLO, weights=str(tmp_path / "made.pt")))
        assert not (tmp_path / "ran").exists()

    def test_a_device_that_is_not_there_is_refused(self, untrained: DetectionSettings) -> None:
        with pytest.raises(ConfigError, match=r"detection\.device cuda:77"):
            check(replace(untrained, device="cuda:77"))

    def test_it_prints_nothing_calls_nobody_and_leaves_no_file(self, models: Path, tmp_path: Path) -> None:
        weights = [str(models / "yolo26n.pt"), *([str(WEIGHTS)] if has_real_weights() else [])]
        program = f"""
import sys
sys.addaudithook(lambda event, _: event in ("socket.connect", "socket.getaddrinfo") and print(event, flush=True))
import os
before = dict(os.environ)
from vpref.detection import check
from vpref.settings import DetectionSettings
for weights in {weights}:
    check(DetectionSettings(weights=weights, device="cpu"))
added = set(os.environ) - set(before)
assert not [name for name in added if name.startswith(("YOLO", "OMP", "ULTRALYTICS"))], added
"""
        home, here = tmp_path / "home", tmp_path / "here"
        home.mkdir()
        here.mkdir()
        environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[1])}
        run = subprocess.run(
            [sys.executable, "-c", program], cwd=here, env=environment, capture_output=True, text=True, timeout=120
        )
        assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
        assert [*home.rglob("*"), *here.rglob("*")] == []


# --- real weights on real photos ----------------------------------------------------------------


def has_real_weights() -> bool:
    return WEIGHTS.is_dir() and COCO_PHOTOS.is_dir() and importlib.util.find_spec("openvino") is not None


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[ImageRecord, Found]]:
    folder = tmp_path_factory.mktemp("photos")
    gallery = Gallery(folder / "gallery")
    images = prepare(DataSettings(root=str(COCO_PHOTOS)), gallery)
    settings = replace(YOLO, weights=str(WEIGHTS), device="cpu")
    check(settings)
    found = detect(images, gallery, settings, folder / "found")
    return {image.source[-7:-4]: (image, found[str(image.digest)]) for image in images}


@pytest.mark.skipif(not has_real_weights(), reason="needs shared/yolo, shared/images and the package openvino")
class TestRealWeights(Detector):
    def test_they_find_what_is_there(self, photos: dict[str, tuple[ImageRecord, Found]]) -> None:
        seen = {name: Counter(box.name for box in found.detections) for name, (_, found) in photos.items()}
        assert seen["009"].keys() == {"bowl", "broccoli"}
        assert seen["009"]["bowl"] > 1
        assert seen["025"] == {"giraffe": 1}
        assert seen["030"] == {"vase": 1, "potted plant": 1}
        assert seen["034"] == {"zebra": 1}
        assert seen["036"] == {"person": 1, "umbrella": 1}
        assert seen["042"] == {"suitcase": 1, "motorcycle": 1, "dog": 1}
        assert seen["049"].keys() == {"horse", "person", "potted plant", "dog"}
        assert (seen["049"]["horse"], seen["049"]["person"] > 1) == (2, True)
        assert seen["061"] == {"elephant": 1, "person": 1}

    def test_what_survives_and_why_the_others_fall(self, photos: dict[str, tuple[ImageRecord, Found]]) -> None:
        def outcomes(settings: DetectionSettings) -> dict[str, object]:
            selections = {
                name: select(found.detections, (image.width or 0, image.height or 0), settings)
                for name, (image, found) in photos.items()
            }
            return {
                name: (one.discarded, sorted({gone.reason for gone in one.removed})) if one.discarded else names(one)
                for name, one in selections.items()
            }

        expected: dict[str, object] = {
            "009": ("duplicate_class", ["duplicate_class"]),
            "025": ("too_few", []),
            "030": ("too_few", ["contains_others"]),  # the plant's box holds the vase
            "034": ("too_few", ["too_large"]),
            "036": ("too_few", ["person", "too_large"]),  # the umbrella
            "042": ["suitcase", "dog"],  # a motorcycle as large as the image is none
            "049": ("duplicate_class", ["duplicate_class", "person"]),
            "061": ("too_few", ["person"]),
        }
        assert outcomes(YOLO) == expected
        assert outcomes(DROP) == expected | {
            "009": ("too_few", ["duplicate_class"]),
            "049": ["dog", "potted plant"],
        }
