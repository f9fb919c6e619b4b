"""The neighbor table: the k nearest rows of every row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Neighbors:
    """The ``k`` nearest rows of every row, itself first: sorted by (distance, index), -1 where there is none."""

    index: NDArray[np.int32]
    distance: NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.index.ndim != 2 or self.index.shape != self.distance.shape:
            raise ValueError(
                f"index and distance must be 2-D and alike, got shapes {self.index.shape} and {self.distance.shape}"
            )
        object.__setattr__(self, "index", np.ascontiguousarray(self.index, dtype=np.int32))
        object.__setattr__(self, "distance", np.ascontiguousarray(self.distance, dtype=np.float32))

    @property
    def n(self) -> int:
        return int(self.index.shape[0])

    @property
    def k(self) -> int:
        return int(self.index.shape[1])

    def within(self, distance: float) -> Neighbors:
        """The same table without neighbours at or beyond ``distance``."""
        far = self.distance >= distance
        return Neighbors(np.where(far, -1, self.index), np.where(far, np.inf, self.distance).astype(np.float32))
