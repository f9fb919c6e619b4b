"""Places around a map."""

from __future__ import annotations

import numpy as np
import pytest

from vicinal.layout.surroundings import Surroundings, surrounded
from vicinal.neighbors.search import nearest_points


def radii(places: np.ndarray, around: Surroundings) -> np.ndarray:
    return np.sqrt(np.square(places - around.center).sum(axis=1)) / around.radius


@pytest.mark.parametrize("dim", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [1, 40, 3000])
def test_isolated_rows_lie_outside_and_apart_from_each_other(dim: int, count: int) -> None:
    rng = np.random.default_rng(dim)
    places = rng.normal(size=(500 + count, dim)).astype(np.float32) * 5 + 100
    isolated = np.zeros(len(places), dtype=bool)
    isolated[rng.choice(len(places), count, replace=False)] = True
    moved = surrounded(places, isolated)
    np.testing.assert_array_equal(moved[~isolated], places[~isolated])
    around = Surroundings.of(places[~isolated])
    assert radii(places[~isolated], around).max() <= 1.000001
    assert radii(moved[isolated], around).min() > 1.199
    outside = np.ascontiguousarray(moved[isolated])
    if count > 1:
        gaps = nearest_points(outside, outside, 2, 1).distance[:, 1]
        assert gaps.min() > (0.2 * 0.04 * around.radius if dim < 3 else 0)


def test_many_isolated_rows_take_room_in_proportion_to_their_number() -> None:
    around = Surroundings(np.zeros(2), 10.0)
    area = [np.square(radii(around.fitted_rows(n), around)).max() - 1.2**2 for n in (100, 1000)]
    assert area[1] / area[0] == pytest.approx(10, rel=1e-3)


def test_map_without_any_edge_is_spread_evenly() -> None:
    places = surrounded(np.zeros((200, 2), np.float32), np.ones(200, dtype=bool))
    assert np.isfinite(places).all()
    assert len(np.unique(places, axis=0)) == 200


def test_place_of_a_new_row_depends_on_its_key_alone() -> None:
    around, keys = (
        Surroundings(np.array([1.0, 2.0]), 3.0),
        np.random.default_rng(0).integers(2**63, size=50).astype("u8"),
    )
    places = around.new_rows(keys)
    np.testing.assert_array_equal(around.new_rows(keys[7:8])[0], places[7])
    np.testing.assert_allclose(radii(places, around), 1.1, rtol=1e-5)
    assert len(np.unique(places, axis=0)) == 50
