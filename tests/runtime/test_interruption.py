"""Signals during long calls into libraries, and signals that are deferred."""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from types import FrameType

import pytest
from interrupting import PACKAGE, count_lines, interrupted_at

from vicinal.runtime.interruption import LONG_WORK, deferred_interrupts, interruptible


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Make SIGINT raise KeyboardInterrupt: a process started in the background may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_result_and_errors_are_passed_on() -> None:
    assert interruptible(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0)


def test_only_long_work_of_the_main_thread_uses_a_thread() -> None:
    assert interruptible(threading.current_thread, LONG_WORK / 2) is threading.current_thread()
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(interruptible(threading.current_thread) is thread))
    thread.start()
    thread.join()
    assert found == [True]
    assert interruptible(threading.current_thread) is not threading.current_thread()


def test_work_runs_in_the_context_of_the_caller() -> None:
    variable = ContextVar("variable", default=0)
    variable.set(1)
    assert interruptible(variable.get) == 1


@pytest.mark.usefixtures("interrupts")
def test_signal_is_handled_while_the_work_continues() -> None:
    end, ended = threading.Event(), threading.Event()

    def work() -> None:
        _thread.interrupt_main()
        end.wait(60)
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        interruptible(work)
    assert not ended.is_set()
    end.set()
    assert ended.wait(60)


@pytest.mark.usefixtures("interrupts")
def test_deferred_signal_is_raised_after_the_block() -> None:
    done = []

    def work() -> None:
        with deferred_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("whole")
        done.append("not reached")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["whole"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interrupts")
def test_block_without_a_signal_leaves_the_handler_as_it_was() -> None:
    with deferred_interrupts():
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interrupts")
def test_error_in_the_block_restores_the_handler() -> None:
    with pytest.raises(LookupError), deferred_interrupts():
        raise LookupError
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interrupts")
def test_repeated_signals_call_the_previous_handler_once_with_the_signal() -> None:
    received: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: received.append((number, frame)))
    with deferred_interrupts():
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
        assert received == []
    assert [number for number, _ in received] == [signal.SIGINT]


@pytest.mark.usefixtures("interrupts")
def test_nested_blocks_defer_to_the_end_of_the_outer_one() -> None:
    done = []

    def work() -> None:
        with deferred_interrupts():
            with deferred_interrupts():
                os.kill(os.getpid(), signal.SIGINT)
            done.append("after the inner block")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["after the inner block"]


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("action", [signal.SIG_IGN, signal.SIG_DFL])
def test_ignored_and_default_actions_are_left_alone(action: signal.Handlers) -> None:
    signal.signal(signal.SIGINT, action)
    with deferred_interrupts():
        assert signal.getsignal(signal.SIGINT) == action


@pytest.mark.usefixtures("interrupts")
def test_other_threads_do_not_touch_the_handler() -> None:
    seen: list[object] = []

    def work() -> None:
        with deferred_interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


@pytest.mark.usefixtures("interrupts")
def test_a_signal_before_any_line_never_splits_the_block() -> None:
    pair = [0, 0]

    def work() -> None:
        with deferred_interrupts():
            pair[0] += 1
            pair[1] += 1

    files = (PACKAGE, contextlib.__file__, __file__)
    for line in range(1, count_lines(work, files) + 1):
        assert interrupted_at(work, line, files)
        assert pair[0] == pair[1]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
