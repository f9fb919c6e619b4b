"""Prepare the rows of a file before a fit, and prepare new rows in the same way.

The steps are applied in a fixed order: fill in missing values, normalize counts, log(1 + x), select genes, scale, PCA.
What a step learned from the rows of the fit is kept with the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from vicinal.files.preparation import Rows, Steps

# scanpy's tutorial for counts: library size, number of highly variable genes, clipping of scaled values, components.
COUNTS_TOTAL, COUNTS_GENES, COUNTS_CLIP, COUNTS_COMPONENTS = 1e4, 2000, 10.0, 50
DISPERSION_BINS = 20
SEED = 0


class Impute(StrEnum):
    """Values of `--impute`."""

    MEAN = "mean"
    MEDIAN = "median"
    ZERO = "zero"


class Scale(StrEnum):
    """Values of `--scale`."""

    STANDARD = "standard"
    ROBUST = "robust"
    MINMAX = "minmax"


@dataclass(frozen=True)
class Preprocessing:
    """The steps that options ask for."""

    scale: Scale | None = None
    log1p: bool = False
    pca: int | None = None
    impute: Impute | None = None
    counts: bool = False

    def __post_init__(self) -> None:
        if self.counts and (self.log1p or self.scale is not None):
            raise ValueError("--counts includes the logarithm and the scale: use it without --log1p and --scale")

    @property
    def any(self) -> bool:
        return any(vars(self).values())

    def fit(self, X: Rows, names: tuple[str, ...] = ()) -> tuple[Rows, Steps]:
        """Return the prepared rows and the steps that prepare further rows in the same way."""
        steps = Steps({})
        if self.impute is not None:
            X = steps.add(X, "fill", _fill_values(X, self.impute, names))
        if self.counts:
            X = steps.add(X, "total", np.array([COUNTS_TOTAL]))
        if self.log1p or self.counts:
            X = steps.add(X, "log1p", np.array([1.0]))
        if self.counts:
            X = steps.add(X, "columns", _variable_genes(X))
        if self.scale is not None or self.counts:
            for name, learned in _scale_values(X, self.scale or Scale.STANDARD).items():
                X = steps.add(X, name, learned)
        if self.counts:
            X = steps.add(X, "clip", np.array([COUNTS_CLIP]))
        components = self.pca or (COUNTS_COMPONENTS if self.counts else None)
        if components is not None:
            for name, learned in _principal_components(X, components, asked=self.pca is not None).items():
                X = steps.add(X, name, learned)
        return np.ascontiguousarray(X, dtype=np.float32), steps


def _fill_values(X: Rows, how: Impute, names: tuple[str, ...]) -> NDArray[np.float64]:
    if how is Impute.ZERO:
        return np.zeros(X.shape[1])
    empty = np.flatnonzero(np.isnan(X).all(axis=0))
    if len(empty):
        name = repr(names[empty[0]]) if names else str(empty[0])
        raise ValueError(f"--impute {how} needs at least one value per column, but column {name} has none")
    return np.asarray((np.nanmean if how is Impute.MEAN else np.nanmedian)(X.astype(np.float64), axis=0))


def _scale_values(X: Rows, how: Scale) -> dict[str, NDArray[np.float64]]:
    """Return center and factor; a constant column has the factor 1."""
    wide = X.astype(np.float64)
    if how is Scale.STANDARD:
        center, spread = wide.mean(axis=0), wide.std(axis=0)
    elif how is Scale.ROBUST:
        low, center, high = np.quantile(wide, [0.25, 0.5, 0.75], axis=0)
        spread = high - low
    else:
        center, spread = wide.min(axis=0), np.ptp(wide, axis=0)
    return {"center": center, "factor": 1 / np.where(spread > 0, spread, 1.0)}


def _principal_components(X: Rows, n: int, *, asked: bool) -> dict[str, NDArray[np.float64]]:
    from sklearn.decomposition import PCA

    most = min(X.shape) if len(X) > X.shape[1] else len(X) - 1
    if n > most and asked:
        raise ValueError(f"--pca {n} needs at least {n} columns and more than {n} rows, got {X.shape[1]} and {len(X)}")
    fitted = PCA(min(n, most), svd_solver="auto", random_state=SEED).fit(X.astype(np.float64))
    return {"mean": fitted.mean_, "components": fitted.components_}


def _variable_genes(X: Rows) -> NDArray[np.int64]:
    """Return the most variable columns by dispersion, normalized among columns of similar mean (Seurat's method)."""
    if X.shape[1] <= COUNTS_GENES:
        return np.arange(X.shape[1])
    counts = np.expm1(X.astype(np.float64))
    mean, variance = counts.mean(axis=0), counts.var(axis=0, ddof=1)
    dispersion = np.log(np.where(mean > 0, variance / np.where(mean > 0, mean, 1.0), 1.0).clip(1e-12))
    level = np.log1p(mean)
    edges = np.linspace(level.min(), level.max(), DISPERSION_BINS + 1)[1:-1]
    bins = np.digitize(level, edges)
    normalized = np.zeros(len(dispersion))
    for one in np.unique(bins):
        inside = bins == one
        spread = dispersion[inside].std(ddof=1) if inside.sum() > 1 else 0.0
        # a bin with a single gene has no spread: its gene counts as one deviation above
        normalized[inside] = (dispersion[inside] - dispersion[inside].mean()) / spread if spread > 0 else 1.0
    chosen = np.argsort(-normalized, kind="stable")[:COUNTS_GENES]
    return np.asarray(np.sort(chosen), dtype=np.int64)
