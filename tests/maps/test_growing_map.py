"""Parts of a map that grows: arrays, the graph of some rows, a layout of some heads."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import Graph, Kernel, Layout, Neighbors, ProgressiveUMAP, Schedule, find_neighbors, fuzzy_graph
from vicinal.backends import _core
from vicinal.graph.fuzzy import local_memberships
from vicinal.maps.growing_array import GrowingArray

KERNEL = Kernel(1.577, 0.8951)
Rows = NDArray[np.float32]


def test_an_array_grows_by_rows_and_its_view_can_be_written() -> None:
    grown, whole = GrowingArray(np.zeros((0, 3), np.float32)), np.empty((0, 3), np.float32)
    for n in (1, 0, 5, 40, 3):
        part = np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32)
        grown.append(part)
        whole = np.concatenate([whole, part])
        np.testing.assert_array_equal(grown.view, whole)
    grown.view[3] = 7.0
    assert len(grown) == 49
    np.testing.assert_array_equal(grown.view[3], 7.0)


def lists_of(rows: NDArray[np.int32], table: Neighbors) -> tuple[NDArray[np.int32], Rows]:
    index, membership, _, _ = local_memberships(rows, Neighbors(table.index[rows], table.distance[rows]))
    return index, membership


@pytest.mark.parametrize("mix", [1.0, 0.3])
def test_the_graph_of_replaced_rows_is_the_graph_of_the_last_table(digits: Rows, mix: float) -> None:
    n, k = 600, 12
    rng = np.random.default_rng(0)
    first, last = (find_neighbors(digits[:n] + rng.normal(size=(n, 64)).astype(np.float32) * s, k) for s in (4.0, 0.0))
    growing = _core.GrowingGraph(k, mix)
    growing.extend(n)
    for table in (first, last):
        order = rng.permutation(n).astype(np.int32)
        for rows in np.array_split(order, 7):
            growing.replace(rows, *lists_of(rows, table))
    wanted = fuzzy_graph(last, set_op_mix_ratio=mix)
    asked = rng.permutation(n)[:200].astype(np.int32)
    for n_jobs in (1, 3):
        indptr, indices, weights = growing.edges(asked, n_jobs)
        some = Graph(indptr, indices, weights, n, wanted.rho, wanted.sigma)
        np.testing.assert_array_equal(some.to_scipy().toarray(), wanted.to_scipy()[asked].toarray())


def test_rows_that_do_not_exist_are_refused() -> None:
    growing = _core.GrowingGraph(2, 1.0)
    growing.extend(3)
    lists = np.array([[1, 5]], np.int32), np.ones((1, 2), np.float32)
    with pytest.raises(ValueError, match="no row"):
        growing.replace(np.array([0], np.int32), *lists)
    with pytest.raises(ValueError, match="does not exist"):
        growing.edges(np.array([3], np.int32), 1)
    assert growing.edges(np.arange(3, dtype=np.int32), 1)[0].tolist() == [0, 0, 0, 0]


@pytest.fixture(scope="module")
def graph(iris: Rows) -> Graph:
    return fuzzy_graph(find_neighbors(iris, 10))


def start(n: int = 150, dim: int = 2) -> Rows:
    return np.random.default_rng(0).uniform(0, 10, size=(n, dim)).astype(np.float32)


def some_of(graph: Graph, rows: NDArray[np.int32]) -> Graph:
    matrix = graph.to_scipy()[rows]
    return Graph(matrix.indptr.astype(np.int64), matrix.indices, matrix.data, graph.n, graph.rho, graph.sigma)


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_all_heads_move_as_without_heads(graph: Graph, dim: int) -> None:
    schedule, every = Schedule(20), np.arange(150, dtype=np.int32)
    one = Layout(graph, start(dim=dim), KERNEL, schedule, seed=3)
    other = Layout(graph, start(dim=dim), KERNEL, schedule, seed=3, heads=every, ages=np.zeros(150, np.int32))
    for layout in (one, other):
        layout.step(20)
    assert one.embedding.tobytes() == other.embedding.tobytes()


def test_some_heads_move_as_if_the_others_were_pinned(graph: Graph) -> None:
    rows = np.random.default_rng(1).permutation(150)[:40].astype(np.int32)
    pinned = np.ones(150, dtype=bool)
    pinned[rows] = False
    for n_jobs in (1, 2, 8):
        one = Layout(graph, start(), KERNEL, Schedule(20), seed=3, n_jobs=n_jobs, fixed=pinned)
        other = Layout(some_of(graph, rows), start(), KERNEL, Schedule(20), seed=3, n_jobs=n_jobs, heads=rows)
        for layout in (one, other):
            layout.step(7)
            layout.step(13)
        assert one.embedding.tobytes() == other.embedding.tobytes()


def test_a_head_at_the_end_of_its_schedule_rests_and_a_late_start_goes_on(graph: Graph) -> None:
    rows = np.arange(30, dtype=np.int32)
    ages = np.where(rows < 10, 20, 0).astype(np.int32)
    layout = Layout(some_of(graph, rows), start(), KERNEL, Schedule(20), heads=rows, ages=ages)
    layout.step(6)
    moved = (layout.embedding != start()).any(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(moved), np.arange(10, 30))
    later = Layout(
        some_of(graph, rows), layout.embedding, KERNEL, Schedule(20), heads=rows, ages=ages + 6, first_epoch=6
    )
    for one in (layout, later):
        one.step(6)
    assert (layout.epoch, later.epoch) == (12, 6)
    assert layout.embedding.tobytes() == later.embedding.tobytes()


def test_heads_that_are_no_rows_are_refused(graph: Graph) -> None:
    rows = np.array([3, 150], dtype=np.int32)
    with pytest.raises(ValueError, match="a head is no row"):
        Layout(some_of(graph, rows - 1), start(), KERNEL, Schedule(20), heads=rows)


def test_layouts_that_are_kept_between_rounds_change_nothing(digits: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of 500 rows: the first ones are kept, the others are not; rows that came to rest make new ones."""
    monkeypatch.setattr("vicinal.maps.growing_map.SLICE", 500)
    made, maps = [], []
    new = Layout.__init__

    def counted(self: Layout, *args: object, **kwargs: object) -> None:
        made[-1] += 1
        new(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Layout, "__init__", counted)
    for most in (0, 2):
        monkeypatch.setattr("vicinal.maps.growing_map.MOST_LAYOUTS", most)
        made.append(0)
        model = ProgressiveUMAP(random_state=0)
        for begin in range(0, len(digits), 600):
            model.partial_fit(digits[begin : begin + 600])
        maps.append(model.run().polish().embedding_)
        assert not model._map._layouts
    np.testing.assert_array_equal(maps[0], maps[1])
    assert made[1] < made[0]
