"""Into how many parts the rows are divided, and what of them a process holds."""

from __future__ import annotations

import numpy as np

from vicinal.cluster.engine import Engine
from vicinal.cluster.rows import DaskRows
from vicinal.neighbors.cells import MOST_VISITS, cell_count
from vicinal.runtime.memory import readable

# What a part takes at most while it is worked on, per row and neighbor. Without a memory limit a part takes up to
# PART_WORK bytes, unless there would be more than MOST_PARTS: every part takes results of all the others.
PART_BYTES, PART_WORK, MOST_PARTS = 175, 130e6, 256
# What a process takes before any rows: Python, NumPy, SciPy, Dask; and per row of the whole: two snapshots of two
# coordinates, landmarks and class numbers.
PROCESS_BYTES, ROW_BYTES = 2.2e8, 28
# A block of rows is held up to BLOCK_COPIES times: as it was read, as float32, and sorted by cells. A cell is held
# CELL_COPIES times while it is searched, and may be twice as large as the mean.
BLOCK_COPIES, CELL_COPIES = 5, 3


def part_count(rows: DaskRows, k: int, engine: Engine) -> int:
    """Return the number of parts: as many for each worker, and as many as keep a part within the memory limit."""
    workers, work = len(engine.workers), float(rows.n * k * PART_BYTES)
    if engine.memory is None:
        return workers * int(np.ceil(min(MOST_PARTS, work / PART_WORK) / workers))
    cell = 4.0 * rows.d * min(rows.n, 2 * MOST_VISITS * rows.n / cell_count(rows.n, rows.d))
    fixed = workers * (_whole_bytes(rows.n) + max(BLOCK_COPIES * rows.largest_chunk, CELL_COPIES * cell))
    free = engine.memory - fixed
    least = 4096 * k * PART_BYTES * workers
    if free < least:
        raise MemoryError(
            f"fitting {rows.n} rows of {rows.d} columns in chunks of up to {readable(rows.largest_chunk)} with "
            f"{workers} processes takes at least {readable(fixed + least)}, "
            f"more than memory_limit={readable(engine.memory)}"
        )
    return workers * int(np.ceil(work / (0.6 * free)))


def edge_budget(n: int, largest: int, engine: Engine) -> float:
    """Return the bytes of edges that a process may hold during the layout.

    ``largest`` is the size of the largest part of the edges, which must fit as well if it is not held.
    """
    if engine.memory is None:
        return float("inf")
    return max(0.0, 0.9 * (engine.memory / len(engine.workers) - _whole_bytes(n)) - 1.2 * largest)


def _whole_bytes(n: int) -> float:
    """Return what every process holds of the whole."""
    return PROCESS_BYTES + ROW_BYTES * n
