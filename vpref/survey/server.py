"""The process that serves the pages: a port, threads, and an end in good order."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from flask import Flask
from waitress import wasyncore
from waitress.server import create_server

from vpref.errors import ConfigError

THREADS = 8
CONNECTIONS = 2000
"""Browsers keep theirs open for minutes; a form's people may all come at once."""


def serve(app: Flask, host: str, port: int, url: str | None, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; requests under way are answered. `url` is
    the public address, whose path the pages lie below; `ready` is told the address listened at.

    Raises ConfigError where the port cannot be had.
    """
    logging.getLogger("waitress").setLevel(logging.ERROR)
    listening, channels = _listening(host, port), {}  # type: ignore[var-annotated]
    server = create_server(
        app,
        sockets=[listening],
        map=channels,
        threads=THREADS,
        connection_limit=CONNECTIONS,
        asyncore_use_poll=True,  # select() would end at 1,024 connections
        url_prefix=urlsplit(url or "").path.rstrip("/"),
        ident=None,
    )
    before = {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with suppress(SystemExit):  # of a signal that comes outside the loop, which ends by itself
            ready(_address(listening))
            server.run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        wasyncore.close_all(channels, ignore_all=True)
        listening.close()


def _listening(host: str, port: int) -> socket.socket:
    """Bound here and not by waitress, which leaves its own open where that fails."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=1024)
    except OSError as error:
        reason = str(error.strerror).partition(" (while")[0]
        raise ConfigError(
            f"The survey cannot listen on {host}, port {port} ({reason}); set port to another one, or to 0 for "
            "any free port."
        ) from error


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _stop(number: int, frame: FrameType | None) -> Any:
    raise SystemExit(0)
