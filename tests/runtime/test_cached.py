"""Cached properties, and what importing and using vicinal must not do to the process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from vicinal.runtime.cached import cached, uncached_state

forks = pytest.mark.requires_fork


class Slow:
    """An object whose property waits for an event while it is computed."""

    begun, resume = threading.Event(), threading.Event()
    computed = 0

    @cached
    def value(self) -> object:
        """A slow value."""
        type(self).computed += 1
        self.begun.set()
        self.resume.wait(10)
        return object()


@dataclass(frozen=True)
class Doubled:
    number: int

    @cached
    def double(self) -> int:
        return 2 * self.number

    def __getstate__(self) -> dict[str, object]:
        return uncached_state(self)


def child_ends(work: Callable[[], object]) -> bool:
    """Tell whether ``work`` ends in a forked child, which is killed after two seconds otherwise."""
    child = os.fork()
    if child == 0:
        import signal

        signal.alarm(2)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_value_is_computed_once_and_documented() -> None:
    slow = Slow()
    Slow.resume.set()
    before = Slow.computed
    assert slow.value is slow.value
    assert Slow.computed == before + 1
    assert Slow.value.__doc__ == "A slow value."


def test_concurrent_threads_get_the_same_object() -> None:
    Slow.resume.set()
    slow, barrier = Slow(), threading.Barrier(8)

    def ask(_: int) -> object:
        barrier.wait()
        return slow.value

    with ThreadPoolExecutor(8) as pool:
        assert len({id(value) for value in pool.map(ask, range(8))}) == 1


def test_frozen_dataclass_may_have_cached_values_and_pickles_without_them() -> None:
    one = Doubled(3)
    assert one.double == 6
    assert vars(one) == {"number": 3, "double": 6}
    twin = pickle.loads(pickle.dumps(one))
    assert vars(twin) == {"number": 3}
    assert twin.double == 6


@forks
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_forked_child_computes_a_value_that_a_thread_of_its_parent_was_computing() -> None:
    Slow.begun.clear()
    Slow.resume.clear()

    def ask_in_child() -> None:
        Slow.resume.set()
        assert Slow().value

    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    Slow.begun.wait(10)
    try:
        assert child_ends(ask_in_child)
    finally:
        Slow.resume.set()
        thread.join()


USE_OF_VICINAL = """
import os, sys, threading

callers = []
os.register_at_fork = lambda **hooks: callers.append(sys._getframe(1).f_globals["__name__"])

importers = {}
class Watch:
    def find_spec(self, name, path=None, target=None):
        importers.setdefault(threading.current_thread().name, []).append(name)
sys.meta_path.insert(0, Watch())

import numpy as np
import vicinal
vicinal.UMAP(n_epochs=3, n_neighbors=5).fit(np.random.default_rng(0).normal(size=(60, 4)))
assert callers, "libraries register hooks too: the test would not see them"
print(sorted({name for name in callers if name.startswith("vicinal")}))
print(sorted(set(importers) - {"MainThread"}))
"""


@forks
def test_import_and_fit_register_no_fork_hook_and_import_on_the_callers_thread_only(
    child_environment: dict[str, str],
) -> None:
    ran = subprocess.run([sys.executable, "-c", USE_OF_VICINAL], env=child_environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["[]", "[]"]
