"""Ctrl-C during work that does not check for signals, or that must not be cut in two."""

from __future__ import annotations

import contextvars
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

# Multiplications that take a fraction of a second; for less work a thread does not pay.
LONG_WORK = 1e9


def interruptible(work: Callable[[], T], n_multiplications: float = LONG_WORK) -> T:
    """Call ``work()`` in a separate thread if it is long, so that the main thread can handle signals meanwhile.

    For long calls into BLAS and LAPACK, which do not check for signals. Python delivers signals to the main thread
    only: in any other thread, and for short work, this is a plain call. Interrupted work continues in its thread until
    it ends, and its result is dropped.
    """
    if n_multiplications < LONG_WORK or threading.current_thread() is not threading.main_thread():
        return work()
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)  # without a timeout, some platforms do not wake for a signal
    return done.result()


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block, for changes that must be made together or not at all.

    In the main thread the handler of SIGINT is replaced by one that only remembers the signal. At the end the previous
    handler is restored and, if a signal arrived, called once: ``KeyboardInterrupt`` is then raised after the block. In
    other threads, which never receive signals, and if SIGINT is ignored, has the default action or a handler that was
    not set from Python, the block runs as it is. Keep the block short.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    received: list[tuple[int, FrameType | None]] = []

    def remember(number: int, frame: FrameType | None) -> None:
        received.append((number, frame))

    try:
        signal.signal(signal.SIGINT, remember)
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if received:
            handler(*received[0])
