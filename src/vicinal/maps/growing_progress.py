"""Progress of a growing map: where it stands, and reports to callbacks and progress bars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vicinal.maps.growing_map import NEIGHBORS, TURN, GrowingMap
from vicinal.runtime.progress import Progress


@dataclass(frozen=True)
class Step:
    """The progress of a map after some work.

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
    """

    n_rows: int
    n_placed: int
    pending: int
    coverage: float
    moved: int
    stage: str


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
