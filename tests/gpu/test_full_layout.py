"""t-SNE's layout on a device: the CPU's bits with exact repulsion, the CPU's divergence with a grid."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import vicinal
from vicinal import FullLayout, Graph, Phase, entropic_graph, find_neighbors
from vicinal.backends import backend_of, cpu
from vicinal.backends.cuda import full_layout
from vicinal.layout.full import Convolution, enclose
from vicinal.quality.losses import kl_divergence

Rows = NDArray[np.float32]
PHASES = [Phase(8, exaggeration=12.0, learning_rate=20.0), Phase(30, learning_rate=20.0)]


@pytest.fixture(scope="module")
def graph() -> Graph:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(75, 8)) + 4 * j for j in range(4)]).astype(np.float32)
    return entropic_graph(find_neighbors(X, 31), 10.0)


def start(n: int, dim: int) -> Rows:
    return np.random.default_rng(1).normal(scale=0.5, size=(n, dim)).astype(np.float32)


@pytest.mark.parametrize(("dim", "dof"), [(1, 1.0), (2, 1.0), (2, 0.6), (3, 1.0), (5, 2.0)])
def test_exact_layout_has_the_bits_of_the_cpu(place: Any, graph: Graph, dim: int, dof: float) -> None:
    maps = []
    for where, steps in ((None, (16,)), (place, (5, 11))):
        layout = FullLayout(graph.on(where), start(graph.n, dim), PHASES, dof=dof, method="exact")
        for count in steps:
            layout.step(count)
        assert layout.epoch == 16
        maps.append(layout.embedding)
    assert maps[0].tobytes() == maps[1].tobytes()


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_potential_of_a_grid_is_that_of_the_cpu(place: Any, graph: Graph, dim: int) -> None:
    points = 4 * start(graph.n, dim)
    work = backend_of(place)
    edges = (graph.indptr, graph.indices, graph.weights)
    engine, transforms = work.FullLayout(*edges, points, None, 1.0), work.transforms(1)
    low, high = engine.bounds()
    np.testing.assert_array_equal(low, points.min(axis=0))
    np.testing.assert_array_equal(high, points.max(axis=0))
    box = enclose(low, high, transforms)
    density = engine.spread(box.shape, box.origin, box.spacing)
    np.testing.assert_allclose(float(density.sum()), graph.n, rtol=1e-6)
    found = Convolution(box.padded, box.spacing, 1.0, transforms)(density.reshape(box.shape))
    here = backend_of(None).FullLayout(*edges, points, None, 1.0)
    nodes = here.spread(list(box.shape), list(box.origin), box.spacing, 1)
    np.testing.assert_allclose(place.to_numpy(density), nodes, atol=1e-4)
    host = cpu.Transforms(1)
    expected = Convolution(host.lengths(box.padded), box.spacing, 1.0, host)(nodes.reshape(box.shape))
    np.testing.assert_allclose(place.to_numpy(found), expected, atol=2e-3)


def test_maps_of_a_grid_are_repeatable_and_as_good_as_those_of_the_cpu(place: Any, graph: Graph) -> None:
    phases = [Phase(40, exaggeration=12.0, learning_rate=20.0), Phase(120, learning_rate=20.0)]
    maps = []
    for where, steps in ((None, (160,)), (place, (160,)), (place, (1, 39, 120))):
        layout = FullLayout(graph.on(where), start(graph.n, 2), phases, method="fft")
        for count in steps:
            layout.step(count)
        maps.append(layout.embedding)
    assert maps[1].tobytes() == maps[2].tobytes()
    here, there = (float(kl_divergence(graph, places)) for places in maps[:2])
    assert there < 1.05 * here


def test_first_iterations_of_a_grid_are_close_to_those_of_the_cpu(place: Any, graph: Graph) -> None:
    maps = []
    for where in (None, place):
        layout = FullLayout(graph.on(where), 4 * start(graph.n, 2), PHASES, method="fft")
        layout.step(3)
        maps.append(layout.embedding)
    assert not np.array_equal(maps[0], 4 * start(graph.n, 2))
    np.testing.assert_allclose(*maps, atol=1e-3)


@pytest.mark.parametrize("method", ["exact", "fft"])
def test_new_rows_are_placed_in_a_fixed_map(place: Any, graph: Graph, method: Any) -> None:
    reference, rng = 3 * start(graph.n, 2), np.random.default_rng(3)
    indices = np.concatenate([rng.choice(graph.n, 5, replace=False) for _ in range(20)]).astype(np.int32)
    zeros, weights = np.zeros(20, np.float32), np.full(100, 0.2, np.float32)
    bipartite = Graph(np.arange(21, dtype=np.int64) * 5, indices, weights, graph.n, zeros, zeros)
    first = 2 * start(20, 2)
    first[0] = 40.0  # far outside of the grid
    maps = []
    for where, steps in ((None, (10,)), (place, (4, 6))):
        layout = FullLayout(bipartite.on(where), first, [Phase(10, 1.5, 0.1)], method=method, reference=reference)
        for count in steps:
            layout.step(count)
        maps.append(layout.embedding)
    if method == "exact":
        assert maps[0].tobytes() == maps[1].tobytes()
    else:  # the grids differ in their spacing; outside of them the potential of the border is taken
        np.testing.assert_allclose(maps[0][1:], maps[1][1:], atol=1e-2)
        np.testing.assert_allclose(maps[0][0], maps[1][0], atol=0.5)


def test_interrupted_step_leaves_complete_iterations(place: Any, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FullLayout(graph.on(place), start(graph.n, 2), PHASES, method="fft")
    whole.step(12)
    layout = FullLayout(graph.on(place), start(graph.n, 2), PHASES, method="fft")
    sums, calls = full_layout.column_sums, iter(range(100))

    def interrupted(*arguments: Any, **options: Any) -> Any:
        if next(calls) == 9:  # the second sum of the fifth iteration
            raise KeyboardInterrupt
        return sums(*arguments, **options)

    monkeypatch.setattr(full_layout, "column_sums", interrupted)
    with pytest.raises(KeyboardInterrupt):
        layout.step(12)
    assert layout.epoch == 4
    monkeypatch.undo()
    layout.step(8)
    assert layout.embedding.tobytes() == whole.embedding.tobytes()


def test_padded_lengths_are_few(place: Any) -> None:
    lengths = backend_of(place).transforms(1).lengths
    found = {nodes: lengths((nodes,))[0] for nodes in range(8, 4096)}
    assert all(nodes <= length <= 1.25 * nodes + 1 for nodes, length in found.items())
    assert len(set(found.values())) <= 4 * 9 + 1
    assert lengths((900, 1000)) == (1024, 1024)
    assert lengths((100, 1000)) == (112, 1024)


@pytest.mark.parametrize("perplexity", [1.0, 5.0, 200.0])
def test_entropic_graph_has_the_bits_of_the_cpu(
    place: Any, rows: Rows, perplexity: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vicinal.backends.cuda.graph.CALIBRATION_BYTES", 8 * 16 * 100)
    table = find_neighbors(rows, 16).within(4.0)
    assert (table.index < 0).any()
    for normalized in (True, False):
        here, there = (
            entropic_graph(table, perplexity, normalized=normalized, device=device) for device in ("cpu", "cuda")
        )
        assert there.place is place
        for part in ("indptr", "indices", "weights", "rho", "sigma"):
            assert getattr(here, part).tobytes() == getattr(there, part).tobytes(), part


def test_tsne_on_a_device_finds_a_map_and_places_new_rows(place: Any, rows: Rows) -> None:
    settings = {"perplexity": 10, "max_iter": 60, "early_exaggeration_iter": 20, "random_state": 0}
    maps = [vicinal.TSNE(method="fft", device=device, **settings).fit(rows) for device in ("cpu", "cuda", "cuda")]
    assert maps[1].map_.graph.place is place
    assert maps[1].embedding_.tobytes() == maps[2].embedding_.tobytes()
    assert maps[1].kl_divergence_ < 1.05 * maps[0].kl_divergence_
    new = rows[::30] + np.float32(0.1)
    copy = pickle.loads(pickle.dumps(maps[1]))
    np.testing.assert_allclose(maps[1].transform(new), copy.transform(new), atol=0.05)


def test_callback_sees_and_stops_the_layout(place: Any, rows: Rows) -> None:
    seen: list[tuple[int, float]] = []

    def watch(iteration: int, divergence: float, places: Rows) -> bool:
        assert places.shape == (len(rows), 2)
        seen.append((iteration, divergence))
        return iteration >= 20

    settings = {"callbacks": watch, "callbacks_every_iters": 10, "max_iter": 50, "random_state": 0}
    model = vicinal.TSNE(perplexity=10, device="cuda", **settings).fit(rows)
    assert [iteration for iteration, _ in seen] == [10, 20]
    assert model.n_epochs_ == 20
