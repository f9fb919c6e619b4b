"""Into how many parts the rows are divided, how many tasks run at a time, and what of the whole a process holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vicinal.cluster.engine import Engine
from vicinal.cluster.neighbors import search_bytes
from vicinal.cluster.rows import DaskRows
from vicinal.neighbors.cells import MOST_VISITS, cell_count
from vicinal.runtime.memory import readable

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
    most = int(_free(rows.n, engine) // (workers * one))
    if most < (1 if engine.client is None else engine.concurrent):
        needed = workers * (_whole_bytes(rows.n) + one * (1 if engine.client is None else engine.concurrent))
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
