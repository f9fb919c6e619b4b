"""A fit that can be watched: it runs in a thread of its own, can be paused, stopped and run again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.viewer.frames import Moment
from vicinal.viewer.growing_columns import GrowingColumns
from vicinal.viewer.packing import Columns, Packed, pack

# How often a paused fit looks whether it may go on, in seconds.
PAUSE_S = 0.05
# The numbers a reader may set before running again: their least and greatest values and the step of the input.
ADJUSTABLE: dict[str, tuple[float, float, float]] = {
    "n_neighbors": (2, 200, 1),
    "perplexity": (2, 200, 1),
    "min_dist": (0.0, 1.0, 0.05),
    "n_epochs": (0, 5000, 50),
    "random_state": (0, 2**31 - 1, 1),
}

# Parameters and a callback to an estimator that is to be fitted.
Estimator = Callable[[dict[str, Any], Any], Any]


@dataclass(frozen=True)
class Status:
    """What a reader is told besides the places."""

    state: str
    stage: str = ""
    epoch: int = 0
    n_epochs: int = 0
    message: str = ""
    growth: Grown | None = None


@dataclass(frozen=True)
class Grown:
    """How far a map is that grows: rows read, of how many if that is known, placed, waiting; how good it is."""

    rows: int
    total: int | None
    placed: int
    pending: int
    coverage: float
    trustworthiness: float | None = None


class Session:
    """One map of some rows. `build` makes its estimator; `columns` come with the rows."""

    def __init__(
        self,
        X: Any,
        build: Estimator,
        parameters: Mapping[str, Any],
        *,
        columns: Columns | None = None,
        title: str = "",
        label: str = "",
    ) -> None:
        self.X, self.columns, self.title, self.label = X, columns or Columns(), title, label
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
        self._moment = Moment(0, 0, 0, np.zeros((len(X), 2), dtype=np.float32))
        self._projected: tuple[str, NDArray[np.float32]] | None = None

    @classmethod
    def of(cls, model: Any, **described: Any) -> Session:
        """A session around a model that is fitted already."""
        session = cls(model.embedding_, lambda parameters, callback: model, {}, **described)
        session.model = model
        session._status = Status("done")
        session._moment = replace(session._moment, places=np.asarray(model.embedding_, dtype=np.float32), final=True)
        return session

    @property
    def status(self) -> Status:
        with self._lock:
            return replace(self._status, state="paused") if self._paused() else self._status

    @property
    def moment(self) -> Moment:
        with self._lock:
            return self._moment

    @property
    def packed(self) -> Packed:
        """The page's data; new rows of the last projection are a class of their own."""
        with self._lock:
            moment, projected = self._moment, self._projected
        columns = self.columns if projected is None else _with_new_rows(self.columns, len(self.X), *projected)
        return pack(moment.places, columns, title=self.title, label=self.label)

    def start(self, parameters: Mapping[str, Any] | None = None) -> None:
        """Run the fit, instead of one that is running; adjustable parameters replace the present ones."""
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
        """End the run, keeping the places there are."""
        with self._lock:
            self._run += 1
        self._going.set()

    def wait(self, timeout: float | None = None) -> None:
        """Until the run has ended."""
        if self._thread is not None:
            self._thread.join(timeout)

    def adjustable(self) -> list[dict[str, Any]]:
        """Parameters a reader may change, with their limits and present values."""
        return [
            {"name": name, "value": self.parameters[name], "low": low, "high": high, "step": step}
            for name, (low, high, step) in ADJUSTABLE.items()
            if isinstance(self.parameters.get(name), (int, float))
        ]

    def project(self, name: str, rows: NDArray[np.float32]) -> int:
        """Place new rows on the finished map; they are shown until the next run."""
        if self.model is None or self.status.state != "done":
            raise ValueError("wait until the layout is done: a map that moves has no places for new rows")
        if not hasattr(self.model, "transform"):
            raise ValueError(f"{type(self.model).__name__} cannot place new rows")
        places = np.asarray(self.model.transform(rows), dtype=np.float32)
        everything = np.concatenate([self.model.embedding_, places]).astype(np.float32)
        with self._lock:
            self._projected = (name, places)
            self._moment = replace(self._moment, places=everything, columns=self._columns_with(name, len(places)))
        return len(places)

    def _columns_with(self, name: str, n: int) -> GrowingColumns | None:
        """Of rows that keep coming: their columns, made longer by so many rows from elsewhere."""
        return None

    def _paused(self) -> bool:
        return not self._going.is_set() and self._status.state == "running"

    def _checked(self, name: str, value: Any) -> float | int:
        allowed = {one["name"]: one for one in self.adjustable()}
        if name not in allowed:
            raise ValueError(f"{name} cannot be changed here; adjustable are {', '.join(allowed) or 'none'}")
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
            model = self._build(dict(self.parameters), lambda *told: self._told(run, *told))
            self._work(model, run)
        except Exception as error:  # whatever it is, it is the reader's to know and must not end the server
            message = " ".join(str(error).split()) or type(error).__name__
            self._settle(run, replace(self.status, state="failed", message=message), None)
            return
        if not hasattr(model, "embedding_"):
            return  # stopped before there was any place
        self.model = model
        epochs = int(getattr(model, "n_epochs_", 0))
        final = self._seen(run, epochs, epochs, np.asarray(model.embedding_, dtype=np.float32))
        self._settle(run, replace(self._noted("", epochs, epochs), state="done"), replace(final, final=True))

    def _work(self, model: Any, run: int) -> None:
        model.fit(self.X)

    def _noted(self, stage: str, epoch: int, n_epochs: int) -> Status:
        return Status("running", stage, epoch, n_epochs)

    def _seen(self, run: int, epoch: int, n_epochs: int, places: NDArray[np.float32]) -> Moment:
        return Moment(run, epoch, n_epochs, places)

    def _are_places(self, places: Any) -> bool:
        return places is not None and np.shape(places) == (len(self.X), 2)

    def _settle(self, run: int, status: Status, moment: Moment | None) -> None:
        with self._lock:
            if run == self._run:
                self._status = status
                self._moment = moment or self._moment

    def _told(self, run: int, stage: str, epoch: int, n_epochs: int, places: Any, *more: Any) -> bool:
        """The estimator's callback: keeps the newest places, waits while paused, answers true to stop."""
        if run == self._run:
            status, moment = self._noted(stage, epoch, n_epochs), None
            if self._are_places(places):
                moment = self._seen(run, epoch, n_epochs, np.array(places, dtype=np.float32))
            self._settle(run, status, moment)
        while run == self._run and not self._going.wait(PAUSE_S):
            pass
        return run != self._run


def _with_new_rows(columns: Columns, n: int, name: str, places: NDArray[np.float32]) -> Columns:
    """The columns made longer: new rows have a class of their own, numbered ids and no texts."""
    from vicinal.plot.annotations import measured

    m = len(places)
    known = None if columns.labels is None else np.asarray(columns.labels)
    classes = [None] * n if known is None or measured(known) else known.tolist()
    hover = columns.hover
    if hover is not None:
        named = {str(one): hover[one] for one in (hover.columns if hasattr(hover, "columns") else hover)}
        hover = {one: [*np.asarray(values, dtype=object).tolist(), *[None] * m] for one, values in named.items()}
    images = columns.images
    if images is not None:
        shown = np.asarray(images)
        images = np.concatenate([shown, np.zeros((m, *shown.shape[1:]), dtype=shown.dtype)])
    ids = [*(range(n) if columns.ids is None else columns.ids), *(f"{name}:{a}" for a in range(m))]
    labels = np.array([*(None if one is None else str(one) for one in classes), *[f"new: {name}"] * m], dtype=object)
    return Columns(labels, None, hover, images, ids)
