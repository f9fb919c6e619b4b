"""An epoch of the C++ layout against the reference's, with the edges that fire and the negatives drawn.

The generator (cpp/rng.hpp) and the firing rule (cpp/sampled_layout.hpp) are restated from their comments.
"""

from __future__ import annotations

import numpy as np
import pytest
import reference
from numpy.typing import NDArray

from vicinal import Graph, Kernel, Layout, Neighbors, Schedule, fuzzy_graph
from vicinal.layout.sampled import Placement

KERNEL = Kernel(1.577, 0.8951)
N, NEGATIVES, SEED = 90, 5, 11
RATE = 0.05
# A schedule may cut an epoch into sweeps, in each of which an edge fires that much more rarely.
OFTEN = 1.0 / Schedule().sweeps
# Steps are float32 and each starts where the last one ended.
TOLERANCE = 1e-4
WORD = 2**64
LAYOUT_STREAM, PHASE_STREAM = 0, 1


def mix64(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) % WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % WORD
    return x ^ (x >> 31)


def stream_key(seed: int, stream: int, part: int = 0) -> int:
    return mix64(mix64(mix64(seed) ^ stream) ^ part)


def row_key(key: int, index: int) -> int:
    return mix64(key ^ index) >> 32


def draw32(key: int, draw: int) -> int:
    x = (key + draw * 0x9E3779B9) % 2**32
    x ^= x >> 16
    x = x * 0x7FEB352D % 2**32
    x ^= x >> 15
    x = x * 0x846CA68B % 2**32
    return x ^ (x >> 16)


def fires(weight: float, phase: int, epoch: int) -> bool:
    """floor((e+1) w + u) > floor(e w + u), in 32-bit fixed point: adding the rate carries."""
    rate = min(int(weight * 2.0**32), 2**32 - 1)
    return (phase + epoch * rate) % 2**32 + rate >= 2**32


def events(
    graph: Graph, epoch: int, keys: NDArray[np.uint64] | None = None, frozen: bool = False
) -> tuple[list[list[int]], list[list[list[int]]]]:
    """Tails of the firing edges of every row, and each edge's negatives."""
    most = 1.0 if frozen else float(graph.weights.max())
    phases = stream_key(SEED, PHASE_STREAM)
    epoch_key = stream_key(SEED, LAYOUT_STREAM, epoch)
    tails: list[list[int]] = []
    negatives: list[list[list[int]]] = []
    for i in range(graph.n):
        name = i if keys is None else int(keys[i])
        fired = []
        for e in range(graph.indptr[i], graph.indptr[i + 1]):
            j = int(graph.indices[e])
            phase = row_key(phases, mix64(min(name, j)) ^ max(name, j))
            if fires(float(graph.weights[e]) / most * OFTEN, phase, epoch):
                fired.append(j)
        key = row_key(epoch_key, name)
        draws = [draw32(key, t + 1) * graph.n_tails >> 32 for t in range(NEGATIVES * len(fired))]
        tails.append(fired)
        negatives.append([draws[NEGATIVES * f : NEGATIVES * (f + 1)] for f in range(len(fired))])
    return tails, negatives


def fitted_epoch(
    embedding: NDArray[np.float32],
    tails: list[list[int]],
    negatives: list[list[list[int]]],
    gamma: float = 1.0,
) -> NDArray[np.float64]:
    return reference.row_owned_epoch(embedding, tails, negatives, KERNEL.a, KERNEL.b, gamma, RATE)


def moves_of_negatives(
    embedding: NDArray[np.float32], tails: list[list[int]], negatives: list[list[list[int]]]
) -> NDArray[np.float64]:
    """Algorithm 1's extra line: a negative moves by the opposite of the step it gives the head."""
    snapshot = embedding.astype(np.float64)
    moves = np.zeros_like(snapshot)
    for row in range(len(tails)):
        for edge in range(len(tails[row])):
            upto = [t[: edge + 1] if r == row else [] for r, t in enumerate(tails)]
            drawn = [[*d[:edge], []] if r == row else [] for r, d in enumerate(negatives)]
            pulled = fitted_epoch(embedding, upto, drawn)[row]
            for negative in negatives[row][edge]:
                if negative != row:
                    push = reference.repel_gradient(pulled, snapshot[negative], KERNEL.a, KERNEL.b)
                    moves[negative] += RATE * np.clip(push, -reference.CLIP, reference.CLIP)
    return moves


def small_graph(n: int = N) -> Graph:
    data = np.random.default_rng(5).normal(size=(n, 4))
    index, distance = reference.exact_neighbors(data, 8)
    return fuzzy_graph(Neighbors(index.astype(np.int32), distance.astype(np.float32)))


def start(n: int, dim: int, seed: int = 6) -> NDArray[np.float32]:
    return np.random.default_rng(seed).uniform(0, 10, size=(n, dim)).astype(np.float32)


def make_layout(graph: Graph, dim: int, gamma: float = 1.0, update_negatives: bool = False) -> Layout:
    schedule = Schedule(negative_sample_rate=NEGATIVES, repulsion_strength=gamma, update_negatives=update_negatives)
    return Layout(graph, start(graph.n, dim), KERNEL, schedule, seed=SEED)


def run(layout: Layout | Placement, epochs: int = 1) -> None:
    """Epochs of the core at a rate of the test's own."""
    layout._engine.step(np.full((epochs, 1), RATE, dtype=np.float32), 1)


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
@pytest.mark.parametrize("gamma", [1.0, 2.5])
def test_epochs_equal_the_reference(dim: int, gamma: float) -> None:
    graph = small_graph()
    layout = make_layout(graph, dim, gamma)
    for epoch in range(4):
        before = layout.embedding
        run(layout)
        expected = fitted_epoch(before, *events(graph, epoch), gamma)
        np.testing.assert_allclose(layout.embedding, expected, rtol=0, atol=TOLERANCE)


def test_a_late_epoch_equals_the_reference() -> None:
    graph = small_graph()
    layout = make_layout(graph, 2)
    run(layout, 1000)
    before = layout.embedding
    run(layout)
    expected = fitted_epoch(before, *events(graph, 1000))
    np.testing.assert_allclose(layout.embedding, expected, rtol=0, atol=10 * TOLERANCE)


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_epochs_that_move_negatives_equal_the_reference(dim: int) -> None:
    graph = small_graph(40)
    layout = make_layout(graph, dim, update_negatives=True)
    for epoch in range(2):
        before = layout.embedding
        run(layout)
        fired = events(graph, epoch)
        moves = moves_of_negatives(before, *fired)
        assert np.abs(moves).max() > 10 * TOLERANCE
        expected = fitted_epoch(before, *fired) + moves
        np.testing.assert_allclose(layout.embedding, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_epochs_among_a_frozen_reference_equal_the_reference(dim: int) -> None:
    n, n_tails, k = 50, 30, 6
    rng = np.random.default_rng(8)
    indices = np.argsort(rng.random((n, n_tails)), axis=1)[:, :k].astype(np.int32)
    weights = rng.uniform(0.1, 0.9, size=n * k).astype(np.float32)
    zeros = np.zeros(n, dtype=np.float32)
    graph = Graph(np.arange(0, n * k + 1, k), indices.reshape(-1), weights, n_tails, zeros, zeros)
    keys = rng.integers(2**63, size=n, dtype=np.uint64)
    fixed = start(n_tails, dim, 9)
    kept = fixed.copy()
    layout = Placement(graph, start(n, dim), fixed, KERNEL, Schedule(), seed=SEED, row_keys=keys)
    for epoch in range(3):
        before = layout.embedding
        run(layout)
        tails, negatives = events(graph, epoch, keys, frozen=True)
        # The reference's rows follow the moving ones and have no edges of their own.
        none: list[list[int]] = [[] for _ in range(n_tails)]
        expected = reference.row_owned_epoch(
            np.concatenate([before, fixed]),
            [[n + j for j in row] for row in tails] + none,
            [[[n + j for j in drawn] for drawn in row] for row in negatives] + none,
            KERNEL.a,
            KERNEL.b,
            1.0,
            RATE,
            pulls=1,
        )
        np.testing.assert_allclose(layout.embedding, expected[:n], rtol=0, atol=TOLERANCE)
    np.testing.assert_array_equal(fixed, kept)


def test_edges_fire_in_proportion_to_their_weight_and_both_ways_together() -> None:
    graph = small_graph()
    counts = np.zeros((N, N))
    epochs = 60
    for epoch in range(epochs):
        for i, fired in enumerate(events(graph, epoch)[0]):
            counts[i, fired] += 1
    np.testing.assert_array_equal(counts, counts.T)
    weights = graph.to_scipy().toarray()
    np.testing.assert_allclose(counts, OFTEN * epochs * weights / weights.max(), atol=1.0)
