"""Fitting and measuring a map, with bars."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vicinal.cli.bars import Bars, one_line_warnings, stage_bars
from vicinal.cli.methods import Recipe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vicinal.quality.measures import QualityReport


INTERRUPTED = 130


@dataclass(frozen=True)
class Embedded:
    """A map with all that is worth telling about it."""

    embedding: NDArray[np.float32]
    seconds: dict[str, float]
    quality: QualityReport | None
    interrupted: bool = False
    model: Any = None


def embedded(
    X: NDArray[np.float32], labels: NDArray[Any] | None, recipe: Recipe, *, measured: bool, quiet: bool
) -> Embedded:
    """Fit the recipe's estimator; Ctrl-C during the layout ends it and keeps the map as it is."""
    with stage_bars(quiet) as bars, one_line_warnings(quiet):
        model = recipe.build(bars)
        with interruptible(bars, lambda: bars.stage == "layout"):
            model.fit(X)
        seconds = {stage: float(spent) for stage, spent in getattr(model, "stage_times_", {}).items()}
        found = measure(X, model, labels, bars, seconds) if measured else None
    return Embedded(model.embedding_, seconds, found, bars.stopped, model)


def measure(
    X: NDArray[np.float32], model: Any, labels: NDArray[Any] | None, bars: Bars, seconds: dict[str, float]
) -> QualityReport:
    """The quality of a model's map, its time noted with the other stages'."""
    from vicinal import quality

    bars("quality", 0, 0, None)
    start = time.perf_counter()
    metric = getattr(model, "metric", "euclidean")
    found = quality.report(X, model.embedding_, categories(labels), metric=metric)
    seconds["quality"] = time.perf_counter() - start
    return found


@contextlib.contextmanager
def interruptible(bars: Bars, kept: Callable[[], bool]) -> Iterator[None]:
    """Ctrl-C ends a run that has places to be kept; before there are any, and the second time, it is raised."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def answer(number: int, frame: object) -> None:
        if bars.stopped or not kept():
            raise KeyboardInterrupt
        bars.stopped = True

    before = signal.signal(signal.SIGINT, answer)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def categories(labels: NDArray[Any] | None) -> NDArray[Any] | None:
    """Labels unless they are measurements."""
    from vicinal.plot.annotations import measured

    return None if labels is None or measured(labels) else labels
