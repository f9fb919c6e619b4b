"""AlignedUMAP: related rows are placed close to each other, maps stay good, errors name the argument."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from vicinal import UMAP, AlignedUMAP
from vicinal.graph.graph import Graph
from vicinal.layout.alignment import check_relations, link_slices
from vicinal.quality.measures import trustworthiness

Rows = NDArray[np.float32]

# The constructor of umap-learn 0.5.12, in order.
PARAMETERS = (
    "n_neighbors=15 n_components=2 metric='euclidean' metric_kwds=None n_epochs=None learning_rate=1.0 init='spectral' "
    "alignment_regularisation=0.01 alignment_window_size=3 min_dist=0.1 spread=1.0 low_memory=False "
    "set_op_mix_ratio=1.0 local_connectivity=1.0 repulsion_strength=1.0 negative_sample_rate=5 "
    "transform_queue_size=4.0 a=None b=None random_state=None angular_rp_forest=False target_n_neighbors=-1 "
    "target_metric='categorical' target_metric_kwds=None target_weight=0.5 transform_seed=42 "
    "force_approximation_algorithm=False verbose=False unique=False"
)
SHIFT, SIZE, SLICES = 120, 360, 5
RELATION = {i + SHIFT: i for i in range(SIZE - SHIFT)}


@pytest.fixture(scope="module")
def slices(digits: Rows, digit_labels: NDArray[np.int64]) -> list[Rows]:
    """Return windows over the digits sorted by class: each shares two thirds of its rows with the next."""
    ordered = digits[np.argsort(digit_labels, kind="stable")]
    return [ordered[SHIFT * i : SHIFT * i + SIZE] for i in range(SLICES)]


@pytest.fixture(scope="module")
def model(slices: list[Rows]) -> AlignedUMAP:
    return AlignedUMAP(n_epochs=120, random_state=3).fit(slices, relations=[RELATION] * (SLICES - 1))


def apart(first: Rows, second: Rows) -> float:
    """Return the mean distance of related rows relative to the extent of the map."""
    here, there = first[list(RELATION)], second[list(RELATION.values())]
    return float(np.linalg.norm(here - there, axis=1).mean() / np.ptp(first, axis=0).mean())


def test_constructor_has_the_parameters_of_umap_learn() -> None:
    parameters = [p for p in inspect.signature(AlignedUMAP).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [f"{p.name}={p.default!r}" for p in parameters] == PARAMETERS.split()
    marked = AlignedUMAP(**{p.name: object() for p in parameters})
    assert set(marked.get_params()) == {*(p.name for p in parameters), "n_jobs", "memory_limit"}


def test_related_rows_are_close_and_maps_stay_good(slices: list[Rows], model: AlignedUMAP) -> None:
    alone = [UMAP(n_epochs=120, random_state=3).fit_transform(rows) for rows in slices]
    for i in range(SLICES - 1):
        assert apart(model.embeddings_[i], model.embeddings_[i + 1]) < 0.06
        assert apart(alone[i], alone[i + 1]) > 0.15
    for rows, places, free in zip(slices, model.embeddings_, alone, strict=True):
        assert places.dtype == np.float32
        assert np.isfinite(places).all()
        assert trustworthiness(rows, places) > trustworthiness(rows, free) - 0.015


def test_larger_regularisation_brings_related_rows_closer(slices: list[Rows]) -> None:
    found = []
    for strength in (0.0, 0.01, 0.1):
        model = AlignedUMAP(n_epochs=60, random_state=1, alignment_regularisation=strength)
        maps = model.fit_transform(slices[:2], relations=[RELATION])
        found.append(apart(*maps))
    assert found[0] > 1.5 * found[1] > 2 * found[2]


def test_maps_do_not_depend_on_n_jobs(slices: list[Rows]) -> None:
    runs = []
    for jobs in (1, 2, 8):
        model = AlignedUMAP(n_epochs=20, random_state=0, n_jobs=jobs).fit(slices[:3], relations=[RELATION] * 2)
        runs.append(model.update(slices[3], relations=RELATION).embeddings_)
    for run in runs[1:]:
        for one, other in zip(run, runs[0], strict=True):
            np.testing.assert_array_equal(one, other)


def test_update_adds_a_slice_and_does_not_move_the_others(slices: list[Rows]) -> None:
    model = AlignedUMAP(n_epochs=120, random_state=3).fit(slices[:3], relations=[RELATION] * 2)
    before = [places.copy() for places in model.embeddings_]
    parameters = model.get_params()
    assert model.update(slices[3], relations=RELATION, n_neighbors=12) is model
    model.update(slices[4], relations=RELATION)
    assert model.get_params() == parameters
    assert [mapper.n_neighbors for mapper in model.mappers_] == [15, 15, 15, 12, 12]
    for old, kept in zip(before, model.embeddings_, strict=False):
        np.testing.assert_array_equal(old, kept)
    for i in (2, 3):
        assert apart(model.embeddings_[i], model.embeddings_[i + 1]) < 0.06
        assert trustworthiness(slices[i + 1], model.embeddings_[i + 1]) > 0.95


def test_transform_places_rows_in_their_slice(slices: list[Rows], model: AlignedUMAP) -> None:
    for rows, places, found in zip(slices, model.embeddings_, model.transform(slices), strict=True):
        np.testing.assert_array_equal(found, places)
        assert len(rows) == len(found)
    new = slices[2][:30] + np.random.default_rng(0).normal(scale=0.5, size=(30, 64)).astype(np.float32)
    placed = model.transform(new, at=2)
    assert np.median(np.linalg.norm(placed - model.embeddings_[2][:30], axis=1)) < 1.0
    np.testing.assert_array_equal(placed, model.transform([slices[0], slices[0], new, new, new])[2])


def test_slices_may_differ_in_size_columns_and_parameters(slices: list[Rows]) -> None:
    sets = [slices[0], slices[1][:200, :40], slices[2][:50]]
    model = AlignedUMAP(n_neighbors=[15, 10, 5], min_dist=(0.1, 0.2, 0.1), n_components=3, n_epochs=20)
    maps = model.fit_transform(sets, [None, np.arange(200) % 4, None], relations=[{120: 0, 125: 5}, {}])
    assert [places.shape for places in maps] == [(360, 3), (200, 3), (50, 3)]
    assert all(np.isfinite(places).all() for places in maps)


def test_equal_rows_share_one_place(slices: list[Rows]) -> None:
    repeated = np.concatenate([slices[0][:100], slices[0][:20]])
    model = AlignedUMAP(n_epochs=10, random_state=0).fit([repeated, slices[1]], relations=[{3: 1}])
    np.testing.assert_array_equal(model.embeddings_[0][:20], model.embeddings_[0][100:])


def test_links_between_small_slices() -> None:
    """A path 0-1-2, the same path with its rows renumbered, and that path again."""
    path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32)
    from scipy.sparse import csr_matrix

    graph = Graph.from_scipy(csr_matrix(path))
    star = Graph.from_scipy(csr_matrix(path[[1, 0, 2]][:, [1, 0, 2]]))
    swap = {0: 1, 1: 0, 2: 2}
    partners = check_relations([swap, {0: 0, 1: 1}], [3, 3, 3])
    links = link_slices(partners, [graph, star, star], window=2).toarray()
    np.testing.assert_array_equal(links, links.T)
    np.testing.assert_allclose(links[:3, 3:6], np.eye(3)[[1, 0, 2]])
    # Row 2 of the second slice has no partner in the third and is not counted among the neighbors there.
    np.testing.assert_allclose(links[3:6, 6:], np.diag([1.0, 1.0, 0.0]))
    np.testing.assert_allclose(links[:3, 6:], np.exp(-1) * np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    assert not link_slices(partners, [graph, star, star], window=1)[:3, 6:].nnz


def test_clone_repr_and_unfitted_transform() -> None:
    model = AlignedUMAP(n_neighbors=[5, 6], alignment_window_size=2)
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == "AlignedUMAP(alignment_window_size=2, n_neighbors=[5, 6])"
    with pytest.raises(NotFittedError):
        model.transform([np.zeros((3, 2))])


ROWS = [np.random.default_rng(i).normal(size=(20, 3)) for i in range(3)]
GOOD: dict[str, Any] = {"X": ROWS, "relations": [{0: 0}, {1: 1}]}
WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"relations": None}, "relations must be given"),
    ({}, {"relations": {0: 0}}, "relations must be a list"),
    ({}, {"relations": [{0: 0}]}, "relations must have 2 entries for 3 slices, got 1"),
    ({}, {"relations": [{0: 0}, [1, 2]]}, r"relations\[1\] must be a dict"),
    ({}, {"relations": [{0: 0}, {20: 0}]}, r"relations\[1\] has the key 20, but that slice has 20 rows"),
    ({}, {"relations": [{0: -1}, {0: 0}]}, r"relations\[0\] has the value -1"),
    ({}, {"relations": [{0: 0.5}, {0: 0}]}, r"relations\[0\] must hold whole numbers"),
    ({}, {"relations": [{"a": 0}, {0: 0}]}, r"relations\[0\] must hold whole numbers, but has the key 'a'"),
    ({}, {"X": "rows"}, "X must be a list"),
    ({}, {"X": [ROWS[0], ROWS[1], ROWS[2][0]]}, r"X\[2\] must be 2-D"),
    ({}, {"y": [None]}, "y must have an entry for each of 3 slices"),
    ({}, {"window_size": 0}, "window_size"),
    ({"n_neighbors": [5, 6]}, {}, "n_neighbors must have an entry for each of 3 slices"),
    ({"n_components": [2, 2, 2]}, {}, "n_components"),
    ({"alignment_regularisation": -1.0}, {}, "alignment_regularisation"),
    ({"alignment_window_size": 0}, {}, "alignment_window_size"),
    ({"n_epochs": [10, 20]}, {}, "n_epochs"),
    ({"min_dist": -0.5}, {}, "min_dist"),
]


@pytest.mark.parametrize(("parameters", "arguments", "error"), WRONG)
def test_invalid_argument_is_named(parameters: dict[str, Any], arguments: dict[str, Any], error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        AlignedUMAP(**{"n_epochs": 5} | parameters).fit(**GOOD | arguments)


def test_invalid_update_and_transform_are_refused() -> None:
    model = AlignedUMAP(n_epochs=5).fit(**GOOD)
    with pytest.raises(ValueError, match="relations must be given"):
        model.update(ROWS[0])
    with pytest.raises(ValueError, match="relations has the value 20"):
        model.update(ROWS[0], relations={0: 20})
    with pytest.raises(TypeError, match="nowhere"):
        model.update(ROWS[0], relations={}, nowhere=1)
    with pytest.raises(ValueError, match="at must be"):
        model.transform(ROWS[0], at=3)
    with pytest.raises(ValueError, match="X must have an entry for each of 3 slices"):
        model.transform(ROWS[:2])
    assert model.n_models_ == 3


def test_slices_can_be_dense_sparse_and_distances(slices: list[Rows]) -> None:
    from scipy.sparse import csr_matrix
    from scipy.spatial.distance import cdist

    distances = cdist(slices[2], slices[2])
    sets = [slices[0], csr_matrix(slices[1]), distances]
    model = AlignedUMAP(metric=["euclidean", "cosine", "precomputed"], n_epochs=15, random_state=0)
    model.fit(sets, relations=[RELATION] * 2)
    for places, placed in zip(model.embeddings_, model.transform(sets), strict=True):
        assert np.isfinite(places).all()
        np.testing.assert_array_equal(places, placed)
    assert np.isfinite(model.transform(distances[:7] + 0.5, at=-1)).all()
