"""Arrays that get longer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class GrowingArray:
    """An array to whose end rows are appended, at a cost that does not depend on how many there are.

    ``view`` is the rows so far, to be read and written; appending may leave an older view behind.
    """

    def __init__(self, values: NDArray[Any]) -> None:
        self._room = np.array(values)
        self._n = len(values)

    def __len__(self) -> int:
        return self._n

    @property
    def view(self) -> NDArray[Any]:
        return self._room[: self._n]

    def append(self, values: NDArray[Any]) -> None:
        n = self._n + len(values)
        if n > len(self._room):
            room = np.empty((max(n, 2 * len(self._room)), *self._room.shape[1:]), self._room.dtype)
            room[: self._n] = self.view
            self._room = room
        self._room[self._n : n] = values
        self._n = n
