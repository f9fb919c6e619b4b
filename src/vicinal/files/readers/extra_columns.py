"""Collect the labels and extra columns of batches while their feature rows are processed and discarded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.files.readers.data_table import DataTable


class ExtraColumns:
    """Labels and extra columns of all batches so far, as if the file had been read at once."""

    def __init__(self) -> None:
        self.n = 0
        self.first: DataTable | None = None  # the column names of the first batch, without its rows
        self._labels: list[NDArray[Any]] = []
        self._columns: dict[str, list[NDArray[Any]]] = {}

    def collect(self, tables: Iterable[DataTable]) -> Iterator[DataTable]:
        """Yield the tables unchanged and keep their labels and extra columns."""
        for table in tables:
            self.append(table)
            yield table

    def append(self, table: DataTable) -> None:
        if self.first is None:
            self.first = DataTable(table.X[:0], table.feature_names, ignored=table.ignored)
        if table.labels is not None:
            self._labels.append(table.labels)
        for name, values in table.extra.items():
            self._columns.setdefault(name, []).append(values)
        self.n += len(table.X)

    def labels(self, n: int) -> NDArray[Any] | None:
        """Return the labels of the first ``n`` rows, or None if there are no labels."""
        return concatenate_column(self._labels)[:n] if self._labels else None

    def columns(self, n: int) -> dict[str, NDArray[Any]]:
        """Return the extra columns of the first ``n`` rows."""
        return {name: concatenate_column(parts)[:n] for name, parts in self._columns.items()}


def concatenate_column(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Join the parts of a column; if one part has text or missing values, the numbers of all parts become text."""
    if all(part.dtype.kind != "O" for part in parts):
        return np.concatenate(parts)
    texts = [None if value is None else str(value) for part in parts for value in part.tolist()]
    return np.array(texts, dtype=object)
