"""One version of an atlas as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.atlas.tables import INSIDE


@dataclass(frozen=True)
class Snapshot:
    """The rows of one version: their ids, places and areas, in the same order in every array.

    Attributes
    ----------
    version : int
    made, at : str
        The change that made the version ("create", "append", "refit", "migrate", "forget" or "rollback"), and when.
    record : dict
        What the change did, in numbers.
    ids : array [rows]
    row : int64 array [rows]
        Numbers of the rows in the atlas. A row whose content changed has a new number.
    embedding : float32 array [rows, n_components]
    labels : int32 array [rows]
        The area of each row; -1 for none.
    names : tuple of str
        The names of the areas.
    territory : int32 array [rows]
        0 for rows that fit into the map of the last fit, else the number of their island in new territory, or -1 for
        rows that have no company there.
    """

    version: int
    made: str
    at: str
    record: dict[str, Any]
    ids: NDArray[Any]
    row: NDArray[np.int64]
    embedding: NDArray[np.float32]
    labels: NDArray[np.int32]
    names: tuple[str, ...]
    territory: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def new_territory(self) -> NDArray[np.bool_]:
        """Which rows fit nowhere in the map of the last fit."""
        return np.asarray(self.territory != INSIDE)
