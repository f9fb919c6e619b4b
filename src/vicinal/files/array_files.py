"""Read files of arrays (.npy, .npz and .h5ad) into a matrix and separate named columns.

.h5ad files (AnnData) are read with h5py. Invalid files make the reading libraries raise many types of exceptions, from
TokenError to zlib.error, so that every Exception is turned into a ReadError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vicinal.files.data_table import ReadError, check_matrix, first_line, listed
from vicinal.runtime.inputs import check_structure

# A matrix, separate named columns, and the names of its rows if the format has them.
Matrix = tuple[NDArray[Any], dict[str, NDArray[Any]], NDArray[Any] | None]
# Single-cell tools embed the principal components, if there are any, instead of all genes.
H5AD_FIRST = ("obsm/X_pca", "X")


def read_npy(path: Path, array: str | None) -> Matrix:
    if array is not None:
        raise ReadError(f"{path} contains one array; --array applies only to .npz and .h5ad files")
    return _load_npy(path), {}, None


def map_npy(path: Path) -> NDArray[Any]:
    """Memory-map the matrix of a .npy file."""
    matrix = _load_npy(path, "r")
    check_matrix(path, matrix)
    return matrix


def read_npz(path: Path, array: str | None) -> Matrix:
    """Read the named array, or the only matrix, or "X"; 1-D arrays of the same length are named columns."""
    with _explained(path, "complete .npz"):
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            raise ReadError(f"{path} is a single array, not a .npz file")
        with loaded:
            arrays = {name: loaded[name] for name in loaded.files}
    chosen = arrays[_named(path, array, arrays, [name for name, one in arrays.items() if one.ndim == 2])]
    check_matrix(path, chosen)
    beside = {name: one for name, one in arrays.items() if one.shape == (len(chosen),) and one.dtype.kind != "O"}
    return chosen, beside, None


def read_h5ad(path: Path, array: str | None) -> Matrix:
    """Read a matrix of an AnnData file: "X", "layers/NAME" or "obsm/NAME"; "obs" has named columns and cell names."""
    try:
        import h5py
    except ModuleNotFoundError as error:
        raise ReadError(f"{path} needs h5py: pip install h5py") from error
    with _explained(path, "valid h5ad"), h5py.File(path, "r") as file:
        _require_own_data(path, file)
        members = [f"{group}/{name}" for group in ("layers", "obsm") if group in file for name in file[group]]
        names = [*(["X"] if "X" in file else []), *members]
        first = next((name for name in H5AD_FIRST if name in names), None)
        matrix = _dense(path, file[_named(path, array, names, [first] if first else names)])
        check_matrix(path, matrix)
        columns = _observations(file, len(matrix))
        index = str(file["obs"].attrs.get("_index", "_index")) if "obs" in file else ""
        return matrix, columns, columns.pop(index, None)


def _require_own_data(path: Path, file: Any) -> None:
    """Raise ReadError if anything in an HDF5 file refers to another file, whose content would be read as data.

    External links, datasets in external storage and virtual datasets are refused wherever they are: a soft link may
    lead to any of them.
    """
    import h5py

    # A visit ends with the first value that is not None; HDF5 cannot pass exceptions on.
    def check_link(name: bytes, info: Any) -> str | None:
        inside = info.type in (h5py.h5l.TYPE_HARD, h5py.h5l.TYPE_SOFT)
        return None if inside else f"{name.decode(errors='replace')!r} is a link to another file, which is not followed"

    def check_object(name: str, stored: Any) -> str | None:
        if not isinstance(stored, h5py.Dataset):
            return None
        if stored.external is not None:
            return f"{name!r} has its values in another file, which is not read"
        return f"{name!r} is a virtual dataset of another file, which is not read" if stored.is_virtual else None

    found = file.id.links.visit(check_link, info=True) or file.visititems(check_object)
    if found is not None:
        raise ReadError(f"{path}: {found}")


def _load_npy(path: Path, mmap_mode: Literal["r"] | None = None) -> NDArray[Any]:
    with _explained(path, "complete .npy"):
        loaded = np.load(path, mmap_mode=mmap_mode, allow_pickle=False)
    if not isinstance(loaded, np.ndarray):
        raise ReadError(f"{path} is an archive of arrays, not a .npy file")
    return loaded


@contextmanager
def _explained(path: Path, kind: str) -> Iterator[None]:
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


def _named(path: Path, asked: str | None, names: Iterable[str], fitting: list[str]) -> str:
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


def _dense(path: Path, stored: Any) -> NDArray[Any]:
    """Return a stored matrix as a dense array; compressed sparse matrices are expanded."""
    if hasattr(stored, "dtype"):
        return np.asarray(stored[()])
    from scipy.sparse import csc_matrix, csr_matrix

    kinds = {"csr_matrix": csr_matrix, "csc_matrix": csc_matrix}
    kind = stored.attrs.get("encoding-type", "")
    if kind not in kinds:
        raise ReadError(f"{path}: {stored.name} is stored as {kind or 'a group'}, not as a matrix")
    parts = tuple(stored[part][()] for part in ("data", "indices", "indptr"))
    matrix = kinds[kind](parts, shape=tuple(stored.attrs["shape"]))
    check_structure(matrix, stored.name)  # toarray would write outside its memory for invalid indices
    return np.asarray(matrix.toarray())


def _observations(file: Any, n: int) -> dict[str, NDArray[Any]]:
    """Read the columns of "obs": plain arrays, and categorical columns stored as categories and codes."""
    found: dict[str, NDArray[Any]] = {}
    for name, stored in file.get("obs", {}).items():
        if hasattr(stored, "dtype"):
            values = _values(stored)
        elif "codes" in stored and "categories" in stored:
            named = _values(stored["categories"])
            values = np.array([None if code < 0 else named[code] for code in stored["codes"][()]], dtype=object)
        else:
            continue
        if np.shape(values) == (n,):
            found[name] = np.asarray(values)
    return found


def _values(stored: Any) -> Any:
    """Return the values of a dataset, texts as Python's."""
    return stored.asstr()[()] if stored.dtype.kind == "O" else stored[()]
