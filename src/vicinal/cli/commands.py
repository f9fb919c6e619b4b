"""The commands and their options. typer evaluates the annotations with the names of this module."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli.fitting import INTERRUPTED, categories, check_large, fit_large, fit_rows, load_rows, one_line_warnings
from vicinal.cli.methods import ESTIMATORS, RESERVED, Method, estimator, explanations, make_spec, signature, value_of
from vicinal.cli.options import (
    SEED,
    Chosen,
    Cluster,
    Force,
    Group,
    How,
    MemoryLimit,
    Metric,
    MoreOutputs,
    NEpochs,
    Output,
    Png,
    Prepared,
    Quiet,
    Run,
    SavedModel,
    SavedModelFile,
    Shape,
    Source,
    checked_spec,
    choose_columns,
    choose_steps,
    with_groups,
)
from vicinal.cli.page_commands import compare, page, serve
from vicinal.cli.stream_command import stream
from vicinal.cli.writing import (
    MAP_SUFFIXES,
    MODEL_SUFFIX,
    OutputFiles,
    check_outputs,
    is_stdout,
    print_quality,
    print_result,
    save_model,
    write_json,
    write_map,
    write_picture,
    write_report,
)
from vicinal.files.atomic import StagedFiles
from vicinal.files.data_table import Column, ColumnChoice, Role, listed
from vicinal.files.preparation import Preparation, Preprocessing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Grid = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=A,B,C",
        help="Values of a parameter to compare; may be repeated. Default: n_neighbors=5,15,50 and min_dist=0,0.1,0.5.",
    ),
]
Scores = Annotated[Path | None, typer.Option(help="Also write the table of scores (.json).")]
BestMap = Annotated[
    Path | None, typer.Option("--output", "-o", help="Also write the best map: .npy, .csv or .parquet.")
]


def choose(
    *,
    file: Source,
    grid: Grid = None,
    output: BestMap = None,
    method: How = Method.UMAP,
    columns: Annotated[ColumnChoice, Group(choose_columns, "value", "ids", "hover")],
    steps: Annotated[Preprocessing, Group(choose_steps, "counts")],
    png: Png = None,
    report: Scores = None,
    model: SavedModel = None,
    metric: Metric = None,
    run: Run,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Fit a map for each combination of parameters and list how much of the data each one keeps, the best first."""
    import vicinal

    values = None if grid is None else dict(map(_values, grid))
    spec = checked_spec(method, {"metric": metric}, **run)
    outputs: dict[str, tuple[Path | None, tuple[str, ...]]] = {
        "--output": (output, MAP_SUFFIXES),
        "--png": (png, (".png",)),
        "--report": (report, (".json",)),
        "--model": (model, (MODEL_SUFFIX,)),
    }
    check_outputs(outputs, [file], force)
    table, X, preparation = load_rows(file, columns, steps, metric)
    with one_line_warnings(quiet):
        choice = vicinal.choose(X, spec.build(), values, random_state=run["seed"], n_jobs=run["jobs"])
    preparation.keep_in(choice.best)
    with StagedFiles() as staged:
        if output is not None:
            path = output if is_stdout(output) else staged.path_for(output)
            write_map(path, choice.best.embedding_, table.columns)
        if png is not None:
            write_picture(staged.path_for(png), choice.best.embedding_, table.columns, None)
        if model is not None:
            save_model(choice.best, staged.path_for(model))
        if report is not None:
            write_json(staged.path_for(report), {"source": str(file), "method": str(method), "table": choice.table})
    if not quiet and not is_stdout(output):
        print(choice)


def _values(assignment: str) -> tuple[str, list[Any]]:
    """Read NAME=A,B,C."""
    name, separator, text = assignment.partition("=")
    values = [value_of(one.strip()) for one in text.split(",") if one.strip()]
    if not separator or not values:
        raise ValueError(f"--grid {assignment} must have the form NAME=A,B,C")
    return name.strip().replace("-", "_"), values


class Dataset(StrEnum):
    """Data sets of `demo`; none needs a download."""

    DIGITS = "digits"
    IRIS = "iris"
    WINE = "wine"


TITLES = {Dataset.DIGITS: "Handwritten digits", Dataset.IRIS: "Iris flowers", Dataset.WINE: "Wines"}


def build() -> Any:
    """Build the command with all its subcommands."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(_root)
    for command in (embed, transform, page, compare, serve, stream, choose, quality, info, methods, demo):
        app.command()(with_groups(command))
    return typer.main.get_command(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        import vicinal

        print(f"vicinal {vicinal.__version__}")
        raise typer.Exit


def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Embed high-dimensional data in maps: UMAP, t-SNE and related methods, fast and reproducible."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def embed(
    *,
    file: Source,
    output: Annotated[Path, Output],
    method: How = Method.UMAP,
    columns: Chosen,
    steps: Prepared,
    more: MoreOutputs,
    shape: Shape,
    n_epochs: NEpochs = None,
    run: Run,
    cluster: Cluster = None,
    memory_limit: MemoryLimit = None,
    quiet: Quiet = False,
    force: Force = False,
) -> int:
    """Embed the rows of a file and write the map.

    Ctrl-C during the layout stops it and writes the map as it is.
    """
    spec = checked_spec(method, shape | {"n_epochs": n_epochs}, **run)
    outputs = OutputFiles(output, **more)
    outputs.check(file, shape["n_components"], force)
    if cluster is not None or memory_limit is not None:
        named = {"--label": columns.label, "--id": columns.ids, "--hover": columns.display, "--value": columns.values}
        written = {"--html": outputs.html, "--report": outputs.report, "--model": outputs.model}
        read = {"--array": columns.array, "--vectors": columns.vectors}
        check_large(spec, named | read | written | {"preprocessing": steps.any})
        fitted, size = fit_large(file, columns.features, spec, cluster, memory_limit, quiet)
        outputs.write(fitted, [], file, size, spec)
        if not quiet and not is_stdout(output):
            print_result(fitted)
            print(f"wrote {output} from {size[0]:,} rows of {size[1]} columns")
        return INTERRUPTED if fitted.interrupted else 0
    table, X, preparation = load_rows(file, columns, steps, shape["metric"])
    result = fit_rows(X, table.labels, spec, with_quality=outputs.report is not None, quiet=quiet)
    preparation.keep_in(result.model)
    outputs.write(result, table.shown_columns(), file, table.X.shape, spec)
    if not quiet and not is_stdout(output):
        print_result(result)
        n, width = table.X.shape
        ignored = table.ignored
        skipped = f", ignoring {len(ignored)} other column(s): {listed(ignored)}" if ignored else ""
        print(f"wrote {output} from {n:,} rows of {width} columns{skipped}")
    return INTERRUPTED if result.interrupted else 0


def transform(
    model: SavedModelFile,
    file: Source,
    output: Annotated[Path, Output],
    columns: Annotated[ColumnChoice, Group(choose_columns, "value", "hover", "vectors")],
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Place new rows on the map of a saved model; the model does not change.

    Columns are found by the names that the model was fitted to, in any order.
    """
    check_outputs({"--output": (output, MAP_SUFFIXES)}, [model, file], force)
    fitted = _load(model)
    if not hasattr(fitted, "transform"):
        raise ValueError(f"{model}: a {type(fitted).__name__} cannot place new rows")
    preparation = Preparation.of_model(fitted)
    table = preparation.read(file, columns)
    places = fitted.transform(preparation.apply(table.X))
    with StagedFiles() as staged:
        path = output if is_stdout(output) else staged.path_for(output)
        write_map(path, places, table.columns)
    if not quiet and not is_stdout(output):
        skipped = f", ignoring {listed(table.ignored)}" if table.ignored else ""
        print(f"wrote {output}: placed {len(places):,} rows on a map of {len(fitted.embedding_):,}{skipped}")


def info(model: SavedModelFile) -> None:
    """Show the content of a model file: method, sizes, times and parameters."""
    import inspect

    from rich.console import Console
    from rich.table import Table

    fitted = _load(model)
    listing = Table("property", "value")
    listing.add_row("method", type(fitted).__name__)
    if hasattr(fitted, "embedding_"):
        listing.add_row("map", " x ".join(map(str, fitted.embedding_.shape)))
    listing.add_row("data", f"{getattr(fitted, 'n_features_in_', '?')} columns")
    for stage, spent in getattr(fitted, "stage_times_", {}).items():
        listing.add_row(f"{stage}, seconds", f"{spent:.2f}")
    for name, parameter in inspect.signature(type(fitted)).parameters.items():
        value = getattr(fitted, name, parameter.default)
        if repr(value) != repr(parameter.default):
            listing.add_row(name, repr(value)[:60])
    Console().print(listing)


def quality(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The data file that was embedded.")],
    embedding: Annotated[Path, typer.Argument(metavar="EMBEDDING", help="The map file, rows in the same order.")],
    columns: Annotated[ColumnChoice, Group(choose_columns, "value", "ids", "hover", "vectors")],
    n_neighbors: Annotated[int, typer.Option(metavar="N", min=1, help="Neighbors per row to compare.")] = 15,
    metric: Annotated[str, typer.Option(help="Distance metric of the data.")] = "euclidean",
    report: Annotated[Path | None, typer.Option(help="Also write the measures (.json).")] = None,
    force: Force = False,
) -> None:
    """Measure how well a map preserves its data."""
    from vicinal import quality as measures
    from vicinal.files.readers import read_table
    from vicinal.neighbors.metrics import allows_nan

    check_outputs({"--report": (report, (".json",))}, [data, embedding], force)
    table = read_table(data, replace(columns, missing=allows_nan(metric)))
    places = read_table(embedding, ColumnChoice(_coordinate_columns(embedding)))
    found = measures.report(table.X, places.X, categories(table.labels), n_neighbors=n_neighbors, metric=metric)
    if report is not None:
        with StagedFiles() as staged:
            write_json(staged.path_for(report), found.as_dict())
    print_quality(found)


def methods(
    method: Annotated[Method | None, typer.Argument(help="Method whose parameters to explain.")] = None,
) -> None:
    """List the methods, or explain the parameters of one method."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if method is None:
        listing = Table("method", "description")
        for one in ESTIMATORS:
            try:
                listing.add_row(str(one), (estimator(one).__doc__ or "").strip().splitlines()[0])
            except ValueError:
                listing.add_row(str(one), "not available in this version")
    else:
        listing = Table("--param and default", "meaning", show_lines=True)
        explained = explanations(method)
        for name, parameter in signature(method).items():
            if name not in RESERVED:
                listing.add_row(Text(f"{name}\n{parameter.default!r}"), Text(explained.get(name, "")))
    Console().print(listing)


def demo(
    out: Annotated[Path, typer.Option(help="Output directory; created if missing.")] = Path("out"),
    dataset: Annotated[Dataset, typer.Option(help="Data set to embed.")] = Dataset.DIGITS,
    method: How = Method.UMAP,
) -> None:
    """Embed a data set of scikit-learn and write map.html, map.png, embedding.csv and report.json."""
    from vicinal import viewer

    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file, not a directory")
    spec = make_spec(method, {}, [], seed=SEED, jobs=-1)
    out.mkdir(parents=True, exist_ok=True)
    X, labels, images = _bundled(dataset)
    result = fit_rows(X, labels, spec, with_quality=True, quiet=False)
    with StagedFiles() as staged:
        title = f"{dataset}: {X.shape[0]:,} rows of {X.shape[1]} columns"
        page = staged.path_for(out / "map.html")
        judged = None if result.reliability is None else {"reliability": result.reliability.reliability}
        viewer.export(page, result.embedding, labels, values=judged, images=images, title=TITLES[dataset])
        columns = [Column("class", Role.LABEL, labels)]
        write_picture(staged.path_for(out / "map.png"), result.embedding, columns, title)
        write_map(staged.path_for(out / "embedding.csv"), result.embedding, columns)
        write_report(staged.path_for(out / "report.json"), str(dataset), X.shape, spec, result)
    print_result(result)
    print(f"wrote map.html, map.png, embedding.csv and report.json to {out}; open {out / 'map.html'} in a browser")


def _load(path: Path) -> Any:
    import vicinal

    if not path.is_file():
        raise ValueError(f"{path} does not exist")
    return vicinal.load(path)


def _coordinate_columns(path: Path) -> list[str] | None:
    """Return the coordinate columns of a map that `embed` wrote, so that other columns are not read as coordinates."""
    import polars as pl

    if path.suffix.lower() not in (".csv", ".parquet") or not path.is_file():
        return None
    try:
        frame = pl.read_csv(path, n_rows=0) if path.suffix.lower() == ".csv" else pl.read_parquet(path, n_rows=0)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None
    return [name for name in frame.columns if name in ("x", "y", "z")] or None


def _bundled(dataset: Dataset) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[Any] | None]:
    import numpy as np
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{dataset}")()
    X = np.ascontiguousarray(bunch.data, dtype=np.float32)
    if dataset is Dataset.WINE:
        # standardize: the 13 columns have different units, and one would dominate
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, bunch.target_names[bunch.target], bunch.get("images")
