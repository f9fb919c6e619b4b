"""The rows of a file as a command uses them: read by its column options, prepared, and described for outputs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.files.preparation import Rows, Steps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vicinal.files.preparation import PreparedSource
    from vicinal.files.readers import DataTable
    from vicinal.quality import Reliability
    from vicinal.viewer.columns import Columns


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


# The column of cell names, which an .h5ad file has without asking.
CELLS = "cell"
# Features travel with a page if there are at most this many.
MOST_FEATURES = 24


@dataclass(frozen=True)
class ColumnOptions:
    """The options that name columns; lists are comma-separated."""

    columns: str | None = None
    label: str | None = None
    ids: str | None = None
    hover: str | None = None
    array: str | None = None
    value: str | None = None
    vectors: str | None = None

    @property
    def values(self) -> list[str]:
        return names_of(self.value)

    def reading(self, *, missing: bool = False) -> dict[str, Any]:
        """Return the arguments of ``read_table``."""
        return {
            "columns": None if self.columns is None else names_of(self.columns),
            "label": self.label,
            "extra": [*([] if self.ids is None else [self.ids]), *self.values, *names_of(self.hover)],
            "array": self.array,
            "vectors": self.vectors,
            "missing": missing,
        }


def names_of(text: str | None) -> list[str]:
    """Return the names in a comma-separated list."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


@dataclass(frozen=True)
class RowMetadata:
    """Labels and further columns of the rows, and the names of those with a meaning.

    ``features`` are columns that were embedded; they travel with a page but are not written beside the map.
    """

    labels: NDArray[Any] | None = None
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)
    label_name: str | None = None
    id_name: str | None = None
    value_names: tuple[str, ...] = ()
    features: dict[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def ids(self) -> list[Any] | None:
        return None if self.id_name is None else list(self.columns[self.id_name].tolist())

    @property
    def values(self) -> dict[str, NDArray[Any]]:
        return {name: self.columns[name] for name in self.value_names}

    def with_reliability(self, found: Reliability | None) -> RowMetadata:
        """Add the reliability and the label of every row, unless columns of these names exist."""
        if found is None:
            return self
        added = {"reliability": found.reliability, "trust": found.label}
        added = {name: column for name, column in added.items() if name not in {**self.columns, **self.features}}
        numbers = tuple(name for name in added if name == "reliability")
        return replace(self, columns={**self.columns, **added}, value_names=(*self.value_names, *numbers))

    def page_columns(self) -> Columns:
        """Return the columns of a page."""
        from vicinal.viewer.columns import Columns

        labels = None if self.labels is None else {self.label_name or "class": self.labels}
        special = {self.id_name, *self.value_names}
        hover = {name: column for name, column in self.columns.items() if name not in special}
        return Columns(labels, self.values or None, {**hover, **self.features} or None, None, self.ids)


@dataclass(frozen=True)
class LoadedRows:
    """A table, its prepared rows, and how to prepare others."""

    table: DataTable
    X: NDArray[np.float32]
    source: PreparedSource
    metadata: RowMetadata

    def ignored(self) -> str:
        """Return the end of a message that names the columns that were not used."""
        from vicinal.files.data_table import listed

        names = self.table.ignored
        return f", ignoring {len(names)} other column(s): {listed(names)}" if names else ""


def load_rows(
    path: Path, options: ColumnOptions, preprocessing: Preprocessing | None = None, metric: str | None = None
) -> LoadedRows:
    """Read a file and prepare its rows; missing values are accepted if they are filled in or the metric allows them."""
    from vicinal.files.preparation import PreparedSource, SourceColumns
    from vicinal.files.readers import read_table
    from vicinal.neighbors.metrics import allows_nan

    preprocessing = preprocessing or Preprocessing()
    missing = preprocessing.impute is not None or (metric is not None and allows_nan(metric))
    if preprocessing.counts and options.array is None and path.suffix.lower() == ".h5ad":
        # principal components in the file were made from other counts
        options = ColumnOptions(**{**vars(options), "array": "X"})
    reading = options.reading(missing=missing)
    table = read_table(path, **reading)
    X, steps = preprocessing.fit(table.X, table.feature_names)
    metadata = metadata_of(table, options)
    vectors = table.feature_names[0].rpartition("[")[0] if table.feature_names[0].endswith("[0]") else None
    extra = tuple(name for name in reading["extra"] if name != options.ids)
    columns = SourceColumns(
        table.feature_names, options.label, options.ids, extra, vectors, options.array, missing or preprocessing.any
    )
    return LoadedRows(table, X, PreparedSource(columns, steps), metadata)


def metadata_of(table: DataTable, options: ColumnOptions) -> RowMetadata:
    """Return the columns of a table that outputs contain; cell names are ids unless others are asked for."""
    columns, ids = dict(table.extra), options.ids
    if ids is None and table.row_names is not None:
        columns, ids = {CELLS: table.row_names, **columns}, CELLS
    # numbers of a matrix or of vectors have no names that mean anything
    named = not re.fullmatch(r"\d+|.*\[0\]", table.feature_names[0])
    few = named and table.X.shape[1] <= MOST_FEATURES
    features = {name: table.X[:, a] for a, name in enumerate(table.feature_names)} if few else {}
    features = {name: column for name, column in features.items() if name not in columns}
    return RowMetadata(table.labels, columns, options.label, ids, tuple(options.values), features)
