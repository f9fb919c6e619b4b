"""The commands and their options. typer resolves annotations among this module's names."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli.embedding import INTERRUPTED, embedded
from vicinal.cli.methods import ESTIMATORS, RESERVED, Method, Recipe, estimator, recipe, signature
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
from vicinal.outputs import Outputs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vicinal.readers import Table

LARGEST_SEED = 2**32 - 1
SEED = 42
MODEL_SUFFIX = ".vicinal"


class Dataset(StrEnum):
    """What `demo` can show without a download."""

    DIGITS = "digits"
    IRIS = "iris"
    WINE = "wine"


TITLES = {Dataset.DIGITS: "Handwritten digits", Dataset.IRIS: "Iris flowers", Dataset.WINE: "Wines"}

# Options that several commands share.
KINDS = "csv, tsv, parquet, feather, jsonl, npy, npz or h5ad"
Source = Annotated[Path, typer.Argument(metavar="FILE", help=f"Data, one row a point: {KINDS}.")]
Columns = Annotated[str | None, typer.Option(help="Columns to use, a,b,c; else all numeric ones.")]
Label = Annotated[str | None, typer.Option(help="Column of labels: colours, not features.")]
Ids = Annotated[str | None, typer.Option("--id", help="Column that names the rows.")]
Hover = Annotated[str | None, typer.Option(help="Columns to show beside a point, a,b,c.")]
Array = Annotated[str | None, typer.Option(help="Which matrix of an .npz or .h5ad file, e.g. obsm/X_pca.")]
How = Annotated[Method, typer.Option(help="How to make the map; `vicinal methods` explains.")]
Param = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Any parameter of the method; may repeat.")]
NNeighbors = Annotated[int | None, typer.Option(metavar="N", min=2, help="Neighbours of a point, itself included.")]
MinDist = Annotated[float | None, typer.Option(metavar="N", min=0.0, help="How close points may lie in the map.")]
NComponents = Annotated[int, typer.Option(metavar="N", min=1, help="Dimensions of the map.")]
Metric = Annotated[str | None, typer.Option(help="Distance between rows of the data.")]
NEpochs = Annotated[int | None, typer.Option(metavar="N", min=0, help="Rounds of the layout; else by size.")]
Seed = Annotated[int, typer.Option(metavar="N", min=0, max=LARGEST_SEED, help="Same seed, same map.")]
Jobs = Annotated[int, typer.Option(metavar="N", help="Threads; -1 for all cores. Does not change the map.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]


def build() -> Any:
    """The command with all its subcommands."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(_root)
    for command in (embed, transform, serve, quality, info, methods, demo):
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
    png: Annotated[Path | None, typer.Option(help="Also draw the map.")] = None,
    html: Annotated[Path | None, typer.Option(help="Also write a page to explore it.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also measure the map; write .json.")] = None,
    model: Annotated[Path | None, typer.Option(help="Also keep the fitted model, for `transform`.")] = None,
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
    chosen = _recipe(method, options | {"n_components": n_components}, param, seed, jobs)
    for name, target in {"--png": png, "--html": html}.items():
        if target is not None and n_components != 2:
            raise ValueError(f"{name} shows maps of 2 dimensions, not {n_components}")
    targets = {
        "--output": (output, MAP_SUFFIXES),
        "--png": (png, (".png",)),
        "--html": (html, (".html",)),
        "--report": (report, (".json",)),
        "--model": (model, (MODEL_SUFFIX,)),
    }
    check_targets(targets, [file], force)
    table = _read(file, columns, label, ids, hover, array)
    made = embedded(table.X, table.labels, chosen, measured=report is not None, quiet=quiet)
    with Outputs() as outputs:
        write_map(outputs.staged(output), made.embedding, table.labels, table.along)
        if png is not None:
            write_picture(outputs.staged(png), made.embedding, table.labels, None)
        if html is not None:
            _write_page(outputs.staged(html), made.embedding, table, file.stem, label, ids)
        if model is not None:
            _save(made.model, outputs.staged(model))
        if report is not None:
            write_report(outputs.staged(report), str(file), table.X.shape, chosen, made)
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
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Lay out the rows of a file while you watch, or show a model, on a page for this machine only. Ctrl-C ends it."""
    from vicinal.cli.serving import live_server, model_server

    options = {"n_neighbors": n_neighbors, "min_dist": min_dist, "metric": metric, "n_epochs": n_epochs}
    if file.suffix.lower() == MODEL_SUFFIX:
        server = model_server(_load(file), title=file.stem, port=port)
    else:
        chosen = _recipe(method, options, param, seed, jobs)
        table = _read(file, columns, label, ids, hover, array)
        server = live_server(table, chosen, title=file.stem, label=label, ids=ids, port=port)
        server.session.start()
    print(f"watch {server.address}\nCtrl-C ends it", flush=True)
    if browser:
        import webbrowser

        webbrowser.open(server.address)
    try:
        server.run()
    finally:
        server.close()


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


def _recipe(method: Method, options: dict[str, Any], param: list[str] | None, seed: int, jobs: int) -> Recipe:
    for name, value in options.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"--{name.replace('_', '-')} must be finite, got {value}")
    if jobs < -1 or jobs == 0:
        raise ValueError(f"--jobs must be positive, or -1 for all cores, got {jobs}")
    return recipe(method, options, param or [], seed=seed, jobs=jobs)


def _read(
    path: Path,
    columns: str | None = None,
    label: str | None = None,
    ids: str | None = None,
    hover: str | None = None,
    array: str | None = None,
) -> Table:
    from vicinal.readers import read_table

    along = [*([] if ids is None else [ids]), *_names(hover)]
    return read_table(path, columns=None if columns is None else _names(columns), label=label, along=along, array=array)


def _load(path: Path) -> Any:
    import vicinal

    if not path.is_file():
        raise ValueError(f"{path} does not exist")
    return vicinal.load(path)


def _save(model: Any, path: Path) -> None:
    from vicinal import model_io

    # the bars are of this process
    model.set_params(callback=None)
    if hasattr(model, "save"):
        model.save(path)
    else:
        model_io.save(model, path)


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


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


def _write_page(
    path: Path, embedding: NDArray[np.float32], table: Table, title: str, label: str | None, ids: str | None
) -> None:
    from vicinal import viewer

    hover = {name: column for name, column in table.along.items() if name != ids}
    viewer.export(
        path,
        embedding,
        table.labels,
        hover=hover or None,
        ids=None if ids is None else table.along[ids].tolist(),
        title=title,
        label=label or "",
    )


def _bundled(dataset: Dataset) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[Any] | None]:
    import numpy as np
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{dataset}")()
    X = np.ascontiguousarray(bunch.data, dtype=np.float32)
    if dataset is Dataset.WINE:
        # thirteen measurements in as many units: one column would outweigh the rest
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, bunch.target_names[bunch.target], bunch.get("images")
