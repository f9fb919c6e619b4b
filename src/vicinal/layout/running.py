"""The loop that runs a layout to its end while others watch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vicinal.runtime.progress import LAYOUT, Progress


class Steppable(Protocol):
    """Any layout: a number of completed epochs, and a way to run more."""

    @property
    def epoch(self) -> int: ...

    def step(self, n: int = 1) -> None: ...


def run_layout(
    layout: Steppable, stops: Sequence[int], progress: Progress, places: Callable[[], NDArray[np.float32]]
) -> list[NDArray[np.float32]]:
    """Run a layout to the last of ``stops``, or until a callback asks to stop.

    The layout is stepped straight to the next epoch that anyone watches. A layout does not depend on how its epochs
    are divided into steps, so the result does not depend on who watches.

    Parameters
    ----------
    layout : object with ``epoch`` and ``step(n)``
        The layout to run.
    stops : sequence of int
        Epochs in ascending order whose places are returned.
    progress : Progress
        Receives the stage "layout" and its epochs.
    places : callable
        Returns the places that callbacks see and that are returned, made from the current embedding.

    Returns
    -------
    reached : list of arrays
        The places at each of the stops that were reached.
    """
    reached = []
    with progress.stage(LAYOUT, stops[-1]):
        for stop in stops:
            while layout.epoch < stop and not progress.stopped:
                layout.step(progress.next_report(layout.epoch, stop) - layout.epoch)
                progress.report(LAYOUT, layout.epoch, stops[-1], places)
            if layout.epoch == stop:
                reached.append(places())
    return reached
