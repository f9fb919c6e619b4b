"""The commands `vicinal page`, `compare` and `serve`: pages of maps that exist, and of fits while they run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli.methods import EstimatorSpec, Method, build_estimator, signature
from vicinal.cli.options import (
    SEED,
    Array,
    Browser,
    Columns,
    Counts,
    Force,
    Hover,
    How,
    Ids,
    ImputeMissing,
    Jobs,
    Label,
    Log1p,
    Metric,
    MinDist,
    NComponents,
    NEpochs,
    NNeighbors,
    PageOutput,
    Param,
    Pca,
    Port,
    Quiet,
    ScaleColumns,
    Seed,
    SourceOrModel,
    Title,
    Value,
    Vectors,
    checked_spec,
)
from vicinal.cli.rows import ColumnOptions, Preprocessing, load_rows, names_of
from vicinal.cli.writing import MODEL_SUFFIX, check_outputs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vicinal.cli.rows import LoadedRows
    from vicinal.cli.stream_command import StreamSource
    from vicinal.viewer.columns import Columns as PageColumns
    from vicinal.viewer.server import LiveServer
    from vicinal.viewer.session import Session


def live_server(rows: LoadedRows, spec: EstimatorSpec, *, title: str, port: int) -> LiveServer:
    """Create a server that shows a fit of the rows; its session is not started yet."""
    from vicinal.viewer.session import Session

    session = Session(
        rows.X,
        partial(build_estimator, spec.method),
        _adjustable(spec),
        columns=rows.metadata.page_columns(),
        title=title,
        label=rows.metadata.label_name or "",
        source=rows.source,
    )
    return _server(session, port)


def stream_server(source: StreamSource, spec: EstimatorSpec, *, port: int) -> LiveServer:
    """Create a server that shows a growing map; raise if the first batch of the file is invalid."""
    from vicinal.viewer.session import StreamSession

    first = next(source.tables())
    session = StreamSession(
        source.tables,
        partial(build_estimator, spec.method),
        _adjustable(spec),
        total=source.total(),
        ids=source.id_name,
        title=source.path.stem,
        label=source.columns["label"] or "",
        source=source.layout(first),
    )
    return _server(session, port)


def model_server(model: Any, *, title: str, port: int) -> LiveServer:
    """Create a server that shows a fitted model and places the rows of uploaded files on it."""
    from vicinal.viewer.session import Session

    return _server(Session.of(model, title=title), port)


def _adjustable(spec: EstimatorSpec) -> dict[str, Any]:
    """Return the spec's parameters and the defaults of those that the page can change, without None values."""
    from vicinal.viewer.session import ADJUSTABLE

    known = signature(spec.method)
    defaults = {name: known[name].default for name in (*ADJUSTABLE, "metric") if name in known}
    return {name: value for name, value in (defaults | spec.parameters).items() if value is not None}


def _server(session: Session, port: int) -> LiveServer:
    try:
        from vicinal.viewer.server import LiveServer
    except ModuleNotFoundError as error:
        raise ImportError(f"the live page requires {error.name}; install with: pip install 'vicinal[app]'") from error
    return LiveServer(session, port=port)


def serve_until_interrupted(server: LiveServer, browser: bool) -> None:
    """Print the address of the page and serve it until Ctrl-C."""
    print(f"open {server.address}\npress Ctrl-C to stop", flush=True)
    if browser:
        import webbrowser

        webbrowser.open(server.address)
    try:
        server.run()
    except KeyboardInterrupt:
        pass  # the way to stop it
    finally:
        server.close()


# Names of coordinates that maps are written with, here and by other programs.
COORDINATES = (("x", "y", "z"), ("umap_1", "umap_2", "umap_3"), ("umap1", "umap2", "umap3"), ("tsne_1", "tsne_2"))
LABELS = ("label", "labels", "class", "cluster")
MapFile = Annotated[Path, typer.Argument(metavar="MAP", help="Map: csv, tsv, parquet, feather, jsonl or npy.")]
Coordinates = Annotated[str | None, typer.Option(help="Coordinate columns: a,b or a,b,c. Default: x,y and z if any.")]


def page(
    file: MapFile,
    output: PageOutput,
    coordinates: Coordinates = None,
    label: Label = None,
    value: Value = None,
    ids: Ids = None,
    title: Title = None,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Write an interactive page of an existing map; all its other columns travel with it."""
    from vicinal.viewer.export import write_page
    from vicinal.viewer.packing import pack

    check_outputs({"--output": (output, (".html",))}, [file], force)
    places, columns = _read_map(file, coordinates, label, value, ids)
    write_page(output, pack(places, columns, title=title or file.stem))
    if not quiet:
        print(f"wrote {output}: {len(places):,} points; open it in a browser")


def compare(
    files: Annotated[list[Path], typer.Argument(metavar="MAP...", help="Two or more maps of the same rows.")],
    output: PageOutput,
    coordinates: Coordinates = None,
    label: Label = None,
    value: Value = None,
    ids: Ids = None,
    title: Title = None,
    align: Annotated[bool, typer.Option(help="Rotate, mirror and scale each map to match the first.")] = True,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Write a page of several maps of the same rows, side by side, with linked selection."""
    from vicinal import viewer

    check_outputs({"--output": (output, (".html",))}, files, force)
    if len(files) < 2:
        raise ValueError(f"compare needs at least two maps, got {len(files)}")
    read = [_read_map(file, coordinates, label, value, ids) for file in files]
    first = read[0][1]
    for file, (_, columns) in zip(files, read, strict=True):
        if columns.ids is not None and first.ids is not None and list(columns.ids) != list(first.ids):
            raise ValueError(f"{file}: the ids must be those of {files[0]} in the same order")
    names = _distinct([file.stem for file in files])
    maps = {name: places for name, (places, _) in zip(names, read, strict=True)}
    rows = {"values": first.values, "hover": first.hover, "ids": first.ids}
    viewer.compare(output, maps, first.labels, align=align, title=title or " and ".join(names), **rows)
    if not quiet:
        print(f"wrote {output}: {len(files)} maps of {len(read[0][0]):,} points; open it in a browser")


def serve(
    file: SourceOrModel,
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
    n_neighbors: NNeighbors = None,
    min_dist: MinDist = None,
    n_components: NComponents = 2,
    metric: Metric = None,
    n_epochs: NEpochs = None,
    param: Param = None,
    seed: Seed = SEED,
    jobs: Jobs = -1,
    port: Port = 0,
    browser: Browser = True,
) -> None:
    """Show a fit of the rows of a file, or a saved model, on a local page.

    Ctrl-C stops the server.
    """

    options = {"n_neighbors": n_neighbors, "min_dist": min_dist, "metric": metric, "n_epochs": n_epochs}
    if file.suffix.lower() == MODEL_SUFFIX:
        import vicinal

        if not file.is_file():
            raise ValueError(f"{file} does not exist")
        server = model_server(vicinal.load(file), title=file.stem, port=port)
    else:
        if n_components not in (2, 3):
            raise ValueError(f"the page shows maps of 2 or 3 dimensions, but --n-components is {n_components}")
        spec = checked_spec(method, options | {"n_components": n_components}, param, seed, jobs)
        chosen = ColumnOptions(columns, label, ids, hover, array, value, vectors)
        rows = load_rows(file, chosen, Preprocessing(scale, log1p, pca, impute, counts), metric)
        server = live_server(rows, spec, title=file.stem, port=port)
        server.session.start()
    serve_until_interrupted(server, browser)


def _read_map(
    path: Path, coordinates: str | None, label: str | None, value: str | None, ids: str | None
) -> tuple[NDArray[np.float64], PageColumns]:
    """Read the coordinates of a map and its other columns."""
    from vicinal.files.readers import ARRAY_READERS, check_file, local_file, read_table
    from vicinal.viewer.columns import Columns as PageColumns

    with local_file(path) as local:
        if check_file(local) in ARRAY_READERS:
            table = read_table(local)
            return table.X.astype("float64"), PageColumns(
                ids=None if table.row_names is None else table.row_names.tolist()
            )
        return _frame_map(path, _frame(local), names_of(coordinates), (label, names_of(value), ids))


def _frame(path: Path) -> Any:
    from vicinal.files.readers import TABULAR_READERS

    return TABULAR_READERS[path.suffix.lower()](path)


def _frame_map(
    path: Path, frame: Any, coordinates: list[str], named: tuple[str | None, list[str], str | None]
) -> tuple[NDArray[np.float64], PageColumns]:
    from vicinal.files.data_table import ColumnSelection, frame_table
    from vicinal.viewer.columns import Columns as PageColumns

    label, values, ids = named
    places = coordinates or _coordinates(path, frame.columns)
    label = label or next((name for name in LABELS if name in frame.columns), None)
    others = [name for name in frame.columns if name not in (*places, label) and name]
    missing = [name for name in (*values, *([] if ids is None else [ids])) if name not in frame.columns]
    if missing:
        raise ValueError(f"{path} has no column {missing[0]!r}")
    plain = [name for name in others if not frame.schema[name].is_nested()]
    table = frame_table(path, frame, ColumnSelection(places, label, tuple(plain)))
    hover = {name: table.extra[name] for name in plain if name not in (*values, ids)}
    return table.X.astype("float64"), PageColumns(
        None if label is None else {label: table.labels},
        {name: table.extra[name] for name in values} or None,
        hover or None,
        None,
        None if ids is None else table.extra[ids].tolist(),
    )


def _coordinates(path: Path, names: list[str]) -> list[str]:
    lower = {name.lower(): name for name in names}
    for group in COORDINATES:
        found = [lower[name] for name in group if name in lower]
        if len(found) >= 2 and found[:2] == [lower.get(group[0]), lower.get(group[1])]:
            return found
    from vicinal.files.data_table import listed

    raise ValueError(f"{path} has no columns x and y; name them with --coordinates a,b; it has {listed(names)}")


def _distinct(names: list[str]) -> list[str]:
    return [name if names.count(name) == 1 else f"{name} ({a + 1})" for a, name in enumerate(names)]
