"""Ctrl-C during calls into libraries that do not look for signals, or that an exception would leave in pieces."""

from __future__ import annotations

import contextvars
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")

# Multiplications that take a fraction of a second; with fewer, starting a thread is not worth it.
LONG_WORK = 1e9


def interruptible(work: Callable[[], T], n_multiplications: float = LONG_WORK) -> T:
    """``work()``, in a thread of its own while this one waits and answers signals.

    Only the main thread is ever told of a signal: in any other, and for little work, it is a plain call. Work that
    was interrupted goes on unheard until it ends.
    """
    if n_multiplications < LONG_WORK or threading.current_thread() is not threading.main_thread():
        return work()
    outcome: list[tuple[T, None] | tuple[None, BaseException]] = []

    def run() -> None:
        try:
            outcome.append((work(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)  # without a limit, some platforms do not wake for a signal
    result: Any
    result, error = outcome[0]
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]


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


def imported(name: str) -> Any:
    """A library's module, whole even if Ctrl-C comes while it is first imported.

    An exception in the middle of an import leaves parts of libraries behind that cannot be imported again in the same
    process: pandas registers an option twice, SciPy misses a name.
    """
    return import_module(name) if name in sys.modules else interruptible(lambda: import_module(name))


def nearest_in_tree(
    rows: NDArray[np.floating], places: NDArray[np.floating], k: ArrayLike, workers: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Distances and numbers of the k rows nearest to each place, by SciPy's tree.

    Its threads go on when an exception ends the query, and write to arrays that are freed by then: no exception may
    come in.
    """
    tree = imported("scipy.spatial").cKDTree(rows)
    distance, index = interruptible(lambda: tree.query(places, k=k, workers=workers))
    return distance, index
