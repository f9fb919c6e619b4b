"""What threads and forked children may share: values made once, and locks that no fork leaves closed."""

from __future__ import annotations

import _imp
import importlib._bootstrap
import logging  # noqa: F401  # see the registration below
import os
import threading
import time
from _thread import RLock
from collections.abc import Callable
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
IMPORTED_LATE = frozenset({"vicinal", "numpy", "scipy", "sklearn", "joblib", "tqdm", "safetensors", "torch"})
IMPORT_LIMIT = 10.0  # seconds that a fork waits for imports


def _imported_elsewhere() -> bool:
    """Whether another thread is in the middle of importing one of ``IMPORTED_LATE`` or of their parts."""
    own = threading.get_ident()
    for name, found in list(_module_locks.items()):
        if name.partition(".")[0] in IMPORTED_LATE and getattr(found(), "owner", None) not in (None, own):
            return True
    return False


def _hold_imports() -> None:
    """Before a fork: waits until no other thread imports, and lets none begin."""
    end = time.monotonic() + IMPORT_LIMIT
    _imp.acquire_lock()
    while _imported_elsewhere() and time.monotonic() < end:
        _imp.release_lock()
        time.sleep(0.001)
        _imp.acquire_lock()


def _after_fork_in_child() -> None:
    _imp.release_lock()
    _open_guards()


# Hooks run in the reverse order of their registration: ours waits before logging's takes a lock that importing needs.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_imports, after_in_parent=_imp.release_lock, after_in_child=_after_fork_in_child)
