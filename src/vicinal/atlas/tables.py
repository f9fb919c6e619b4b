"""Rows and places as Parquet files.

A file of rows has the columns ``_row`` (the number of the row in the atlas), ``_id``, ``_key`` and ``_note`` (hashes of
its values and of its further columns), ``_vector`` (its values), and the further columns by their own names. A file of
places has ``_row``, the coordinates, and the columns of :class:`Placed`.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.files.tabular_files import one_file

if TYPE_CHECKING:
    import polars as pl

    from vicinal.files.data_table import Column

OWN = ("_row", "_id", "_key", "_note", "_vector")
# Territory of rows that fit nowhere and have no company, and of rows that fit into the map.
LONE, INSIDE = -1, 0
NOWHERE = np.float32(np.nan)  # the coordinates of a row that is gone

Rows = NDArray[Any]


def require_polars() -> Any:
    """Return polars, or raise ImportError that names the extra."""
    try:
        import polars
    except ImportError as error:
        raise ImportError("an atlas stores Parquet files: pip install 'vicinal[app]'") from error
    return polars


@dataclass(frozen=True)
class Placed:
    """Where rows are in a version: one entry per row in each array.

    Attributes
    ----------
    row : int64 array
        Numbers of the rows in the atlas.
    places : float32 array [rows, n_components]
    area : int32 array
        The area of each row; -1 for none.
    territory : int32 array
        0 for rows that fit into the map of the last fit, the number of their island in new territory, or -1 for
        rows that have no company there.
    cost : float32 array
        How long the edges of a row are in the map: mean attraction of its edges, by their weights.
    """

    row: NDArray[np.int64]
    places: NDArray[np.float32]
    area: NDArray[np.int32]
    territory: NDArray[np.int32]
    cost: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.row)

    def take(self, which: Any) -> Placed:
        """Return some of the rows."""
        return Placed(*(getattr(self, one.name)[which] for one in fields(self)))

    def followed_by(self, later: Placed) -> Placed:
        """Return these rows changed by a later piece: its rows replace equal numbers, or are gone if they are NaN."""
        kept = self.take(~np.isin(self.row, later.row))
        new = later.take(np.isfinite(later.places[:, 0]))
        return joined([kept, new])

    @classmethod
    def gone(cls, rows: NDArray[np.int64], width: int) -> Placed:
        """Return the piece that removes rows."""
        n = len(rows)
        nothing, zero = np.full((n, width), NOWHERE, dtype=np.float32), np.zeros(n, dtype=np.int32)
        return cls(rows.astype(np.int64), nothing, zero - 1, zero, np.zeros(n, dtype=np.float32))


def joined(pieces: Sequence[Placed]) -> Placed:
    """Return the rows of several pieces, one after the other."""
    return Placed(*(np.concatenate([getattr(one, name.name) for one in pieces]) for name in fields(Placed)))


def encode_places(placed: Placed) -> bytes:
    """Return places as the bytes of a Parquet file."""
    pl = require_polars()
    columns: dict[str, Any] = {"_row": placed.row}
    columns |= {f"d{a + 1}": np.ascontiguousarray(placed.places[:, a]) for a in range(placed.places.shape[1])}
    columns |= {name: getattr(placed, name) for name in ("area", "territory", "cost")}
    return _parquet(pl.DataFrame(columns))


def decode_places(path: Path) -> Placed:
    """Read a file of places."""
    frame = require_polars().read_parquet(one_file(path))
    axes = [name for name in frame.columns if name[0] == "d" and name[1:].isdecimal()]
    places = np.column_stack([frame[name].to_numpy() for name in axes])
    return Placed(
        frame["_row"].to_numpy(),
        np.ascontiguousarray(places, dtype=np.float32),
        *(frame[name].to_numpy() for name in ("area", "territory", "cost")),
    )


@dataclass(frozen=True)
class Entries:
    """Numbers, ids and hashes of stored rows, without their values."""

    row: NDArray[np.int64]
    id: NDArray[Any]
    key: NDArray[np.uint64]
    note: NDArray[np.uint64]

    def of(self, rows: NDArray[np.int64]) -> Entries:
        """Return the entries of some rows, by their numbers."""
        order = np.argsort(self.row, kind="stable")
        at = order[np.searchsorted(self.row, rows, sorter=order)]
        return Entries(self.row[at], self.id[at], self.key[at], self.note[at])


def encode_rows(entries: Entries, X: Rows, columns: pl.DataFrame) -> bytes:
    """Return rows as the bytes of a Parquet file."""
    pl = require_polars()
    bad = [name for name in columns.columns if name in OWN]
    if bad:
        raise ValueError(f"columns must not have the name {bad[0]!r}: it is used for the rows of the atlas")
    stored = X.view(np.uint16) if X.dtype == np.float16 else X
    own = {"_row": entries.row, "_id": entries.id.tolist(), "_key": entries.key, "_note": entries.note}
    frame = pl.DataFrame(own).with_columns(pl.Series("_vector", stored, dtype=pl.Array(_kind(stored), X.shape[1])))
    return _parquet(pl.concat([frame, columns], how="horizontal") if columns.width else frame)


def read_entries(paths: Sequence[Path]) -> Entries:
    """Read numbers, ids and hashes of the rows of several files."""
    pl = require_polars()
    frame = pl.concat([pl.read_parquet(one_file(path), columns=list(OWN[:4])) for path in paths])
    row, key, note = (frame[name].to_numpy() for name in ("_row", "_key", "_note"))
    return Entries(row, as_ids(frame["_id"].to_list()), key, note)


def read_vectors(paths: Sequence[Path], rows: NDArray[np.int64], dtype: str) -> Rows:
    """Read the values of some rows, by their numbers, in that order."""
    pl = require_polars()
    out: Rows | None = None
    for path in paths:
        numbers = pl.read_parquet(one_file(path), columns=["_row"])["_row"].to_numpy()
        wanted = np.flatnonzero(np.isin(rows, numbers))
        if not len(wanted):
            continue
        order = np.argsort(numbers, kind="stable")
        at = order[np.searchsorted(numbers, rows[wanted], sorter=order)]
        values = pl.read_parquet(one_file(path), columns=["_vector"])["_vector"].to_numpy()
        values = values.view(np.float16) if dtype == "float16" else values
        if out is None:
            out = np.empty((len(rows), values.shape[1]), dtype=dtype)
        out[wanted] = values[at]
    if out is None:
        raise ValueError("there are no rows")
    return out


def read_columns(paths: Sequence[Path], rows: NDArray[np.int64]) -> pl.DataFrame:
    """Read the further columns of some rows, by their numbers, in that order."""
    pl = require_polars()
    frames = []
    for path in paths:
        frames.append(pl.scan_parquet(one_file(path)).drop(OWN[1:], strict=False).collect())
    frame = pl.concat(frames, how="diagonal_relaxed")
    order = np.argsort(frame["_row"].to_numpy(), kind="stable")
    at = order[np.searchsorted(frame["_row"].to_numpy(), rows, sorter=order)]
    return _frame((frame[at.tolist()] if len(rows) else frame.clear()).drop("_row"))


def without_rows(path: Path, gone: NDArray[np.int64]) -> bytes | None:
    """Return a file of rows or places without some rows; None if it has none of them."""
    pl = require_polars()
    numbers = pl.read_parquet(one_file(path), columns=["_row"])["_row"].to_numpy()
    kept = ~np.isin(numbers, gone)
    return None if kept.all() else _parquet(pl.read_parquet(one_file(path)).filter(pl.Series(kept)))


def as_ids(values: Any) -> NDArray[Any]:
    """Return ids as an array of whole numbers or of texts; raise for any other type and for missing ids."""
    given = [one.item() if isinstance(one, np.generic) else one for one in values]
    kinds = {type(one) for one in given}
    if kinds - {int, str} or len(kinds) > 1:
        at = next((i for i, one in enumerate(given) if type(one) not in (int, str)), None)
        if at is None:
            raise TypeError("ids must all be texts or all be whole numbers")
        raise TypeError(f"ids must be texts or whole numbers, got {given[at]!r} for row {at}")
    return np.array(given, dtype=np.int64 if int in kinds else object)


def check_ids(ids: Any, n: int, name: str = "ids") -> NDArray[Any]:
    """Return checked ids of ``n`` rows, each different from the others."""
    found = as_ids(ids)
    if len(found) != n:
        raise ValueError(f"{name} must have an entry for each of {n} rows, got {len(found)}")
    seen: dict[Any, int] = {}
    for row, one in enumerate(found.tolist()):
        if seen.setdefault(one, row) != row:
            raise ValueError(f"{name} must differ, but rows {seen[one]} and {row} both have {one!r}")
    return found


def as_columns(columns: Any, n: int) -> pl.DataFrame:
    """Return further columns of ``n`` rows as a frame: from a data frame, a mapping, or the columns of a table."""
    pl = require_polars()
    frame: Any
    if columns is None:
        frame = pl.DataFrame()
    elif isinstance(columns, pl.DataFrame):
        frame = columns
    elif isinstance(columns, Mapping):
        frame = pl.DataFrame({str(name): np.asarray(one).tolist() for name, one in columns.items()}, strict=False)
    elif hasattr(columns, "columns"):
        frame = pl.DataFrame({str(name): columns[name].tolist() for name in columns.columns}, strict=False)
    else:
        raise TypeError(f"columns must be a data frame or a mapping of names to values, got {type(columns).__name__}")
    if frame.width and frame.height != n:
        raise ValueError(f"columns must have a value for each of {n} rows, got {frame.height}")
    return _frame(frame)


def columns_of_table(columns: Sequence[Column]) -> dict[str, list[Any]]:
    """Return the columns of a table that are neither features nor ids, by name."""
    from vicinal.files.data_table import Role

    roles = (Role.FEATURE, Role.ID, Role.IGNORED)
    return {
        one.name: np.asarray(one.values).tolist() for one in columns if one.values is not None and one.role not in roles
    }


def notes(columns: pl.DataFrame, n: int) -> NDArray[np.uint64]:
    """Return a hash of the further columns of each row."""
    if not columns.width:
        return np.zeros(n, dtype=np.uint64)
    names = sorted(columns.columns)
    digests = (_digest(row) for row in columns[names].iter_rows())
    return np.fromiter(digests, dtype=np.uint64, count=n)


def _digest(row: tuple[Any, ...]) -> int:
    text = json.dumps(row, default=str)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _frame(frame: Any) -> pl.DataFrame:
    """Name the type of a frame, which polars' functions return as Any."""
    found: pl.DataFrame = frame
    return found


def _kind(X: Rows) -> Any:
    pl = require_polars()
    kinds = {"float32": pl.Float32, "uint16": pl.UInt16, "uint8": pl.UInt8, "int8": pl.Int8}
    return kinds[X.dtype.name]


def _parquet(frame: pl.DataFrame) -> bytes:
    made = io.BytesIO()
    frame.write_parquet(made, compression="zstd", statistics=False)
    return made.getvalue()
