"""What threads and forked children may share: values made once, and locks that no fork leaves closed."""

from __future__ import annotations

import _imp
import importlib._bootstrap
import logging  # noqa: F401  # see the registration below
import os
import threading
import time
from _thread import RLock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, overload
from weakref import WeakSet

# The interpreter's locks by module, weakly held; without them forks do not wait.
_module_locks: dict[str, Callable[[], Any]] = getattr(importlib._bootstrap, "_module_locks", {})

T = TypeVar("T")


class once(Generic[T]):
    """A property computed when it is first asked for, and kept in the instance.

    No lock is held meanwhile (``functools.cached_property`` holds one for all instances before Python 3.12): threads
    that ask at once may compute it twice, and all get the same object; a child forked meanwhile is not left waiting.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> once[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> once[T] | T:
        if instance is None:
            return self
        made: T = instance.__dict__.setdefault(self._name, self._compute(instance))
        return made


class Guard(RLock):  # type: ignore[misc]  # final for typeshed only
    """A re-entrant lock that a forked child finds open, whichever other thread of its parent held it.

    It is a lock of C's, not a class that holds one: a signal handler that raises cannot come between taking it and
    entering the ``with`` block that releases it.
    """

    def __init__(self) -> None:
        super().__init__()
        _guards.add(self)


_guards: WeakSet[Guard] = WeakSet()


def _open_guards() -> None:
    for guard in list(_guards):
        if not guard._is_owned():  # type: ignore[attr-defined]
            guard._at_fork_reinit()  # type: ignore[attr-defined]


# Modules that are imported where they are first used. While one thread imports, it holds the module's lock; a child
# forked by another would wait for it for ever, at its own first use.
IMPORTED_LATE = frozenset({"vicinal", "numpy", "scipy", "sklearn", "joblib", "tqdm", "matplotlib", "torch"})
FORK_LIMIT = 10.0  # seconds that a fork waits for other threads


def _imported_elsewhere() -> bool:
    """Whether another thread is in the middle of importing one of ``IMPORTED_LATE`` or of their parts."""
    own = threading.get_ident()
    for name, found in list(_module_locks.items()):
        if name.partition(".")[0] in IMPORTED_LATE and getattr(found(), "owner", None) not in (None, own):
            return True
    return False


# OpenBLAS and SciPy's FFT end their pools of threads before a fork: a thread of the parent that is in the middle of a
# product, a decomposition or a transform would wait for them for ever.
_in_blas: list[int] = []  # identities of the threads inside
_entering_blas = Guard()


@contextmanager
def blas() -> Iterator[None]:
    """Around calls of BLAS, LAPACK and FFTs that may use several threads: no fork comes in the middle."""
    own = threading.get_ident()
    with _entering_blas:
        _in_blas.append(own)
    try:
        yield
    finally:
        _in_blas.remove(own)


def _before_fork() -> None:
    """Waits until no other thread imports or is in BLAS, and lets none begin."""
    end = time.monotonic() + FORK_LIMIT
    own = threading.get_ident()
    while True:
        _imp.acquire_lock()
        _entering_blas.acquire()
        if time.monotonic() >= end or not (_imported_elsewhere() or any(one != own for one in _in_blas)):
            return
        _after_fork_in_parent()
        time.sleep(0.001)


def _after_fork_in_parent() -> None:
    _entering_blas.release()
    _imp.release_lock()


def _after_fork_in_child() -> None:
    _after_fork_in_parent()
    _in_blas[:] = [one for one in _in_blas if one == threading.get_ident()]
    _open_guards()


# Hooks run in the reverse order of their registration: ours waits before logging's takes a lock that importing needs.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
