"""A Google account that forms are made in and read from, by its Forms API. Loads Google's client when it is opened."""

from __future__ import annotations

import importlib.util
from typing import Any

from vpref.errors import ConfigError, RunStopped

SCOPE = "https://www.googleapis.com/auth/drive.file"  # forms made by us, and no other file of the account
_RETRIES = 4  # after 429, 5xx and lost connections, each pause twice the last


class Account:
    """Forms of one account. Whatever Google answers other than yes becomes one sentence."""

    def __init__(self, forms: Any, drive: Any) -> None:
        self._forms = forms
        self._drive = drive

    @classmethod
    def open(cls, endpoint: str | None = None) -> Account:
        """By the machine's own login for Google (Application Default Credentials).

        `endpoint` is another address that both APIs are reached at. Raises ConfigError where the client is not
        installed or there is no login.
        """
        if importlib.util.find_spec("googleapiclient") is None:
            raise ConfigError("This needs Google's client: pip install 'vpref[google]'.")
        import google.auth
        from google.auth.exceptions import DefaultCredentialsError
        from googleapiclient.discovery import build

        try:
            credentials, _ = google.auth.default(scopes=[SCOPE])
        except DefaultCredentialsError as error:
            raise ConfigError(
                f"Google does not know who you are ({_line(error)}); log in by `gcloud auth application-default login "
                f"--scopes={SCOPE},https://www.googleapis.com/auth/cloud-platform`, or name the file of a service "
                "account in GOOGLE_APPLICATION_CREDENTIALS. The Apps Script (make_forms.gs) needs neither."
            ) from error

        def client(name: str, version: str, path: str) -> Any:
            options = None if endpoint is None else {"api_endpoint": endpoint.rstrip("/") + path}
            return build(name, version, credentials=credentials, static_discovery=True, client_options=options)

        return cls(client("forms", "v1", "/"), client("drive", "v3", "/drive/v3/"))

    def create(self, body: dict[str, Any]) -> str:
        """An empty form; its id. Sent once: a second one would be another form."""
        return str(_done(self._forms.forms().create(body=body), "making a form", retries=0)["formId"])

    def fill(self, form: str, body: dict[str, Any]) -> None:
        """All questions at once, or none. Only into a form that has none: a lost answer does no harm."""
        now = self.read(form)
        wanted = sum("createItem" in request for request in body["requests"])
        held = len(now.get("items", ()))
        if held == wanted:
            return
        if held:
            raise RunStopped(
                f"The form {edit_address(form)} holds {held} of {wanted} parts, so somebody changed it; delete it, and "
                "its line in forms.json, to have it made anew."
            )
        guarded = body | {"writeControl": {"requiredRevisionId": now["revisionId"]}}
        _done(self._forms.forms().batchUpdate(formId=form, body=guarded), f"filling the form {form}", retries=0)

    def publish(self, form: str, body: dict[str, Any]) -> None:
        """Open it, to everybody who has its address: a form of the API is open to nobody by itself."""
        _done(self._forms.forms().setPublishSettings(formId=form, body=body), f"publishing the form {form}")
        anyone = {"type": "anyone", "role": "reader", "view": "published"}
        request = self._drive.permissions().create(fileId=form, body=anyone)
        _done(request, f"opening the form {form} to everybody who has its address")

    def read(self, form: str) -> dict[str, Any]:
        """A form as it is now."""
        return _done(self._forms.forms().get(formId=form), f"reading the form {form}")

    def responses(self, form: str) -> list[dict[str, Any]]:
        """All responses to it so far, over all pages."""
        found: list[dict[str, Any]] = []
        resource = self._forms.forms().responses()
        request = resource.list(formId=form)
        while request is not None:
            page = _done(request, f"reading the responses to the form {form}")
            found += page.get("responses", ())
            request = resource.list_next(request, page)
        return found


def edit_address(form: str) -> str:
    """Where its owner sees and changes a form."""
    return f"https://docs.google.com/forms/d/{form}/edit"


def _done(request: Any, what: str, retries: int = _RETRIES) -> dict[str, Any]:
    """Send it. Raises RunStopped with what Google says."""
    from google.auth.exceptions import GoogleAuthError
    from googleapiclient.errors import HttpError
    from httplib2 import HttpLib2Error

    try:
        reply: dict[str, Any] = request.execute(num_retries=retries)
    except HttpError as error:
        raise RunStopped(f"Google refused {what}: {error.status_code}, {error.reason}. {_AGAIN}") from error
    except (GoogleAuthError, HttpLib2Error, OSError) as error:
        raise RunStopped(f"Google was not reached for {what} ({_line(error)}). {_AGAIN}") from error
    return reply


_AGAIN = "What was made is kept: give the same command to go on."


def _line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
