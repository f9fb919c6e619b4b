"""Long calls that look for no signals, and the thread that waits for them."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from vicinal.interruption import LONG_WORK, interruptible


def test_results_and_errors_come_back() -> None:
    assert interruptible(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0)


def test_little_work_and_other_threads_need_no_thread() -> None:
    assert interruptible(threading.current_thread, LONG_WORK / 2) is threading.current_thread()
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(interruptible(threading.current_thread) is thread))
    thread.start()
    thread.join()
    assert found == [True]
    assert interruptible(threading.current_thread) is not threading.current_thread()


def test_the_work_sees_the_callers_context() -> None:
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        interruptible(lambda: np.ones(1) / np.zeros(1))


@pytest.fixture
def interrupts() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt: a process started in the background may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_a_signal_is_answered_while_the_work_goes_on() -> None:
    ended = threading.Event()
    interrupt = threading.Timer(0.2, _thread.interrupt_main)
    interrupt.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interruptible(lambda: ended.wait(20))
    assert time.monotonic() - begun < 10
    ended.set()
