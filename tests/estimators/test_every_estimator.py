"""Random rows of all kinds: every estimator makes a finite map or raises an error that names the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

import vicinal
from vicinal import TSNE, UMAP, AlignedUMAP, DensMAP, KNeighborsTransformer, LargeVis, ProgressiveUMAP

pytestmark = [pytest.mark.filterwarnings("error"), pytest.mark.timeout(240)]

common = settings(
    deadline=None,
    max_examples=40,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
EXTREMES = (0.0, 1.0, -1.0, 1e-30, 1e30, -1e30, 1e-40, 3e38, 1e-45, 7.0)


@st.composite
def tables(draw: Any, most_rows: int = 40) -> NDArray[Any]:
    """Draw constant, repeated, disconnected, extreme or ordinary rows, of any type and memory order."""
    n, d = draw(st.integers(1, most_rows)), draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["normal", "whole", "extreme", "constant", "islands", "scaled"]))
    rows = rng.normal(size=(n, d))
    if kind == "whole":
        rows = rng.integers(-2, 3, size=(n, d)).astype(np.float64)
    elif kind == "extreme":
        rows = rng.choice(EXTREMES, size=(n, d))
    elif kind == "constant":
        rows = np.full((n, d), draw(st.sampled_from(EXTREMES)))
    elif kind == "islands":
        rows = rows + 1e4 * rng.integers(0, 5, size=(n, 1))
    elif kind == "scaled":
        rows = rows * 10.0 ** draw(st.integers(-44, 37))
    if draw(st.booleans()):
        rows = rows[rng.integers(n, size=n)]
    types = [np.float32, np.float64, ">f4"] + ([np.int16, np.uint8] if kind == "whole" else [])
    if kind == "normal":
        types.append(np.float16)
    with np.errstate(all="ignore"):
        rows = rows.astype(draw(st.sampled_from(types)))
    return np.asfortranarray(rows) if draw(st.booleans()) else rows


def check(model: Any, X: NDArray[Any], n_components: int = 2) -> None:
    """Fit and check: finite places, unchanged input, equal bits in a second fit, fitted rows keep their places."""
    kept = X.copy()
    places = np.asarray(model.fit(X).embedding_)
    np.testing.assert_array_equal(X, kept)
    assert places.shape == (len(X), n_components)
    assert np.isfinite(places).all()
    np.testing.assert_array_equal(model.transform(X), places)
    new = model.transform(np.asarray(X, dtype=np.float32)[::-1][:3] * np.float32(0.5))
    assert np.isfinite(new).all()
    again = type(model)(**model.get_params() | {"n_jobs": 3}).fit(X)
    np.testing.assert_array_equal(again.embedding_, places)


@common
@given(X=tables(), n_neighbors=st.integers(2, 20), init=st.sampled_from(["spectral", "pca", "random"]))
def test_umap_makes_finite_maps(X: NDArray[Any], n_neighbors: int, init: str) -> None:
    check(UMAP(n_neighbors=n_neighbors, init=init, n_epochs=5, random_state=0, n_jobs=1), X)


@common
@given(X=tables(), n_neighbors=st.integers(2, 20), n_components=st.integers(1, 4))
def test_densmap_makes_finite_maps(X: NDArray[Any], n_neighbors: int, n_components: int) -> None:
    model = DensMAP(n_neighbors=n_neighbors, n_components=n_components, n_epochs=8, random_state=0, n_jobs=1)
    check(model, X, n_components)
    assert np.isfinite(model.rad_orig_).all()
    assert np.isfinite(model.rad_emb_).all()
    assert -1.0 <= model.radius_correlation_ <= 1.0 + 1e-9


@common
@given(X=tables(), perplexity=st.floats(1.0, 40.0), method=st.sampled_from(["exact", "fft"]))
def test_tsne_makes_finite_maps(X: NDArray[Any], perplexity: float, method: str) -> None:
    perplexity = min(perplexity, max(1, len(X) - 1))
    model = TSNE(perplexity=perplexity, method=method, max_iter=12, early_exaggeration_iter=6, random_state=0, n_jobs=1)
    check(model, X)
    assert np.isfinite(model.kl_divergence_)


@common
@given(X=tables(), perplexity=st.floats(1.0, 20.0))
def test_largevis_makes_finite_maps(X: NDArray[Any], perplexity: float) -> None:
    check(LargeVis(perplexity=perplexity, n_epochs=5, random_state=0, n_jobs=1), X)


@common
@given(X=tables(), k=st.integers(1, 12), mode=st.sampled_from(["distance", "connectivity"]))
def test_kneighbors_makes_complete_graphs(X: NDArray[Any], k: int, mode: str) -> None:
    listed = k + (mode == "distance")
    model = KNeighborsTransformer(n_neighbors=k, mode=mode, n_jobs=1)
    if listed > len(X):
        with pytest.raises(ValueError, match="n_neighbors"):
            model.fit_transform(X)
        return
    graph = model.fit_transform(X)
    assert graph.shape == (len(X), len(X))
    assert (np.diff(graph.indptr) == listed).all()
    assert np.isfinite(graph.data).all()
    assert (graph.data >= 0).all()


@settings(common, max_examples=25)
@given(X=tables(30), Y=tables(30), seed=st.integers(0, 1000))
def test_aligned_makes_finite_maps(X: NDArray[Any], Y: NDArray[Any], seed: int) -> None:
    rng = np.random.default_rng(seed)
    shared = min(len(X), len(Y))
    partners = dict(
        zip(rng.permutation(len(X))[:shared].tolist(), rng.permutation(len(Y))[:shared].tolist(), strict=True)
    )
    model = AlignedUMAP(n_neighbors=5, n_epochs=4, random_state=0, n_jobs=1)
    for rows, places in zip((X, Y), model.fit([X, Y], relations=[partners]).embeddings_, strict=True):
        assert places.shape == (len(rows), 2)
        assert np.isfinite(places).all()


@settings(common, max_examples=25)
@given(X=tables(), batch_size=st.integers(1, 15))
def test_progressive_makes_finite_maps(X: NDArray[Any], batch_size: int) -> None:
    model = ProgressiveUMAP(n_neighbors=5, batch_size=batch_size, new_epochs=4, random_state=0, n_jobs=1).fit(X)
    assert model.embedding_.shape == (len(X), 2)
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.transform(np.asarray(X, dtype=np.float32)[:3] * np.float32(0.5))).all()


@settings(common, max_examples=6)
@given(X=tables(20))
def test_parametric_makes_finite_maps(X: NDArray[Any]) -> None:
    pytest.importorskip("torch")
    model = vicinal.ParametricUMAP(n_neighbors=5, n_epochs=1, batch_size=32, init="random", random_state=0, n_jobs=1)
    places = model.fit(X).embedding_
    assert places.shape == (len(X), 2)
    assert np.isfinite(places).all()


@common
@given(X=tables(), metric=st.sampled_from(["euclidean", "cosine", "manhattan", "jaccard"]), share=st.floats(0, 1))
def test_sparse_rows_have_finite_maps(X: NDArray[Any], metric: str, share: float) -> None:
    rng = np.random.default_rng(0)
    rows = sparse.csr_matrix(np.where(rng.uniform(size=X.shape) < share, 0, X).astype(np.float32))
    places = UMAP(metric=metric, n_epochs=3, random_state=0, n_jobs=1).fit(rows).embedding_
    assert np.isfinite(places).all()


@settings(common, max_examples=25)
@given(
    X=tables(),
    at=st.integers(0, 10**6),
    fault=st.sampled_from([np.nan, np.inf, -np.inf]),
    name=st.sampled_from(["UMAP", "DensMAP", "TSNE", "LargeVis", "KNeighborsTransformer"]),
)
def test_error_names_the_row_with_nan_or_infinity(X: NDArray[Any], at: int, fault: float, name: str) -> None:
    rows = X.astype(np.float64)
    row, column = at % len(X), at % X.shape[1]
    rows[row, column] = fault
    with pytest.raises(ValueError, match=f"row {row}"):
        getattr(vicinal, name)(n_jobs=1).fit(rows)
