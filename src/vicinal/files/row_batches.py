"""Yield rows in batches from arrays, memory maps, files larger than memory, or iterables of arrays.

::

    for X, y in batches("rows.parquet", 1000, label="class"):
        model.partial_fit(X, y)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.files.readers.batches import read_batches, split_rows

Batch = tuple[NDArray[Any], NDArray[Any] | None]


def batches(source: Any, size: int = 1000, y: Any = None, **reading: Any) -> Iterator[Batch]:
    """Yield pairs (rows, labels), with labels None if there are none.

    Of a memory map and of most file formats (:mod:`vicinal.files.readers.batches`), only one batch is in memory at a
    time.

    Parameters
    ----------
    source : array, sparse matrix, path or iterable
        An array, memory map or sparse matrix; the path of a file; or an iterable of those or of pairs (rows, labels).
    size : int, default=1000
        Maximum number of rows per batch.
    y : array-like, optional
        Labels of all rows, if ``source`` is an array.
    **reading
        How to read a file: ``columns``, ``label`` and ``array`` of :func:`vicinal.files.readers.read_table`.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    if isinstance(source, str | PathLike):
        if y is not None:
            raise ValueError("y cannot be given with a file; use label= to name the column of labels")
        return ((table.X, table.labels) for table in read_batches(Path(source), size, **reading))
    if reading:
        raise TypeError(f"{sorted(reading)} apply only to files, but source is a {type(source).__name__}")
    if isinstance(source, np.ndarray) or hasattr(source, "tocsr"):
        return _split(source.tocsr() if hasattr(source, "tocsr") else source, y, size)
    if y is not None:
        raise ValueError("y can be given only with an array; an iterable must yield pairs (rows, labels)")
    return _split_all(source, size)


def _split(rows: NDArray[Any], y: Any, size: int) -> Iterator[Batch]:
    if y is None:
        return ((part, None) for part in split_rows(rows, size))
    labels = np.asarray(y)
    if len(labels) != rows.shape[0]:
        raise ValueError(f"y must have one label for each of the {rows.shape[0]} rows of source, got {len(labels)}")
    return zip(split_rows(rows, size), split_rows(labels, size), strict=True)


def _split_all(source: Iterable[Any], size: int) -> Iterator[Batch]:
    for item in source:
        rows, labels = item if isinstance(item, tuple) else (item, None)
        yield from _split(rows.tocsr() if hasattr(rows, "tocsr") else np.asarray(rows), labels, size)
