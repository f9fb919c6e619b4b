"""Values that are not finite, and functions as metrics of the data and of the map, as umap-learn takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from vicinal import UMAP, find_neighbors, load

Rows = NDArray[np.float32]


def known_distance(x: Rows, y: Rows) -> float:
    """Return the mean absolute difference of the columns that both rows have."""
    both = np.isfinite(x) & np.isfinite(y)
    return float(np.abs(x[both] - y[both]).mean()) if both.any() else 10.0


def with_gradient(x: Rows, y: Rows, scale: float = 1.0) -> tuple[float, Rows]:
    """Return a euclidean distance and its gradient, as functions for umap-learn do."""
    difference = scale * (x - y)
    d = float(np.sqrt((difference**2).sum()))
    return d, scale * difference / (1e-6 + d)


@pytest.fixture(scope="module")
def holes(iris: Rows) -> Rows:
    rows = iris[:60].copy()
    rows[3, 1] = rows[40, :2] = np.nan
    return rows


def small(**params: Any) -> UMAP:
    return UMAP(**{"n_neighbors": 7, "n_epochs": 10, "random_state": 0, **params})


def test_a_function_receives_nan_if_the_caller_allows_it(holes: Rows) -> None:
    model = small(metric=known_distance).fit(holes, ensure_all_finite="allow-nan")
    assert np.isfinite(model.embedding_).all()
    np.testing.assert_array_equal(model.transform(holes[38:42], ensure_all_finite="allow-nan"), model.embedding_[38:42])
    unseen = holes[3:4] + np.float32(0.05)
    assert np.isfinite(model.transform(unseen, ensure_all_finite=False)).all()
    model.update(unseen, ensure_all_finite="allow-nan")
    assert len(model.embedding_) == 61
    assert small(metric=known_distance).fit_transform(holes, None, "allow-nan").shape == (60, 2)


def test_infinity_needs_ensure_all_finite_false(holes: Rows) -> None:
    rows = holes.copy()
    rows[7, 0] = np.inf
    assert np.isfinite(small(metric=known_distance).fit(rows, ensure_all_finite=False).embedding_).all()
    with pytest.raises(ValueError, match=r"infinity.*row 7"):
        small(metric=known_distance).fit(rows, ensure_all_finite="allow-nan")


@pytest.mark.parametrize("ensure", [True, "allow-nan", False])
def test_named_metrics_refuse_what_they_are_not_defined_for(holes: Rows, ensure: Any) -> None:
    with pytest.raises(ValueError, match=r"NaN.*row 3"):
        small().fit(holes, ensure_all_finite=ensure)
    assert np.isfinite(small(metric="nan_euclidean").fit(holes, ensure_all_finite=ensure).embedding_).all()


def test_functions_receive_finite_values_by_default(holes: Rows) -> None:
    with pytest.raises(ValueError, match=r"NaN.*row 3"):
        small(metric=known_distance).fit(holes)
    model = small(metric=known_distance).fit(holes, ensure_all_finite=False)
    for call in (model.transform, model.update):
        with pytest.raises(ValueError, match=r"NaN.*row 0"):
            call(holes[3:4] + 1)
    with pytest.raises(ValueError, match=r"ensure_all_finite must be True, False or 'allow-nan', got 'sometimes'"):
        model.transform(holes, "sometimes")


def test_functions_may_accept_nan_in_data_that_is_searched_approximately() -> None:
    rows = np.random.default_rng(0).normal(size=(1_200, 3)).astype(np.float32)
    rows[::50, 1] = np.nan
    found = find_neighbors(rows, 5, metric=known_distance)
    assert (found.index[:, 0] == np.arange(1_200)).all()
    assert np.isfinite(found.distance).all()


def test_a_function_that_writes_into_its_arguments_does_not_change_the_rows(iris: Rows) -> None:
    def vandal(x: Rows, y: Rows) -> float:
        d = float(np.abs(x - y).sum())
        x[0] = 7.0
        return d

    rows = iris[:30].copy()
    small(metric=vandal).fit(rows).transform(rows + 1)
    np.testing.assert_array_equal(rows, iris[:30])


def test_a_metric_may_return_a_distance_and_its_gradient(iris: Rows) -> None:
    found = find_neighbors(iris, 10, metric=with_gradient, metric_kwds={"scale": 2.0})
    np.testing.assert_allclose(found.distance, 2 * find_neighbors(iris, 10).distance, rtol=1e-5, atol=1e-6)
    unseen = iris[:5] + np.float32(0.03)
    model = small(metric=with_gradient).fit(iris)
    np.testing.assert_allclose(model._knn_dists, small().fit(iris)._knn_dists, rtol=1e-5, atol=1e-6)
    assert np.isfinite(model.transform(unseen)).all()


@pytest.mark.parametrize("n_components", [2, 3])
def test_a_function_as_output_metric_lays_out_like_the_metric_it_computes(iris: Rows, n_components: int) -> None:
    def distance(x: Rows, y: Rows) -> tuple[float, Rows]:
        assert len(x) == len(y) == n_components
        return with_gradient(x, y, scale)

    # One epoch, because rounding errors grow from epoch to epoch; a few rows whose pulls are clipped differ more.
    scale, rows = 1.5, iris[::3]
    inverse = {"V": np.full(n_components, scale**-2)}
    params: dict[str, Any] = {"n_components": n_components, "n_epochs": 1}
    named = small(**params, output_metric="seuclidean", output_metric_kwds=inverse).fit(rows)
    called = small(**params, output_metric=distance).fit(rows)
    start = small(n_components=n_components, n_epochs=0).fit(rows)
    assert np.abs(named.embedding_ - start.embedding_).max() > 0.5
    difference = np.abs(called.embedding_ - named.embedding_)
    assert np.quantile(difference, 0.9) < 0.02
    assert difference.max() < 0.3
    unseen = rows[:4] + np.float32(0.03)
    assert np.isfinite(called.transform(unseen)).all()


def test_a_function_as_output_metric_gives_the_same_bits_for_any_number_of_threads(iris: Rows) -> None:
    maps = [
        small(output_metric=with_gradient, output_metric_kwds={"scale": 1.5}, n_jobs=jobs).fit(iris[::3]).embedding_
        for jobs in (1, 2)
    ]
    np.testing.assert_array_equal(*maps)


def test_output_metrics_without_a_gradient_are_refused_before_any_work(iris: Rows) -> None:
    for function in (known_distance, lambda x, y: (1.0, np.zeros(3)), lambda x, y: "far"):
        with pytest.raises(ValueError, match=r"output_metric must return a pair.*gradient with 2 numbers"):
            small(output_metric=function).fit(iris)
    with pytest.raises(ValueError, match=r"output_metric returned.*not finite"):
        small(output_metric=lambda x, y: (np.nan, x)).fit(iris)
    with pytest.raises(ValueError, match=r"output_metric must be one of .*hyperboloid.*or a function.*got 'hamming'"):
        small(output_metric="hamming").fit(iris)


def test_errors_of_an_output_metric_reach_the_caller(iris: Rows) -> None:
    calls = []

    def fails(x: Rows, y: Rows) -> tuple[float, Rows]:
        calls.append(1)
        if len(calls) > 100:
            raise RuntimeError("the hundredth call")
        return with_gradient(x, y)

    model = small(output_metric=fails)
    with pytest.raises(RuntimeError, match="the hundredth call"):
        model.fit(iris)
    assert not hasattr(model, "embedding_")


def test_new_rows_may_be_sparse_or_dense_whatever_the_fitted_rows_were(iris: Rows) -> None:
    unseen = iris[:6] + np.float32(0.05)
    for fitted in (iris, csr_matrix(iris)):
        model = small(metric="manhattan").fit(fitted)
        np.testing.assert_array_equal(model.transform(unseen), model.transform(csr_matrix(unseen)))
        model.update(unseen).update(csr_matrix(iris[6:9] + np.float32(0.05)))
        assert len(model.embedding_) == 159


def test_haversine_refuses_degrees_and_accepts_longitudes_first() -> None:
    rng = np.random.default_rng(0)
    latitude, longitude = rng.uniform(-1.5, 1.5, 80), rng.uniform(-3.1, 3.1, 80)
    for rows in (
        np.stack([latitude, longitude], 1),
        np.stack([longitude, latitude], 1),
        np.stack([latitude, longitude + 3.1], 1),
    ):
        assert np.isfinite(small(metric="haversine").fit(rows).embedding_).all()
    rows = np.degrees(np.stack([latitude, longitude], 1))
    with pytest.raises(ValueError, match=r"radians.*row 0"):
        small(metric="haversine").fit(rows)


def class_edges(model: UMAP, labels: NDArray[Any]) -> float:
    """Return the share of the graph's weight that joins different labels."""
    edges = model.graph_.tocoo()
    return float(edges.data[labels[edges.row] != labels[edges.col]].sum() / edges.data.sum())


@pytest.mark.parametrize("metric", ["string", "count"])
def test_texts_and_counts_can_be_labels(metric: str, iris: Rows, tmp_path: Any) -> None:
    rows, species = iris[50:], np.repeat([0, 1], 50)
    labels: NDArray[Any] = np.array(["versicolor", "virginica"] if metric == "string" else [2, 9])[species]
    model = small(target_metric=metric, target_weight=0.8).fit(rows, labels)
    across = class_edges(model, species)
    assert across < 0.5 * class_edges(small().fit(rows), species)
    model.update(rows[:2] + np.float32(0.05), labels[:2]).update(rows[2:3] + np.float32(0.05))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").embedding_, model.embedding_)
    unknown = labels.astype(object)
    unknown[species == 1] = None if metric == "string" else np.nan
    partly = small(target_metric=metric, target_weight=0.8).fit(rows, unknown)
    assert class_edges(partly, species) > across


@pytest.mark.parametrize(
    ("metric", "labels"), [("string", ["versicolor", "versicolor", "setosa"]), ("count", [20, 22, 60])]
)
def test_similar_texts_and_counts_are_joined_more_than_different_ones(metric: str, labels: Any, iris: Rows) -> None:
    kind = np.random.default_rng(0).integers(3, size=len(iris))
    edges = small(target_metric=metric, n_neighbors=15).fit(iris, np.array(labels)[kind]).graph_.tocoo()
    similar, different = (edges.data[(kind[edges.row] == 0) & (kind[edges.col] == other)].mean() for other in (1, 2))
    assert similar > 2 * different


@pytest.mark.parametrize(
    ("metric", "label", "message"),
    [
        ("string", 7, r"text.*row 3 is 7"),
        ("count", -2, r"counts.*row 3 is -2"),
        ("count", 1.5, r"counts.*row 3 is 1.5"),
        ("myers", 1, r"target_metric must be one of 'categorical', 'ordinal', 'count', 'string'.*got 'myers'"),
    ],
)
def test_labels_that_cannot_be_compared_are_named(metric: str, label: Any, message: str, iris: Rows) -> None:
    labels = np.array(["a"] * 150 if metric == "string" else [1.0] * 150, dtype=object)
    labels[3] = label
    with pytest.raises(ValueError, match=message):
        small(target_metric=metric).fit(iris, labels)
