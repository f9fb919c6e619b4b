"""The commands and their options. typer resolves annotations among this module's names."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli.embedding import INTERRUPTED, embedded
from vicinal.cli.methods import ESTIMATORS, RESERVED, Method, estimator, recipe, signature
from vicinal.cli.options import (
    SEED,
    Array,
    Browser,
    Columns,
    Force,
    Hover,
    How,
    Html,
    Ids,
    Jobs,
    Kept,
    Label,
    Metric,
    MinDist,
    NComponents,
    NEpochs,
    NNeighbors,
    Param,
    Png,
    Port,
    Quiet,
    Report,
    Seed,
    Source,
    checked_recipe,
    reading,
)
from vicinal.cli.stream import stream
from vicinal.cli.targets import MODEL_SUFFIX, Beside, Targets
from vicinal.cli.writing import (
    MAP_SUFFIXES,
    check_targets,
    show,
    show_quality,
    write_json,
    write_map,
    write_picture,
    write_report,
)
from vicinal.files.atomic import Outputs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vicinal.files.readers import Table


class Dataset(StrEnum):
    """What `demo` can show without a download."""

    DIGITS = "digits"
    IRIS = "iris"
    WINE = "wine"


TITLES = {Dataset.DIGITS: "Handwritten digits", Dataset.IRIS: "Iris flowers", Dataset.WINE: "Wines"}


def build() -> Any:
    """The command with all its subcommands."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(_root)
    for command in (embed, transform, stream, serve, quality, info, methods, demo):
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
    """Maps of high-dimensional data: UMAP and its family, fast and reproducible."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def embed(
    file: Source,
    output: Annotated[Path, typer.Option("--output", "-o", help="Map to write: .npy, .csv or .parquet.")],
    method: How = Method.UMAP,
    columns: Columns = None,
    label: Label = None,
    ids: Ids = None,
    hover: Hover = None,
    array: Array = None,
    png: Png = None,
    html: Html = None,
    report: Report = None,
    model: Kept = None,
    n_neighbors: NNeighbors = None,
    min_dist: MinDist = None,
    n_components: NComponents = 2,
    metric: Metric = None,
    n_epochs: NEpochs = None,
    param: Param = None,
    seed: Seed = SEED,
    jobs: Jobs = -1,
    quiet: Quiet = False,
    force: Force = False,
) -> int:
    """Embed the rows of a file and write the map. Ctrl-C ends the layout and writes the map as it is then."""
    options = {"n_neighbors": n_neighbors, "min_dist": min_dist, "metric": metric, "n_epochs": n_epochs}
    chosen = checked_recipe(method, options | {"n_components": n_components}, param, seed, jobs)
    targets = Targets(output, png, html, report, model)
    targets.check(file, n_components, force)
    table = _read(file, columns, label, ids, hover, array)
    made = embedded(table.X, table.labels, chosen, measured=report is not None, quiet=quiet)
    targets.write(made, Beside(table.labels, table.along, label, ids), file, table.X.shape, chosen)
    if not quiet:
        show(made)
        skipped = f", ignoring {len(table.ignored)} other column(s)" if table.ignored else ""
        print(f"wrote {output} from {table.X.shape[0]:,} rows of {table.X.shape[1]} columns{skipped}")
    return INTERRUPTED if made.interrupted else 0


def transform(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `embed --model` kept.")],
    file: Source,
    output: Annotated[Path, typer.Option("--output", "-o", help="Map to write: .npy, .csv or .parquet.")],
    columns: Columns = None,
    label: Label = None,
    ids: Ids = None,
    array: Array = None,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Place the rows of a file on the map of a model, which stays as it is."""
    check_targets({"--output": (output, MAP_SUFFIXES)}, [model, file], force)
    fitted = _load(model)
    if not hasattr(fitted, "transform"):
        raise ValueError(f"{model}: {type(fitted).__name__} cannot place new rows")
    table = _read(file, columns, label, ids, None, array)
    places = fitted.transform(table.X)
    with Outputs() as outputs:
        write_map(outputs.staged(output), places, table.labels, table.along)
    if not quiet:
        print(f"wrote {output}: {len(places):,} rows placed among {len(fitted.embedding_):,}")


def info(model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `embed --model` kept.")]) -> None:
    """Say what a model file holds."""
    import inspect

    from rich.console import Console
    from rich.table import Table as Listing

    fitted = _load(model)
    listing = Listing("what", "value")
    listing.add_row("method", type(fitted).__name__)
    listing.add_row("map", " x ".join(map(str, fitted.embedding_.shape)))
    listing.add_row("data", f"{getattr(fitted, 'n_features_in_', '?')} columns")
    for stage, spent in getattr(fitted, "stage_times_", {}).items():
        listing.add_row(f"{stage}, seconds", f"{spent:.2f}")
    for name, parameter in inspect.signature(type(fitted)).parameters.items():
        value = getattr(fitted, name, parameter.default)
        if repr(value) != repr(parameter.default):
            listing.add_row(name, repr(value)[:60])
    Console().print(listing)


def serve(
    file: Source,
    method: How = Method.UMAP,
    columns: Columns = None,
    label: Label = None,
    ids: Ids = None,
    hover: Hover = None,
    array: Array = None,
    n_neighbors: NNeighbors = None,
    min_dist: MinDist = None,
    metric: Metric = None,
    n_epochs: NEpochs = None,
    param: Param = None,
    seed: Seed = SEED,
    jobs: Jobs = -1,
    port: Port = 0,
    browser: Browser = True,
) -> None:
    """Lay out the rows of a file while you watch, or show a model, on a page for this machine only. Ctrl-C ends it."""
    from vicinal.cli.serving import live_server, model_server, watch

    options = {"n_neighbors": n_neighbors, "min_dist": min_dist, "metric": metric, "n_epochs": n_epochs}
    if file.suffix.lower() == MODEL_SUFFIX:
        server = model_server(_load(file), title=file.stem, port=port)
    else:
        chosen = checked_recipe(method, options, param, seed, jobs)
        table = _read(file, columns, label, ids, hover, array)
        server = live_server(table, chosen, title=file.stem, label=label, ids=ids, port=port)
        server.session.start()
    watch(server, browser)


def quality(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The data a map was made of.")],
    embedding: Annotated[Path, typer.Argument(metavar="EMBEDDING", help="The map, rows in the same order.")],
    columns: Columns = None,
    label: Label = None,
    array: Array = None,
    n_neighbors: Annotated[int, typer.Option(metavar="N", min=1, help="Neighbours to compare.")] = 15,
    metric: Annotated[str, typer.Option(help="Distance between rows of the data.")] = "euclidean",
    report: Annotated[Path | None, typer.Option(help="Also write the measures as .json.")] = None,
    force: Force = False,
) -> None:
    """Measure how faithful a map is to its data."""
    from vicinal import quality as measures
    from vicinal.cli.embedding import categories

    check_targets({"--report": (report, (".json",))}, [data, embedding], force)
    table = _read(data, columns, label, None, None, array)
    places = _read(embedding, *_coordinate_columns(embedding))
    found = measures.report(table.X, places.X, categories(table.labels), n_neighbors=n_neighbors, metric=metric)
    if report is not None:
        with Outputs() as outputs:
            write_json(outputs.staged(report), found.as_dict())
    show_quality(found)


def methods(
    method: Annotated[Method | None, typer.Argument(help="Show its parameters.")] = None,
) -> None:
    """List the methods, or the parameters of one."""
    from rich.console import Console
    from rich.table import Table as Listing

    if method is None:
        listing = Listing("method", "what")
        for one in ESTIMATORS:
            try:
                listing.add_row(str(one), (estimator(one).__doc__ or "").strip().splitlines()[0])
            except ValueError:
                listing.add_row(str(one), "not in this version")
    else:
        listing = Listing("--param", "default")
        for name, parameter in signature(method).items():
            if name not in RESERVED:
                listing.add_row(name, repr(ESTIMATORS[method][1].get(name, parameter.default)))
    Console().print(listing)


def demo(
    out: Annotated[Path, typer.Option(help="Directory to write to; made if need be.")] = Path("out"),
    dataset: Annotated[Dataset, typer.Option(help="What to embed.")] = Dataset.DIGITS,
    method: How = Method.UMAP,
) -> None:
    """Embed a data set that comes with scikit-learn; write map.html, map.png, embedding.csv and report.json."""
    from vicinal import viewer

    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file, not a directory")
    chosen = recipe(method, {}, [], seed=SEED, jobs=-1)
    out.mkdir(parents=True, exist_ok=True)
    X, labels, images = _bundled(dataset)
    made = embedded(X, labels, chosen, measured=True, quiet=False)
    with Outputs() as outputs:
        title = f"{dataset}: {X.shape[0]:,} rows of {X.shape[1]}"
        page = outputs.staged(out / "map.html")
        viewer.export(page, made.embedding, labels, images=images, title=TITLES[dataset])
        write_picture(outputs.staged(out / "map.png"), made.embedding, labels, title)
        write_map(outputs.staged(out / "embedding.csv"), made.embedding, labels)
        write_report(outputs.staged(out / "report.json"), str(dataset), X.shape, chosen, made)
    show(made)
    print(f"wrote map.html, map.png, embedding.csv and report.json to {out}; open {out / 'map.html'} in a browser")


def _read(
    path: Path,
    columns: str | None = None,
    label: str | None = None,
    ids: str | None = None,
    hover: str | None = None,
    array: str | None = None,
) -> Table:
    from vicinal.files.readers import read_table

    return read_table(path, **reading(columns, label, ids, hover, array))


def _load(path: Path) -> Any:
    import vicinal

    if not path.is_file():
        raise ValueError(f"{path} does not exist")
    return vicinal.load(path)


def _coordinate_columns(path: Path) -> tuple[str | None]:
    """The columns that `embed` writes, if the file has them: what else is beside them is no coordinate."""
    import polars as pl

    if path.suffix.lower() not in (".csv", ".parquet") or not path.is_file():
        return (None,)
    try:
        frame = pl.read_csv(path, n_rows=0) if path.suffix.lower() == ".csv" else pl.read_parquet(path, n_rows=0)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return (None,)
    found = [name for name in frame.columns if name in ("x", "y", "z")]
    return (",".join(found) or None,)


def _bundled(dataset: Dataset) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[Any] | None]:
    import numpy as np
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{dataset}")()
    X = np.ascontiguousarray(bunch.data, dtype=np.float32)
    if dataset is Dataset.WINE:
        # thirteen measurements in as many units: one column would outweigh the rest
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, bunch.target_names[bunch.target], bunch.get("images")
