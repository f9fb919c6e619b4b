"""Every line of the page of differences is an example that runs here, or names the test that runs it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn import config_context
from sklearn.datasets import load_iris

import vicinal
from vicinal import UMAP, AlignedUMAP
from vicinal.runtime.constraints import InvalidParameterError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/start/coming_from/umap_learn.md").read_text()
X = load_iris().data[::2].astype(np.float32)
WITH_NEGATIVES = X - 10 * (np.arange(len(X)) == 2)[:, None]
QUICK: dict[str, Any] = {"n_epochs": 2, "n_neighbors": 5, "random_state": 0}


def fits(**parameters: Any) -> Callable[[], object]:
    return lambda: UMAP(**QUICK | parameters).fit(np.abs(X))


def refuses(words: str, X: Any = X, **parameters: Any) -> Callable[[], object]:
    def check() -> None:
        with pytest.raises((ValueError, TypeError), match=words):
            UMAP(**QUICK | parameters).fit(X)

    return check


def both(*checks: Callable[[], object]) -> Callable[[], object]:
    return lambda: [check() for check in checks]


def same_map(**parameters: Any) -> Callable[[], object]:
    """Check that parameters have no effect."""
    return lambda: np.testing.assert_array_equal(
        UMAP(**QUICK | parameters).fit_transform(X), UMAP(**QUICK).fit_transform(X)
    )


def new_rows_depend_on_themselves() -> None:
    model, new = UMAP(**QUICK).fit(X), X[:4] + np.float32(0.05)
    np.testing.assert_array_equal(model.transform(new)[:1], model.transform(new[:1]))
    np.testing.assert_array_equal(model.transform(X[3:5]), model.embedding_[3:5])


def rows_without_neighbors() -> None:
    rows = np.concatenate([X, [[90, 0, 0, 0]]]).astype(np.float32)
    for given, finite in ({}, True), ({"disconnected": "nan"}, False):
        with pytest.warns(UserWarning, match="1 of 76 rows"):
            model = UMAP(**QUICK, disconnection_distance=20.0, **given).fit(rows)
        assert np.isfinite(model.embedding_[:75]).all()
        assert np.isfinite(model.embedding_[75]).all() == finite
        with pytest.warns(UserWarning, match="1 of 1 new rows"):
            placed = model.transform(np.array([[0, 500, 0, 0]], np.float32))
        assert np.isfinite(placed).all() == np.isfinite(model.transform(rows[75:])).all() == finite


def one_row_is_a_map() -> None:
    assert UMAP(**QUICK).fit(X[:1]).transform(X[1:3]).shape == (2, 2)


def everything_takes_densmap() -> None:
    model = UMAP(**QUICK, densmap=True).fit(X[:60])
    assert model.inverse_transform(model.transform(X[60:])).shape == (15, 4)
    assert len(model.update(X[60:]).embedding_) == 75


def neighbors_without_an_index() -> None:
    found = vicinal.find_neighbors(X, 5)
    model = UMAP(**QUICK, precomputed_knn=(found.index, found.distance)).fit(X)
    assert model.transform(X[:2] + np.float32(0.1)).shape == (2, 2)


def updates_take_labels() -> None:
    assert len(UMAP(**QUICK).fit(X[:60], np.arange(60) % 3).update(X[60:], np.zeros(15)).embedding_) == 75
    assert list(inspect.signature(UMAP.update).parameters)[1:3] == ["X", "y"]


def sparse_rows_and_all_dimensions_are_inverted() -> None:
    model = UMAP(**QUICK, n_components=3, metric="cosine").fit(csr_matrix(X))
    assert hasattr(model.inverse_transform(np.full((2, 3), 50.0)), "indptr")


def maps_compose() -> None:
    model = UMAP(**QUICK, min_dist=0.2).fit(X[:, :2]) * UMAP(**QUICK, min_dist=0.4).fit(X[:, 2:])
    assert model.min_dist == 0.2
    assert model.transform((X[:2, :2] + np.float32(1), X[:2, 2:])).shape == (2, 2)


def functions_receive_nan() -> None:
    rows = X.copy()
    rows[3, 1] = np.nan
    UMAP(**QUICK, metric=lambda a, b: float(np.nansum((a - b) ** 2))).fit(rows, ensure_all_finite="allow-nan")
    UMAP(**QUICK, metric="nan_euclidean").fit(rows)
    with pytest.raises(ValueError, match="NaN"):
        UMAP(**QUICK).fit(rows, force_all_finite=False)


def fit_takes_three_more() -> None:
    UMAP(**QUICK).fit(X, sample_weight=np.ones(75))
    with pytest.raises(TypeError, match="'anything'"):
        UMAP(**QUICK).fit(X, anything=1)


def metadata_is_what_fit_takes() -> None:
    with config_context(enable_metadata_routing=True):
        UMAP().set_fit_request(sample_weight=True)
        for name in ("ensure_all_finite", "force_all_finite"):
            with pytest.raises(TypeError, match=name):
                UMAP().set_fit_request(**{name: True})


def module_names() -> None:
    for module, there, missing in (
        ("umap_", "make_epochs_per_sample", "init_transform"),
        ("umap_", "INT32_MAX", "SMOOTH_K_TOLERANCE"),
        ("utils", "csr_unique", "tau_rand_int"),
        ("utils", "ts", "norm"),
        ("distances", "named_distances", "SPECIAL_METRICS"),
        ("distances", "pairwise_special_metric", "ordinal_distance"),
        ("spectral", "tswspectral_layout", "component_layout"),
        ("layouts", "optimize_layout_generic", "optimize_layout_inverse"),
        ("sparse", "sparse_diff", "general_sset_union"),
    ):
        assert hasattr(getattr(vicinal, module), there)
        assert not hasattr(getattr(vicinal, module), missing)


def search_index_is_none() -> None:
    assert vicinal.umap_.nearest_neighbors(X, 5, "euclidean", None, False, 0)[2] is None


def switches() -> None:
    for value in (True, False, 1, 0, np.bool_(True)):
        fits(low_memory=value, unique=value)()
    for value in (2, "yes", None):
        refuses("low_memory", low_memory=value)()


def switch_names() -> None:
    for name in ("densmap", "output_dens", "angular_rp_forest", "force_approximation_algorithm"):
        with pytest.raises(InvalidParameterError, match=name):
            fits(**{name: "yes"})()


def the_start_is_chosen() -> None:
    assert UMAP(**QUICK).fit(X).init_used_ in ("pca", "spectral")
    assert UMAP(**QUICK, init="spectral").fit(X).init_used_ == "spectral"


def a_given_start_keeps_its_shape() -> None:
    places = X[:, :2] - X[:, :2].mean(axis=0)
    found = UMAP(**QUICK | {"n_epochs": 0}, init=places).fit_transform(X)
    np.testing.assert_allclose(
        np.ptp(found, axis=0) / np.ptp(places, axis=0), 10 / np.ptp(places, axis=0).max(), rtol=0.01
    )


def aligned_parameters() -> None:
    slices, links = [X[:30], X[30:60]], [{i: i for i in range(30)}]
    model = AlignedUMAP(**QUICK, min_dist=[0.1, 0.3]).fit(slices, relations=links)
    assert len(model.embeddings_) == 2
    assert not hasattr(vicinal.aligned_umap, "expand_relations")


# What the first cell of a line starts with -> the example, or the file and name of the test that runs it.
DIFFERENCES: dict[str, Callable[[], object] | str] = {
    "coordinates": "estimators/test_map_quality_digits.py::test_default_map_is_good",
    "`random_state` disables threads": "estimators/test_determinism.py::test_fit_and_transform_do_not_depend_on_n_jobs",
    '`init="spectral"` by default': the_start_is_chosen,
    "each axis of an array as `init`": a_given_start_keeps_its_shape,
    "other algorithms below 4,096": "neighbors/test_exact_and_approximate.py",
    "`n_epochs=None`": "docs/test_statements.py",
    "`unique` decides": "estimators/test_equal_rows.py::test_equal_rows_share_a_place_and_scaled_rows_do_not",
    "rows without neighbors have NaN": rows_without_neighbors,
    "sparse rows are joined": "graph/test_shared_neighbors.py",
    "`transform` of training rows": new_rows_depend_on_themselves,
    "the position of a new row": new_rows_depend_on_themselves,
    "`transform` of a model of one row": one_row_is_a_map,
    "`transform`, `update` and `inverse_transform` refuse": everything_takes_densmap,
    "densMAP": "estimators/test_densmap.py::test_default_follows_densities_as_well_as_umap_learn",
    "`transform` after `precomputed_knn`": neighbors_without_an_index,
    "`update` refuses models with labels": updates_take_labels,
    "`inverse_transform` triangulates": sparse_rows_and_all_dimensions_are_inverted,
    "`inverse_transform` refuses sparse": sparse_rows_and_all_dimensions_are_inverted,
    "`low_memory`, `angular_rp_forest`": same_map(low_memory=False, angular_rp_forest=True, transform_queue_size=1.0),
    "the search index in `precomputed_knn`": neighbors_without_an_index,
    "`ensure_all_finite=": functions_receive_nan,
    "`update(X, ensure_all_finite)`": updates_take_labels,
    "a function as `metric` of sparse": refuses("sparse", csr_matrix(X), metric=lambda a, b: 1.0),
    "sparse rows have some": both(*(refuses("sparse", csr_matrix(X), metric=m) for m in ("mahalanobis", "haversine"))),
    "`n_jobs` below -1": fits(n_jobs=-2),
    "`low_memory`, `unique`": both(switches, switch_names),
    "`random_state` and `transform_seed`": both(
        refuses("random_state", random_state=0.0), refuses("transform_seed", transform_seed=1.0)
    ),
    "`learning_rate=0`": both(refuses("learning_rate", learning_rate=0), refuses("disconn", disconnection_distance=0)),
    "`spread` has no limits": both(
        *(refuses("spread must lie between", spread=s, min_dist=0) for s in (1e300, 1e-300)),
        *(fits(spread=s, min_dist=0) for s in (1e15, 1e-15)),
    ),
    "functions are compiled": "estimators/test_parameters.py",
    "one sweep over": "layout/test_sampled.py::test_the_learning_rate_is_held_and_falls_with_a_power",
    "long sheets": "initialize/test_axes.py::test_a_roll_starts_as_its_sheet_in_its_proportions",
    "new rows start": "initialize/test_start.py::test_medoid_is_the_place_of_a_central_neighbor",
    '`metric="poincare"`': both(*(refuses("metric", metric=m) for m in ("poincare", "softmax_hellinger"))),
    '`metric="bit_hamming"`': both(
        refuses("uint8", metric="bit_hamming"),
        lambda: UMAP(**QUICK, metric="bit_jaccard").fit(np.packbits(X.mean(axis=0) < X, axis=1) + np.uint8(1)),
    ),
    '`metric="wminkowski"`': both(
        refuses(r"metric_kwds\['w'\]", metric="wminkowski"),
        fits(metric="wminkowski", metric_kwds={"w": np.ones(4)}),
    ),
    '`metric="ll_dirichlet"`': both(
        *(refuses("first in row 2", WITH_NEGATIVES, metric=name) for name in ("ll_dirichlet", "hellinger"))
    ),
    '`target_metric="myers"`': "compat/test_values_and_metrics.py::test_labels_that_cannot_be_compared_are_named",
    '`target_metric="count"`': "compat/test_values_and_metrics.py::test_texts_and_counts_can_be_labels",
    '`target_metric="string"`': "compat/test_values_and_metrics.py::test_texts_and_counts_can_be_labels",
    '`output_metric="hellinger"`': refuses("output_metric", output_metric="hellinger"),
    '`metric="haversine"`': "compat/test_values_and_metrics.py::test_haversine_refuses_degrees",
    "unknown keywords": refuses("'q'", metric="minkowski", metric_kwds={"q": 1}),
    "`a * b`": maps_compose,
    "keyword arguments of `fit`": fit_takes_three_more,
    "`set_fit_request": metadata_is_what_fit_takes,
    "`umap.umap_`": module_names,
    "`nearest_neighbors(...)`": search_index_is_none,
    "`umap.distances`": "compat/test_modules.py::test_named_distances_can_be_called_with_two_vectors",
    "`umap.spectral`": module_names,
    "`umap.utils`": module_names,
    "`umap.layouts`": "compat/test_modules.py::test_a_list_of_edges_is_laid_out",
    "`umap.sparse`": "compat/test_modules.py::test_distances_of_sparse_vectors_are_those_of_dense_ones",
    "`umap.validation`": "compat/test_modules.py::test_trustworthiness_for_several_numbers_of_neighbors",
    "private attributes": "compat/test_models_put_together.py",
    "`pickle`": "files/test_pickles.py",
    "arguments after the model": "compat/test_plot.py::test_plots_take_the_model_by_umap_learns_name",
    "colors": "compat/test_plot.py::test_themes_of_umap_learn",
    "a size of 800": "compat/test_plot.py::test_color_key_gives_each_label_its_color",
    "`connectivity` draws": "compat/test_plot.py::test_connectivity_takes_umap_learns_arguments",
    "`edge_bundling": "compat/test_plot.py::test_connectivity_takes_umap_learns_arguments",
    "`diagnostic` shows": "compat/test_plot.py::test_diagnostic_types_of_umap_learn",
    '"local_dim"': "compat/test_plot.py::test_neighborhoods_and_dimensions_have_known_values",
    "`interactive` returns": "compat/test_plot.py::test_interactive_returns_a_page",
    "`output_notebook`": "compat/test_plot.py::test_interactive_returns_a_page",
    "`output_file": "compat/test_plot.py::test_a_page_is_shown_in_the_chosen_file",
    "Keras:": "parametric/test_networks.py",
    "`keras_fit_kwargs`": "compat/test_parametric.py::test_arguments_without_a_meaning_are_refused",
    "`n_training_epochs`": "compat/test_parametric.py::test_training_epochs_multiply_the_epochs",
    "`densmap`, `output_dens`": "compat/test_parametric.py::test_arguments_without_a_meaning_are_refused",
    "`low_memory`, `transform_seed`": "compat/test_parametric.py::test_arguments_without_effect_do_not_change_the_map",
    "`output_metric`, `target_metric`": "parametric/test_estimator.py",
    "`add_landmarks": "compat/test_parametric.py::test_landmarks_take_umap_learns_arguments",
    "rows are flat": "compat/test_parametric.py::test_images_may_have_more_than_two_dimensions",
    "`save(folder)`": "compat/test_parametric.py::test_a_model_can_be_saved_in_a_folder",
    "`_history`": "parametric/test_estimator.py",
    "`parametric_model`": "parametric/test_estimator.py",
}
EXAMPLES = {name: example for name, example in DIFFERENCES.items() if callable(example)}


def lines_of_the_page() -> list[str]:
    """Return the first cell of each line of the tables of differences."""
    page = re.sub(r"<!-- written by .*?<!-- end -->", "", PAGE, flags=re.DOTALL)
    cells = [line.split(" | ")[0].removeprefix("| ") for line in page.splitlines() if line.startswith("| ")]
    return [cell for cell in cells if cell != "umap-learn"]


def test_every_line_of_the_page_has_an_example() -> None:
    for line in lines_of_the_page():
        assert [name for name in DIFFERENCES if line.startswith(name)], f"no example of: {line}"
    for name in DIFFERENCES:
        assert [line for line in lines_of_the_page() if line.startswith(name)], f"the page does not say: {name}"


def test_tests_that_run_examples_exist() -> None:
    for example in DIFFERENCES.values():
        if isinstance(example, str):
            path, _, name = example.partition("::")
            assert f"def {name}" in (ROOT / "tests" / path).read_text()


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_the_page_run(name: str) -> None:
    EXAMPLES[name]()


def test_aligned_maps_differ_as_the_page_says() -> None:
    aligned_parameters()


def test_numbers_that_umap_learn_takes_are_taken() -> None:
    expected = UMAP(**QUICK, negative_sample_rate=4).fit_transform(X)
    model = UMAP(**QUICK).fit(X[:60])
    assert len(model.update(X[60:], force_all_finite=True).embedding_) == len(X)
    given = UMAP(**QUICK, n_components=2.0, negative_sample_rate=4.0, low_memory=1, unique=0)
    np.testing.assert_array_equal(given.fit_transform(X, force_all_finite=True), expected)
    assert given.get_params()["n_components"] == 2.0
    for wrong in (2.5, 0.0, "2", float("inf")):
        refuses("n_components", n_components=wrong)()
    refuses("negative_sample_rate", negative_sample_rate=1e5)()
