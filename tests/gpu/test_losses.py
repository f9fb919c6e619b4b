"""Costs of a map summed up on a device, with the bits of the CPU's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import vicinal
from vicinal import Graph, entropic_graph, find_neighbors, fit_ab, fuzzy_graph
from vicinal.quality.losses import (
    cross_entropy,
    effective_loss,
    expected_gradient,
    kl_divergence,
    negative_log_likelihood,
)

Rows = NDArray[np.float32]


@pytest.fixture(scope="module")
def graph() -> Graph:
    rng = np.random.default_rng(0)
    return fuzzy_graph(find_neighbors(rng.normal(size=(1061, 6)).astype(np.float32), 12))


def places(n: int, dim: int) -> Rows:
    return np.random.default_rng(1).normal(scale=3.0, size=(n, dim)).astype(np.float32)


@pytest.mark.parametrize("samples", [None, 40])
@pytest.mark.parametrize("dim", [2, 3])
def test_costs_have_the_bits_of_the_cpu(place: Any, graph: Graph, dim: int, samples: int | None) -> None:
    points, kernel = places(graph.n, dim), fit_ab()
    points[5] = points[6]
    there = graph.on(place)
    for cost in (cross_entropy, effective_loss):
        assert cost(graph, points, kernel, samples=samples) == cost(there, points, kernel, samples=samples)
    assert negative_log_likelihood(graph, points, samples=samples) == negative_log_likelihood(
        there, points, samples=samples
    )


@pytest.mark.parametrize("dof", [1.0, 0.7])
def test_divergence_is_that_of_the_cpu(place: Any, rows: Rows, dof: float) -> None:
    graph = entropic_graph(find_neighbors(rows, 16), 5.0)
    here, there = (kl_divergence(one, places(graph.n, 2), dof) for one in (graph, graph.on(place)))
    assert (here.attraction, here.repulsion) == (there.attraction, there.repulsion)
    np.testing.assert_allclose(float(there), float(here), rtol=1e-7)


def test_row_with_many_edges_is_summed_in_blocks(place: Any) -> None:
    n = 1300
    head = np.concatenate([np.zeros(n - 1), np.arange(1, n)]).astype(np.int32)
    tail = np.concatenate([np.arange(1, n), np.zeros(n - 1)]).astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(head, minlength=n))]).astype(np.int64)
    weights, zeros = np.linspace(0.1, 1.0, 2 * n - 2).astype(np.float32), np.zeros(n, np.float32)
    graph = Graph(indptr, tail, weights, n, zeros, zeros)
    points = places(n, 2)
    assert effective_loss(graph, points, fit_ab()) == effective_loss(graph.on(place), points, fit_ab())


def test_gradients_of_a_graph_on_a_device_are_those_of_the_cpu(place: Any, graph: Graph) -> None:
    points = places(graph.n, 2)
    here, there = (expected_gradient(one, points, fit_ab(), rows=[3, 7]) for one in (graph, graph.on(place)))
    np.testing.assert_array_equal(here, there)


def test_recorded_losses_are_those_of_the_cpu(place: Any, rows: Rows) -> None:
    settings = {"n_neighbors": 8, "n_epochs": 10, "random_state": 0, "compute_loss": True}
    here, there = (vicinal.UMAP(device=device, **settings).fit(rows).loss_history_ for device in ("cpu", "cuda"))
    assert here == there
