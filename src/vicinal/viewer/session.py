"""A fit in a background thread that can be watched, paused, stopped and run again."""

from __future__ import annotations

import contextlib
import json
import reprlib
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal import quality
from vicinal.files.batches import fit_in_pieces
from vicinal.files.data_table import Column, DataTable
from vicinal.files.preparation import Preparation
from vicinal.viewer.packing import (
    COMPRESSION,
    Box,
    Packed,
    PageColumns,
    bounding_box,
    compressed,
    has_neighbors,
    neighbors_of,
    pack,
    quantized,
)

KEY, DELTA, EXACT, ROWS = 0, 1, 2, 3
HEADER = struct.Struct("<BB2xIII6f")
LENGTH = struct.Struct("<I")
# Margin around the positions of a key frame, as a fraction of their extent: a map expands during the layout.
MARGIN = 0.25


@dataclass(frozen=True)
class Snapshot:
    """Positions at an epoch of a run; ``final`` ones are sent exactly, ``columns`` has the data of a growing map."""

    run: int
    epoch: int
    n_epochs: int
    positions: NDArray[np.float32]
    final: bool = False
    columns: PageColumns | None = None

    @property
    def drawable(self) -> bool:
        """Whether there are positions to draw."""
        return len(self.positions) > 0 and (self.epoch > 0 or self.final or self.columns is not None)


class FrameEncoder:
    """Encode frames for one client, which has received every previous frame."""

    def __init__(self) -> None:
        self._box: Box = np.zeros((2, 2))
        self._steps: NDArray[np.uint16] | None = None
        self._rows: tuple[PageColumns | None, object, int] = (None, None, 0)

    def frames(self, snapshot: Snapshot) -> list[bytes]:
        """Return the frames that the client needs to draw the snapshot, in order."""
        rows = self._new_rows(snapshot)
        return [*([] if rows is None else [rows]), self.encode(snapshot)]

    def encode(self, snapshot: Snapshot) -> bytes:
        """Encode the positions of a snapshot."""
        if snapshot.final:
            self._steps = None
            return self._framed(EXACT, snapshot, np.ascontiguousarray(snapshot.positions.T, dtype="<f4").tobytes())
        last = self._steps
        if last is None or last.shape[1] > len(snapshot.positions) or not self._holds(snapshot.positions):
            self._box = _with_margin(bounding_box(snapshot.positions))
            self._steps = quantized(snapshot.positions, self._box)
            return self._framed(KEY, snapshot, self._steps.tobytes())
        self._steps = quantized(snapshot.positions, self._box)
        # differences modulo 2^16; the client adds modulo 2^16
        changes = self._steps.copy()
        changes[:, : last.shape[1]] -= last
        return self._framed(DELTA, snapshot, changes.tobytes())

    def _new_rows(self, snapshot: Snapshot) -> bytes | None:
        """Encode the rows that the client does not have yet, or all rows if their colors have changed."""
        columns, n = snapshot.columns, len(snapshot.positions)
        if columns is None:
            return None
        key = columns.colors(n)
        begin = self._rows[2] if self._rows[:2] == (columns, key) else 0
        if begin == n:
            return None
        self._rows = (columns, key, n)
        packed = columns.packed(begin, n)
        lengths = {name: len(content) for name, content in packed.sections.items()}
        text = json.dumps({"begin": begin, "meta": packed.meta, "sections": lengths}, allow_nan=False).encode()
        return self._header(ROWS, snapshot) + LENGTH.pack(len(text)) + text + b"".join(packed.sections.values())

    def _holds(self, positions: NDArray[np.float32]) -> bool:
        box = bounding_box(positions)
        if self._box.shape != box.shape:
            return False
        return bool((self._box[0] <= box[0]).all() and (self._box[1] >= box[1]).all())

    def _framed(self, kind: int, snapshot: Snapshot, content: bytes) -> bytes:
        return self._header(kind, snapshot) + zlib.compress(content, COMPRESSION)

    def _header(self, kind: int, snapshot: Snapshot) -> bytes:
        box = np.zeros((2, 3))
        box[:, : self._box.shape[1]] = self._box
        dimensions = snapshot.positions.shape[1]
        return HEADER.pack(kind, dimensions, snapshot.run, snapshot.epoch, snapshot.n_epochs, *box.ravel())


def _with_margin(box: Box) -> Box:
    """Return the box with a margin, rounded to float32: client and grid must use identical borders."""
    low, high = box
    margin = np.where(high > low, MARGIN * (high - low), 1.0)
    return np.stack([low - margin, high + margin]).astype(np.float32).astype(np.float64)


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


class Session:
    """One map of given rows; ``build`` creates its estimator, ``columns`` and ``images`` describe the rows.

    Without ``build`` the session shows a map that cannot be fitted again. One thread carries out the runs; a new run
    stops the current one and replaces one that has not begun.

    ``source`` tells how the rows were read and prepared, so that files of the same layout can be placed on the map.
    """

    def __init__(
        self,
        X: Any,
        build: Estimator | None,
        parameters: Mapping[str, Any],
        *,
        columns: Sequence[Column] = (),
        images: Any = None,
        title: str = "",
        source: Preparation | None = None,
    ) -> None:
        self.X, self.columns, self.images, self.title = X, columns, images, title
        self.source = source or Preparation()
        self._page = PageColumns.of(columns, X.shape[0])
        self.model: Any = None
        self._nearest: tuple[Any, NDArray[np.int64] | None] | None = None  # of the model that was asked last
        self.selection: list[int] = []
        self.parameters = dict(parameters)
        self._build = build
        self._lock = threading.Lock()
        self._going = threading.Event()
        self._going.set()
        self._run = 0
        self._requested: int | None = None  # the run that the thread begins next
        self._working = False
        self._thread: threading.Thread | None = None
        self._status = Status("waiting")
        width = parameters.get("n_components", 2)
        if width not in DIMENSIONS:
            raise ValueError(f"the page shows maps of 2 or 3 dimensions, but n_components is {width}")
        self._snapshot = Snapshot(0, 0, 0, np.zeros((X.shape[0], width), dtype=np.float32))
        self._projected: PageColumns | None = None
        self._sent_columns: PageColumns | None = None  # those of a growing map travel with its positions

    @classmethod
    def of(cls, model: Any, **described: Any) -> Session:
        """Create a session that shows a fitted model."""
        described = {"source": Preparation.of_model(model), **described}
        shown = {"n_components": model.embedding_.shape[1]}
        session = cls(model.embedding_, None, shown, **described)
        session.model = model
        session._status = Status("done")
        session._snapshot = Snapshot(0, 0, 0, np.asarray(model.embedding_, dtype=np.float32), final=True)
        return session

    @property
    def status(self) -> Status:
        with self._lock:
            paused = not self._going.is_set() and self._status.state == "running"
            return replace(self._status, state="paused") if paused else self._status

    @property
    def snapshot(self) -> Snapshot:
        with self._lock:
            return self._snapshot

    @property
    def packed(self) -> Packed:
        """The data of the page; rows of the last projection form a class of their own."""
        with self._lock:
            positions, columns = self._snapshot.positions, self._projected or self._page
        images, new = self.images, len(positions) - len(self.X)
        if images is not None and new > 0:
            images = np.concatenate([images, np.zeros((new, *np.shape(images)[1:]), dtype=np.asarray(images).dtype)])
        return pack(positions, columns, images=images, title=self.title)

    def start(self, parameters: Mapping[str, Any] | None = None) -> None:
        """Start a run, replacing a current one; ``parameters`` changes adjustable parameters."""
        if self._build is None:
            raise ValueError("this page shows a saved model, which must be fitted again from its data: serve the data")
        changed = {name: self._checked(name, value) for name, value in (parameters or {}).items()}
        with self._lock:
            self.parameters |= changed
            self._run += 1
            self._requested = self._run
            self._projected = None
            self._status = Status("running", "starting")
            self._going.set()
            if not self._working:
                self._working = True
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()

    def pause(self) -> None:
        self._going.clear()

    def resume(self) -> None:
        self._going.set()

    def stop(self) -> None:
        """Stop the run and keep the current positions."""
        with self._lock:
            self._run += 1
            self._requested = None
        self._going.set()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until all runs have ended."""
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

    def finished_model(self) -> Any:
        """Return the fitted model, or raise while there is none."""
        if self.model is None or self.status.state != "done":
            raise ValueError("the layout is still running: wait until it is done")
        return self.model

    @property
    def projects(self) -> bool:
        """Whether rows of a file can be placed on the map; unknown before the first fit, so assumed."""
        return self.model is None or hasattr(self.model, "transform")

    @property
    def saves(self) -> bool:
        """Whether the page offers the map and its model."""
        return True

    @property
    def has_neighbors(self) -> bool:
        """Whether finished models keep the neighbors of their rows; unknown before the first fit, so assumed."""
        return self.model is None or has_neighbors(self.model)

    def neighbors(self, row: Any) -> list[int]:
        """Return the nearest rows in the data of a row of the finished map; none of a row that was placed later."""
        if type(row) is not int or not 0 <= row < len(self.snapshot.positions):
            raise ValueError(f"row must be a row number below {len(self.snapshot.positions)}, got {reprlib.repr(row)}")
        model = self.finished_model()
        if self._nearest is None or self._nearest[0] is not model:
            self._nearest = (model, neighbors_of(model) if self.has_neighbors else None)
        table = self._nearest[1]
        if table is None or row >= len(table):
            return []
        return [one for one in dict.fromkeys(table[row].tolist()) if one != row]

    def project(self, name: str, rows: NDArray[np.float32]) -> int:
        """Place new rows on the finished map, where they are shown until the next run; return their number."""
        model = self.finished_model()
        if not hasattr(model, "transform"):
            raise ValueError(f"a {type(model).__name__} cannot place new rows")
        positions = np.asarray(model.transform(rows), dtype=np.float32)
        everything = np.concatenate([model.embedding_, positions]).astype(np.float32)
        longer = self._page.with_new_rows(name, len(positions))
        with self._lock:
            self._projected = longer
            sent = None if self._snapshot.columns is None else longer
            self._snapshot = replace(self._snapshot, positions=everything, columns=sent)
        return len(positions)

    def _checked(self, name: str, value: Any) -> float | int | str:
        allowed = {one["name"]: one for one in self.adjustable()}
        if name not in allowed:
            known = ", ".join(allowed) or "none"
            raise ValueError(f"{reprlib.repr(name)} cannot be changed here; adjustable parameters: {known}")
        if "choices" in allowed[name]:
            if value not in allowed[name]["choices"]:
                choices = ", ".join(allowed[name]["choices"])
                raise ValueError(f"{name} must be one of {choices}, got {reprlib.repr(value)}")
            return str(value)
        low, high, whole = allowed[name]["low"], allowed[name]["high"], isinstance(self.parameters[name], int)
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high
        if not number or (whole and value != int(value)):
            kind = "whole number" if whole else "number"
            raise ValueError(f"{name} must be a {kind} between {low} and {high}, got {reprlib.repr(value)}")
        return int(value) if whole else float(value)

    def _work(self) -> None:
        """Carry out the newest requested run until none is left."""
        while True:
            with self._lock:
                run, self._requested, parameters = self._requested, None, dict(self.parameters)
                if run is None:
                    self._working = False
                    return
            self._fit(run, parameters)

    def _fit(self, run: int, parameters: dict[str, Any]) -> None:
        assert self._build is not None, "start refuses a session that cannot be fitted"
        try:
            model = self._build(parameters, lambda *told: self._report(run, *told))
            self._run_fit(model, run)
        except Exception as error:  # any error is shown on the page and must not end the server
            message = " ".join(str(error).split()) or type(error).__name__
            self._update(run, replace(self.status, state="failed", message=message), None)
            return
        if run != self._run or not hasattr(model, "embedding_"):
            return  # replaced by another run, or stopped
        self.model = model
        epochs = int(getattr(model, "n_epochs_", 0))
        positions = np.asarray(model.embedding_, dtype=np.float32)
        final = Snapshot(run, epochs, epochs, positions, final=True, columns=self._sent_columns)
        self._update(run, Status("done", "", epochs, epochs, growth=self._growth()), final)

    def _run_fit(self, model: Any, run: int) -> None:
        model.fit(self.X)

    def _growth(self) -> Growth | None:
        return None

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
            snapshot = None
            if self._are_positions(positions):
                copied = np.array(positions, dtype=np.float32)
                snapshot = Snapshot(run, epoch, n_epochs, copied, columns=self._sent_columns)
            self._update(run, Status("running", stage, epoch, n_epochs, growth=self._growth()), snapshot)
        while run == self._run and not self._going.wait(PAUSE_S):
            pass
        return run != self._run


# Quality is measured on MEASURED rows, at most once per MEASURE_S seconds, for at most this fraction of the time.
MEASURED, NEIGHBORS = 100, 15
MEASURE_S, MEASURE_SHARE = 3.0, 0.1


class StreamSession(Session):
    """One map of rows that arrive in tables; ``tables`` is called for every run, ``total`` counts the rows if known."""

    def __init__(
        self,
        tables: Callable[[], Iterator[DataTable]],
        build: Estimator,
        parameters: Mapping[str, Any],
        *,
        total: int | None = None,
        title: str = "",
        source: Preparation | None = None,
    ) -> None:
        super().__init__(np.empty((0, 2), np.float32), build, parameters, title=title, source=source)
        self._tables, self._total = tables, total
        self._begin(None)

    @property
    def packed(self) -> Packed:
        """The data of a page without rows: they are sent with the frames."""
        empty = pack(np.zeros((1, 2)), title=self.title)
        return Packed({**empty.meta, "n": 0}, {"xy0": compressed(np.empty(0, dtype="<u2"))})

    def _begin(self, model: Any) -> None:
        self._growing = model
        self._page = self._sent_columns = PageColumns()
        self._trustworthiness: float | None = None
        self._measured = self._measuring = 0.0

    def _run_fit(self, model: Any, run: int) -> None:
        self._begin(model)
        for _ in fit_in_pieces(model, self._rows()):
            if run != self._run:
                return
            since = time.perf_counter() - self._measured
            if hasattr(model, "embedding_") and since > max(MEASURE_S, self._measuring / MEASURE_SHARE):
                self._measure(model.embedding_)
        self._measure(model.embedding_)

    def _rows(self) -> Iterator[NDArray[np.float32]]:
        for table in self._tables():
            self._page.append(len(table.X), table.columns)
            yield table.X

    def _growth(self) -> Growth | None:
        model, placed = self._growing, len(self._growing.age_)
        return Growth(model.n_rows_, self._total, placed, model.pending_, model.coverage_, self._trustworthiness)

    def _are_positions(self, positions: Any) -> bool:
        return positions is not None and len(positions) > 0

    def _measure(self, positions: NDArray[np.float32]) -> None:
        n, start = len(positions), time.perf_counter()
        if n > 2 * NEIGHBORS:
            rows, metric = self._growing.rows_[:n], self._growing.metric
            with contextlib.suppress(ValueError):  # trustworthiness does not support every metric
                self._trustworthiness = quality.trustworthiness(
                    rows, positions, n_neighbors=NEIGHBORS, sample=MEASURED, metric=metric
                )
        self._measured = time.perf_counter()
        self._measuring = self._measured - start
