"""Read tabular files (.csv, .tsv, .parquet, .feather, .jsonl, .xlsx and .ods) into polars data frames."""

from __future__ import annotations

import codecs
import csv
import functools
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from vicinal.files.data_table import ReadError, first_line, listed
from vicinal.files.number_texts import DETECTED, NULLS, FileFormat

if TYPE_CHECKING:
    import polars as pl


Found = TypeVar("Found")

# Separators that are tried if the first line does not contain that of the suffix.
SEPARATORS = (",", "\t", ";", "|")
PREFERRED = {".csv": ",", ".tsv": "\t"}
# Byte order marks; UTF-32 is not used for tables.
MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
# Bytes that are inspected to detect the encoding.
SAMPLE = 2**20
# Lines that are inspected to detect the separator.
LINES = 20


def _naming_long_fields(read: Callable[..., Found]) -> Callable[..., Found]:
    """Make a function that reads the first lines of a file refuse fields that no table has, in one sentence."""

    @functools.wraps(read)
    def wrapped(path: Path, *args: Any, **kwargs: Any) -> Found:
        try:
            return read(path, *args, **kwargs)
        except csv.Error as error:
            limit = csv.field_size_limit()
            raise ReadError(
                f"{path}: a field of the first {LINES} lines has more than {limit:,} characters; is a quote not closed?"
            ) from error

    return wrapped


@dataclass(frozen=True)
class Dialect:
    """How a delimited file is written."""

    separator: str
    encoding: str = "utf-8-sig"
    has_header: bool = True

    def open(self, path: Path) -> TextIO:
        """Open the file as text without translating line ends."""
        return path.open(encoding=self.encoding, errors="replace", newline="")


@_naming_long_fields
def detect(path: Path, form: FileFormat = DETECTED) -> Dialect:
    """Return the dialect of a file, with what ``form`` says about it; raise if it is binary."""
    with path.open("rb") as file:
        sample = file.read(SAMPLE)
    encoding = _given_encoding(form.encoding) if form.encoding else _encoding(path, sample)
    text = sample.decode(encoding, errors="replace")
    lines = text.splitlines()[: LINES + 1]
    # the sample may end within a line, and a line within a quoted field
    lines = lines[:LINES] if len(lines) > LINES or len(sample) < SAMPLE else lines[:-1] or lines
    while len(lines) > 1 and sum(line.count('"') for line in lines) % 2:
        lines.pop()
    separator = form.separator or _separator(path, lines, PREFERRED.get(path.suffix.lower(), ","))
    return Dialect(separator, encoding, has_header(next(csv.reader(lines, delimiter=separator), [])))


def _given_encoding(name: str) -> str:
    try:
        known = codecs.lookup(name).name
    except LookupError as error:
        raise ReadError(f"--encoding {name} is not known; utf-8, latin-1, cp1252 and utf-16 are usual") from error
    return "utf-8-sig" if known == "utf-8" else known


def _encoding(path: Path, sample: bytes) -> str:
    for mark, name in MARKS.items():
        if sample.startswith(mark):
            return name
    if b"\0" in sample:
        raise ReadError(f"{path} contains binary data, not text; if it is text, name its --encoding, such as utf-16-le")
    try:
        # the sample may end within a character
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        # every byte is a character of Latin-1; Windows' code page differs from it in quotes and dashes only
        return "cp1252" if not any(byte in sample for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)) else "latin-1"
    return "utf-8-sig"


def _separator(path: Path, lines: list[str], preferred: str) -> str:
    """Return the separator that gives all lines equally many fields; of several, that with the most numbers."""
    header = _unquoted(lines[0]) if lines else ""
    if [one for one in SEPARATORS if one in header] == [preferred]:
        return preferred
    fields = {one: [found for found in csv.reader(lines, delimiter=one) if found] for one in SEPARATORS}
    widths = {one: {len(row) for row in rows} for one, rows in fields.items()}
    usable = [one for one in SEPARATORS if len(widths[one]) == 1 and max(widths[one]) > 1]
    if not usable:
        return preferred
    # within names a comma is followed by a blank
    likely = {one: (_share_of_numbers(fields[one][1:]), f"{one} " not in header) for one in usable}
    best = [one for one in usable if likely[one] == max(likely.values())]
    if len(best) > 1:
        marks = listed(["tab" if one == "\t" else one for one in best])
        raise ReadError(f"{path} may be separated by any of {marks}: choose one with --separator")
    return best[0]


def _share_of_numbers(rows: list[list[str]]) -> float:
    fields = [field for row in rows for field in row]
    return sum(_is_number(field.replace(",", ".", 1)) for field in fields) / max(1, len(fields))


def _unquoted(line: str) -> str:
    return "".join(part for a, part in enumerate(line.split('"')) if a % 2 == 0)


def has_header(fields: list[str]) -> bool:
    """Return whether the first line has column names: it does unless all its fields are numbers.

    Numbers that count up from 0 or 1 are names too: pandas writes them for a frame without column names.
    """
    if fields in ([str(a) for a in range(len(fields))], [str(a + 1) for a in range(len(fields))]):
        return len(fields) > 1
    return not fields or not all(_is_number(field.replace(",", ".", 1)) for field in fields)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def read_columnar(path: Path, form: FileFormat = DETECTED) -> pl.DataFrame:
    """Read a .parquet or .feather file; its format says all that ``form`` could."""
    import polars as pl

    kind = path.suffix.lower()[1:]
    return read_frame(path, kind, pl.read_parquet if kind == "parquet" else pl.read_ipc)


def query_columnar(path: Path, query: Callable[[pl.LazyFrame], pl.LazyFrame]) -> pl.DataFrame:
    """Read the answer to a query from a .parquet or .feather file."""
    import polars as pl

    kind = path.suffix.lower()[1:]
    scan = pl.scan_parquet if kind == "parquet" else pl.scan_ipc
    return read_frame(path, kind, lambda name: query(scan(name)).collect())


def read_jsonl(path: Path, form: FileFormat = DETECTED) -> pl.DataFrame:
    """Read a file with one JSON object per line.

    The columns are ordered as in the first line, then by name: polars' own order varies between processes.
    """
    import polars as pl

    def read(path: Path) -> pl.DataFrame:
        # all lines determine the columns and their types
        frame = pl.read_ndjson(path, infer_schema_length=None)
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            first: dict[str, object] = next((json.loads(line) for line in file if line.strip()), {})
        named = [name for name in first if name in frame.columns]
        return frame.select(named + sorted(set(frame.columns) - set(named)))

    return read_frame(path, "jsonl", read)


def read_frame(path: Path, kind: str, reader: Callable[[Path], Found]) -> Found:
    """Call ``reader`` and turn any exception into a ReadError."""
    import polars as pl

    try:
        return reader(path)
    except ReadError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        raise ReadError(f"{path} is not a valid {kind} file ({first_line(error)})") from error


def read_delimited(path: Path, form: FileFormat = DETECTED) -> pl.DataFrame:
    dialect = detect(path, form)
    if dialect.encoding == "utf-8-sig":
        return parse_delimited(path, path, dialect, form)
    with dialect.open(path) as file:
        return parse_delimited(path, file.read().encode(), dialect, form)


def parse_delimited(path: Path, source: Path | bytes, dialect: Dialect, form: FileFormat) -> pl.DataFrame:
    """Parse the lines of a file or, as UTF-8, a part of them with the header, into columns of texts."""
    import polars as pl

    try:
        frame = pl.read_csv(
            source,
            separator=dialect.separator,
            has_header=dialect.has_header,
            null_values=[*NULLS, *form.na],
            infer_schema=False,
        )
    except (Exception, pl.exceptions.PanicException) as error:
        raise ReadError(_ragged_line(path, dialect) or f"{path}: {first_line(error)}") from error
    # polars fills a short row with nulls, which show up in the last column
    if frame.width and frame[:, -1].null_count() and (ragged := _ragged_line(path, dialect)):
        raise ReadError(ragged)
    if not dialect.has_header:
        frame.columns = [str(a) for a in range(frame.width)]
    names = [name.strip() for name in frame.columns]
    if len(set(names)) == len(names):
        frame.columns = names
    return frame


def read_sheet(path: Path, form: FileFormat = DETECTED) -> pl.DataFrame:
    """Read a sheet of an .xlsx or .ods workbook: the named one, or the only one that is not empty."""
    try:
        import fastexcel
    except ModuleNotFoundError as error:
        raise ReadError(f"{path} needs fastexcel: pip install fastexcel") from error
    import polars as pl

    # its warnings about columns without values would be printed
    logging.getLogger("fastexcel").addHandler(logging.NullHandler())

    def read(path: Path) -> dict[str, Any]:
        names = fastexcel.read_excel(path).sheet_names
        if form.sheet is not None and form.sheet not in names:
            raise ReadError(f"{path} has no sheet {form.sheet!r}; it has {listed(names)}")
        reader: Any = pl.read_ods if path.suffix.lower() == ".ods" else pl.read_excel
        wanted = names if form.sheet is None else [form.sheet]
        return {name: reader(path, sheet_name=name, infer_schema_length=None, raise_if_empty=False) for name in wanted}

    sheets = read_frame(path, path.suffix.lower()[1:], read)
    filled = {name: sheet for name, sheet in sheets.items() if sheet.height}
    if len(filled) > 1:
        raise ReadError(f"{path} has several sheets; choose one with --sheet: {listed(list(filled))}")
    frame: pl.DataFrame = next(iter((filled or sheets).values()))
    # the reader names columns without a header
    frame.columns = ["" if name.startswith("__UNNAMED__") and a == 0 else name for a, name in enumerate(frame.columns)]
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
