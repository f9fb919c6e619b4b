"""Arrays that grow at their end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


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

    def append(self, values: NDArray[Any]) -> None:
        n = self._n + len(values)
        self.reserve(n)
        self._room[self._n : n] = values
        self._n = n
