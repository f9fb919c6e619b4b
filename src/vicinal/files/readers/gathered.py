"""Columns that come with the rows of a stream, kept while the rows themselves go their way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.files.readers.table import Table


class Gathered:
    """Labels and columns along with the rows so far, as one file read at once would give them."""

    def __init__(self) -> None:
        self.n = 0
        self.first: Table | None = None  # its names, without its rows
        self._labels: list[NDArray[Any]] = []
        self._along: dict[str, list[NDArray[Any]]] = {}

    def passing(self, tables: Iterable[Table]) -> Iterator[Table]:
        """The same tables, their columns noted."""
        for table in tables:
            self.append(table)
            yield table

    def append(self, table: Table) -> None:
        if self.first is None:
            self.first = Table(table.X[:0], table.feature_names, ignored=table.ignored)
        if table.labels is not None:
            self._labels.append(table.labels)
        for name, values in table.along.items():
            self._along.setdefault(name, []).append(values)
        self.n += len(table.X)

    def labels(self, n: int) -> NDArray[Any] | None:
        """Of the first ``n`` rows, if the file has any."""
        return joined(self._labels)[:n] if self._labels else None

    def along(self, n: int) -> dict[str, NDArray[Any]]:
        return {name: joined(parts)[:n] for name, parts in self._along.items()}


def joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """One column from its parts. Where one of them is text, or has gaps, numbers of the others become text too."""
    if all(part.dtype.kind != "O" for part in parts):
        return np.concatenate(parts)
    texts = [None if value is None else str(value) for part in parts for value in part.tolist()]
    return np.array(texts, dtype=object)
