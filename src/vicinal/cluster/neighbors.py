"""Rows -> neighbor table, in parts: rows go to cells, cells are searched, lists come back to the rows."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.cluster.engine import Engine, Kept, Piece, Shelf, picked, task
from vicinal.cluster.rows import DaskRows, Span, read_block, scan_block
from vicinal.neighbors.cells import (
    MOST_VISITS,
    CellLists,
    Cells,
    cell_count,
    joined_rows,
    merged_lists,
    sample_numbers,
    search_cell,
)
from vicinal.neighbors.metrics import Rows

# Cells are searched in tasks of about SEARCH_BYTES of rows, at least TASKS_PER_THREAD for each thread.
SEARCH_BYTES, TASKS_PER_THREAD, MOST_SEARCH_TASKS = 1 << 25, 8, 256
LISTS = tuple(one.name for one in fields(CellLists))
ROW_GRAIN = 4096  # the bounds of parts are multiples of this


@dataclass(frozen=True)
class Search:
    """What a search finds: the neighbors of the rows, compared by a metric, from a seed."""

    n: int
    k: int
    metric: Any = "euclidean"
    metric_kwds: dict[str, Any] | None = None
    seed: int = 0


@dataclass(frozen=True, eq=False)
class SearchPlan:
    """What the tasks of a search have in common.

    Task g of the search has the cells ``groups[g] : groups[g + 1]``, part p the rows ``bounds[p] : bounds[p + 1]``.
    """

    search: Search
    groups: NDArray[np.int64]
    bounds: NDArray[np.int64]
    shelf: Shelf
    n_jobs: int


@dataclass(frozen=True, eq=False)
class NeighborParts:
    """The neighbor table in parts.

    Part p has the rows ``bounds[p] : bounds[p + 1]``. A part keeps the arrays "index" and "distance" [rows, k],
    "first" (the first row of the same content) and "landmark" (the nearest row of the sample). ``cells`` is a task.
    """

    bounds: NDArray[np.int64]
    parts: list[Any]
    cells: Any
    k: int


def part_bounds(n: int, parts: int) -> NDArray[np.int64]:
    """Divide n rows into about so many parts of nearly equal size, none of them empty."""
    grains = -(-n // ROW_GRAIN)
    parts = max(1, min(parts, grains))
    return np.minimum(np.arange(parts + 1) * grains // parts * ROW_GRAIN, n)


def _cell_groups(count: int, rows: DaskRows, engine: Engine) -> NDArray[np.int64]:
    """Divide ``count`` cells into groups, each for one task."""
    routed = 4.0 * rows.n * rows.d * MOST_VISITS
    least = TASKS_PER_THREAD * engine.threads * len(engine.workers)
    tasks = min(count, MOST_SEARCH_TASKS, max(least, int(np.ceil(routed / SEARCH_BYTES))))
    return np.arange(tasks + 1) * count // tasks


def find_neighbors(rows: DaskRows, search: Search, parts: int, engine: Engine) -> NeighborParts:
    """Find the k nearest rows of every row.

    The result depends on the rows and the seed, not on chunks, parts or workers.
    """
    bounds, jobs, shelf = part_bounds(rows.n, parts), engine.task_jobs, engine.shelf
    count = cell_count(rows.n, rows.d)
    samples = engine.run(
        [
            task(_scan, "scan")(block, span, count, rows.n, search.seed)
            for block, span in zip(rows.blocks, rows.spans, strict=True)
        ]
    )
    cells = engine.run([task(_make_cells, "cells")(samples, count, search, engine.threads)])[0]
    groups = _cell_groups(count, rows, engine)
    plan = engine.share(SearchPlan(search, groups, bounds, shelf, jobs))
    routed = engine.run(
        [task(_route, "route")(block, span, cells, plan) for block, span in zip(rows.blocks, rows.spans, strict=True)]
    )
    found = engine.run(
        [task(_search_group, "search")(engine.column(routed, g), g, cells, plan) for g in range(len(groups) - 1)]
    )
    del routed
    merged = engine.run([task(_merge, "merge")(engine.column(found, p), p, plan) for p in range(len(bounds) - 1)])
    return NeighborParts(bounds, merged, cells, search.k)


def _scan(chunks: list[Any], span: Span, count: int, n: int, seed: int) -> Rows:
    return scan_block(chunks, span, sample_numbers(n, count, seed))


def _make_cells(samples: list[Rows], count: int, search: Search, n_jobs: int) -> Cells:
    return Cells.of(joined_rows(samples), count, search.metric, search.metric_kwds, search.seed, n_jobs)


def _route(chunks: list[Any], span: Span, cells: Cells, plan: SearchPlan) -> list[Piece]:
    """Send the rows of a block to their cells: one piece for each group of cells."""
    rows = read_block(chunks)
    numbers = np.concatenate(
        [np.arange(first, first + chunk.shape[0]) for chunk, first in zip(chunks, span.firsts, strict=True)]
    )
    visited, counts = cells.visits(rows, plan.n_jobs)
    row, rank = np.nonzero(counts)
    cell = visited[row, rank]
    order = np.argsort(cell, kind="stable")
    row, rank, cell = row[order], rank[order], cell[order]
    arrays = {"row": numbers[row].astype(np.int32), "own": rank == 0, "cell": cell}
    return plan.shelf.pieces(f"routed-{span.chunks[0]}", arrays, rows[row], np.searchsorted(cell, plan.groups))


def _search_group(routed: list[Any], group: int, cells: Cells, plan: SearchPlan) -> list[Piece]:
    """Search the cells of a group one after the other; return one piece for each part of the rows."""
    pieces, k, groups = picked(routed, group), plan.search.k, plan.groups
    cell = np.concatenate([piece.load("cell") for piece in pieces])
    numbers = np.concatenate([piece.load("row") for piece in pieces])
    own = np.concatenate([piece.load("own") for piece in pieces])
    rows = joined_rows([piece.load_rows() for piece in pieces if piece.stop > piece.first] or [pieces[0].load_rows()])
    order = np.lexsort((numbers, cell))
    begin = np.searchsorted(cell[order], np.arange(groups[group], groups[group + 1] + 1))
    lists = []
    for c, first, stop in zip(range(groups[group], groups[group + 1]), begin[:-1], begin[1:], strict=True):
        members = order[first:stop]
        if len(members):
            lists.append(search_cell(cells, c, numbers[members], own[members], rows[members], k, plan.n_jobs))
    if not lists:
        none, nowhere = np.empty(0, np.int32), np.empty(0, np.float32)
        lists = [CellLists(none, none.reshape(0, k), nowhere.reshape(0, k), none, none, nowhere)]
    arrays = {name: np.concatenate([getattr(one, name) for one in lists]) for name in LISTS}
    order = np.argsort(arrays["rows"], kind="stable")
    arrays = {name: array[order] for name, array in arrays.items()}
    return plan.shelf.pieces(f"lists-{group}", arrays, None, np.searchsorted(arrays["rows"], plan.bounds))


def _merge(found: list[Any], part: int, plan: SearchPlan) -> Kept:
    """Merge the lists of the rows of a part."""
    lists = [CellLists(*(piece.load(name) for name in LISTS)) for piece in picked(found, part)]
    table, first, landmark = merged_lists(int(plan.bounds[part]), int(plan.bounds[part + 1]), lists, plan.search.k)
    arrays = {"index": table.index, "distance": table.distance, "first": first, "landmark": landmark}
    return plan.shelf.keep(f"table-{part}", arrays)
