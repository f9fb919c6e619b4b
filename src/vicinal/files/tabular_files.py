"""Read tabular files (.csv, .tsv, .parquet, .feather, .jsonl, .xlsx and .ods) into polars data frames."""

from __future__ import annotations

import codecs
import csv
import functools
import glob
import io
import json
import logging
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from vicinal.files.data_table import ReadError, first_line, listed, refusing
from vicinal.files.number_texts import BLANKS, DETECTED, NULLS, FileFormat
from vicinal.files.stray_lines import UNNAMED, lines_after, require_names, require_titles, span

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
RAGGED = " is ragged: "
# Lines at the end of a file that may be notes.
MOST_NOTES = 20
# Excel understands a first line that states the separator.
STATED_SEPARATOR = re.compile(r'"?sep=(.)"?\s*')


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
    """How a delimited file is written; ``skip`` has the numbers of lines that are no rows."""

    separator: str
    encoding: str = "utf-8-sig"
    has_header: bool = True
    skip: tuple[int, ...] = ()

    def open(self, path: Path) -> TextIO:
        """Open the file as text without translating line ends."""
        return path.open(encoding=self.encoding, errors="replace", newline="")

    def lines(self, path: Path) -> Iterator[str]:
        """Yield the header and the rows of a file; a line with nothing but separators is no row of several columns."""
        with self.open(path) as file:
            lines = (line for _, line in kept_lines(whole_lines(file), self.skip))
            first = next(lines, "")
            yield first
            nothing = f'{self.separator} "\r\n' if self.separator in first else ""
            yield from (line for line in lines if not nothing or line.strip(nothing))

    def text(self, path: Path) -> bytes:
        """Return the header and the rows as UTF-8; lines of old Macs end as those of others."""
        ends = ((line[:-1], "\n") if line.endswith("\r") else (line,) for line in self.lines(path))
        return "".join(part for parts in ends for part in parts).encode()


def whole_lines(lines: Iterable[str]) -> Iterator[str]:
    """Join lines that a line break within quotes divides."""
    parts: list[str] = []
    quoted = False
    for line in lines:
        parts.append(line)
        quoted ^= bool(line.count('"') % 2)
        if not quoted:
            yield "".join(parts)
            parts.clear()
    if parts:
        yield "".join(parts)


def kept_lines(lines: Iterable[Found], skip: Sequence[int]) -> Iterator[tuple[int, Found]]:
    """Yield lines that are not skipped with their numbers, from 1; empty lines at the end have no negative number."""
    last = -min((*skip, 0))
    held: deque[tuple[int, Found]] = deque()
    for number, line in enumerate(lines, 1):
        if last and isinstance(line, str) and not line.strip():
            continue
        held.append((number, line))
        if len(held) > last and (first := held.popleft())[0] not in skip:
            yield first
    for left, one in zip(range(len(held), 0, -1), held, strict=True):
        if one[0] not in skip and -left not in skip:
            yield one


@_naming_long_fields
def detect(path: Path, form: FileFormat = DETECTED) -> Dialect:
    """Return the dialect of a file, with what ``form`` says about it; raise if it is binary."""
    with path.open("rb") as file:
        sample = file.read(SAMPLE)
    encoding = _given_encoding(form.encoding) if form.encoding else _encoding(path, sample)
    text = sample.decode(encoding, errors="replace")
    first = list(islice(whole_lines(io.StringIO(text, newline="")), LINES + 1 + max((*form.skip, 0))))
    # the sample may end within a line
    if len(sample) == SAMPLE and len(first) > 1 and len("".join(first)) == len(text):
        first.pop()
    skip, separator = list(form.skip), form.separator
    lines = list(kept_lines(first, [number for number in skip if number > 0]))
    while lines and not lines[0][1].strip():
        skip.append(lines.pop(0)[0])
    if lines and (stated := STATED_SEPARATOR.fullmatch(lines[0][1])):
        skip.append(lines.pop(0)[0])
        separator = separator or stated[1]
    rows = [line for _, line in lines[:LINES]]
    separator = separator or _separator(path, rows, PREFERRED.get(path.suffix.lower(), ","))
    fields = _fields(rows, separator)
    first_row = next(fields, [])
    names = has_header(first_row) if form.header is None else form.header
    if form.header is None and names:
        require_names(path, first_row, fields)
    return Dialect(separator, encoding, names, tuple(skip))


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
        # bytes that Windows' code page does not have are no letters of Latin-1 either
        if any(byte in sample for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)):
            raise ReadError(
                f"{path} is neither UTF-8 nor of Windows' code page cp1252: name its --encoding, such as mac-roman, "
                "cp850 or shift_jis"
            ) from None
        return "cp1252"
    return "utf-8-sig"


def _separator(path: Path, lines: list[str], preferred: str) -> str:
    """Return the separator that gives all lines equally many fields; of several, that with the most numbers."""
    header = _unquoted(lines[0]) if lines else ""
    if [one for one in SEPARATORS if one in header] == [preferred]:
        return preferred
    # the first lines may be titles
    for part in (lines, lines[len(lines) // 2 :]):
        fields = {one: [found for found in _fields(part, one) if found] for one in SEPARATORS}
        widths = {one: {len(row) for row in rows} for one, rows in fields.items()}
        usable = [one for one in SEPARATORS if len(widths[one]) == 1 and max(widths[one]) > 1]
        if usable:
            break
    else:
        return preferred
    # within names a comma is followed by a blank
    likely = {one: (_share_of_numbers(fields[one][1:]), f"{one} " not in header) for one in usable}
    best = [one for one in usable if likely[one] == max(likely.values())]
    if len(best) > 1:
        marks = listed(["tab" if one == "\t" else one for one in best])
        raise ReadError(f"{path} may be separated by any of {marks}: choose one with --separator")
    return best[0]


def _fields(lines: Iterable[str], separator: str) -> Iterator[list[str]]:
    """Yield the fields of lines; a quote within a field without quotes is a part of it."""
    yield from csv.reader((part for line in lines for part in io.StringIO(line, newline="")), delimiter=separator)


def _share_of_numbers(rows: list[list[str]]) -> float:
    fields = [field for row in rows for field in row]
    return sum(_is_number(re.sub("[.,' \u2019\u00a0\u202f]", "", field)) for field in fields) / max(1, len(fields))


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
    read = pl.read_parquet if kind == "parquet" else pl.read_ipc
    return read_frame(path, kind, lambda path: read(one_file(path)))


def query_columnar(path: Path, query: Callable[[pl.LazyFrame], pl.LazyFrame]) -> pl.DataFrame:
    """Read the answer to a query from a .parquet or .feather file."""
    import polars as pl

    kind = path.suffix.lower()[1:]
    scan = pl.scan_parquet if kind == "parquet" else pl.scan_ipc
    return read_frame(path, kind, lambda path: query(scan(one_file(path))).collect())


def read_jsonl(path: Path, form: FileFormat = DETECTED) -> pl.DataFrame:
    """Read a file with one JSON object per line.

    The columns are ordered as in the first line, then by name: polars' own order varies between processes.
    """
    import polars as pl

    def read(path: Path) -> pl.DataFrame:
        # all lines determine the columns and their types
        frame = pl.read_ndjson(one_file(path), infer_schema_length=None)
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            first: dict[str, object] = next((json.loads(line) for line in file if line.strip()), {})
        named = [name for name in first if name in frame.columns]
        return frame[named + sorted(set(frame.columns) - set(named))]

    return read_frame(path, "jsonl", read)


def one_file(path: Path) -> str:
    """Return a path for polars, which takes a star or a bracket in the name of a file for a pattern of several."""
    return glob.escape(str(path))


def read_frame(path: Path, kind: str, reader: Callable[[Path], Found]) -> Found:
    """Call ``reader`` and turn any exception into a ReadError."""
    with refusing(f"{path} is not a valid {kind} file"):
        return reader(path)


def read_delimited(path: Path, form: FileFormat = DETECTED) -> pl.DataFrame:
    dialect = detect(path, form)
    if dialect.encoding == "utf-8-sig" and not dialect.skip:
        frame = parse_delimited(path, path, dialect, form)
        if frame.height and (frame.width == 1 or not _has_empty_rows(frame)):
            return frame
    return parse_delimited(path, dialect.text(path), dialect, form)


def _has_empty_rows(frame: pl.DataFrame) -> bool:
    import polars as pl

    empty = frame.filter(frame[:, 0].is_null())
    return bool(empty.height) and bool(empty.select(pl.all_horizontal(pl.all().is_null()).any()).item())


def parse_delimited(path: Path, source: Path | bytes, dialect: Dialect, form: FileFormat) -> pl.DataFrame:
    """Parse the lines of a file or, as UTF-8, a part of them with the header, into columns of texts."""
    import polars as pl

    def parse(source: Path | bytes) -> pl.DataFrame:
        try:
            with refusing(f"{path} cannot be read"):
                return pl.read_csv(
                    source if isinstance(source, bytes) else one_file(source),
                    separator=dialect.separator,
                    has_header=dialect.has_header,
                    null_values=[*NULLS, *form.na],
                    infer_schema=False,
                )
        except ReadError as error:
            raise ReadError(_ragged_line(path, dialect) or str(error)) from error

    lines, quoted = _count_lines(source)
    try:
        frame = parse(source)
    except ReadError as error:
        if not quoted or RAGGED in str(error):
            raise
        frame = parse(_requoted(path, source, dialect)[1])
    if quoted and lines != frame.height + dialect.has_header:
        # a quote that is not doubled joins rows, as a line break within quotes does
        height, requoted = _requoted(path, source, dialect)
        frame = frame if height == frame.height + dialect.has_header else parse(requoted)
    # polars fills a short row with nulls, which show up in the last column
    if frame.width and frame[:, -1].null_count() and (ragged := _ragged_line(path, dialect)):
        raise ReadError(ragged)
    if not dialect.has_header:
        frame.columns = [str(a) for a in range(frame.width)]
        return frame
    names = [name.strip(BLANKS) for name in frame.columns]
    if len(set(names)) == len(names):
        frame.columns = names
    require_titles(path, frame, replace(form, skip=dialect.skip))
    return frame


def _count_lines(source: Path | bytes) -> tuple[int, bool]:
    """Return the number of lines, also within quotes, and whether there are quotes."""
    lines, quoted, last = 0, False, b""
    with io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as file:
        while block := file.read(SAMPLE):
            lines, quoted, last = lines + block.count(b"\n"), quoted or b'"' in block, block[-1:]
    return lines + int(last not in (b"\n", b"")), quoted


def _requoted(path: Path, source: Path | bytes, dialect: Dialect) -> tuple[int, bytes]:
    """Return the number of lines, and the lines with quotes where a field needs them; raise for one that is not closed.

    Here a quote within a field without quotes is a part of it, as in a spreadsheet.
    """
    text = source.decode() if isinstance(source, bytes) else source.read_text(encoding="utf-8-sig", errors="replace")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=dialect.separator, strict=True)
    try:
        rows = list(reader)
    except csv.Error as error:
        line = f"{path}: line {reader.line_num} has a quote within quotes that is not doubled"
        raise ReadError(f"{line} ({first_line(error)})") from error
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=dialect.separator, lineterminator="\n").writerows(rows)
    return len(rows), out.getvalue().encode()


def read_sheet(path: Path, form: FileFormat = DETECTED) -> pl.DataFrame:
    """Read a sheet of an .xlsx or .ods workbook: the named one, or the only one that is not empty."""
    try:
        import fastexcel
    except ModuleNotFoundError as error:
        raise ReadError(f"{path} needs fastexcel: pip install fastexcel") from error
    import polars as pl

    # its warnings about columns without values would be printed
    logging.getLogger("fastexcel").addHandler(logging.NullHandler())

    lead = next(lines_after(form, 0)) - 1 if form.header is not False else 0

    def read(path: Path) -> dict[str, Any]:
        names = fastexcel.read_excel(path).sheet_names
        if form.sheet is not None and form.sheet not in names:
            raise ReadError(f"{path} has no sheet {form.sheet!r}; it has {listed(names)}")
        reading: Any = {
            "engine": "calamine",
            "has_header": form.header is not False,
            "read_options": {"header_row": lead} if lead else {},
            "drop_empty_rows": False,
            "infer_schema_length": None,
            "raise_if_empty": False,
        }
        wanted = names if form.sheet is None else [form.sheet]
        return {name: pl.read_excel(path, sheet_name=name, **reading) for name in wanted}

    sheets = read_frame(path, path.suffix.lower()[1:], read)
    filled = {name: sheet for name, sheet in sheets.items() if sheet.height}
    if len(filled) > 1:
        raise ReadError(f"{path} has several sheets; choose one with --sheet: {listed(list(filled))}")
    frame: pl.DataFrame = next(iter((filled or sheets).values()))
    if not frame.width:
        return frame
    begin = lead + int(form.header is not False)
    full = pl.arange(frame.height, eager=True).filter(~frame.select(pl.all_horizontal(pl.all().is_null())).to_series())
    kept = {number for number, _ in kept_lines(range(begin + full[-1] + 1 if len(full) else 0), form.skip)}
    frame = frame[[row for row in full.to_list() if begin + row + 1 in kept]]
    if form.header is False:
        frame.columns = [str(a) for a in range(frame.width)]
        return frame
    if form.header is None:
        require_names(path, [re.sub(f"^(?:{UNNAMED})$", "", name) for name in frame.columns], frame.head(LINES).rows())
    require_titles(path, frame, form)
    # the reader names columns without a header
    frame.columns = ["" if name.startswith("__UNNAMED__") and a == 0 else name for a, name in enumerate(frame.columns)]
    return frame


def _ragged_line(path: Path, dialect: Dialect) -> str | None:
    """Describe the first line with more or fewer fields than the first one, or return None."""
    try:
        with dialect.open(path) as file:
            rows = (
                _fields(dialect.lines(path), dialect.separator)
                if dialect.skip
                else csv.reader(file, delimiter=dialect.separator)
            )
            width = len(next(rows, []))
            if all(not fields or len(fields) == width for fields in rows):
                return None
        return f"{path}{RAGGED}{_described_widths(path, dialect)}"
    except csv.Error:
        return None


def _described_widths(path: Path, dialect: Dialect) -> str:
    """Say which lines have other numbers of fields than the first one, and what may be the reason."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    times: Counter[int] = Counter()
    with dialect.open(path) as file:
        for number, line in kept_lines(whole_lines(file), dialect.skip):
            for width in (len(fields) for fields in _fields([line], dialect.separator) if fields):
                first.setdefault(width, number)
                times[width] += 1
                last[width] = times.total()
    if len(first) < 2:
        return "is a quote not closed?"
    width, odd = list(first)[:2]
    usual = times.most_common(1)[0][0]
    others, after = times.total() - times[usual], times.total() - last[usual]
    help_ = "is --separator right?"
    if width != usual:
        help_ = f"if the names are in line {first[usual]}: --skip {span(1, first[usual] - 1)}; if not, {help_}"
    elif others == after <= MOST_NOTES:
        help_ = f"if no row begins there: --skip {','.join(str(-a - 1) for a in range(after))}"
    return f"line {first[odd]} has {odd} field(s), line {first[width]} has {width}; {help_}"
