"""The commands `vicinal transform` and `vicinal update`: new rows on the map of a saved model."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli import fitting, options
from vicinal.cli.describing import announce_columns, columns_line
from vicinal.cli.fitting import FitResult, load_model
from vicinal.cli.writing import STDOUT, OutputFiles, check_outputs
from vicinal.files.data_table import Column, ColumnChoice, DataTable, Role
from vicinal.files.preparation import Preparation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A model knows how its features are made.
NOT_PLACED = ("features", "exclude", "vectors", "categories", "dates")
NewColumns = Annotated[ColumnChoice, options.Group(options.choose_columns, *NOT_PLACED)]
# The column that marks new rows. Those of the map have no class there: they are gray, behind the others, and give no
# area its name.
WHICH, NEW = "rows", "new"
UpdatedModel = Annotated[
    Path | None, typer.Option("--model", help="Save the updated model (.vicinal); with --force also as MODEL itself.")
]


def transform(
    model: options.SavedModelFile,
    file: options.Source,
    output: Annotated[Path, options.Output],
    columns: NewColumns,
    png: options.Png = None,
    html: options.Html = None,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:
    """Place new rows on the map of a saved model; the model does not change.

    Columns are found by the names that the model was fitted to, in any order. A page or picture shows the rows of the
    map in gray and the new ones in color.
    """
    outputs = OutputFiles(output, png=png, html=html)
    check_outputs(outputs.paths, [model, file], force)
    fitted = load_model(model)
    if not hasattr(fitted, "transform"):
        raise ValueError(f"{model}: a {type(fitted).__name__} cannot place new rows")
    old = _places_of(fitted, outputs, model)
    preparation = Preparation.of_model(fitted)
    table = preparation.read(file, columns)
    places = fitted.transform(preparation.apply(table.X))
    announce_columns(table, output, all_columns=False, quiet=quiet)
    _write(outputs, FitResult(places, {}, None, model=fitted), old, table, file)
    if not quiet and output != STDOUT:
        print(f"wrote {_listed(outputs)}: placed {len(places):,} rows on a map of {len(fitted.embedding_):,}")


def update(
    model: options.SavedModelFile,
    file: options.Source,
    output: Annotated[Path | None, options.Output] = None,
    *,
    columns: NewColumns,
    saved: UpdatedModel = None,
    png: options.Png = None,
    html: options.Html = None,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:
    """Add new rows to a saved model, whose map moves a little to make room.

    Columns are found by the names that the model was fitted to, in any order. The output has the new rows; `transform`
    with the updated model finds the places of all others.
    """
    outputs = OutputFiles(output, png=png, html=html, model=saved)
    if not outputs.any:
        raise ValueError("nothing would be written: add --model updated.vicinal, --output, --html or --png")
    replaces = saved is not None and force and saved.resolve() == model.resolve()
    check_outputs(outputs.paths | ({"model": None} if replaces else {}), [model, file], force)
    fitted = load_model(model)
    if not hasattr(fitted, "update") and not hasattr(fitted, "to_umap"):
        raise ValueError(f"{model}: a {type(fitted).__name__} cannot take more rows; UMAP, DensMAP and progressive can")
    _places_of(fitted, outputs, model)
    n, preparation = len(fitted.embedding_), Preparation.of_model(fitted)
    table = preparation.read(file, columns)
    X = preparation.apply(table.X)
    announce_columns(table, output, all_columns=False, quiet=quiet)
    if not quiet:
        _warn_of_known(fitted, X)
    with fitting.stage_bars(quiet) as bars, fitting.one_line_warnings(quiet):
        fitted.set_params(callback=bars)
        if hasattr(fitted, "update"):
            fitted.update(X)
        else:
            fitted.partial_fit(X).run()
    places = fitted.embedding_
    old = places[: len(places) - len(X)]
    _write(outputs, FitResult(places[len(old) :], {}, None, model=fitted), old, table, file)
    if not quiet and output != STDOUT:
        print(f"wrote {_listed(outputs)}: added {len(X):,} rows to a map of {n:,}")


def _listed(outputs: OutputFiles) -> str:
    return ", ".join(str(path) for path in outputs.paths.values() if path is not None)


def _places_of(model: Any, outputs: OutputFiles, path: Path) -> NDArray[np.float32]:
    """Return the map of a model, or raise if there is none or it cannot be drawn."""
    try:
        places: NDArray[np.float32] = model.embedding_
    except AttributeError as error:
        raise ValueError(f"{path} has no map: {error}") from error
    for option, asked, able in (("--png", outputs.png, (2,)), ("--html", outputs.html, (2, 3))):
        if asked is not None and places.shape[1] not in able:
            widths = " or ".join(map(str, able))
            raise ValueError(f"{option} requires a map of {widths} dimensions, but {path} has {places.shape[1]}")
    return places


def _warn_of_known(model: Any, X: Any) -> None:
    """Say how many rows the map has already: they are added once more."""
    from vicinal.neighbors.training_data import TrainingRows, recognize

    data = model.local_map.data if hasattr(model, "local_map") else None
    if not isinstance(data, TrainingRows) or X.shape[1] != data.shape[1]:
        return
    known = int((recognize(data, X)[0] >= 0).sum())
    if known:
        print(f"warning: {known:,} of {len(X):,} rows are in the map already, and are added again", file=sys.stderr)


def _write(outputs: OutputFiles, result: FitResult, old: NDArray[np.float32], table: DataTable, file: Path) -> None:
    """Write the new rows to the table, and all rows to picture and page."""
    import numpy as np

    names = {column.name for column in table.columns}
    which = next(name for name in (WHICH, f"{WHICH} (map)", f"{WHICH} of the map") if name not in names)
    labels = np.array([None] * len(old) + [NEW] * len(result.embedding), dtype=object)
    # The first labels color the points; those of the file can be chosen on the page.
    columns = [Column(which, Role.LABEL, labels)]
    columns += [_after_old_rows(column, len(old)) for column in table.read_columns]
    drawn = np.concatenate([old, result.embedding]), columns
    about = columns_line(table.columns, table.matrix)
    replace(outputs, drawn=drawn).write(result, table.columns, file, {}, about)


def _after_old_rows(column: Column, n: int) -> Column:
    """Return a column of new rows, preceded by ``n`` entries for the rows of the model."""
    import numpy as np

    values = np.asarray(column.values)
    if column.role is Role.ID:
        before: NDArray[Any] = np.array([f"map row {row}" for row in range(n)], dtype=object)
    elif values.dtype.kind in "iufb":
        values, before = values.astype(np.float64), np.full(n, np.nan)
    else:
        before = np.full(n, None, dtype=object)
    role = Role.DISPLAY if column.role is Role.LABEL else column.role
    return replace(column, role=role, values=np.concatenate([before, values.astype(before.dtype)]))
