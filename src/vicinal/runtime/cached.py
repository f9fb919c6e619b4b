"""Values of an instance that are computed on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached(Generic[T]):
    """Compute a property on first use and keep it in the instance's ``__dict__``.

    Works for frozen dataclasses. No lock is held while the value is computed (``functools.cached_property`` holds one
    for all instances before Python 3.12): threads that ask at the same time may compute the value more than once, but
    all of them get the same object, and a process forked meanwhile does not inherit a closed lock.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> cached[T] | T:
        if instance is None:
            return self
        value: T = instance.__dict__.setdefault(self._name, self._compute(instance))
        return value


def uncached_state(instance: Any) -> dict[str, Any]:
    """Return the attributes of an instance without its cached values, for ``__getstate__``."""
    kind = type(instance)
    return {name: value for name, value in vars(instance).items() if not isinstance(getattr(kind, name, None), cached)}
