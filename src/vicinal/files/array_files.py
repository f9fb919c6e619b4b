"""Read files of arrays (.npy and .npz) into a matrix and separate named columns.

Invalid files make the reading libraries raise many types of exceptions, from TokenError to zlib.error, so that every
Exception is turned into a ReadError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vicinal.files.data_table import ReadError, check_matrix, first_line, listed


class Matrix(NamedTuple):
    """A matrix of a file, and what the file has for its rows.

    ``beside`` holds named columns: those that it lists, and possibly more that it has by name. If the format has names
    of rows, ``row_names`` are these. ``name`` is that of the matrix, if a file can have several. ``palettes`` has the
    colors of classes by column.
    """

    rows: NDArray[Any]
    beside: Mapping[str, NDArray[Any]]
    row_names: NDArray[Any] | None = None
    name: str = ""
    palettes: Mapping[str, dict[str, str]] = {}


def read_npy(path: Path, array: str | None) -> Matrix:
    if array is not None:
        raise ReadError(f"{path} contains one array; --array applies only to .npz and .h5ad files")
    return Matrix(_load_npy(path), {})


def map_npy(path: Path) -> NDArray[Any]:
    """Memory-map the matrix of a .npy file."""
    matrix = _load_npy(path, "r")
    check_matrix(path, matrix)
    return matrix


def read_npz(path: Path, array: str | None) -> Matrix:
    """Read the named array, or the only matrix, or "X"; 1-D arrays of the same length are named columns.

    Members of the archive that are no .npy files are ignored.
    """
    with explained(path, "complete .npz"):
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            raise ReadError(f"{path} is a single array, not a .npz file")
        with loaded:
            members = loaded.zip.namelist()
            arrays = {name.removesuffix(".npy"): loaded[name] for name in members if name.endswith(".npy")}
    damaged = [name for name, one in arrays.items() if not isinstance(one, np.ndarray)]
    if damaged or not arrays:
        raise ReadError(f"{path} contains no array in {listed(damaged or members)}")
    name = named_array(path, array, arrays, [name for name, one in arrays.items() if one.ndim == 2])
    chosen = arrays[name]
    check_matrix(path, chosen)
    beside = {name: one for name, one in arrays.items() if one.shape == (len(chosen),) and one.dtype.kind != "O"}
    return Matrix(chosen, beside, name=name)


def _load_npy(path: Path, mmap_mode: Literal["r"] | None = None) -> NDArray[Any]:
    with explained(path, "complete .npy"):
        loaded = np.load(path, mmap_mode=mmap_mode, allow_pickle=False)
    if not isinstance(loaded, np.ndarray):
        raise ReadError(f"{path} is an archive of arrays, not a .npy file")
    return loaded


@contextmanager
def explained(path: Path, kind: str) -> Iterator[None]:
    """Turn any exception into a ReadError."""
    try:
        yield
    except ReadError:
        raise
    except MemoryError as error:
        raise ReadError(f"{path} does not fit into memory") from error
    except Exception as error:
        if "Object arrays" in str(error) or "Python objects" in str(error):
            raise ReadError(f"{path} contains Python objects, not numbers") from error
        raise ReadError(f"{path} is not a {kind} file ({first_line(error)})") from error


def named_array(path: Path, asked: str | None, names: Iterable[str], fitting: list[str]) -> str:
    if asked is not None:
        if asked not in names:
            raise ReadError(f"{path} has no array {asked!r}; it has {listed(list(names))}")
        return asked
    if len(fitting) == 1:
        return fitting[0]
    if "X" in fitting:
        return "X"
    if not fitting:
        raise ReadError(f"{path} has no 2-D array; it has {listed(list(names))}")
    raise ReadError(f"{path} has several 2-D arrays; choose one with --array: {listed(fitting)}")
