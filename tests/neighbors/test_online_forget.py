"""OnlineNeighbors.forget: rows leave, the lists of the others are filled again, and nothing of the rows is kept."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from vicinal import OnlineNeighbors, find_neighbors
from vicinal.neighbors.online import OnlineOptions

Rows = NDArray[np.float32]
FEW = OnlineOptions(exact_rows=200)
KINDS = ("short", "wide", "cosine", "pairs", "sparse", "function")


def manhattan(x: Rows, y: Rows) -> float:
    return float(np.abs(x - y).sum())


def rows_of(kind: str, grouped: Any, n: int = 900) -> tuple[Any, Any]:
    """Return rows and a metric."""
    X = grouped(n if kind != "function" else 250, 150 if kind == "wide" else 12)
    if kind == "sparse":
        return sparse.csr_matrix(np.where(np.abs(X) > 1.0, np.abs(X), 0.0).astype(np.float32)), "cosine"
    return np.abs(X), {"pairs": "canberra", "cosine": "cosine", "function": manhattan}.get(kind, "euclidean")


def streamed(X: Any, metric: Any = "euclidean", batch: int = 150, **more: Any) -> OnlineNeighbors:
    online = OnlineNeighbors(8, metric, **({"options": FEW} | more))
    for first in range(0, X.shape[0], batch):
        online.insert(X[first : first + batch])
        online.step()
    return online


def recall(online: OnlineNeighbors, X: Any, metric: Any = "euclidean") -> float:
    last = find_neighbors(X, online.k, metric=metric, method="exact").distance[:, -1:]
    return float(np.mean(online.table().distance[:, 1:] <= last * 1.0001 + 1e-6))


def assert_same(one: OnlineNeighbors, other: OnlineNeighbors) -> None:
    np.testing.assert_array_equal(one.table().index, other.table().index)
    np.testing.assert_array_equal(one.table().distance, other.table().distance)
    np.testing.assert_array_equal(one.ids, other.ids)
    assert one.n_compared == other.n_compared


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_leave_cost_little_recall(kind: str, grouped: Any) -> None:
    X, metric = rows_of(kind, grouped)
    n = X.shape[0]
    online, gone = streamed(X, metric), np.random.default_rng(0).permutation(n)[: int(0.3 * n)]
    for part in np.array_split(gone, 6):
        changed = online.forget(part)
        assert (np.diff(changed) > 0).all()
        online.step()
        assert online.pending_ == 0
    stay = np.setdiff1d(np.arange(n), gone)
    np.testing.assert_array_equal(online.ids, stay)
    assert (online.n, online.n_searched, online.n_ever) == (len(stay), len(stay), n)
    kept = online.rows
    assert (kept != X[stay]).nnz == 0 if sparse.issparse(X) else np.array_equal(kept, X[stay])
    table = online.table()
    assert table.index.min() >= 0
    assert all(len(set(row.tolist())) == 8 for row in table.index)
    assert recall(online, X[stay], metric) >= recall(streamed(X[stay], metric), X[stay], metric) - 0.01


def test_few_rows_have_exact_lists_after_others_left(digits: Rows) -> None:
    online = streamed(digits[:600], options=OnlineOptions())
    online.forget(np.arange(0, 600, 3))
    online.step()
    stay = np.delete(np.arange(600), np.arange(0, 600, 3))
    np.testing.assert_array_equal(online.table().index, find_neighbors(digits[stay], 8, method="exact").index)


def test_forgetting_reports_the_changed_lists_and_compares_nothing(grouped: Any) -> None:
    online = streamed(grouped(900, 12))
    before, compared = online.table(), online.n_compared
    gone = np.arange(100, 160)
    changed = online.forget(gone)
    assert online.n_compared == compared
    stay = np.delete(np.arange(900), gone)
    lost = np.isin(before.index[stay], gone).any(axis=1)
    np.testing.assert_array_equal(changed, np.flatnonzero(lost))
    assert online.pending_ == len(changed)
    # What was not lost is as it was.
    number = np.full(900, -1)
    number[stay] = np.arange(len(stay))
    np.testing.assert_array_equal(online.table().index[~lost], number[before.index[stay][~lost]])


def test_the_cost_depends_on_the_rows_that_leave_and_not_on_those_that_stay(grouped: Any) -> None:
    X = grouped(16_000, 16)
    costs = []
    for n in (4000, 16_000):
        known = find_neighbors(X[:n], 10, method="approximate")
        online = OnlineNeighbors.from_neighbors(X[:n], known, options=OnlineOptions(trees=8, exact_rows=300))
        online.forget(np.arange(0, n, n // 50))
        online.step()
        costs.append(online.n_compared)
    assert costs[1] <= 1.5 * costs[0]
    assert costs[1] <= 50 * 10 * 1000  # rows x lists that hold one of them x comparisons


@pytest.mark.parametrize("kind", KINDS)
def test_threads_and_the_split_of_the_work_do_not_matter(kind: str, grouped: Any) -> None:
    X, metric = rows_of(kind, grouped)
    n = X.shape[0]
    one, other = (OnlineNeighbors(8, metric, n_jobs=jobs, options=FEW) for jobs in (1, 3))
    for first in range(0, n, 150):
        for online in (one, other):
            online.insert(X[first : first + 150])
        one.step(170)
        for ops in (37, 100, 33):
            other.step(ops)
        for online in (one, other):
            online.forget(online.ids[5 : online.n // 2 : 7])
    one.step()
    while other.pending_:
        other.step(41)
    assert_same(one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_stream_goes_on_with_the_same_bits(kind: str, grouped: Any) -> None:
    X, metric = rows_of(kind, grouped)
    half = X.shape[0] // 2
    one = OnlineNeighbors(8, metric, options=FEW)
    one.insert(X[:half])
    one.step(half - 20)
    one.forget(np.arange(0, half, 4))
    for ops in (0, 30):
        one.step(ops)
        other = OnlineNeighbors.from_state(one.state())
        assert_same(one, other)
    for online in (one, other):
        online.insert(X[half:])
        online.step()
        online.forget(online.ids[::9])
        online.step()
    assert_same(one, other)
    query = X[:20]
    np.testing.assert_array_equal(one.query(query, 3).index, other.query(query, 3).index)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_a_forgotten_row_is_in_the_state(kind: str, grouped: Any) -> None:
    X, metric = rows_of(kind, grouped)
    online = streamed(X, metric)
    gone = np.array([0, 17, X.shape[0] - 1])
    contents = [(X[row].data if sparse.issparse(X) else X[row]).tobytes() for row in gone]
    state = online.state() | {"metric": None}
    assert all(content in pickle.dumps(state) for content in contents)
    online.forget(gone)
    state = online.state() | {"metric": None}
    assert not any(content in pickle.dumps(state) for content in contents)


def test_earlier_views_stay_valid_and_memory_is_used_again(grouped: Any) -> None:
    X = grouped(3000, 20)
    online = streamed(X[:300])
    before = online.rows
    online.forget(np.arange(100))
    np.testing.assert_array_equal(before, X[:300])
    sizes = []
    for first in range(300, 3000, 100):
        online.insert(X[first : first + 100])
        online.step()
        online.forget(online.ids[:100])
        sizes.append(sum(part.nbytes for part in online.state()["core"].values() if isinstance(part, np.ndarray)))
    assert online.n == 200
    assert max(sizes) <= 1.1 * sizes[0]  # the queue of refreshes differs
    np.testing.assert_array_equal(online.ids, np.arange(2800, 3000))


def test_all_rows_can_leave_and_others_come(grouped: Any) -> None:
    X = grouped(300, 12)
    online = streamed(X[:100])
    online.forget(online.ids)
    assert (online.n, online.n_ever, online.pending_) == (0, 100, 0)
    online = OnlineNeighbors.from_state(online.state())
    assert online.insert(X[100:]) == range(100, 300)
    online.step()
    np.testing.assert_array_equal(online.table().index, streamed(X[100:]).table().index)


def test_rows_that_are_not_there_are_refused(grouped: Any) -> None:
    online = streamed(grouped(100, 12))
    online.forget([3])
    before = online.table().index
    for ids, error, message in (
        ([2, 3], ValueError, "there is no row 3"),
        ([100], ValueError, "there is no row 100"),
        ([-1], ValueError, "there is no row -1"),
        ([1.5], TypeError, "ids must be whole numbers"),
        ([[1, 2]], TypeError, "ids must be whole numbers"),
        (["a"], TypeError, "ids must be whole numbers"),
    ):
        with pytest.raises(error, match=message):
            online.forget(ids)
    assert online.forget([]).size == 0
    np.testing.assert_array_equal(online.table().index, before)


def test_forged_ids_are_refused(grouped: Any) -> None:
    online = streamed(grouped(100, 12))
    online.forget([3])
    state = online.state()
    for forged in (state["ids"][:-1], state["ids"][::-1].copy(), state["ids"] + 5, state["ids"].astype(np.int32)):
        with pytest.raises(ValueError, match="ids must"):
            OnlineNeighbors.from_state(state | {"ids": forged})
