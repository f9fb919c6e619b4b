"""Read a file batch by batch into a growing map, with progress bars and saved state."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vicinal.cli.fitting import FitResult, measure_quality, stop_on_interrupt
from vicinal.cli.output_files import save_model
from vicinal.cli.progress_bars import ProgressBars, one_line_warnings, stage_bars
from vicinal.cli.rows import RowMetadata
from vicinal.files.incremental_fit import POLISH, READ, fit_in_pieces
from vicinal.files.readers.data_table import DataTable, ReadError
from vicinal.files.readers.extra_columns import ExtraColumns
from vicinal.files.readers.local_files import is_local
from vicinal.files.readers.source_columns import SourceColumns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The state is saved at most once per STATE_S seconds, and saving takes at most the fraction STATE_SHARE of the time.
STATE_S, STATE_SHARE = 60.0, 0.1


@dataclass(frozen=True)
class StreamSource:
    """A file and how to read it; ``columns`` are keyword arguments of ``read_batches``."""

    path: Path
    batch_rows: int
    columns: dict[str, Any]
    id_name: str | None = None
    value_names: tuple[str, ...] = ()

    def tables(self) -> Iterator[DataTable]:
        from vicinal.files.readers.batches import read_batches

        tables = read_batches(self.path, self.batch_rows, **self.columns)
        first = next(tables, None)
        if first is None:
            raise ReadError(f"{self.path} has no rows")
        yield first
        yield from tables

    def total(self) -> int | None:
        """Return the number of rows, or None if it is unknown."""
        from vicinal.files.readers.row_counts import row_count

        return row_count(self.path) if is_local(self.path) else None

    def metadata(self, extra: ExtraColumns, n: int) -> RowMetadata:
        """Return labels and extra columns of the first ``n`` rows."""
        label, values = self.columns["label"], self.value_names
        return RowMetadata(extra.labels(n), extra.columns(n), label, self.id_name, values)

    def layout(self, table: DataTable) -> SourceColumns:
        """Return the columns of the file, to read others of the same layout."""
        extra = tuple(name for name in self.columns["extra"] if name != self.id_name)
        vectors = self.columns.get("vectors")
        return SourceColumns(table.feature_names, self.columns["label"], self.id_name, extra, vectors)


class StreamFit:
    """Fit a model to the batches of a file; the model may already contain the first rows."""

    def __init__(self, source: StreamSource, model: Any, state: Path | None = None) -> None:
        self.source, self.model, self.state = source, model, state
        self.extra = ExtraColumns()
        self.seconds: dict[str, float] = {}
        self._saved = time.perf_counter()
        self._saving = 0.0

    @property
    def n_placed(self) -> int:
        return len(self.model.age_) if hasattr(self.model, "embedding_") else 0

    def run(self, *, with_quality: bool, quiet: bool) -> FitResult:
        """Fit all batches; Ctrl-C stops at a point from which the model can be continued, and keeps the map."""
        with stage_bars(quiet) as bars, one_line_warnings(quiet):
            # read the first batch before drawing bars, so that errors in the file come first
            tables = self.extra.collect(self.source.tables())
            first = next(tables)
            with stop_on_interrupt(bars, lambda: self.n_placed > 0):
                self._fit(self._unread(first, tables), bars)
            n = self.n_placed
            quality = None
            if with_quality:
                quality = measure_quality(self.model.rows_[:n], self.model, self.extra.labels(n), bars, self.seconds)
        return FitResult(self.model.embedding_, self.seconds, quality, bars.stopped, self.model)

    def _fit(self, rows: Iterator[NDArray[np.float32]], bars: ProgressBars) -> None:
        total, start, most = self.source.total(), time.perf_counter(), 0
        for stage in fit_in_pieces(self.model, rows):
            now = time.perf_counter()
            self.seconds[stage] = self.seconds.get(stage, 0.0) + now - start
            start = now
            self._save_state(due=bars.stopped or stage == POLISH)
            if bars.stopped:
                return
            if stage == READ:
                bars(READ, self.extra.n, total or 0, None)
            elif stage == POLISH:
                self.model.set_params(callback=_polish_callback(bars))
            else:
                most = max(most, self.model.pending_)
                bars(stage, most - self.model.pending_, most, None)
        self.seconds[POLISH] += time.perf_counter() - start

    def _unread(self, first: DataTable, tables: Iterator[DataTable]) -> Iterator[NDArray[np.float32]]:
        """Yield the rows that the model does not contain yet."""
        known = self.model.n_rows_ if hasattr(self.model, "n_rows_") else 0
        width = first.X.shape[1]
        if known and width != self.model.n_features_in_:
            raise ReadError(
                f"{self.source.path} has {width} features, but the resumed run read {self.model.n_features_in_}"
            )
        table: DataTable | None = first
        while table is not None:
            begin = self.extra.n - len(table.X)
            if self.extra.n > known:
                yield table.X[max(known - begin, 0) :]
            table = next(tables, None)
        if self.extra.n < known:
            raise ReadError(f"{self.source.path} has {self.extra.n} rows, but the resumed run read {known}")

    def _save_state(self, due: bool) -> None:
        since = time.perf_counter() - self._saved
        if self.state is None or not (due or since > max(STATE_S, self._saving / STATE_SHARE)):
            return
        start = time.perf_counter()
        save_model(self.model, self.state)
        self._saved = time.perf_counter()
        self._saving = self._saved - start


def _polish_callback(bars: ProgressBars) -> Any:
    """Return a callback that counts the epochs of the final pass from 0."""
    first: list[int] = []

    def report(stage: str, epoch: int, n_epochs: int, embedding: object) -> bool:
        first.append(epoch)
        return bars(POLISH, epoch - first[0], n_epochs - first[0], None)

    return report
