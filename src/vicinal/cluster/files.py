"""Files larger than memory as Dask arrays, which workers read block by block."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

BLOCK_BYTES = 1 << 25
SUFFIXES = (".npy", ".parquet", ".zarr")


def open_array(path: Path, columns: Sequence[str] | None = None) -> Any:
    """Return the rows of a file as a Dask array of float32; nothing is read but the description of the file.

    Parameters
    ----------
    path : Path
        A .npy matrix, a .parquet table or a .zarr array, which all workers can read under this name.
    columns : sequence of str, optional
        Columns of a .parquet table; by default all numeric ones.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{path} cannot be read in blocks; supported are {', '.join(SUFFIXES)}")
    if not path.exists():
        raise ValueError(f"{path} does not exist")
    if columns is not None and suffix != ".parquet":
        raise ValueError(f"{path} has no named columns; --columns applies only to .parquet files")
    if suffix == ".parquet":
        return _open_parquet(path.resolve(), columns)
    if suffix == ".zarr":
        return da.from_zarr(str(path.resolve())).astype(np.float32)
    return _open_npy(path.resolve())


def _open_npy(path: Path) -> Any:
    rows = np.load(path, mmap_mode="r")
    if rows.ndim != 2 or rows.dtype.kind not in "fiub":
        raise ValueError(f"{path} must hold a matrix of numbers, got shape {rows.shape} of {rows.dtype}")
    return _blocks(_read_npy, (str(path),), *rows.shape)


def _open_parquet(path: Path, columns: Sequence[str] | None) -> Any:
    import polars as pl

    table = pl.scan_parquet(path)
    schema = table.collect_schema()
    names = [name for name, kind in schema.items() if kind.is_numeric()] if columns is None else list(columns)
    missing = [name for name in names if name not in schema]
    if missing or not names:
        raise ValueError(f"{path} has no column {missing[0]!r}" if missing else f"{path} has no numeric columns")
    n = int(table.select(pl.len()).collect().item())
    return _blocks(_read_parquet, (str(path), names), n, len(names))


def _blocks(read: Any, source: tuple[Any, ...], n: int, d: int) -> Any:
    rows = max(1, BLOCK_BYTES // (4 * d))
    sizes = tuple(min(rows, n - first) for first in range(0, n, rows))
    return da.map_blocks(
        _read, read, source, rows, chunks=(sizes, (d,)), dtype=np.float32, meta=np.empty((0, 0), np.float32)
    )


def _read(read: Any, source: tuple[Any, ...], rows: int, block_id: tuple[int, int] = (0, 0)) -> Any:
    return read(*source, block_id[0] * rows, rows)


def _read_npy(path: str, first: int, count: int) -> Any:
    rows = np.load(path, mmap_mode="r")
    some = rows[first : first + count]
    if rows.flags.c_contiguous:  # read, since the pages of a mapped file count as memory of the process
        at = rows.offset + first * rows.strides[0]
        some = np.fromfile(path, rows.dtype, some.size, offset=at).reshape(some.shape)
    return np.asarray(some, dtype=np.float32, order="C")


def _read_parquet(path: str, names: list[str], first: int, count: int) -> Any:
    import polars as pl

    frame = pl.scan_parquet(path).select(names).slice(first, count).collect()
    return frame.cast(pl.Float32).fill_null(float("nan")).to_numpy(order="c")
