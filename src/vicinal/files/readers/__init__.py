"""Files to arrays: a float32 matrix, column names and, if asked, labels and columns that come along.

Whatever is wrong with a file is one ReadError whose message is one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vicinal.files.readers import arrays, frames
from vicinal.files.readers.table import ReadError, Table, Wanted, array_table, frame_table

__all__ = ["SUFFIXES", "ReadError", "Table", "read_table"]

ARRAYS = {".npy": arrays.read_npy, ".npz": arrays.read_npz, ".h5ad": arrays.read_h5ad}
FRAMES = {
    ".csv": frames.read_delimited,
    ".tsv": frames.read_delimited,
    ".parquet": frames.read_parquet,
    ".feather": frames.read_feather,
    ".jsonl": frames.read_lines,
}
SUFFIXES = (*FRAMES, *ARRAYS)


def read_table(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    along: Sequence[str] = (),
    array: str | None = None,
) -> Table:
    """Read the numeric columns (or just `columns`) of a file, and the columns `label` and `along` if given.

    The columns of a matrix, or of a .csv or .tsv file without a header, are named "0", "1", …. `array` chooses the
    matrix of an .npz or .h5ad file.
    """
    path = Path(path)
    wanted = Wanted(columns, label, tuple(dict.fromkeys(along)), array)
    suffix = check_file(path)
    wanted.check()
    return read_wanted(path, suffix, wanted)


def read_wanted(path: Path, suffix: str, wanted: Wanted) -> Table:
    if suffix in ARRAYS:
        matrix, beside = ARRAYS[suffix](path, wanted.array)
        return array_table(path, matrix, beside, wanted)
    if wanted.array is not None:
        raise ReadError(f"{path} holds one table; only .npz and .h5ad files have arrays to choose from")
    return frame_table(path, FRAMES[suffix](path), wanted)


def check_file(path: Path) -> str:
    if path.is_dir():
        raise ReadError(f"{path} is a directory, not a file")
    if not path.exists():
        raise ReadError(f"{path} does not exist")
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ReadError(f"{path} has an unknown suffix; known are {', '.join(SUFFIXES)}")
    try:
        with path.open("rb") as file:
            empty = not file.read(1)
    except OSError as error:
        raise ReadError(f"{path} cannot be read: {error.strerror}") from error
    if empty:
        raise ReadError(f"{path} is empty")
    return suffix
