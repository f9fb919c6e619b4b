"""KNeighborsTransformer: scikit-learn's checks, and the same graphs as scikit-learn's class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.manifold import Isomap
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neighbors import KNeighborsTransformer as Theirs
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from vicinal import KNeighborsTransformer


@parametrize_with_checks([KNeighborsTransformer()])
def test_estimator_checks(estimator: KNeighborsTransformer, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def halves(grouped: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    rows = grouped(600, 12)
    return rows[:400], rows[400:]


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
@pytest.mark.parametrize(("metric", "p"), [("minkowski", 3), ("minkowski", 1), ("chebyshev", 2), ("cosine", 2)])
def test_graphs_equal_those_of_scikit_learn(halves: Any, mode: str, metric: str, p: float) -> None:
    known, new = halves
    options = {"mode": mode, "n_neighbors": 7, "metric": metric, "p": p}
    ours, theirs = KNeighborsTransformer(**options), Theirs(**options)
    for one, other in (
        (ours.fit_transform(known), theirs.fit_transform(known)),
        (ours.transform(new), theirs.transform(new)),
        (ours.kneighbors_graph(mode=mode), theirs.kneighbors_graph(mode=mode)),
        (ours.kneighbors_graph(new, 3), theirs.kneighbors_graph(new, 3)),
    ):
        assert one.shape == other.shape
        assert one.nnz == other.nnz
        assert one.dtype == np.float32
        np.testing.assert_allclose(one.toarray(), other.toarray(), atol=2e-3 if metric == "cosine" else 1e-4)


def test_sparse_rows_distances_and_functions_give_the_same_graph(halves: Any) -> None:
    from scipy.sparse import csr_matrix
    from scipy.spatial.distance import cdist

    known, new = halves
    expected = KNeighborsTransformer(metric="manhattan")
    fitted, placed = expected.fit_transform(known).toarray(), expected.transform(new).toarray()
    others = [
        (KNeighborsTransformer(metric="manhattan"), csr_matrix(known), csr_matrix(new)),
        (KNeighborsTransformer(metric="precomputed"), cdist(known, known, "cityblock"), cdist(new, known, "cityblock")),
        (KNeighborsTransformer(metric=lambda x, y: np.abs(x - y).sum()), known, new),
    ]
    for model, rows, queries in others:
        np.testing.assert_allclose(model.fit_transform(rows).toarray(), fitted, atol=1e-4)
        np.testing.assert_allclose(model.transform(queries).toarray(), placed, atol=1e-4)


def test_kneighbors_of_fitted_rows_exclude_the_row_itself(halves: Any) -> None:
    known, new = halves
    repeated = np.concatenate([known, known[:30]])
    ours, theirs = KNeighborsTransformer(n_neighbors=5).fit(repeated), Theirs().fit(repeated)
    distance, index = ours.kneighbors()
    assert (index != np.arange(430)[:, None]).all()
    np.testing.assert_allclose(distance, theirs.kneighbors()[0], atol=1e-4)
    np.testing.assert_array_equal(ours.kneighbors(n_neighbors=40, return_distance=False)[:, :5], index)
    np.testing.assert_allclose(ours.kneighbors(new)[0], theirs.kneighbors(new)[0], atol=1e-4)


def test_results_do_not_depend_on_n_jobs(grouped: Any) -> None:
    known, new = np.split(grouped(7_000, 24), [6_500])
    graphs = []
    for jobs in (1, 2, 8):
        model = KNeighborsTransformer(n_neighbors=5, algorithm="approximate", n_jobs=jobs)
        graphs.append((model.fit_transform(known), model.transform(new)))
    for fitted, placed in graphs[1:]:
        assert (fitted != graphs[0][0]).nnz == 0
        assert (placed != graphs[0][1]).nnz == 0
    exact = Theirs().fit(known).kneighbors(new, 6, return_distance=False)
    found = graphs[0][1].indices.reshape(500, 6)
    assert np.mean([len(np.intersect1d(a, b)) / 6 for a, b in zip(found, exact, strict=True)]) > 0.95


def test_graphs_can_be_used_by_scikit_learn(digits: NDArray[np.float32], digit_labels: NDArray[np.int64]) -> None:
    rows, new = digits[:1200], digits[1200:]
    classifier = KNeighborsClassifier(5, metric="precomputed")
    ours = make_pipeline(KNeighborsTransformer(n_neighbors=5), clone(classifier)).fit(rows, digit_labels[:1200])
    theirs = make_pipeline(Theirs(n_neighbors=5), classifier).fit(rows, digit_labels[:1200])
    assert ours.score(new, digit_labels[1200:]) == pytest.approx(theirs.score(new, digit_labels[1200:]), abs=0.01)
    places = make_pipeline(KNeighborsTransformer(n_neighbors=40), Isomap(n_neighbors=40, metric="precomputed"))
    assert np.isfinite(places.fit_transform(digits[:300])).all()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"n_neighbors": 2.5}, "n_neighbors"),
        ({"mode": "both"}, "mode"),
        ({"algorithm": "ball_tree"}, "algorithm"),
        ({"metric": "nowhere"}, "metric"),
        ({"metric": "minkowski", "p": -1}, "'p' parameter"),
        ({"metric": "minkowski", "metric_params": {"q": 1}}, "q"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"n_neighbors": 50}, "n_neighbors"),
    ],
)
def test_invalid_argument_is_named(wrong: dict[str, Any], error: str) -> None:
    rows = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises((ValueError, TypeError), match=error):
        KNeighborsTransformer(**wrong).fit_transform(rows)
    model = KNeighborsTransformer().fit(rows)
    with pytest.raises(ValueError, match="mode"):
        model.kneighbors_graph(mode="both")
    with pytest.raises(ValueError, match="n_neighbors"):
        model.kneighbors(n_neighbors=20)


@pytest.mark.parametrize("duplicates", [False, True])
def test_scanpy_stores_what_it_stores_by_itself(duplicates: bool, global_random_seed: int) -> None:
    anndata, sc = pytest.importorskip("anndata"), pytest.importorskip("scanpy")
    X = np.random.default_rng(global_random_seed).normal(size=(200, 6)).astype(np.float32)
    if duplicates:
        X[20:24] = X[0]
    stored = []
    for transformer in ("sklearn", KNeighborsTransformer(mode="scanpy"), KNeighborsTransformer()):
        adata = anndata.AnnData(X.copy())
        sc.pp.neighbors(adata, n_neighbors=15, use_rep="X", transformer=transformer)
        assert adata.uns["neighbors"]["params"]["n_neighbors"] == 15
        stored.append((adata.obsp["distances"], adata.obsp["connectivities"]))
    (theirs, expected), (ours, found), (_, listed) = stored
    assert set(np.diff(ours.indptr)) == {14}
    lengths = [np.sort(one.data.reshape(200, 14), axis=1) for one in (ours, theirs)]
    np.testing.assert_allclose(*lengths, atol=1e-3)
    if not duplicates:  # equally near rows are chosen by another rule
        np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-3)
        np.testing.assert_allclose(listed.toarray(), expected.toarray(), atol=1e-3)


def test_rows_are_not_their_own_neighbors_for_scanpy(halves: Any) -> None:
    known, new = halves
    model = KNeighborsTransformer(n_neighbors=7, mode="scanpy")
    graph = model.fit_transform(known)
    assert (model.transform(known) != graph).nnz == 0
    assert not graph.diagonal().any()
    np.testing.assert_array_equal(
        model.transform(new).indices.reshape(len(new), 6), model.kneighbors(new, 6, return_distance=False)
    )
