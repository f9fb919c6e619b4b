"""Fit a model and measure its map, with progress bars."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vicinal.cli.methods import EstimatorSpec, Method, signature
from vicinal.cli.progress_bars import ProgressBars, one_line_warnings, stage_bars

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vicinal.quality import QualityReport, Reliability

# Exit code of a program that was stopped by Ctrl-C.
INTERRUPTED = 130


@dataclass(frozen=True)
class FitResult:
    """A map, the seconds per stage, its quality and reliability if measured, and the fitted model."""

    embedding: NDArray[np.float32]
    seconds: dict[str, float]
    quality: QualityReport | None
    interrupted: bool = False
    model: Any = None
    reliability: Reliability | None = None


def fit_rows(
    X: NDArray[np.float32], labels: NDArray[Any] | None, spec: EstimatorSpec, *, with_quality: bool, quiet: bool
) -> FitResult:
    """Fit the spec's estimator; Ctrl-C during the layout stops it and keeps the current map."""
    note = neighbors_note(spec.parameters, spec.method, len(X))
    if note is not None and not quiet:
        print("warning:", note, file=sys.stderr)
    with stage_bars(quiet) as bars, one_line_warnings(quiet):
        model = spec.build(bars)
        with stop_on_interrupt(bars, lambda: bars.stage == "layout"):
            model.fit(X)
        seconds = {stage: float(spent) for stage, spent in getattr(model, "stage_times_", {}).items()}
        quality = measure_quality(X, model, labels, bars, seconds) if with_quality else None
        # A layout that was stopped says nothing about where its rows would have come to rest.
        judged = measure_reliability(model, bars, seconds) if with_quality and not bars.stopped else None
    return FitResult(model.embedding_, seconds, quality, bars.stopped, model, judged)


def measure_quality(
    X: NDArray[np.float32], model: Any, labels: NDArray[Any] | None, bars: ProgressBars, seconds: dict[str, float]
) -> QualityReport:
    """Measure the quality of a model's map and add the time to ``seconds``."""
    from vicinal import quality

    bars("quality", 0, 0, None)
    start = time.perf_counter()
    metric = getattr(model, "metric", "euclidean")
    found = quality.report(X, model.embedding_, categories(labels), metric=metric)
    seconds["quality"] = time.perf_counter() - start
    return found


def measure_reliability(model: Any, bars: ProgressBars, seconds: dict[str, float]) -> Reliability:
    """Measure how far each row of a model's map can be believed and add the time to ``seconds``."""
    bars("reliability", 0, 0, None)
    start = time.perf_counter()
    found: Reliability = model.reliability_
    seconds["reliability"] = time.perf_counter() - start
    return found


@contextlib.contextmanager
def stop_on_interrupt(bars: ProgressBars, has_map: Callable[[], bool]) -> Iterator[None]:
    """Let Ctrl-C stop the run and keep its map; raise KeyboardInterrupt if there is no map yet or the second time."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def answer(number: int, frame: object) -> None:
        if bars.stopped or not has_map():
            raise KeyboardInterrupt
        bars.stopped = True

    before = signal.signal(signal.SIGINT, answer)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def categories(labels: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return the labels, None for unlabelled rows, or None if they are continuous values."""
    import numpy as np

    from vicinal.plot.annotations import is_continuous, unlabelled_rows

    if labels is None or is_continuous(labels):
        return None
    missing = unlabelled_rows(labels)
    if not missing.any():
        return labels
    known = labels.astype(object)
    known[missing] = None
    return np.asarray(known)


def neighbors_note(parameters: dict[str, Any], method: Method, n: int) -> str | None:
    """Return a warning if a fit asks for more neighbors than there are rows."""
    known = signature(method)
    if "n_neighbors" not in known:
        return None
    asked = parameters.get("n_neighbors", known["n_neighbors"].default)
    if not isinstance(asked, int) or asked <= n:
        return None
    return f"n_neighbors is {asked}, but there are {n} rows: each row has all others as neighbors"
