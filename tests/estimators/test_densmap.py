"""DensMAP: scikit-learn's checks, determinism, radii, new rows, isolated rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from vicinal import UMAP, DensMAP, Kernel, find_neighbors, losses
from vicinal.files.models import load, save
from vicinal.pipeline.place import place
from vicinal.quality.measures import knn_accuracy, neighbor_recall, trustworthiness

JOBS = (1, 2, 8)


@pytest.fixture(scope="module")
def unequal() -> NDArray[np.float32]:
    """Return five groups of rows, each twice as wide as the one before."""
    rng = np.random.default_rng(0)
    groups = [rng.normal(size=(160, 6)) * 2.0**g + 60.0 * np.eye(6)[g] for g in range(5)]
    return np.concatenate(groups).astype(np.float32)


def test_radii_of_the_map_follow_those_of_the_data(unequal: NDArray[np.float32]) -> None:
    dense = DensMAP(random_state=0, n_epochs=200).fit(unequal)
    plain = UMAP(random_state=0, n_epochs=200, output_dens=True).fit(unequal)
    assert dense.radius_correlation_ > max(0.8, plain.radius_correlation_ + 0.1)
    assert np.corrcoef(dense.rad_orig_, dense.rad_emb_)[0, 1] == pytest.approx(dense.radius_correlation_, abs=1e-4)
    assert dense.density_correlation_ > max(0.8, plain.density_correlation_ + 0.1)
    np.testing.assert_allclose(dense.rad_orig_, plain.rad_orig_)
    wide = [dense.rad_emb_[g * 160 : (g + 1) * 160].mean() for g in range(5)]
    assert (np.diff(wide) > 0).all()


def test_density_correlation_is_that_of_the_laid_out_rows(iris: NDArray[np.float32]) -> None:
    """Equal rows are laid out as one, so the graph has fewer rows than the map."""
    model = DensMAP(random_state=0, n_epochs=30, unique=True).fit(np.concatenate([iris, iris[:40]]))
    radii, laid_out = model.map_.density.radii.log_radius, model.map_.laid_out
    kernel = Kernel(model._a, model._b)
    wanted = losses.density_correlation(model.map_.graph, model.embedding_[laid_out], kernel, radii)
    assert len(laid_out) < len(model.embedding_)
    assert model.density_correlation_ == pytest.approx(wanted)
    assert model.density_correlation_ != model.radius_correlation_


def test_correlations_exist_only_if_radii_were_computed(iris: NDArray[np.float32]) -> None:
    model = UMAP(random_state=0, n_epochs=5).fit(iris)
    for name in ("radius_correlation_", "density_correlation_"):
        with pytest.raises(AttributeError, match=f"{name}: radii are computed with densmap or output_dens only"):
            getattr(model, name)


def test_densmap_parameter_of_umap_equals_densmap(digits: NDArray[np.float32]) -> None:
    dense = DensMAP(random_state=0, n_epochs=100).fit(digits)
    switched = UMAP(densmap=True, random_state=0, n_epochs=100).fit(digits)
    np.testing.assert_array_equal(dense.embedding_, switched.embedding_)
    plain = UMAP(random_state=0, n_epochs=100, output_dens=True).fit(digits)
    assert dense.radius_correlation_ > plain.radius_correlation_ + 0.2
    recall = [neighbor_recall(digits, model.embedding_, n_neighbors=15) for model in (dense, plain)]
    assert recall[0] > 0.6 * recall[1]


def test_output_dens_returns_the_radii(iris: NDArray[np.float32]) -> None:
    embedding, data, flat = UMAP(densmap=True, output_dens=True, n_epochs=30, random_state=0).fit_transform(iris)
    assert embedding.shape == (150, 2)
    assert data.shape == flat.shape == (150,)
    assert np.isfinite(np.concatenate([data, flat])).all()
    assert not hasattr(UMAP(n_epochs=5).fit(iris), "rad_orig_")


@pytest.mark.parametrize("options", [{}, {"n_components": 3, "dens_frac": 0.6}, {"update_negatives": True}], ids=str)
def test_fit_and_transform_do_not_depend_on_n_jobs(digits: NDArray[np.float32], options: dict[str, Any]) -> None:
    fits = [DensMAP(random_state=3, n_epochs=40, n_jobs=jobs, **options).fit(digits[:900]) for jobs in JOBS]
    placed = fits[0].transform(digits[900:960])
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.embedding_, fits[0].embedding_)
        np.testing.assert_array_equal(fit.rad_emb_, fits[0].rad_emb_)
        np.testing.assert_array_equal(fit.transform(digits[900:960]), placed)


def test_place_of_a_new_row_depends_on_that_row_alone(unequal: NDArray[np.float32]) -> None:
    order = np.random.default_rng(1).permutation(800)
    known, new = unequal[order[:700]], unequal[order[700:]]
    model = DensMAP(random_state=0, n_epochs=150).fit(known)
    together = model.transform(new)
    assert np.isfinite(together).all()
    np.testing.assert_array_equal(model.transform(new[33:34])[0], together[33])
    np.testing.assert_array_equal(model.transform(known[:20]), model.embedding_[:20])
    # Without the density term the same rows have other places.
    without = replace(model.map_, density=None)
    assert not np.array_equal(place(without, new), together)


def test_update_keeps_the_density_term(digits: NDArray[np.float32]) -> None:
    model = DensMAP(random_state=0, n_epochs=60).fit(digits[:800])
    model.update(digits[800:900])
    assert model.embedding_.shape == (900, 2)
    assert model.rad_orig_.shape == model.rad_emb_.shape == (900,)
    assert np.isfinite(model.embedding_).all()


def test_loaded_model_transforms_identically(digits: NDArray[np.float32], tmp_path: Path) -> None:
    model = DensMAP(random_state=0, n_epochs=40).fit(digits[:500])
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is DensMAP
    np.testing.assert_array_equal(again.transform(digits[500:530]), model.transform(digits[500:530]))
    np.testing.assert_array_equal(again.rad_emb_, model.rad_emb_)


@pytest.mark.filterwarnings("ignore:3 of 120 rows are disconnected")
def test_isolated_and_duplicate_rows_have_finite_results() -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(120, 3))
    rows[:3] = [[1e3, 0, 0], [0, 2e3, 0], [0, 0, 4e3]]
    rows[50:80] = rows[50]
    model = DensMAP(n_epochs=50, random_state=0, disconnection_distance=50.0).fit(rows)
    for values in (model.embedding_, model.rad_orig_, model.rad_emb_, model.radius_correlation_):
        assert np.isfinite(values).all()
    assert np.isfinite(DensMAP(n_epochs=20).fit_transform(np.ones((30, 2)))).all()


@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_few_rows_have_finite_results(n: int) -> None:
    model = DensMAP(n_epochs=10, random_state=0).fit(np.random.default_rng(n).normal(size=(n, 4)))
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.rad_emb_).all()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"dens_lambda": -1.0}, "dens_lambda"),
        ({"dens_frac": 1.5}, "dens_frac"),
        ({"dens_var_shift": -0.1}, "dens_var_shift"),
        ({"output_metric": "haversine"}, "output_metric"),
    ],
)
def test_invalid_argument_is_named(iris: NDArray[np.float32], options: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        DensMAP(**options).fit(iris)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_default_keeps_the_neighbors_that_umap_learn_keeps(
    digits: NDArray[np.float32], digit_labels: NDArray[np.int64], seed: int
) -> None:
    """umap-learn 0.5.12, mean of 5 seeds: trustworthiness 0.968, 10-NN accuracy 0.984."""
    places = DensMAP(random_state=seed).fit_transform(digits)
    assert trustworthiness(digits, places, n_neighbors=15) > 0.97
    assert knn_accuracy(places, digit_labels, n_neighbors=10) > 0.978


@pytest.fixture(scope="module")
def digit_maps() -> dict[float, tuple[float, float]]:
    """For some ``dens_lambda``: the correlation of log mean distances of 14 neighbors, and their recall in the map."""
    rows = load_digits().data.astype(np.float32)
    table = find_neighbors(rows, 15)
    data = np.log(table.distance[:, 1:].mean(axis=1))
    out = {}
    for weight in (0.5, 2.0, 5.0):
        places = DensMAP(dens_lambda=weight, random_state=0).fit_transform(rows)
        near = find_neighbors(places, 15)
        mapped = np.log(near.distance[:, 1:].mean(axis=1) + 1e-6)
        kept = [len(np.intersect1d(a[1:], b[1:])) / 14 for a, b in zip(table.index, near.index, strict=True)]
        out[weight] = float(np.corrcoef(data, mapped)[0, 1]), float(np.mean(kept))
    return out


def test_default_follows_densities_as_well_as_umap_learn(digit_maps: dict[float, tuple[float, float]]) -> None:
    """umap-learn 0.5.12: correlation 0.877, recall 0.44 (two seeds)."""
    correlation, kept = digit_maps[2.0]
    assert correlation > 0.87
    assert kept > 0.445


def test_dens_lambda_acts_over_its_whole_range(digit_maps: dict[float, tuple[float, float]]) -> None:
    weak, middle, strong = (digit_maps[weight] for weight in (0.5, 2.0, 5.0))
    assert weak[0] + 0.02 < middle[0] < strong[0] - 0.01
    assert weak[1] > middle[1] > strong[1]
