"""Sweeps of the compiled layout against the reference, with the same firing edges and negatives.

The random generator (cpp/base/rng.hpp) and the firing rule (cpp/layout/firing.hpp) are implemented here a second
time, from their description.
"""

from __future__ import annotations

import numpy as np
import pytest
import reference
from measured import assert_equation
from numpy.typing import NDArray

from vicinal import Graph, Kernel, Layout, Neighbors, Schedule, fuzzy_graph
from vicinal.layout.sampled import Placement

KERNEL = Kernel(1.577, 0.8951)
N, NEGATIVES, SEED = 90, 5, 11
RATE = 0.05
# Firings per sweep of the heaviest edge.
FIRINGS = 1.0 / Schedule().sweeps
# Steps are float32, and each starts from the place after the previous one.
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


def fires(weight: float, phase: int, sweep: int) -> bool:
    """Return whether floor((s+1) w + u) > floor(s w + u), in 32-bit fixed point: whether adding the rate carries."""
    rate = min(int(weight * 2.0**32), 2**32 - 1)
    return (phase + sweep * rate) % 2**32 + rate >= 2**32


def events(
    graph: Graph, sweep: int, keys: NDArray[np.uint64] | None = None, frozen: bool = False
) -> tuple[list[list[int]], list[list[list[int]]]]:
    """Return the tails of the firing edges of each row, and the negatives of each of these edges."""
    most = 1.0 if frozen else float(graph.weights.max())
    phases = stream_key(SEED, PHASE_STREAM)
    sweep_key = stream_key(SEED, LAYOUT_STREAM, sweep)
    tails: list[list[int]] = []
    negatives: list[list[list[int]]] = []
    for i in range(graph.n):
        name = i if keys is None else int(keys[i])
        found = []
        for e in range(graph.indptr[i], graph.indptr[i + 1]):
            j = int(graph.indices[e])
            phase = row_key(phases, mix64(min(name, j)) ^ max(name, j))
            if fires(float(graph.weights[e]) / most * FIRINGS, phase, sweep):
                found.append((draw32(phase, 0), j))
        key = row_key(sweep_key, name)
        # In the order of a hash of the phases, from a random edge on.
        first = draw32(key, 0) * len(found) >> 32
        ordered = [j for _, j in sorted(found)]
        fired = ordered[first:] + ordered[:first]
        draws = [draw32(key, t + 1) * graph.n_tails >> 32 for t in range(NEGATIVES * len(fired))]
        tails.append(fired)
        negatives.append([draws[NEGATIVES * f : NEGATIVES * (f + 1)] for f in range(len(fired))])
    return tails, negatives


def reference_sweep(
    embedding: NDArray[np.float32],
    tails: list[list[int]],
    negatives: list[list[list[int]]],
    gamma: float = 1.0,
    longest_push: float = np.inf,
) -> NDArray[np.float64]:
    return reference.row_owned_epoch(
        embedding, tails, negatives, KERNEL.a, KERNEL.b, gamma, RATE, longest_push=longest_push
    )


def moves_of_negatives(
    embedding: NDArray[np.float32], tails: list[list[int]], negatives: list[list[list[int]]]
) -> NDArray[np.float64]:
    """Return the moves of negatives in Algorithm 1: the opposite of the step that they give to the head."""
    snapshot = embedding.astype(np.float64)
    moves = np.zeros_like(snapshot)
    for row in range(len(tails)):
        for edge in range(len(tails[row])):
            upto = [t[: edge + 1] if r == row else [] for r, t in enumerate(tails)]
            drawn = [[*d[:edge], []] if r == row else [] for r, d in enumerate(negatives)]
            pulled = reference_sweep(embedding, upto, drawn)[row]
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


def run(layout: Layout | Placement, sweeps: int = 1) -> None:
    """Run sweeps of the backend with a constant learning rate."""
    layout._engine.step(np.full((sweeps, 1), RATE, dtype=np.float32), 1)


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
@pytest.mark.parametrize("gamma", [1.0, 2.5])
def test_sweeps_equal_the_reference(dim: int, gamma: float) -> None:
    graph = small_graph()
    layout = make_layout(graph, dim, gamma)
    for sweep in range(4):
        before = layout.embedding
        run(layout)
        expected = reference_sweep(before, *events(graph, sweep), gamma)
        assert_equation("Algorithm 1", layout.embedding, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("dim", [2, 5])
def test_sweeps_with_short_pushes_equal_the_reference(dim: int) -> None:
    graph = small_graph()
    schedule = Schedule(negative_sample_rate=NEGATIVES, longest_push=0.002)
    layout, usual = Layout(graph, start(graph.n, dim), KERNEL, schedule, seed=SEED), make_layout(graph, dim)
    for sweep in range(4):
        before = layout.embedding
        run(layout)
        expected = reference_sweep(before, *events(graph, sweep), longest_push=0.002)
        np.testing.assert_allclose(layout.embedding, expected, rtol=0, atol=TOLERANCE)
    run(usual, 4)
    assert not np.allclose(layout.embedding, usual.embedding, rtol=0, atol=10 * TOLERANCE)


def test_a_late_sweep_equals_the_reference() -> None:
    graph = small_graph()
    layout = make_layout(graph, 2)
    run(layout, 1000)
    before = layout.embedding
    run(layout)
    expected = reference_sweep(before, *events(graph, 1000))
    np.testing.assert_allclose(layout.embedding, expected, rtol=0, atol=10 * TOLERANCE)


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_sweeps_that_move_negatives_equal_the_reference(dim: int) -> None:
    graph = small_graph(40)
    layout = make_layout(graph, dim, update_negatives=True)
    for sweep in range(2):
        before = layout.embedding
        run(layout)
        fired = events(graph, sweep)
        moves = moves_of_negatives(before, *fired)
        assert np.abs(moves).max() > 10 * TOLERANCE
        expected = reference_sweep(before, *fired) + moves
        np.testing.assert_allclose(layout.embedding, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_sweeps_of_a_placement_equal_the_reference(dim: int) -> None:
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
    for sweep in range(3):
        before = layout.embedding
        run(layout)
        tails, negatives = events(graph, sweep, keys, frozen=True)
        # The points of the reference come after the moving rows and have no edges.
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


def firings_of_the_backend(graph: Graph, sweep: int) -> NDArray[np.bool_]:
    """Return the matrix of the edges that fire in a sweep, found from the moves of the backend alone.

    Each row lies alone on its own axis, so a row that tail j pulls gains the coordinate j. There are no negatives.
    """
    n = graph.n
    layout = Layout(graph, np.eye(n, dtype=np.float32), KERNEL, Schedule(negative_sample_rate=0), seed=SEED)
    run(layout, sweep)
    layout.embedding = np.eye(n, dtype=np.float32)
    run(layout)
    return np.asarray((layout.embedding > 0) & ~np.eye(n, dtype=bool))


def test_edges_fire_in_proportion_to_their_weight_at_any_time() -> None:
    """After any number of sweeps an edge has fired as often as its weight says, within one firing."""
    graph = small_graph()
    weights = graph.to_scipy().toarray().astype(np.float64)
    expected = FIRINGS * weights / weights.max()
    counts = np.zeros((N, N))
    for sweep in range(60):
        counts += firings_of_the_backend(graph, sweep)
        assert np.abs(counts - (sweep + 1) * expected).max() < 1.0 + 1e-5
    # Without these, counts of nothing or of everything could pass for some weights.
    assert (counts[expected * 60 >= 1.0] > 0).all()
    assert (counts[expected == 0.0] == 0).all()


def test_an_edge_fires_in_both_directions_in_the_same_sweep() -> None:
    graph = small_graph()
    for sweep in (0, 1, 7, 58):
        fired = firings_of_the_backend(graph, sweep)
        assert fired.any()
        np.testing.assert_array_equal(fired, fired.T)


def test_the_firing_rule_of_this_file_is_that_of_the_backend() -> None:
    graph = small_graph()
    for sweep in (0, 1, 7, 58):
        expected = np.zeros((N, N), dtype=bool)
        for row, tails in enumerate(events(graph, sweep)[0]):
            expected[row, tails] = True
        np.testing.assert_array_equal(firings_of_the_backend(graph, sweep), expected)
