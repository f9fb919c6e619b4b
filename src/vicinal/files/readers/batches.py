"""Files read a batch at a time, so that no more than that is ever in memory.

A .npy file is mapped, not loaded; .csv and .tsv are parsed some lines at a time, .parquet and .feather read some rows
at a time. Other files are read at once and then cut. The first batch decides which columns are features.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from vicinal.files.readers import arrays, check_file, frames, read_wanted
from vicinal.files.readers.table import Table, Wanted, array_table, frame_table

if TYPE_CHECKING:
    import polars as pl

# Rows of a columnar file that are decoded together: its row groups are some 100,000 rows long.
COLUMNAR_ROWS = 65_536


def read_batches(
    path: str | Path,
    size: int,
    *,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    along: Sequence[str] = (),
    array: str | None = None,
) -> Iterator[Table]:
    """The rows of a file, at most ``size`` at a time; the other arguments are those of ``read_table``."""
    path = Path(path)
    wanted = Wanted(columns, label, tuple(dict.fromkeys(along)), array)
    suffix = check_file(path)
    wanted.check()
    if array is not None:
        return _cut_table(read_wanted(path, suffix, wanted), size)
    if suffix == ".npy":
        parts = enumerate(cut(arrays.map_npy(path), size))
        return (array_table(path, part, {}, wanted, number * size) for number, part in parts)
    if suffix in (".csv", ".tsv"):
        return _tables(path, _delimited(path, size), wanted)
    if suffix in (".parquet", ".feather"):
        return _tables(path, _columnar(path, suffix, size), wanted)
    return _cut_table(read_wanted(path, suffix, wanted), size)


def cut(rows: NDArray[Any], size: int) -> Iterator[NDArray[Any]]:
    """Consecutive parts of an array."""
    return (rows[begin : begin + size] for begin in range(0, len(rows), size))


def _tables(path: Path, parts: Iterator[pl.DataFrame], wanted: Wanted) -> Iterator[Table]:
    begin = 0
    for frame in parts:
        table = frame_table(path, frame, wanted, begin)
        # What is a number in the first batch has to be one in every other.
        wanted = Wanted(table.feature_names, wanted.label, wanted.along, wanted.array)
        begin += frame.height
        yield table


def _delimited(path: Path, size: int) -> Iterator[pl.DataFrame]:
    separator = frames.SEPARATORS[path.suffix.lower()]
    has_header = frames.has_header(path, separator)
    with path.open("rb") as file:
        header = file.readline() if has_header else b""
        while lines := list(islice(file, size)):
            # A line break within quotes ends no row.
            while sum(line.count(b'"') for line in lines) % 2 and (more := file.readline()):
                lines.append(more)
            text = b"".join([header, *lines])
            yield frames.parse_delimited(path, text, separator, has_header)


def _columnar(path: Path, suffix: str, size: int) -> Iterator[pl.DataFrame]:
    import polars as pl

    scan = pl.scan_parquet if suffix == ".parquet" else pl.scan_ipc
    together = max(size, COLUMNAR_ROWS // size * size)

    def read(begin: int) -> pl.DataFrame:
        return frames.read_frame(path, suffix[1:], lambda name: scan(name).slice(begin, together).collect())

    for begin in count(0, together):
        part = read(begin)
        yield from part.iter_slices(size)
        if part.height < together:
            return


def _cut_table(table: Table, size: int) -> Iterator[Table]:
    for begin in range(0, len(table.X), size):
        part = slice(begin, begin + size)
        yield Table(
            table.X[part],
            table.feature_names,
            None if table.labels is None else table.labels[part],
            {name: values[part] for name, values in table.along.items()},
            table.ignored,
        )
