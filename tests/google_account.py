"""A small service that keeps forms as Google's APIs do, by the client's own description of them: a body that has
another shape than described is refused, and so is whoever has no token."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import googleapiclient
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

_DOCUMENTS = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
SCHEMAS = {
    name: schema
    for document in ("forms.v1", "drive.v3")
    for name, schema in json.loads((_DOCUMENTS / f"{document}.json").read_text())["schemas"].items()
}

KINDS: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


def misfits(value: Any, schema: dict[str, Any], where: str = "") -> list[str]:
    """Where a body is not of a described shape."""
    schema = SCHEMAS[schema["$ref"]] if "$ref" in schema else schema
    if not isinstance(value, KINDS[schema["type"]]):
        return [f"{where}: no {schema['type']}"]
    if isinstance(value, dict):
        known = schema["properties"]
        unknown = [f"{where}.{name}: unknown" for name in value if name not in known]
        return unknown + [
            fault
            for name, part in value.items()
            if name in known
            for fault in misfits(part, known[name], f"{where}.{name}")
        ]
    if isinstance(value, list):
        return [fault for n, part in enumerate(value) for fault in misfits(part, schema["items"], f"{where}[{n}]")]
    return [f"{where}: {value!r} is none of {schema['enum']}"] if value not in schema.get("enum", [value]) else []


class Google:
    """Forms by id, the calls made, and the faults still to come: (part of a path, whether it is done all the same)."""

    def __init__(self) -> None:
        self.url = ""
        self.forms: dict[str, dict[str, Any]] = {}
        self.responses: dict[str, list[dict[str, Any]]] = {}
        self.shared: dict[str, list[dict[str, Any]]] = {}
        self.calls: list[str] = []
        self.faults: list[tuple[str, bool]] = []

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        self.calls.append(f"{method} {path}")
        fault = next((one for one in self.faults if one[0] in path), None)
        if fault is not None:
            self.faults.remove(fault)
            if fault[1]:
                self._do(method, path, body)
            return 403, {"error": {"code": 403, "message": "Quota is spent", "status": "PERMISSION_DENIED"}}
        return self._do(method, path, body)

    def _do(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if (method, path) == ("POST", "/v1/forms"):
            return self._checked("Form", body) or (200, self._create(body))
        if shared := re.fullmatch(r"/drive/v3/files/(\w+)/permissions", path):
            return self._checked("Permission", body) or (200, self._share(shared[1], body))
        found = re.fullmatch(r"/v1/forms/(\w+)(:\w+|/responses)?(?:\?pageToken=(\d+))?", path)
        assert found is not None, path
        form, what, page = found.groups()
        if what == ":batchUpdate":
            return self._checked("BatchUpdateFormRequest", body) or self._fill(form, body)
        if what == ":setPublishSettings":
            settings = {"publishSettings": body.get("publishSettings")}
            self.forms[form] |= settings
            return self._checked("SetPublishSettingsRequest", body) or (200, {"formId": form, **settings})
        return (200, self._page(form, int(page or 0)) if what else self.forms[form])

    def _checked(self, schema: str, body: Any) -> tuple[int, Any] | None:
        faults = misfits(body, {"$ref": schema})
        return (400, {"error": {"code": 400, "message": faults[0]}}) if faults else None

    def _create(self, body: Any) -> dict[str, Any]:
        id = f"form{len(self.forms)}"
        self.forms[id] = {"formId": id, "info": body["info"], "revisionId": "0", "responderUri": f"{self.url}/d/{id}"}
        return self.forms[id]

    def _fill(self, id: str, body: Any) -> tuple[int, Any]:
        form = self.forms[id]
        if body["writeControl"]["requiredRevisionId"] != form["revisionId"]:
            return 400, {"error": {"code": 400, "message": "Not the newest revision"}}
        made = [dict(one["createItem"]["item"]) for one in body["requests"] if "createItem" in one]
        form |= {"items": made, "revisionId": "1"}
        for number, item in enumerate(made):
            if "questionItem" in item:
                question = item["questionItem"]["question"] | {"questionId": f"{number:08x}"}
                item["questionItem"] = {"question": question}
        return 200, {"replies": [{}] * len(body["requests"])}

    def _share(self, id: str, body: Any) -> dict[str, Any]:
        self.shared.setdefault(id, []).append(body)
        return {"id": "anyoneWithLink"}

    def _page(self, id: str, start: int) -> dict[str, Any]:
        """Two responses at a time."""
        given = self.responses.get(id, [])
        more = {"nextPageToken": str(start + 2)} if start + 2 < len(given) else {}
        return {"responses": given[start : start + 2], **more} if given else {}


@contextmanager
def google() -> Iterator[Google]:
    """The service on a port of its own."""
    service = Google()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/token":
                self._send(200, {"access_token": "let-me-in", "token_type": "Bearer", "expires_in": 3600})
            else:
                self._let_in(json.loads(data))

        def do_GET(self) -> None:
            self._let_in(None)

        def _let_in(self, body: Any) -> None:
            if self.headers.get("Authorization") == "Bearer let-me-in":
                path = self.path.replace("?alt=json&", "?").replace("&alt=json", "").replace("?alt=json", "")
                self._send(*service.answer(self.command, path, body))
            else:
                self._send(401, {"error": {"code": 401, "message": "Who are you?"}})

        def _send(self, status: int, value: Any) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def service_account(path: Path, url: str) -> Path:
    """The key file of a service account whose tokens this service gives."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    about = {
        "type": "service_account",
        "project_id": "p",
        "private_key_id": "1",
        "private_key": pem.decode(),
        "client_email": "vpref@p.example.org",
        "token_uri": f"{url}/token",
    }
    path.write_text(json.dumps(about))
    return path
