"""The rows of a file as a command uses them: read by its column options, prepared, and described for outputs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vicinal.cli.preprocessing import Preprocessing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vicinal.files.readers import DataTable
    from vicinal.files.readers.prepared_source import PreparedSource
    from vicinal.quality import Reliability
    from vicinal.viewer.columns import Columns

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
        from vicinal.files.readers.data_table import listed

        names = self.table.ignored
        return f", ignoring {len(names)} other column(s): {listed(names)}" if names else ""


def load_rows(
    path: Path, options: ColumnOptions, preprocessing: Preprocessing | None = None, metric: str | None = None
) -> LoadedRows:
    """Read a file and prepare its rows; missing values are accepted if they are filled in or the metric allows them."""
    from vicinal.files.readers import read_table
    from vicinal.files.readers.prepared_source import PreparedSource
    from vicinal.files.readers.source_columns import SourceColumns
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
