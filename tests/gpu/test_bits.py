"""The stages that must have the CPU's bits on a device: exact neighbors, memberships, symmetric graphs, layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

import vicinal
from vicinal import Graph, Layout, Neighbors, Schedule, find_neighbors, fit_ab, fuzzy_graph
from vicinal.backends import backend_of, cpu
from vicinal.backends.cuda import layout as cuda_layout
from vicinal.graph.fuzzy import bipartite_graph
from vicinal.initialize.medoid import neighbor_medoid
from vicinal.layout.forces import Forces, Kernel, output_space
from vicinal.layout.sampled import Placement

Rows = NDArray[np.float32]


def same_bits(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation", "manhattan", "chebyshev", "sqeuclidean"])
@pytest.mark.parametrize("columns", [12, 150])
def test_exact_search_has_the_bits_of_the_cpu(place: Any, rows: Rows, metric: str, columns: int) -> None:
    X = np.tile(rows, (1, 13))[:, :columns] * np.linspace(0.5, 2.0, columns, dtype=np.float32)
    here = find_neighbors(X, 9, metric=metric, method="exact")
    there = find_neighbors(X, 9, metric=metric, method="exact", device="cuda")
    assert there.place is place
    assert same_bits(here.index, there.index)
    assert same_bits(here.distance, there.distance)


def test_search_of_extreme_magnitudes_has_the_bits_of_the_cpu(place: Any, rows: Rows) -> None:
    for scale in (1e-20, 1e25):
        here, there = (find_neighbors(rows * np.float32(scale), 6, device=device) for device in ("cpu", "cuda"))
        assert same_bits(here.distance, there.distance)
        assert same_bits(here.index, there.index)


@pytest.mark.parametrize("mix", [1.0, 0.3])
@pytest.mark.parametrize("local_connectivity", [1.0, 2.5])
def test_fuzzy_graph_has_the_bits_of_the_cpu(place: Any, rows: Rows, mix: float, local_connectivity: float) -> None:
    table = find_neighbors(rows, 8)
    options = {"set_op_mix_ratio": mix, "local_connectivity": local_connectivity}
    here, there = fuzzy_graph(table, **options), fuzzy_graph(table, **options, device="cuda")
    for part in ("indptr", "indices", "weights", "rho", "sigma"):
        assert same_bits(getattr(here, part), getattr(there, part)), part


def test_graph_of_equal_rows_has_the_bits_of_the_cpu(place: Any) -> None:
    # All distances of these rows are 0, so the floor of sigma is the mean of the whole table.
    X = np.repeat(np.arange(10, dtype=np.float32)[:, None], 20, axis=0)
    here, there = (fuzzy_graph(find_neighbors(X, 6, device=device)) for device in ("cpu", "cuda"))
    assert (here.rho == 0).any()
    assert same_bits(here.sigma, there.sigma)
    assert same_bits(here.weights, there.weights)


def test_graph_with_missing_neighbors_has_the_bits_of_the_cpu(place: Any, rows: Rows) -> None:
    table = find_neighbors(rows, 8).within(4.0)
    assert (table.index < 0).any()
    here, there = (fuzzy_graph(table, device=device) for device in ("cpu", "cuda"))
    assert same_bits(here.indices, there.indices)
    assert same_bits(here.weights, there.weights)


def test_mean_of_directions_has_the_bits_of_the_cpu(place: Any, rows: Rows) -> None:
    table = find_neighbors(rows, 8)
    weights, _ = cpu.perplexity_conditionals(table.index, table.distance, 3.0, False, 1)
    here = cpu.symmetrize_mean(table.index, weights, 1)
    there = backend_of(place).symmetrize_mean(place.asarray(table.index), place.asarray(weights), 1)
    assert all(same_bits(a, place.to_numpy(b)) for a, b in zip(here, there, strict=True))


def layouts(rows: Rows, n_components: int, forces: Any, **arguments: Any) -> tuple[Rows, Rows]:
    """Return the map of the CPU, and that of the device, whose epochs are run in two calls."""
    graph, rng = fuzzy_graph(find_neighbors(rows, 8)), np.random.default_rng(1)
    start = rng.uniform(0.5, 3.0, (len(rows), n_components)).astype(np.float32)
    maps = []
    schedule = Schedule(12, sweeps=4, **arguments.pop("schedule", {}))
    for device, steps in (("cpu", (12,)), ("cuda", (5, 7))):
        layout = Layout(graph, start, forces, schedule, seed=9, device=device, **arguments)
        for step in steps:
            layout.step(step)
        maps.append(layout.embedding)
    assert not np.array_equal(maps[0], start)
    return maps[0], maps[1]


@pytest.mark.parametrize("single", [0.3, 1.0])
def test_layout_with_single_negatives_has_the_bits_of_the_cpu(place: Any, rows: Rows, single: float) -> None:
    """The first call on the device ends after the epochs with single negatives, or before."""
    assert same_bits(
        *layouts(rows, 2, fit_ab(), schedule={"single_negative_share": single, "constant_rate_share": 0.3})
    )


@pytest.mark.parametrize("single", [0.0, 0.3])
def test_layout_with_short_pushes_has_the_bits_of_the_cpu(place: Any, rows: Rows, single: float) -> None:
    short, _ = found = layouts(rows, 2, fit_ab(), schedule={"single_negative_share": single, "longest_push": 0.05})
    assert same_bits(*found)
    assert not np.array_equal(short, layouts(rows, 2, fit_ab(), schedule={"single_negative_share": single})[0])


@pytest.mark.parametrize(
    ("n_components", "moving", "pinned"), [(2, False, False), (3, False, True), (2, True, True), (3, True, False)]
)
def test_layout_has_the_bits_of_the_cpu(place: Any, rows: Rows, n_components: int, moving: bool, pinned: bool) -> None:
    rng = np.random.default_rng(2)
    arguments: dict[str, Any] = {"schedule": {"update_negatives": moving}}
    if pinned:
        arguments["fixed"] = np.arange(len(rows)) % 3 == 0
        arguments["negative_weights"] = rng.uniform(0.1, 3.0, len(rows))
    assert same_bits(*layouts(rows, n_components, fit_ab(), **arguments))


# Every space is compiled for the device in test_compile.py; these are compared as well.
@pytest.mark.parametrize("metric", ["hyperboloid", "cosine", "chebyshev"])
def test_layout_of_other_output_metrics_has_the_bits_of_the_cpu(place: Any, rows: Rows, metric: str) -> None:
    assert same_bits(*layouts(rows, 2, Forces(fit_ab(), space=output_space(metric, None, 2))))


def test_layout_of_minkowski_has_the_bits_of_the_cpu(place: Any, rows: Rows) -> None:
    space = output_space("minkowski", {"p": 3.0}, 2)
    assert same_bits(*layouts(rows, 2, Forces(fit_ab(), space=space)))


def test_layout_of_largevis_has_the_bits_of_the_cpu(place: Any, rows: Rows) -> None:
    forces = Forces(Kernel(1.0, 1.0), "largevis")
    assert same_bits(*layouts(rows, 2, forces, schedule={"repulsion_strength": 7.0}))


@pytest.mark.parametrize("slices", [1, 4])
@pytest.mark.parametrize("n", [60, 400, 1500])
def test_row_with_many_firing_edges_has_the_bits_of_the_cpu(
    place: Any, monkeypatch: pytest.MonkeyPatch, n: int, slices: int
) -> None:
    # Row 0 has an edge to every other row, and all of them fire in every sweep. It is in a slice, or has a warp of its
    # own, whose list holds all edges that fire or a part of them.
    monkeypatch.setattr(cuda_layout, "slices_per_warp", lambda rows: slices)
    index = np.stack([np.arange(n), np.where(np.arange(n) == 0, 1, 0)], axis=1).astype(np.int32)
    table = Neighbors(index, np.repeat([[0.0, 1.0]], n, axis=0).astype(np.float32))
    graph, start = fuzzy_graph(table), np.random.default_rng(0).uniform(0, 5, (n, 2)).astype(np.float32)
    maps = []
    for device in ("cpu", "cuda"):
        layout = Layout(graph, start, fit_ab(), Schedule(5, sweeps=1), seed=4, device=device)
        layout.step(5)
        maps.append(layout.embedding)
    assert same_bits(*maps)


@pytest.mark.parametrize("slices", [1, 4])
def test_rows_of_all_lengths_have_the_bits_of_the_cpu(place: Any, monkeypatch: pytest.MonkeyPatch, slices: int) -> None:
    # Row i has about i edges, so that rows are in slices of all widths and beyond, and some have edges that never fire.
    monkeypatch.setattr(cuda_layout, "slices_per_warp", lambda rows: slices)
    n, rng = 230, np.random.default_rng(6)
    linked = np.triu(np.arange(n)[:, None] + np.arange(n)[None, :] > n, 1)
    weights = np.where(linked, rng.choice([0.01, 0.2, 0.6, 1.0], (n, n)), 0.0)
    upper = csr_matrix((weights + weights.T).astype(np.float32))
    zeros = np.zeros(n, np.float32)
    graph = Graph(upper.indptr.astype(np.int64), upper.indices.astype(np.int32), upper.data, n, zeros, zeros)
    assert (np.diff(graph.indptr) > cuda_layout.MOST_SLICED).sum() > 32
    start, fixed = rng.uniform(0, 5, (n, 2)).astype(np.float32), np.arange(n) % 7 == 0
    maps = []
    for device in ("cpu", "cuda"):
        layout = Layout(graph, start, fit_ab(), Schedule(8), seed=4, fixed=fixed, device=device)
        layout.step(8)
        maps.append(layout.embedding)
    assert same_bits(*maps)


def test_placement_has_the_bits_of_the_cpu(place: Any, rows: Rows) -> None:
    rng = np.random.default_rng(3)
    reference = rng.uniform(0, 5, (len(rows), 2)).astype(np.float32)
    indptr = np.arange(41, dtype=np.int64) * 5
    indices = np.concatenate([rng.choice(len(rows), 5, replace=False) for _ in range(40)]).astype(np.int32)
    zeros = np.zeros(40, np.float32)
    graph = Graph(indptr, indices, rng.uniform(0, 1, 200).astype(np.float32), len(rows), zeros, zeros)
    start, keys = reference[:40] + np.float32(0.1), rng.integers(0, 2**63, 40).astype(np.uint64)
    maps = []
    for where in (None, place):
        layout = Placement(graph.on(where), start, reference, fit_ab(), Schedule(10, sweeps=1), seed=5, row_keys=keys)
        layout.step(10)
        maps.append(layout.embedding)
    assert same_bits(*maps)


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_medoids_have_the_bits_of_the_cpu(place: Any, rows: Rows, n_components: int) -> None:
    rng = np.random.default_rng(4)
    reference = rng.normal(size=(len(rows), n_components)).astype(np.float32)
    distance = np.sort(rng.uniform(0, 3, (50, 9)), axis=1).astype(np.float32)
    index = np.stack([rng.choice(len(rows), 9, replace=False) for _ in range(50)]).astype(np.int32)
    table = Neighbors(index, distance).within(2.5)
    table = Neighbors(np.where(np.arange(50)[:, None] == 7, -1, table.index), table.distance)  # a row without neighbors
    here, there = (bipartite_graph(table.on(where), len(rows)) for where in (None, place))
    assert there.place is place
    for part in ("indptr", "indices", "weights", "rho", "sigma"):
        assert same_bits(getattr(here, part), getattr(there, part)), part
    assert same_bits(neighbor_medoid(here, reference), neighbor_medoid(there, reference))


def test_changed_weights_stay_where_the_graph_is(place: Any, rows: Rows) -> None:
    graph = fuzzy_graph(find_neighbors(rows, 8))
    weight = np.linspace(0.5, 2.0, len(rows))
    for change in (Graph.relative, lambda graph: graph.weighing_tails(weight)):
        there = change(graph.on(place))
        assert there.place is place
        assert same_bits(there.weights, change(graph).weights)


def test_placing_all_points_restarts_the_layout_there(place: Any, rows: Rows) -> None:
    graph, start = fuzzy_graph(find_neighbors(rows, 8)), np.random.default_rng(1).uniform(0, 3, (len(rows), 2))
    maps = []
    for device in ("cpu", "cuda"):
        layout = Layout(graph, start, fit_ab(), Schedule(10), seed=2, device=device)
        layout.step(2)
        layout.embedding = start.astype(np.float32) + 1
        layout.step(3)
        maps.append(layout.embedding)
    assert same_bits(*maps)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"metric": "cosine", "n_components": 3},
        {"metric": "canberra"},
        {"densmap": True, "n_epochs": 40},
        {"update_negatives": True, "init": "random"},
    ],
    ids=str,
)
def test_fit_of_few_rows_has_the_bits_of_the_cpu(place: Any, rows: Rows, parameters: dict[str, Any]) -> None:
    maps = [
        vicinal.UMAP(**{"n_neighbors": 8, "random_state": 0, "n_epochs": 20, "device": device} | parameters).fit(rows)
        for device in ("cpu", "cuda")
    ]
    assert same_bits(maps[0].embedding_, maps[1].embedding_)
    assert (maps[0].graph_ != maps[1].graph_).nnz == 0


def test_fit_with_labels_weights_and_pins_has_the_bits_of_the_cpu(place: Any, rows: Rows) -> None:
    labels, weight, mask = np.arange(len(rows)) // 90, 1.0 + np.arange(len(rows)) % 3, np.arange(len(rows)) < 10
    given = {"sample_weight": weight, "fixed_mask": mask, "fixed_positions": np.ones((len(rows), 2)) * mask[:, None]}
    maps = [
        vicinal.UMAP(n_neighbors=8, random_state=0, n_epochs=20, device=device).fit(rows, labels, **given)
        for device in ("cpu", "cuda")
    ]
    assert same_bits(maps[0].embedding_, maps[1].embedding_)


@pytest.mark.parametrize("estimator", [vicinal.TSNE, vicinal.LargeVis])
def test_other_methods_have_the_bits_of_the_cpu(place: Any, rows: Rows, estimator: Any) -> None:
    epochs = {"max_iter": 20} if estimator is vicinal.TSNE else {"n_epochs": 10}
    maps = [estimator(random_state=0, device=device, **epochs).fit(rows).embedding_ for device in ("cpu", "cuda")]
    assert same_bits(*maps)
