"""Long calls that look for no signals, and the thread that waits for them."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from vicinal.runtime.interruption import LONG_WORK, interruptible, nearest_in_tree


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


@pytest.mark.usefixtures("interrupts")
def test_what_scipys_threads_write_to_outlives_an_interrupted_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """The query runs in a thread of its own, where no exception of a signal can end it before its threads."""
    from scipy.spatial import cKDTree

    asked: list[threading.Thread] = []
    query = cKDTree.query

    class Watched(cKDTree):  # type: ignore[misc]
        def query(self, *args: object, **kwargs: object) -> object:
            asked.append(threading.current_thread())
            _thread.interrupt_main()
            time.sleep(0.3)
            return query(self, *args, **kwargs)

    monkeypatch.setattr("scipy.spatial.cKDTree", Watched)
    rows = np.random.default_rng(0).normal(size=(2_000, 2))
    with pytest.raises(KeyboardInterrupt):
        nearest_in_tree(rows, rows, 5, workers=2)
    assert len(asked) == 1
    assert asked[0] is not threading.main_thread()
    asked[0].join()
