"""Invalid arguments: an error names the argument before any work is done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from vicinal import UMAP, Kernel, Layout, Neighbors, Schedule, find_neighbors, fit_ab, fuzzy_graph
from vicinal.layout.sampled import Placement
from vicinal.neighbors.index import NeighborIndex

N = 40

INVALID_PARAMETERS: list[tuple[str, Any]] = [
    ("n_neighbors", 1),
    ("n_neighbors", 0),
    ("n_neighbors", -5),
    ("n_neighbors", 2.5),
    ("n_neighbors", "many"),
    ("n_neighbors", None),
    ("n_components", 0),
    ("n_components", -1),
    ("n_components", 1.5),
    ("n_components", "2"),
    ("metric", "no such metric"),
    ("metric", 3),
    ("metric_kwds", "p=2"),
    ("output_metric", 5),
    ("n_epochs", -1),
    ("n_epochs", 10.5),
    ("n_epochs", "auto"),
    ("learning_rate", 0.0),
    ("learning_rate", -1.0),
    ("learning_rate", "fast"),
    ("learning_rate", float("nan")),
    ("learning_rate", float("inf")),
    ("init", "no such start"),
    ("init", 5),
    ("init", np.zeros((N, 3))),
    ("init", np.zeros((N - 1, 2))),
    ("init", np.zeros(N)),
    ("init", np.full((N, 2), np.nan)),
    ("init", [["a", "b"]] * N),
    ("min_dist", -0.1),
    ("min_dist", 1.5),
    ("min_dist", "near"),
    ("min_dist", float("nan")),
    ("spread", 0.0),
    ("spread", -1.0),
    ("spread", float("inf")),
    ("low_memory", "yes"),
    ("n_jobs", 0),
    ("n_jobs", 1.5),
    ("n_jobs", "all"),
    ("set_op_mix_ratio", -0.1),
    ("set_op_mix_ratio", 1.1),
    ("local_connectivity", -1.0),
    ("local_connectivity", float("inf")),
    ("repulsion_strength", -1.0),
    ("repulsion_strength", float("nan")),
    ("negative_sample_rate", -1),
    ("negative_sample_rate", 2.5),
    ("negative_sample_rate", 10_001),
    ("transform_queue_size", -1.0),
    ("a", 0.0),
    ("a", -1.0),
    ("b", -1.0),
    ("random_state", "seed"),
    ("random_state", -1),
    ("random_state", 1.5),
    ("angular_rp_forest", "no"),
    ("target_n_neighbors", 2.5),
    ("target_weight", -0.1),
    ("target_weight", 1.1),
    ("transform_seed", -1),
    ("transform_seed", 1.5),
    ("transform_seed", None),
    ("transform_mode", "both"),
    ("force_approximation_algorithm", 2),
    ("verbose", "loud"),
    ("tqdm_kwds", "desc"),
    ("unique", "yes"),
    ("densmap", 3),
    ("dens_frac", 1.5),
    ("disconnection_distance", 0.0),
    ("disconnection_distance", -1.0),
    ("precomputed_knn", 5),
    ("update_negatives", "yes"),
]


def never(*_: Any) -> None:
    pytest.fail("work began before the arguments were checked")


def rows(n: int = N) -> NDArray[np.float64]:
    return np.random.default_rng(0).normal(size=(n, 4))


def label(value: Any) -> str:
    return f"array{value.shape}" if isinstance(value, np.ndarray) else repr(value)[:30]


@pytest.mark.parametrize(("name", "value"), INVALID_PARAMETERS, ids=label)
def test_invalid_parameter_is_named_before_any_work(name: str, value: Any) -> None:
    given = {"callback": never} | {name: value}
    if name in ("a", "b"):
        given = {"a": 1.0, "b": 1.0} | given
    model = UMAP(**given)
    with pytest.raises((ValueError, TypeError), match=name):
        model.fit(rows())
    assert not hasattr(model, "embedding_")


def test_invalid_callback_is_named() -> None:
    with pytest.raises((ValueError, TypeError), match="callback"):
        UMAP(callback="print").fit(rows())


@pytest.mark.parametrize(("a", "b"), [(1.0, None), (None, 1.0)])
def test_a_and_b_must_be_given_together(a: float | None, b: float | None) -> None:
    with pytest.raises(ValueError, match="a and b"):
        UMAP(a=a, b=b, callback=never).fit(rows())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 17, N - 1])
def test_error_names_the_first_row_with_nan_or_infinity(dtype: Any, value: float, row: int) -> None:
    X = rows().astype(dtype)
    X[row, 2] = value
    X[N - 1, 1] = value
    model = UMAP(n_epochs=5).fit(rows())
    word = "NaN" if np.isnan(value) else "inf"
    for call in (UMAP(callback=never).fit, model.transform):
        with pytest.raises(ValueError, match=rf"{word}.*row {row}\b"):
            call(X)


def test_error_names_the_row_of_a_value_beyond_float32() -> None:
    X = rows()
    X[5, 1] = 1e300
    with pytest.raises(ValueError, match=r"row 5\b"):
        UMAP(callback=never).fit(X)


@pytest.mark.parametrize(
    ("X", "error", "words"),
    [
        (np.zeros(5), ValueError, "2D"),
        (np.zeros((3, 4, 5)), ValueError, "dim"),
        (np.zeros((0, 4)), ValueError, "sample"),
        (np.zeros((4, 0)), ValueError, "feature"),
        ([["a", "b"], ["c", "d"]], ValueError, "string|convert"),
        (np.zeros((4, 2), dtype=complex), ValueError, "[Cc]omplex"),
        (sparse.csr_matrix(np.array([[1.0, np.inf], [2.0, 0.0]])), ValueError, "inf.* row 0"),
        (None, TypeError, "X must be an array, .* got NoneType"),
    ],
    ids=["1-D", "3-D", "no rows", "no columns", "strings", "complex", "sparse with infinity", "None"],
)
def test_invalid_rows_are_refused(X: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        UMAP(callback=never).fit(X)


@pytest.mark.parametrize("y", [np.zeros(N - 1), np.zeros((N, 2)), 3.0, np.r_[np.zeros(N - 1), np.inf]], ids=label)
def test_invalid_labels_are_refused(y: Any) -> None:
    with pytest.raises(ValueError, match=r"\by\b"):
        UMAP(callback=never).fit(rows(), y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"n_neighbors": N + 1}, "n_neighbors"),
        ({"metric": "no such metric"}, "metric"),
        ({"method": "fast"}, "method"),
    ],
)
def test_find_neighbors_names_the_invalid_argument(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        find_neighbors(rows(), **options)


def test_find_neighbors_names_the_first_invalid_row() -> None:
    X = rows()
    X[9:12, 0] = np.nan
    with pytest.raises(ValueError, match=r"row 9\b"):
        find_neighbors(X)
    with pytest.raises(ValueError, match="2-D"):
        find_neighbors(np.zeros(5))


def test_incompatible_parts_are_refused() -> None:
    graph = fuzzy_graph(find_neighbors(rows(), 5))
    kernel, schedule = Kernel(1.0, 1.0), Schedule(10)
    with pytest.raises(ValueError, match="rows"):
        Layout(graph, np.zeros((N - 1, 2), dtype=np.float32), kernel, schedule)
    places, wide = np.zeros((N, 2), dtype=np.float32), np.zeros((N, 3), dtype=np.float32)
    with pytest.raises(ValueError, match="reference"):
        Placement(graph, places, wide, kernel, schedule)
    with pytest.raises(ValueError, match="shapes"):
        Neighbors(np.zeros((3, 2), dtype=np.int32), np.zeros((3, 3), dtype=np.float32))
    invalid = Neighbors(np.array([[0, 5]], dtype=np.int32), np.array([[0.0, 1.0]], dtype=np.float32))
    with pytest.raises(ValueError, match="out of range"):
        fuzzy_graph(invalid)
    index = NeighborIndex(rows().astype(np.float32))
    with pytest.raises(ValueError, match="columns"):
        index.query(np.zeros((2, 3), dtype=np.float32), 5, graph)


@pytest.mark.parametrize(("spread", "min_dist"), [(0.0, 0.0), (-1.0, 0.0), (1.0, 1.5), (1.0, -0.1)])
def test_fit_ab_names_the_invalid_argument(spread: float, min_dist: float) -> None:
    with pytest.raises(ValueError, match="min_dist"):
        fit_ab(spread, min_dist)
