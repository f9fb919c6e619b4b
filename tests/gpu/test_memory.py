"""What searches and fits take of the memory of a device: the estimates, against what the arrays take on the host."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpu.host_device import COMPILER, HostDevice
from numpy.typing import NDArray

import vicinal
from vicinal import Layout, Schedule, find_neighbors, fit_ab, fuzzy_graph
from vicinal.backends import backend_of
from vicinal.backends.cuda import device as memory
from vicinal.backends.cuda import neighbors as cells
from vicinal.backends.cuda.device import Need

CAPACITY = 2**26
Rows = NDArray[np.float32]


@pytest.fixture
def small_host(monkeypatch: pytest.MonkeyPatch) -> HostDevice:
    """Return a device of 64 MiB, whose products are not counted as memory of the process."""
    if COMPILER is None:
        pytest.skip("no C++ compiler to compile the kernels for the host")
    host = HostDevice()
    host.capacity_bytes = host.free_bytes = lambda: CAPACITY
    products = host.half_products

    def counted(heads: Any, rows: Any) -> Any:
        # Only the result is allocated on a GPU; the copies in float32 are those of the host.
        batches, m, _ = heads.shape
        out = np.empty((batches, m, rows.shape[1]), np.float32)
        for one in range(0, m, 64):
            out[:, one : one + 64] = products(heads[:, one : one + 64], rows)
        return out

    host.half_products = counted
    return host


def peak_bytes(work: Callable[[], Any]) -> int:
    """Return the most bytes of arrays that existed at a time during the work."""
    work()  # kernels are compiled and tables of the core are made
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def rows_of(n: int, d: int) -> Rows:
    return np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("d", "k", "metric"), [(16, 5, "cosine"), (16, 15, "euclidean"), (300, 15, "euclidean"), (300, 40, "cosine")]
)
def test_search_takes_no_more_than_its_estimate(
    small_host: HostDevice, monkeypatch: pytest.MonkeyPatch, d: int, k: int, metric: str
) -> None:
    monkeypatch.setattr(cells, "CELL_ROWS", 100)
    X = rows_of(2_000, d)
    backend = backend_of(small_host)
    need = backend.need(d, k, metric)
    search = {True: "search_cells", False: "search_products"}

    def work(by_cells: bool) -> Callable[[], Any]:
        return lambda: getattr(backend.dense_rows(small_host.asarray(X.copy()), metric), search[by_cells])(k)

    for by_cells in (True, False):
        taken = peak_bytes(work(by_cells))
        assert taken <= len(X) * need.search_row + memory.BLOCKS * memory.most_block(CAPACITY)


@pytest.mark.parametrize("k", [5, 15, 40])
def test_graph_and_layout_take_no_more_than_their_estimate(small_host: HostDevice, k: int) -> None:
    X = rows_of(4_000, 8)
    table = find_neighbors(X, k).on(small_host)
    held = sum(table.array(name).nbytes for name in ("index", "distance"))
    graph = fuzzy_graph(table)
    edges = sum(graph.array(name).nbytes for name in ("indptr", "indices", "weights"))
    laid_out = held + edges + peak_bytes(lambda: Layout(graph, X[:, :2], fit_ab(), Schedule(2)))
    assert max(held + peak_bytes(lambda: fuzzy_graph(table)), laid_out) <= len(X) * Need(8, k, streamed=True).row


@pytest.mark.parametrize("capacity", [2**28, 2**32, 80 * 2**30])
@pytest.mark.parametrize("copies", [0, 1, 2])
def test_rows_that_are_said_to_fit_do_fit(capacity: int, copies: int) -> None:
    for d, k in ((2, 15), (50, 15), (784, 90)):
        need = Need(d, k, copies)
        n = need.rows(capacity, capacity)
        assert need.total(n, capacity) <= capacity < need.total(n + 1, capacity)
        group = need.group_rows(10_000, capacity, capacity)
        blocks = memory.BLOCKS * memory.most_block(capacity)
        assert group * need.search_row + 10_000 * 8 * k + blocks <= memory.USABLE * capacity
        # Slightly less memory gives the same groups, so that two fits in a row have the same map.
        assert need.group_rows(10_000, capacity - capacity // 100 - 1, capacity) == need.group_rows(
            10_000, capacity - capacity // 50, capacity
        )


def test_larger_work_needs_more() -> None:
    usual = Need(50, 15)
    assert Need(50, 15, copies=0).row < usual.row < Need(50, 15, copies=2).row
    assert usual.row < Need(50, 90).row
    assert usual.row < Need(784, 15).row
    assert Need(784, 15, streamed=True).row == Need(50, 15, streamed=True).row < usual.row
    assert Need(50, 15, streamed=True, fit=False).row < Need(50, 15, streamed=True).row


def test_cells_are_divided_until_their_products_are_one_block() -> None:
    for block in (2**20, 2**26, 2**31):
        for half_cols in (8, 784, 5000):
            most = cells._most_cell_rows(block, half_cols)
            padded = -(-most // cells.PAD_ROWS) * cells.PAD_ROWS
            assert padded * (4 * padded + 2 * half_cols) <= block or most <= cells.PAD_ROWS
            sizes = np.full(50, most)
            for batch, height in cells._batches(sizes, half_cols, block):
                assert len(batch) == 1 or len(batch) * height * (4 * height + 2 * half_cols) <= block


def test_gpu_out_of_memory_is_an_error_and_the_gpu_stays_usable(
    limited_gpu: Any, gpu: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = rows_of(200_000, 64)
    pool, _ = limited_gpu(120 * 2**20)
    gc.collect()  # what earlier tests left
    used = pool.used_bytes()
    with pytest.raises(MemoryError, match=r"about [0-9]+ rows would fit"):
        vicinal.UMAP(device="cuda", random_state=0).fit(X)
    # The same without the check before the work: memory runs out in the middle of it.
    monkeypatch.setattr("vicinal.neighbors.rows.check_room", lambda *_, **__: None)
    for module in ("vicinal.neighbors.index", "vicinal.estimators.base"):
        monkeypatch.setattr(f"{module}.check_room", lambda *_, **__: None)
    monkeypatch.setattr("vicinal.backends.cuda.CudaBackend.holds_rows", lambda *_: True)
    with pytest.raises(MemoryError, match=r"the memory of cuda:0 is full .*; about [0-9]+ of 200000 rows would fit"):
        vicinal.UMAP(device="cuda", random_state=0).fit(X)
    monkeypatch.undo()
    # These fit only if the memory of the failed fit is free.
    assert np.isfinite(vicinal.UMAP(n_epochs=20, device="cuda", random_state=0).fit_transform(X[:50_000])).all()
    gc.collect()
    assert pool.used_bytes() == used
    few = X[:2_000]
    there, here = (vicinal.UMAP(n_epochs=20, device=where, random_state=0).fit(few) for where in ("cuda", "cpu"))
    np.testing.assert_array_equal(there.embedding_, here.embedding_)


def test_gpu_gives_unused_blocks_back_at_a_limit(limited_gpu: Any, gpu: Any) -> None:
    pool, _ = limited_gpu(64 * 2**20)
    with gpu.active():
        for size in (40, 50, 60):  # MiB: each fits only if the blocks of the one before are given back
            gpu.xp.empty(size * 2**20, np.uint8)
    assert pool.total_bytes() <= pool.get_limit()
