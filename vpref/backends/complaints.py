"""What servers complain of, each in a shape of its own: the kind of trouble, and what was said.

Pure. The shapes are OpenAI's (`{"error": {"message", "code"}}`), OpenRouter's (the same with a number for a code and
the provider's own body as text within), Gemini's (the same in a list, with a `status`), Anthropic's (with a `type` of
its own), LM Studio's (`{"error": "text"}`), vLLM's and FastAPI's (no `error` at all), and text. Refuses to know about
connections, configs, and what becomes of a complaint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from vpref.redaction import redact

LONGEST = 300


class Kind(StrEnum):
    """What is wrong. KEY, MODEL, IMAGES, SCHEMA and PARAMETER are of the config, and every request would meet them;
    CREDIT is of the account; TOO_LONG and IMAGE of one request. BLOCKED is an answer: no."""

    KEY = "key"
    MODEL = "model"
    IMAGES = "images"
    SCHEMA = "schema"
    PARAMETER = "parameter"
    CREDIT = "credit"
    TOO_LONG = "too_long"
    IMAGE = "image"
    BLOCKED = "blocked"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Complaint:
    """`said` is one line of the server's words, `parameter` the one that it names."""

    kind: Kind
    status: int
    said: str
    code: str = ""
    parameter: str | None = None

    @property
    def passing(self) -> bool:
        """Whether the same request may be answered later."""
        return self.kind is Kind.OTHER and (self.status >= 500 or self.status in (408, 409, 429))


_RULES: tuple[tuple[Kind, str], ...] = (
    (
        Kind.BLOCKED,
        r"content[_ ]?policy|content management policy|content[_ ]filter|moderation|input was flagged|flagged for"
        r"|prohibited[_ ]content|blocked by (?:our|the) safety|safety system|responsible ?ai",
    ),
    (Kind.CREDIT, r"insufficient[_ ](?:quota|credits?|balance|funds)|credit balance is too low|out of credits"),
    (
        Kind.KEY,
        r"api[_ ]key[_ ](?:is )?(?:not valid|invalid|missing)|authentication_error|no auth credentials"
        r"|(?:invalid|incorrect|missing|no)[_ ](?:api[_ ]key|x-api-key|bearer)|missing or invalid authorization",
    ),
    (
        Kind.IMAGES,
        r"support(?:s)? image input|(?:not|n't) support (?:images?|vision)|not a (?:vision|multimodal) model"
        r"|at most 0 image|image input is not supported|missing data required for image input",
    ),
    (
        Kind.MODEL,
        r"model_not_found|not a valid model|unknown model|invalid model|no endpoints found"
        r"|\bmodels?\b[^.]{0,80}(?:not found|does not exist|not available|no longer available)",
    ),
    (
        Kind.TOO_LONG,
        r"context[_ ]length|context[_ ]window|maximum context|context size|context the overflows|prompt is too long"
        r"|too many (?:input )?tokens|input token count",
    ),
    (
        Kind.IMAGE,
        r"image[^.]{0,80}(?:exceed|too large|too big|too small|maximum|invalid|corrupt|unsupported|could not|unable"
        r"|dimension)|(?:invalid|unsupported|could not process|unable to process|exceed)[^.]{0,60}image"
        r"|must be a base64 encoded image",
    ),
    (
        Kind.SCHEMA,
        r"response_?format|json_?schema|json schema|invalid schema|structured outputs?|response_?mime|response_?schema",
    ),
    (
        Kind.PARAMETER,
        r"unknown name|(?:unsupported|unknown|unrecognized|unexpected)[_ ](?:parameter|value|field|request argument)"
        r"|extra inputs are not permitted|cannot find field|does not support parameter",
    ),
)
_PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in _RULES)
_PARAMETER = re.compile(
    r"(?:unknown name|(?:parameter|field|argument)(?: supplied)?:?) ['\"\\]*([a-z_.]+)", re.IGNORECASE
)
_BY_STATUS = {401: Kind.KEY, 402: Kind.CREDIT, 403: Kind.KEY, 404: Kind.MODEL, 413: Kind.IMAGE}
_ANYWHERE = (Kind.BLOCKED, Kind.CREDIT)
"""Kinds that a server's words show whatever status it gives; of the others a busy or broken server knows nothing."""


def read(status: int, payload: bytes) -> Complaint:
    """The complaint in an error's body."""
    body = _parsed(payload)
    said, code = _one_line(_message(body)), " ".join(_codes(body))
    kind = _kind(status, f"{said} {code}".lower())
    named = _PARAMETER.search(said) if kind is Kind.PARAMETER else None
    return Complaint(kind, status, said or f"HTTP {status} without a word", code, named[1] if named else None)


def inside(payload: bytes) -> Complaint | None:
    """The complaint in a body that came with status 200, as OpenRouter's and LM Studio's do when a reply fails
    midway; None if there is none."""
    body = _parsed(payload)
    if not isinstance(body, dict):
        return None
    error = body.get("error")
    choices = body.get("choices")
    if error is None and isinstance(choices, list) and choices and isinstance(choices[0], dict):
        error = choices[0].get("error")
    if not error:
        return None
    given = error.get("code") if isinstance(error, dict) else None
    status = given if isinstance(given, int) and 400 <= given < 600 else 400 if isinstance(error, str) else 500
    return read(status, json.dumps({"error": error}).encode())


def _kind(status: int, text: str) -> Kind:
    broken = status >= 500 or status in (408, 409, 429)
    for kind, pattern in _PATTERNS:
        if (not broken or kind in _ANYWHERE) and pattern.search(text):
            return kind
    return _BY_STATUS.get(status, Kind.OTHER)


def _parsed(payload: bytes) -> Any:
    try:
        body = json.loads(payload)
    except ValueError:
        return payload.decode(errors="replace")
    return body[0] if isinstance(body, list) and body else body


def _message(body: Any) -> str:
    if not isinstance(body, dict):
        return re.sub(r"<[^>]*>", " ", str(body))
    error = body.get("error", body)
    if not isinstance(error, dict):
        return str(error)
    detail = error.get("message") or error.get("detail") or ""
    if isinstance(detail, list):
        detail = "; ".join(_field(one) for one in detail if isinstance(one, dict))
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if raw:  # what the provider behind a router said is what helps
        return f"{detail}: {_message(_parsed(str(raw).encode()))}"
    return str(detail)


def _field(detail: dict[str, Any]) -> str:
    """One of pydantic's errors, as servers made with FastAPI give them."""
    place = detail.get("loc")
    name = place[-1] if isinstance(place, list) and place else "?"
    return f"{name}: {detail.get('msg')}"


def _codes(body: Any) -> Iterator[str]:
    """Short names of the trouble: code, type, status, and a moderator's reasons."""
    error = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return
    yield from (str(error[name]) for name in ("code", "type", "status") if isinstance(error.get(name), str))
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and isinstance(detail.get("reason"), str):
            yield detail["reason"]
    if isinstance(metadata := error.get("metadata"), dict) and metadata.get("reasons"):
        yield "moderation"


def _one_line(text: str) -> str:
    return " ".join(redact(text).split())[:LONGEST].rstrip(".: ")
