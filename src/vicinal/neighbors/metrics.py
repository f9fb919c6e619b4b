"""What is known about a metric before a row is compared: its names, its keywords, its domain, how rows are prepared.

The core's table (cpp/metric_table.hpp) says how prepared rows are ranked. A metric that differs from one of those only
by a transformation of the rows is a line in ``METRICS`` below: seuclidean and wminkowski scale the columns, mahalanobis
turns and scales them, hellinger takes roots, haversine goes to the unit sphere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.runtime.sharing import blas

# NDArray[np.float32], or a CSR matrix or array of SciPy's, which has no types.
Rows: TypeAlias = Any
Keywords: TypeAlias = Mapping[str, Any]

PRECOMPUTED = "precomputed"

ALIASES = {
    "l2": "euclidean",
    "l1": "manhattan",
    "taxicab": "manhattan",
    "cityblock": "manhattan",
    "linfinity": "chebyshev",
    "linfty": "chebyshev",
    "linf": "chebyshev",
    "standardised_euclidean": "seuclidean",
    "weighted_minkowski": "wminkowski",
}

# umap-learn's names of SciPy's keywords.
KEYWORD_ALIASES = {"v": "V", "sigma": "V", "vinv": "VI"}


@dataclass(frozen=True)
class Metric:
    """``core`` ranks the prepared rows; multiplied by s, their distances grow by s^degree (None: they must not be)."""

    core: str
    degree: int | None = 1
    keywords: tuple[str, ...] = ()
    prepare: Callable[[Rows, Keywords], Rows] | None = None
    domain: Callable[[Rows], None] | None = None
    # Rows whose euclidean neighbours are likely neighbours, where the rows themselves are not such.
    likeness: Callable[[Rows, Keywords], Rows] | None = None
    sparse: bool = True
    nan: bool = False
    columns: int | None = None


def is_sparse(X: Any) -> bool:
    return hasattr(X, "indptr")


def is_low_level(metric: Any) -> bool:
    """Whether it is a scipy.LowLevelCallable (a tuple of a capsule, the function and its data)."""
    return type(metric).__name__ == "LowLevelCallable" and isinstance(metric, tuple)


def _with_values(X: Rows, values: NDArray[Any]) -> Rows:
    """Rows that store other values in the same places."""
    rows = X.copy()
    rows.data = np.ascontiguousarray(values, dtype=np.float32)
    return rows


def _scale_columns(X: Rows, factor: NDArray[np.float64]) -> Rows:
    if is_sparse(X):
        return _with_values(X, X.data * factor[X.indices])
    return np.ascontiguousarray(X * factor, dtype=np.float32)


def _standardise(X: Rows, kwds: Keywords) -> Rows:
    return _scale_columns(X, 1.0 / np.sqrt(kwds["V"]))


def _weigh(X: Rows, kwds: Keywords) -> Rows:
    p = kwds["p"]
    # The largest weighted difference of p = inf: a weight counts or does not, as its p-th root tends to 1.
    return _scale_columns(X, kwds["w"] ** (1.0 / p) if np.isfinite(p) else (kwds["w"] > 0.0) * 1.0)


def _whiten(X: Rows, kwds: Keywords) -> Rows:
    """x' VI x = |x F|^2 for VI = F F'."""
    with blas():
        values, vectors = np.linalg.eigh(kwds["VI"])
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    # einsum's order is fixed; a product by BLAS would depend on the rows it is computed with.
    return np.ascontiguousarray(np.einsum("ij,jk->ik", X, factor), dtype=np.float32)


def _roots(X: Rows, _: Keywords) -> Rows:
    return _with_values(X, np.sqrt(X.data)) if is_sparse(X) else np.sqrt(X)


def _on_sphere(X: Rows, _: Keywords) -> Rows:
    latitude, longitude = np.asarray(X, dtype=np.float64).T
    places = np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)
    return np.ascontiguousarray(np.stack(places, axis=1), dtype=np.float32)


def _truth(X: Rows, _: Keywords) -> Rows:
    return _with_values(X, X.data != 0) if is_sparse(X) else (X != 0).astype(np.float32)


def _filled(X: Rows, kwds: Keywords) -> Rows:
    rows: NDArray[np.float32] = np.array(X, dtype=np.float32)
    np.copyto(rows, kwds["mean"], where=np.isnan(rows), casting="same_kind")
    return rows


def _require_non_negative(X: Rows) -> None:
    values = X.data if is_sparse(X) else X
    if values.size and values.min() < 0.0:
        negative = values < 0.0
        if is_sparse(X):
            row = int(np.searchsorted(X.indptr, int(np.argmax(negative)), side="right")) - 1
        else:
            row = int(np.argmax(negative.any(axis=1)))
        raise ValueError(f"X must not be negative for this metric, but is in row {row}")


def _require_latitudes(X: Rows) -> None:
    beyond = np.abs(X[:, 0]) > np.pi / 2 + 1e-6
    if beyond.any():
        raise ValueError(
            "X must hold latitude and longitude in radians for metric='haversine'; the latitude of row "
            f"{int(np.argmax(beyond))} is {float(X[np.argmax(beyond), 0])}"
        )


_BOOLEAN = ("jaccard", "dice", "matching", "kulsinski", "rogerstanimoto", "russellrao", "sokalmichener", "sokalsneath")

METRICS: dict[str, Metric] = {
    "euclidean": Metric("euclidean"),
    "sqeuclidean": Metric("sqeuclidean", degree=2),
    "manhattan": Metric("manhattan"),
    "chebyshev": Metric("chebyshev"),
    "cosine": Metric("cosine", degree=0),
    "correlation": Metric("correlation", degree=0),
    "minkowski": Metric("minkowski", keywords=("p",)),
    "wminkowski": Metric("minkowski", keywords=("w", "p"), prepare=_weigh),
    "seuclidean": Metric("euclidean", keywords=("V",), prepare=_standardise),
    "mahalanobis": Metric("euclidean", keywords=("VI",), prepare=_whiten, sparse=False),
    "hellinger": Metric("hellinger", degree=0, prepare=_roots, domain=_require_non_negative),
    "haversine": Metric(
        "haversine", degree=None, prepare=_on_sphere, domain=_require_latitudes, sparse=False, columns=2
    ),
    "canberra": Metric("canberra", degree=0),
    "braycurtis": Metric("braycurtis", degree=0),
    "nan_euclidean": Metric("nan_euclidean", likeness=_filled, sparse=False, nan=True),
    "hamming": Metric("hamming", degree=None),
    **{name: Metric(name, degree=None, likeness=_truth) for name in (*_BOOLEAN, "yule")},
    "ll_dirichlet": Metric("ll_dirichlet", degree=None, domain=_require_non_negative),
}

# Those that need no keyword and take any finite rows.
VECTOR_METRICS = ("euclidean", "sqeuclidean", "cosine", "correlation", "manhattan", "chebyshev")

_NAMED_BY_POWER = {1.0: "manhattan", 2.0: "euclidean", float("inf"): "chebyshev"}


def canonical_metric(metric: str) -> str:
    """The metric's name in ``METRICS``."""
    name = ALIASES.get(metric, metric)
    if name not in METRICS:
        raise ValueError(f"metric must be one of {sorted({*METRICS, *ALIASES})}, got {metric!r}")
    return name


def allows_nan(metric: Any) -> bool:
    """Whether a row may hold NaN, as a missing value."""
    return isinstance(metric, str) and metric in METRICS and METRICS[metric].nan


def check_metric(metric: Any, metric_kwds: Any = None, n_features: int | None = None, sparse: bool = False) -> None:
    """Raises ValueError or TypeError, naming the argument, if rows of ``n_features`` cannot be compared so."""
    _checked_keywords(metric, metric_kwds, n_features)
    if not isinstance(metric, str):
        if sparse:
            raise TypeError("metric must be a name for sparse rows: a function is called with dense rows")
        return
    if metric == PRECOMPUTED:
        return
    name = canonical_metric(metric)
    if sparse and not METRICS[name].sparse:
        raise ValueError(f"metric={metric!r} is not available for sparse rows")
    columns = METRICS[name].columns
    if columns is not None and n_features is not None and n_features != columns:
        raise ValueError(f"metric={metric!r} needs {columns} columns, got X with {n_features}")


def _checked_keywords(metric: Any, metric_kwds: Any, n_features: int | None) -> dict[str, Any]:
    """The keywords by SciPy's names, as float64, for a metric that is a name; a function's as they are."""
    if not isinstance(metric_kwds, Mapping | None):
        raise TypeError(f"metric_kwds must be a dict or None, got {metric_kwds!r}")
    given = dict(metric_kwds or {})
    if not all(isinstance(key, str) for key in given):
        raise TypeError(f"metric_kwds must have names as keys, got {list(given)}")
    if is_low_level(metric):
        if given:
            raise ValueError(f"metric_kwds cannot be handed to a LowLevelCallable, got {sorted(given)}")
        cpu.ForeignPairs.check(metric)
        return {}
    if callable(metric):
        return given
    if not isinstance(metric, str):
        raise TypeError(f"metric must be a name, a function of two rows or a scipy.LowLevelCallable, got {metric!r}")
    allowed = () if metric == PRECOMPUTED else METRICS[canonical_metric(metric)].keywords
    checked = {}
    for key, value in given.items():
        name = KEYWORD_ALIASES.get(key, key)
        if name not in allowed:
            known = ", ".join(allowed) or "no keywords"
            raise ValueError(f"metric_kwds has {key!r}, but metric={metric!r} takes {known}")
        if name in checked:
            raise ValueError(f"metric_kwds gives {name!r} twice, the second time as {key!r}")
        checked[name] = _KEYWORD_CHECKS[name](f"metric_kwds[{key!r}]", value, n_features)
    if "w" in allowed and "w" not in checked:
        raise ValueError(f"metric={metric!r} needs metric_kwds['w']: a weight for each column")
    return {"p": 2.0} | checked if "p" in allowed else checked


def _check_power(name: str, value: Any, _: int | None) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not float(value) > 0.0:
        raise ValueError(f"{name} must be a number above 0 or infinity, got {value!r}")
    return float(value)


def _check_array(name: str, value: Any, shape: tuple[int, ...] | None, ndim: int) -> NDArray[np.float64]:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers: {error}") from error
    if array.ndim != ndim or (shape is not None and array.shape != shape):
        raise ValueError(f"{name} must have shape {shape or f'({ndim}-D)'}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity")
    return array


def _check_variances(name: str, value: Any, n_features: int | None) -> NDArray[np.float64]:
    variances = _check_array(name, value, None if n_features is None else (n_features,), 1)
    if not (variances > 0.0).all():
        raise ValueError(f"{name} must be above 0 in every column, got {variances.min()}")
    return variances


def _check_weights(name: str, value: Any, n_features: int | None) -> NDArray[np.float64]:
    weights = _check_array(name, value, None if n_features is None else (n_features,), 1)
    if not (weights >= 0.0).all():
        raise ValueError(f"{name} must not be negative, got {weights.min()}")
    return weights


def _check_precision(name: str, value: Any, n_features: int | None) -> NDArray[np.float64]:
    matrix = _check_array(name, value, None if n_features is None else (n_features, n_features), 2)
    size = float(np.abs(matrix).max(initial=0.0))
    if matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T, rtol=1e-5, atol=1e-8 * size):
        raise ValueError(f"{name} must be symmetric")
    matrix = (matrix + matrix.T) / 2.0
    if matrix.size and np.linalg.eigvalsh(matrix)[0] < -1e-6 * size:
        raise ValueError(f"{name} must be positive semi-definite: a distance would be the root of a negative number")
    return matrix


_KEYWORD_CHECKS: dict[str, Callable[[str, Any, int | None], Any]] = {
    "p": _check_power,
    "V": _check_variances,
    "w": _check_weights,
    "VI": _check_precision,
}


@dataclass(frozen=True)
class FittedMetric:
    """A metric with its keywords, those that follow from the data (``V``, ``VI``) included."""

    facts: Metric
    keywords: Keywords
    function: Any = None

    @property
    def core(self) -> str:
        """The name in the core's table."""
        return self.facts.core

    @property
    def power(self) -> float:
        return float(self.keywords.get("p", 2.0)) if self.function is None else 2.0

    def check_domain(self, X: Rows) -> None:
        """Raises ValueError, naming the first row, if the metric is not defined for these rows."""
        if self.facts.domain is not None:
            self.facts.domain(X)

    def prepare(self, X: Rows) -> Rows:
        """The rows that ``core`` ranks."""
        return X if self.facts.prepare is None else self.facts.prepare(X, self.keywords)

    def likeness(self, prepared: Rows) -> Rows:
        """Rows whose euclidean neighbours are a good place to start looking."""
        return prepared if self.facts.likeness is None else self.facts.likeness(prepared, self.keywords)


def fit_metric(metric: Any, metric_kwds: Any, X: Rows) -> FittedMetric:
    """Checks the metric and completes its keywords from the data, as SciPy's ``pdist`` does."""
    n_features = int(X.shape[1])
    check_metric(metric, metric_kwds, n_features, is_sparse(X))
    keywords = _checked_keywords(metric, metric_kwds, n_features)
    if not isinstance(metric, str):
        return FittedMetric(Metric(core="function", degree=None, sparse=False), keywords, metric)
    if metric == PRECOMPUTED:
        raise ValueError("metric='precomputed' has no rows to search: see vicinal.neighbors.precomputed")
    facts = METRICS[canonical_metric(metric)]
    if facts.core == "minkowski":
        facts = replace(facts, core=_NAMED_BY_POWER.get(keywords["p"], "minkowski"))
    if "V" in facts.keywords and "V" not in keywords:
        keywords["V"] = _column_variances(X)
    if "VI" in facts.keywords and "VI" not in keywords:
        rows = np.asarray(X, dtype=np.float64)
        with blas():
            keywords["VI"] = np.linalg.pinv(np.atleast_2d(np.cov(rows, rowvar=False)), hermitian=True)
    if facts.nan:
        present = ~np.isnan(X)
        total = np.where(present, X, 0.0).sum(axis=0, dtype=np.float64)
        keywords["mean"] = total / np.maximum(present.sum(axis=0), 1)
    return FittedMetric(facts, keywords)


def _column_variances(X: Rows) -> NDArray[np.float64]:
    """With 1 for columns that never change: they add nothing to any distance."""
    n = X.shape[0]
    if is_sparse(X):
        values = X.data.astype(np.float64)
        total, squares = (np.bincount(X.indices, weights=v, minlength=X.shape[1]) for v in (values, values**2))
        variance = (squares - total**2 / n) / max(n - 1, 1)
    else:
        variance = np.var(X, axis=0, dtype=np.float64, ddof=min(1, n - 1))
    return np.where(variance > 0.0, variance, 1.0)
