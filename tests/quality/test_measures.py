"""Quality measures against scikit-learn, against a direct computation of their formulas, and for unusual input."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn import manifold
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances

from vicinal import quality
from vicinal.quality import measures as spaces

Array = NDArray[Any]


@pytest.fixture(scope="module")
def digits() -> tuple[Array, Array, Array]:
    """500 digits without ties (which scikit-learn breaks in another order), their map and their labels."""
    X, y = load_digits(return_X_y=True)
    X = X[:500] + np.random.default_rng(0).normal(0, 1e-3, (500, 64))
    return X, PCA(2, random_state=0).fit_transform(X), y[:500]


def order(distance: Array) -> Array:
    """Sort the other rows of each row by (distance, index), as the definition says."""
    distance = distance.astype(np.float64).copy()
    np.fill_diagonal(distance, np.inf)
    return np.argsort(distance, axis=1, kind="stable")[:, :-1]


def by_definition(
    X: Array, Y: Array, k: int, within: int, metric: str = "euclidean", rows: Array | None = None
) -> dict[str, float]:
    n = len(X)
    rows = np.arange(n) if rows is None else rows
    high = order(pairwise_distances(X.astype(np.float64), metric=metric))
    low = order(pairwise_distances(Y.astype(np.float64)))
    high_rank, low_rank = np.zeros((n, n), int), np.zeros((n, n), int)
    for i in range(n):
        high_rank[i, high[i]] = low_rank[i, low[i]] = np.arange(1, n)
    scale = 2 / (len(rows) * k * (2 * n - 3 * k - 1))
    trust = sum(max(0, high_rank[i, j] - k) for i in rows for j in low[i, :k])
    continuity = sum(max(0, low_rank[i, j] - k) for i in rows for j in high[i, :k])
    found = sum(low_rank[i, j] <= within for i in rows for j in high[i, :k])
    return {
        "trust": 1 - scale * trust,
        "continuity": 1 - scale * continuity,
        "recall": found / (len(rows) * k),
    }


@pytest.mark.parametrize("k", [1, 5, 15, 100])
def test_trustworthiness_equals_scikit_learn(digits: tuple[Array, Array, Array], k: int) -> None:
    X, Y, _ = digits
    assert quality.trustworthiness(X, Y, n_neighbors=k) == manifold.trustworthiness(X, Y, n_neighbors=k)


def test_trustworthiness_with_ties_is_close_to_scikit_learn() -> None:
    X = load_digits().data[:500]
    Y = PCA(2, random_state=0).fit_transform(X)
    assert quality.trustworthiness(X, Y) == pytest.approx(manifold.trustworthiness(X, Y, n_neighbors=15), abs=1e-4)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", "chebyshev", "correlation"])
def test_measures_equal_their_definitions(digits: tuple[Array, Array, Array], metric: str) -> None:
    X, Y, _ = (part[:120] for part in digits)
    wanted = by_definition(X, Y, 7, 30, metric)
    options: dict[str, Any] = {"n_neighbors": 7, "metric": metric}
    assert quality.trustworthiness(X, Y, **options) == pytest.approx(wanted["trust"], abs=1e-12)
    assert quality.continuity(X, Y, **options) == pytest.approx(wanted["continuity"], abs=1e-12)
    assert quality.neighbor_recall(X, Y, within=30, **options) == pytest.approx(wanted["recall"], abs=1e-12)


def test_integers_with_many_ties_are_ranked_by_index() -> None:
    rng = np.random.default_rng(3)
    # Wide enough for the matrix product, and far from the origin: any rounding would break the ties.
    X = rng.integers(0, 2, (90, 20)) + 1000
    Y = rng.integers(0, 4, (90, 2))
    wanted = by_definition(X, Y, 6, 20)
    assert quality.trustworthiness(X, Y, n_neighbors=6) == pytest.approx(wanted["trust"], abs=1e-12)
    assert quality.continuity(X, Y, n_neighbors=6) == pytest.approx(wanted["continuity"], abs=1e-12)
    assert quality.neighbor_recall(X, Y, n_neighbors=6, within=20) == pytest.approx(wanted["recall"], abs=1e-12)


def test_precomputed_distances_give_the_result_of_their_data(digits: tuple[Array, Array, Array]) -> None:
    X, Y, _ = digits
    table = pairwise_distances(X)
    assert quality.continuity(table, Y, metric="precomputed") == quality.continuity(X, Y)
    with pytest.raises(ValueError, match="X must be square"):
        quality.continuity(X, Y, metric="precomputed")


def test_a_map_that_keeps_all_distances_has_perfect_scores() -> None:
    Y = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    X = np.pad(Y, ((0, 0), (0, 30)))
    found = quality.report(X, 3 * Y, Y[:, 0] > 0)
    assert (found.trustworthiness, found.continuity, found.neighbor_recall) == (1.0, 1.0, 1.0)
    assert found.distance_correlation == pytest.approx(1.0)


def test_identical_rows_at_one_place_count_as_preserved() -> None:
    rng = np.random.default_rng(1)
    which = rng.integers(0, 5, 300)
    X = rng.normal(size=(5, 784)).astype(np.float32)[which]
    spots = PCA(2).fit_transform(X)
    # Rows of one kind must lie at exactly the same place.
    Y = np.array([spots[np.flatnonzero(which == kind)[0]] for kind in which])
    assert quality.neighbor_recall(X, Y, n_neighbors=15) == 1.0
    assert quality.neighbor_recall(X, Y, n_neighbors=15, metric="cosine") == 1.0


@pytest.mark.parametrize("scale", [1e-200, 1e150, 1e300])
def test_scores_do_not_depend_on_the_scale(digits: tuple[Array, Array, Array], scale: float) -> None:
    X, Y, _ = digits
    assert quality.trustworthiness(X * scale, Y) == pytest.approx(quality.trustworthiness(X, Y), abs=1e-9)


def test_scores_do_not_depend_on_an_offset(digits: tuple[Array, Array, Array]) -> None:
    X, Y, _ = digits
    assert quality.trustworthiness(X + 2.0**20, Y) == pytest.approx(quality.trustworthiness(X, Y), abs=1e-6)


def test_scores_do_not_depend_on_the_block_size(
    digits: tuple[Array, Array, Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Y, y = digits
    whole = quality.report(X, Y, y)
    monkeypatch.setattr("vicinal.backends.cpu.TABLE_VALUES", 3000)
    assert len(list(spaces.blocks(np.arange(500), 500, 3000))) == 84
    parts = quality.report(X, Y, y)
    assert parts.measures() == pytest.approx(whole.measures(), abs=1e-12)


def test_a_sample_has_exact_ranks_and_depends_on_the_seed_only(digits: tuple[Array, Array, Array]) -> None:
    X, Y, y = digits
    options: dict[str, Any] = {"n_neighbors": 7, "sample": 60, "seed": 5}
    wanted = by_definition(X, Y, 7, 30, rows=spaces.sampled_rows(500, 60, 5))
    assert quality.trustworthiness(X, Y, **options) == pytest.approx(wanted["trust"], abs=1e-12)
    assert quality.continuity(X, Y, **options) == pytest.approx(wanted["continuity"], abs=1e-12)
    assert quality.neighbor_recall(X, Y, within=30, **options) == pytest.approx(wanted["recall"], abs=1e-12)
    assert len({quality.trustworthiness(X, Y, sample=60, seed=seed) for seed in range(4)}) == 4
    assert quality.trustworthiness(X, Y, sample=500) == quality.trustworthiness(X, Y)
    assert quality.knn_accuracy(Y, y, sample=200) == quality.knn_accuracy(Y, y, sample=200)


def test_recall_increases_to_one_with_within(digits: tuple[Array, Array, Array]) -> None:
    X, Y, _ = digits
    found = [quality.neighbor_recall(X, Y, within=within) for within in (15, 50, 100, 499)]
    assert found == sorted(found)
    assert found[0] == quality.neighbor_recall(X, Y)
    assert found[-1] == 1.0


def test_accuracy_excludes_the_row_and_decides_ties_by_the_nearest_voter() -> None:
    line = np.array([[0.0, 0.0], [1.0, 0.0], [2.5, 0.0], [10.0, 0.0]])
    # Rows 0, 1 and 3 have one voter of each class and the nearer one is right; row 2 is outvoted.
    assert quality.knn_accuracy(line, ["a", "a", "b", "b"], n_neighbors=2) == 0.75
    # If the row itself voted this would be 1.
    assert quality.knn_accuracy(line, ["a", "b", "c", "d"], n_neighbors=1) == 0.0
    assert quality.knn_accuracy(line, [7, 7, 7, 7], n_neighbors=3) == 1.0


def test_distance_correlation_equals_scipy(digits: tuple[Array, Array, Array]) -> None:
    X, Y, _ = digits
    upper = np.triu_indices(len(X), k=1)
    wanted = spearmanr(pairwise_distances(X)[upper], pairwise_distances(Y)[upper]).statistic
    assert quality.distance_correlation(X, Y) == pytest.approx(wanted, abs=1e-12)
    assert quality.distance_correlation(X, Y, sample=150) == pytest.approx(wanted, abs=0.05)
    assert math.isnan(quality.distance_correlation(X, np.zeros((500, 2))))


def test_report_has_the_values_of_the_functions(digits: tuple[Array, Array, Array]) -> None:
    X, Y, y = digits
    found = quality.report(X, Y, y, sample=300, seed=4)
    options: dict[str, Any] = {"sample": 300, "seed": 4}
    assert found.trustworthiness == quality.trustworthiness(X, Y, **options)
    assert found.continuity == quality.continuity(X, Y, **options)
    assert found.neighbor_recall == quality.neighbor_recall(X, Y, **options)
    assert found.neighbor_recall_within == quality.neighbor_recall(X, Y, within=100, **options)
    assert found.distance_correlation == quality.distance_correlation(X, Y, **options)
    assert found.knn_accuracy == quality.knn_accuracy(Y, y, **options)
    assert found.notes == ()
    assert quality.report(X, Y, y, sample=1).n_sampled == 1
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["n_sampled"] == 300
    text = str(found)
    assert "500 rows, measured on 300" in text
    assert f"{found.trustworthiness:.4f}" in text


@pytest.mark.parametrize("n", range(1, 40))
def test_report_uses_fewer_neighbors_for_few_rows(n: int) -> None:
    rng = np.random.default_rng(n)
    found = quality.report(rng.normal(size=(n, 5)), rng.normal(size=(n, 2)), rng.integers(0, 2, n))
    json.dumps(found.as_dict(), allow_nan=False)
    if n < 3:
        assert found.trustworthiness is None
        assert "too few rows" in str(found)
        return
    assert found.n_neighbors == min(15, (n - 1) // 2)
    assert any("n_neighbors reduced" in note for note in found.notes) == (n < 31)
    values = [found.trustworthiness, found.continuity, found.neighbor_recall, found.neighbor_recall_within]
    assert all(value is not None and 0.0 <= value <= 1.0 for value in values)


def test_report_accepts_constant_data_and_missing_labels() -> None:
    labels = np.array(["a", None] * 20, dtype=object)
    found = quality.report(np.ones((40, 3)), np.zeros((40, 2)), labels)
    assert found.neighbor_recall == 1.0
    assert found.distance_correlation is None
    assert found.knn_accuracy == 1.0
    assert any("20 rows that have a label" in note for note in found.notes)
    assert quality.report(np.ones((9, 3)), np.zeros((9, 2)), [math.nan] * 9).knn_accuracy is None


GOOD, MAP = np.random.default_rng(0).normal(size=(40, 3)), np.zeros((40, 2))
HOLE = np.where(np.arange(120).reshape(40, 3) == 22, np.nan, GOOD)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((GOOD, MAP[:39]), {}, "embedding must have one row"),
        ((GOOD[0], MAP), {}, "X must be two-dimensional"),
        ((GOOD, MAP[:, 0]), {}, "embedding must be two-dimensional"),
        ((GOOD[:0], MAP[:0]), {}, "X must be two-dimensional and not empty"),
        ((HOLE, MAP), {}, "X must be finite; row 7"),
        ((GOOD, np.where(np.eye(40, 2) > 0, np.inf, MAP)), {}, "embedding must be finite; row 0"),
        ((GOOD.astype(complex), MAP), {}, "X must be an array of real numbers"),
        ((GOOD.astype(object), MAP), {}, "X must be an array of real numbers"),
        ((GOOD, MAP), {"n_neighbors": 20}, "n_neighbors must be less than n / 2"),
        ((GOOD, MAP), {"n_neighbors": 0}, "n_neighbors must be a positive integer"),
        ((GOOD, MAP), {"n_neighbors": 2.5}, "n_neighbors must be a positive integer"),
        ((GOOD, MAP), {"sample": 0}, "sample must be a positive"),
        ((GOOD, MAP), {"sample": 2.5}, "sample must be a positive"),
        ((GOOD, MAP), {"metric": "nonsense"}, "metric"),
    ],
)
@pytest.mark.parametrize("measure", [quality.trustworthiness, quality.continuity])
def test_invalid_input_raises_an_error_that_names_the_argument(
    measure: Any, arguments: tuple[Array, Array], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        measure(*arguments, **options)


def test_invalid_input_of_other_measures_raises_an_error_that_names_the_argument() -> None:
    with pytest.raises(ValueError, match="n_neighbors must be less than n, got 40"):
        quality.neighbor_recall(GOOD, MAP, n_neighbors=40)
    with pytest.raises(ValueError, match="within must be less than n"):
        quality.neighbor_recall(GOOD, MAP, within=40)
    with pytest.raises(ValueError, match="labels must be one-dimensional with 40"):
        quality.knn_accuracy(MAP, [1, 2])
    with pytest.raises(ValueError, match="labels must all be known; row 1"):
        quality.knn_accuracy(MAP, [1.0, math.nan] * 20)
    with pytest.raises(ValueError, match="X must be finite; row 7"):
        quality.report(HOLE, MAP)
    with pytest.raises(ValueError, match="at least 3 rows"):
        quality.distance_correlation(GOOD[:2], MAP[:2])


def test_inputs_are_not_changed(digits: tuple[Array, Array, Array]) -> None:
    X, Y, y = (part.copy() for part in digits)
    for array in (X, Y, y):
        array.setflags(write=False)
    quality.report(X, Y, y)
    quality.report(pairwise_distances(X), Y, metric="precomputed")
