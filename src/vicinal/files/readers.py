"""Read data files into tables.

Any problem with a file raises a ReadError whose message is a single line.
"""

from __future__ import annotations

import gzip
import re
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vicinal.files import annotated_files, array_files, tabular_files
from vicinal.files.data_table import (
    Column,
    ColumnChoice,
    DataTable,
    ReadError,
    Role,
    array_table,
    check_finite,
)
from vicinal.files.expansion import require_memory, unpack
from vicinal.files.frame_table import Plan, frame_table
from vicinal.files.number_texts import DETECTED, FileFormat
from vicinal.files.tabular_files import detect

if TYPE_CHECKING:
    import polars as pl

STDIN = "-"
GZIP = ".gz"
# The first bytes of the formats that standard input may have; anything else is text.
MAGIC = {b"\x93NUMPY": ".npy", b"PAR1": ".parquet", b"ARROW1": ".feather", b"PK\x03\x04": ".npz", b"\x89HDF": ".h5ad"}


def is_local(path: Path) -> bool:
    """Return whether a file can be read where it is."""
    return str(path) != STDIN and path.suffix.lower() != GZIP


@contextmanager
def local_file(path: Path, *, streamed: bool = False) -> Iterator[Path]:
    """Yield a plain file with the content of ``path``; messages about it name ``path``.

    A file that is not ``streamed`` may expand to as many bytes as fit into memory.
    """
    if is_local(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="vicinal-") as folder:
        try:
            local = (
                _from_stdin(Path(folder), streamed) if str(path) == STDIN else _unpacked(path, Path(folder), streamed)
            )
            yield local
        except ReadError as error:
            name = "standard input" if str(path) == STDIN else str(path)
            raise ReadError(re.sub(rf"{re.escape(folder)}[^ :]*", lambda _: name, str(error))) from error


def _unpacked(path: Path, folder: Path, streamed: bool) -> Path:
    inner = Path(path.stem)
    if not inner.suffix:
        raise ReadError(f"{path}: a compressed file must be named like data.csv.gz")
    local = folder / f"data{inner.suffix}"
    try:
        with gzip.open(path, "rb") as packed, local.open("wb") as file:
            unpack(path, packed, file, streamed=streamed)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ReadError(f"{path} is not a complete gzip file") from error
    except OSError as error:
        raise ReadError(f"{path} cannot be read: {error.strerror or error}") from error
    return local


def _from_stdin(folder: Path, streamed: bool) -> Path:
    first = sys.stdin.buffer.read(8)
    if first[:2] == b"\x1f\x8b":
        raise ReadError("standard input is compressed; unpack it first: gunzip -c FILE | vicinal ...")
    known = next((suffix for magic, suffix in MAGIC.items() if first.startswith(magic)), None)
    suffix = known or (".jsonl" if first.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else ".csv")
    local = folder / f"data{suffix}"
    with local.open("wb") as file:
        file.write(first)
        unpack(Path("standard input"), sys.stdin.buffer, file, streamed=streamed)
    return local.rename(local.with_suffix(_archive_suffix(local))) if suffix == ".npz" else local


def _archive_suffix(path: Path) -> str:
    """Return the suffix of a zip file: that of a workbook if it is one."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        return ".npz"  # its reader refuses it
    return ".xlsx" if "xl/workbook.xml" in names else ".ods" if "content.xml" in names else ".npz"


def row_count(path: Path, form: FileFormat = DETECTED) -> int | None:
    """Return the number of rows, or None if counting would take as long as reading them."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return len(array_files.map_npy(path))
    if suffix in (".parquet", ".feather"):
        import polars as pl

        return int(tabular_files.query_columnar(path, lambda rows: rows.select(pl.len())).item())
    if suffix == ".jsonl":
        return _lines(path)
    if suffix in (".csv", ".tsv"):
        # line breaks within quotes are counted too, so that the count may be slightly too high
        dialect = detect(path, form)
        return None if dialect.encoding == "utf-16" else _lines(path) - int(dialect.has_header)
    return None


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


ARRAY_READERS = {".npy": array_files.read_npy, ".npz": array_files.read_npz, ".h5ad": annotated_files.read_h5ad}
TABULAR_READERS = {
    ".csv": tabular_files.read_delimited,
    ".tsv": tabular_files.read_delimited,
    ".parquet": tabular_files.read_columnar,
    ".feather": tabular_files.read_columnar,
    ".jsonl": tabular_files.read_jsonl,
    ".xlsx": tabular_files.read_sheet,
    ".ods": tabular_files.read_sheet,
}
SUFFIXES = (*TABULAR_READERS, *ARRAY_READERS)
# The name of the column of row names, which an .h5ad file has without asking.
CELLS = "cell"
DEFAULT_CHOICE = ColumnChoice()


def read_table(path: str | Path, choice: ColumnChoice = DEFAULT_CHOICE) -> DataTable:
    """Read columns of a file whose suffix is one of ``SUFFIXES``, possibly with ".gz", or of "-", standard input."""
    choice.check()
    with local_file(Path(path)) as local:
        return read_chosen(local, choice)


def describe(path: str | Path, choice: ColumnChoice = DEFAULT_CHOICE) -> tuple[int, tuple[Column, ...], str, str]:
    """Return the number of rows, what each column is used for, the name of their matrix, and what prevents that.

    The last two may be "".
    """
    choice.check()
    with local_file(Path(path)) as local:
        if check_file(local) in ARRAY_READERS:
            table = read_chosen(local, replace(choice, missing=True))
            problem = ""
            if not choice.missing:
                try:
                    check_finite(local, table.X, table.feature_names, lambda row, a: table.X[row, a], 0, choice)
                except ReadError as error:
                    problem = str(error)
            return len(table.X), table.columns, table.matrix, problem
        frame, form = read_frame_of(local, choice)
        plan = Plan.of(local, frame, replace(choice, form=form))
        try:
            plan.require_features()
            plan.table()
        except ReadError as error:
            return frame.height, plan.columns, "", str(error)
        return frame.height, plan.columns, "", ""


def read_frame_of(path: Path, choice: ColumnChoice) -> tuple[pl.DataFrame, FileFormat]:
    """Read a plain file that is not of arrays; return its format with what was detected, too."""
    suffix = check_file(path)
    require_memory(path)
    if choice.array is not None:
        raise ReadError(f"{path} contains one table; --array applies only to .npz and .h5ad files")
    if choice.form.sheet is not None and suffix not in (".xlsx", ".ods"):
        raise ReadError(f"{path} has no sheets; --sheet applies only to .xlsx and .ods files")
    form = choice.form
    if suffix in (".csv", ".tsv"):
        dialect = detect(path, form)
        form = replace(form, separator=dialect.separator, encoding=dialect.encoding, skip=dialect.skip)
    return TABULAR_READERS[suffix](path, form), form


def read_chosen(
    path: Path, asked: ColumnChoice, choose: Callable[[list[str], list[str]], ColumnChoice] | None = None
) -> DataTable:
    """Read columns of a plain file.

    ``choose`` returns the columns to read, instead of those of ``asked``. It receives the names of the columns of the
    table or matrix, and of the columns that a file of arrays has in addition to the matrix.
    """
    if check_file(path) not in ARRAY_READERS:
        frame, form = read_frame_of(path, asked)
        choice = asked if choose is None else choose(frame.columns, [])
        return frame_table(path, frame, replace(choice, form=form))
    require_memory(path)
    found = ARRAY_READERS[path.suffix.lower()](path, asked.array)
    numbers = [str(a) for a in range(found.rows.shape[1] if found.rows.ndim == 2 else 0)]
    choice = asked if choose is None else choose(numbers, list(found.beside))
    if isinstance(found.beside, annotated_files.CellColumns):
        found.beside.require_one_meaning(choice.values)
    table = array_table(path, found.rows, found.beside, choice)
    if not found.name:
        return table
    columns = [replace(one, colors=found.palettes.get(one.name)) for one in table.columns]
    if found.row_names is not None and choice.ids is None:
        columns.insert(0, Column(CELLS, Role.ID, found.row_names, "row names of the file"))
    return replace(table, columns=tuple(columns), matrix=found.name)


def check_file(path: Path) -> str:
    """Raise unless the file is readable, not empty and of a known format; return its suffix in lower case."""
    if path.is_dir():
        raise ReadError(f"{path} is a directory, not a file")
    if not path.exists():
        raise ReadError(f"{path} does not exist")
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ReadError(f"{path} has an unknown suffix; supported are {', '.join(SUFFIXES)}")
    try:
        with path.open("rb") as file:
            empty = not file.read(1)
    except OSError as error:
        raise ReadError(f"{path} cannot be read: {error.strerror}") from error
    if empty:
        raise ReadError(f"{path} is empty")
    return suffix
