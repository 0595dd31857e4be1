"""SIGINT and SIGTERM over the whole life of a job: none kills it unheard, and none is lost between two handlers.

There is one handler from the first moment to the last. A signal is raised in the main thread as KeyboardInterrupt,
once, which foreign code knows to let pass; or it is handed to whoever can stop in better order and has `taken` it
for a while: the driver, a sweep. Knows nothing of runs and statuses.
"""

from __future__ import annotations

import _thread
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_PATIENCE = 3
"""How many signals end the process at once, whatever it is cleaning up."""


class _Told(KeyboardInterrupt):
    """Not KeyboardInterrupt itself: one of these that passes through `exec` of a text, as where a dataclass is made,
    leaves a mark by which Python ends the process by SIGINT at its very end, although it was handled."""


@dataclass
class _Watch:
    """What the handler knows. Signals belong to a process, and so does this."""

    on: bool = False
    armed: bool = False
    noted: int | None = None
    untaken: int = 0
    taker: Callable[[int], None] | None = None


_watch = _Watch()


def noted() -> int | None:
    """The first signal that came since the watch began."""
    return _watch.noted


@contextmanager
def watched() -> Iterator[None]:
    """Watch from here to the end of the block, noting signals until `heed`; those that were blocked when the process
    began arrive now. What was done with signals before is done again afterwards. Within another watch, or outside
    the main thread, which alone gets signals, this changes nothing."""
    if _watch.on or threading.current_thread() is not threading.main_thread():
        yield
        return
    _watch.armed, _watch.noted, _watch.untaken, _watch.taker = False, None, 0, None
    before = {number: signal.signal(number, _arrived) for number in _NUMBERS}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    _watch.on = True
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _NUMBERS)
        yield
    finally:
        _watch.armed = False
        signal.pthread_sigmask(signal.SIG_BLOCK, _NUMBERS)
        for number, handler in before.items():
            signal.signal(number, handler)
        _watch.on = False
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def heed() -> None:
    """From here on a signal is raised, as KeyboardInterrupt and once; one that was noted before is raised now."""
    _watch.armed = _watch.noted is None
    if _watch.noted is not None:
        raise _Told


def quiet() -> None:
    """From here on signals are noted and no longer raised: what follows writes down how the job ended."""
    _watch.armed = False


@contextmanager
def taken(taker: Callable[[int], None]) -> Iterator[None]:
    """Signals go to `taker` while this is entered, called between any two steps of the main thread (or, while they
    are `kept_from_children`, beside it); one that came before and was swallowed by foreign code is handed on at
    once."""
    if not _watch.on or threading.current_thread() is not threading.main_thread():
        yield
        return
    outer, _watch.taker = _watch.taker, taker
    if _watch.noted is not None and outer is None:
        taker(_watch.noted)
    try:
        yield
    finally:
        _watch.taker = outer


@contextmanager
def kept_from_children() -> Iterator[None]:
    """Processes started meanwhile are born with both signals blocked: until their own watch begins, one that is
    sent to the whole group waits instead of killing them. Here a thread receives in the main thread's place."""
    if not _watch.on or threading.current_thread() is not threading.main_thread():
        yield
        return
    over = threading.Event()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _NUMBERS)
    receiver = threading.Thread(target=_receive, args=(over,), name="vpref-signals", daemon=True)
    receiver.start()
    try:
        yield
    finally:
        over.set()
        receiver.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def leave() -> None:
    """Raise KeyboardInterrupt in the main thread, whoever has taken the signals: it was told twice."""
    _watch.taker, _watch.armed = None, True
    _thread.interrupt_main(signal.SIGINT)


def _receive(over: threading.Event) -> None:
    while not over.is_set():
        got = signal.sigtimedwait(_NUMBERS, 0.2)
        if got is None:
            continue
        taker = _watch.taker
        if taker is None:
            _thread.interrupt_main(signal.Signals(got.si_signo))
            continue
        _watch.noted = _watch.noted or got.si_signo
        taker(got.si_signo)


def _arrived(number: int, _: FrameType | None) -> None:
    if _watch.noted is None:
        _watch.noted = number
    if _watch.taker is not None:
        _watch.taker(number)
        return
    _watch.untaken += 1
    if _watch.armed:
        _watch.armed = False
        raise _Told
    if _watch.untaken >= _PATIENCE:
        os._exit(128 + number)
