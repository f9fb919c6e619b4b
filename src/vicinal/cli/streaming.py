"""A file read batch by batch into a map that grows, with bars."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vicinal.cli.bars import Bars, one_line_warnings, stage_bars
from vicinal.cli.embedding import Embedded, interruptible, measure
from vicinal.cli.targets import Beside, save_model
from vicinal.files.readers.gathered import Gathered
from vicinal.files.readers.table import ReadError, Table
from vicinal.files.streams import POLISH, READ, grow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The state is written at most this often, and at most this share of the time is spent on it.
STATE_S, STATE_SHARE = 60.0, 0.1


@dataclass(frozen=True)
class Reading:
    """A file and how it is read; ``columns`` are what the readers are told."""

    path: Path
    size: int
    columns: dict[str, Any]
    ids: str | None = None

    def tables(self) -> Iterator[Table]:
        from vicinal.files.readers.batches import read_batches

        tables = read_batches(self.path, self.size, **self.columns)
        first = next(tables, None)
        if first is None:
            raise ReadError(f"{self.path} has no rows")
        yield first
        yield from tables

    def total(self) -> int | None:
        from vicinal.files.readers.sizes import row_count

        return row_count(self.path)

    def beside(self, gathered: Gathered, n: int) -> Beside:
        return Beside(gathered.labels(n), gathered.along(n), self.columns["label"], self.ids)


class Streaming:
    """One run of a file through a model, which may know the first rows already."""

    def __init__(self, reading: Reading, model: Any, state: Path | None = None) -> None:
        self.reading, self.model, self.state = reading, model, state
        self.gathered = Gathered()
        self.seconds: dict[str, float] = {}
        self._saved = time.perf_counter()
        self._saving = 0.0

    @property
    def n_placed(self) -> int:
        return len(self.model.age_) if hasattr(self.model, "embedding_") else 0

    def run(self, *, measured: bool, quiet: bool) -> Embedded:
        """Ctrl-C ends it where the model can go on later, and keeps the places there are."""
        with stage_bars(quiet) as bars, one_line_warnings(quiet):
            # what is wrong with the file is to be said before anything is counted or drawn
            tables = self.gathered.passing(self.reading.tables())
            first = next(tables)
            with interruptible(bars, lambda: self.n_placed > 0):
                self._grow(self._unknown(first, tables), bars)
            n = self.n_placed
            labels = self.gathered.labels(n)
            found = None
            if measured:
                found = measure(self.model.rows_[:n], self.model, labels, bars, self.seconds)
        return Embedded(self.model.embedding_, self.seconds, found, bars.stopped, self.model)

    def _grow(self, rows: Iterator[NDArray[np.float32]], bars: Bars) -> None:
        total, start, most = self.reading.total(), time.perf_counter(), 0
        for stage in grow(self.model, rows):
            now = time.perf_counter()
            self.seconds[stage] = self.seconds.get(stage, 0.0) + now - start
            start = now
            self._keep_state(due=bars.stopped or stage == POLISH)
            if bars.stopped:
                return
            if stage == READ:
                bars(READ, self.gathered.n, total or 0, None)
            elif stage == POLISH:
                self.model.set_params(callback=_polishing(bars))
            else:
                most = max(most, self.model.pending_)
                bars(stage, most - self.model.pending_, most, None)
        self.seconds[POLISH] += time.perf_counter() - start

    def _unknown(self, first: Table, tables: Iterator[Table]) -> Iterator[NDArray[np.float32]]:
        """Rows that the model does not know yet."""
        known = self.model.n_rows_ if hasattr(self.model, "n_rows_") else 0
        width = first.X.shape[1]
        if known and width != self.model.n_features_in_:
            raise ReadError(
                f"{self.reading.path} has {width} features, but {self.model.n_features_in_} were read before"
            )
        table: Table | None = first
        while table is not None:
            begin = self.gathered.n - len(table.X)
            if self.gathered.n > known:
                yield table.X[max(known - begin, 0) :]
            table = next(tables, None)
        if self.gathered.n < known:
            raise ReadError(f"{self.reading.path} has {self.gathered.n} rows, but {known} of them were read before")

    def _keep_state(self, due: bool) -> None:
        since = time.perf_counter() - self._saved
        if self.state is None or not (due or since > max(STATE_S, self._saving / STATE_SHARE)):
            return
        start = time.perf_counter()
        save_model(self.model, self.state)
        self._saved = time.perf_counter()
        self._saving = self._saved - start


def _polishing(bars: Bars) -> Any:
    """The estimator's callback while it polishes: epochs from where these begin."""
    first: list[int] = []

    def told(stage: str, epoch: int, n_epochs: int, embedding: object) -> bool:
        first.append(epoch)
        return bars(POLISH, epoch - first[0], n_epochs - first[0], None)

    return told
