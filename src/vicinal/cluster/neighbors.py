"""Rows -> neighbor table, in parts: rows go to cells, cells are searched, lists come back to the rows."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.cluster.engine import Engine, picked, task
from vicinal.cluster.rows import DaskRows, Span, read_block, scan_block
from vicinal.cluster.store import Piece, Pieces, Store, Stored, joined_piece_rows, joined_pieces
from vicinal.neighbors.cells import (
    MOST_VISITS,
    CellLists,
    Cells,
    cell_count,
    joined_rows,
    merged_lists,
    search_cell,
)
from vicinal.neighbors.metrics import Rows
from vicinal.runtime.sizes import readable

# Cells are searched in tasks of about SEARCH_BYTES of rows, at least TASKS_PER_THREAD for each thread.
SEARCH_BYTES, TASKS_PER_THREAD, MOST_SEARCH_TASKS = 1 << 25, 8, 2048
LISTS = tuple(one.name for one in fields(CellLists))
ROUTED = np.dtype([("row", np.int32), ("cell", np.int32), ("own", np.bool_)])
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
    """Divide n rows into about ``parts`` parts of nearly equal size, none of them empty."""
    grains = -(-n // ROW_GRAIN)
    parts = max(1, min(parts, grains))
    return np.minimum(np.arange(parts + 1) * grains // parts * ROW_GRAIN, n)


def search_bytes(engine: Engine) -> int:
    """Return the size of the rows that a task searches, if no cell is larger: less if memory is limited."""
    return SEARCH_BYTES if engine.memory is None else SEARCH_BYTES // 2


def _cell_groups(count: int, rows: DaskRows, engine: Engine) -> NDArray[np.int64]:
    """Divide ``count`` cells into groups, each for one task."""
    routed = 4.0 * rows.n * rows.d * MOST_VISITS
    least = TASKS_PER_THREAD * engine.threads * len(engine.workers)
    tasks = min(count, MOST_SEARCH_TASKS, max(least, int(np.ceil(routed / search_bytes(engine)))))
    return np.arange(tasks + 1) * count // tasks


def search_parts(rows: DaskRows, search: Search, parts: int, engine: Engine) -> NeighborParts:
    """Find the k nearest rows of every row.

    The result depends on the rows and the seed, not on chunks, parts or workers.
    """
    bounds, store = part_bounds(rows.n, parts), engine.store
    count, blocks = cell_count(rows.n, rows.d), list(zip(rows.blocks, rows.spans, strict=True))
    samples = engine.run(
        [task(scan_block, "scan")(*block, rows.declared, rows.shape, count, search.seed) for block in blocks]
    )
    cells = engine.run([task(_make_cells, "cells")(samples, count, search, engine.alone_jobs)])[0]
    groups = _cell_groups(count, rows, engine)
    tasks = engine.share(SearchTasks(search.k, groups, bounds, store, engine.task_jobs))
    routed = engine.columns(engine.keep([task(SearchTasks.route, "route")(tasks, *block, cells) for block in blocks]))
    found = engine.columns(
        engine.keep([task(SearchTasks.search, "search")(tasks, routed(g), g, cells) for g in range(len(groups) - 1)])
    )
    store.discard("routed")
    del routed
    merged = engine.keep([task(SearchTasks.merge, "merge")(tasks, found(p), p) for p in range(len(bounds) - 1)])
    store.discard("lists")
    return NeighborParts(bounds, merged, cells, search.k)


def _make_cells(samples: list[Rows], count: int, search: Search, n_jobs: int) -> Cells:
    return Cells.of(joined_rows(samples), count, search.metric, search.metric_kwds, search.seed, n_jobs)


@dataclass(frozen=True, eq=False)
class SearchTasks:
    """The tasks of a search for the ``k`` nearest rows.

    Task g of the search has the cells ``groups[g] : groups[g + 1]``, part p the rows ``bounds[p] : bounds[p + 1]``.
    """

    k: int
    groups: NDArray[np.int64]
    bounds: NDArray[np.int64]
    store: Store
    n_jobs: int

    def route(self, chunks: list[Any], span: Span, cells: Cells) -> Pieces | list[Piece]:
        """Send the rows of a block to their cells: one piece for each group of cells."""
        rows, first = read_block(chunks), span[0][1]
        visited, counts = cells.visits(rows, self.n_jobs)
        row, rank = np.nonzero(counts)
        cell = visited[row, rank]
        order = np.argsort(cell, kind="stable")
        row, rank, cell = row[order], rank[order], cell[order]
        facts = np.empty(len(row), ROUTED)
        facts["row"], facts["cell"], facts["own"] = first + row, cell, rank == 0
        return self.store.pieces(f"routed-{first}", {"facts": facts}, np.searchsorted(cell, self.groups), rows, row)

    def search(self, routed: list[Any], group: int, cells: Cells) -> Pieces | list[Piece]:
        """Search the cells of a group one after the other; return one piece for each part of the rows."""
        pieces, every = picked(routed, group), np.arange(self.groups[group], self.groups[group + 1] + 1)
        facts, rows = joined_pieces(pieces, "facts"), joined_piece_rows(pieces)
        order = np.lexsort((facts["row"], facts["cell"]))
        facts = facts[order]
        bounds = np.searchsorted(facts["cell"], every).tolist()
        lists = np.empty(len(facts), _list_type(self.k))
        for cell, (first, stop) in zip(every.tolist(), pairwise(bounds), strict=False):
            if stop > first:
                row, own = facts["row"][first:stop].copy(), facts["own"][first:stop]
                found = search_cell(cells, cell, row, own, rows[order[first:stop]], self.k, self.n_jobs)
                for name in LISTS:
                    lists[name][first:stop] = getattr(found, name)
        del rows
        lists = lists[np.argsort(lists["rows"], kind="stable")]
        return self.store.pieces(f"lists-{group}", {"lists": lists}, np.searchsorted(lists["rows"], self.bounds))

    def merge(self, found: list[Any], part: int) -> Stored:
        """Merge the lists of the rows of a part."""
        lists = joined_pieces(picked(found, part), "lists")
        every = CellLists(*(lists[name] for name in LISTS))
        table, first, landmark = merged_lists(int(self.bounds[part]), int(self.bounds[part + 1]), every, self.k)
        arrays = {"index": table.index, "distance": table.distance, "first": first, "landmark": landmark}
        return self.store.keep(f"table-{part}", arrays)


def _list_type(k: int) -> np.dtype[Any]:
    """Return the type of a line of :class:`CellLists`, so that a piece of it is read at once."""
    kinds = (np.int32, (np.int32, k), (np.float32, k), np.int32, np.int32, np.float32)
    return np.dtype(list(zip(LISTS, kinds, strict=True)))


# What a part takes at most while it is worked on, per row and neighbor. Without a memory limit the parts that a process
# works on at the same time take up to PART_WORK bytes, unless there would be more than MOST_PARTS: every part takes
# results of all the others. A part has at least LEAST_ROWS rows, and FEWEST_ROWS if the limit needs it.
PART_BYTES, PART_WORK, MOST_PARTS, LEAST_ROWS, FEWEST_ROWS = 100, 100e6, 2048, 16_384, 4096
# What a process takes before any rows: Python, NumPy, SciPy, Dask; and per row of the whole: two snapshots of two
# coordinates, landmarks and class numbers.
PROCESS_BYTES, ROW_BYTES = 2.2e8, 28
# A block of rows is held up to BLOCK_COPIES times: as it was read, and as float32. A cell is held CELL_COPIES times
# while it is searched, and may be twice as large as the mean.
BLOCK_COPIES, CELL_COPIES = 2, 2


def with_room(rows: DaskRows, k: int, engine: Engine) -> Engine:
    """Return the engine with as many tasks at a time as the memory limit allows; each of them has the other threads.

    Raise MemoryError if not even one has room.
    """
    if engine.memory is None:
        return engine
    workers = len(engine.workers)
    cell = 4.0 * rows.d * min(rows.n, 2 * MOST_VISITS * rows.n / cell_count(rows.n, rows.d))
    one = max(
        BLOCK_COPIES * rows.largest_chunk, search_bytes(engine) + CELL_COPIES * cell, FEWEST_ROWS * k * PART_BYTES
    )
    most, at_once = int(_free(rows.n, engine) // (workers * one)), 1 if engine.client is None else engine.concurrent
    if most < at_once:
        needed = workers * (_whole_bytes(rows.n) + one * at_once)
        raise MemoryError(
            f"fitting {rows.n} rows of {rows.d} columns in chunks of up to {readable(rows.largest_chunk)} with "
            f"{workers} processes takes at least {readable(needed)}, more than memory_limit={readable(engine.memory)}"
        )
    return engine if engine.client is not None else replace(engine, task_jobs=-(-engine.threads // most))


def part_count(rows: DaskRows, k: int, engine: Engine) -> int:
    """Return the number of parts: as many for each worker, and as many as keep parts within the memory limit."""
    workers, work, at_once = len(engine.workers), float(rows.n * k * PART_BYTES), engine.concurrent
    if engine.memory is not None:
        return workers * int(np.ceil(work * at_once / (0.6 * _free(rows.n, engine))))
    part = max(PART_WORK / at_once, float(LEAST_ROWS * k * PART_BYTES))
    return workers * int(np.ceil(min(MOST_PARTS, work / part) / workers))


def edge_budget(n: int, largest: int, engine: Engine) -> float:
    """Return the bytes of edges that a process may hold during the layout.

    ``largest`` is the size of the largest part of the edges, which must fit as well if it is not held.
    """
    if engine.memory is None:
        return float("inf")
    return max(0.0, 0.9 * _free(n, engine) / len(engine.workers) - 1.2 * largest)


def _free(n: int, engine: Engine) -> float:
    """Return what is left of the memory limit for the tasks of all processes together."""
    assert engine.memory is not None
    return engine.memory - len(engine.workers) * _whole_bytes(n)


def _whole_bytes(n: int) -> float:
    """Return what every process holds of the whole."""
    return PROCESS_BYTES + ROW_BYTES * n
