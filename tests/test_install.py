"""vpref as a user gets it: a wheel, installed in an empty environment, run in an empty folder."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.commands import ROOT, environment

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(source)], check=True)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_all_that_runs_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {"vpref/py.typed", "vpref/conf/generate.yaml", "vpref/conf/model/gpt-4.1.yaml"} <= set(names)
    assert sum(name.startswith("vpref/images/photos/") and name.endswith(".jpg") for name in names) == 6
    assert {"vpref/prompts/generator.md", "vpref/images/photos/ATTRIBUTION.md"} <= set(names)
    tracked = subprocess.run(["git", "ls-files", "vpref", "conf"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = {name if name.startswith("vpref/") else f"vpref/{name}" for name in tracked.stdout.splitlines()}
    assert files <= set(names), "every file of the package is in the wheel"
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "conf/"))]


def test_it_runs_from_the_wheel_in_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    """The environment borrows this one's packages, and has vpref from the wheel alone."""
    place, empty = tmp_path / "environment", tmp_path / "empty"
    venv.create(place, with_pip=False)
    site = next(place.glob("lib/python*/site-packages"))
    zipfile.ZipFile(wheel).extractall(site)
    borrowed = [path for path in sys.path if path.endswith("site-packages")]
    empty.mkdir()
    clean = environment(PYTHONPATH=":".join([str(site), *borrowed]))
    command = [str(place / "bin/python"), "-m", "vpref", "demo", "driver.progress=none"]
    done = subprocess.run(command, cwd=empty, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Table 2: accuracy, plain" in done.stdout
    where = subprocess.run(
        [command[0], "-c", "import vpref; print(vpref.__file__)"], cwd=empty, env=clean, capture_output=True, text=True
    )
    assert str(site) in where.stdout
