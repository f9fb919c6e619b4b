"""Read tabular files (.csv, .tsv, .parquet, .feather and .jsonl) into polars data frames."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from vicinal.files.readers.data_table import ReadError, first_line

if TYPE_CHECKING:
    import polars as pl

SEPARATORS = {".csv": ",", ".tsv": "\t"}
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
    separator = SEPARATORS[path.suffix.lower()]
    return parse_delimited(path, path, separator, has_header(path, separator))


def parse_delimited(path: Path, source: Path | bytes, separator: str, has_names: bool) -> pl.DataFrame:
    """Parse the lines of a file or a part of them; ``has_names`` says whether the first line has the column names."""
    import polars as pl

    try:
        frame = pl.read_csv(
            source,
            separator=separator,
            has_header=has_names,
            null_values=NULLS,
            # a column is numeric only if every row is, so that all rows must be inspected
            infer_schema_length=None,
        )
    except (Exception, pl.exceptions.PanicException) as error:
        raise ReadError(_ragged_line(path, separator) or f"{path}: {first_line(error)}") from error
    # polars fills a short row with nulls, which show up in the last column
    if frame.width and frame[:, -1].null_count():
        ragged = _ragged_line(path, separator)
        if ragged:
            raise ReadError(ragged)
    if not has_names:
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


def has_header(path: Path, separator: str) -> bool:
    """Return whether the first line has column names: it does unless all its fields are numbers.

    Numbers that count up from 0 or 1 are names too: pandas writes them for a frame without column names.
    """
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        fields = next(csv.reader(file, delimiter=separator), [])
    if fields in ([str(a) for a in range(len(fields))], [str(a + 1) for a in range(len(fields))]):
        return len(fields) > 1
    return not fields or not all(_is_number(field) for field in fields)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _ragged_line(path: Path, separator: str) -> str | None:
    """Describe the first line with more or fewer fields than line 1, or return None."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            reader = csv.reader(file, delimiter=separator)
            width = len(next(reader, []))
            for fields in reader:
                if fields and len(fields) != width:
                    line = reader.line_num
                    return f"{path} is ragged: line {line} has {len(fields)} field(s), line 1 has {width}"
    except csv.Error:
        return None
    return None
