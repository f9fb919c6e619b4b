"""Arguments that a library below would reject late or obscurely: one clear sentence, before any work, or a result."""

from __future__ import annotations

import tempfile
from pathlib import Path
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


LARGEST_RATES = {"UMAP": 1e6, "DensMAP": 1e6, "LargeVis": 1e6, "TSNE": 1e9, "ProgressiveUMAP": 1e6}


@pytest.mark.parametrize("rate", [1e10, 1e38, 1e300])
@pytest.mark.parametrize("name", LARGEST_RATES)
def test_learning_rates_beyond_float32_are_refused(name: str, rate: float) -> None:
    with pytest.raises(ValueError, match="'learning_rate' parameter"):
        getattr(vicinal, name)(learning_rate=rate).fit(X)


@pytest.mark.parametrize(("name", "rate"), LARGEST_RATES.items())
def test_the_largest_learning_rate_gives_a_finite_map(name: str, rate: float) -> None:
    model = getattr(vicinal, name)(learning_rate=rate, random_state=0).fit(X)
    assert np.isfinite(model.embedding_).all()
    with pytest.raises(ValueError, match="'learning_rate' parameter"):
        getattr(vicinal, name)(learning_rate=1.001 * rate).fit(X)


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


@pytest.mark.parametrize("k", [2**31, 2**63, 10**30])
@pytest.mark.parametrize("name", ["UMAP", "DensMAP", "AlignedUMAP", "ProgressiveUMAP", "KNeighborsTransformer"])
def test_more_neighbors_than_rows_can_be_counted_are_refused(name: str, k: int) -> None:
    model = getattr(vicinal, name)(n_neighbors=k)
    with pytest.raises(ValueError, match=f"'n_neighbors' parameter .* 2147483647.* Got {k}"):
        model.fit([X, X], relations=[{0: 0}]) if name == "AlignedUMAP" else model.fit(X)


@pytest.mark.parametrize("k", [2**31, 2**63, 10**30])
def test_huge_numbers_are_refused_except_as_perplexity_of_largevis(k: int) -> None:
    with pytest.raises(ValueError, match=f"k must be at most .* got {k}"):
        vicinal.OnlineNeighbors(k)
    with pytest.raises(ValueError, match=f"n_neighbors must lie between .* got {k}"):
        vicinal.find_neighbors(X, k)
    with pytest.raises(ValueError, match=rf"perplexity \({k}\) must be less than n_samples"):
        vicinal.TSNE(perplexity=k, max_iter=1).fit(X)
    assert np.isfinite(vicinal.LargeVis(perplexity=k, n_epochs=1).fit_transform(X)).all()


@pytest.mark.parametrize("number", [2**63, 2**64, 10**400], ids=["2^63", "2^64", "10^400"])
@pytest.mark.parametrize("name", ["UMAP", "DensMAP", "AlignedUMAP", "ProgressiveUMAP", "TSNE", "LargeVis"])
def test_counts_of_64_bits_and_numbers_beyond_floats_are_refused_by_name(name: str, number: int) -> None:
    estimator = getattr(vicinal, name)
    counts = "n_components n_epochs max_iter n_iter early_exaggeration_iter new_epochs updated_epochs polish_epochs"
    numbers = "perplexity spread memory_limit learning_rate alignment_regularisation dens_lambda"
    named = set(estimator().get_params()) & set((counts if number < 10**400 else f"{counts} {numbers}").split())
    assert named
    for one in named:
        model = estimator(**{one: number})
        with pytest.raises(ValueError, match=one):
            model.fit([X, X], relations=[{0: 0}]) if name == "AlignedUMAP" else model.fit(X)


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_lists_of_a_growing_map_are_limited_by_its_rows(call: str) -> None:
    model = getattr(vicinal.ProgressiveUMAP(n_neighbors=300_000, random_state=0), call)(X)
    assert model.bytes_per_row_ < 1e6
    model.partial_fit(X[:5] + 0.5)
    with tempfile.TemporaryDirectory() as folder:
        model.save(path := Path(folder) / "grown.vicinal")
        loaded = vicinal.load(path)
    for one in (model, loaded):
        one.partial_fit(X[5:9] + 0.5)
    np.testing.assert_array_equal(loaded.run().embedding_, model.run().embedding_)
