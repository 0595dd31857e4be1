"""`vpref survey upload` and `vpref survey fetch`: exported forms made in a Google account, and their responses read
from there. What was made is known by `forms.json` beside the export's requests, written after every step, so that no
form is made twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vpref.errors import ConfigError
from vpref.forms.account import Account, edit_address
from vpref.runs.folder import RunFolder, read_json, write_json
from vpref.runs.terminal import say, shown
from vpref.settings import SurveyFetchSettings, SurveyUploadSettings

_MADE = "forms.json"


def upload(settings: SurveyUploadSettings, folder: RunFolder) -> None:
    """Run the verb: each form created, filled and published; one that is there already is left as it is."""
    home = _requests(settings.export)
    paths = sorted(path for path in home.glob("*.json") if path.name != _MADE)
    made = _made(home)
    account = Account.open(settings.endpoint)
    for path in paths:
        form = made.setdefault(path.stem, {})
        for _ in _steps(account, read_json(path), form):
            write_json(home / _MADE, made)
        say(f"{path.stem}: {form['responder']}\n  to edit: {form['edit']}")
    folder.note(export=str(home.parent.resolve()), forms=made)
    say(f"forms: {len(paths)}, published; addresses: {shown(home / _MADE)}")
    say(f"once answers came: vpref survey fetch export={shown(home.parent)}")


def _steps(account: Account, bodies: dict[str, Any], form: dict[str, Any]) -> Iterator[None]:
    """What is still to be done on a form; after each step, what is known of it is to be written down."""
    if "id" not in form:
        form["id"] = account.create(bodies["create"])
        form["edit"] = edit_address(form["id"])
        yield
    if "responder" not in form:
        account.fill(form["id"], bodies["batchUpdate"])
        account.publish(form["id"], bodies["setPublishSettings"])
        form["responder"] = account.read(form["id"])["responderUri"]
        yield


def fetch(settings: SurveyFetchSettings, folder: RunFolder) -> None:
    """Run the verb: `FORM.json` for each form, as `vpref survey import` takes it."""
    home = _requests(settings.export)
    made = {name: form["id"] for name, form in _made(home).items() if "id" in form}
    if not made:
        raise ConfigError(f"No form of {settings.export} was uploaded yet: vpref survey upload export=...")
    account = Account.open(settings.endpoint)
    paths = []
    for name, form in made.items():
        responses = account.responses(form)
        paths.append(folder.path / f"{name}.json")
        write_json(paths[-1], {"form": account.read(form), "responses": responses})
        say(f"{name}: {len(responses):,} responses")
    folder.note(export=str(home.parent.resolve()))
    say(f"next: vpref survey import survey=... {' '.join(map(shown, paths))}")


def _requests(export: str) -> Path:
    """The folder of an export's requests. Raises ConfigError where it has none."""
    home = Path(export) / "google"
    if not home.is_dir():
        raise ConfigError(
            f"{export} holds no requests of the Forms API; give the folder of a `vpref survey export` run with "
            "image_url, from which Google can fetch the images."
        )
    return home


def _made(home: Path) -> dict[str, dict[str, Any]]:
    path = home / _MADE
    return dict(read_json(path)) if path.exists() else {}
