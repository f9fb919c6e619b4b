"""The fuzzy graph (survey eq. 1-4) against golden files of umap-learn and against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
from measured import assert_equation
from scipy.sparse import csr_matrix

from vicinal import Neighbors, fuzzy_graph
from vicinal.graph.fuzzy import bipartite_graph

GRAPHS = ("iris", "digits", "repeated")
CASES = [(name, c, m) for name in GRAPHS for c in range(3) for m in range(3)]
TOLERANCE = 1e-5


def golden_neighbors(file: dict[str, Any]) -> Neighbors:
    return Neighbors(file["index"].astype(np.int32), file["distance"])


@pytest.mark.parametrize(("name", "c", "m"), CASES)
def test_weights_equal_those_of_umap_learn(golden: Any, name: str, c: int, m: int) -> None:
    file = golden(name)
    graph = fuzzy_graph(
        golden_neighbors(file),
        local_connectivity=float(file["local_connectivity"][c]),
        set_op_mix_ratio=float(file["set_op_mix_ratio"][m]),
    )
    n = len(file["data"])
    upper = csr_matrix((file["weights"][c, m], (file["rows"], file["cols"])), shape=(n, n)).toarray()
    np.testing.assert_allclose(graph.to_scipy().toarray(), upper + upper.T, rtol=0, atol=TOLERANCE)
    # Tiny memberships may round to 0 in one of the libraries only; no larger ones may be missing.
    present = file["weights"][c, m] > 1e-30
    assert graph.n_edges >= 2 * np.count_nonzero(present)
    assert graph.n_edges <= file["nnz"][c, m]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("c", range(3))
def test_rho_and_sigma_equal_those_of_umap_learn(golden: Any, name: str, c: int) -> None:
    file = golden(name)
    graph = fuzzy_graph(golden_neighbors(file), local_connectivity=float(file["local_connectivity"][c]))
    np.testing.assert_allclose(graph.rho, file["rho"][c], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(graph.sigma, file["sigma"][c], rtol=2e-4, atol=1e-6)


def table_with_gaps(n: int = 80, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Return a neighbor table with duplicates, missing neighbors, and rows without neighbors."""
    rng = np.random.default_rng(1)
    data = rng.normal(size=(n, 3))
    data[10:14] = data[9]
    index, distance = reference.exact_neighbors(data, k)
    distance = distance.astype(np.float32).astype(np.float64)
    index[::5, 7:], distance[::5, 7:] = -1, np.inf
    index[::17, 1:], distance[::17, 1:] = -1, np.inf
    return index, distance


@pytest.mark.parametrize("local_connectivity", [0.0, 0.5, 1.0, 1.25, 2.0, 5.0, 20.0])
@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
def test_graph_equals_the_reference(local_connectivity: float, mix: float) -> None:
    index, distance = table_with_gaps()
    expected = reference.fuzzy_graph(index, distance, mix, local_connectivity)
    graph = fuzzy_graph(
        Neighbors(index.astype(np.int32), distance.astype(np.float32)),
        local_connectivity=local_connectivity,
        set_op_mix_ratio=mix,
    )
    assert_equation("1, 4", graph.to_scipy().toarray(), expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("local_connectivity", [0.0, 0.5, 1.0, 1.25, 2.0, 20.0])
def test_rho_and_sigma_equal_the_reference(local_connectivity: float) -> None:
    index, distance = table_with_gaps()
    rho = reference.nearest_distances(distance, local_connectivity)
    sigma = reference.smooth_scales(distance, rho)
    graph = fuzzy_graph(
        Neighbors(index.astype(np.int32), distance.astype(np.float32)), local_connectivity=local_connectivity
    )
    assert_equation("2", graph.rho, rho, rtol=1e-6, atol=1e-7)
    assert_equation("3", graph.sigma, sigma, rtol=2e-4, atol=1e-6)


def test_neighbors_beyond_the_disconnection_distance_are_ignored() -> None:
    index, distance = reference.exact_neighbors(np.random.default_rng(2).normal(size=(60, 2)), 12)
    distance = distance.astype(np.float32).astype(np.float64)
    limit = float(distance[3, 5])
    far = distance >= limit
    expected = reference.fuzzy_graph(np.where(far, -1, index), np.where(far, np.inf, distance))
    graph = fuzzy_graph(Neighbors(index.astype(np.int32), distance.astype(np.float32)), disconnection_distance=limit)
    np.testing.assert_allclose(graph.to_scipy().toarray(), expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("local_connectivity", [1.0, 1.5, 2.0])
def test_bipartite_graph_solves_eq_3_over_all_its_neighbors(local_connectivity: float) -> None:
    """A new row is not in its own neighbor list: all k columns count, and the rank of rho is one less."""
    rng = np.random.default_rng(3)
    distance = np.sort(rng.uniform(0.5, 2.0, size=(50, 9)), axis=1).astype(np.float32)
    index = np.argsort(rng.random((50, 40)), axis=1)[:, :9].astype(np.int32)
    graph = bipartite_graph(Neighbors(index, distance), 40, local_connectivity=local_connectivity)
    padded = np.pad(distance.astype(np.float64), ((0, 0), (1, 0)))
    rho = reference.nearest_distances(padded, local_connectivity - 1.0)
    np.testing.assert_allclose(graph.rho, rho, rtol=1e-6, atol=1e-7)
    for row in range(50):
        sigma = reference.smooth_scale(padded[row], rho[row], np.log2(9))
        assert graph.sigma[row] == pytest.approx(sigma, rel=2e-4)
        weights = np.exp(-np.maximum(distance[row] - rho[row], 0.0) / sigma)
        np.testing.assert_allclose(graph.weights[9 * row : 9 * row + 9], weights, atol=1e-4)
    np.testing.assert_array_equal(graph.indices.reshape(50, 9), index)
