"""The commands and their options. typer evaluates the annotations with the names of this module."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli.fitting import INTERRUPTED, check_large, fit_large, fit_rows, one_line_warnings
from vicinal.cli.methods import ESTIMATORS, RESERVED, Method, estimator, explanations, make_spec, signature, value_of
from vicinal.cli.options import (
    SEED,
    Array,
    Cluster,
    Columns,
    Counts,
    Force,
    Hover,
    How,
    Html,
    Ids,
    ImputeMissing,
    Jobs,
    Label,
    Log1p,
    MemoryLimit,
    Metric,
    MinDist,
    NComponents,
    NEpochs,
    NNeighbors,
    Output,
    Param,
    Pca,
    Png,
    Quiet,
    Report,
    SavedModel,
    SavedModelFile,
    ScaleColumns,
    Seed,
    Source,
    Value,
    Vectors,
    checked_spec,
)
from vicinal.cli.page_commands import compare, page, serve
from vicinal.cli.rows import ColumnOptions, Preprocessing, RowMetadata, load_rows, metadata_of, names_of
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
    file: Source,
    grid: Grid = None,
    output: BestMap = None,
    method: How = Method.UMAP,
    columns: Columns = None,
    label: Label = None,
    array: Array = None,
    vectors: Vectors = None,
    scale: ScaleColumns = None,
    log1p: Log1p = False,
    pca: Pca = None,
    impute: ImputeMissing = None,
    png: Png = None,
    report: Scores = None,
    model: SavedModel = None,
    metric: Metric = None,
    param: Param = None,
    seed: Seed = SEED,
    jobs: Jobs = -1,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Fit a map for each combination of parameters and list how much of the data each one keeps, the best first."""
    import vicinal

    values = None if grid is None else dict(map(_values, grid))
    spec = checked_spec(method, {"metric": metric}, param, seed, jobs)
    outputs: dict[str, tuple[Path | None, tuple[str, ...]]] = {
        "--output": (output, MAP_SUFFIXES),
        "--png": (png, (".png",)),
        "--report": (report, (".json",)),
        "--model": (model, (MODEL_SUFFIX,)),
    }
    check_outputs(outputs, [file], force)
    rows = load_rows(
        file,
        ColumnOptions(columns, label, None, None, array, None, vectors),
        Preprocessing(scale, log1p, pca, impute),
        metric,
    )
    with one_line_warnings(quiet):
        choice = vicinal.choose(rows.X, spec.build(), values, random_state=seed, n_jobs=jobs)
    rows.source.keep_in(choice.best)
    with StagedFiles() as staged:
        if output is not None:
            path = output if is_stdout(output) else staged.path_for(output)
            write_map(path, choice.best.embedding_, rows.metadata.labels, rows.metadata.columns)
        if png is not None:
            write_picture(staged.path_for(png), choice.best.embedding_, rows.metadata.labels, None)
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
        app.command()(command)
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
    file: Source,
    output: Annotated[Path, Output],
    method: How = Method.UMAP,
    columns: Columns = None,
    label: Label = None,
    value: Value = None,
    ids: Ids = None,
    hover: Hover = None,
    array: Array = None,
    vectors: Vectors = None,
    scale: ScaleColumns = None,
    log1p: Log1p = False,
    pca: Pca = None,
    impute: ImputeMissing = None,
    counts: Counts = False,
    png: Png = None,
    html: Html = None,
    report: Report = None,
    model: SavedModel = None,
    n_neighbors: NNeighbors = None,
    min_dist: MinDist = None,
    n_components: NComponents = 2,
    metric: Metric = None,
    n_epochs: NEpochs = None,
    param: Param = None,
    seed: Seed = SEED,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    memory_limit: MemoryLimit = None,
    quiet: Quiet = False,
    force: Force = False,
) -> int:
    """Embed the rows of a file and write the map.

    Ctrl-C during the layout stops it and writes the map as it is.
    """
    options = {"n_neighbors": n_neighbors, "min_dist": min_dist, "metric": metric, "n_epochs": n_epochs}
    spec = checked_spec(method, options | {"n_components": n_components}, param, seed, jobs)
    preprocessing = Preprocessing(scale, log1p, pca, impute, counts)
    outputs = OutputFiles(output, png, html, report, model)
    outputs.check(file, n_components, force)
    chosen = ColumnOptions(columns, label, ids, hover, array, value, vectors)
    if cluster is not None or memory_limit is not None:
        named = {"--label": label, "--id": ids, "--hover": hover, "--value": value, "--array": array}
        written = {"--vectors": vectors, "--html": html, "--report": report, "--model": model}
        check_large(spec, named | written | {"preprocessing": preprocessing.any})
        fitted, shape = fit_large(file, chosen, spec, cluster, memory_limit, quiet)
        outputs.write(fitted, RowMetadata(), file, shape, spec)
        if not quiet and not is_stdout(output):
            print_result(fitted)
            print(f"wrote {output} from {shape[0]:,} rows of {shape[1]} columns")
        return INTERRUPTED if fitted.interrupted else 0
    rows = load_rows(file, chosen, preprocessing, metric)
    result = fit_rows(rows.X, rows.table.labels, spec, with_quality=report is not None, quiet=quiet)
    rows.source.keep_in(result.model)
    outputs.write(result, rows.metadata, file, rows.table.X.shape, spec)
    if not quiet and not is_stdout(output):
        print_result(result)
        n, width = rows.table.X.shape
        print(f"wrote {output} from {n:,} rows of {width} columns{rows.ignored()}")
    return INTERRUPTED if result.interrupted else 0


def transform(
    model: SavedModelFile,
    file: Source,
    output: Annotated[Path, Output],
    columns: Columns = None,
    label: Label = None,
    ids: Ids = None,
    array: Array = None,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Place new rows on the map of a saved model; the model does not change.

    Columns are found by the names that the model was fitted to, in any order.
    """
    from vicinal.files.data_table import listed
    from vicinal.files.preparation import PreparedSource

    check_outputs({"--output": (output, MAP_SUFFIXES)}, [model, file], force)
    fitted = _load(model)
    if not hasattr(fitted, "transform"):
        raise ValueError(f"{model}: a {type(fitted).__name__} cannot place new rows")
    source = PreparedSource.of_model(fitted)
    if source.columns is None:
        chosen = ColumnOptions(columns, label, ids, None, array)
        table = source.read(file, **chosen.reading())
    else:
        features = tuple(names_of(columns))
        table = source.read(file, features=features, label=label, ids=ids, array=array)
    places = fitted.transform(source.steps.apply(table.X))
    metadata = metadata_of(table, ColumnOptions(label=label))
    with StagedFiles() as staged:
        path = output if is_stdout(output) else staged.path_for(output)
        write_map(path, places, metadata.labels, metadata.columns)
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
    columns: Columns = None,
    label: Label = None,
    array: Array = None,
    n_neighbors: Annotated[int, typer.Option(metavar="N", min=1, help="Neighbors per row to compare.")] = 15,
    metric: Annotated[str, typer.Option(help="Distance metric of the data.")] = "euclidean",
    report: Annotated[Path | None, typer.Option(help="Also write the measures (.json).")] = None,
    force: Force = False,
) -> None:
    """Measure how well a map preserves its data."""
    from vicinal import quality as measures
    from vicinal.cli.fitting import categories
    from vicinal.files.readers import read_table
    from vicinal.neighbors.metrics import allows_nan

    check_outputs({"--report": (report, (".json",))}, [data, embedding], force)
    table = read_table(data, **ColumnOptions(columns, label, None, None, array).reading(missing=allows_nan(metric)))
    places = read_table(embedding, **ColumnOptions(_coordinate_columns(embedding)).reading())
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
        write_picture(staged.path_for(out / "map.png"), result.embedding, labels, title)
        write_map(staged.path_for(out / "embedding.csv"), result.embedding, labels)
        write_report(staged.path_for(out / "report.json"), str(dataset), X.shape, spec, result)
    print_result(result)
    print(f"wrote map.html, map.png, embedding.csv and report.json to {out}; open {out / 'map.html'} in a browser")


def _load(path: Path) -> Any:
    import vicinal

    if not path.is_file():
        raise ValueError(f"{path} does not exist")
    return vicinal.load(path)


def _coordinate_columns(path: Path) -> str | None:
    """Return the coordinate columns of a map that `embed` wrote, so that other columns are not read as coordinates."""
    import polars as pl

    if path.suffix.lower() not in (".csv", ".parquet") or not path.is_file():
        return None
    try:
        frame = pl.read_csv(path, n_rows=0) if path.suffix.lower() == ".csv" else pl.read_parquet(path, n_rows=0)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None
    found = [name for name in frame.columns if name in ("x", "y", "z")]
    return ",".join(found) or None


def _bundled(dataset: Dataset) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[Any] | None]:
    import numpy as np
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{dataset}")()
    X = np.ascontiguousarray(bunch.data, dtype=np.float32)
    if dataset is Dataset.WINE:
        # standardize: the 13 columns have different units, and one would dominate
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, bunch.target_names[bunch.target], bunch.get("images")
