"""Ctrl-C during long calls into libraries that do not look for signals."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

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
