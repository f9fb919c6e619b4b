"""The parts of the reliability: preservation, null, displacement, stretch, torn edges, and their combination."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import random as random_sparse
from scipy.stats import false_discovery_control

from vicinal import find_neighbors, fuzzy_graph
from vicinal.areas.hierarchy import islands
from vicinal.graph.graph import Graph
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingDistances, TrainingRows
from vicinal.quality import reliability as displacement
from vicinal.quality.reliability import (
    DUBIOUS,
    OUTLIER,
    TRUSTWORTHY,
    UNDECIDED,
    Standing,
    adjusted,
    compare_with_null,
    local_spread,
    measure_outliers,
    measure_preservation,
    measure_standing,
    measure_stretch,
    measure_tears,
    median_of,
    shuffled_data,
    smoothed,
)

N, K = 200, 5


@pytest.fixture(scope="module")
def places() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(N, 2)).astype(np.float32)


@pytest.fixture(scope="module")
def rows(places: np.ndarray) -> np.ndarray:
    noise = np.random.default_rng(1).normal(size=(N, 3)).astype(np.float32)
    return np.concatenate([places, 0.8 * noise], axis=1)


def test_preservation_equals_counting_ranks(rows: np.ndarray, places: np.ndarray) -> None:
    table = find_neighbors(rows, K + 1)
    kept = measure_preservation(table, places, K)
    distance = np.linalg.norm(places[:, None].astype(np.float64) - places, axis=2)
    rank = distance.argsort(axis=1).argsort(axis=1)
    true = np.take_along_axis(rank, table.index[:, 1:].astype(np.int64), axis=1)
    assert kept.within == N // 5
    assert np.allclose(kept.near, (true <= K).mean(axis=1))
    assert np.allclose(kept.wide, (true <= kept.within).mean(axis=1))
    assert 0 < kept.near.mean() < kept.wide.mean() < 1


def test_preservation_is_one_for_the_data_itself(places: np.ndarray) -> None:
    kept = measure_preservation(find_neighbors(places, K + 1), places, K)
    assert (kept.near == 1).all()
    assert (kept.wide == 1).all()


def test_preservation_of_rows_without_neighbors_is_unknown(places: np.ndarray) -> None:
    table = find_neighbors(places, K + 1)
    index, distance = table.index.copy(), table.distance.copy()
    index[3, 1:], distance[3, 1:] = -1, np.inf
    kept = measure_preservation(Neighbors(index, distance), places, K)
    assert np.isnan(kept.near[3])
    assert np.isnan(kept.wide[3])
    assert np.isfinite(np.delete(kept.near, 3)).all()


def test_preservation_of_many_components_is_that_of_few(places: np.ndarray) -> None:
    table = find_neighbors(places, K + 1)
    wide = np.concatenate([places, np.zeros((N, 10), np.float32)], axis=1)
    assert np.allclose(
        measure_preservation(table, wide, K).near_radius, measure_preservation(table, places, K).near_radius
    )


def test_adjusted_p_values_equal_scipy() -> None:
    p = np.random.default_rng(0).uniform(size=500) ** 2
    assert np.allclose(adjusted(p), false_discovery_control(p))


def test_rows_above_the_null_are_trustworthy_and_rows_below_are_dubious() -> None:
    null = np.random.default_rng(0).normal(0.5, 0.05, size=2000)
    score = np.concatenate([np.full(50, 0.9), np.full(50, 0.1), [0.5, np.nan]])
    found = compare_with_null(score, null)
    assert (found.label[:50] == TRUSTWORTHY).all()
    assert (found.label[50:100] == DUBIOUS).all()
    assert (found.label[100:] == UNDECIDED).all()
    assert np.isnan(found.p_value[101])
    assert found.p_value[0] == pytest.approx(1 / 2001)


def test_scores_of_the_null_itself_are_hardly_ever_called() -> None:
    rng = np.random.default_rng(0)
    found = compare_with_null(rng.uniform(size=2000), rng.uniform(size=2000))
    assert (found.label != UNDECIDED).mean() < 0.01


def test_shuffled_columns_keep_their_values_and_lose_their_correlation() -> None:
    column = np.random.default_rng(0).normal(size=(500, 1)).astype(np.float32)
    rows = np.concatenate([column, 2 * column], axis=1)
    shuffled = shuffled_data(TrainingRows(rows), 0).rows
    assert np.array_equal(np.sort(shuffled, axis=0), np.sort(rows, axis=0))
    assert abs(np.corrcoef(shuffled.T)[0, 1]) < 0.2
    assert np.array_equal(rows[:, 1], 2 * rows[:, 0])  # the data are not changed


def test_shuffled_sparse_columns_keep_their_values() -> None:
    rows = random_sparse(100, 20, density=0.2, format="csr", dtype=np.float32, random_state=0)
    shuffled = shuffled_data(TrainingRows(rows), 0).rows
    assert shuffled.nnz == rows.nnz
    assert (shuffled != rows).nnz > 0
    assert np.array_equal(np.sort(shuffled.toarray(), axis=0), np.sort(rows.toarray(), axis=0))


def test_shuffled_distances_are_distances() -> None:
    matrix = np.abs(np.random.default_rng(0).normal(size=(30, 30))).astype(np.float32)
    matrix += matrix.T
    np.fill_diagonal(matrix, 0)
    shuffled = shuffled_data(TrainingDistances(matrix), 0).rows
    assert np.array_equal(shuffled, shuffled.T)
    assert not shuffled.diagonal().any()
    assert np.array_equal(np.sort(shuffled, axis=None), np.sort(matrix, axis=None))


def test_spread_ignores_rotation_and_translation_of_the_map(places: np.ndarray) -> None:
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]], dtype=np.float32)
    assert local_spread(places, [places @ turn + 7, places * [-1, 1]]).max() < 1e-5


def test_spread_is_the_distance_that_a_row_moves(places: np.ndarray) -> None:
    moved = places.copy()
    moved[5] += [3, 4]
    spread = local_spread(places, [moved, places])
    assert spread[5] == pytest.approx(5 / np.sqrt(2), rel=1e-5)
    assert spread.argmax() == 5


def test_spread_of_equal_places_is_zero() -> None:
    places = np.zeros((40, 2), dtype=np.float32)
    assert not local_spread(places, [places]).any()


def test_smoothing_keeps_a_constant_spread(places: np.ndarray) -> None:
    graph = fuzzy_graph(find_neighbors(places, K + 1))
    assert np.allclose(smoothed(np.full(N, 0.3), graph), 0.3)
    assert np.allclose(smoothed(np.full(N, 0.3), Graph.without_edges(N)), 0.3)


def test_stretch_of_a_map_at_half_the_scale(places: np.ndarray) -> None:
    halved = places.copy()
    halved[: N // 2] = 0.5 * halved[: N // 2] - 50
    data = places.copy()
    data[: N // 2] -= 100
    table = find_neighbors(data, K + 1)
    stretch = measure_stretch(table, measure_preservation(table, halved, K))
    assert np.median(stretch[N // 2 :]) - np.median(stretch[: N // 2]) == pytest.approx(1.0, abs=0.1)


def test_torn_edges_are_the_heavy_edges_to_the_other_side(places: np.ndarray) -> None:
    graph = fuzzy_graph(find_neighbors(places, K + 1))
    torn_map = places.copy()
    torn_map[7] += 100
    kept = measure_preservation(find_neighbors(places, K + 1), torn_map, K)
    share, edges = measure_tears(graph, torn_map, np.minimum(kept.wide_radius, 10.0))
    assert share[7] == pytest.approx(1.0)
    assert len(edges)
    assert ((edges.head == 7) | (edges.tail == 7)).all()
    assert (edges.length > 1).all()
    assert (np.diff(edges.weight * edges.length) <= 0).all()
    whole, none = measure_tears(graph, places, np.full(N, 100.0))
    assert not whole.any()
    assert len(none) == 0


def test_fitted_rotations_of_the_plane_are_those_of_the_singular_vectors() -> None:
    moment = np.random.default_rng(0).normal(size=(500, 2, 2))
    u, _, vt = np.linalg.svd(moment)
    np.testing.assert_allclose(displacement._rotations(moment), u @ vt, atol=1e-12)
    np.testing.assert_array_equal(displacement._rotations(np.zeros((1, 2, 2)))[0], np.eye(2))


def test_medians_of_groups_leave_out_unknown_values() -> None:
    values = np.array([1.0, 5.0, np.nan, 2.0, 4.0, 6.0, np.nan])
    group = np.array([0, 0, 0, 1, 1, 1, 2], dtype=np.int32)
    np.testing.assert_array_equal(median_of(values, group), [3, 3, 3, 4, 4, 4, np.nan])


def test_outliers_are_far_from_their_neighbors(places: np.ndarray, global_random_seed: int) -> None:
    rng = np.random.default_rng(global_random_seed)
    rows = rng.normal(size=(300, 20)).astype(np.float32)
    rows[7] *= 5
    found = measure_outliers(find_neighbors(rows, K + 1), K)
    assert found.argmax() == 7
    assert found[7] > OUTLIER > np.delete(found, 7).max()


def standing_of(table: Neighbors, places: np.ndarray, null_wide: float = 0.0) -> Standing:
    return measure_standing(table, measure_preservation(table, places, K), islands(places), null_wide)


def test_rows_on_their_island_are_kept_and_rows_on_another_are_not(global_random_seed: int) -> None:
    rng = np.random.default_rng(global_random_seed)
    cluster = np.repeat([0, 1, 2, 3], 150)
    rows = (20 * rng.normal(size=(4, 30))[cluster] + rng.normal(size=(600, 30))).astype(np.float32)
    corners = np.array([[0, 0], [50, 0], [0, 50], [50, 50]])
    drawn = (corners[cluster] + rng.normal(size=(600, 2))).astype(np.float32)  # no order inside of a cluster
    drawn[:5] = drawn[-5:] + rng.normal(scale=0.1, size=(5, 2))
    found = standing_of(find_neighbors(rows, K + 1), drawn)
    assert found.kept[:5].max() < 0.5
    assert np.median(found.kept[5:]) > 0.9


def test_on_a_single_island_the_ranks_alone_count(rows: np.ndarray, places: np.ndarray) -> None:
    table = find_neighbors(rows, K + 1)
    found = standing_of(table, places)
    if len(np.unique(found.island)) == 1:
        assert np.allclose(found.kept, measure_preservation(table, places, K).wide)
    one = measure_standing(table, measure_preservation(table, places, K), np.zeros(N, np.int32), 0.9)
    assert not one.placed.any()
    assert np.allclose(one.kept, np.clip(2 * measure_preservation(table, places, K).wide - 1, 0, 1))


def test_edges_that_all_rows_of_an_island_tear_do_not_count(places: np.ndarray) -> None:
    graph = fuzzy_graph(find_neighbors(places, K + 1))
    radius = np.full(N, 1e-3)  # every edge is longer
    assert measure_tears(graph, places, radius)[0].min() == pytest.approx(1.0)
    share, edges = measure_tears(graph, places, radius, np.zeros(N, np.int32))
    assert share.max() < 1e-9
    assert len(edges) == 0


@pytest.mark.parametrize(
    ("null_wide", "wide", "reasons"),
    [
        (0.93, [0.36, 0.5, 0.79, 0.95], [*["neighbors lost"] * 3, "too few rows to say"]),
        (0.3, [0.1, 0.2, 0.5], ["neighbors lost", *["no better than chance"] * 2]),
    ],
    ids=["few rows", "many rows"],
)
def test_a_row_that_loses_far_more_than_chance_does_has_lost_its_neighbors(
    null_wide: float, wide: list[float], reasons: list[str]
) -> None:
    share, ones = np.array(wide), np.ones(len(wide))
    chance = min(null_wide, 0.5)
    kept = np.clip((share - chance) / (1 - chance), 0, 1)
    standing = Standing(kept, 0 * ones, ones, np.zeros(len(wide), np.int32), null_wide)
    found = displacement._reasons(share, standing, (ones, ones), np.full(len(wide), "undecided"))
    assert found.tolist() == reasons
