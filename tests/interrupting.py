"""Real signals at counted events: the n-th line that a call executes, or a poll inside a call of compiled code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import vicinal

PACKAGE = str(Path(vicinal.__file__).parent)
Files = str | tuple[str, ...]
# Looks in a row that find the main thread at the same instruction, after which it is taken to be in a long call.
LOOKS = 10


def _trace_lines(event: Callable[[], None], files: Files) -> Callable[..., Any]:
    """Return a trace function that calls ``event`` at each line of files whose paths start so."""

    def local(frame: FrameType, kind: str, _: object) -> Any:
        if kind == "line":
            event()
        return local

    return lambda frame, kind, _: local if frame.f_code.co_filename.startswith(files) else None


def _traced(call: Callable[[], object], trace: Callable[..., Any]) -> None:
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)


def count_lines(call: Callable[[], object], files: Files = PACKAGE) -> int:
    """Return how many lines of the package the call executes in this thread."""
    lines = 0

    def count() -> None:
        nonlocal lines
        lines += 1

    _traced(call, _trace_lines(count, files))
    return lines


def interrupted_at(call: Callable[[], object], line: int, files: Files = PACKAGE) -> bool:
    """Send SIGINT before the n-th line of the package that the call executes; return whether it was interrupted."""
    lines = 0

    def count() -> None:
        nonlocal lines
        lines += 1
        if lines == line:
            signal.raise_signal(signal.SIGINT)

    try:
        _traced(call, _trace_lines(count, files))
    except KeyboardInterrupt:
        return True
    return False


@contextmanager
def interrupt_inside_a_call() -> Iterator[None]:
    """Interrupt the main thread inside one call of compiled code that polls for signals.

    A thread waits until the main thread is in a long call and sends a signal. The handler lets the call go on. If it
    is still the same call that handles the next signal, it polls, and this signal raises KeyboardInterrupt. A call
    that does not poll handles one signal only, at its end.
    """
    main, ended, handled = threading.main_thread().ident, threading.Event(), threading.Event()
    last: list[tuple[FrameType | None, int]] = []

    def is_at(frame: FrameType | None) -> bool:
        return bool(frame and last and last[-1][0] is frame and last[-1][1] == frame.f_lasti)

    def handle(_: int, frame: FrameType | None) -> None:
        same = is_at(frame)
        last[:] = [(frame, frame.f_lasti if frame else -1)]
        if same:
            ended.set()
        handled.set()
        if same:
            raise KeyboardInterrupt

    def in_a_long_call() -> bool:
        """Wait until the main thread stays at one instruction; return False if the block has ended before."""
        seen: tuple[FrameType, int] | None = None
        looks = 0
        while looks < LOOKS:
            if ended.wait(0.001):
                return False
            frame = sys._current_frames()[main]  # type: ignore[index]
            now = (frame, frame.f_lasti)
            looks = looks + 1 if now == seen else 0
            seen = now
        return True

    def send() -> None:
        while in_a_long_call():
            handled.clear()
            os.kill(os.getpid(), signal.SIGINT)
            while not handled.wait(0.01):
                if ended.is_set():
                    return

    before = signal.signal(signal.SIGINT, handle)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        ended.set()
        sender.join()
        signal.signal(signal.SIGINT, before)
        last.clear()
