"""Input of ParametricUMAP: sparse rows, metric keywords, functions as metrics, precomputed neighbors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from parametric.quick_models import quick
from scipy import sparse

import vicinal
from vicinal import UMAP, ParametricUMAP

torch = pytest.importorskip("torch")

Rows = NDArray[np.float32]


def exact_neighbors(X: Rows, k: int = 15) -> tuple[NDArray[np.int32], Rows]:
    """Return the neighbor table of UMAP, the row itself included."""
    model = UMAP(n_neighbors=k, n_epochs=0, random_state=0).fit(X)
    return model.map_.neighbors.index, model.map_.neighbors.distance


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"init": "spectral"},
        {"parametric_reconstruction": True, "global_correlation_loss_weight": 0.5},
        pytest.param({"autoencoder_loss": True, "dtype": "float64"}, marks=pytest.mark.nightly),
        {"encoder": "conv", "dims": (8, 8)},
        pytest.param({"supervision": "triplet"}, marks=pytest.mark.nightly),
        {"supervision": "graph"},
    ],
    ids=["random", "spectral", "decoder", "autoencoder", "conv", "triplet", "graph"],
)
def test_sparse_rows_give_the_bits_of_dense_rows(digits: Rows, digit_labels: Any, options: dict[str, Any]) -> None:
    """Both fits use the same graph, so that only the delivery of rows can differ."""
    X, new = digits[:300], digits[300:400]
    y = digit_labels[:300] if "supervision" in options else None
    options = {"precomputed_knn": exact_neighbors(X), **options}
    dense, stored = quick(**options).fit(X, y), quick(**options).fit(sparse.csr_matrix(X), y)
    np.testing.assert_array_equal(stored.embedding_, dense.embedding_)
    assert stored.loss_history_ == dense.loss_history_
    assert (stored.graph_ != dense.graph_).nnz == 0
    np.testing.assert_array_equal(stored.transform(sparse.csr_matrix(new)), dense.transform(new))
    np.testing.assert_array_equal(stored.transform(new), dense.transform(new))
    if "decoder" in dense.map_.model.networks:
        decoded = dense.inverse_transform(dense.embedding_)
        np.testing.assert_array_equal(stored.inverse_transform(stored.embedding_), decoded)


@pytest.mark.parametrize("container", [sparse.csc_matrix, sparse.coo_matrix, sparse.csr_array])
def test_all_sparse_containers_are_accepted(digits: Rows, container: Any) -> None:
    X = digits[:100]
    model = quick().fit(container(X))
    np.testing.assert_array_equal(model.embedding_, quick().fit(sparse.csr_matrix(X)).embedding_)
    np.testing.assert_array_equal(model.transform(container(X)), model.embedding_)


def test_fit_does_not_change_sparse_rows_with_duplicate_entries(digits: Rows) -> None:
    X = digits[:100]
    half = sparse.coo_matrix(X * np.float32(0.5))
    doubled = sparse.csr_matrix(X.shape, dtype=np.float32)
    doubled.data = np.repeat(sparse.csr_matrix(half).data, 2)
    doubled.indices = np.repeat(sparse.csr_matrix(half).indices, 2)
    doubled.indptr = 2 * sparse.csr_matrix(half).indptr
    before = doubled.data.copy()
    knn = exact_neighbors(X)
    np.testing.assert_array_equal(
        quick(precomputed_knn=knn).fit(doubled).embedding_, quick(precomputed_knn=knn).fit(X).embedding_
    )
    np.testing.assert_array_equal(doubled.data, before)


def test_sparse_rows_are_searched_without_precomputed_neighbors(digits: Rows) -> None:
    X = digits[:200]
    model = quick().fit(sparse.csr_matrix(X))
    expected = UMAP(n_epochs=0, random_state=0).fit(sparse.csr_matrix(X)).graph_
    np.testing.assert_array_equal(model.graph_.toarray(), expected.toarray())


@pytest.mark.nightly
def test_sparse_landmarks_and_validation_rows_give_the_bits_of_dense_ones(digits: Rows) -> None:
    X, more = digits[:200], digits[100:300]
    positions = np.full((200, 2), np.nan)
    positions[:5] = 3.0
    knn = exact_neighbors(more)
    found = []
    for first, second in ((X, more), (sparse.csr_matrix(X), sparse.csr_matrix(more)), (X, sparse.csr_matrix(more))):
        options = {"parametric_reconstruction": True, "reconstruction_validation": first[:20]}
        model = quick(precomputed_knn=exact_neighbors(X), **options).fit(first).add_landmarks(first, sample_pct=0.2)
        model.set_params(precomputed_knn=knn).fit(second, landmark_positions=positions)
        assert model.init_used_ == "encoder"
        found.append((model.embedding_, model.loss_history_))
    for embedding, history in found[1:]:
        np.testing.assert_array_equal(embedding, found[0][0])
        assert history == found[0][1]
    assert len(found[0][1]["validation"]) == 2


def test_models_of_sparse_rows_can_be_saved(digits: Rows, tmp_path: Any) -> None:
    rows = sparse.csr_matrix(digits[:100])
    model = quick().fit(rows).add_landmarks(rows, sample_pct=0.5)
    model.save(tmp_path / "model")
    again = vicinal.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(rows), model.embedding_)
    np.testing.assert_array_equal(again.fit(rows).embedding_, model.fit(rows).embedding_)


def test_metric_keywords_change_the_graph(digits: Rows) -> None:
    X = digits[:200]

    def graph(**options: Any) -> Any:
        return quick(**options).fit(X).graph_.toarray()

    minkowski = graph(metric="minkowski", metric_kwds={"p": 1.0})
    np.testing.assert_array_equal(minkowski, graph(metric="manhattan"))
    assert (minkowski != graph(metric="minkowski", metric_kwds={"p": 2.0})).any()
    with pytest.raises(ValueError, match="metric_kwds"):
        quick(metric_kwds={"no_such": 1.0}).fit(X)


def test_a_function_can_be_the_metric(digits: Rows) -> None:
    X = digits[:60]

    def manhattan(one: Rows, other: Rows) -> float:
        return float(np.abs(one - other).sum())

    found = quick(metric=manhattan).fit(X)
    np.testing.assert_allclose(found.graph_.toarray(), quick(metric="manhattan").fit(X).graph_.toarray(), atol=1e-5)
    assert (found.graph_ != quick().fit(X).graph_).nnz > 0


def test_precomputed_neighbors_replace_the_search(digits: Rows) -> None:
    X = digits[:200]
    searched = quick().fit(X)
    given = quick(precomputed_knn=exact_neighbors(X)).fit(X)
    np.testing.assert_array_equal(given.embedding_, searched.embedding_)
    assert (given.graph_ != searched.graph_).nnz == 0
    index, distance = exact_neighbors(X[::-1].copy())
    other = quick(precomputed_knn=(index, distance)).fit(X)
    assert (other.graph_ != searched.graph_).nnz > 0
    with pytest.raises(ValueError, match="precomputed_knn"):
        quick(precomputed_knn=exact_neighbors(X[:100])).fit(X)


def test_distances_are_not_accepted_as_rows() -> None:
    with pytest.raises(ValueError, match="metric"):
        ParametricUMAP(metric="precomputed").fit(np.zeros((5, 5)))


@pytest.mark.parametrize("metric", ["euclidean", "nan_euclidean"])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_missing_values_are_rejected_for_every_metric(digits: Rows, metric: str, container: Any) -> None:
    X = digits[:50].copy()
    X[7, 3] = np.nan
    with pytest.raises(ValueError, match=r"row 7\b"):
        quick(metric=metric).fit(container(X))
