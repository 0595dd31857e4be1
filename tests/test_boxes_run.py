"""The boxes variant from photos to tables, as commands; with real weights where the detector is installed."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.commands import QUIET, ROOT, complaint, run, run_folder
from vpref.domain import OUTCOME, Accepted
from vpref.images.drawing import draw
from vpref.images.normalising import normalise
from vpref.settings import DataSettings

SIM = ["model@pipeline.model=simulator", *QUIET]
EVALUATED = ["model@evaluated=simulator", "model@extractor=null"]
FILE = ["variant=boxes", "detection=file"]
SHARED = ROOT.parent / "shared"
WEIGHTS = SHARED / "yolo" / "yolov8n_int8_openvino_model"


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def checked(folder: Path) -> list[Accepted]:
    """The accepted items of a run, each held to the rules of its boxes."""
    outcomes = [OUTCOME.validate_json(line) for line in (folder / "items.jsonl").read_text().splitlines()]
    kept = [outcome for outcome in outcomes if isinstance(outcome, Accepted)]
    for item in (outcome.item for outcome in kept):
        assert [box.letter for box in item.boxes] == list("ABCDE"[: len(item.boxes)])
        assert 2 <= len(item.boxes) <= 5
        assert len({box.name.casefold() for box in item.boxes}) == len(item.boxes)
        assert all(len(box.name.split()) <= 4 for box in item.boxes)
        texts = " ".join(item.choices.texts)
        assert "<" not in texts
        assert set(re.findall(r"bounding box (\w)", texts)) <= {box.letter for box in item.boxes}
        assert item.category in (0, 2)
        original = next((folder / "images").glob(f"{item.slot.image}.*")).read_bytes()
        again = normalise(draw(original, item.boxes), DataSettings())
        assert again.digest == item.shown, "the drawn image can be made again from the record alone"
    return kept


def test_boxes_from_a_file_go_all_the_way_to_a_table(tmp_path: Path) -> None:
    out, _ = run("generate", *SIM, *FILE, cwd=tmp_path)
    assert "Boxes: images left after each rule" in out
    folder = tmp_path / run_folder(out)
    kept = checked(folder)
    boxed = lines(folder / "boxes.jsonl")
    assert len(kept) == 2 * sum(one["discarded"] is None for one in boxed) > 0
    assert all((one["drawn"] is None) == (one["discarded"] is not None) for one in boxed)
    assert sum(one["discarded"] is not None for one in boxed) > 0
    exported = json.loads((folder / "reference.json").read_text())["items"]
    assert {one["img"] for one in exported} == {f"{outcome.item.shown}.jpg" for outcome in kept}
    assert all((folder / "images" / one["img"]).is_file() for one in exported)
    given = [f"items={folder / 'reference.json'}", f"data.root={folder / 'images'}", "driver.progress=none"]
    imported, _ = run("import", *given, cwd=tmp_path)
    again = [json.loads(line) for line in (tmp_path / run_folder(imported) / "items.jsonl").read_text().splitlines()]
    assert [one["item"]["shown"] for one in again] == [outcome.item.shown for outcome in kept]
    assert {one["slot"]["variant"] for one in again} == {"boxes"}
    out, _ = run("evaluate", f"dataset={folder}", *EVALUATED, *QUIET, cwd=tmp_path)
    assert "Table 1: accuracy, boxes" in out
    table = json.loads(next(tmp_path.glob("outputs/evaluate/*/tables/categories_boxes.json")).read_text())
    assert table["records"][0]["low_dependence"]["n"] == 0
    assert table["records"][0]["high_dependence"]["n"] == len(kept)
    sent = {line["slot"]["image"] for line in lines(next(tmp_path.glob("outputs/evaluate/*/responses.jsonl")))}  # type: ignore[index]
    assert sent == {outcome.slot.image for outcome in kept}


def test_both_variants_in_one_run_and_again_for_free(tmp_path: Path) -> None:
    first, _ = run("generate", *SIM, "variant=both", "detection=file", cwd=tmp_path)
    again, _ = run("generate", *SIM, "variant=both", "detection=file", cwd=tmp_path)
    one, two = (tmp_path / run_folder(out) for out in (first, again))
    for name in ("items.jsonl", "boxes.jsonl", "reference.json", "tables/boxes.csv"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    assert json.loads((two / "manifest.json").read_text())["summary"]["calls"]["sent"] == 0
    plan, _ = run("generate", *SIM, "variant=both", "detection=file", "dry_run=true", cwd=tmp_path)
    assert "still to be sent: 0 to 0 calls" in plan


def test_the_box_stage_alone_shows_each_image(tmp_path: Path) -> None:
    out, _ = run("boxes", "detection=file", "model@mapper=simulator", *QUIET, cwd=tmp_path)
    assert re.search(r"rocket\.jpg +A ", out)
    assert "discarded: fewer than two boxes" in out
    drawn = {one["drawn"] for one in lines(tmp_path / run_folder(out) / "boxes.jsonl") if one["drawn"]}
    assert drawn <= {path.stem for path in tmp_path.glob("outputs/boxes/*/images/*")}
    plan, _ = run("boxes", "detection=file", "model@mapper=simulator", *QUIET, "dry_run=true", cwd=tmp_path)
    assert "still to be sent: 0 to 0 calls" in plan


def test_a_preview_names_few_images_and_no_image_left_is_no_crash(tmp_path: Path) -> None:
    out, _ = run("generate", *SIM, *FILE, "preview=1", cwd=tmp_path)
    assert out.count(">>> to the generator") == 1
    boxed = lines(tmp_path / run_folder(out) / "boxes.jsonl")
    assert sum(one["discarded"] in (None, "too_few_named", "mapper_failed") for one in boxed) == 1
    out, _ = run("generate", *SIM, *FILE, "data.ids=[chelsea.jpg]", cwd=tmp_path)
    folder = tmp_path / run_folder(out)
    assert (folder / "items.jsonl").read_bytes() == b""
    assert json.loads((folder / "manifest.json").read_text())["summary"]["boxes"]["discarded_too_few"] == 1
    assert "is empty" in complaint("evaluate", f"dataset={folder}", "model@evaluated=simulator", cwd=tmp_path)


def test_how_duplicates_are_treated_is_config(tmp_path: Path) -> None:
    photo = ROOT / "vpref/images/photos/rocket.jpg"
    (tmp_path / "photos").mkdir()
    shutil.copy(photo, tmp_path / "photos")
    boxes = [[10, 10, 50, 50], [100, 10, 50, 50], [200, 10, 60, 50], [300, 10, 70, 50]]
    coco = {
        "images": [{"id": 1, "file_name": "rocket.jpg", "width": 640, "height": 427}],
        "categories": [{"id": 1, "name": "tower"}, {"id": 2, "name": "lamp"}, {"id": 3, "name": "fence"}],
        "annotations": [{"image_id": 1, "category_id": c, "bbox": b} for c, b in zip((1, 1, 2, 3), boxes, strict=True)],
    }
    (tmp_path / "boxes.json").write_text(json.dumps(coco))
    given = ["boxes", "data.root=photos", "detection=file", "detection.file=boxes.json", "model@mapper=simulator"]
    given += QUIET
    out, _ = run(*given, cwd=tmp_path)
    assert "discarded: several boxes of one class" in out
    out, _ = run(*given, "detection.duplicates=drop_class", cwd=tmp_path)
    (one,) = lines(tmp_path / run_folder(out) / "boxes.jsonl")
    assert [gone["reason"] for gone in one["removed"]][:2] == ["duplicate_class"] * 2  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["detection=file", "detection.file=absent.json"], "absent.json"),
        (["detection=file", "detection.file=bad.json"], "bad.json"),
        (["detection=file", "category=1"], "categories 0 and 2 alone"),
        (["detection=file", "detection.max_boxes=9"], "must be 2 to 5"),
    ],
)
def test_boxes_that_cannot_be_had_are_one_sentence(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "bad.json").write_text('{"images": 3}')
    assert said in complaint("generate", *SIM, "variant=boxes", *arguments, cwd=tmp_path)


def test_a_missing_detector_is_said_with_the_way_out(tmp_path: Path) -> None:
    if importlib.util.find_spec("ultralytics") is not None:
        pytest.skip("the detector is installed here")
    assert "pip install 'vpref[boxes]'" in complaint("generate", *SIM, "variant=boxes", cwd=tmp_path)


def test_the_whole_variant_on_real_photos_with_real_weights(tmp_path: Path) -> None:
    pytest.importorskip("ultralytics", reason="the detector is not installed here")
    if not WEIGHTS.is_dir():
        pytest.skip("the weights beside the project are not here")
    real = ["detection=yolo", f"detection.weights={WEIGHTS}", f"data.root={SHARED / 'images'}", "variant=boxes"]
    theirs: dict[str, Any] = {"PYTHONWARNINGS": "default"}
    out, _ = run("generate", *SIM, *real, "detection.duplicates=drop_class", cwd=tmp_path, **theirs)
    folder = tmp_path / run_folder(out)
    kept = checked(folder)
    boxed = {one["source"]: one for one in lines(folder / "boxes.jsonl")}
    assert len(boxed) == 8
    assert len(kept) == 2 * sum(one["discarded"] is None for one in boxed.values()) > 0
    out, _ = run("evaluate", f"dataset={folder}", *EVALUATED, *QUIET, cwd=tmp_path)
    assert "Table 1: accuracy, boxes" in out
