"""What threads and forked children may share: a value made once, and a lock that no fork leaves closed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload
from weakref import WeakSet

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


class Guard:
    """A lock that a forked child finds open, whichever thread of its parent held it."""

    def __init__(self) -> None:
        self._open()
        _guards.add(self)

    def _open(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


_guards: WeakSet[Guard] = WeakSet()


def _open_all() -> None:
    for guard in list(_guards):
        guard._open()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_all)
