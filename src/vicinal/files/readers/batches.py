"""Read files in batches, so that only one batch is in memory at a time.

A .npy file is memory-mapped; .csv and .tsv files are parsed in blocks of lines, .parquet and .feather files in blocks
of rows. Other formats are read at once and then split. The first batch determines the feature columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from vicinal.files.readers import array_files, check_file, read_selection, tabular_files
from vicinal.files.readers.data_table import ColumnSelection, DataTable, array_table, frame_table, vector_column
from vicinal.files.readers.dialects import detect
from vicinal.files.readers.local_files import is_local, local_file

if TYPE_CHECKING:
    import polars as pl

# Rows of a columnar file that are decoded at once: its row groups have about 100,000 rows.
COLUMNAR_ROWS = 65_536


def read_batches(
    path: str | Path,
    size: int,
    *,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    extra: Sequence[str] = (),
    array: str | None = None,
    vectors: str | None = None,
    missing: bool = False,
) -> Iterator[DataTable]:
    """Yield the rows of a file, at most ``size`` per table; the other arguments are those of ``read_table``."""
    selection = ColumnSelection(columns, label, tuple(dict.fromkeys(extra)), array, vectors, missing)
    path = Path(path)
    if is_local(path):
        return _batches(path, size, selection)
    return _unpacked_batches(path, size, selection)


def _unpacked_batches(path: Path, size: int, selection: ColumnSelection) -> Iterator[DataTable]:
    with local_file(path) as local:
        yield from _batches(local, size, selection)


def _batches(path: Path, size: int, selection: ColumnSelection) -> Iterator[DataTable]:
    suffix = check_file(path)
    selection.check()
    if selection.array is not None:
        return _split_table(read_selection(path, suffix, selection), size)
    if suffix == ".npy":
        parts = enumerate(split_rows(array_files.map_npy(path), size))
        return (array_table(path, part, {}, selection, number * size) for number, part in parts)
    if suffix in (".csv", ".tsv"):
        return _tables(path, _delimited(path, size), selection)
    if suffix in (".parquet", ".feather"):
        return _tables(path, _columnar(path, suffix, size), selection)
    return _split_table(read_selection(path, suffix, selection), size)


def split_rows(rows: NDArray[Any], size: int) -> Iterator[NDArray[Any]]:
    """Yield consecutive parts of an array, at most ``size`` rows each."""
    return (rows[begin : begin + size] for begin in range(0, rows.shape[0], size))


def _tables(path: Path, parts: Iterator[pl.DataFrame], selection: ColumnSelection) -> Iterator[DataTable]:
    begin = 0
    for frame in parts:
        table = frame_table(path, frame, selection, begin)
        # the feature columns of the first batch must be numeric in every other batch
        if begin == 0:
            vectors = vector_column(path, frame, selection)
            fixed = {"vectors": vectors} if vectors is not None else {"columns": table.feature_names}
            selection = replace(selection, **fixed)
        begin += frame.height
        yield table


def _delimited(path: Path, size: int) -> Iterator[pl.DataFrame]:
    dialect = detect(path)
    with dialect.open(path) as file:
        header = file.readline() if dialect.has_header else ""
        while lines := list(islice(file, size)):
            # a line break within quotes does not end a row
            while sum(line.count('"') for line in lines) % 2 and (more := file.readline()):
                lines.append(more)
            yield tabular_files.parse_delimited(path, "".join([header, *lines]).encode(), dialect)


def _columnar(path: Path, suffix: str, size: int) -> Iterator[pl.DataFrame]:
    import polars as pl

    scan = pl.scan_parquet if suffix == ".parquet" else pl.scan_ipc
    together = max(size, COLUMNAR_ROWS // size * size)

    def read(begin: int) -> pl.DataFrame:
        return tabular_files.read_frame(path, suffix[1:], lambda name: scan(name).slice(begin, together).collect())

    for begin in count(0, together):
        part = read(begin)
        yield from part.iter_slices(size)
        if part.height < together:
            return


def _split_table(table: DataTable, size: int) -> Iterator[DataTable]:
    for begin in range(0, len(table.X), size):
        part = slice(begin, begin + size)
        yield DataTable(
            table.X[part],
            table.feature_names,
            None if table.labels is None else table.labels[part],
            {name: values[part] for name, values in table.extra.items()},
            table.ignored,
            None if table.row_names is None else table.row_names[part],
        )
