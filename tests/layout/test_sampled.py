"""Schedules and sampled layouts: learning rates, epochs, copies, fixed rows, placement and partial layouts."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import Graph, Kernel, Layout, Schedule, find_neighbors, fuzzy_graph
from vicinal.layout import sampled
from vicinal.layout.density import DensityTerm
from vicinal.layout.forces import Forces, OutputSpace
from vicinal.layout.sampled import PartialLayout, Placement
from vicinal.layout.schedule import EPOCHS, LARGE_EPOCHS, LARGE_ROWS, default_epochs

KERNEL = Kernel(1.577, 0.8951)


@pytest.fixture(scope="module")
def graph(iris: NDArray[np.float32]) -> Graph:
    return fuzzy_graph(find_neighbors(iris, 10))


def start(n: int = 150, dim: int = 2) -> NDArray[np.float32]:
    return np.random.default_rng(0).uniform(0, 10, size=(n, dim)).astype(np.float32)


def test_learning_rate_falls_to_zero_and_remains_zero() -> None:
    rates = Schedule(8, learning_rate=2.0).learning_rates(np.arange(10))
    assert rates[0] == 2.0
    assert (np.diff(rates[:9]) < 0).all()
    np.testing.assert_array_equal(rates[8:], 0.0)


def test_learning_rates_are_proportional_and_may_be_empty() -> None:
    epochs = np.arange(8)
    half, one = (Schedule(8, learning_rate=rate).learning_rates(epochs) for rate in (0.5, 1))
    np.testing.assert_allclose(half, 0.5 * one, rtol=1e-6)
    assert Schedule(0).learning_rates(np.arange(0)).shape == (0,)


def test_default_epochs_are_more_for_small_data() -> None:
    assert default_epochs(LARGE_ROWS) == EPOCHS == 500
    assert default_epochs(LARGE_ROWS + 1) == LARGE_EPOCHS == 200


def test_a_layout_without_epochs_keeps_the_start(graph: Graph) -> None:
    layout = Layout(graph, start(), KERNEL, Schedule(10))
    np.testing.assert_array_equal(layout.embedding, start())
    layout.step(0)
    assert layout.epoch == 0
    np.testing.assert_array_equal(layout.embedding, start())


def test_epochs_after_the_schedule_move_nothing(graph: Graph) -> None:
    layout = Layout(graph, start(), KERNEL, Schedule(10))
    layout.step(10)
    done = layout.embedding
    layout.step(3)
    assert layout.epoch == 13
    np.testing.assert_array_equal(layout.embedding, done)


def test_start_and_embedding_are_copies(graph: Graph) -> None:
    given = start()
    layout = Layout(graph, given, KERNEL, Schedule(10))
    layout.step(5)
    np.testing.assert_array_equal(given, start())
    seen = layout.embedding
    kept = seen.copy()
    layout.step(5)
    np.testing.assert_array_equal(seen, kept)


def test_attraction_alone_brings_neighbors_together(graph: Graph) -> None:
    layout = Layout(graph, start(), KERNEL, Schedule(100, negative_sample_rate=0))
    heads, tails = graph.heads(), graph.indices

    def length(places: NDArray[np.float32]) -> float:
        return float(np.linalg.norm(places[heads] - places[tails], axis=1).mean())

    before = length(layout.embedding)
    layout.step(100)
    assert length(layout.embedding) < 0.2 * before


def test_repulsion_moves_rows_apart() -> None:
    """The rows form a ring and start within a tenth of each other."""
    n = 50
    indices = np.stack([(np.arange(n) + 1) % n, (np.arange(n) - 1) % n], axis=1).reshape(-1).astype(np.int32)
    zeros = np.zeros(n, dtype=np.float32)
    ring = Graph(np.arange(0, 2 * n + 1, 2), indices, np.ones(2 * n, dtype=np.float32), n, zeros, zeros)
    near = 1e-2 * start(n)
    strong = Layout(ring, near, KERNEL, Schedule(50, repulsion_strength=10.0))
    none = Layout(ring, near, KERNEL, Schedule(50, repulsion_strength=0.0))
    strong.step(50)
    none.step(50)
    assert np.ptp(strong.embedding, axis=0).min() > 10 * np.ptp(none.embedding, axis=0).max()


def test_rows_without_edges_keep_their_places() -> None:
    zeros = np.zeros(5, dtype=np.float32)
    indptr = np.array([0, 1, 2, 2, 2, 2])
    graph = Graph(indptr, np.array([1, 0], dtype=np.int32), np.ones(2, dtype=np.float32), 5, zeros, zeros)
    layout = Layout(graph, start(5), KERNEL, Schedule(10))
    layout.step(10)
    np.testing.assert_array_equal(layout.embedding[2:], start(5)[2:])
    assert not np.array_equal(layout.embedding[:2], start(5)[:2])


def test_rows_without_edges_move_if_negatives_move() -> None:
    zeros = np.zeros(5, dtype=np.float32)
    indptr = np.array([0, 1, 2, 2, 2, 2])
    graph = Graph(indptr, np.array([1, 0], dtype=np.int32), np.ones(2, dtype=np.float32), 5, zeros, zeros)
    layout = Layout(graph, start(5), KERNEL, Schedule(10, update_negatives=True))
    layout.step(10)
    assert not (layout.embedding[2:] == start(5)[2:]).any()


def test_placement_rejects_moving_negatives(graph: Graph) -> None:
    with pytest.raises(ValueError, match="frozen"):
        Placement(graph, start(), start(), KERNEL, Schedule(10, update_negatives=True))


def test_placement_keeps_a_converted_reference_alive(graph: Graph) -> None:
    expected = Placement(graph, start(), start() + 1.0, KERNEL, Schedule(10))
    expected.step(10)
    layout = Placement(graph, start(), (start() + 1.0).astype(np.float64), KERNEL, Schedule(10))
    filled = [np.full((150, 2), 1e6, dtype=np.float32) for _ in range(50)]
    layout.step(10)
    np.testing.assert_array_equal(layout.embedding, expected.embedding)
    assert len(filled) == 50


def test_draws_depend_on_seed_and_row_keys(graph: Graph) -> None:
    def places(seed: int, keys: NDArray[np.uint64] | None = None) -> NDArray[np.float32]:
        layout = Placement(graph, start(), start() + 1.0, KERNEL, Schedule(10), seed=seed, row_keys=keys)
        layout.step(10)
        return layout.embedding

    assert not np.array_equal(places(0), places(1))
    np.testing.assert_array_equal(places(0, np.arange(150, dtype=np.uint64)), places(0))
    assert not np.array_equal(places(0, np.arange(150, dtype=np.uint64) + np.uint64(7)), places(0))


def test_a_layout_may_be_empty() -> None:
    empty = np.zeros(0, dtype=np.float32)
    graph = Graph(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), empty, 0, empty, empty)
    layout = Layout(graph, np.zeros((0, 2), dtype=np.float32), KERNEL, Schedule(10))
    layout.step(10)
    assert layout.embedding.shape == (0, 2)


@pytest.mark.parametrize("dim", [2, 3, 5])
@pytest.mark.parametrize("update_negatives", [False, True])
def test_fixed_rows_keep_their_bits_while_other_rows_move(graph: Graph, dim: int, update_negatives: bool) -> None:
    fixed = np.arange(150) % 3 == 0
    layout = Layout(graph, start(dim=dim), KERNEL, Schedule(20, update_negatives=update_negatives), fixed=fixed)
    layout.step(20)
    assert layout.embedding[fixed].tobytes() == start(dim=dim)[fixed].tobytes()
    assert (layout.embedding[~fixed] != start(dim=dim)[~fixed]).any(axis=1).all()


def test_fixed_rows_attract_and_repel(graph: Graph) -> None:
    """Other places of the fixed rows lead to other places of the moving rows. An empty mask changes nothing."""
    fixed = np.arange(150) < 75
    moved = start()
    moved[fixed] += 30.0
    here, there = (Layout(graph, places, KERNEL, Schedule(50), fixed=fixed) for places in (start(), moved))
    nobody = np.zeros(150, dtype=bool)
    free, none = (Layout(graph, start(), KERNEL, Schedule(50), fixed=mask) for mask in (None, nobody))
    for layout in (here, there, free, none):
        layout.step(50)
    assert not np.array_equal(here.embedding[~fixed], there.embedding[~fixed])
    np.testing.assert_array_equal(free.embedding, none.embedding)


@pytest.mark.parametrize("fixed", [np.zeros(149, dtype=bool), np.zeros((150, 1), dtype=bool), np.arange(150)])
def test_a_mask_of_wrong_shape_or_type_is_rejected(graph: Graph, fixed: NDArray[np.bool_]) -> None:
    with pytest.raises(ValueError, match="fixed"):
        Layout(graph, start(), KERNEL, Schedule(10), fixed=fixed)


def test_places_can_be_set_between_epochs(graph: Graph) -> None:
    """The following epochs depend on the places and on the epoch only."""
    whole = Layout(graph, start(), KERNEL, Schedule(20))
    whole.step(20)
    first, second = (Layout(graph, start() + shift, KERNEL, Schedule(20)) for shift in (0.0, 1.0))
    first.step(12)
    second.step(12)
    second.embedding = first.embedding.astype(np.float64)
    second.step(8)
    np.testing.assert_array_equal(second.embedding, whole.embedding)


def test_invalid_places_are_rejected(graph: Graph) -> None:
    layout = Layout(graph, start(), KERNEL, Schedule(10))
    bad = start()
    bad[7, 1] = np.nan
    with pytest.raises(ValueError, match="row 7"):
        layout.embedding = bad
    with pytest.raises(ValueError, match="shape"):
        layout.embedding = start(150, 3)
    np.testing.assert_array_equal(layout.embedding, start())


def rows_of(graph: Graph, rows: NDArray[np.int32]) -> Graph:
    """Return the edges of some heads."""
    part = graph.to_scipy()[rows]
    zeros = np.zeros(len(rows), dtype=np.float32)
    return Graph(part.indptr.astype(np.int64), part.indices, part.data, graph.n_tails, zeros, zeros)


@pytest.mark.parametrize("dim", [2, 3])
def test_partial_layout_moves_its_heads_in_the_given_array(graph: Graph, dim: int) -> None:
    """It equals a layout in which all other rows are fixed, since the largest weight of this graph is 1."""
    heads = np.arange(0, 150, 4, dtype=np.int32)
    others = np.ones(150, dtype=bool)
    others[heads] = False
    whole = Layout(graph, start(dim=dim), KERNEL, Schedule(20), seed=3, fixed=others)
    whole.step(12)
    places = start(dim=dim)
    layout = PartialLayout(
        rows_of(graph, heads), places, heads, KERNEL, Schedule(20), ages=np.zeros(len(heads), np.int32), seed=3
    )
    layout.step(5)
    layout.step(7)
    assert layout.epoch == 12
    assert (places[heads] != start(dim=dim)[heads]).any(axis=1).all()
    np.testing.assert_array_equal(places, whole.embedding)
    np.testing.assert_array_equal(layout.embedding, places)


def test_partial_layout_continues_in_another_array(graph: Graph) -> None:
    heads = np.arange(0, 150, 4, dtype=np.int32)
    edges, ages = rows_of(graph, heads), np.arange(len(heads), dtype=np.int32) % 9
    expected, first = start(), start()
    PartialLayout(edges, expected, heads, KERNEL, Schedule(20), ages=ages).step(12)
    layout = PartialLayout(edges, first, heads, KERNEL, Schedule(20), ages=ages)
    layout.step(5)
    after_five, second = first.copy(), first.copy()
    layout.attach(second)
    layout.step(7)
    np.testing.assert_array_equal(second, expected)
    np.testing.assert_array_equal(first, after_five)


def test_ages_and_first_epoch_continue_an_earlier_layout(graph: Graph) -> None:
    heads = np.arange(0, 150, 4, dtype=np.int32)
    edges, ages = rows_of(graph, heads), np.arange(len(heads), dtype=np.int32) % 9
    expected, places = start(), start()
    PartialLayout(edges, expected, heads, KERNEL, Schedule(20), ages=ages, first_epoch=4).step(12)
    PartialLayout(edges, places, heads, KERNEL, Schedule(20), ages=ages, first_epoch=4).step(5)
    PartialLayout(edges, places, heads, KERNEL, Schedule(20), ages=ages + 5, first_epoch=9).step(7)
    np.testing.assert_array_equal(places, expected)


@pytest.mark.parametrize("kind", ["float64", "transposed", "read-only"])
def test_partial_layout_rejects_arrays_that_it_cannot_write_to(graph: Graph, kind: str) -> None:
    places = {"float64": start().astype(np.float64), "transposed": np.asfortranarray(start()), "read-only": start()}[
        kind
    ]
    places.setflags(write=kind != "read-only")
    heads = np.arange(3, dtype=np.int32)
    with pytest.raises(TypeError):
        PartialLayout(rows_of(graph, heads), places, heads, KERNEL, Schedule(20), ages=np.zeros(3, np.int32))


def test_largevis_forces_require_the_euclidean_distance() -> None:
    with pytest.raises(ValueError, match="euclidean"):
        Forces(KERNEL, "largevis", OutputSpace("chebyshev"))
    with pytest.raises(ValueError, match="kind must be"):
        Forces(KERNEL, "tsne")  # type: ignore[arg-type]


def test_a_density_term_requires_the_euclidean_distance(graph: Graph) -> None:
    term = DensityTerm(np.zeros(150, dtype=np.float32))
    with pytest.raises(ValueError, match="euclidean"):
        Layout(graph, start(), Forces(KERNEL, space=OutputSpace("chebyshev")), Schedule(10), density=term)


def test_the_example_in_the_documentation_of_layout_runs() -> None:
    failed, attempted = doctest.testmod(sampled)
    assert failed == 0
    assert attempted >= 8


def test_one_negative_repels_as_much_as_all_in_the_first_epochs() -> None:
    """Two rows that share no edge: the expected move of both schedules is the same, their draws are not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)).astype(np.float32)
    graph, start = fuzzy_graph(find_neighbors(X, 8)), rng.uniform(0, 10, (400, 2)).astype(np.float32)
    kernel = Kernel(1.5, 0.9)

    def moved(schedule: Schedule, seed: int) -> NDArray[np.float64]:
        layout = Layout(graph, start, kernel, schedule, seed=seed)
        layout.step(1)
        return layout.embedding.astype(np.float64) - start

    many = np.mean([moved(Schedule(10, 1e-3), seed) for seed in range(60)], axis=0)
    single = np.mean([moved(Schedule(10, 1e-3, single_negative_share=0.1), seed) for seed in range(60)], axis=0)
    assert not np.array_equal(many, single)
    assert np.corrcoef(many.ravel(), single.ravel())[0, 1] > 0.97
    np.testing.assert_allclose(np.square(single).sum(), np.square(many).sum(), rtol=0.2)
    # After its share of the epochs the schedule is the usual one.
    late = Layout(graph, start, kernel, Schedule(10, single_negative_share=0.5), seed=1)
    usual = Layout(graph, start, kernel, Schedule(10), seed=1)
    for layout in (late, usual):
        layout.step(5)
        layout.embedding = start
        layout.step(5)
    np.testing.assert_array_equal(late.embedding, usual.embedding)


def test_the_learning_rate_is_held_and_falls_with_a_power() -> None:
    epochs = np.arange(11)
    held = Schedule(10, 2.0, decay=2.0, constant_rate_share=0.4).learning_rates(epochs)
    np.testing.assert_array_equal(held[:5], np.float32(2.0))
    np.testing.assert_allclose(held[4:], 2.0 * np.linspace(1.0, 0.0, 7) ** 2, rtol=1e-6, atol=1e-12)
    for decay in (1.0, 1.5, 2.0, 2.5):
        falling = Schedule(10, decay=decay).learning_rates(epochs)
        np.testing.assert_allclose(falling, np.linspace(1.0, 0.0, 11) ** decay, rtol=1e-6, atol=1e-12)
