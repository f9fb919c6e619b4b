"""Basins, merges, layers and votes, on points whose clusters are known."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.metrics import adjusted_rand_score

from vicinal import find_neighbors, fuzzy_graph
from vicinal.areas.hierarchy import NOISE, basins, islands, majority, merge_basins, shares
from vicinal.areas.layers import STABLE, agreement, find_layers, matched
from vicinal.areas.separation import IN_THE_DATA, MADE_BY_THE_MAP, measure_gaps

CLUSTERS, EACH = 4, 150


def blobs(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(CLUSTERS), EACH)
    corners = np.array([[0, 0], [20, 0], [0, 20], [20, 20]])
    return (corners[truth] + rng.normal(size=(len(truth), 2))).astype(np.float32), truth


def graph_of(points: np.ndarray) -> csr_matrix:
    return fuzzy_graph(find_neighbors(points, 15)).to_scipy()


def test_separate_blobs_are_islands(global_random_seed: int) -> None:
    points, truth = blobs(global_random_seed)
    assert adjusted_rand_score(truth, islands(points)) == 1.0


def test_basins_lie_within_blobs_and_are_merged_to_them(global_random_seed: int) -> None:
    points, truth = blobs(global_random_seed)
    basin = basins(points)
    assert all(len(set(truth[basin == one])) == 1 for one in range(basin.max() + 1))
    tree = merge_basins(graph_of(points), basin)
    assert tree.sizes[: tree.n_basins].sum() == len(points)
    # blobs without an edge between them are never merged, whatever the resolution
    assert adjusted_rand_score(truth, tree.cut(1e-9, 2)[basin]) == 1.0


def test_merge_strength_is_the_weight_relative_to_chance() -> None:
    # two triangles of weight 1, joined by an edge of weight 0.5
    edges = [(0, 1, 1.0), (1, 2, 1.0), (0, 2, 1.0), (3, 4, 1.0), (4, 5, 1.0), (3, 5, 1.0), (2, 3, 0.5)]
    heads, tails, weights = (np.array(one) for one in zip(*edges, strict=True))
    half = csr_matrix((weights, (heads, tails)), shape=(6, 6))
    tree = merge_basins((half + half.T).tocsr(), np.array([0, 0, 0, 1, 1, 1], dtype=np.int32))
    assert tree.strength.tolist() == pytest.approx([0.5 * 13.0 / (6.5 * 6.5)])
    assert tree.children.tolist() == [[0, 1]]
    assert tree.cut(0.1, 1).tolist() == [0, 0]
    assert sorted(tree.cut(0.2, 1).tolist()) == [0, 1]
    assert tree.cut(0.2, 4).tolist() == [0, 0]  # neither part is large enough to stand alone
    assert tree.cut(0.2, 7).tolist() == [NOISE, NOISE]


def test_a_row_belongs_to_the_majority_of_its_edges() -> None:
    weights = csr_matrix(np.array([[0, 2, 1, 0], [1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0.0]]))
    labels, strength = majority(shares(weights, np.array([0, 0, 1, -1], dtype=np.int32), 2))
    assert labels.tolist() == [0, NOISE, 0, NOISE]
    assert strength.tolist() == pytest.approx([2 / 3, 0.0, 1.0, 0.0])


def test_layers_are_nested_and_numbered_by_size(global_random_seed: int) -> None:
    rng = np.random.default_rng(global_random_seed)
    points = rng.normal(size=(1500, 2)).astype(np.float32)
    layers, main = find_layers(graph_of(points), points)
    assert len(layers) >= 2
    assert 0 <= main < len(layers)
    for layer in layers:
        layer.check()
        assert (np.diff(layer.sizes) <= 0).all()
        assert layer.sizes.min() > 0
    for before, after in pairwise(layers):
        inside = after.labels >= 0
        assert (before.labels[inside] == after.parent[after.labels[inside]]).all()
        assert after.n_clusters > before.n_clusters


def test_layers_have_the_same_bits_for_any_number_of_threads(global_random_seed: int) -> None:
    points = np.random.default_rng(global_random_seed).normal(size=(800, 2)).astype(np.float32)
    weights = graph_of(points)
    found = [find_layers(weights, points, n_jobs=jobs)[0] for jobs in (1, 2, 5)]
    for layers in found[1:]:
        for one, other in zip(found[0], layers, strict=True):
            assert one.labels.tobytes() == other.labels.tobytes()
            assert one.strength.tobytes() == other.strength.tobytes()
            assert one.stability == other.stability


def test_blobs_are_the_coarsest_layer_and_the_main_layer_is_stable(global_random_seed: int) -> None:
    points, truth = blobs(global_random_seed)
    layers, main = find_layers(graph_of(points), points)
    assert agreement(layers[0].labels, truth.astype(np.int32)) == 1.0
    assert layers[0].stability == 1.0
    assert layers[main].stability >= STABLE
    unmeasured, _ = find_layers(graph_of(points), points, repeats=0)
    assert [layer.labels.tobytes() for layer in unmeasured] == [layer.labels.tobytes() for layer in layers]


def test_rows_without_edges_are_noise() -> None:
    points, _ = blobs(0)
    weights = graph_of(points).tolil()
    weights[7] = 0
    weights[:, 7] = 0
    layers, _ = find_layers(weights.tocsr(), points)
    assert all(layer.labels[7] == NOISE and layer.strength[7] == 0 for layer in layers)
    nothing, _ = find_layers(csr_matrix((len(points), len(points))), points)
    assert all(layer.n_clusters == 0 and (layer.labels == NOISE).all() for layer in nothing)


def test_equal_points_are_one_cluster() -> None:
    points = np.zeros((60, 2), dtype=np.float32)
    layers, _ = find_layers(graph_of(np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)), points)
    assert layers[0].n_clusters == 1


def test_partners_share_as_many_rows_as_possible() -> None:
    a, b = np.array([0, 0, 0, 1, 1, -1], np.int32), np.array([1, 1, 0, 0, 0, 0], np.int32)
    pairs = matched(a, b, 2, 2)
    assert [(one["cluster"], one["other"], one["shared"]) for one in pairs] == [(0, 1, 2), (1, 0, 2)]
    assert pairs[0]["jaccard"] == pytest.approx(2 / 3)
    assert pairs[0]["share"] == pytest.approx(2 / 3)
    assert agreement(a, b) == pytest.approx(4 / 6)


def test_gaps_of_the_data_and_gaps_that_only_the_map_has(global_random_seed: int) -> None:
    points, truth = blobs(global_random_seed)
    labels = truth.astype(np.int32)
    middles = np.stack([points[truth == one].mean(axis=0) for one in range(CLUSTERS)])
    assert {gap.verdict for gap in measure_gaps(graph_of(points), points, labels, CLUSTERS, middles)} == {IN_THE_DATA}
    # one cloud whose halves a map has pulled apart
    cloud = np.random.default_rng(global_random_seed).normal(size=(600, 6)).astype(np.float32)
    halves = (cloud[:, 0] > 0).astype(np.int32)
    drawn = cloud[:, :2] + 10 * halves[:, None]
    middles = np.stack([drawn[halves == one].mean(axis=0) for one in (0, 1)])
    (gap,) = measure_gaps(graph_of(cloud), drawn, halves, 2, middles)
    assert gap.verdict == MADE_BY_THE_MAP
