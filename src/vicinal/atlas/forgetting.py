"""Remove rows from all files of an atlas, also from those of old versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.atlas.tables import Placed, check_ids, decode_places, read_entries, without_rows
from vicinal.atlas.versions import Folder, Manifest


def rows_to_forget(
    folder: Folder,
    manifests: Sequence[Manifest],
    placed: Placed,
    *,
    ids: Any = None,
    before: str | None = None,
    keep_last: int | None = None,
) -> NDArray[np.int64]:
    """Return the numbers of rows of any version: those with some ids, from before a time, or all but the last.

    ``placed`` are the rows of the newest version, of which ``keep_last`` keeps the latest.
    """
    chunks = {chunk.file: chunk for one in manifests for chunk in one.chunks}
    entries = read_entries([folder.object(name) for name in chunks])
    if keep_last is not None:
        if isinstance(keep_last, bool) or not isinstance(keep_last, int | np.integer) or keep_last < 1:
            raise ValueError(f"keep_last must be a whole number from 1 on, got {keep_last!r}")
        return np.setdiff1d(entries.row, np.sort(placed.row)[-keep_last:])
    if before is not None:
        old = [folder.object(one.file) for one in chunks.values() if one.at < before]
        return np.unique(read_entries(old).row) if old else np.empty(0, dtype=np.int64)
    given = list(ids)
    wanted = set(check_ids(given, len(given)).tolist())
    unknown = wanted - set(entries.id.tolist())
    if unknown:
        raise ValueError(f"ids has {min(unknown, key=str)!r}, which no row of any version has as its id")
    return np.unique(entries.row[[one in wanted for one in entries.id.tolist()]])


def without(folder: Folder, manifests: Sequence[Manifest], numbers: NDArray[np.int64]) -> list[Manifest]:
    """Store all files without some rows, and return the manifests that name them.

    Versions of which no row is left are dropped. Neighbor tables name rows, so they go too: the neighbors of the rows
    that are left are searched again when they are needed.
    """
    renamed: dict[str, str] = {}
    kept = []
    for one in manifests:
        for name in {*one.pieces, *(chunk.file for chunk in one.chunks)} - renamed.keys():
            content = without_rows(folder.object(name), numbers)
            renamed[name] = name if content is None else folder.put(content, ".parquet")
        pieces = tuple(renamed[name] for name in one.pieces)
        if not any(len(decode_places(folder.object(name))) for name in pieces):
            continue
        left = [(chunk, len(read_entries([folder.object(renamed[chunk.file])]).row)) for chunk in one.chunks]
        chunks = tuple(replace(chunk, file=renamed[chunk.file], rows=rows) for chunk, rows in left if rows)
        table = one.table if pieces[0] == one.pieces[0] else None
        kept.append(replace(one, pieces=pieces, chunks=chunks, table=table))
    return kept
