"""The entropic graph (survey eq. 18, 19) against the reference and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from measured import assert_equation
from numpy.typing import NDArray
from sklearn.manifold import _t_sne

from vicinal import Neighbors, find_neighbors
from vicinal.graph.entropic import entropic_bipartite_graph, entropic_graph


def exact_table(data: NDArray[np.float32], k: int) -> Neighbors:
    index, distance = reference.exact_neighbors(data, k)
    return Neighbors(index.astype(np.int32), distance.astype(np.float32))


def table_with_gaps(n: int = 90, k: int = 24) -> Neighbors:
    """Return a table with near and far rows, equal rows, missing neighbors, and rows without neighbors."""
    rng = np.random.default_rng(1)
    data = rng.normal(size=(n, 3)) * rng.choice([1e-3, 1.0, 50.0], size=(n, 1))
    data[10:14] = data[9]
    table = exact_table(data.astype(np.float32), k)
    index, distance = table.index.copy(), table.distance.copy()
    index[::5, 20:], distance[::5, 20:] = -1, np.inf
    index[::17, 1:], distance[::17, 1:] = -1, np.inf
    return Neighbors(index, distance)


@pytest.mark.parametrize("perplexity", [5.5, 7.5, 18.9, 30.0])
def test_graph_equals_the_reference(perplexity: float) -> None:
    table = table_with_gaps()
    conditional, sigma = reference.entropic_conditionals(table.index, table.distance, perplexity)
    mean = (conditional + conditional.T) / 2.0
    graph = entropic_graph(table, perplexity, normalized=False)
    assert_equation("18", graph.to_scipy().toarray(), mean, rtol=2e-5, atol=1e-30)
    assert_equation("18", graph.sigma, sigma, rtol=2e-5)
    normalized = entropic_graph(table, perplexity)
    np.testing.assert_allclose(normalized.to_scipy().toarray(), mean / mean.sum(), rtol=2e-5, atol=1e-30)


def test_normalized_graph_equals_eq_19(iris: NDArray[np.float32]) -> None:
    table = exact_table(iris, 91)
    conditional, _ = reference.entropic_conditionals(table.index, table.distance, 30.0)
    graph = entropic_graph(table, 30.0)
    expected = reference.mean_probabilities(conditional)
    assert_equation("19", graph.to_scipy().toarray(), expected, rtol=2e-5, atol=1e-30)
    assert graph.weights.sum(dtype=np.float64) == pytest.approx(1.0, abs=1e-6)


def test_graph_equals_that_of_scikit_learn(digits: NDArray[np.float32]) -> None:
    data = digits[:300]
    table = exact_table(data, 300)
    squared = reference.squared_distances(data).astype(np.float32)
    theirs = np.asarray(_t_sne._joint_probabilities(squared, 30.0, 0))
    from scipy.spatial.distance import squareform

    ours = entropic_graph(table, 30.0).to_scipy().toarray()
    # scikit-learn has a tolerance of 1e-5 on the entropy and a lower bound on probabilities.
    np.testing.assert_allclose(ours, squareform(theirs), rtol=2e-3, atol=1e-9)


def test_rows_of_the_bipartite_graph_have_the_perplexity() -> None:
    rng = np.random.default_rng(3)
    distance = np.sort(rng.uniform(0.5, 2.0, size=(50, 19)), axis=1).astype(np.float32)
    index = np.argsort(rng.random((50, 40)), axis=1)[:, :19].astype(np.int32)
    graph = entropic_bipartite_graph(Neighbors(index, distance), 40, 6.0)
    for row in range(50):
        expected = reference.gaussian_conditionals(
            distance[row].astype(np.float64) ** 2,
            reference.perplexity_scale(distance[row].astype(np.float64) ** 2, 6.0),
        )
        np.testing.assert_allclose(graph.weights[19 * row : 19 * row + 19], expected, rtol=2e-5)
    np.testing.assert_array_equal(graph.indices.reshape(50, 19), index)


@pytest.mark.parametrize("scale", [1e-30, 1e-8, 1.0, 1e8, 1e30])
def test_graph_does_not_depend_on_the_scale_of_the_data(scale: float) -> None:
    table = exact_table(np.random.default_rng(4).normal(size=(60, 2)).astype(np.float32), 30)
    scaled = Neighbors(table.index, (table.distance.astype(np.float64) * scale).astype(np.float32))
    expected, found = (entropic_graph(one, 8.0) for one in (table, scaled))
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-4)


def test_the_nearest_possible_perplexity_is_used_for_duplicates() -> None:
    equal = exact_table(np.zeros((40, 3), dtype=np.float32), 20)
    graph = entropic_graph(equal, 5.0, normalized=False)
    np.testing.assert_allclose(graph.degree().sum(), 40.0, rtol=1e-6)
    rows = np.concatenate([np.zeros(30), np.arange(1.0, 31.0)]).astype(np.float32)[:, None]
    graph = entropic_graph(exact_table(rows, 50), 10.0)
    assert np.isfinite(graph.weights).all()
    # There are 29 equal rows, more than the perplexity of 10: they share the probability, other rows have none.
    np.testing.assert_allclose(graph.to_scipy().toarray()[0, 1:30], 1.0 / (29 * 60), rtol=1e-5)


def test_graph_does_not_depend_on_n_jobs(digits: NDArray[np.float32]) -> None:
    table = find_neighbors(digits, 91)
    graphs = [entropic_graph(table, 30.0, n_jobs=jobs) for jobs in (1, 2, 8)]
    for graph in graphs[1:]:
        assert graph.weights.tobytes() == graphs[0].weights.tobytes()
        assert graph.indices.tobytes() == graphs[0].indices.tobytes()
        assert graph.sigma.tobytes() == graphs[0].sigma.tobytes()


@pytest.mark.parametrize("perplexity", [0.5, -1.0, np.nan, np.inf])
def test_invalid_perplexity_is_rejected(perplexity: float) -> None:
    table = exact_table(np.eye(5, dtype=np.float32), 4)
    with pytest.raises(ValueError, match="perplexity"):
        entropic_graph(table, perplexity)
