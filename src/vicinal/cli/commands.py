"""The commands and their options. typer evaluates the annotations with the names of this module."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli import atlas_command, describing, fitting, options, writing
from vicinal.cli.cluster_command import clusters
from vicinal.cli.describing import announce_columns, describe
from vicinal.cli.fitting import INTERRUPTED, FitResult, fit_rows, load_model, load_rows
from vicinal.cli.methods import ESTIMATORS, RESERVED, Method, estimator, explanations, make_spec, signature, value_of
from vicinal.cli.page_commands import compare, page, serve
from vicinal.cli.placing_commands import transform, update
from vicinal.cli.stream_command import stream
from vicinal.cli.writing import STDOUT, OutputFiles, check_outputs
from vicinal.files.atomic import StagedFiles
from vicinal.files.data_table import Categories, Column, ColumnChoice, Dates, Role
from vicinal.files.preparation import Preprocessing

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
    file: options.Source,
    grid: Grid = None,
    output: BestMap = None,
    method: options.How = Method.UMAP,
    columns: Annotated[ColumnChoice, options.Group(options.choose_columns, "value", "ids", "hover")],
    steps: Annotated[Preprocessing, options.Group(options.choose_steps, "counts")],
    png: options.Png = None,
    report: Scores = None,
    model: options.SavedModel = None,
    metric: options.Metric = None,
    run: options.Run,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:
    """Fit a map for each combination of parameters and list how much of the data each one keeps, the best first."""
    import vicinal

    values = None if grid is None else dict(map(_values, grid))
    spec = make_spec(method, {"metric": metric}, **run)
    outputs = OutputFiles(output, png=png, report=report, model=model)
    outputs.check(file, spec.parameters.get("n_components", 2), force)
    table, X, preparation = load_rows(file, columns, steps, metric)
    announce_columns(table, output, all_columns=False, quiet=quiet)
    describing.warn_of_scale(table, X, metric, quiet=quiet)
    with fitting.one_line_warnings(quiet):
        choice = vicinal.choose(X, spec.build(), values, random_state=run["seed"], n_jobs=run["jobs"])
    preparation.keep_in(choice.best)
    best = FitResult(choice.best.embedding_, {}, None, model=choice.best)
    document = {"source": str(file), "method": str(method), "table": choice.table}
    outputs.write(best, table.columns, file, document)
    if not quiet and output != STDOUT:
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
    looks = (clusters, page, compare, serve)
    made = (embed, describe, transform, update, *looks, stream, choose, quality, info, methods, demo)
    for command in made:
        app.command()(options.with_groups(command))
    app.add_typer(atlas_command.build(), name="atlas")
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
    file: options.Source,
    output: Annotated[Path, options.Output],
    method: options.How = Method.UMAP,
    columns: options.Chosen,
    steps: options.Prepared,
    more: options.MoreOutputs,
    on_page: options.OnPage,
    shape: options.Shape,
    n_epochs: options.NEpochs = None,
    run: options.Run,
    cluster: options.Cluster = None,
    memory_limit: options.MemoryLimit = None,
    show_columns: options.ShowColumns = False,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> int:
    """Embed the rows of a file and write the map.

    Ctrl-C during the layout stops it and writes the map as it is.
    """
    spec = make_spec(method, shape | {"n_epochs": n_epochs}, **run)
    outputs = OutputFiles(output, **more)
    outputs.check(file, shape["n_components"], force)
    if outputs.html is None and any(on_page.values()):
        raise ValueError("--images, --neighbors and --interactive are about the page: add --html")
    if cluster is not None or memory_limit is not None:
        named = {"--label": columns.label, "--id": columns.ids, "--hover": columns.display, "--value": columns.values}
        written = {"--html": outputs.html, "--report": outputs.report, "--model": outputs.model}
        read = {
            "--array": columns.array,
            "--vectors": columns.vectors,
            "--categories": columns.categories != Categories.IGNORE,
            "--dates": columns.dates != Dates.IGNORE,
        }
        fitting.check_large(spec, named | read | written | {"preprocessing": steps.any})
        rows, table = fitting.open_large(file, columns)
        announce_columns(table, output, all_columns=show_columns, quiet=quiet)
        if memory_limit is not None:
            spec = replace(spec, parameters=spec.parameters | {"memory_limit": memory_limit})
        with fitting.connected(cluster):
            result = fit_rows(rows, None, spec, with_quality=False, quiet=quiet)
        size, shown = rows.shape, list[Column]()
    else:
        columns = replace(columns, constant=on_page["images"] is not None)
        table, X, preparation = load_rows(file, columns, steps, shape["metric"])
        announce_columns(table, output, all_columns=show_columns, quiet=quiet)
        describing.warn_of_scale(table, X, shape["metric"], quiet=quiet)
        outputs = replace(outputs, on_page=on_page | {"images": writing.pictures_of(table.X, on_page["images"])})
        result = fit_rows(X, table.labels, spec, with_quality=outputs.report is not None, quiet=quiet)
        preparation.keep_in(result.model)
        size, shown = table.X.shape, table.shown_columns()
    report = writing.report_of(str(file), size, spec, result) | describing.roles_of(table.columns)
    outputs.write(result, shown, file, report, describing.columns_line(table.columns, table.matrix))
    if not quiet:
        outputs.announce(result, size, table.matrix)
    return INTERRUPTED if result.interrupted else 0


def info(model: options.SavedModelFile) -> None:
    """Show the content of a model file: method, sizes, times and parameters."""
    import inspect

    fitted = load_model(model)
    rows = [("method", type(fitted).__name__)]
    if hasattr(fitted, "embedding_"):
        rows.append(("map", " x ".join(map(str, fitted.embedding_.shape))))
    rows.append(("data", f"{getattr(fitted, 'n_features_in_', '?')} columns"))
    rows += [(f"{stage}, seconds", f"{spent:.2f}") for stage, spent in getattr(fitted, "stage_times_", {}).items()]
    for name, parameter in inspect.signature(type(fitted)).parameters.items():
        value = getattr(fitted, name, parameter.default)
        if repr(value) != repr(parameter.default):
            rows.append((name, repr(value)[:60]))
    writing.print_table(("property", "value"), rows)


def quality(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The data file that was embedded.")],
    embedding: Annotated[Path, typer.Argument(metavar="EMBEDDING", help="The map file, rows in the same order.")],
    columns: Annotated[ColumnChoice, options.Group(options.choose_columns, "value", "ids", "hover", "vectors")],
    n_neighbors: Annotated[int, typer.Option(metavar="N", min=1, help="Neighbors per row to compare.")] = 15,
    metric: Annotated[str, typer.Option(help="Distance metric of the data.")] = "euclidean",
    report: Annotated[Path | None, typer.Option(help="Also write the measures (.json).")] = None,
    force: options.Force = False,
) -> None:
    """Measure how well a map preserves its data."""
    from vicinal import quality as measures
    from vicinal.files.readers import local_file, read_chosen, read_table
    from vicinal.neighbors.metrics import allows_nan
    from vicinal.plot.annotations import categories

    check_outputs({"report": report}, [data, embedding], force)
    table = read_table(data, replace(columns, missing=allows_nan(metric)))
    with local_file(embedding) as local:
        # the columns that `embed` writes beside the coordinates are none
        coordinates = ("x", "y", "z")
        places = read_chosen(
            local,
            ColumnChoice(),
            lambda names, _: ColumnChoice([name for name in names if name in coordinates] or None),
        )
    found = measures.report(table.X, places.X, categories(table.labels), n_neighbors=n_neighbors, metric=metric)
    if report is not None:
        with StagedFiles() as staged:
            writing.write_report(staged.path_for(report), found.as_dict())
    writing.print_quality(found)


def methods(
    method: Annotated[Method | None, typer.Argument(help="Method whose parameters to explain.")] = None,
) -> None:
    """List the methods, or explain the parameters of one method."""
    if method is None:
        known = [(str(one), (estimator(one).__doc__ or "").strip().splitlines()[0]) for one in ESTIMATORS]
        writing.print_table(("method", "description"), known)
        return
    explained, parameters = explanations(method), signature(method)
    rows = [(f"{n}\n{p.default!r}", explained.get(n, "")) for n, p in parameters.items() if n not in RESERVED]
    writing.print_table(("--param and default", "meaning"), rows, show_lines=True)


def demo(
    out: Annotated[Path, typer.Option(help="Output directory; created if missing.")] = Path("out"),
    dataset: Annotated[Dataset, typer.Option(help="Data set to embed.")] = Dataset.DIGITS,
    method: options.How = Method.UMAP,
) -> None:
    """Embed a data set of scikit-learn and write map.html, map.png, embedding.csv and report.json."""
    from vicinal import viewer

    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file, not a directory")
    spec = make_spec(method, {}, param=None, seed=options.SEED, jobs=-1)
    out.mkdir(parents=True, exist_ok=True)
    X, labels, images = _bundled(dataset)
    result = fit_rows(X, labels, spec, with_quality=True, quiet=False)
    with StagedFiles() as staged:
        title = f"{dataset}: {X.shape[0]:,} rows of {X.shape[1]} columns"
        page = staged.path_for(out / "map.html")
        judged = None if result.reliability is None else {"reliability": result.reliability.reliability}
        viewer.export(page, result.embedding, labels, values=judged, images=images, title=TITLES[dataset])
        columns = [Column("class", Role.LABEL, labels)]
        writing.write_picture(staged.path_for(out / "map.png"), result.embedding, columns, title)
        writing.write_map(staged.path_for(out / "embedding.csv"), result.embedding, columns)
        document = writing.report_of(str(dataset), X.shape, spec, result)
        writing.write_report(staged.path_for(out / "report.json"), document)
    writing.print_result(result)
    print(f"wrote map.html, map.png, embedding.csv and report.json to {out}; open {out / 'map.html'} in a browser")


def _bundled(dataset: Dataset) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[Any] | None]:
    import numpy as np
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{dataset}")()
    X = np.ascontiguousarray(bunch.data, dtype=np.float32)
    if dataset is Dataset.WINE:
        # standardize: the 13 columns have different units, and one would dominate
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, bunch.target_names[bunch.target], bunch.get("images")
