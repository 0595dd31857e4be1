"""What vpref adds to a detector: `python benchmarks/detection.py [--images N] [--batch N] [--weights PATH]`.

Images a second of `vpref.detection.detect`, which reads and decodes files and keeps what it finds, beside the
detector alone on the same images decoded beforehand. Without weights the model is yolo26n untrained, which takes the
same time. No test: a goal that is missed is printed, not failed. Needs `pip install 'vpref[boxes]'`.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

GOAL = 10.0  # percent
Times: TypeAlias = tuple[float, float]  # seconds by the clock, and of CPU


def make_images(folder: Path, count: int) -> None:
    """`count` different JPEGs of the sizes of the photos that ship with vpref, cut out of these and out of noise."""
    import random

    from PIL import Image

    import vpref.images

    photos = sorted((Path(vpref.images.__file__).parent / "photos").glob("*.jpg"))
    folder.mkdir()
    for number in range(count):
        dice = random.Random(number)
        with Image.open(photos[number % len(photos)]) as photo:
            size, share = photo.size, dice.uniform(0.7, 1.0)
            cut = photo.convert("RGB").crop((0, 0, int(size[0] * share), int(size[1] * share))).resize(size)
        if number % 2:
            noise = Image.frombytes("RGB", (40, 30), dice.randbytes(3600)).resize(size, Image.Resampling.BICUBIC)
            cut = Image.blend(cut, noise, 0.5)
        cut.save(folder / f"{number:05}.jpg", quality=90)


def untrained(folder: Path) -> str:
    from vpref.detection import yolo

    path = folder / "yolo26n.pt"
    yolo._ultralytics().YOLO("yolo26n.yaml").save(path)
    return str(path)


def alone(model: Any, batches: Sequence[Sequence[Any]], options: dict[str, Any]) -> None:
    """The detector by itself, on batches of decoded images."""
    for batch in batches:
        model.predict(list(batch), rect=False, save=False, verbose=False, **options)


def timed(work: Callable[[], object]) -> Times:
    """Seconds by the clock, and of this process on any core: the latter tells more where others use the cores too."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def best(times: Sequence[Times]) -> Times:
    return min(wall for wall, _ in times), min(cpu for _, cpu in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=640, help="detection.image_size")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--weights", help="a .pt file or an exported model's folder")
    parser.add_argument("--rounds", type=int, default=3, help="each way is timed so often, in turn; the best counts")
    given = parser.parse_args()

    from vpref.detection import detect, yolo
    from vpref.detection.pixels import bgr
    from vpref.images import Gallery, prepare
    from vpref.settings import DataSettings, DetectionSettings

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        make_images(folder / "images", given.images)
        gallery = Gallery(folder / "gallery")
        images = prepare(DataSettings(root=str(folder / "images")), gallery)
        settings = DetectionSettings(
            weights=given.weights or untrained(folder), device=given.device, batch=given.batch, image_size=given.size
        )
        model = yolo.load(settings)
        pixels = [bgr(io.BytesIO(gallery.read(str(image.digest)))) for image in images]
        batches = [pixels[start : start + given.batch] for start in range(0, len(pixels), given.batch)]
        options = {"conf": settings.confidence, "imgsz": settings.image_size, "device": settings.device}
        alone(model, batches[:2], options)
        print(f"{len(images)} images, batch {given.batch}, {given.size} px, {given.device}, best of {given.rounds}")
        ours: list[Times] = []
        bare: list[Times] = []
        for number in range(given.rounds):
            bare.append(timed(lambda: alone(model, batches, options)))
            ours.append(timed(partial(detect, images, gallery, settings, folder / f"found{number}")))
        again, _ = timed(lambda: detect(images, gallery, settings, folder / "found0"))
    show(len(images), best(bare), best(ours), again)


def show(count: int, bare: Times, ours: Times, again: float) -> None:
    for name, (wall, cpu) in {"detector alone": bare, "vpref detect": ours}.items():
        print(f"{name:16}{count / wall:8.1f} images/s{1000 * cpu / count:8.1f} ms of CPU an image")
    for name, one, other in (("by the clock", ours[0], bare[0]), ("in CPU time", ours[1], bare[1])):
        overhead = 100 * (one / other - 1)
        missed = "" if overhead < GOAL else "; missed"
        print(f"overhead {name}: {overhead:.1f} % (goal: under {GOAL:.0f} %{missed})")
    print(f"all known: {count / again:.0f} images/s")


if __name__ == "__main__":
    main()
