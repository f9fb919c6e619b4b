"""Fit a model and measure its map, with progress bars."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vicinal.cli.methods import EstimatorSpec, Method, signature
from vicinal.files.batches import read_batches
from vicinal.files.data_table import Column, ColumnChoice, DataTable, Role
from vicinal.files.preparation import Preparation, Preprocessing
from vicinal.files.readers import read_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.progress import Progress, TaskID

    from vicinal.quality import QualityReport, Reliability


STAGES = {
    "neighbors": "finding neighbors",
    "graph": "building the graph",
    "initialize": "initializing",
    "layout": "optimizing the layout",
    "train": "training",
    "read": "reading and placing rows",
    "rest": "settling the map",
    "polish": "polishing",
    "quality": "measuring quality",
    "reliability": "measuring reliability",
}


class ProgressBars:
    """Callback of an estimator that draws one progress bar per stage; returns True to stop once ``stopped`` is set."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.tasks: dict[str, TaskID] = {}
        self.stage = ""
        self.stopped = False

    def __call__(self, stage: str, epoch: int, n_epochs: int, embedding: object) -> bool:
        self.stage = stage
        if self.progress is None:
            return self.stopped
        # a stage with a single step has no measurable progress: rich draws a moving bar if the total is None
        total = n_epochs if n_epochs > 1 or epoch else None
        if stage not in self.tasks:
            self.finish()
            self.tasks[stage] = self.progress.add_task(STAGES.get(stage, stage), total=total)
        self.progress.update(self.tasks[stage], completed=epoch, total=total)
        return self.stopped

    def finish(self) -> None:
        """Fill the bars of all stages so far: a stage ends when the next one starts."""
        for task in self.tasks.values():
            if self.progress is not None:
                self.progress.update(task, completed=1, total=1)


@contextlib.contextmanager
def stage_bars(quiet: bool) -> Iterator[ProgressBars]:
    """Show progress bars on stderr if it is a terminal."""
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield ProgressBars(None)
        return
    usual, times = Progress.get_default_columns()[:3], (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*usual, *times, console=console, transient=True) as progress:
        bars = ProgressBars(progress)
        yield bars
        bars.finish()


@contextlib.contextmanager
def one_line_warnings(quiet: bool) -> Iterator[None]:
    """Print the warnings of a successful run as single lines, without source code."""
    with warnings.catch_warnings(record=True) as caught:
        yield
    for text in dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught):
        if not quiet:
            print("warning:", text, file=sys.stderr)


DECIDING_ROWS = 10_000  # of a file that is not read as a whole
ON_DASK = (Method.UMAP, Method.DENSMAP, Method.LARGEVIS)


def check_large(spec: EstimatorSpec, needs_table: Mapping[str, Any]) -> None:
    """Refuse options that need all rows in memory; ``needs_table`` maps their names to the given values."""
    if spec.method not in ON_DASK:
        allowed = ", ".join(ON_DASK)
        raise ValueError(f"--method must be one of {allowed} with --cluster or --memory-limit, got {spec.method}")
    for option, value in needs_table.items():
        if value:
            raise ValueError(f"{option} cannot be used with --cluster or --memory-limit: it needs all rows in memory")


def open_large(file: Path, choice: ColumnChoice) -> tuple[Any, DataTable]:
    """Open the rows of a file that are read where they are needed.

    The second value has its first rows: they decide what the columns are used for.
    """
    import numpy as np

    try:
        from vicinal.cluster.rows import open_array
    except ImportError as error:
        raise ValueError("--cluster and --memory-limit need Dask: pip install 'vicinal[cluster]'") from error
    if file.suffix.lower() != ".parquet" or not file.is_file():
        rows = open_array(file, None if choice.features is None else list(choice.features))
        return rows, DataTable(np.empty((0, rows.shape[1]), np.float32), tuple(map(_numbered, range(rows.shape[1]))))
    first = next(read_batches(file, DECIDING_ROWS, choice))
    return open_array(file, list(first.feature_names)), first


def _numbered(column: int) -> Column:
    return Column(str(column), Role.FEATURE)


def load_model(path: Path) -> Any:
    """Load a saved model."""
    import vicinal

    if not path.is_file():
        raise ValueError(f"{path} does not exist")
    return vicinal.load(path)


@contextlib.contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Connect to the cluster at an address while the block runs; without an address do nothing."""
    if address is None:
        yield
        return
    from distributed import Client
    from distributed.comm import get_address_host_port, parse_address

    try:
        # checked first: a client that fails on a malformed address would remain the current client
        if parse_address(address)[0] in ("tcp", "tls"):
            get_address_host_port(address)
        client = Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise ValueError(f"--cluster {address} cannot be reached: {error}") from error
    with client:
        yield


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


def load_rows(
    path: Path, choice: ColumnChoice, preprocessing: Preprocessing, metric: str | None
) -> tuple[DataTable, NDArray[np.float32], Preparation]:
    """Read a file; return its table, its prepared rows, and how to read and prepare others.

    Missing values are accepted if they are filled in or the metric allows them.
    """
    from vicinal.neighbors.metrics import allows_nan

    missing = preprocessing.impute is not None or (metric is not None and allows_nan(metric))
    if preprocessing.counts and choice.array is None and path.suffix.lower() == ".h5ad":
        # principal components in the file were made from other counts
        choice = replace(choice, array="X")
    table = read_table(path, replace(choice, missing=missing))
    X, steps = preprocessing.fit(table.X, table.feature_names, table.indicators)
    return table, X, Preparation(kept_choice(table, choice, missing=missing), steps)


def kept_choice(table: DataTable, choice: ColumnChoice, *, missing: bool = False) -> ColumnChoice:
    """Return the columns of a table by name, to read other files of the same layout."""
    kept = replace(choice.of_table(table), missing=missing)
    return replace(kept, features=table.feature_names) if table.vectors else kept


def fit_rows(X: Any, labels: NDArray[Any] | None, spec: EstimatorSpec, *, with_quality: bool, quiet: bool) -> FitResult:
    """Fit the spec's estimator; Ctrl-C during the layout stops it and keeps the current map."""
    import numpy as np

    known = signature(spec.method)
    asked = spec.parameters.get("n_neighbors", known["n_neighbors"].default) if "n_neighbors" in known else None
    if isinstance(asked, int) and asked > len(X) and not quiet:
        note = f"n_neighbors is {asked}, but there are {len(X)} rows: each row has all others as neighbors"
        print("warning:", note, file=sys.stderr)
    with stage_bars(quiet) as bars, one_line_warnings(quiet):
        model = spec.build(callback=bars)
        with stop_on_interrupt(bars, lambda: bars.stage == "layout"):
            model.fit(X)
        seconds = {stage: float(spent) for stage, spent in getattr(model, "stage_times_", {}).items()}
        quality = measure_quality(X, model, labels, bars, seconds) if with_quality else None
        judged = None
        # reliability is not defined for a layout that was stopped before its rows had settled
        if with_quality and not bars.stopped:
            with timed("reliability", bars, seconds):
                judged = model.reliability_
        return FitResult(np.asarray(model.embedding_), seconds, quality, bars.stopped, model, judged)


def measure_quality(
    X: NDArray[np.float32], model: Any, labels: NDArray[Any] | None, bars: ProgressBars, seconds: dict[str, float]
) -> QualityReport:
    """Measure the quality of a model's map and add the time to ``seconds``."""
    from vicinal import quality
    from vicinal.plot.annotations import categories

    metric = getattr(model, "metric", "euclidean")
    with timed("quality", bars, seconds):
        return quality.report(X, model.embedding_, categories(labels), metric=metric)


@contextlib.contextmanager
def timed(stage: str, bars: ProgressBars, seconds: dict[str, float]) -> Iterator[None]:
    """Show a stage while the block runs and add its time to ``seconds``."""
    bars(stage, 0, 0, None)
    start = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - start


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
