"""transform: the place of a row depends on that row alone, and the map does not change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import UMAP, quality

OPTIONS: list[dict[str, Any]] = [
    {},
    {"metric": "cosine", "n_components": 3},
    {"metric": "correlation", "update_negatives": True},
    {"metric": "manhattan", "n_components": 5, "local_connectivity": 2.0},
    {"metric": "chebyshev", "negative_sample_rate": 0},
]


@pytest.fixture(scope="module", params=OPTIONS, ids=str)
def model(request: pytest.FixtureRequest, digits: NDArray[np.float32]) -> UMAP:
    return UMAP(n_epochs=60, random_state=0, **request.param).fit(digits[:1000])


@pytest.fixture(scope="module")
def large(grouped: Any) -> UMAP:
    """Return a model whose transform searches the graph instead of all rows."""
    return UMAP(n_epochs=10, random_state=0, init="pca").fit(grouped(6500, 150))


def test_place_of_a_row_depends_on_that_row_alone(model: UMAP, digits: NDArray[np.float32]) -> None:
    new = digits[1000:1120]
    placed = model.transform(new)
    alone = np.concatenate([model.transform(new[i : i + 1]) for i in range(0, 120, 3)])
    np.testing.assert_array_equal(alone, placed[::3])


def test_order_of_rows_does_not_change_their_places(model: UMAP, digits: NDArray[np.float32]) -> None:
    new = np.concatenate([digits[990:1200], digits[1100:1110]])
    order = np.random.default_rng(0).permutation(len(new))
    np.testing.assert_array_equal(model.transform(new[order]), model.transform(new)[order])


def test_training_rows_keep_their_places(model: UMAP, digits: NDArray[np.float32]) -> None:
    np.testing.assert_array_equal(model.transform(digits[:1000]), model.embedding_)
    np.testing.assert_array_equal(model.transform(digits[500:501]), model.embedding_[500:501])
    mixed = model.transform(digits[900:1100])
    np.testing.assert_array_equal(mixed[:100], model.embedding_[900:])


def test_transform_is_repeatable_and_does_not_change_the_map(model: UMAP, digits: NDArray[np.float32]) -> None:
    kept, graph = model.embedding_.copy(), model.graph_.data.copy()
    first = model.transform(digits[1000:1300])
    np.testing.assert_array_equal(model.transform(digits[1000:1300]), first)
    np.testing.assert_array_equal(model.embedding_, kept)
    np.testing.assert_array_equal(model.graph_.data, graph)
    assert np.isfinite(first).all()
    assert first.dtype == np.float32


def test_equal_rows_share_one_place(digits: NDArray[np.float32]) -> None:
    X = np.concatenate([digits[:300], digits[:50], np.repeat(digits[7:8], 40, axis=0)])
    model = UMAP(n_epochs=60, random_state=0).fit(X)
    np.testing.assert_array_equal(model.embedding_[300:350], model.embedding_[:50])
    np.testing.assert_array_equal(model.embedding_[350:], np.repeat(model.embedding_[7:8], 40, axis=0))
    placed = model.transform(np.repeat(digits[400:401], 5, axis=0))
    np.testing.assert_array_equal(placed, np.repeat(placed[:1], 5, axis=0))


def test_zero_and_minus_zero_are_equal() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    X[:, 1] = 0.0
    model = UMAP(n_epochs=20, random_state=0).fit(X)
    negated = X.copy()
    negated[:, 1] = -0.0
    np.testing.assert_array_equal(model.transform(negated), model.embedding_)


def test_float64_rows_are_rounded_to_float32(model: UMAP, digits: NDArray[np.float32]) -> None:
    new = digits[1000:1050].astype(np.float64) + 0.1
    np.testing.assert_array_equal(model.transform(new), model.transform(new.astype(np.float32)))


def test_approximate_search_places_rows_independently(large: UMAP, grouped: Any) -> None:
    new = grouped(6600, 150)[6500:]
    kept = large.embedding_.copy()
    placed = large.transform(new)
    order = np.random.default_rng(0).permutation(len(new))
    np.testing.assert_array_equal(large.transform(new[order]), placed[order])
    alone = np.concatenate([large.transform(new[i : i + 1]) for i in range(0, 100, 7)])
    np.testing.assert_array_equal(alone, placed[::7])
    np.testing.assert_array_equal(large.transform(large._raw_data[:200]), kept[:200])
    np.testing.assert_array_equal(large.embedding_, kept)


def test_transform_seed_changes_the_places(digits: NDArray[np.float32]) -> None:
    one, other = [
        UMAP(n_epochs=60, random_state=0, transform_seed=seed).fit(digits[:500]).transform(digits[500:550])
        for seed in (42, 43)
    ]
    assert not np.array_equal(one, other)


def test_new_rows_are_placed_in_their_class(digits: NDArray[np.float32], digit_labels: NDArray[np.int64]) -> None:
    model = UMAP(random_state=0, n_epochs=200).fit(digits[:1300])
    both = np.concatenate([model.embedding_, model.transform(digits[1300:])])
    distance = ((both[1300:, None, :] - both[None, :1300, :]) ** 2).sum(axis=2)
    nearest = digit_labels[np.argmin(distance, axis=1)]
    assert np.mean(nearest == digit_labels[1300:]) > 0.9
    assert quality.trustworthiness(digits, both, n_neighbors=15) > 0.95


def test_wrong_number_of_columns_is_refused(model: UMAP, digits: NDArray[np.float32]) -> None:
    with pytest.raises(ValueError, match="features"):
        model.transform(digits[:5, :10])
