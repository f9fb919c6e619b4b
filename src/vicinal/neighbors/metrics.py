"""Metrics: names, keywords, valid rows, and the transformation that rows need before they are compared.

The core's table (cpp/neighbors/metric_table.hpp) defines how transformed rows are ranked. A metric that differs from
one of those only by a transformation of the rows is a line in ``METRICS`` below: seuclidean and wminkowski scale the
columns, mahalanobis rotates and scales them, hellinger takes square roots, haversine maps to the unit sphere.

A metric is validated once, by ``resolve_metric``; ``fit_metric`` adds the keywords that depend on the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.runtime.constraints import InvalidParameterError

# The public part; other functions serve the rest of the package.
__all__ = ["ALIASES", "METRICS", "allows_nan", "canonical_metric", "check_metric"]

# An array of one of the ROW_TYPES, or a CSR matrix or array of float32 of SciPy, which has no type hints.
Rows: TypeAlias = Any
Keywords: TypeAlias = Mapping[str, Any]
# Values as scikit-learn's ``ensure_all_finite``: True (all are finite), "allow-nan" (NaN too), False (any).
Finite: TypeAlias = bool | Literal["allow-nan"]

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

# umap-learn's names of SciPy's keywords
KEYWORD_ALIASES = {"v": "V", "sigma": "V", "vinv": "VI"}


@dataclass(frozen=True)
class Metric:
    """Describe a metric.

    Parameters
    ----------
    core : str
        Name of the metric of the core that ranks the transformed rows.
    degree : int or None
        If all rows are multiplied by s, distances are multiplied by s^degree; None if rows must not be scaled.
    keywords : tuple of str
        Accepted keywords, by SciPy's names.
    prepare : callable or None
        Transforms rows into those that ``core`` ranks.
    domain : callable or None
        Raises ValueError if the metric is not defined for some row.
    likeness : callable or None
        Returns rows whose euclidean neighbors are likely neighbors, if the prepared rows are not such.
    sparse, nan, packed : bool
        Whether rows may be sparse, may hold NaN as missing values, and hold eight bits per byte.
    columns : int or None
        Required number of columns.
    unrelated, unrelated_non_negative : float or None
        The largest distance, which rows have that share nothing; and the same for rows without negative numbers, if
        that differs. None if the metric has no such distance.
    """

    core: str
    degree: int | None = 1
    keywords: tuple[str, ...] = ()
    prepare: Callable[[Rows, Keywords], Rows] | None = None
    domain: Callable[[Rows], None] | None = None
    likeness: Callable[[Rows, Keywords], Rows] | None = None
    sparse: bool = True
    nan: bool = False
    packed: bool = False
    columns: int | None = None
    unrelated: float | None = None
    unrelated_non_negative: float | None = None


def is_sparse(X: Any) -> bool:
    """Tell whether rows are a CSR matrix."""
    return hasattr(X, "indptr")


def is_packed(metric: Any) -> bool:
    """Tell whether a metric compares bits that are packed into bytes."""
    return isinstance(metric, str) and metric in METRICS and METRICS[metric].packed


def widened(X: Rows) -> Rows:
    """Return rows as float32; X itself if it is that already."""
    return X if X.dtype == np.float32 else X.astype(np.float32)


def is_low_level(metric: Any) -> bool:
    """Tell whether a metric is a scipy.LowLevelCallable (a tuple of a capsule, the function and its data)."""
    return type(metric).__name__ == "LowLevelCallable" and isinstance(metric, tuple)


def stored_values(X: Rows) -> NDArray[Any]:
    """Return the values of rows: all of dense rows, the stored ones of sparse rows."""
    values: NDArray[Any] = X.data if is_sparse(X) else X
    return values


def with_values(X: Rows, values: NDArray[Any]) -> Rows:
    """Return rows of float32 with other values in place of the ``stored_values``."""
    values = np.ascontiguousarray(values, dtype=np.float32)
    if not is_sparse(X):
        return values
    rows = X.copy()
    rows.data = values
    return rows


def first_row(X: Rows, flags: NDArray[np.bool_]) -> int:
    """Return the first row with a flagged value; there is a flag for each of the ``stored_values``."""
    at = int(np.argmax(flags))
    return int(np.searchsorted(X.indptr, at, side="right")) - 1 if is_sparse(X) else at // int(X.shape[1])


def _scale_columns(X: Rows, factor: NDArray[np.float64]) -> Rows:
    if is_sparse(X):
        return with_values(X, X.data * factor[X.indices])
    # computed in double precision, block by block: a product X * factor would be a second, larger copy
    return np.multiply(X, factor, out=np.empty(X.shape, dtype=np.float32), casting="same_kind")


def _standardize(X: Rows, kwds: Keywords) -> Rows:
    return _scale_columns(X, 1.0 / np.sqrt(kwds["V"]))


def _weight(X: Rows, kwds: Keywords) -> Rows:
    p = kwds["p"]
    # As p grows, the p-th root of a positive weight tends to 1: for p = inf a column counts or does not.
    return _scale_columns(X, kwds["w"] ** (1.0 / p) if np.isfinite(p) else (kwds["w"] > 0.0) * 1.0)


def _whiten(X: Rows, kwds: Keywords) -> Rows:
    """Multiply by F, where VI = F F': then x' VI x = |x F|^2."""
    values, vectors = np.linalg.eigh(kwds["VI"])
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    # einsum has a fixed order of summation; a BLAS product would depend on the other rows of the call.
    return np.ascontiguousarray(np.einsum("ij,jk->ik", X, factor), dtype=np.float32)


def _take_roots(X: Rows, _: Keywords) -> Rows:
    return with_values(X, np.sqrt(stored_values(X)))


def _to_sphere(X: Rows, _: Keywords) -> Rows:
    latitude, longitude = np.asarray(X, dtype=np.float64).T
    points = np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)
    return np.ascontiguousarray(np.stack(points, axis=1), dtype=np.float32)


def _as_truth_values(X: Rows, _: Keywords) -> Rows:
    return with_values(X, X.data != 0) if is_sparse(X) else (X != 0).view(np.uint8)


def _fill_missing(X: Rows, kwds: Keywords) -> Rows:
    rows: NDArray[np.float32] = np.array(X, dtype=np.float32)
    np.copyto(rows, kwds["mean"], where=np.isnan(rows), casting="same_kind")
    return rows


def _replace_not_finite(X: Rows, _: Keywords) -> Rows:
    """Replace what only the function can compare by 0, for the choice of candidates."""
    return X if np.isfinite(X).all() else np.nan_to_num(X, nan=0.0, posinf=0.0, neginf=0.0)


def _require_non_negative(X: Rows) -> None:
    values = stored_values(X)
    if values.size and values.min() < 0.0:
        raise ValueError(f"X must not be negative for this metric, first in row {first_row(X, values < 0.0)}")


# Longitudes are given from -pi to pi or from 0 to 2 pi. Larger numbers are no radians.
LARGEST_ANGLE = 2 * np.pi + 1e-5


def _require_angles(X: Rows) -> None:
    """Refuse degrees; a latitude beyond a quarter turn is accepted, because longitudes may be given first."""
    beyond = ((X > LARGEST_ANGLE) | (X < -LARGEST_ANGLE)).any(axis=1)
    if beyond.any():
        row = int(np.argmax(beyond))
        raise ValueError(
            "X must hold latitude and longitude in radians for metric='haversine' (numpy.radians converts degrees); "
            f"row {row} is {X[row].tolist()}"
        )


def _require_bytes(X: Rows) -> None:
    if X.dtype != np.uint8:
        raise ValueError(
            f"X must be rows of uint8, such as numpy.packbits makes, for metrics of bits, got {X.dtype}; a GPU, Dask, "
            "ProgressiveUMAP and ParametricUMAP compare rows of float32 and have no such metric"
        )


_BOOLEAN = ("jaccard", "dice", "matching", "kulsinski", "rogerstanimoto", "russellrao", "sokalmichener", "sokalsneath")

METRICS: dict[str, Metric] = {
    "euclidean": Metric("euclidean"),
    "sqeuclidean": Metric("sqeuclidean", degree=2),
    "manhattan": Metric("manhattan"),
    "chebyshev": Metric("chebyshev"),
    "cosine": Metric("cosine", degree=0, unrelated=2.0, unrelated_non_negative=1.0),
    "correlation": Metric("correlation", degree=0, unrelated=2.0),
    "minkowski": Metric("minkowski", keywords=("p",)),
    "wminkowski": Metric("minkowski", keywords=("w", "p"), prepare=_weight),
    "seuclidean": Metric("euclidean", keywords=("V",), prepare=_standardize),
    "mahalanobis": Metric("euclidean", keywords=("VI",), prepare=_whiten, sparse=False),
    "hellinger": Metric("hellinger", degree=0, prepare=_take_roots, domain=_require_non_negative, unrelated=1.0),
    "haversine": Metric("haversine", degree=None, prepare=_to_sphere, domain=_require_angles, sparse=False, columns=2),
    "canberra": Metric("canberra", degree=0),
    "braycurtis": Metric("braycurtis", degree=0, unrelated_non_negative=1.0),
    "nan_euclidean": Metric("nan_euclidean", likeness=_fill_missing, sparse=False, nan=True),
    "hamming": Metric("hamming", degree=None, unrelated=1.0),
    **{name: Metric(name, degree=None, likeness=_as_truth_values, unrelated=1.0) for name in _BOOLEAN},
    "yule": Metric("yule", degree=None, likeness=_as_truth_values),
    **{
        name: Metric(name, degree=None, domain=_require_bytes, sparse=False, packed=True)
        for name in ("bit_hamming", "bit_jaccard")
    },
    "ll_dirichlet": Metric("ll_dirichlet", degree=None, domain=_require_non_negative),
}

# Metrics that need no keyword and accept any finite rows
VECTOR_METRICS = ("euclidean", "sqeuclidean", "cosine", "correlation", "manhattan", "chebyshev")

_FUNCTION = Metric("function", degree=None, likeness=_replace_not_finite, sparse=False)
_PRECOMPUTED = Metric(PRECOMPUTED, degree=None)
_NAMED_BY_POWER = {1.0: "manhattan", 2.0: "euclidean", float("inf"): "chebyshev"}


def canonical_metric(metric: str) -> str:
    """Return the name of a metric in ``METRICS``, given that name or an alias."""
    name = ALIASES.get(metric, metric)
    if name not in METRICS:
        raise ValueError(f"metric must be one of {sorted({*METRICS, *ALIASES})}, got {metric!r}")
    return name


def allows_nan(metric: Any) -> bool:
    """Tell whether rows may hold NaN as missing values."""
    return isinstance(metric, str) and metric in METRICS and METRICS[metric].nan


def required_finite(metric: Any) -> Finite:
    """Return which values a metric can compare: finite ones, also NaN, or for a function whatever it accepts."""
    return ("allow-nan" if allows_nan(metric) else True) if isinstance(metric, str) else False


# Whether the core ranks by evaluating pairs of rows, by name of its metrics
_RANKED_BY_PAIRS: dict[str, bool] = dict(cpu.metrics())


@dataclass(frozen=True)
class FittedMetric:
    """A validated metric: its description, its keywords by SciPy's names as float64, and the function if it is one.

    ``fit_metric`` adds the keywords that are computed from the data (``V``, ``VI``, column means).
    """

    facts: Metric
    keywords: Keywords
    function: Any = None

    @property
    def core(self) -> str:
        """The name in the core's table."""
        return self.facts.core

    @property
    def power(self) -> float:
        """The exponent p of a Minkowski distance; 2 for other metrics."""
        return float(self.keywords.get("p", 2.0)) if self.function is None else 2.0

    @property
    def by_pairs(self) -> bool:
        """Whether ranks are only known by evaluating pairs of rows, not by sketches of the rows."""
        return _RANKED_BY_PAIRS[self.facts.core]

    @property
    def calls_python(self) -> bool:
        """Whether the metric is a Python function, which one thread at a time can call."""
        return self.function is not None and not is_low_level(self.function)

    def check_domain(self, X: Rows) -> None:
        """Raise ValueError, naming the first row, if the metric is not defined for these rows."""
        if self.facts.domain is not None:
            self.facts.domain(X)

    def prepare(self, X: Rows) -> Rows:
        """Return the rows that ``core`` ranks; X itself if the metric needs no transformation."""
        if self.facts.prepare is not None:
            return self.facts.prepare(widened(X), self.keywords)
        return X if self.function is None else widened(X)

    def likeness(self, prepared: Rows) -> Rows:
        """Return rows whose euclidean neighbors are good candidates."""
        return prepared if self.facts.likeness is None else self.facts.likeness(prepared, self.keywords)


def resolve_metric(
    metric: Any, metric_kwds: Any = None, n_features: int | None = None, sparse: bool = False
) -> FittedMetric:
    """Validate a metric and its keywords.

    Parameters
    ----------
    metric : str, callable or scipy.LowLevelCallable
        A name or alias of ``METRICS``, "precomputed", or a function of two rows.
    metric_kwds : mapping or None
        Keywords of the metric.
    n_features : int or None
        Number of columns of the rows; None if it is not known yet, shapes are then not checked.
    sparse : bool
        Whether the rows are sparse.

    Returns
    -------
    FittedMetric
        Without the keywords that depend on the data.

    Raises
    ------
    TypeError, ValueError
        If rows cannot be compared this way. The message names the argument.
    """
    if not isinstance(metric_kwds, Mapping | None):
        raise TypeError(f"metric_kwds must be a dict or None, got {metric_kwds!r}")
    given = dict(metric_kwds or {})
    if not all(isinstance(key, str) for key in given):
        raise TypeError(f"metric_kwds must have names as keys, got {list(given)}")
    if not isinstance(metric, str):
        return _resolve_function(metric, given, sparse)
    facts = _PRECOMPUTED if metric == PRECOMPUTED else METRICS[canonical_metric(metric)]
    keywords = _check_keywords(metric, facts, given, n_features)
    if sparse and not facts.sparse:
        raise ValueError(f"metric={metric!r} is not available for sparse rows")
    if facts.columns is not None and n_features is not None and n_features != facts.columns:
        raise ValueError(f"metric={metric!r} needs {facts.columns} columns, got X with {n_features}")
    if facts.core == "minkowski":
        facts = replace(facts, core=_NAMED_BY_POWER.get(keywords["p"], "minkowski"))
    return FittedMetric(facts, keywords)


def check_metric(metric: Any, metric_kwds: Any = None, n_features: int | None = None, sparse: bool = False) -> None:
    """Raise ValueError or TypeError, naming the argument, if ``resolve_metric`` does not accept the metric."""
    resolve_metric(metric, metric_kwds, n_features, sparse)


def _resolve_function(metric: Any, given: dict[str, Any], sparse: bool) -> FittedMetric:
    if is_low_level(metric):
        if given:
            raise ValueError(f"metric_kwds cannot be passed to a LowLevelCallable, got {sorted(given)}")
        cpu.ForeignPairs.check(metric)
    elif not callable(metric):
        raise InvalidParameterError(
            f"metric must be a name, a function of two rows or a scipy.LowLevelCallable, got {metric!r}"
        )
    if sparse:
        raise TypeError("metric must be a name for sparse rows: a function is called with dense rows")
    return FittedMetric(_FUNCTION, given, metric)


def _check_keywords(metric: str, facts: Metric, given: dict[str, Any], n_features: int | None) -> dict[str, Any]:
    """Return the keywords by SciPy's names, with the default of ``p``."""
    checked = {}
    for key, value in given.items():
        name = KEYWORD_ALIASES.get(key, key)
        if name not in facts.keywords:
            accepted = ", ".join(facts.keywords) or "no keywords"
            raise ValueError(f"metric_kwds has {key!r}, but metric={metric!r} takes {accepted}")
        if name in checked:
            raise ValueError(f"metric_kwds gives {name!r} twice, the second time as {key!r}")
        checked[name] = _KEYWORD_CHECKS[name](f"metric_kwds[{key!r}]", value, n_features)
    if "w" in facts.keywords and "w" not in checked:
        raise ValueError(f"metric={metric!r} needs metric_kwds['w']: a weight per column")
    return {"p": 2.0} | checked if "p" in facts.keywords else checked


def _check_power(name: str, value: Any, _: int | None) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not float(value) > 0.0:
        raise ValueError(f"{name} must be a number above 0 or infinity, got {value!r}")
    return float(value)


def _check_array(name: str, value: Any, n_features: int | None, ndim: int) -> NDArray[np.float64]:
    shape = None if n_features is None else (n_features,) * ndim
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
    variances = _check_array(name, value, n_features, 1)
    if not (variances > 0.0).all():
        raise ValueError(f"{name} must be above 0 in every column, got {variances.min()}")
    return variances


def _check_weights(name: str, value: Any, n_features: int | None) -> NDArray[np.float64]:
    weights = _check_array(name, value, n_features, 1)
    if not (weights >= 0.0).all():
        raise ValueError(f"{name} must not be negative, got {weights.min()}")
    return weights


def _check_precision(name: str, value: Any, n_features: int | None) -> NDArray[np.float64]:
    matrix = _check_array(name, value, n_features, 2)
    size = float(np.abs(matrix).max(initial=0.0))
    if matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T, rtol=1e-5, atol=1e-8 * size):
        raise ValueError(f"{name} must be symmetric")
    matrix = (matrix + matrix.T) / 2.0
    if matrix.size and np.linalg.eigvalsh(matrix)[0] < -1e-6 * size:
        raise ValueError(f"{name} must be positive semi-definite, otherwise a squared distance could be negative")
    return matrix


_KEYWORD_CHECKS: dict[str, Callable[[str, Any, int | None], Any]] = {
    "p": _check_power,
    "V": _check_variances,
    "w": _check_weights,
    "VI": _check_precision,
}


def fit_metric(metric: Any, metric_kwds: Any, X: Rows) -> FittedMetric:
    """Validate the metric for these rows and complete its keywords from them, as SciPy's ``pdist`` does."""
    resolved = resolve_metric(metric, metric_kwds, int(X.shape[1]), is_sparse(X))
    facts, keywords = resolved.facts, dict(resolved.keywords)
    if facts is _PRECOMPUTED:
        raise ValueError("metric='precomputed' has no rows to search: see vicinal.neighbors.table")
    if "V" in facts.keywords and "V" not in keywords:
        keywords["V"] = _column_variances(X)
    if "VI" in facts.keywords and "VI" not in keywords:
        rows = np.asarray(X, dtype=np.float64)
        keywords["VI"] = np.linalg.pinv(np.atleast_2d(np.cov(rows, rowvar=False)), hermitian=True)
    if facts.nan:
        present = ~np.isnan(X)
        total = np.where(present, X, 0.0).sum(axis=0, dtype=np.float64)
        keywords["mean"] = total / np.maximum(present.sum(axis=0), 1)
    return replace(resolved, keywords=keywords)


def _column_variances(X: Rows) -> NDArray[np.float64]:
    """Return the variances of the columns, with 1 for constant columns, which add nothing to any distance."""
    n = X.shape[0]
    if is_sparse(X):
        values = X.data.astype(np.float64)
        total, squares = (np.bincount(X.indices, weights=v, minlength=X.shape[1]) for v in (values, values**2))
        variance = (squares - total**2 / n) / max(n - 1, 1)
    else:
        variance = np.var(X, axis=0, dtype=np.float64, ddof=min(1, n - 1))
    return np.where(variance > 0.0, variance, 1.0)


def is_bounded(metric: Any) -> bool:
    """Tell whether a metric has a largest distance, at least for rows without negative numbers."""
    return unrelated_distance(metric, non_negative=True) is not None


def unrelated_distance(metric: Any, non_negative: bool) -> float | None:
    """Return the largest distance of a metric, that of rows with nothing in common; None if it has none.

    ``non_negative`` says that no row has a negative number, which makes the largest cosine distance 1.
    """
    if not isinstance(metric, str) or metric == PRECOMPUTED:
        return None
    facts = METRICS[canonical_metric(metric)]
    if non_negative and facts.unrelated_non_negative is not None:
        return facts.unrelated_non_negative
    return facts.unrelated


def is_non_negative(rows: Rows) -> bool:
    """Tell whether rows have no negative number and no NaN."""
    values = stored_values(rows)
    return bool(not values.size or values.min() >= 0.0)
