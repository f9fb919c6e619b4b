"""Read and write .h5ad files (AnnData) with h5py.

Cells have the columns of "obs" and the expression of genes, which is read for the genes that are asked for by name.
"""

from __future__ import annotations

import math
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.files.array_files import Matrix, explained, named_array
from vicinal.files.data_table import ReadError, check_matrix
from vicinal.files.expansion import require_memory
from vicinal.files.number_texts import shown_text
from vicinal.runtime.inputs import check_structure

# Single-cell tools embed the principal components, if there are any, instead of all genes.
FIRST = ("obsm/X_pca", "X")
# Where the expression of genes is looked for, with the table of genes: scanpy's plots prefer "raw" too.
EXPRESSION = (("raw/X", "raw/var"), ("X", "var"))
BLOCK_ENTRIES = 1 << 22  # entries of a sparse matrix that are searched for a gene at a time


class CellColumns(Mapping[str, NDArray[Any]]):
    """The columns of "obs", and by name the expression of genes, which are too many to be listed."""

    kind = "gene and no column of obs"

    def __init__(self, path: Path, observed: dict[str, NDArray[Any]], genes: Mapping[str, tuple[str, int]]) -> None:
        self._path, self._observed, self._genes = path, observed, genes

    def __iter__(self) -> Iterator[str]:
        return iter(self._observed)

    def __len__(self) -> int:
        return len(self._observed)

    def __contains__(self, name: object) -> bool:
        return name in self._observed or name in self._genes

    def require_one_meaning(self, names: Sequence[str]) -> None:
        """Raise ReadError for a name of a column and of a gene, as scanpy does."""
        for name in names:
            if name in self._observed and name in self._genes:
                raise ReadError(
                    f"{self._path} has a column of obs and a gene {shown_text(name)}: --hover takes the column"
                )

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name in self._observed:
            return self._observed[name]
        matrix, column = self._genes[name]
        if column < 0:
            raise ReadError(f"{self._path} has several genes {shown_text(name)}: make their names unique")
        with explained(self._path, "valid h5ad"), _opened(self._path) as file:
            return _expression(self._path, file[matrix], column)


def _opened(path: Path, mode: str = "r") -> Any:
    try:
        import h5py
    except ModuleNotFoundError as error:
        raise ReadError(f"{path} needs h5py: pip install h5py") from error
    return h5py.File(path, mode)


def read_h5ad(path: Path, array: str | None) -> Matrix:
    """Read a matrix of an AnnData file: "X", "layers/NAME" or "obsm/NAME"; "obs" has named columns and cell names."""
    with explained(path, "valid h5ad"), _opened(path) as file:
        _require_own_data(path, file)
        _require_groups(path, file)
        members = [f"{group}/{name}" for group in ("layers", "obsm") if group in file for name in file[group]]
        names = [*(["X"] if "X" in file else []), *members]
        first = next((name for name in FIRST if name in names), None)
        name = named_array(path, array, names, [first] if first else names)
        matrix = _dense(path, file[name])
        check_matrix(path, matrix)
        require_memory(path, _stored_bytes(file["obs"]) if "obs" in file else 0.0)
        columns = _observations(file, len(matrix))
        index = str(file["obs"].attrs.get("_index", "_index")) if "obs" in file else ""
        row_names = columns.pop(index, None)
        beside = CellColumns(path, columns, _genes(file, len(matrix)))
        return Matrix(matrix, beside, row_names, name, _palettes(file, columns))


def maps_of(path: Path) -> list[str]:
    """Return the matrices of a file that are maps: those of "obsm" with 2 or 3 columns, UMAP's first."""
    with explained(path, "valid h5ad"), _opened(path) as file:
        _require_groups(path, file)
        shapes = {name: tuple(getattr(one, "shape", ())) for name, one in file.get("obsm", {}).items()}
    found = [name for name, shape in shapes.items() if len(shape) == 2 and shape[-1] in (2, 3)]
    return [f"obsm/{name}" for name in sorted(found, key=lambda name: (name != "X_umap", name != "X_tsne", name))]


def write_h5ad(
    source: Path,
    path: Path,
    basis: str,
    places: NDArray[np.float32],
    params: Mapping[str, Any],
    columns: Mapping[str, NDArray[Any]],
) -> None:
    """Write a copy of an AnnData file with a map in "obsm", its parameters in "uns", and more columns in "obs".

    They replace what has the same name; everything else is kept.
    """
    from h5py import string_dtype

    shutil.copyfile(source, path)
    with explained(source, "valid h5ad"), _opened(path, "r+") as file:
        table = file["obs"]
        cells = table[str(table.attrs.get("_index", "_index"))]
        if len(places) != len(cells):
            raise ReadError(f"{source} has {len(cells)} cells, but {len(places)} were placed: write another format")
        for part in ("obsm", "uns"):
            if part not in file:
                _store(file, part, {})
        _store(file["obsm"], f"X_{basis}", places)
        _store(file["uns"], basis, {"params": dict(params)})
        for name, values in columns.items():
            _store(table, name, values)
        known = [str(name) for name in table.attrs.get("column-order", [])]
        order = [*known, *(name for name in columns if name not in known)]
        table.attrs.create("column-order", np.array(order, dtype=object), dtype=string_dtype())


def _store(group: Any, name: str, values: Any) -> None:
    """Store numbers, texts (as categories) or a dictionary of them under a name, as anndata encodes them."""
    import h5py

    if name in group:
        del group[name]
    kind, version = "array", "0.2.0"
    if isinstance(values, dict):
        stored, kind, version = group.create_group(name), "dict", "0.1.0"
        for part, value in values.items():
            _store(stored, part, value)
    elif np.ndim(values) == 0:
        stored, kind = group.create_dataset(name, data=values), "numeric-scalar"
    elif values.dtype.kind in "fiub":
        stored = group.create_dataset(name, data=values)
    else:
        stored, kind = group.create_group(name), "categorical"
        names, codes = np.unique(values.astype(str), return_inverse=True)
        _store(stored, "codes", codes.astype(np.int32))
        texts = stored.create_dataset("categories", data=names.astype(object), dtype=h5py.string_dtype())
        texts.attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})
        stored.attrs["ordered"] = False
    stored.attrs.update({"encoding-type": kind, "encoding-version": version})


def _require_groups(path: Path, file: Any) -> None:
    """Raise ReadError for a file of anndata before 0.7, whose tables are stored in another way."""
    if any(hasattr(file.get(part), "dtype") for part in ("obs", "obsm", "var")):
        raise ReadError(f"{path} was written by anndata before 0.7: read it with anndata and write it again")


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


def _dense(path: Path, stored: Any) -> NDArray[Any]:
    """Return a stored matrix as a dense array; compressed sparse matrices are expanded."""
    if hasattr(stored, "dtype"):
        require_memory(path, float(stored.nbytes))
        return np.asarray(stored[()])
    from scipy.sparse import csc_matrix, csr_matrix

    kinds = {"csr_matrix": csr_matrix, "csc_matrix": csc_matrix}
    kind = stored.attrs.get("encoding-type", "")
    if kind not in kinds:
        raise ReadError(f"{path}: {stored.name} is stored as {kind or 'a group'}, not as a matrix")
    shape = tuple(int(length) for length in stored.attrs["shape"])
    sizes = [float(stored[part].nbytes) for part in ("data", "indices", "indptr")]
    require_memory(path, sum(sizes) + math.prod(map(float, shape)) * stored["data"].dtype.itemsize)
    parts = tuple(stored[part][()] for part in ("data", "indices", "indptr"))
    matrix = kinds[kind](parts, shape=shape)
    check_structure(matrix, stored.name)  # toarray would write outside its memory for invalid indices
    return np.asarray(matrix.toarray())


def _stored_bytes(group: Any) -> float:
    """Return the bytes of all datasets of a group; a text is counted by its address."""
    return sum(float(one.nbytes) if hasattr(one, "dtype") else _stored_bytes(one) for one in group.values())


def _observations(file: Any, n: int) -> dict[str, NDArray[Any]]:
    """Read the columns of "obs": plain arrays, and categorical columns stored as categories and codes."""
    found: dict[str, NDArray[Any]] = {}
    if "obs" not in file:
        return found
    table = file["obs"]
    order = [str(name) for name in table.attrs.get("column-order", [])]
    for name in dict.fromkeys([*(name for name in order if name in table), *table]):
        stored = table[name]
        if hasattr(stored, "dtype"):
            values = _values(stored)
        elif "codes" in stored and "categories" in stored:
            named = _values(stored["categories"])
            values = np.array([None if code < 0 else named[code] for code in stored["codes"][()]], dtype=object)
        elif "values" in stored and "mask" in stored:
            values = _without(_values(stored["values"]), stored["mask"][()])
        else:
            continue
        if np.shape(values) == (n,):
            found[name] = np.asarray(values)
    return found


def _without(values: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[Any]:
    """Return nullable values: missing numbers are NaN, other missing values are None."""
    if not missing.any():
        return values
    found = values.astype(float if values.dtype.kind in "iuf" else object)
    found[missing] = np.nan if found.dtype.kind == "f" else None
    return found


def _values(stored: Any) -> Any:
    """Return the values of a dataset, texts as Python's."""
    return stored.asstr()[()] if stored.dtype.kind == "O" else stored[()]


def _genes(file: Any, n: int) -> dict[str, tuple[str, int]]:
    """Return the matrix and the column with the expression of each gene; -1 if several genes have the name."""
    found: dict[str, tuple[str, int]] = {}
    for matrix, table in reversed(EXPRESSION):
        if matrix not in file or table not in file:
            continue
        stored, genes = file[matrix], file[table]
        shape = tuple(stored.shape if hasattr(stored, "dtype") else stored.attrs.get("shape", ()))
        index = genes.get(str(genes.attrs.get("_index", "_index")))
        if index is None or not hasattr(index, "dtype") or shape != (n, *index.shape):
            continue
        names = [str(name) for name in _values(index)]
        columns = {name: (matrix, column) for column, name in enumerate(names)}
        repeated = {name: (matrix, -1) for name, times in Counter(names).items() if times > 1}
        found |= columns | repeated
    return found


def _expression(path: Path, stored: Any, column: int) -> NDArray[Any]:
    """Return a column of a stored matrix, dense or compressed, without holding the whole of it."""
    if hasattr(stored, "dtype"):
        return np.asarray(stored[:, column])
    kind, n = stored.attrs.get("encoding-type", ""), int(stored.attrs["shape"][0])
    starts, values = stored["indptr"][()], np.zeros(n, dtype=stored["data"].dtype)
    if kind == "csc_matrix":
        part = slice(int(starts[column]), int(starts[column + 1]))
        values[stored["indices"][part]] = stored["data"][part]
        return values
    if kind != "csr_matrix":
        raise ReadError(f"{path}: {stored.name} is stored as {kind or 'a group'}, not as a matrix")
    for begin in range(0, int(starts[-1]), BLOCK_ENTRIES):
        part = slice(begin, begin + BLOCK_ENTRIES)
        at = np.flatnonzero(stored["indices"][part] == column)
        values[np.searchsorted(starts, begin + at, side="right") - 1] = stored["data"][part][at]
    return values


def _palettes(file: Any, columns: Mapping[str, NDArray[Any]]) -> dict[str, dict[str, str]]:
    """Return the colors, written as #rrggbb, that scanpy stored for the classes of columns."""
    found = {}
    for name in columns:
        colors, stored = file.get(f"uns/{name}_colors"), file["obs"][name]
        if colors is None or hasattr(stored, "dtype"):
            continue
        classes, given = _values(stored["categories"]), [str(one) for one in _values(colors)]
        if len(given) >= len(classes) and all(re.fullmatch("#[0-9a-fA-F]{6}([0-9a-fA-F]{2})?", one) for one in given):
            found[name] = {str(one): color[:7] for one, color in zip(classes, given, strict=False)}
    return found
