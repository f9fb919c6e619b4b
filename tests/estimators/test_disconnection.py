"""Rows that share nothing with any other row: no false neighbors, a place apart, one warning."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

import vicinal
from vicinal import TSNE, UMAP, DensMAP, LargeVis, ProgressiveUMAP
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.metrics import METRICS, is_non_negative, unrelated_distance

ROWS, LONERS, COLUMNS = 100, 12, 40
GROUP_COLUMNS = 15
# umap-learn's defaults
UMAP_LEARN = {"correlation": 2.0, "cosine": 2.0, "hellinger": 1.0, "jaccard": 1.0, "dice": 1.0}


def rows_with_loners() -> NDArray[np.float32]:
    """Rows that share columns with each other, then rows with a column of their own each."""
    rng = np.random.default_rng(0)
    X = np.zeros((ROWS + LONERS, COLUMNS), dtype=np.float32)
    for row in X[:ROWS]:
        row[rng.choice(GROUP_COLUMNS, 6, replace=False)] = 1.0
    X[ROWS + np.arange(LONERS), 20 + np.arange(LONERS)] = 1.0
    return X


def fitted(X: Any, kind: type = UMAP, **options: Any) -> tuple[Any, list[str]]:
    """Fit a map and return it with the warnings of the fit."""
    short = {"max_iter": 60} if kind is TSNE else {"n_epochs": 30}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = kind(**{"random_state": 0, **short, **options}).fit(X)
    return model, [str(warning.message) for warning in caught]


def assert_apart(model: Any, loners: NDArray[np.bool_]) -> None:
    places = model.embedding_
    assert np.isfinite(places).all()
    np.testing.assert_array_equal(np.asarray(model.graph_.sum(axis=1)).ravel() == 0, loners)
    np.testing.assert_array_equal(model.map_.disconnected, loners)
    others = places[~loners]
    gaps = np.sqrt(np.square(places[loners][:, None] - others[None]).sum(axis=2)).min(axis=1)
    width = np.ptp(others, axis=0).max()
    assert gaps.min() > 0.05 * width
    assert len(np.unique(places[loners], axis=0)) == loners.sum()


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("metric", ["cosine", "jaccard", "dice", "hellinger", "braycurtis", "sokalsneath"])
def test_rows_that_share_nothing_have_no_neighbors(metric: str, form: str) -> None:
    X = rows_with_loners()
    model, messages = fitted(sparse.csr_matrix(X) if form == "sparse" else X, metric=metric)
    assert_apart(model, np.arange(len(X)) >= ROWS)
    assert len(messages) == 1
    assert f"{LONERS} of {len(X)} rows are disconnected" in messages[0]


@pytest.mark.parametrize("kind", [TSNE, LargeVis])
@pytest.mark.parametrize("metric", ["cosine", "jaccard"])
def test_entropic_graphs_have_no_false_neighbors_either(kind: type, metric: str) -> None:
    X = rows_with_loners()
    model, messages = fitted(X, kind, metric=metric, perplexity=10.0)
    assert_apart(model, np.arange(len(X)) >= ROWS)
    assert len(messages) == 1
    assert f"{LONERS} of {len(X)} rows are disconnected" in messages[0]
    alone = fitted(X[:ROWS], kind, metric=metric, perplexity=10.0)[0]
    if kind is TSNE:
        assert model.kl_divergence_ == pytest.approx(alone.kl_divergence_, rel=0.05)
    new = np.zeros((2, COLUMNS), dtype=np.float32)
    new[0, :5] = new[1, 18] = 1.0
    with pytest.warns(UserWarning, match="1 of 2 new rows are disconnected"):
        assert np.isfinite(model.transform(new)).all()


@pytest.mark.parametrize("kind", [UMAP, TSNE, LargeVis])
def test_maps_of_rows_that_all_share_nothing_are_finite(kind: type) -> None:
    model, messages = fitted(np.eye(30, dtype=np.float32), kind, metric="jaccard")
    assert "30 of 30 rows are disconnected" in messages[0]
    assert np.isfinite(model.embedding_).all()
    assert len(np.unique(model.embedding_, axis=0)) == 30


@pytest.mark.filterwarnings("ignore:.*disconnected")
def test_rows_of_a_stream_that_share_nothing_have_no_neighbors() -> None:
    X = rows_with_loners()
    order = np.random.default_rng(0).permutation(len(X))
    model = ProgressiveUMAP(metric="jaccard", random_state=0)
    for part in np.array_split(X[order], 4):
        model.partial_fit(part)
    model.run()
    loners = order >= ROWS
    np.testing.assert_array_equal(np.asarray(model.graph_.sum(axis=1)).ravel() == 0, loners)
    assert np.isfinite(model.embedding_).all()
    assert len(np.unique(model.embedding_[loners], axis=0)) == LONERS
    kept = ProgressiveUMAP(metric="jaccard", random_state=0, disconnection_distance=2.0).fit(X)
    assert (np.asarray(kept.graph_.sum(axis=1)).ravel() > 0).all()


def test_rows_of_a_stream_may_become_negative() -> None:
    """The limit of rows without negative numbers holds only if all rows are known."""
    signed = np.array([[1.0, -1.0]], dtype=np.float32)
    assert unrelated_distance("cosine", False) == unrelated_distance("cosine", is_non_negative(signed))
    assert unrelated_distance("braycurtis", False) is None


def test_defaults_are_those_of_umap_learn() -> None:
    signed = np.array([[1.0, -1.0]], dtype=np.float32)
    for metric, largest in UMAP_LEARN.items():
        assert unrelated_distance(metric, False) == largest
    # Rows without negative numbers cannot be farther apart than 1.
    assert unrelated_distance("cosine", is_non_negative(np.abs(signed))) == 1.0
    for metric in set(METRICS) - set(UMAP_LEARN):
        assert unrelated_distance(metric, False) in (None, 1.0)
    assert unrelated_distance(lambda x, y: 0.0, False) is None


def test_given_distance_replaces_the_default() -> None:
    model, messages = fitted(rows_with_loners(), metric="cosine", disconnection_distance=2.0)
    assert not messages
    assert not model.map_.disconnected.any()


@pytest.mark.parametrize("metric", ["hellinger", "precomputed"])
def test_given_distance_allows_for_the_rounding_of_distances(metric: str) -> None:
    """Distances of rows that share nothing are a little less than 1."""
    X = rows_with_loners()
    distances = NeighborIndex(X, "hellinger").distances(X)
    assert (np.delete(distances[-1], len(X) - 1) < 1.0).any()
    given = distances if metric == "precomputed" else X
    model, _ = fitted(given, metric=metric, disconnection_distance=1.0)
    np.testing.assert_array_equal(model.map_.disconnected, np.arange(len(X)) >= ROWS)


def test_tied_rows_that_share_nothing_do_not_make_hubs() -> None:
    """A row with fewer related rows than neighbors asked for is not joined to the rows with the lowest numbers."""
    X = np.kron(np.eye(30, dtype=np.float32), np.ones((6, 2), dtype=np.float32))
    X += np.kron(np.eye(30), np.random.default_rng(0).random((6, 2))).astype(np.float32)
    graph = fitted(X, metric="cosine")[0].graph_.tocoo()
    np.testing.assert_array_equal(graph.row // 6, graph.col // 6)


def test_density_is_kept_among_the_connected_rows() -> None:
    X = rows_with_loners()
    model, messages = fitted(X, DensMAP, metric="cosine")
    assert len(messages) == 1
    assert_apart(model, np.arange(len(X)) >= ROWS)
    assert np.isfinite(model.rad_orig_).all()
    assert np.isfinite(model.rad_emb_).all()
    with pytest.warns(UserWarning, match="1 of 2 new rows are disconnected"):
        placed = model.transform(np.eye(2, COLUMNS, GROUP_COLUMNS - 1, dtype=np.float32))
    assert np.isfinite(placed).all()


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_new_rows_that_share_nothing_are_placed_apart(form: str) -> None:
    X = rows_with_loners()
    as_form = sparse.csr_matrix if form == "sparse" else np.asarray
    model, _ = fitted(as_form(X), metric="jaccard")
    new = np.zeros((3, COLUMNS), dtype=np.float32)
    new[0, :5] = 1.0
    new[1, 17] = new[2, 18] = 1.0
    with pytest.warns(UserWarning, match="2 of 3 new rows are disconnected"):
        placed = model.transform(as_form(new))
    others = model.embedding_[:ROWS]
    gaps = np.sqrt(np.square(placed[:, None] - others[None]).sum(axis=2)).min(axis=1)
    width = np.ptp(others, axis=0).max()
    assert gaps[0] < 0.3 * width
    assert gaps[1:].min() > 0.03 * width
    with pytest.warns(UserWarning, match="1 of 1 new rows"):
        np.testing.assert_array_equal(model.transform(as_form(new[1:2]))[0], placed[1])


def test_update_connects_rows_and_places_others_apart() -> None:
    X = rows_with_loners()
    model, _ = fitted(X, metric="jaccard")
    friend, stranger = X[ROWS].copy(), np.zeros(COLUMNS, dtype=np.float32)
    friend[21] = 1.0  # shares a column with the first two loners
    stranger[18] = 1.0
    with pytest.warns(UserWarning, match=f"{LONERS - 1} of {len(X) + 2} rows are disconnected"):
        model.update(np.stack([friend, stranger]))
    loners = np.arange(len(X) + 2) >= ROWS + 2
    loners[-2] = False
    assert_apart(model, loners)


def test_distances_that_are_infinite_disconnect_rows() -> None:
    rng = np.random.default_rng(0)
    places = rng.normal(size=(60, 3))
    D = np.sqrt(np.square(places[:, None] - places[None]).sum(axis=2))
    D[50:, :] = D[:, 50:] = np.inf
    np.fill_diagonal(D, 0.0)
    model, messages = fitted(D, metric="precomputed")
    assert len(messages) == 1
    assert "10 of 60 rows are disconnected" in messages[0]
    assert_apart(model, np.arange(60) >= 50)


def test_precomputed_neighbors_are_cut_at_the_distance_of_the_metric() -> None:
    X = rows_with_loners()
    whole, _ = fitted(X, metric="cosine", disconnection_distance=5.0)
    table = (whole._knn_indices, whole._knn_dists)
    assert_apart(fitted(X, metric="cosine", precomputed_knn=table)[0], np.arange(len(X)) >= ROWS)


def test_equal_rows_laid_out_as_one_are_disconnected_together() -> None:
    X = np.concatenate([rows_with_loners(), rows_with_loners()[-2:]])
    model, _ = fitted(X, metric="cosine", unique=True)
    np.testing.assert_array_equal(model.map_.disconnected, np.arange(len(X)) >= ROWS)
    np.testing.assert_array_equal(model.embedding_[-2:], model.embedding_[-4:-2])


def test_connected_rows_have_the_same_map_with_and_without_disconnected_ones() -> None:
    X = rows_with_loners()
    with_loners, alone = fitted(X, metric="jaccard")[0], fitted(X[:ROWS], metric="jaccard")[0]
    np.testing.assert_array_equal(with_loners.embedding_[:ROWS], alone.embedding_)


def test_maps_without_an_outside_stay_finite() -> None:
    model, messages = fitted(rows_with_loners(), metric="cosine", output_metric="haversine")
    assert np.isfinite(model.embedding_).all()
    assert len(messages) == 1


@pytest.mark.parametrize("unique", [False, True])
def test_rows_without_neighbors_have_nan_if_wanted(iris: Any, unique: bool, tmp_path: Path) -> None:
    rows = np.concatenate([iris[:60], [[90, 0, 0, 0], [0, 90, 0, 0]]]).astype(np.float32)
    given: dict[str, Any] = {"n_epochs": 20, "random_state": 0, "disconnection_distance": 20.0, "unique": unique}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        around, model = UMAP(**given).fit(rows), UMAP(**given, disconnected="nan").fit(rows)
        expected = np.where(np.arange(62)[:, None] < 60, around.embedding_, np.nan)
        np.testing.assert_array_equal(model.embedding_, expected)
        np.testing.assert_array_equal(model.transform(rows), expected)
        assert np.isnan(model.transform(rows[:1] + 500)).all()
        model.save(tmp_path / "model.vicinal")
        np.testing.assert_array_equal(vicinal.load(tmp_path / "model.vicinal").embedding_, expected)
        assert np.isnan((model * model).embedding_).all(axis=1).tolist() == [False] * 60 + [True] * 2
        if not unique:
            model.update(rows[60:] + 0.5)  # both rows get a neighbor
            assert np.isfinite(model.embedding_).all()


def test_nan_for_rows_without_neighbors_is_refused_for_dask_arrays(iris: Any) -> None:
    array = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="surround: disconnected='nan' is not possible for a Dask array"):
        UMAP(disconnected="nan").fit(array.from_array(iris, chunks=(50, 4)))
