"""Arguments that a library below would reject late or obscurely: one clear sentence, before any work, or a result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import vicinal

X: NDArray[np.float32] = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
SUPERVISED = [vicinal.UMAP(n_epochs=2), vicinal.ProgressiveUMAP(), vicinal.DensMAP(n_epochs=2)]


def fresh(model: Any) -> Any:
    return type(model)(**model.get_params())


@pytest.mark.parametrize("model", SUPERVISED, ids=lambda one: type(one).__name__)
def test_missing_labels_of_pandas_are_unknown_classes(model: Any) -> None:
    pandas = pytest.importorskip("pandas")
    given = ["a", None, "b"] * 20
    expected = fresh(model).set_params(random_state=0).fit(X, np.array(given, dtype=object))
    for dtype in ("string", "object", "category"):
        found = fresh(model).set_params(random_state=0).fit(X, pandas.Series(given, dtype=dtype))
        np.testing.assert_array_equal(found.embedding_, expected.embedding_)


@pytest.mark.parametrize("label", [{}, set(), [1, 2]], ids=lambda label: type(label).__name__)
@pytest.mark.parametrize("model", SUPERVISED, ids=lambda one: type(one).__name__)
def test_labels_that_cannot_be_compared_are_refused(model: Any, label: Any) -> None:
    y = np.full(60, "a", dtype=object)
    y[7] = label
    with pytest.raises(ValueError, match=rf"y has a label that cannot be compared, {type(label).__name__} .* row 7"):
        fresh(model).fit(X, y)


def test_ragged_and_complex_labels_are_refused() -> None:
    for y in ([[1, 2], [3]] * 30, np.full(60, 1j)):
        with pytest.raises(ValueError, match="y must hold"):
            vicinal.UMAP(n_epochs=2).fit(X, y)


@pytest.mark.parametrize("seed", [2**64, 2**70, -1])
@pytest.mark.parametrize("name", ["UMAP", "LargeVis", "ProgressiveUMAP"])
def test_seeds_that_the_core_cannot_take_are_refused(name: str, seed: int) -> None:
    with pytest.raises(ValueError, match=f"'transform_seed' parameter .* Got {seed}"):
        getattr(vicinal, name)(transform_seed=seed).fit(X)
    with pytest.raises(ValueError, match=f"seed must be .* got {seed}"):
        vicinal.find_neighbors(X, 5, seed=seed)


def test_the_largest_seed_works() -> None:
    model = vicinal.UMAP(transform_seed=2**64 - 1, n_epochs=2).fit(X)
    assert np.isfinite(model.transform(X + 1)).all()


@pytest.mark.parametrize("n_jobs", [2**31, 2**40, -(2**40), 2**70])
@pytest.mark.parametrize("name", ["UMAP", "TSNE", "ProgressiveUMAP", "KNeighborsTransformer"])
def test_more_threads_than_the_core_can_count_are_refused(name: str, n_jobs: int) -> None:
    with pytest.raises(ValueError, match=f"n_jobs must be at most .* got {n_jobs}"):
        getattr(vicinal, name)(n_jobs=n_jobs).fit(X)


def test_parametric_map_with_more_threads_than_the_system_can_start() -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    model = vicinal.ParametricUMAP(n_jobs=20_000, n_epochs=1, init="random").fit(X)
    assert np.isfinite(model.embedding_).all()
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("rate", [1e7, 1e38, 1e300])
@pytest.mark.parametrize("name", ["UMAP", "DensMAP", "LargeVis", "TSNE", "ProgressiveUMAP"])
def test_learning_rates_beyond_float32_are_refused(name: str, rate: float) -> None:
    with pytest.raises(ValueError, match="'learning_rate' parameter"):
        getattr(vicinal, name)(learning_rate=rate).fit(X)


@pytest.mark.parametrize("name", ["UMAP", "DensMAP", "LargeVis", "ProgressiveUMAP"])
def test_the_largest_learning_rate_gives_a_finite_map(name: str) -> None:
    model = getattr(vicinal, name)(learning_rate=1e6, random_state=0).fit(X)
    assert np.isfinite(model.embedding_).all()


def test_tensors_that_require_a_gradient_are_refused() -> None:
    torch = pytest.importorskip("torch")
    rows, model = torch.tensor(X, requires_grad=True), vicinal.UMAP(n_epochs=2, random_state=0).fit(X)
    places = torch.tensor(model.embedding_, requires_grad=True)
    calls = [
        lambda: vicinal.UMAP().fit(rows),
        lambda: vicinal.ProgressiveUMAP().fit(rows),
        lambda: vicinal.ParametricUMAP().fit(rows),
        lambda: vicinal.find_neighbors(rows),
        lambda: vicinal.UMAP(metric="precomputed").fit(rows),
        lambda: model.transform(rows),
        lambda: model.update(rows),
        lambda: model.inverse_transform(places),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=r"X is a tensor that requires a gradient; pass X.detach\(\)"):
            call()
    with pytest.raises(TypeError, match="y is a tensor that requires a gradient"):
        vicinal.UMAP().fit(X, torch.arange(60.0, requires_grad=True))
    np.testing.assert_array_equal(model.transform(rows.detach()), model.embedding_)
