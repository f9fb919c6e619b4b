"""Where rows come from a batch at a time: arrays, memory maps, files larger than memory, anything that yields arrays.

>>> for X, y in batches("rows.parquet", 1000, label="class"):
...     model.partial_fit(X, y)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.files.readers.batches import cut, read_batches

Batch = tuple[NDArray[Any], NDArray[Any] | None]


def batches(source: Any, size: int = 1000, y: Any = None, **reading: Any) -> Iterator[Batch]:
    """(rows, labels or None), at most ``size`` rows at a time.

    ``source`` is an array or a memory map, with labels ``y`` for all of its rows or without; the path of a file, read
    as ``reading`` says (``columns``, ``label``, ``array``, as in ``vicinal.files.readers.read_table``); or an iterable of
    arrays or of (array, labels). Of a memory map and of most files (:mod:`vicinal.files.readers.batches`) no more than a
    batch is in memory at a time.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    if isinstance(source, str | PathLike):
        if y is not None:
            raise ValueError("y does not go with a file: label names the column that holds the classes")
        return ((table.X, table.labels) for table in read_batches(Path(source), size, **reading))
    if reading:
        raise TypeError(f"{sorted(reading)} are for files, but source is {type(source).__name__}")
    if isinstance(source, np.ndarray):
        return _cut(source, y, size)
    if y is not None:
        raise ValueError("y goes with an array: an iterable yields (rows, labels) itself")
    return _flattened(source, size)


def _cut(rows: NDArray[Any], y: Any, size: int) -> Iterator[Batch]:
    if y is None:
        return ((part, None) for part in cut(rows, size))
    labels = np.asarray(y)
    if len(labels) != len(rows):
        raise ValueError(f"y must have {len(rows)} rows as source has, got {len(labels)}")
    return zip(cut(rows, size), cut(labels, size), strict=True)


def _flattened(source: Iterable[Any], size: int) -> Iterator[Batch]:
    for item in source:
        rows, labels = item if isinstance(item, tuple) else (item, None)
        yield from _cut(np.asarray(rows), labels, size)


READ, REST, POLISH = "read", "rest", "polish"


def grow(model: Any, rows: Iterable[NDArray[Any]]) -> Iterator[str]:
    """What ``fit`` of a progressive model does, in pieces: every batch, then until all is at rest, then the last pass.

    Yields READ after each batch, REST after each round of those left, and POLISH once, before the last pass. A model
    that is saved where this yields and goes on with the rows that follow ends with the same bits.
    """
    for batch in rows:
        model.partial_fit(batch)
        yield READ
    while model.pending_:
        model.step()
        yield REST
    yield POLISH
    model.polish()
