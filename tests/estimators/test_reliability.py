"""`reliability` and `reliability_` of every estimator and of maps made elsewhere."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

import vicinal

ROOT = Path(__file__).parents[2]
N = 300
OTHERS = ("DensMAP", "ProgressiveUMAP")


@pytest.fixture(scope="module")
def digits() -> np.ndarray:
    return np.ascontiguousarray(load_digits().data[:N], dtype=np.float32)


@pytest.fixture(scope="module")
def model(digits: np.ndarray) -> Any:
    return vicinal.UMAP(random_state=0).fit(digits)


def test_digits_are_trustworthy_and_noise_is_not(model: Any, global_random_seed: int) -> None:
    assert model.reliability_.counts()["trustworthy"] > 0.9 * N
    noise = np.random.default_rng(global_random_seed).normal(size=(2 * N, 50))
    found = vicinal.UMAP(random_state=0).fit(noise).reliability_
    assert found.counts()["trustworthy"] == 0
    assert np.mean(found.reliability) < 0.3 < 0.7 < np.mean(model.reliability_.reliability)


@pytest.mark.nightly
def test_rows_between_two_clusters_are_less_reliable() -> None:
    rng = np.random.default_rng(0)
    centers = 1.2 * rng.normal(size=(20, 50))
    cluster = np.arange(1000) % 20
    other = (cluster + 1 + rng.integers(19, size=1000)) % 20
    mixed = np.arange(1000) < 50
    middle = np.where(mixed[:, None], 0.5 * (centers[cluster] + centers[other]), centers[cluster])
    rows = middle + rng.normal(size=middle.shape)
    found = vicinal.UMAP(random_state=0).fit(rows).reliability_
    assert roc_auc_score(mixed, -found.reliability) > 0.87


def test_result_has_the_same_bits_for_any_number_of_threads(digits: np.ndarray) -> None:
    models = [vicinal.UMAP(random_state=0, n_epochs=40, n_jobs=jobs).fit(digits) for jobs in (1, 2, 8)]
    found = [model.reliability_.columns() for model in models]
    for name, column in found[0].items():
        assert all(column.tobytes() == other[name].tobytes() for other in found[1:]), name


def test_measurement_leaves_the_model_and_the_rows_as_they_were(digits: np.ndarray) -> None:
    rows, model = digits.copy(), vicinal.UMAP(random_state=0, n_epochs=50).fit(digits)
    before, state = model.embedding_.copy(), set(vars(model))
    assert model.reliability_ is model.reliability_
    assert np.array_equal(before, model.embedding_)
    assert np.array_equal(rows, digits)
    assert state == set(vars(model))


def test_refit_measures_again(digits: np.ndarray) -> None:
    model = vicinal.UMAP(random_state=0, n_epochs=20).fit(digits)
    first = model.reliability_
    assert len(model.fit(digits[:100]).reliability_) == 100
    assert len(first) == N


@pytest.mark.nightly
def test_ghosts_agree_with_fits_of_other_seeds(model: Any) -> None:
    from scipy.stats import spearmanr

    reference = vicinal.reliability(model, seeds=5, null=False)
    assert spearmanr(model.reliability_.spread, reference.spread).statistic > 0.5


@pytest.mark.parametrize(
    "name", ["LargeVis", "TSNE", *[pytest.param(name, marks=pytest.mark.nightly) for name in OTHERS]]
)
def test_every_method_has_all_parts(name: str, digits: np.ndarray) -> None:
    found = getattr(vicinal, name)(random_state=0).fit(digits).reliability_
    assert not found.notes
    assert found.counts()["trustworthy"] > 0.8 * N
    for part in ("reliability", "near", "wide", "stability", "torn", "p_value"):
        values = found.columns()[part]
        assert values.shape == (N,)
        assert ((values >= 0) & (values <= 1)).all(), part


def test_aligned_slices_have_one_each(digits: np.ndarray) -> None:
    same = {row: row for row in range(100)}
    model = vicinal.AlignedUMAP(random_state=0, n_epochs=20).fit([digits[:100], digits[100:220]], relations=[same])
    assert [len(one) for one in model.reliability_] == [100, 120]


def test_parametric_map_has_no_stability(digits: np.ndarray) -> None:
    pytest.importorskip("torch")
    model = vicinal.ParametricUMAP(random_state=0, n_epochs=2).fit(digits[:100])
    found = model.reliability_
    assert np.isnan(found.stability).all()
    assert "no stability" in found.notes[0]
    assert np.isfinite(found.reliability).all()
    again = pickle.loads(pickle.dumps(model))
    with pytest.raises(AttributeError, match="does not hold the rows"):
        _ = again.reliability_


@pytest.mark.nightly
def test_composed_map_is_judged_by_its_graph(model: Any, digits: np.ndarray) -> None:
    found = (model * vicinal.UMAP(random_state=1, n_neighbors=8).fit(digits)).reliability_
    assert len(found) == N
    assert np.isfinite(found.stability).all()
    assert "shuffle" in found.notes[0]


def test_map_made_elsewhere(model: Any, digits: np.ndarray) -> None:
    found = vicinal.reliability(digits, model.embedding_)
    assert np.allclose(found.near, vicinal.reliability(model, n_neighbors=15, null=False, ghosts=0).near)
    assert np.isnan(found.stability).all()
    assert found.counts()["trustworthy"] > 0.9 * N
    shuffled = np.random.default_rng(0).permutation(model.embedding_)
    assert vicinal.reliability(digits, shuffled).counts()["trustworthy"] < 0.1 * N
    other = vicinal.reliability(digits, model.embedding_, null=False, others=[model.embedding_ @ [[0, 1], [1, 0]]])
    assert other.spread.max() < 1e-4
    assert np.isnan(other.p_value).all()


def test_null_by_an_estimator(digits: np.ndarray) -> None:
    from sklearn.decomposition import PCA

    places = PCA(2).fit_transform(digits)
    found = vicinal.reliability(digits, places, null=PCA(2))
    assert np.isfinite(found.null_wide)
    assert found.counts()["trustworthy"] > 0


@pytest.mark.nightly
def test_precomputed_distances_and_sparse_rows(digits: np.ndarray) -> None:
    from scipy.sparse import csr_matrix
    from sklearn.metrics import pairwise_distances

    near = vicinal.UMAP(metric="precomputed", random_state=0).fit(pairwise_distances(digits)).reliability_
    sparse = vicinal.UMAP(random_state=0).fit(csr_matrix(digits)).reliability_
    assert min(near.counts()["trustworthy"], sparse.counts()["trustworthy"]) > 0.9 * N


def test_equal_rows_and_rows_without_weight(digits: np.ndarray) -> None:
    doubled = np.concatenate([digits[:100], digits[:10]])
    unique = vicinal.UMAP(random_state=0, n_epochs=50, unique=True).fit(doubled).reliability_
    assert np.array_equal(unique.reliability[:10], unique.reliability[100:])
    weight = np.ones(100)
    weight[:5] = 0
    found = vicinal.UMAP(random_state=0, n_epochs=50).fit(digits[:100], sample_weight=weight).reliability_
    assert np.isnan(found.reliability[:5]).all()
    assert (found.label[:5] == "undecided").all()
    assert np.isfinite(found.reliability[5:]).all()


def test_few_rows() -> None:
    rows = np.random.default_rng(0).normal(size=(3, 4))
    found = vicinal.UMAP(random_state=0).fit(rows).reliability_
    assert np.isnan(found.reliability).all()
    assert "too few rows" in found.notes[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ghosts": -1}, "ghosts must be"),
        ({"n_neighbors": 0}, "n_neighbors must be"),
        ({"seeds": 1.5}, "seeds must be"),
        ({"null": "rows"}, "null must be"),
        ({"embedding": np.zeros((N, 2))}, "embedding must be None"),
        ({"others": [np.zeros((3, 2))]}, r"others\[0\] must have one row for each of the 300 rows, got 3"),
    ],
)
def test_wrong_arguments_are_refused(model: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vicinal.reliability(model, **arguments)


def test_rows_need_a_map(digits: np.ndarray) -> None:
    with pytest.raises(ValueError, match="embedding must be given"):
        vicinal.reliability(digits)
    with pytest.raises(ValueError, match="got 7"):
        vicinal.reliability(digits, np.zeros((7, 2)))


def test_models_without_a_map_have_none(digits: np.ndarray) -> None:
    with pytest.raises(AttributeError, match="not fitted"):
        _ = vicinal.UMAP().reliability_
    with pytest.raises(AttributeError, match="no map"):
        _ = vicinal.KNeighborsTransformer().fit(digits).reliability_


def test_listing_attributes_measures_nothing(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(_: Any) -> None:
        raise AssertionError("measured")

    monkeypatch.setattr("vicinal.estimators.evaluation.reliability_of", measured)
    assert "embedding_" in dir(model)
    assert "UMAP" in model._repr_html_()  # new versions of scikit-learn list the attributes
    assert "reliability_" not in dir(model)
    assert "reliability_" in dir(type(model))


def gaussian_clusters(seed: int, clusters: int, each: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), each)
    centers = 1.2 * rng.normal(size=(clusters, 50))
    return (centers[cluster] + rng.normal(size=(len(cluster), 50))).astype(np.float32), cluster


def test_rows_without_inner_order_are_reliable_and_misplaced_rows_are_lost(global_random_seed: int) -> None:
    rows, cluster = gaussian_clusters(global_random_seed, 4, 200)
    model = vicinal.UMAP(random_state=global_random_seed, n_epochs=100).fit(rows)
    places = model.embedding_.copy()
    first, last = np.flatnonzero(cluster == 0)[:10], np.flatnonzero(cluster == 3)[:10]
    places[first], places[last] = model.embedding_[last], model.embedding_[first]
    swapped = np.zeros(len(rows), dtype=bool)
    swapped[[*first, *last]] = True
    found = vicinal.reliability(rows, places, null=False)
    assert found.reliability[swapped].max() < 0.3
    assert set(found.reason[swapped]) <= {"neighbors lost", "torn"}
    assert (found.reason[swapped] == "neighbors lost").mean() > 0.5
    assert np.quantile(found.reliability[~swapped], 0.1) > 0.7
    assert set(found.explained()[swapped]) <= {"undecided: neighbors lost", "undecided: torn"}


def test_outliers_in_the_data_are_named(global_random_seed: int) -> None:
    rows, _ = gaussian_clusters(global_random_seed, 4, 100)
    rows[:8] = 4 * np.random.default_rng(global_random_seed).normal(size=(8, 50))
    found = vicinal.reliability(vicinal.UMAP(random_state=0, n_epochs=50).fit(rows), null=False)
    assert (found.reason[:8] == "outlier in the data").all()
    assert not (found.reason[8:] == "outlier in the data").any()


def test_few_rows_are_said_to_be_too_few() -> None:
    rows = np.random.default_rng(0).normal(size=(400, 2)) * [10, 1]
    found = vicinal.reliability(vicinal.UMAP(random_state=0, n_epochs=100).fit(rows))
    assert found.null_wide > 0.8
    assert any("too few rows (400) to tell structure from chance" in note for note in found.notes)
    undecided = found.label == "undecided"
    assert set(found.reason[undecided]) <= {"too few rows to say", "torn", "unstable", "outlier in the data"}
    assert (found.reliability[found.wide >= 0.85] > 0.5).all()
    assert found.summary()["null_wide"] == found.null_wide


def test_blood_cells_that_keep_their_neighbors_are_reliable(global_random_seed: int) -> None:
    with np.load(ROOT / "docs" / "data" / "pbmc_counts.npz", allow_pickle=False) as file:
        counts = csr_matrix((file["counts"], file["indices"], file["indptr"]), shape=tuple(file["shape"])).toarray()
    relative = np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True))
    axes, sizes, _ = np.linalg.svd(relative - relative.mean(axis=0), full_matrices=False)
    rows = (axes * sizes)[:, :50].astype(np.float32)
    found = vicinal.reliability(vicinal.UMAP(random_state=global_random_seed, n_epochs=100).fit(rows))
    keeping = found.wide >= 0.85
    assert keeping.sum() > 350, "half of the cells"
    assert (found.reliability[keeping] > 0.5).all()
