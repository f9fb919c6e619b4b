"""Read files in batches, and fit a progressive model to them so that a caller can report, save or stop in between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from operator import methodcaller
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.files import array_files, tabular_files
from vicinal.files.data_table import Column, ColumnChoice, DataTable, array_table
from vicinal.files.frame_table import Plan
from vicinal.files.number_texts import FileFormat
from vicinal.files.readers import DEFAULT_CHOICE, check_file, is_local, local_file, read_chosen
from vicinal.files.tabular_files import Dialect, detect
from vicinal.runtime.inputs import NamedRows, as_array, named_batches, reads_arrow

if TYPE_CHECKING:
    import polars as pl


def join_columns(batches: Sequence[Sequence[Column]], n: int) -> list[Column]:
    """Join the columns of consecutive batches of a file, as if it had been read at once, and return ``n`` rows."""
    joined = []
    for parts in zip(*batches, strict=True):
        values = [part.values for part in parts if part.values is not None]
        joined.append(replace(parts[0], values=concatenate_column(values)[:n] if values else None))
    return joined


def concatenate_column(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Join the parts of a column; if one part has text or missing values, the numbers of all parts become text."""
    if all(part.dtype.kind != "O" for part in parts):
        return np.concatenate(parts)
    texts = [None if value is None else str(value) for part in parts for value in part.tolist()]
    return np.array(texts, dtype=object)


# Rows of a columnar file that are decoded at once: its row groups have about 100,000 rows.
COLUMNAR_ROWS = 65_536


def read_batches(path: str | Path, size: int, choice: ColumnChoice = DEFAULT_CHOICE) -> Iterator[DataTable]:
    """Yield the chosen columns of a file, at most ``size`` rows per table."""
    path, choice = Path(path), replace(choice, whole=False)
    return _batches(path, size, choice) if is_local(path) else _unpacked_batches(path, size, choice)


def _unpacked_batches(path: Path, size: int, choice: ColumnChoice) -> Iterator[DataTable]:
    with local_file(path, streamed=True) as local:
        yield from _batches(local, size, choice)


def _batches(path: Path, size: int, choice: ColumnChoice) -> Iterator[DataTable]:
    suffix = check_file(path)
    choice.check()
    if suffix == ".npy" and choice.array is None:
        parts = enumerate(split_rows(array_files.map_npy(path), size))
        return (array_table(path, part, {}, choice, number * size) for number, part in parts)
    if suffix in (".csv", ".tsv") and choice.array is None:
        dialect = detect(path, choice.form)
        form = replace(choice.form, separator=dialect.separator, encoding=dialect.encoding, skip=dialect.skip)
        return _tables(path, _delimited(path, size, dialect, form), replace(choice, form=form))
    if suffix in (".parquet", ".feather") and choice.array is None:
        return _tables(path, _columnar(path, size), choice)
    table = read_chosen(path, choice)
    return (table.part(slice(begin, begin + size)) for begin in range(0, len(table.X), size))


def split_rows(rows: NDArray[Any], size: int) -> Iterator[NDArray[Any]]:
    """Yield consecutive parts of an array, at most ``size`` rows each."""
    return (rows[begin : begin + size] for begin in range(0, rows.shape[0], size))


def _tables(path: Path, parts: Iterator[pl.DataFrame], choice: ColumnChoice) -> Iterator[DataTable]:
    begin = 0
    for frame in parts:
        plan = Plan.of(path, frame, choice)
        plan.require_features()
        table = plan.table(begin)
        # the feature columns of the first batch must be numeric in every other batch, and are read in the same way
        if begin == 0:
            form = replace(choice.form, decimal=choice.form.given_decimal or plan.decimal)
            choice = replace(choice.of_table(table), form=form)
        begin += frame.height
        yield table


def _delimited(path: Path, size: int, dialect: Dialect, form: FileFormat) -> Iterator[pl.DataFrame]:
    lines = dialect.lines(path)
    header = next(lines, "") if dialect.has_header else ""
    while part := list(islice(lines, size)):
        yield tabular_files.parse_delimited(path, "".join([header, *part]).encode(), dialect, form)


def _columnar(path: Path, size: int) -> Iterator[pl.DataFrame]:
    together = max(size, COLUMNAR_ROWS // size * size)
    for begin in count(0, together):
        part = tabular_files.query_columnar(path, methodcaller("slice", begin, together))
        yield from part.iter_slices(size)
        if part.height < together:
            return


Batch = tuple[Any, NDArray[Any] | None]


def batches(source: Any, size: int = 1000, y: Any = None, **reading: Any) -> Iterator[Batch]:
    """Yield pairs (rows, labels), with labels None if there are none.

    Of a memory map and of most file formats (:mod:`vicinal.files.batches`), only one batch is in memory at a
    time.

    Parameters
    ----------
    source : array, sparse matrix, Arrow data, path or iterable
        An array, memory map or sparse matrix; a table, query or reader that offers Arrow data; the path of a file; or
        an iterable of arrays or of pairs (rows, labels).
    size : int, default=1000
        Maximum number of rows per batch.
    y : array-like, optional
        Labels of all rows, if ``source`` is an array.
    **reading
        How to read a file: parameters of :class:`vicinal.files.data_table.ColumnChoice`.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    if isinstance(source, str | PathLike):
        if y is not None:
            raise ValueError("y cannot be given with a file; use label= to name the column of labels")
        return ((table.X, table.labels) for table in read_batches(Path(source), size, ColumnChoice(**reading)))
    if reading:
        raise TypeError(f"{sorted(reading)} apply only to files, but source is a {type(source).__name__}")
    if isinstance(source, np.ndarray) or hasattr(source, "tocsr"):
        return _split(source, y, size)
    if reads_arrow(source) and y is None:
        return (batch for named in named_batches(source, size, "source") for batch in _split(named, None, size))
    if y is not None:
        raise ValueError("y can be given only with an array; an iterable must yield pairs (rows, labels)")
    items = (item if isinstance(item, tuple) else (item, None) for item in source)
    return (batch for rows, labels in items for batch in _split(rows, labels, size))


def _split(given: Any, y: Any, size: int) -> Iterator[Batch]:
    """Yield the parts of an array or a sparse matrix with their labels."""
    if isinstance(given, NamedRows):
        parts = split_rows(given.rows, size)
        return ((NamedRows(part, given.names), None) for part in parts)
    rows = given.tocsr() if hasattr(given, "tocsr") else as_array(given, "source")
    if y is None:
        return ((part, None) for part in split_rows(rows, size))
    labels = np.asarray(y)
    if len(labels) != rows.shape[0]:
        raise ValueError(f"y must have one label for each of the {rows.shape[0]} rows of source, got {len(labels)}")
    return zip(split_rows(rows, size), split_rows(labels, size), strict=True)


READ, REST, POLISH = "read", "rest", "polish"


def fit_in_pieces(model: Any, batches: Iterable[NDArray[Any]]) -> Iterator[str]:
    """Do the same as ``model.fit`` in pieces and yield the name of the stage after each piece.

    Yields READ after each batch, REST after each round of the remaining work, and POLISH once, before the final pass.
    A model that is saved at a yield and continued with the following batches ends with the same bits.
    """
    for batch in batches:
        model.partial_fit(batch)
        yield READ
    while model.pending_:
        model.step()
        yield REST
    yield POLISH
    model.polish()
