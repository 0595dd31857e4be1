"""Keeping secrets out of every text: files, logs, terminals, dashboards.

What counts as a secret is what the environment holds under a name like OPENAI_API_KEY or HF_TOKEN. Knows
nothing of models or servers.
"""

from __future__ import annotations

import logging
import os

_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD")
_SHORTEST = 8  # a shorter value is no real secret, and replacing it would garble innocent text


def redact(text: str) -> str:
    """The text with the value of every secret in the environment replaced by its variable's name."""
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST and name.upper().endswith(_NAMES) and value in text:
            text = text.replace(value, f"[{name}]")
    return text


class SecretsFilter(logging.Filter):
    """Redacts a log record, its traceback included, before any handler writes it."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redact(record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = redact(logging.Formatter().formatException(record.exc_info))
        return True
