"""A fit in a background thread that can be watched, paused, stopped and run again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vicinal.files.readers import read_table
from vicinal.files.readers.prepared_source import PreparedSource
from vicinal.plot.annotations import is_continuous, label_names, unlabelled_rows
from vicinal.viewer.columns import Columns, named_columns
from vicinal.viewer.frame_encoding import Snapshot
from vicinal.viewer.growing_columns import GrowingColumns
from vicinal.viewer.packing import Packed, pack

# Interval at which a paused fit checks whether it may continue, in seconds.
PAUSE_S = 0.05
DIMENSIONS = (2, 3)
# Parameters that the page can change: minimum, maximum and step of the input.
ADJUSTABLE: dict[str, tuple[float, float, float]] = {
    "n_neighbors": (2, 200, 1),
    "perplexity": (2, 200, 1),
    "min_dist": (0.0, 1.0, 0.05),
    "n_epochs": (0, 5000, 50),
    "random_state": (0, 2**31 - 1, 1),
}

# Metrics that the page offers; others can be given on the command line.
METRICS = ("euclidean", "cosine", "correlation", "manhattan", "chebyshev", "canberra", "braycurtis", "hellinger")

# Creates an unfitted estimator from parameters and a callback.
Estimator = Callable[[dict[str, Any], Any], Any]


@dataclass(frozen=True)
class Status:
    """State of a run, as shown on the page."""

    state: str
    stage: str = ""
    epoch: int = 0
    n_epochs: int = 0
    message: str = ""
    growth: Growth | None = None


@dataclass(frozen=True)
class Growth:
    """Progress of a growing map: rows read, total rows if known, rows placed, work left, and quality so far."""

    rows: int
    total: int | None
    placed: int
    pending: int
    coverage: float
    trustworthiness: float | None = None


class RowSource(Protocol):
    """How the rows of a fit were read, to read others in the same way."""

    def read_rows(self, path: Path) -> NDArray[np.float32]:
        """Read rows to place."""

    def keep_in(self, model: Any) -> None:
        """Store the description in a fitted model."""


class Session:
    """One map of given rows; ``build`` creates its estimator and ``columns`` has the data of the rows.

    ``source`` describes the file of the rows, so that files of the same layout can be placed on the map.
    """

    def __init__(
        self,
        X: Any,
        build: Estimator,
        parameters: Mapping[str, Any],
        *,
        columns: Columns | None = None,
        title: str = "",
        label: str = "",
        source: RowSource | None = None,
    ) -> None:
        self.X, self.columns, self.title, self.label = X, columns or Columns(), title, label
        self.source = source
        self.model: Any = None
        self.selection: list[int] = []
        self.parameters = dict(parameters)
        self._build = build
        self._lock = threading.Lock()
        self._going = threading.Event()
        self._going.set()
        self._run = 0
        self._thread: threading.Thread | None = None
        self._status = Status("waiting")
        width = parameters.get("n_components", 2)
        if width not in DIMENSIONS:
            raise ValueError(f"the page shows maps of 2 or 3 dimensions, but n_components is {width}")
        self._snapshot = Snapshot(0, 0, 0, np.zeros((X.shape[0], width), dtype=np.float32))
        self._projected: tuple[str, NDArray[np.float32]] | None = None

    @classmethod
    def of(cls, model: Any, **described: Any) -> Session:
        """Create a session that shows a fitted model."""
        described = {"source": PreparedSource.of_model(model), **described}
        shown = {"n_components": model.embedding_.shape[1]}
        session = cls(model.embedding_, lambda parameters, callback: model, shown, **described)
        session.model = model
        session._status = Status("done")
        session._snapshot = replace(
            session._snapshot, positions=np.asarray(model.embedding_, dtype=np.float32), final=True
        )
        return session

    @property
    def status(self) -> Status:
        with self._lock:
            return replace(self._status, state="paused") if self._paused() else self._status

    @property
    def snapshot(self) -> Snapshot:
        with self._lock:
            return self._snapshot

    @property
    def packed(self) -> Packed:
        """The data of the page; rows of the last projection form a class of their own."""
        with self._lock:
            snapshot, projected = self._snapshot, self._projected
        columns = self.columns
        if projected is not None:
            name, positions = projected
            columns = _with_projected_rows(columns, len(self.X), name, len(positions), self.label)
        return pack(snapshot.positions, columns, title=self.title, label=self.label, clusters=False)

    def start(self, parameters: Mapping[str, Any] | None = None) -> None:
        """Start a run, replacing a current one; ``parameters`` changes adjustable parameters."""
        for name, value in (parameters or {}).items():
            self.parameters[name] = self._checked(name, value)
        before = self._thread
        with self._lock:
            self._run += 1
            self._projected = None
            self._status = Status("running", "starting")
        self._going.set()
        self._thread = threading.Thread(target=self._fit, args=(self._run, before), daemon=True)
        self._thread.start()

    def pause(self) -> None:
        self._going.clear()

    def resume(self) -> None:
        self._going.set()

    def stop(self) -> None:
        """Stop the run and keep the current positions."""
        with self._lock:
            self._run += 1
        self._going.set()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the run has ended."""
        if self._thread is not None:
            self._thread.join(timeout)

    def adjustable(self) -> list[dict[str, Any]]:
        """Return the parameters that the page can change, with limits or choices and current values."""
        found: list[dict[str, Any]] = [
            {"name": name, "value": self.parameters[name], "low": low, "high": high, "step": step}
            for name, (low, high, step) in ADJUSTABLE.items()
            if isinstance(self.parameters.get(name), (int, float))
        ]
        metric = self.parameters.get("metric")
        if isinstance(metric, str):
            choices = list(METRICS) if metric in METRICS else [metric, *METRICS]
            found.append({"name": "metric", "value": metric, "choices": choices})
        return found

    def read(self, path: Path) -> NDArray[np.float32]:
        """Read rows to place from a file of the layout of the data, if that came from a file."""
        return read_table(path).X if self.source is None else self.source.read_rows(path)

    def finished_model(self) -> Any:
        """Return the fitted model, or raise while there is none."""
        if self.model is None or self.status.state != "done":
            raise ValueError("the layout is still running: wait until it is done")
        return self.model

    def project(self, name: str, rows: NDArray[np.float32]) -> int:
        """Place new rows on the finished map, where they are shown until the next run; return their number."""
        model = self.finished_model()
        if not hasattr(model, "transform"):
            raise ValueError(f"a {type(model).__name__} cannot place new rows")
        positions = np.asarray(model.transform(rows), dtype=np.float32)
        everything = np.concatenate([model.embedding_, positions]).astype(np.float32)
        with self._lock:
            self._projected = (name, positions)
            self._snapshot = replace(
                self._snapshot, positions=everything, columns=self._columns_with(name, len(positions))
            )
        return len(positions)

    def _columns_with(self, name: str, n: int) -> GrowingColumns | None:
        """Return the columns of a growing map extended by ``n`` new rows; other sessions have none."""
        return None

    def _paused(self) -> bool:
        return not self._going.is_set() and self._status.state == "running"

    def _checked(self, name: str, value: Any) -> float | int | str:
        allowed = {one["name"]: one for one in self.adjustable()}
        if name not in allowed:
            raise ValueError(f"{name} cannot be changed here; adjustable parameters: {', '.join(allowed) or 'none'}")
        if "choices" in allowed[name]:
            if value not in allowed[name]["choices"]:
                raise ValueError(f"{name} must be one of {', '.join(allowed[name]['choices'])}, got {value!r}")
            return str(value)
        whole = isinstance(self.parameters[name], int)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value):
            raise ValueError(f"{name} must be a number")
        low, high = allowed[name]["low"], allowed[name]["high"]
        if not low <= value <= high or (whole and value != int(value)):
            kind = "a whole number " if whole else ""
            raise ValueError(f"{name} must be {kind}between {low} and {high}, got {value}")
        return int(value) if whole else float(value)

    def _fit(self, run: int, before: threading.Thread | None) -> None:
        if before is not None:
            before.join()
        try:
            model = self._build(dict(self.parameters), lambda *told: self._report(run, *told))
            self._run_fit(model, run)
        except Exception as error:  # any error is shown on the page and must not end the server
            message = " ".join(str(error).split()) or type(error).__name__
            self._update(run, replace(self.status, state="failed", message=message), None)
            return
        if not hasattr(model, "embedding_"):
            return  # stopped before any row was placed
        self.model = model
        epochs = int(getattr(model, "n_epochs_", 0))
        final = self._snapshot_at(run, epochs, epochs, np.asarray(model.embedding_, dtype=np.float32))
        self._update(run, replace(self._status_at("", epochs, epochs), state="done"), replace(final, final=True))

    def _run_fit(self, model: Any, run: int) -> None:
        model.fit(self.X)

    def _status_at(self, stage: str, epoch: int, n_epochs: int) -> Status:
        return Status("running", stage, epoch, n_epochs)

    def _snapshot_at(self, run: int, epoch: int, n_epochs: int, positions: NDArray[np.float32]) -> Snapshot:
        return Snapshot(run, epoch, n_epochs, positions)

    def _are_positions(self, positions: Any) -> bool:
        return positions is not None and np.shape(positions) == (len(self.X), self._snapshot.positions.shape[1])

    def _update(self, run: int, status: Status, snapshot: Snapshot | None) -> None:
        with self._lock:
            if run == self._run:
                self._status = status
                self._snapshot = snapshot or self._snapshot

    def _report(self, run: int, stage: str, epoch: int, n_epochs: int, positions: Any, *more: Any) -> bool:
        """Callback of the estimator: store the positions, wait while paused, return True to stop."""
        if run == self._run:
            status, snapshot = self._status_at(stage, epoch, n_epochs), None
            if self._are_positions(positions):
                snapshot = self._snapshot_at(run, epoch, n_epochs, np.array(positions, dtype=np.float32))
            self._update(run, status, snapshot)
        while run == self._run and not self._going.wait(PAUSE_S):
            pass
        return run != self._run


def _with_projected_rows(columns: Columns, n: int, name: str, m: int, label: str) -> Columns:
    """Extend the columns by ``m`` new rows, which have a class of their own, numbered ids and no other data."""
    labels, values = {}, {}
    for one, column in named_columns(columns.labels, label or "class").items():
        known = np.asarray(column)
        if is_continuous(known):
            values[one] = np.concatenate([known.astype(np.float64), np.full(m, np.nan)])
        else:
            missing = unlabelled_rows(known)
            names = iter(label_names(known[~missing]).tolist())
            texts = [None if gap else next(names) for gap in missing.tolist()]
            labels[one] = np.array([*texts, *[f"new: {name}"] * m], dtype=object)
    if not labels:
        labels["rows"] = np.array([None] * n + [f"new: {name}"] * m, dtype=object)
    for one, column in named_columns(columns.values, label or "value").items():
        values[one] = np.concatenate([np.asarray(column, dtype=np.float64), np.full(m, np.nan)])
    named = named_columns(columns.hover, "text")
    hover = {one: [*np.asarray(column, dtype=object).tolist(), *[None] * m] for one, column in named.items()}
    images = columns.images
    if images is not None:
        shown = np.asarray(images)
        images = np.concatenate([shown, np.zeros((m, *shown.shape[1:]), dtype=shown.dtype)])
    ids = [*(range(n) if columns.ids is None else columns.ids), *(f"{name}:{a}" for a in range(m))]
    return Columns(labels, values or None, hover or None, images, ids)
