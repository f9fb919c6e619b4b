"""Progress of a growing map: where it stands, and reports to callbacks and progress bars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vicinal.maps.growing_map import NEIGHBORS, TURN, GrowingMap
from vicinal.runtime.progress import Progress


@dataclass(frozen=True, eq=False)
class Step:
    """The progress of a map after some work, and which rows it placed and moved, as Algorithm 3 returns them.

    Attributes
    ----------
    n_rows, n_placed : int
        Rows inserted, and rows with a place in the map.
    pending : int
        Rows waiting for neighbors, for a refresh of them, or for epochs.
    coverage : float
        Share of the rows whose neighbors are known and up to date.
    moved : int
        Rows that moved for a turn.
    stage : str
        The last stage that was worked on: "neighbors", "layout", or "idle" if there was nothing to do.
    new_rows, moved_rows : array of int64
        Numbers of the rows that got their first place, and of all rows whose places may have changed, the new ones
        included, in ascending order. Their places are ``embedding_[moved_rows]``; all other rows are where they were
        before the step.
    """

    n_rows: int
    n_placed: int
    pending: int
    coverage: float
    moved: int
    stage: str
    new_rows: NDArray[np.int64]
    moved_rows: NDArray[np.int64]


def reporter(grown: GrowingMap, progress: Progress) -> Callable[[str], bool]:
    """Return a function that reports a stage of the map and returns whether to stop."""

    def report(stage: str) -> bool:
        if stage == NEIGHBORS:
            return progress.report(stage, grown.search.n_searched, grown.search.n, lambda: grown.embedding)
        return progress.report(stage, grown.round * TURN, last_epoch(grown), lambda: grown.embedding)

    return report


def last_epoch(grown: GrowingMap) -> int:
    """Return how many epochs the map will have run when all rows are at rest."""
    return grown.round * TURN + int(grown.left.view.max(initial=0))
