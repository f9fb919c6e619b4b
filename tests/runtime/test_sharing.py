"""Values made once and locks that a fork leaves open."""

from __future__ import annotations

import builtins
import importlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from vicinal.runtime import sharing
from vicinal.runtime.sharing import Guard, blas, once

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")


class Slow:
    """A value whose computation waits until it is told to go on."""

    begun, go_on = threading.Event(), threading.Event()
    computed = 0

    @once
    def value(self) -> object:
        """What is slow."""
        type(self).computed += 1
        self.begun.set()
        self.go_on.wait(10)
        return object()


@contextmanager
def in_a_thread(work: Callable[[], object], begun: threading.Event, end: threading.Event) -> Iterator[None]:
    thread = threading.Thread(target=work)
    thread.start()
    begun.wait(10)
    try:
        yield
    finally:
        end.set()
        thread.join()


def child_ends(work: Callable[[], object]) -> bool:
    """Whether ``work`` ends in a forked child, killed after two seconds otherwise."""
    child = os.fork()
    if child == 0:
        import signal

        signal.alarm(2)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_computed_when_first_asked_for_and_kept() -> None:
    slow = Slow()
    Slow.go_on.set()
    before = Slow.computed
    assert slow.value is slow.value
    assert Slow.computed == before + 1
    assert Slow.value.__doc__ == "What is slow."


def test_threads_that_ask_at_once_get_one_object() -> None:
    Slow.go_on.set()
    slow, barrier = Slow(), threading.Barrier(8)

    def ask(_: int) -> object:
        barrier.wait()
        return slow.value

    with ThreadPoolExecutor(8) as pool:
        assert len({id(value) for value in pool.map(ask, range(8))}) == 1


@forks
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_computes_what_a_thread_of_its_parent_was_computing() -> None:
    Slow.begun.clear()
    Slow.go_on.clear()

    def ask_in_child() -> None:
        Slow.go_on.set()
        assert Slow().value

    with in_a_thread(lambda: Slow().value, Slow.begun, Slow.go_on):
        assert child_ends(ask_in_child)


@forks
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_finds_its_parents_guard_open() -> None:
    guard, held, end = Guard(), threading.Event(), threading.Event()

    def hold() -> None:
        with guard:
            held.set()
            end.wait(10)

    with in_a_thread(hold, held, end):
        assert child_ends(guard.__enter__)


@forks
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_waits_for_an_import_of_another_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child would wait for ever for a module that a thread of its parent was importing."""
    (tmp_path / "imported_slowly.py").write_text("import time\nbegun.set()\ntime.sleep(0.5)\nvalue = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sharing, "IMPORTED_LATE", frozenset({"imported_slowly"}))
    begun = threading.Event()
    monkeypatch.setattr(builtins, "begun", begun, raising=False)

    def load() -> None:
        importlib.import_module("imported_slowly")

    with in_a_thread(load, begun, threading.Event()):
        assert child_ends(load)


def test_a_guard_can_be_taken_again_by_its_holder() -> None:
    guard = Guard()
    with guard, guard:
        assert guard._is_owned()
    assert not guard._is_owned()


@forks
def test_whoever_holds_a_guard_and_forks_holds_it_in_the_child() -> None:
    guard = Guard()

    def leave() -> None:
        assert guard._is_owned()
        guard.release()

    with guard:
        assert child_ends(leave)


@forks
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_waits_for_another_threads_blas() -> None:
    """OpenBLAS ends its threads before a fork, and the thread that uses them would wait for ever."""
    inside, end, left = threading.Event(), threading.Event(), []

    def multiply() -> None:
        with blas():
            inside.set()
            end.wait(0.3)
            left.append(time.monotonic())

    with in_a_thread(multiply, inside, end):
        assert child_ends(lambda: None)
        forked = time.monotonic()
    assert forked > left[0]
    with blas():  # one's own does not count
        assert child_ends(lambda: None)
