"""Every estimator follows the same rules on the same small data sets, whichever executor carries out its steps."""

from __future__ import annotations

import copy
import warnings
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance.table import CELLS, DATA, ESTIMATORS, LONERS, Composed, N
from scipy import sparse

import vicinal
from vicinal.layout.surroundings import FITTED_ROWS, NEW_ROWS, Surroundings
from vicinal.pipeline.align import AlignedExecutor

LIMITED = [cell for cell in CELLS if DATA[cell[1]].group is not None]
LONELY = [cell for cell in CELLS if DATA[cell[1]].isolated.any()]


@cache
def fitted(estimator: str, data: str) -> tuple[Any, tuple[str, ...]]:
    """Return a fitted model, and the warnings of its fit about rows without edges."""
    given = DATA[data]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = ESTIMATORS[estimator](**given.params).fit(given.X, **given.fit)
    messages = tuple(str(one.message) for one in caught if "disconnected" in str(one.message))
    return model, messages


def radii(model: Any, places: Any, isolated: Any) -> Any:
    """Return the distances of places from the middle of the map, in units of its radius."""
    around = Surroundings.of(model.embedding_[~isolated])
    return np.linalg.norm(places - around.center, axis=1) / around.radius


def dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else X


@pytest.mark.parametrize(("estimator", "data"), CELLS)
def test_map_is_finite_and_training_rows_return_their_places(estimator: str, data: str) -> None:
    model, _ = fitted(estimator, data)
    X = DATA[data].X
    assert np.isfinite(model.embedding_).all()
    np.testing.assert_array_equal(model.transform(X), model.embedding_)


@pytest.mark.parametrize(("estimator", "data"), CELLS)
def test_a_new_row_is_placed_by_its_content_alone(estimator: str, data: str) -> None:
    model, _ = fitted(estimator, data)
    new = (0.9 * dense(DATA[data].X)[:7] + 0.1 * dense(DATA[data].X)[1:8]).astype(np.float32)
    new = sparse.csr_matrix(new) if sparse.issparse(DATA[data].X) else new
    together = model.transform(new)
    assert np.isfinite(together).all()
    np.testing.assert_array_equal(together[3:4], model.transform(new[3:4]))
    np.testing.assert_array_equal(together[::-1], model.transform(new[::-1]))


@pytest.mark.parametrize(("estimator", "data"), LIMITED)
def test_no_edge_joins_rows_that_are_at_least_the_cut_off_apart(estimator: str, data: str) -> None:
    model, _ = fitted(estimator, data)
    group, edges = DATA[data].group, sparse.coo_matrix(model.graph_)
    assert group is not None
    assert edges.nnz > 0
    np.testing.assert_array_equal(group[edges.row], group[edges.col])


@pytest.mark.parametrize(("estimator", "data"), CELLS)
def test_only_rows_without_edges_are_warned_about_and_once(estimator: str, data: str) -> None:
    _, messages = fitted(estimator, data)
    parts = 3 if estimator == "ComposedUMAP" else 2 if estimator == "AlignedUMAP" else 1  # of which each warns
    assert len(messages) == (parts if DATA[data].isolated.any() else 0)
    for message in messages:
        assert f"{LONERS} of {N} rows" in message


@pytest.mark.parametrize(("estimator", "data"), LONELY)
def test_isolated_rows_lie_around_the_map(estimator: str, data: str) -> None:
    model, _ = fitted(estimator, data)
    isolated = DATA[data].isolated
    away = radii(model, model.embedding_[isolated], isolated)
    assert away.min() >= FITTED_ROWS * 0.98  # equal rows count with the places they had before they share one
    assert away.max() <= FITTED_ROWS * 1.2
    assert len(np.unique(model.embedding_[isolated], axis=0)) == LONERS


# Growing and aligned maps draw negatives by weight if there are isolated rows, and t-SNE's start has a place for every
# row: there the other rows lie elsewhere, but where isolated rows lie makes no difference (the next two tests).
ALONE = [cell for cell in LONELY if cell[0] not in ("ProgressiveUMAP", "AlignedUMAP", "TSNE")]


@pytest.mark.parametrize(("estimator", "data"), ALONE)
def test_isolated_rows_have_no_influence(estimator: str, data: str) -> None:
    """The other rows lie exactly where they lie without them."""
    model, _ = fitted(estimator, data)
    given = DATA[data]
    linked = ~given.isolated
    without = ESTIMATORS[estimator](**given.params).fit(given.X[linked])
    np.testing.assert_array_equal(model.embedding_[linked], without.embedding_)


def test_isolated_rows_of_a_growing_map_push_nobody() -> None:
    given, maps = DATA["isolated"], []
    for moved in (False, True):
        with pytest.warns(UserWarning, match="disconnected"):
            model = vicinal.ProgressiveUMAP(metric="cosine", random_state=0).fit(given.X)
        if moved:
            model._map.places.view[given.isolated] = model.embedding_[0]
        maps.append(model.polish(30).embedding_)
    np.testing.assert_array_equal(maps[0], maps[1])


def test_isolated_rows_of_aligned_maps_push_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    given, maps = DATA["isolated"], []
    start = AlignedExecutor.start

    def moved_start(self: AlignedExecutor) -> None:
        start(self)
        for one in self.slices:
            one.started[given.isolated] = one.started[0]

    for begin in (start, moved_start):
        monkeypatch.setattr(AlignedExecutor, "start", begin)
        with pytest.warns(UserWarning, match="disconnected"):
            maps.append(ESTIMATORS["AlignedUMAP"](**given.params).fit(given.X).embedding_)
    np.testing.assert_array_equal(maps[0], maps[1])


@pytest.mark.parametrize(("estimator", "data"), LONELY)
def test_new_isolated_rows_lie_on_a_circle_and_are_warned_about(estimator: str, data: str) -> None:
    model, _ = fitted(estimator, data)
    given = DATA[data]
    new = np.zeros((3, given.X.shape[1]), np.float32)
    new[np.arange(3), 30 + np.arange(3)] = 1.0
    with pytest.warns(UserWarning, match="3 of 3 new rows are disconnected") as caught:
        placed = model.transform(new)
    assert len(caught) == 1
    np.testing.assert_allclose(radii(model, placed, given.isolated), NEW_ROWS, rtol=1e-3)


@pytest.mark.parametrize(("estimator", "data"), CELLS)
def test_saved_and_loaded_models_place_rows_with_the_same_bits(estimator: str, data: str, tmp_path: Path) -> None:
    model, _ = fitted(estimator, data)
    own = getattr(model, "model", model)
    own.save(tmp_path / "model.vicinal")
    loaded = vicinal.load(tmp_path / "model.vicinal")
    X = DATA[data].X[:9]
    rows = (X, X) if isinstance(model, Composed) else X
    at = {"at": 0} if estimator == "AlignedUMAP" else {}
    np.testing.assert_array_equal(loaded.transform(rows, **at), own.transform(rows, **at))
    new = X * np.float32(1.01)
    rows = (new, new) if isinstance(model, Composed) else new
    np.testing.assert_array_equal(loaded.transform(rows, **at), own.transform(rows, **at))


# Numbers of threads, and of rows per call; the first entry is what the others are compared with.
THREADS = (1, 2, 5)
CHUNKS = (N, 1, 7, 50)
SPARSE = [cell for cell in CELLS if sparse.issparse(DATA[cell[1]].X)]


def judged(data: str, n_jobs: int) -> list[Any]:
    """Return what ``reliability`` says about a model and about a map made elsewhere, and what ``choose`` finds."""
    X = DATA[data].X
    model = ESTIMATORS["UMAP"](n_jobs=n_jobs, **DATA[data].params).fit(X)
    elsewhere = {"metric": model.metric, "n_neighbors": 10, "n_jobs": n_jobs}
    said = [vicinal.reliability(model), vicinal.reliability(X, model.embedding_, **elsewhere)]
    choice = vicinal.choose(X, model, {"n_neighbors": [5, 10]}, n_neighbors=10, n_jobs=n_jobs)
    scores = [[row[name] for name in ("n_neighbors", "score", "near", "wide")] for row in choice.table]
    return [*map(asdict, said), scores, *(one.embedding_ for one in choice.models)]


@pytest.mark.parametrize("data", [data for estimator, data in CELLS if estimator == "UMAP" and not DATA[data].fit])
def test_judgments_have_the_same_bits_for_any_threads(data: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each fit warns about rows without edges
        first, *others = (judged(data, n_jobs) for n_jobs in THREADS)
    for other in others:
        np.testing.assert_equal(other, first)


@pytest.mark.parametrize("n_jobs", THREADS)
@pytest.mark.parametrize(("estimator", "data"), SPARSE)
def test_sparse_rows_are_placed_with_the_same_bits_for_any_threads_and_chunks(
    estimator: str, data: str, n_jobs: int
) -> None:
    model, _ = fitted(estimator, data)
    new = sparse.csr_matrix(DATA[data].X * np.float32(1.01))
    expected = model.transform(new)
    if hasattr(model, "n_jobs"):
        model = copy.copy(model).set_params(n_jobs=n_jobs)
    for size in CHUNKS:
        placed = [model.transform(new[begin : begin + size]) for begin in range(0, N, size)]
        np.testing.assert_array_equal(np.concatenate(placed), expected)


UPDATES = [cell for cell in CELLS if cell[0] in ("UMAP", "DensMAP")]


@pytest.mark.parametrize(("estimator", "data"), UPDATES)
def test_updates_follow_the_rules_of_fits(estimator: str, data: str) -> None:
    given = DATA[data]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arguments = {name: values[:100] for name, values in given.fit.items()}
        model = ESTIMATORS[estimator](**given.params).fit(given.X[:100], **arguments)
        model.update(given.X[100:], given.fit["y"][100:] if "y" in given.fit else None)
    assert np.isfinite(model.embedding_).all()
    if given.group is not None:
        edges = sparse.coo_matrix(model.graph_)
        np.testing.assert_array_equal(given.group[edges.row], given.group[edges.col])
    if given.isolated.any():
        assert radii(model, model.embedding_[given.isolated], given.isolated).min() >= FITTED_ROWS * 0.98
    if "fixed_mask" in given.fit:
        pinned = given.fit["fixed_mask"][:100]
        np.testing.assert_array_equal(model.embedding_[:100][pinned], given.fit["fixed_positions"][:100][pinned])


def test_a_negative_number_moves_the_cut_off_of_a_growing_map() -> None:
    """Cosine distances end at 1 only while no number is negative: later rows change that for all rows."""
    X = DATA["cosine of unrelated rows"].X
    signed = np.concatenate([X, -X[:20]])
    model = vicinal.ProgressiveUMAP(metric="cosine", random_state=0).fit(X)
    model.partial_fit(signed[len(X) :])
    fresh = vicinal.ProgressiveUMAP(metric="cosine", random_state=0).fit(signed)
    group = DATA["cosine of unrelated rows"].group
    edges = sparse.coo_matrix(fresh.graph_[: len(X), : len(X)])
    assert group is not None
    assert (group[edges.row] != group[edges.col]).any()  # there is no cut-off any more
    np.testing.assert_array_equal(model.graph_.toarray(), fresh.graph_.toarray())
