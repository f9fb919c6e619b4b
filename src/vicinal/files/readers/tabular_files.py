"""Read tabular files (.csv, .tsv, .parquet, .feather and .jsonl) into polars data frames."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from vicinal.files.readers.data_table import ReadError, first_line
from vicinal.files.readers.dialects import Dialect, detect

if TYPE_CHECKING:
    import polars as pl

# Missing values as spreadsheets, R and pandas write them.
NULLS = ["", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None"]


def read_parquet(path: Path) -> pl.DataFrame:
    import polars as pl

    return read_frame(path, "parquet", pl.read_parquet)


def read_feather(path: Path) -> pl.DataFrame:
    import polars as pl

    return read_frame(path, "feather", pl.read_ipc)


def read_jsonl(path: Path) -> pl.DataFrame:
    """Read a file with one JSON object per line."""
    return read_frame(path, "jsonl", _read_jsonl_in_order)


def _read_jsonl_in_order(path: Path) -> pl.DataFrame:
    """Order the columns as in the first line, then the others by name: polars' own order varies between processes."""
    import polars as pl

    # all lines determine the columns and their types
    frame = pl.read_ndjson(path, infer_schema_length=None)
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        first: dict[str, object] = next((json.loads(line) for line in file if line.strip()), {})
    named = [name for name in first if name in frame.columns]
    return frame.select(named + sorted(set(frame.columns) - set(named)))


def read_frame(path: Path, kind: str, reader: Callable[[Path], pl.DataFrame]) -> pl.DataFrame:
    """Call ``reader`` and turn any exception into a ReadError."""
    import polars as pl

    try:
        return reader(path)
    except (Exception, pl.exceptions.PanicException) as error:
        raise ReadError(f"{path} is not a valid {kind} file ({first_line(error)})") from error


def read_delimited(path: Path) -> pl.DataFrame:
    dialect = detect(path)
    if dialect.is_utf8:
        return parse_delimited(path, path, dialect)
    with dialect.open(path) as file:
        return parse_delimited(path, file.read().encode(), dialect)


def parse_delimited(path: Path, source: Path | bytes, dialect: Dialect) -> pl.DataFrame:
    """Parse the lines of a file or, as UTF-8, a part of them with the header."""
    import polars as pl

    try:
        frame = pl.read_csv(
            source,
            separator=dialect.separator,
            decimal_comma=dialect.decimal_comma,
            has_header=dialect.has_header,
            null_values=NULLS,
            # a column is numeric only if every row is, so that all rows must be inspected
            infer_schema_length=None,
        )
    except (Exception, pl.exceptions.PanicException) as error:
        raise ReadError(_ragged_line(path, dialect) or f"{path}: {first_line(error)}") from error
    # polars fills a short row with nulls, which show up in the last column
    if frame.width and frame[:, -1].null_count():
        ragged = _ragged_line(path, dialect)
        if ragged:
            raise ReadError(ragged)
    if not dialect.has_header:
        frame.columns = [str(a) for a in range(frame.width)]
    return _strip_blanks(frame)


def _strip_blanks(frame: pl.DataFrame) -> pl.DataFrame:
    """Remove blanks around values ("1, 2"), which make polars read numbers as text."""
    import polars as pl

    names = [name.strip() for name in frame.columns]
    if len(set(names)) == len(names):
        frame.columns = names
    for name in frame.columns:
        if frame.schema[name] == pl.String:
            text = frame[name].str.strip_chars()
            number = text.cast(pl.Float64, strict=False)
            frame = frame.with_columns(number if number.null_count() == text.null_count() else text)
    return frame


def _ragged_line(path: Path, dialect: Dialect) -> str | None:
    """Describe the first line with more or fewer fields than line 1, or return None."""
    try:
        with dialect.open(path) as file:
            reader = csv.reader(file, delimiter=dialect.separator)
            width = len(next(reader, []))
            for fields in reader:
                if fields and len(fields) != width:
                    line = reader.line_num
                    return f"{path} is ragged: line {line} has {len(fields)} field(s), line 1 has {width}"
    except csv.Error:
        return None
    return None
