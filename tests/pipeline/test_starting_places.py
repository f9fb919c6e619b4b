"""Starting places of rows that join a map."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from vicinal.pipeline.place import NOISE, free_places, places_near_neighbors


def test_a_row_starts_at_its_nearest_placed_neighbor() -> None:
    places = np.array([[0.0, 0.0], [5.0, 5.0]], dtype=np.float32)
    index = np.array([[2, 1, 0], [3, 2, -1], [4, -1, -1]], dtype=np.int32)
    new = places_near_neighbors(index, places, np.random.default_rng(0), 3.0)
    assert np.linalg.norm(new[0] - places[1]) < 6 * NOISE
    assert np.linalg.norm(new[1] - places[1]) < 6 * NOISE
    assert np.linalg.norm(places - new[2], axis=1).min() > 2.0


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_free_places_are_apart_and_near(dim: int) -> None:
    rng = np.random.default_rng(0)
    places = rng.normal(scale=10.0, size=(2000, dim)).astype(np.float32)
    places[0] = 1e30  # a place far away costs nothing
    found = np.array(list(itertools.islice(free_places(places, rng, 3.0), 400)))
    every = np.concatenate([places[1:], found])
    apart = np.linalg.norm(found[:, None] - every[None], axis=2)
    apart[np.arange(400), 1999 + np.arange(400)] = np.inf
    assert apart.min() >= 2.9
    assert np.abs(found).max() < (1200.0 if dim == 1 else 100.0)


@pytest.mark.nightly
def test_the_width_of_a_map_of_pieces_grows_with_their_square_root() -> None:
    places, rng = np.zeros((1, 2), np.float32), np.random.default_rng(0)
    alone = np.full((1, 3), -1, dtype=np.int32)
    for _ in range(1000):
        places = np.concatenate([places, places_near_neighbors(alone, places, rng, 3.0)])
    assert np.abs(places).max() < 2 * 3.0 * np.sqrt(1000)
