"""A map that can be watched while it grows: its file is read by a thread of its own, batch by batch."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal import quality
from vicinal.files.readers.table import Table
from vicinal.files.streams import grow
from vicinal.viewer.frames import Moment
from vicinal.viewer.growing_columns import GrowingColumns
from vicinal.viewer.packing import Packed, pack_nothing
from vicinal.viewer.session import Estimator, Grown, Session, Status

# Quality so far is measured on a few rows, at most this often and for at most this share of the time.
MEASURED, NEIGHBORS = 100, 15
MEASURE_S, MEASURE_SHARE = 3.0, 0.1


class StreamSession(Session):
    """One map of rows that come as tables, opened anew for every run; `total` rows are to come, if that is known."""

    def __init__(
        self,
        tables: Callable[[], Iterator[Table]],
        build: Estimator,
        parameters: Mapping[str, Any],
        *,
        total: int | None = None,
        ids: str | None = None,
        title: str = "",
        label: str = "",
    ) -> None:
        super().__init__(np.empty((0, 2), np.float32), build, parameters, title=title, label=label)
        self._tables, self._total, self._ids = tables, total, ids
        self._begin(None)

    @property
    def packed(self) -> Packed:
        """A page without rows: those come with the frames."""
        return pack_nothing(title=self.title, label=self.label)

    def _begin(self, model: Any) -> None:
        self._growing, self._gathered = model, GrowingColumns(self._ids)
        self._trustworthiness: float | None = None
        self._measured = self._measuring = 0.0

    def _work(self, model: Any, run: int) -> None:
        self._begin(model)
        for _ in grow(model, self._rows()):
            if run != self._run:
                return
            since = time.perf_counter() - self._measured
            if hasattr(model, "embedding_") and since > max(MEASURE_S, self._measuring / MEASURE_SHARE):
                self._measure(model.embedding_)
        self._measure(model.embedding_)

    def _rows(self) -> Iterator[NDArray[np.float32]]:
        for table in self._tables():
            self._gathered.append(len(table.X), table.labels, table.along)
            yield table.X

    def _noted(self, stage: str, epoch: int, n_epochs: int) -> Status:
        model = self._growing
        placed = len(model.age_)
        grown = Grown(model.n_rows_, self._total, placed, model.pending_, model.coverage_, self._trustworthiness)
        return Status("running", stage, epoch, n_epochs, growth=grown)

    def _seen(self, run: int, epoch: int, n_epochs: int, places: NDArray[np.float32]) -> Moment:
        return Moment(run, epoch, n_epochs, places, columns=self._gathered)

    def _are_places(self, places: Any) -> bool:
        return places is not None and len(places) > 0

    def _columns_with(self, name: str, n: int) -> GrowingColumns | None:
        return self._gathered.with_class(name, n)

    def _measure(self, places: NDArray[np.float32]) -> None:
        n, start = len(places), time.perf_counter()
        if n > 2 * NEIGHBORS:
            rows, metric = self._growing.rows_[:n], self._growing.metric
            with contextlib.suppress(ValueError):  # not every metric has a measure
                self._trustworthiness = quality.trustworthiness(
                    rows, places, n_neighbors=NEIGHBORS, sample=MEASURED, metric=metric
                )
        self._measured = time.perf_counter()
        self._measuring = self._measured - start
