"""The chosen start: principal components unless they fold the data, and a coarse layout for many rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import UMAP, DensMAP
from vicinal.pipeline import arrangement, recipe

Rows = NDArray[np.float32]


def clusters(n: int, seed: int) -> Rows:
    """Make overlapping clusters in a plane of ten dimensions."""
    rng = np.random.default_rng(seed)
    return (2.0 * rng.normal(size=(8, 10))[rng.integers(8, size=n)] + rng.normal(size=(n, 10))).astype(np.float32)


def start_of(rows: Rows, seed: int, **params: Any) -> UMAP:
    return UMAP(n_epochs=0, random_state=seed, **params).fit(rows)


@pytest.mark.parametrize("n", [900, 1200])
def test_clusters_start_from_principal_components_in_their_proportions(n: int, global_random_seed: int) -> None:
    rows = clusters(n, global_random_seed)
    model = start_of(rows, global_random_seed)
    assert model.init_used_ == "pca"
    sides = np.ptp(model.embedding_, axis=0)
    assert sides.max() == pytest.approx(arrangement.PCA_WIDTH, rel=1e-3)
    centered = rows - rows.mean(axis=0)
    axes = np.linalg.svd(centered, full_matrices=False)[2][:2]
    true = np.ptp(centered @ axes.T, axis=0)
    assert sides[0] / sides[1] == pytest.approx(true[0] / true[1], rel=1e-2)


def test_a_curled_sheet_starts_from_eigenvectors(rolled: Any, global_random_seed: int) -> None:
    rows, _ = rolled(3000)
    model = start_of(rows, global_random_seed)
    assert model.init_used_ == "spectral"
    np.testing.assert_array_equal(model.embedding_, start_of(rows, global_random_seed, init="spectral").embedding_)


def test_without_coordinates_or_in_other_spaces_the_start_is_spectral() -> None:
    rows = clusters(200, 0)
    distances = np.linalg.norm(rows[:, None] - rows, axis=2)
    assert start_of(distances, 0, metric="precomputed").init_used_ == "spectral"
    assert start_of(rows, 0, output_metric="hyperboloid").init_used_ == "spectral"
    assert DensMAP(n_epochs=2, random_state=0).fit(rows).init_used_ == "spectral"


def test_the_start_does_not_depend_on_the_number_of_threads() -> None:
    rows = clusters(1200, 1)
    places = [start_of(rows, 1, n_jobs=jobs).embedding_ for jobs in (1, 3)]
    np.testing.assert_array_equal(*places)


@pytest.fixture
def few_rows_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrangement, "LARGE_ROWS", 1100)
    monkeypatch.setattr(recipe, "LARGE_ROWS", 1100)


@pytest.mark.usefixtures("few_rows_are_many")
def test_many_rows_start_from_a_layout_of_their_aggregates() -> None:
    rows = clusters(1200, 2)
    places = [start_of(rows, 2, n_jobs=jobs) for jobs in (1, 3)]
    assert places[0].init_used_ == "spectral"
    np.testing.assert_array_equal(places[0].embedding_, places[1].embedding_)
    plain = start_of(rows, 2, init="spectral")
    neighbors = places[0].map_.neighbors.index[:, 1:]

    def length(model: UMAP) -> float:
        place = model.embedding_
        apart = np.linalg.norm(place[neighbors] - place[:, None], axis=2).mean()
        return float(apart / np.linalg.norm(place - place.mean(axis=0), axis=1).mean())

    assert length(places[0]) < 0.7 * length(plain)


@pytest.mark.usefixtures("few_rows_are_many")
def test_many_rows_get_fewer_epochs_unless_the_start_is_named() -> None:
    rows = clusters(1200, 3)
    plan = UMAP().executor(rows).recipe.plan
    schedule = plan.schedule(10, len(rows))
    assert plan.is_arranged(len(rows))
    assert (schedule.learning_rate, schedule.single_negative_share) == (recipe.ARRANGED_RATE, recipe.ARRANGED_SINGLE)
    assert UMAP(random_state=0).fit(rows).n_epochs_ == recipe.ARRANGED_EPOCHS
    assert not UMAP(init="spectral").executor(rows).recipe.plan.is_arranged(len(rows))
    callback: list[tuple[int, int]] = []
    UMAP(n_epochs=3, callback=lambda *call: callback.append(call[1:3]) if call[0] == "layout" else None).fit(rows)
    assert callback == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.usefixtures("few_rows_are_many")
def test_graph_of_two_pieces_and_isolated_rows_can_be_arranged() -> None:
    rows = clusters(1300, 4)
    rows[:600] += 500.0
    rows[-1] = -1e4
    with pytest.warns(UserWarning, match="disconnected"):
        model = UMAP(n_epochs=5, random_state=0, disconnection_distance=100.0).fit(rows)
    assert np.isfinite(model.embedding_).all()
