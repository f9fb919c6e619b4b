"""Parts of a growing map: the graph of some rows, a layout of some heads, saved states, rollback."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.manifold import trustworthiness

from vicinal import Graph, Kernel, Layout, Neighbors, Schedule, find_neighbors, fuzzy_graph
from vicinal.graph.fuzzy import local_memberships
from vicinal.layout.forces import Forces
from vicinal.layout.sampled import PartialLayout
from vicinal.neighbors.online import OnlineNeighbors
from vicinal.pipeline.grow import GrowingMap, Stream
from vicinal.pipeline.online_graph import FIRST_MAP_ROWS, Batch, GrowingGraph, OnlineGraph, Pace
from vicinal.pipeline.recipe import FuzzyAffinity, Recipe, SampledPlan

KERNEL = Kernel(1.577, 0.8951)
RECIPE, PACE = Recipe(FuzzyAffinity(8), SampledPlan(Forces(KERNEL))), Pace()
Rows = NDArray[np.float32]


def lists_of(rows: NDArray[np.int32], table: Neighbors) -> tuple[NDArray[np.int32], Rows]:
    index, membership, _, _ = local_memberships(rows, Neighbors(table.index[rows], table.distance[rows]))
    return index, membership


@pytest.mark.parametrize("mix", [1.0, 0.3])
def test_the_graph_of_replaced_rows_equals_the_graph_of_the_last_table(digits: Rows, mix: float) -> None:
    n, k = 600, 12
    rng = np.random.default_rng(0)
    first, last = (find_neighbors(digits[:n] + rng.normal(size=(n, 64)).astype(np.float32) * s, k) for s in (4.0, 0.0))
    growing = GrowingGraph(k, mix)
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


def test_a_graph_refuses_rows_that_do_not_exist() -> None:
    growing = GrowingGraph(2, 1.0)
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


def moving(
    graph: Graph, places: Rows, rows: NDArray[np.int32], ages: NDArray[np.int32] | None = None, **more: Any
) -> PartialLayout:
    ages = np.zeros(len(rows), np.int32) if ages is None else ages
    return PartialLayout(some_of(graph, rows), places, rows, KERNEL, Schedule(20), ages=ages, **more)


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_a_partial_layout_of_all_rows_equals_a_layout(graph: Graph, dim: int) -> None:
    one, places = Layout(graph, start(dim=dim), KERNEL, Schedule(20), seed=3), start(dim=dim)
    one.step(20)
    moving(graph, places, np.arange(150, dtype=np.int32), seed=3).step(20)
    assert one.embedding.tobytes() == places.tobytes()


def test_a_partial_layout_equals_a_layout_with_the_other_rows_fixed(graph: Graph) -> None:
    rows = np.random.default_rng(1).permutation(150)[:40].astype(np.int32)
    fixed = np.ones(150, dtype=bool)
    fixed[rows] = False
    for n_jobs in (1, 2, 8):
        places = start()
        one = Layout(graph, start(), KERNEL, Schedule(20), seed=3, n_jobs=n_jobs, fixed=fixed)
        for layout in (one, moving(graph, places, rows, seed=3, n_jobs=n_jobs)):
            layout.step(7)
            layout.step(13)
        assert one.embedding.tobytes() == places.tobytes()


def test_a_row_without_epochs_does_not_move_and_a_layout_can_start_at_a_later_epoch(graph: Graph) -> None:
    rows, places = np.arange(30, dtype=np.int32), start()
    ages = np.where(rows < 10, 20, 0).astype(np.int32)
    layout = moving(graph, places, rows, ages)
    layout.step(6)
    np.testing.assert_array_equal(np.flatnonzero((places != start()).any(axis=1)), np.arange(10, 30))
    others = places.copy()
    later = moving(graph, others, rows, ages + 6, first_epoch=6)
    for one in (layout, later):
        one.step(6)
    assert (layout.epoch, later.epoch) == (12, 6)
    assert places.tobytes() == others.tobytes()


def test_a_partial_layout_continues_in_another_array(graph: Graph) -> None:
    rows, whole, places = np.arange(30, dtype=np.int32), start(), start()
    moving(graph, whole, rows).step(12)
    layout = moving(graph, places, rows)
    layout.step(6)
    before, other = places.copy(), places.copy()
    layout.attach(other)
    layout.step(6)
    assert places.tobytes() == before.tobytes()
    assert other.tobytes() == whole.tobytes()


def test_a_partial_layout_refuses_rows_that_do_not_exist(graph: Graph) -> None:
    rows = np.array([3, 150], dtype=np.int32)
    with pytest.raises(ValueError, match="head"):
        PartialLayout(some_of(graph, rows - 1), start(), rows, KERNEL, Schedule(20), ages=np.zeros(2, np.int32))


@pytest.mark.nightly
def test_keeping_layouts_between_rounds_does_not_change_the_map(digits: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """With slices of 500 rows the first layouts are kept and the others are not."""
    monkeypatch.setattr("vicinal.pipeline.grow.SLICE", 500)
    made: list[int] = []
    maps = []
    new = PartialLayout.__init__

    def counted(self: PartialLayout, *args: Any, **kwargs: Any) -> None:
        made[-1] += 1
        new(self, *args, **kwargs)

    monkeypatch.setattr(PartialLayout, "__init__", counted)
    for most in (0, 2):
        monkeypatch.setattr("vicinal.pipeline.grow.MOST_LAYOUTS", most)
        made.append(0)
        grown_map = grown(digits, 600)
        while grown_map.pending:
            grown_map.advance()
        maps.append(grown_map.embedding)
    np.testing.assert_array_equal(maps[0], maps[1])
    assert made[1] < made[0]


def streamed(X: Rows, size: int = 300) -> Stream:
    made = Stream(GrowingMap(OnlineNeighbors(8, seed=0), RECIPE, PACE))
    for begin in range(0, len(X), size):
        made.add(Batch(X[begin : begin + size]))
    return made


def grown(X: Rows, size: int = 300) -> GrowingMap:
    return streamed(X, size).map


def restored(state: dict[str, Any]) -> GrowingMap:
    return GrowingMap.from_state(state, RECIPE, PACE, n_jobs=-1)


@pytest.mark.parametrize(
    ("owner", "name", "n_calls"),
    [(OnlineGraph, "build", 0), (OnlineGraph, "apply", 0), (PartialLayout, "step", 0), (PartialLayout, "step", 3)],
)
def test_an_addition_that_fails_leaves_the_map_as_it_was(
    digits: Rows, monkeypatch: pytest.MonkeyPatch, owner: type, name: str, n_calls: int
) -> None:
    """Memory runs out after some calls of a function; the batch is a large share of the map."""
    monkeypatch.setattr("vicinal.pipeline.grow.SLICE", 200)  # several steps
    one, other = streamed(digits[:400]), streamed(digits[:400])
    called, calls = getattr(owner, name), []

    def out_of_memory(*args: Any) -> Any:
        calls.append(1)
        if len(calls) > n_calls:
            raise MemoryError
        return called(*args)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, out_of_memory)
        with pytest.raises(MemoryError):
            one.add(Batch(digits[400:900]))
    assert (one.map.search.n, one.map.n_placed) == (400, 400)
    one.map.check()
    for made in (one, other):
        made.add(Batch(digits[400:900]))
    np.testing.assert_array_equal(one.map.embedding, other.map.embedding)


def test_a_map_that_fails_without_a_snapshot_says_that_it_is_damaged(
    digits: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row on a large map is added without a snapshot. Input that is refused changes nothing."""
    monkeypatch.setattr("vicinal.pipeline.online_graph.FIRST_MAP_ROWS", 500)
    made = streamed(digits[:1300])
    assert made.map.first_map_rows >= 500
    with pytest.raises(ValueError, match="columns"):
        made.add(Batch(digits[:1, :10]))
    made.map.check()
    with monkeypatch.context() as patch:
        patch.setattr(GrowingMap, "state", None)
        made.add(Batch(digits[1300:1301]))
        patch.setattr(PartialLayout, "step", None)
        with pytest.raises(TypeError):
            made.add(Batch(digits[1301:1302]))
    with pytest.raises(RuntimeError, match="damaged"):
        _ = made.map


@pytest.mark.nightly
def test_rows_in_the_order_of_a_grid_get_the_map_of_shuffled_rows() -> None:
    """A batch of rows that are mostly neighbors of each other makes the map start anew."""
    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(np.arange(45), np.arange(45)), axis=-1).reshape(-1, 2)
    rows = (grid + rng.normal(scale=0.1, size=grid.shape)).astype(np.float32)
    quality = []
    for order in (np.arange(len(rows)), rng.permutation(len(rows))):
        made = grown(rows[order], 400)
        quality.append(trustworthiness(rows[order], made.embedding, n_neighbors=15))
    assert quality[0] >= quality[1] - 0.002
    assert quality[1] > 0.99


def test_a_batch_is_elsewhere_if_its_rows_are_neighbors_of_each_other(digits: Rows) -> None:
    made = grown(digits[:1000])
    made.first_map_rows = FIRST_MAP_ROWS
    for rows, elsewhere in (
        (digits[1000:1400], False),
        (digits[1000:1400] + 100, True),
        (digits[1000:1050] + 200, False),
    ):
        made.insert(Batch(rows))
        made.graph.search(None, None)
        assert made.start_is_due() is elsewhere
        made.complete()


def test_stale_lists_are_computed_when_they_are_needed(digits: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few of the rows with changed neighbors move; the lists of the others wait, and nobody sees them."""
    monkeypatch.setattr("vicinal.pipeline.online_graph.FIRST_MAP_ROWS", 500)
    stream = streamed(digits[:1000], 1000)
    stream.add(Batch(digits[1000:1050]))
    made = stream.map
    assert 0 < np.count_nonzero(made.graph.stale.view) < 1000
    np.testing.assert_array_equal(restored(made.state()).graph.stale.view, made.graph.stale.view)
    lists = [column.copy() for column in made.graph.lists.lists()]
    whole = made.whole_graph()
    wanted = fuzzy_graph(made.search.table())
    np.testing.assert_array_equal(whole.to_scipy().toarray(), wanted.to_scipy().toarray())
    np.testing.assert_array_equal(whole.rho, wanted.rho)
    np.testing.assert_array_equal(whole.sigma, wanted.sigma)
    for before, after in zip(lists, made.graph.lists.lists(), strict=True):
        np.testing.assert_array_equal(before, after)
    made.wake(6)
    assert not made.graph.stale.view.any()
    np.testing.assert_array_equal(made.graph.edges(np.arange(1050, dtype=np.int32)).weights, wanted.weights)


def test_a_state_continues_bit_for_bit(digits: Rows) -> None:
    one = grown(digits[:700])
    one.insert(Batch(digits[700:900]))
    one.advance(n_ops=70)
    other = restored(one.state())
    for made in (one, other):
        made.advance()
        Stream(made).add(Batch(digits[900:1000]))
    np.testing.assert_array_equal(one.embedding, other.embedding)


TOO_LARGE = 2**63 - 1
BAD_NUMBERS: dict[str, list[Any]] = {
    "search.k": [1, TOO_LARGE],
    "search.options.spare": [-1, TOO_LARGE],
    "search.options.trees": [0, TOO_LARGE, 2**32],
    "search.options.refresh_after": [0, TOO_LARGE],
    "search.options.exact_rows": [-1, TOO_LARGE],
    "search.scale": [0.0, float("inf")],
    "search.core.searched": [-1, TOO_LARGE],
    "search.core.merged": [TOO_LARGE],
    "search.core.queue_head": [-1, TOO_LARGE],
    "search.core.chunk_kind": [3, TOO_LARGE],
    "search.core.share": [float("nan")],
    "clock": [[TOO_LARGE, 0, 0], [300, TOO_LARGE, 0], [300, 0, -1], [300]],
    "index": [np.zeros((300, 7), np.int32), np.full((300, 8), 300, np.int32), np.zeros((300, 8))],
    "left": [np.full(300, -1, np.int32), np.zeros(299, np.int32), np.zeros(300, np.int64)],
    "first": [np.full(300, 300, np.int32)],
    "places": [np.full((300, 2), np.nan, np.float32), np.zeros((300, 3), np.float32)],
}


@pytest.mark.parametrize(
    ("path", "value"),
    [pytest.param(path, value, id=f"{path}-{n}") for path in BAD_NUMBERS for n, value in enumerate(BAD_NUMBERS[path])],
)
def test_a_state_with_numbers_that_the_core_does_not_accept_is_refused(digits: Rows, path: str, value: Any) -> None:
    state = grown(digits[:300]).state()
    *outer, name = path.split(".")
    inner = state
    for part in outer:
        inner = inner[part]
    assert name in inner
    inner[name] = value
    with pytest.raises(ValueError, match=r"."):
        restored(state)
