"""The density term of densMAP: radii, correlation and gradient against eq. 30-35 and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from measured import assert_equation
from numpy.typing import NDArray

from vicinal import Graph, Kernel, Layout, Neighbors, Schedule, fuzzy_graph
from vicinal.layout.density import DensityTerm, Radii, edge_distances

A, B = 1.577, 0.8951
N = 80
SHIFT = 0.1


@pytest.fixture(scope="module")
def parts() -> tuple[Graph, NDArray[np.float32], NDArray[np.float64]]:
    """Return a graph, the distance of each of its edges, and all distances of the data."""
    rng = np.random.default_rng(2)
    data = (rng.normal(size=(N, 4)) * np.repeat([0.2, 1.0, 3.0, 5.0], N // 4)[:, None]).astype(np.float32)
    index, distance = reference.exact_neighbors(data, 9)
    neighbors = Neighbors(index.astype(np.int32), distance.astype(np.float32))
    graph = fuzzy_graph(neighbors)
    return graph, edge_distances(graph, neighbors), np.sqrt(reference.squared_distances(data))


def places(dim: int = 2) -> NDArray[np.float32]:
    return np.random.default_rng(4).uniform(0, 5, size=(N, dim)).astype(np.float32)


def gradient(graph: Graph, radii: Radii, embedding: NDArray[np.float32], jobs: int = 1) -> NDArray[np.float64]:
    """Return the backend's gradient of Corr: of a term so weak that nothing is clipped, divided by its weight."""
    term = DensityTerm(radii.standardized(radii.log_radius), weight=1e-5, variance_shift=SHIFT)
    layout = Layout(graph, embedding, Kernel(A, B), Schedule(10), density=term)
    firings = layout.density_summary[3] * (N - 1)
    return layout._engine.density_gradient(jobs).astype(np.float64) / (1e-5 * firings)


def test_edge_distances_equal_those_of_the_data(parts: tuple[Graph, NDArray[np.float32], NDArray[np.float64]]) -> None:
    graph, length, distance = parts
    np.testing.assert_allclose(length, distance[graph.heads(), graph.indices], rtol=1e-5)


def test_input_radii_equal_the_reference(parts: tuple[Graph, NDArray[np.float32], NDArray[np.float64]]) -> None:
    graph, length, distance = parts
    expected = np.log(reference.local_radius(graph.to_scipy().toarray(), distance**2))
    assert_equation("30", Radii.of(graph, length).log_radius, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_summary_equals_the_reference(parts: tuple[Graph, NDArray[np.float32], NDArray[np.float64]], dim: int) -> None:
    graph, length, _ = parts
    radii = Radii.of(graph, length)
    term = radii.term(2.0, 0.3, SHIFT)
    layout = Layout(graph, places(dim), Kernel(A, B), Schedule(10), density=term)
    mean, variance, covariance, _ = layout.density_summary
    edges = graph.to_scipy().toarray() > 0
    r_q = np.log(reference.embedded_radius(edges, places(dim), A, B))
    standard = (radii.log_radius - radii.log_radius.mean()) / radii.log_radius.std(ddof=1)
    assert_equation("31", mean, r_q.mean(), rtol=1e-5)
    assert_equation("33", variance, r_q.var(ddof=1) + SHIFT, rtol=1e-5)
    assert_equation("33", covariance, np.cov(r_q, standard)[0, 1], rtol=1e-4)


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_gradient_equals_the_survey_and_finite_differences(
    parts: tuple[Graph, NDArray[np.float32], NDArray[np.float64]], dim: int
) -> None:
    graph, length, _ = parts
    radii = Radii.of(graph, length)
    embedding = places(dim).astype(np.float64)
    edges = graph.to_scipy().toarray() > 0
    found = gradient(graph, radii, places(dim))
    survey = reference.correlation_gradient(edges, radii.log_radius, embedding, A, B, SHIFT)
    assert_equation("35", found, survey, rtol=1e-3, atol=1e-6 * np.abs(survey).max() * 100)

    def correlation(y: NDArray[np.float64]) -> float:
        return reference.correlation(np.log(reference.embedded_radius(edges, y, A, B)), radii.log_radius, SHIFT)

    step = 1e-6
    for row in range(0, N, 7):
        for c in range(dim):
            way = np.zeros_like(embedding)
            way[row, c] = step
            slope = (correlation(embedding + way) - correlation(embedding - way)) / (2 * step)
            assert found[row, c] == pytest.approx(slope, rel=2e-3, abs=1e-5)


def test_the_density_term_increases_the_correlation(
    parts: tuple[Graph, NDArray[np.float32], NDArray[np.float64]],
) -> None:
    graph, length, _ = parts
    radii = Radii.of(graph, length)
    edges = graph.to_scipy().toarray() > 0

    def reached(weight: float) -> float:
        layout = Layout(graph, places(), Kernel(A, B), Schedule(200), density=radii.term(weight, 0.5, SHIFT))
        layout.step(200)
        return reference.correlation(
            np.log(reference.embedded_radius(edges, layout.embedding, A, B)), radii.log_radius, 0.0
        )

    assert reached(2.0) > max(0.8, reached(0.0) + 0.1)


@pytest.mark.parametrize("jobs", [2, 8])
def test_gradient_does_not_depend_on_n_jobs(
    parts: tuple[Graph, NDArray[np.float32], NDArray[np.float64]], jobs: int
) -> None:
    graph, length, _ = parts
    radii = Radii.of(graph, length)
    np.testing.assert_array_equal(gradient(graph, radii, places(), jobs), gradient(graph, radii, places()))


def test_whole_and_split_runs_are_equal_and_fixed_rows_stay(
    parts: tuple[Graph, NDArray[np.float32], NDArray[np.float64]],
) -> None:
    graph, length, _ = parts
    term = Radii.of(graph, length).term(2.0, 0.5, SHIFT)
    fixed = np.arange(N) % 5 == 0
    whole, split = (Layout(graph, places(), Kernel(A, B), Schedule(20), density=term, fixed=fixed) for _ in range(2))
    whole.step(20)
    split.step(13)
    split.step(7)
    np.testing.assert_array_equal(whole.embedding, split.embedding)
    np.testing.assert_array_equal(whole.embedding[fixed], places()[fixed])


def test_rows_without_edges_have_no_radius_and_do_not_move() -> None:
    zeros = np.zeros(6, dtype=np.float32)
    indptr, indices = np.array([0, 1, 3, 4, 4, 4, 4]), np.array([1, 0, 2, 1], dtype=np.int32)
    graph = Graph(indptr, indices, np.ones(4, dtype=np.float32), 6, zeros, zeros)
    radii = Radii.of(graph, np.array([1.0, 1.0, 3.0, 3.0], dtype=np.float32))
    assert np.isnan(radii.log_radius[3:]).all()
    layout = Layout(graph, places()[:6], Kernel(A, B), Schedule(30), density=radii.term(2.0, 1.0, SHIFT))
    layout.step(30)
    assert np.isfinite(layout.embedding).all()
    np.testing.assert_array_equal(layout.embedding[3:], places()[3:6])
