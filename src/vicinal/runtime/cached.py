"""Values of an instance that are computed on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

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


class GrowingArray:
    """An array to which rows are appended, at an amortized cost that does not depend on its length.

    ``view`` holds the rows so far and can be written to. Appending may leave an older view detached.
    """

    def __init__(self, values: NDArray[Any]) -> None:
        self._room = np.array(values)
        self._n = len(values)

    def __len__(self) -> int:
        return self._n

    @property
    def view(self) -> NDArray[Any]:
        return self._room[: self._n]

    def replaced(self, name: str, values: NDArray[Any]) -> GrowingArray:
        """Return an array of other rows. Raise ValueError, with ``name``, if they differ in type or columns."""
        if values.dtype != self._room.dtype or values.shape[1:] != self._room.shape[1:] or not values.ndim:
            raise ValueError(f"{name} must hold {self._room.dtype} numbers, got {values.dtype} of shape {values.shape}")
        return GrowingArray(values)

    def reserve(self, n: int) -> None:
        """Allocate room for ``n`` rows in all, so that appending up to there cannot fail."""
        if n > len(self._room):
            room = np.empty((max(n, 2 * len(self._room)), *self._room.shape[1:]), self._room.dtype)
            room[: self._n] = self.view
            self._room = room

    def truncate(self, n: int) -> None:
        """Remove all rows from row ``n`` on."""
        self._n = min(self._n, n)

    def taken(self, rows: NDArray[np.int32]) -> GrowingArray:
        """Return a copy of some rows."""
        return GrowingArray(self.view[rows])

    def append(self, values: NDArray[Any]) -> None:
        n = self._n + len(values)
        self.reserve(n)
        self._room[self._n : n] = values
        self._n = n
