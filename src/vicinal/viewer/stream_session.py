"""A growing map that can be watched: a background thread reads its rows batch by batch."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal import quality
from vicinal.files.incremental_fit import fit_in_pieces
from vicinal.files.readers.data_table import DataTable
from vicinal.viewer.frame_encoding import Snapshot
from vicinal.viewer.growing_columns import GrowingColumns
from vicinal.viewer.packing import Packed, pack_empty
from vicinal.viewer.session import Estimator, Growth, RowSource, Session, Status

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
        ids: str | None = None,
        title: str = "",
        label: str = "",
        source: RowSource | None = None,
    ) -> None:
        super().__init__(np.empty((0, 2), np.float32), build, parameters, title=title, label=label, source=source)
        self._tables, self._total, self._ids = tables, total, ids
        self._begin(None)

    @property
    def packed(self) -> Packed:
        """The data of a page without rows: they are sent with the frames."""
        return pack_empty(title=self.title)

    def _begin(self, model: Any) -> None:
        self._growing, self._columns = model, GrowingColumns(self._ids, self.label)
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
            self._columns.append(len(table.X), table.labels, table.extra)
            yield table.X

    def _status_at(self, stage: str, epoch: int, n_epochs: int) -> Status:
        model = self._growing
        placed = len(model.age_)
        grown = Growth(model.n_rows_, self._total, placed, model.pending_, model.coverage_, self._trustworthiness)
        return Status("running", stage, epoch, n_epochs, growth=grown)

    def _snapshot_at(self, run: int, epoch: int, n_epochs: int, positions: NDArray[np.float32]) -> Snapshot:
        return Snapshot(run, epoch, n_epochs, positions, columns=self._columns)

    def _are_positions(self, positions: Any) -> bool:
        return positions is not None and len(positions) > 0

    def _columns_with(self, name: str, n: int) -> GrowingColumns | None:
        return self._columns.with_class(name, n)

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
