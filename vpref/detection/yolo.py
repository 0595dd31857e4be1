"""A YOLO detector by the `ultralytics` package: weights found or refused in one sentence, images in batches.

Alone in vpref to know ultralytics, which it loads on use, and keeps from talking, phoning home, installing packages
and writing into the user's home. Knows nothing of which boxes are wanted.
"""

from __future__ import annotations

import atexit
import importlib
import io
import logging
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from vpref.detection.records import Found, Gallery, Target
from vpref.domain import Detection
from vpref.errors import ConfigError, VprefError
from vpref.settings import DetectionSettings

Pixels: TypeAlias = Any
"""A numpy array of uint8, height x width x (blue, green, red): what ultralytics takes an array for."""

_THREADS = min(4, os.cpu_count() or 1)


# --- weights and model -----------------------------------------------------------------------------------


def weights(settings: DetectionSettings) -> Path:
    """The file or folder of `settings.weights`. The name of one of ultralytics' own that is not in the working folder
    is downloaded there. Raises ConfigError when there is none."""
    path = Path(settings.weights).expanduser()
    if path.suffix in (".yaml", ".yml"):
        raise ConfigError(f"detection.weights {path} describes a model and holds no weights; give a .pt file.")
    if not path.exists():
        _download(path)
    return path


def load(settings: DetectionSettings) -> Any:
    """The detector, which has run once on a blank image, so that whatever cannot work has failed by now.

    Raises ConfigError when ultralytics or the weights are missing, or the weights are no detector or do not run.
    """
    path = weights(settings)
    model = _loaded(path.absolute(), _files(path))
    try:
        numpy = importlib.import_module("numpy")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _predict(model, [numpy.zeros((64, 64, 3), numpy.uint8)], settings)
    except Exception as exc:  # a device, an export's runtime and the weights each fail in their own way
        on = "" if settings.device is None else f" on detection.device {settings.device}"
        raise ConfigError(
            f"detection.weights {settings.weights} cannot be run{on} with detection.image_size {settings.image_size} "
            f"({_reason(exc)}); give a .pt file of ultralytics or the folder of an exported model."
        ) from exc
    # What an export is for is known only once it has run; till then `model.task` is what it was taken for.
    tasks = {model.task, getattr(model.predictor.model, "task", None) or model.task}
    if tasks != {"detect"}:
        found = ", ".join(sorted(tasks - {"detect"}))
        raise ConfigError(f"detection.weights {settings.weights} is no detector but a model for {found}; give another.")
    return model


@lru_cache(maxsize=1)
def _loaded(path: Path, _state: tuple[int, ...]) -> Any:
    """`_state` tells a file that was changed since from the one that was loaded."""
    ultralytics = _ultralytics()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ultralytics.YOLO(path, task="detect")
    except Exception as exc:  # a file may be broken in any way
        raise ConfigError(
            f"detection.weights {path} cannot be loaded ({_reason(exc)}); give a .pt file of ultralytics or the folder "
            "of an exported model."
        ) from exc


def _files(path: Path) -> tuple[int, ...]:
    files = [path] if path.is_file() else [file for file in sorted(path.rglob("*")) if file.is_file()]
    return tuple(value for file in files for value in (file.stat().st_mtime_ns, file.stat().st_size))


def _download(path: Path) -> None:
    ultralytics_downloads = _ultralytics("ultralytics.utils.downloads")
    if len(path.parts) != 1 or path.name not in ultralytics_downloads.GITHUB_ASSETS_NAMES:
        raise ConfigError(
            f"detection.weights {path} does not exist (looked in {Path.cwd()}); give a .pt file, the folder of an "
            "exported model, or the name of a model of ultralytics, such as yolo26n.pt."
        )
    try:
        ultralytics_downloads.attempt_download_asset(path, retry=0, progress=False)
    except Exception as exc:  # of requests, ultralytics, the file system
        raise ConfigError(
            f"detection.weights {path} is not in {Path.cwd()} and cannot be downloaded ({_reason(exc)}); put the file "
            "there, or set detection.weights to its path."
        ) from exc


def _ultralytics(module: str = "ultralytics") -> Any:
    environment = {
        "YOLO_AUTOINSTALL": "false",  # or it runs pip for whatever an export lacks
        "YOLO_OFFLINE": "true",  # no look-ups on import; a download is still tried, once
        "YOLO_VERBOSE": "false",
        "ULTRALYTICS_SAFE_LOAD": "true",  # a .pt file is a pickle, and may otherwise run code of whoever made it
    }
    if "ultralytics" not in sys.modules and "YOLO_CONFIG_DIR" not in os.environ:
        environment["YOLO_CONFIG_DIR"] = folder = tempfile.mkdtemp(prefix="vpref-yolo-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if "openvino" not in sys.modules:
        sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # absent, openvino sends nothing
    ours = {name for name in (*environment, "OMP_NUM_THREADS") if name not in os.environ}
    for name in environment.keys() & ours:
        os.environ[name] = environment[name]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            package = importlib.import_module("ultralytics")
            wanted = importlib.import_module(module)
    except ImportError as exc:
        why = "" if getattr(exc, "name", None) == "ultralytics" else f" ({_reason(exc)})"
        raise ConfigError(
            f"detection=yolo needs the package ultralytics{why}; install it with `pip install 'vpref[boxes]'`, or "
            "take boxes from annotations by detection=file or detection=visual_genome."
        ) from exc
    finally:
        for name in ours:  # ultralytics has read them, and no child process is to inherit them
            os.environ.pop(name, None)
    dict.__setitem__(package.settings, "sync", False)  # usage reports; by `dict`, so that it writes no file
    logging.getLogger("ultralytics").setLevel(logging.CRITICAL + 1)  # it prints to stdout; errors are raised as well
    return wanted


# --- images ----------------------------------------------------------------------------------------------


def find(targets: Sequence[Target], gallery: Gallery, settings: DetectionSettings) -> Iterator[tuple[Target, Found]]:
    """What the detector finds in each image, in order. The next batch is decoded while one is looked at."""
    detector = _Detector(load(settings), settings)
    decoded = _decoded(targets, gallery, settings.batch)
    while batch := list(islice(decoded, settings.batch)):
        found = iter(detector.find([pixels for _, pixels in batch if not isinstance(pixels, str)]))
        for target, pixels in batch:
            yield target, Found(error=pixels) if isinstance(pixels, str) else next(found)


def _decoded(targets: Sequence[Target], gallery: Gallery, ahead: int) -> Iterator[tuple[Target, Pixels | str]]:
    """The pixels of each image, or why it has none; up to `ahead` more are under way."""
    from vpref.detection.pixels import bgr

    def decode(target: Target) -> Pixels | str:
        try:
            return bgr(io.BytesIO(gallery.read(target.digest)))
        except (VprefError, OSError, ValueError, MemoryError) as exc:
            return f"It cannot be read: {_reason(exc)}."

    with ThreadPoolExecutor(_THREADS, thread_name_prefix="decoding") as pool:
        pending: deque[tuple[Target, Future[Pixels | str]]] = deque()
        try:
            for target in targets:
                pending.append((target, pool.submit(decode, target)))
                if len(pending) > ahead:
                    first, future = pending.popleft()
                    yield first, future.result()
            while pending:
                first, future = pending.popleft()
                yield first, future.result()
        finally:
            for _, future in pending:
                future.cancel()


class _Detector:
    """A loaded model as it is asked: by batches while these work, one by one where they do not."""

    def __init__(self, model: Any, settings: DetectionSettings) -> None:
        self._model = model
        self._settings = settings
        self._batches = True

    def find(self, batch: Sequence[Pixels]) -> list[Found]:
        if self._batches and len(batch) > 1:
            try:
                return [Found(boxes) for boxes in _predict(self._model, batch, self._settings)]
            except Exception:  # one bad image, an export made for single ones, no memory: each alone will tell
                found = [self._single(pixels) for pixels in batch]
                self._batches = any(one.error for one in found)  # all good alone: it was the batch
                return found
        return [self._single(pixels) for pixels in batch]

    def _single(self, pixels: Pixels) -> Found:
        try:
            return Found(_predict(self._model, [pixels], self._settings)[0])
        except Exception as exc:  # whatever a model does to one image, the others are looked at
            return Found(error=f"The detector failed: {_reason(exc)}.")


def _predict(model: Any, batch: Sequence[Pixels], settings: DetectionSettings) -> list[tuple[Detection, ...]]:
    """Boxes by image. `rect=False`: all images are padded to one square, where ultralytics would else pad as little
    as the batch allows, so that what it finds in one depended on the images beside it."""
    results = model.predict(
        list(batch),
        conf=settings.confidence,
        imgsz=settings.image_size,
        device=settings.device,
        rect=False,
        save=False,
        verbose=False,
    )
    if len(results) != len(batch):
        raise RuntimeError(f"{len(results)} results for {len(batch)} images")
    return [_detections(result) for result in results]


def _detections(result: Any) -> tuple[Detection, ...]:
    boxes = result.boxes
    if boxes is None:  # not a detector's, which `load` finds out
        return ()
    rows = zip(boxes.xyxy.tolist(), boxes.conf.tolist(), boxes.cls.tolist(), strict=True)
    return tuple(_detection(result.names[int(number)], corners, confidence) for corners, confidence, number in rows)


def _detection(name: str, corners: Sequence[float], confidence: float) -> Detection:
    # Beyond these digits a box differs by batch size and device.
    x0, y0, x1, y1 = (round(value, 2) for value in corners)
    return Detection(name=name, x0=x0, y0=y0, x1=x1, y1=y1, confidence=round(confidence, 4))


def _reason(exc: BaseException) -> str:
    """The first sentence of an error of others, fit to stand inside one of ours."""
    line = re.sub(r"^(ERROR )?❌\W*", "", next(iter(str(exc).strip().splitlines()), ""))
    sentence = re.split(r"[.:] (?=[A-Z])", line)[0].rstrip(".")
    return (sentence if len(sentence) <= 200 else f"{sentence[:200]}...") or type(exc).__name__
