"""The rows of a Dask array: what they must be like, and how tasks read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from vicinal.neighbors.cells import joined_rows, sample_numbers
from vicinal.neighbors.metrics import Rows, is_sparse
from vicinal.neighbors.rows import as_rows, scan_rows

MOST_ROWS = 2**31 - 1  # row numbers are 32-bit
FILL = "fill them first: dask.array.ma.filled(X)"
BLOCK_BYTES = 1 << 24  # chunks are joined up to this size


Span = list[tuple[int, int, int]]  # for each of some consecutive chunks its number, its first row and its size


@dataclass(frozen=True, eq=False)
class DaskRows:
    """A checked Dask array, in blocks of some chunks each. ``blocks`` holds the chunks as delayed values."""

    array: Any
    blocks: list[list[Any]]
    spans: list[Span]

    @property
    def rows(self) -> Any:
        return self.array

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.d

    @property
    def n(self) -> int:
        return int(self.array.shape[0])

    @property
    def d(self) -> int:
        return int(self.array.shape[1])

    @property
    def sparse(self) -> bool:
        return hasattr(self.array._meta, "tocsr")

    @property
    def declared(self) -> tuple[np.dtype[Any], bool]:
        """The type that the array declares, and whether it declares sparse chunks."""
        return self.array.dtype, self.sparse

    @property
    def chunks(self) -> list[Any]:
        """The chunks as delayed values, without those that have no rows."""
        return [chunk for block in self.blocks for chunk in block]

    @property
    def largest_chunk(self) -> int:
        """Bytes of the largest chunk as float32."""
        return 4 * self.d * int(max(self.array.chunks[0]))

    @classmethod
    def of(cls, X: Any) -> DaskRows:
        """Check shape, type and chunks of a Dask array or data frame; nothing is computed but unknown chunk sizes."""
        if hasattr(X, "to_dask_array"):
            X = X.to_dask_array(lengths=True)
        if not hasattr(X, "to_delayed") or not hasattr(X, "chunks"):
            raise TypeError(f"X must be a Dask array or data frame, got {type(X).__module__}.{type(X).__name__}")
        if isinstance(X._meta, np.ma.MaskedArray):
            raise ValueError(f"X holds masked arrays; {FILL}")
        if X.ndim != 2:
            raise ValueError(f"X must be 2-D, got a Dask array of {X.ndim} dimensions")
        if any(np.isnan(size) for size in X.chunks[0]):
            raise ValueError("X has chunks of unknown size; call X.compute_chunk_sizes() first")
        if X.dtype.kind not in "fiub":
            raise ValueError(f"X must hold real numbers, got a Dask array of {X.dtype}")
        if X.shape[0] > MOST_ROWS:
            raise ValueError(f"X has {X.shape[0]} rows; at most {MOST_ROWS} are possible")
        if X.shape[0] < 2 or X.shape[1] < 1:
            raise ValueError(f"X must have at least two rows and one column, got shape {X.shape}")
        if len(X.chunks[1]) > 1:
            X = X.rechunk({1: -1})
        chunks, spans = X.to_delayed(optimize_graph=True).ravel(), _spans(X.chunks[0], 4 * X.shape[1])
        return cls(X, [[chunks[number] for number, _, _ in span] for span in spans], spans)


def _spans(sizes: tuple[int, ...], row_bytes: int) -> list[Span]:
    """Join small chunks; chunks without rows are left out."""
    spans: list[Span] = []
    first = held = 0
    for number, size in enumerate(sizes):
        if size and (not spans or held + size * row_bytes > BLOCK_BYTES):
            spans.append([])
            held = 0
        if size:
            spans[-1].append((number, first, size))
        first, held = first + size, held + size * row_bytes
    return spans


def read_block(chunks: list[Any]) -> Rows:
    """Return the rows of some chunks as float32, dense or CSR; blocks of CuPy are copied from the device."""
    with np.errstate(over="ignore"):  # a value that float32 cannot hold becomes infinite, and is reported as such
        return joined_rows([as_rows(chunk.get() if _on_device(chunk) else chunk) for chunk in chunks])


def _on_device(chunk: Any) -> bool:
    return type(chunk).__module__.split(".")[0] in ("cupy", "cupyx")


def require_declared(chunk: Any, number: int, declared: tuple[np.dtype[Any], bool], shape: tuple[int, ...]) -> None:
    """Raise ValueError if a chunk has another type than its array declares, or another shape, or masked values."""
    dtype, sparse = declared
    if np.ma.is_masked(chunk):
        raise ValueError(f"chunk {number} of X has masked values; {FILL}")
    if hasattr(chunk, "tocsr") != sparse or getattr(chunk, "dtype", dtype) != dtype:
        kinds = {True: "sparse", False: "dense"}
        found = f"{kinds[hasattr(chunk, 'tocsr')]} {getattr(chunk, 'dtype', type(chunk).__name__)}"
        wanted = f"{kinds[sparse]} {dtype}"
        raise ValueError(f"chunk {number} of X is {found}, but the array declares {wanted}: give its true meta")
    if np.shape(chunk) != shape:
        raise ValueError(f"chunk {number} of X has shape {np.shape(chunk)}, but the array declares {shape}")


def scan_block(
    chunks: list[Any], span: Span, declared: tuple[np.dtype[Any], bool], shape: tuple[int, int], cells: int, seed: int
) -> Rows:
    """Check type, shape and values of some chunks and return those of their rows that cells are made from.

    The error names chunk and row.
    """
    n, d = shape
    taken, wanted = [], sample_numbers(n, cells, seed)
    for chunk, (number, first, size) in zip(chunks, span, strict=True):
        require_declared(chunk, number, declared, (size, d))
        rows = read_block([chunk])
        _, bad = scan_rows(rows)
        if bad >= 0:
            values = rows[[bad]].data if is_sparse(rows) else rows[bad]
            what = "NaN" if np.isnan(values).any() else "infinity (inf), or a value too large for float32"
            raise ValueError(f"Input X contains {what}, first in row {first + bad} (chunk {number}, row {bad} of it).")
        low, high = np.searchsorted(wanted, [first, first + rows.shape[0]])
        taken.append(rows[wanted[low:high] - first])
    return joined_rows(taken)


FILE_BLOCK_BYTES = 1 << 25
SUFFIXES = (".npy", ".parquet", ".zarr")


def open_array(path: Path, columns: Sequence[str] | None = None) -> Any:
    """Return the rows of a file, which all workers can read under this name, as a Dask array of float32.

    Nothing is read but the description of the file. Of a .parquet table ``columns`` are read, by default all numeric
    ones.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{path} cannot be read in blocks; supported are {', '.join(SUFFIXES)}")
    if not path.exists():
        raise ValueError(f"{path} does not exist")
    if columns is not None and suffix != ".parquet":
        raise ValueError(f"{path} has no named columns; --features applies only to .parquet files")
    path = path.resolve()
    if suffix == ".zarr":
        return da.from_zarr(str(path)).astype(np.float32)
    if suffix == ".parquet":
        n, names = _parquet_columns(path, columns)
        return _blocks_of_file(_read_parquet, (str(path), names), n, len(names))
    rows = np.load(path, mmap_mode="r")
    if rows.ndim != 2 or rows.dtype.kind not in "fiub":
        raise ValueError(f"{path} must hold a matrix of numbers, got shape {rows.shape} of {rows.dtype}")
    return _blocks_of_file(_read_npy, (str(path),), *rows.shape)


def _parquet_columns(path: Path, columns: Sequence[str] | None) -> tuple[int, list[str]]:
    """Return the number of rows of a table, and the names of the chosen columns."""
    import polars as pl

    table = pl.scan_parquet(path, glob=False)
    schema = table.collect_schema()
    names = [name for name, kind in schema.items() if kind.is_numeric()] if columns is None else list(columns)
    missing = [name for name in names if name not in schema]
    if missing or not names:
        raise ValueError(f"{path} has no column {missing[0]!r}" if missing else f"{path} has no numeric columns")
    return int(table.select(pl.len()).collect().item()), names


def _blocks_of_file(read: Callable[..., Any], source: tuple[Any, ...], n: int, d: int) -> Any:
    """Return a Dask array whose blocks ``read`` reads."""
    rows = max(1, FILE_BLOCK_BYTES // (4 * d))
    chunks = tuple(min(rows, n - first) for first in range(0, n, rows)), (d,)
    return da.map_blocks(read, *source, rows, chunks=chunks, dtype=np.float32, meta=np.empty((0, 0), np.float32))


def _read_npy(path: str, count: int, block_id: tuple[int, int]) -> Any:
    rows, first = np.load(path, mmap_mode="r"), block_id[0] * count
    some = rows[first : first + count]
    if rows.flags.c_contiguous:  # read, since the pages of a mapped file count as memory of the process
        at = rows.offset + first * rows.strides[0]
        some = np.fromfile(path, rows.dtype, some.size, offset=at).reshape(some.shape)
    return np.asarray(some, dtype=np.float32, order="C")


def _read_parquet(path: str, names: list[str], count: int, block_id: tuple[int, int]) -> Any:
    import polars as pl
    import polars.selectors as cs

    frame = pl.scan_parquet(path, glob=False).select(cs.by_name(names)).slice(block_id[0] * count, count).collect()
    return frame.cast(pl.Float32).fill_null(float("nan")).to_numpy(order="c")
