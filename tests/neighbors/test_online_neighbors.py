"""OnlineNeighbors: same bits for any n_jobs, any split of the work, and after restoring a state; errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import OnlineNeighbors, find_neighbors
from vicinal.neighbors.online import OnlineOptions

Rows = NDArray[np.float32]
FEW = OnlineOptions(spare=6, trees=4, refresh_after=5, exact_rows=150)


@pytest.fixture(scope="module")
def rows(grouped: Any) -> Rows:
    """Draw rows that are long enough for sketches, with ties and duplicates."""
    X = grouped(900, 140)
    X[::9] = X[4]
    X[5::13] = np.round(X[5::13])
    return np.ascontiguousarray(X)


def assert_equal(a: OnlineNeighbors, b: OnlineNeighbors) -> None:
    assert (a.n, a.n_searched, a.pending_, a.n_compared) == (b.n, b.n_searched, b.pending_, b.n_compared)
    np.testing.assert_array_equal(a.table().index, b.table().index)
    np.testing.assert_array_equal(a.table().distance.view(np.int32), b.table().distance.view(np.int32))


def run(X: Rows, steps: list[int | None], n_jobs: int = 1, **more: Any) -> tuple[OnlineNeighbors, list[Any]]:
    """Insert a third of the rows at a time, each followed by the steps; return the new rows per batch too."""
    online = OnlineNeighbors(8, seed=5, n_jobs=n_jobs, options=FEW, **more)
    reports = []
    for batch in np.array_split(X, 3):
        online.insert(batch)
        changes = [online.step(n_ops) for n_ops in steps]
        reports.append(np.concatenate([change.new for change in changes]))
    return online, reports


@pytest.mark.parametrize("n_jobs", [2, 8])
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan", "canberra"])
def test_result_does_not_depend_on_n_jobs(rows: Rows, metric: str, n_jobs: int) -> None:
    X = np.abs(rows[:600])
    one, _ = run(X, [170, None], metric=metric)
    more, _ = run(X, [170, None], n_jobs, metric=metric)
    assert_equal(one, more)


@pytest.mark.parametrize("steps", [[100, 200], [1, 299], [128, 172], [250, 50], [33] * 9 + [3]])
def test_result_does_not_depend_on_the_split_into_steps(rows: Rows, steps: list[int | None]) -> None:
    whole, new = run(rows, [300])
    split, parts = run(rows, steps)
    assert_equal(whole, split)
    for a, b in zip(new, parts, strict=True):
        np.testing.assert_array_equal(a, b)
    whole.step()
    split.step()
    assert_equal(whole, split)


@pytest.mark.parametrize("stop", [0, 1, 200, 450, 700])
@pytest.mark.parametrize("metric", ["euclidean", "nan_euclidean", "hellinger", "correlation", "mahalanobis"])
def test_restored_state_continues_with_the_same_bits(rows: Rows, metric: str, stop: int) -> None:
    X = np.abs(rows[:, :30] if metric == "mahalanobis" else rows)
    online = OnlineNeighbors(8, metric, seed=5, options=FEW)
    online.insert(X[:500])
    online.step(stop)
    restored = OnlineNeighbors.from_state(online.state())
    np.testing.assert_array_equal(restored.rows, X[:500])
    assert_equal(online, restored)
    for one in (online, restored):
        one.step(77)
        one.insert(X[500:])
    changes, again = online.step(301), restored.step(301)
    np.testing.assert_array_equal(changes.new, again.new)
    np.testing.assert_array_equal(changes.updated, again.updated)
    online.step()
    restored.step()
    assert_equal(online, restored)
    np.testing.assert_array_equal(online.query(X[::50], 5).index, restored.query(X[::50], 5).index)


def test_state_without_rows_can_be_restored() -> None:
    empty = OnlineNeighbors.from_state(OnlineNeighbors(3, "cosine").state())
    assert (empty.n, empty.k, empty.metric) == (0, 3, "cosine")


def test_table_carries_the_share_that_sketches_show(rows: Rows) -> None:
    online = OnlineNeighbors(8, seed=5, options=FEW)
    online.insert(rows)
    online.step()
    assert online.table().share == online.share


@pytest.mark.parametrize(
    "name", ["tags", "queue", "chunk", "offers", "ranks", "changes", "basis", "searched", "merged"]
)
def test_corrupted_state_is_rejected(rows: Rows, name: str) -> None:
    online = OnlineNeighbors(8, seed=5, options=FEW)
    online.insert(rows)
    online.step(1150)
    state = online.state()
    corrupted = state["core"][name]
    if isinstance(corrupted, int):
        state["core"][name] = corrupted + 10_000
    elif name in ("tags", "queue", "chunk", "offers"):
        assert corrupted.size
        corrupted[0] = 900 << 1
    else:
        state["core"][name] = corrupted[1:].copy()
    with pytest.raises(ValueError, match="state"):
        OnlineNeighbors.from_state(state)


def test_time_budget_gives_the_same_result(rows: Rows) -> None:
    timed = OnlineNeighbors(8, seed=5, options=FEW)
    whole = OnlineNeighbors(8, seed=5, options=FEW)
    for online in (timed, whole):
        online.insert(rows)
    while timed.pending_:
        timed.step(budget_ms=0.5)
    whole.step()
    assert_equal(timed, whole)


def test_budget_of_0_does_nothing(rows: Rows) -> None:
    online = OnlineNeighbors(8)
    online.insert(rows)
    for change in (online.step(0), online.step(budget_ms=0)):
        assert [part.size for part in change] == [0, 0]
    assert (online.n_searched, online.pending_, online.coverage_) == (0, 900, 0.0)


def test_input_is_neither_changed_nor_kept(rows: Rows) -> None:
    X = rows[:100].copy()
    online = OnlineNeighbors(5)
    online.insert(X)
    np.testing.assert_array_equal(X, rows[:100])
    X[:] = 0.0
    online.step()
    np.testing.assert_array_equal(online.table().index, find_neighbors(rows[:100], 5).index)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda o: OnlineNeighbors(1), "k must be a whole number of at least 2, got 1"),
        (lambda o: OnlineNeighbors(True), "k must be"),
        (lambda o: OnlineNeighbors(5, "nearest"), "metric must be one of"),
        (lambda o: o.insert([1.0, 2.0, 3.0]), "X must be 2-D"),
        (lambda o: o.insert(np.ones((2, 4))), "X must have the 3 columns"),
        (lambda o: o.insert([[0.0, 1.0, 2.0], [0.0, np.nan, 2.0]]), "first in row 1"),
        (lambda o: o.step(-1), "n_ops must be a whole number of at least 0, got -1"),
        (lambda o: o.step(1.5), "n_ops must be"),
        (lambda o: o.step(budget_ms=float("nan")), "budget_ms must be a number of at least 0, got nan"),
        (lambda o: o.table_of([20]), "rows must lie between 0 and 19, got 20"),
        (lambda o: o.query(np.ones((1, 3)), 21), "k must lie between 1 and"),
    ],
)
def test_errors_name_the_argument(call: Any, message: str) -> None:
    online = OnlineNeighbors(5)
    online.insert(np.random.default_rng(0).normal(size=(20, 3)))
    online.step()
    with pytest.raises(ValueError, match=message):
        call(online)
    assert (online.n, online.pending_) == (20, 0)


def test_precomputed_distances_are_rejected() -> None:
    with pytest.raises(ValueError, match="metric must compare rows"):
        OnlineNeighbors(5, "precomputed")
