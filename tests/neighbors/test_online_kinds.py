"""OnlineNeighbors of sparse rows and by functions, and after calls that failed or were interrupted."""

from __future__ import annotations

import signal
from functools import partial
from typing import Any

import numpy as np
import pytest
from interrupting import interrupted_at
from numpy.typing import NDArray
from scipy import sparse

from vicinal import OnlineNeighbors, find_neighbors
from vicinal.neighbors.metrics import METRICS
from vicinal.neighbors.online import OnlineOptions

Rows = NDArray[np.float32]
FEW = OnlineOptions(exact_rows=200)


def counts(n: int, d: int, seed: int = 0) -> Any:
    """Return sparse rows of counts, in groups that share most of their columns."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(d, 0.05), size=12)
    rows = [rng.multinomial(40, topics[rng.integers(12)]) for _ in range(n)]
    return sparse.csr_matrix(np.array(rows, dtype=np.float32))


def streamed(X: Any, metric: Any, batch: int = 150, **more: Any) -> OnlineNeighbors:
    online = OnlineNeighbors(8, metric, **more)
    for first in range(0, X.shape[0], batch):
        online.insert(X[first : first + batch])
        online.step()
    return online


def recall(online: OnlineNeighbors, X: Any, **more: Any) -> float:
    last = find_neighbors(X, online.k, method="exact", **more).distance[:, -1:]
    return float(np.mean(online.table().distance[:, 1:] <= last * 1.0001 + 1e-6))


@pytest.mark.parametrize("metric", sorted(name for name in METRICS if METRICS[name].sparse))
def test_sparse_rows_have_the_neighbors_of_dense_ones(metric: str) -> None:
    X = counts(300, 90)
    kwds: dict[str, Any] | None = {"w": np.arange(90) + 1.0} if metric == "wminkowski" else None
    if metric == "seuclidean":
        kwds = {"V": X.toarray().var(axis=0) + 0.1}
    online = streamed(X, metric, metric_kwds=kwds)
    assert recall(online, X, metric=metric, metric_kwds=kwds) == 1.0
    np.testing.assert_array_equal(online.rows.toarray(), X.toarray())


@pytest.mark.parametrize("metric", ["cosine", "euclidean", "jaccard", "hellinger"])
def test_stream_of_wide_sparse_rows_has_good_recall(metric: str) -> None:
    X = counts(1500, 3000)
    online = streamed(X, metric, batch=250, options=FEW)
    assert recall(online, X, metric=metric) >= 0.9
    found = online.query(X[:40], 3)
    assert (found.distance[:, 0] < 1e-3).all()


def test_the_sparse_table_depends_neither_on_threads_nor_on_the_split_of_the_work() -> None:
    X = counts(600, 500)
    one, other = streamed(X, "cosine", n_jobs=1, options=FEW), OnlineNeighbors(8, "cosine", n_jobs=3, options=FEW)
    for first in range(0, 600, 150):
        other.insert(X[first : first + 150])
        while other.pending_:
            other.step(37)
    np.testing.assert_array_equal(one.table().index, other.table().index)
    np.testing.assert_array_equal(one.table().distance, other.table().distance)


def manhattan(x: Rows, y: Rows, factor: float = 1.0) -> float:
    return factor * float(np.abs(x - y).sum())


def test_a_python_function_is_a_metric(digits: Rows) -> None:
    X = digits[:500]
    online = streamed(X, manhattan, metric_kwds={"factor": 2.0}, options=OnlineOptions(trees=4, exact_rows=200))
    np.testing.assert_allclose(
        online.table().distance[:, 1].min(), 2 * find_neighbors(X, 2, metric="l1").distance[:, 1].min()
    )
    halved = online.table().distance / 2
    last = find_neighbors(X, 8, metric="manhattan", method="exact").distance[:, -1:]
    assert np.mean(halved[:, 1:] <= last * 1.0001) >= 0.97
    assert online.query(digits[500:510], 3).index.shape == (10, 3)


def test_a_function_that_is_not_symmetric_is_called_with_the_earlier_row_first(digits: Rows) -> None:
    order = {row.tobytes(): number for number, row in enumerate(digits[:300])}

    def directed(x: Rows, y: Rows) -> float:
        assert order[x.tobytes()] < order[y.tobytes()]
        return float(np.abs(x - y).sum() + x.sum())

    online = streamed(digits[:300], directed, options=FEW)
    assert online.pending_ == 0


@pytest.mark.parametrize("kind", ["sparse", "function"])
def test_a_state_continues_with_the_same_bits(digits: Rows, kind: str) -> None:
    X, metric = (counts(500, 400), "cosine") if kind == "sparse" else (digits[:400], manhattan)
    one = OnlineNeighbors(8, metric, options=FEW)
    one.insert(X[:300])
    one.step(210)
    other = OnlineNeighbors.from_state(one.state())
    for online in (one, other):
        online.insert(X[300:])
        online.step()
    np.testing.assert_array_equal(one.table().index, other.table().index)
    assert one.n_compared == other.n_compared


def test_rows_of_another_kind_are_refused(digits: Rows) -> None:
    online = OnlineNeighbors(5)
    online.insert(digits[:50])
    with pytest.raises(TypeError, match="X must be dense like the first rows"):
        online.insert(sparse.csr_matrix(digits[:5]))
    with pytest.raises(TypeError, match="a function is called with dense rows"):
        OnlineNeighbors(5, manhattan).insert(sparse.csr_matrix(digits[:5]))
    with pytest.raises(ValueError, match="not available for sparse rows"):
        OnlineNeighbors(5, "mahalanobis").insert(sparse.csr_matrix(digits[:5]))
    assert online.n == 50


def test_a_function_that_fails_leaves_a_search_that_goes_on(digits: Rows) -> None:
    """The function fails again and again; in the end the table and all reports equal those of a search without."""
    fails = {"after": 0, "calls": 0}

    def sometimes(x: Rows, y: Rows) -> float:
        fails["calls"] += 1
        if fails["after"] and fails["calls"] >= fails["after"]:
            raise ArithmeticError("no distance")
        return float(np.abs(x - y).sum())

    good, bad = (OnlineNeighbors(6, metric, options=FEW) for metric in (manhattan, sometimes))
    rng = np.random.default_rng(0)
    n_failed = 0
    for first in range(0, 300, 100):
        updated: set[int] = set()
        good.insert(digits[first : first + 100])
        bad.insert(digits[first : first + 100])
        wanted = set(good.step().updated.tolist())
        while bad.pending_:
            fails.update(after=int(rng.integers(1, 30_000)), calls=0)
            try:
                updated |= set(bad.step().updated.tolist())
            except ArithmeticError:
                n_failed += 1
        assert updated == wanted
    assert n_failed
    np.testing.assert_array_equal(good.table().index, bad.table().index)
    np.testing.assert_array_equal(good.table().distance, bad.table().distance)


@pytest.mark.parametrize("kind", ["dense", "wide", "pairs", "sparse"])
def test_interrupts_lose_no_rows_and_change_no_results(grouped: Any, kind: str) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    X = counts(1200, 300) if kind == "sparse" else np.abs(grouped(2000, 150 if kind == "wide" else 20))
    metric = {"dense": "cosine", "wide": "euclidean", "pairs": "canberra", "sparse": "cosine"}[kind]
    size = X.shape[0] // 10
    try:
        calm, shaken = (OnlineNeighbors(8, metric, options=FEW) for _ in range(2))
        for first in range(0, X.shape[0], size):
            calm.insert(X[first : first + size])
            calm.step()
            line = 1
            while shaken.n == first:  # every try goes a few lines further than the one before
                interrupted_at(partial(shaken.insert, X[first : first + size]), line)
                line += 7
            assert shaken.n == first + size
            line = 1
            while shaken.pending_:
                interrupted_at(shaken.step, line)
                line += 1
        np.testing.assert_array_equal(calm.table().index, shaken.table().index)
        np.testing.assert_array_equal(calm.table().distance, shaken.table().distance)
    finally:
        signal.signal(signal.SIGINT, before)
