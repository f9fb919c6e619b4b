"""How rows are read and prepared before a fit; a model stores it, so that other rows are prepared in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.files.data_table import ColumnChoice, DataTable, ReadError, as_rows_of_table, listed
from vicinal.files.number_texts import FileFormat
from vicinal.files.readers import DEFAULT_CHOICE, local_file, read_chosen, read_table

Rows = NDArray[np.float32]

# Attributes of a model: the names of the columns that it was fitted to, and what the steps of preparation learned.
COLUMNS_ATTRIBUTE, STEPS_ATTRIBUTE = "source_columns_", "preprocessing_"
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

    def fit(
        self, X: Rows, names: tuple[str, ...] = (), indicators: NDArray[np.bool_] | None = None
    ) -> tuple[Rows, dict[str, NDArray[Any]]]:
        """Return the prepared rows and what each step learned, which :class:`Preparation` applies to further rows.

        Columns that are ``indicators``, of classes or of times of the year, are not scaled.
        """
        steps: dict[str, NDArray[Any]] = {}

        def add(learned: Mapping[str, NDArray[Any]]) -> None:
            nonlocal X
            for name, one in learned.items():
                steps[name] = one
                X = _STEPS[name](X.astype(np.float32, copy=False), one)

        if self.impute is not None:
            add({"fill": _fill_values(X, self.impute, names)})
        if self.counts:
            add({"total": np.array([COUNTS_TOTAL])})
        if self.log1p or self.counts:
            add({"log1p": np.array([1.0])})
        if self.counts:
            add({"columns": _variable_genes(X)})
            indicators = None if indicators is None else indicators[steps["columns"]]
        if self.scale is not None or self.counts:
            add(_scale_values(X, self.scale or Scale.STANDARD, indicators))
        if self.counts:
            add({"clip": np.array([COUNTS_CLIP])})
        components = self.pca or (COUNTS_COMPONENTS if self.counts else None)
        if components is not None:
            add(_principal_components(X, components, asked=self.pca is not None))
        return as_rows_of_table(X), steps


def _fill_values(X: Rows, how: Impute, names: tuple[str, ...]) -> NDArray[np.float64]:
    if how is Impute.ZERO:
        return np.zeros(X.shape[1])
    empty = np.flatnonzero(np.isnan(X).all(axis=0))
    if len(empty):
        name = repr(names[empty[0]]) if names else str(empty[0])
        raise ValueError(f"--impute {how} needs at least one value per column, but column {name} has none")
    return np.asarray((np.nanmean if how is Impute.MEAN else np.nanmedian)(X.astype(np.float64), axis=0))


def _scale_values(X: Rows, how: Scale, indicators: NDArray[np.bool_] | None) -> dict[str, NDArray[np.float64]]:
    """Return center and factor; a constant column has the factor 1.

    Two rows differ in an indicator by 0 or 1, which is comparable to a column with standard deviation 1.
    """
    wide = X.astype(np.float64)
    if how is Scale.STANDARD:
        center, spread = wide.mean(axis=0), wide.std(axis=0)
    elif how is Scale.ROBUST:
        low, center, high = np.quantile(wide, [0.25, 0.5, 0.75], axis=0)
        spread = high - low
    else:
        center, spread = wide.min(axis=0), np.ptp(wide, axis=0)
    if indicators is not None:
        center, spread = np.where(indicators, 0.0, center), np.where(indicators, 1.0, spread)
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


def _take_log(X: Rows, _: NDArray[Any]) -> Rows:
    bad = np.flatnonzero((X <= -1).any(axis=1))
    if len(bad):
        raise ValueError(f"--log1p needs values above -1; row {bad[0]} has {X[bad[0]].min():g}")
    return np.log1p(X)


def _normalize(X: Rows, total: NDArray[Any]) -> Rows:
    bad = np.flatnonzero((X < 0).any(axis=1))
    if len(bad):
        raise ValueError(f"--counts needs counts, which are not negative; row {bad[0]} has {X[bad[0]].min():g}")
    sums = X.sum(axis=1, keepdims=True, dtype=np.float64)
    # a row without any count stays as it is
    return np.asarray(X * (total[0] / np.where(sums > 0, sums, total[0])), dtype=np.float32)


# In the order in which they are applied.
_STEPS: dict[str, Any] = {
    "fill": lambda X, learned: np.asarray(np.where(np.isnan(X), learned, X), dtype=np.float32),
    "total": _normalize,
    "log1p": _take_log,
    "columns": lambda X, learned: X[:, learned],
    "center": lambda X, learned: X - learned,
    "factor": lambda X, learned: X * learned,
    "clip": lambda X, learned: np.minimum(X, learned[0]),
    "mean": lambda X, learned: X - learned,
    "components": lambda X, learned: X @ learned.T,
}


@dataclass(frozen=True)
class Preparation:
    """How the rows of a fit were read and prepared, to read and prepare others in the same way.

    ``choice`` has all features by name; it is None if the rows are not from a file. ``steps`` has what each learned.
    """

    choice: ColumnChoice | None = None
    steps: dict[str, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def of_model(cls, model: Any) -> Preparation:
        """Return what :meth:`keep_in` stored in a model; nothing if it was not fitted to a file."""
        steps, kept = getattr(model, STEPS_ATTRIBUTE, {}), getattr(model, COLUMNS_ATTRIBUTE, None)
        unknown = set(steps) - set(_STEPS)
        if unknown:
            raise ValueError(f"the model was prepared by unknown steps: {', '.join(sorted(unknown))}")
        if not isinstance(kept, dict) or not kept.get("features"):
            return cls(None, dict(steps))
        known = {one.name: kept[one.name] for one in fields(ColumnChoice) if one.name in kept}
        form, parts = known.get("form") or {}, [one.name for one in fields(FileFormat)]
        known["form"] = FileFormat(**{name: _plain(form[name]) for name in parts if name in form})
        return cls(ColumnChoice(**known), steps)

    def keep_in(self, model: Any) -> None:
        """Store the columns and the steps in a fitted model."""
        if self.steps:
            setattr(model, STEPS_ATTRIBUTE, dict(self.steps))
        if self.choice is not None:
            setattr(model, COLUMNS_ATTRIBUTE, {name: _listed(value) for name, value in vars(self.choice).items()})

    def apply(self, X: Rows) -> Rows:
        """Prepare rows."""
        for name, step in _STEPS.items():
            if name in self.steps:
                X = step(X.astype(np.float32, copy=False), self.steps[name])
        return as_rows_of_table(X)

    def read_rows(self, path: Path) -> Rows:
        """Read rows to place and prepare them."""
        return self.apply(self.read(path).X)

    def matching(self, path: Path, asked: ColumnChoice) -> ColumnChoice:
        """Return the columns of a file that is read in batches: those of the fit, but what ``asked`` names."""
        if self.choice is None or path.suffix.lower() == ".npy":
            return asked
        return replace(self.choice, **_changes(asked))

    def read(self, path: Path, asked: ColumnChoice = DEFAULT_CHOICE) -> DataTable:
        """Read a file of the same layout: the same features by name, and the other columns that it has.

        What ``asked`` names replaces the columns of the fit and must exist.
        """
        if self.choice is None:
            return read_table(path, asked)
        changes = _changes(asked)
        wanted = replace(self.choice, **changes)
        with local_file(path) as local:
            if local.suffix.lower() not in (".npz", ".h5ad"):
                wanted = replace(wanted, array=None)
            if "form" not in changes:
                # titles and totals are those of one file
                wanted = replace(wanted, form=replace(wanted.form, skip=()))
            if local.suffix.lower() not in (".xlsx", ".ods"):
                wanted = replace(wanted, form=replace(wanted.form, sheet=None))
            return read_chosen(local, wanted, lambda names, beside: _matching(local, wanted, changes, names, beside))


def _changes(asked: ColumnChoice) -> dict[str, Any]:
    """Return what a choice names."""
    defaults = vars(DEFAULT_CHOICE)
    return {name: value for name, value in vars(asked).items() if value and value != defaults[name]}


def _listed(value: Any) -> Any:
    """Return a part of a choice as a model file holds it: text, number, list or dictionary."""
    if isinstance(value, FileFormat):
        return {name: _listed(one) for name, one in vars(value).items()}
    if isinstance(value, Mapping):
        return {name: _listed(one) for name, one in value.items()}
    if isinstance(value, tuple | list):
        return [_listed(one) for one in value]
    return str(value) if isinstance(value, StrEnum) else value


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _matching(
    path: Path, wanted: ColumnChoice, changes: Mapping[str, Any], names: list[str], beside: list[str]
) -> ColumnChoice:
    """Return the columns of a file that match those of a fit; ``changes`` has those that must exist."""
    known = {*names, *beside}

    def there(given: str) -> list[str]:
        value = getattr(wanted, given) or ()
        return [one for one in ([value] if isinstance(value, str) else value) if one in known or given in changes]

    found = replace(
        wanted,
        features=None,
        vectors=None,
        exclude=(),
        whole=True,
        fitted=True,
        label=next(iter(there("label")), None),
        ids=next(iter(there("ids")), None),
        values=there("values"),
        display=there("display"),
    )
    if wanted.vectors is not None and wanted.vectors in names:
        return replace(found, vectors=wanted.vectors)
    return replace(found, features=_features(path, wanted, names, found.not_features))


def _features(path: Path, wanted: ColumnChoice, names: list[str], others: set[str]) -> list[str]:
    """Return the columns of the features: by name, or by position if the model or the file has no names."""
    features = list(wanted.features or ())
    if set(features) <= set(names):
        return features
    free = [name for name in names if name not in others]
    named = not any(some == [str(a) for a in range(len(some))] for some in (features, names))
    if (not named or wanted.vectors is not None) and len(free) == len(features):
        return free
    if named:
        absent = [name for name in features if name not in names]
        what = f"no column {absent[0]!r}" if len(absent) == 1 else f"no columns {listed(absent)}"
        raise ReadError(f"{path} has {what}; the model was fitted to {listed(features)}")
    raise ReadError(f"{path} has {len(free)} features, but the model was fitted to {len(features)}")
