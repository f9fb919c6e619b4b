"""Read data files into a float32 matrix with column names and, if requested, labels and extra columns.

Any problem with a file raises a ReadError whose message is a single line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vicinal.files.readers import array_files, tabular_files
from vicinal.files.readers.data_table import ColumnSelection, DataTable, ReadError, array_table, frame_table
from vicinal.files.readers.local_files import local_file

__all__ = ["SUFFIXES", "DataTable", "ReadError", "read_table"]

ARRAY_READERS = {".npy": array_files.read_npy, ".npz": array_files.read_npz, ".h5ad": array_files.read_h5ad}
TABULAR_READERS = {
    ".csv": tabular_files.read_delimited,
    ".tsv": tabular_files.read_delimited,
    ".parquet": tabular_files.read_parquet,
    ".feather": tabular_files.read_feather,
    ".jsonl": tabular_files.read_jsonl,
}
SUFFIXES = (*TABULAR_READERS, *ARRAY_READERS)


def read_table(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    extra: Sequence[str] = (),
    array: str | None = None,
    vectors: str | None = None,
    missing: bool = False,
) -> DataTable:
    """Read a data file.

    Parameters
    ----------
    path : path
        A file whose suffix is one of ``SUFFIXES``, possibly with ".gz" after it, or "-" for standard input.
    columns : sequence of str, optional
        The feature columns. By default, all numeric columns that are neither ``label`` nor ``extra``. The columns of a
        matrix, or of a .csv or .tsv file without a header, are named "0", "1", ….
    label : str, optional
        The column of labels.
    extra : sequence of str, optional
        Further columns to read, of any type.
    array : str, optional
        The matrix to read from an .npz or .h5ad file.
    vectors : str, optional
        The column whose entries are lists of numbers, the features of their rows. By default the only such column, if
        ``columns`` is not given.
    missing : bool, default=False
        Whether missing features are accepted, as NaN, instead of refused.
    """
    selection = ColumnSelection(columns, label, tuple(dict.fromkeys(extra)), array, vectors, missing)
    selection.check()
    with local_file(Path(path)) as local:
        return read_selection(local, check_file(local), selection)


def read_selection(path: Path, suffix: str, selection: ColumnSelection) -> DataTable:
    """Read the selected columns of a file that ``check_file`` accepted."""
    if suffix in ARRAY_READERS:
        matrix, named_columns, row_names = ARRAY_READERS[suffix](path, selection.array)
        return replace(array_table(path, matrix, named_columns, selection), row_names=row_names)
    if selection.array is not None:
        raise ReadError(f"{path} contains one table; --array applies only to .npz and .h5ad files")
    return frame_table(path, TABULAR_READERS[suffix](path), selection)


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
