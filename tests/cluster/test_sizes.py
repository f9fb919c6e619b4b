"""How many tasks run at a time, and into how many parts rows are divided."""

from __future__ import annotations

import os

import dask.array as da
import numpy as np
import pytest

from vicinal.cluster import neighbors as sizes
from vicinal.cluster.engine import Engine
from vicinal.cluster.rows import DaskRows

K = 15


def rows_of(n: int, columns: int = 16, chunk: int = 10_000) -> DaskRows:
    return DaskRows.of(da.zeros((n, columns), chunks=(chunk, -1), dtype=np.float32))


def test_all_processors_are_used() -> None:
    assert Engine.current(-1).concurrent == len(os.sched_getaffinity(0))
    assert Engine.current(3).concurrent == 3


def test_memory_limit_decides_how_many_tasks_run_at_a_time() -> None:
    rows = rows_of(1_000_000)
    wide, narrow = (sizes.with_room(rows, K, Engine.current(16, limit)) for limit in (4e9, 4e8))
    assert (wide.concurrent, wide.task_jobs) == (16, 1)
    assert narrow.concurrent < 16
    assert narrow.concurrent * narrow.task_jobs >= 8  # the other threads help within the tasks
    with pytest.raises(MemoryError, match=r"at least .* more than memory_limit"):
        sizes.with_room(rows, K, Engine.current(16, 2.5e8))


def test_parts_of_all_threads_together_keep_within_their_work() -> None:
    rows = rows_of(2_000_000)
    for engine in (Engine.current(1), Engine.current(4)):
        parts = sizes.part_count(rows, K, engine)
        work = rows.n / parts * K * sizes.PART_BYTES * engine.concurrent
        assert work <= 1.001 * sizes.PART_WORK
    limited = sizes.with_room(rows, K, Engine.current(4, 1e9))
    work = rows.n / sizes.part_count(rows, K, limited) * K * sizes.PART_BYTES * limited.concurrent
    assert work < 1e9 - sizes.PROCESS_BYTES - sizes.ROW_BYTES * rows.n


class KilledWorker(Exception):
    """Dask's error by name, without a cluster."""


class FutureCancelledError(Exception):
    """Dask's error by name, without a cluster."""


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KilledWorker("task"), "more memory than they may use: make the chunks smaller"),
        (FutureCancelledError("key"), "its scheduler was restarted or its client was closed: fit again"),
    ],
    ids=["killed", "canceled"],
)
def test_work_that_dask_has_lost_is_explained_in_one_sentence(error: Exception, message: str) -> None:
    engine = Engine.current(1)
    with pytest.raises(RuntimeError, match=message) as raised, engine.discarded_on_error():
        raise error
    assert "\n" not in str(raised.value)
    assert raised.value.__cause__ is error
    with pytest.raises(ZeroDivisionError), engine.discarded_on_error():
        raise ZeroDivisionError
