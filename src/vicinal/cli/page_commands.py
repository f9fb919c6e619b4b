"""The commands `vicinal page`, `compare` and `serve`: pages of existing maps, and of fits while they run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli import options
from vicinal.cli.describing import columns_line, warn_of_scale
from vicinal.cli.fitting import load_model, load_rows
from vicinal.cli.methods import EstimatorSpec, Method, make_spec, signature
from vicinal.cli.writing import ANNOTATED, MODEL_SUFFIX, check_outputs, pictures_of
from vicinal.files.annotated_files import maps_of
from vicinal.files.data_table import ColumnChoice, DataTable, Role, listed, values_of
from vicinal.files.frame_table import frame_table
from vicinal.files.readers import ARRAY_READERS, check_file, local_file, read_frame_of, read_table

if TYPE_CHECKING:
    from vicinal.viewer.server import LiveServer
    from vicinal.viewer.session import Session


def adjustable(spec: EstimatorSpec) -> dict[str, Any]:
    """Return the spec's parameters and the defaults of those that the page can change, without None values."""
    from vicinal.viewer.session import ADJUSTABLE

    known = signature(spec.method)
    defaults = {name: known[name].default for name in (*ADJUSTABLE, "metric") if name in known}
    return {name: value for name, value in (defaults | spec.parameters).items() if value is not None}


def server_of(session: Session, port: int) -> LiveServer:
    """Create the server of a session that is not started yet."""
    try:
        from vicinal.viewer.server import LiveServer
    except ModuleNotFoundError as error:
        raise ImportError(f"the live page requires {error.name}; install with: pip install 'vicinal[app]'") from error
    return LiveServer(session, port=port)


def serve_until_interrupted(server: LiveServer, browser: bool, *notes: str) -> None:
    """Print the address of the page and notes, and serve it until Ctrl-C."""
    print(f"open {server.address}", *notes, "press Ctrl-C to stop", sep="\n", flush=True)
    if browser:
        import webbrowser

        webbrowser.open(server.address)
    try:
        server.run()
    except KeyboardInterrupt:
        pass  # Ctrl-C is how users stop the server
    finally:
        server.close()


# Names of coordinates that maps are written with, here and by other programs.
COORDINATES = (("x", "y", "z"), ("umap_1", "umap_2", "umap_3"), ("umap1", "umap2", "umap3"), ("tsne_1", "tsne_2"))
PAGE_SUFFIXES = {"output": (".html",)}
LABELS = ("label", "labels", "class", "cluster")
MapFile = Annotated[Path, typer.Argument(metavar="MAP", help=f"Map: {options.FORMATS}.")]
Coordinates = Annotated[str | None, typer.Option(help="Coordinate columns: a,b or a,b,c. Default: x,y and z if any.")]


NOT_DESCRIBED = ("features", "exclude", "vectors", "categories", "dates")
Described = Annotated[ColumnChoice, options.Group(options.choose_columns, *NOT_DESCRIBED)]


def page(
    *,
    file: MapFile,
    output: options.PageOutput,
    coordinates: Coordinates = None,
    columns: Described,
    title: options.Title = None,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:
    """Write an interactive page of an existing map; all its other columns travel with it."""
    from vicinal.viewer.export import write_page
    from vicinal.viewer.packing import pack

    check_outputs({"output": output}, [file], force, PAGE_SUFFIXES)
    table = read_map(file, coordinates, columns)
    if not quiet:
        print(map_line(table))
    write_page(output, pack(table.X, table.read_columns, title=title or file.stem))
    if not quiet:
        print(f"wrote {output}: {len(table.X):,} points; open it in a browser")


def compare(
    *,
    files: Annotated[list[Path], typer.Argument(metavar="MAP...", help="Two or more maps of the same rows.")],
    output: options.PageOutput,
    coordinates: Coordinates = None,
    columns: Described,
    title: options.Title = None,
    align: Annotated[bool, typer.Option(help="Rotate, mirror and scale each map to match the first.")] = True,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:
    """Write a page of several maps of the same rows, side by side, with linked selection."""
    from vicinal.viewer.export import comparable_maps, write_page
    from vicinal.viewer.packing import pack

    check_outputs({"output": output}, files, force, PAGE_SUFFIXES)
    if len(files) < 2:
        raise ValueError(f"compare needs at least two maps, got {len(files)}")
    read = [read_map(file, coordinates, columns) for file in files]
    first = values_of(read[0].columns, Role.ID)
    for file, table in zip(files, read, strict=True):
        if not quiet:
            print(f"{file}: {map_line(table)}")
        ids = values_of(table.columns, Role.ID)
        if ids is not None and first is not None and ids.tolist() != first.tolist():
            raise ValueError(f"{file}: the ids must be those of {files[0]} in the same order")
    stems = [file.stem for file in files]
    names = [stem if stems.count(stem) == 1 else f"{stem} ({a + 1})" for a, stem in enumerate(stems)]
    maps = comparable_maps({name: table.X for name, table in zip(names, read, strict=True)}, align=align)
    write_page(output, pack(maps, read[0].read_columns, title=title or " and ".join(names)))
    if not quiet:
        print(f"wrote {output}: {len(files)} maps of {len(read[0].X):,} points; open it in a browser")


def serve(
    *,
    file: options.SourceOrModel,
    method: options.How = Method.UMAP,
    columns: options.Chosen,
    steps: options.Prepared,
    shape: options.Shape,
    n_epochs: options.NEpochs = None,
    run: options.Run,
    port: options.Port = 0,
    browser: options.Browser = True,
    images: options.Images = None,
) -> None:
    """Show a fit of the rows of a file, a saved model, or the newest version of an atlas on a local page.

    The page follows an atlas that is changed. Ctrl-C stops the server.
    """
    from vicinal.viewer.session import Session

    notes: list[str] = []
    if file.is_dir():
        from vicinal.atlas.serving import AtlasSession

        shown_atlas = AtlasSession(file)
        server = server_of(shown_atlas, port)
        shown_atlas.follow()
    elif file.suffix.lower() == MODEL_SUFFIX:
        server = server_of(Session.of(load_model(file), title=file.stem), port)
    else:
        if shape["n_components"] not in (2, 3):
            given = shape["n_components"]
            raise ValueError(f"the page shows maps of 2 or 3 dimensions, but --n-components is {given}")
        spec = make_spec(method, shape | {"n_epochs": n_epochs}, **run)
        columns = replace(columns, constant=images is not None)
        table, X, source = load_rows(file, columns, steps, shape["metric"])
        notes = [columns_line(table.columns, table.matrix)]
        warn_of_scale(table, X, shape["metric"], quiet=False)
        shown: dict[str, Any] = {"columns": table.shown_columns(), "images": pictures_of(table.X, images)}
        session = Session(X, spec.build, adjustable(spec), **shown, title=file.stem, source=source)
        server = server_of(session, port)
        session.start()
    serve_until_interrupted(server, browser, *notes)


def map_line(table: DataTable) -> str:
    """Return a line that names the coordinates of a map and the uses of its other columns."""
    return columns_line(table.columns, table.matrix, "coordinates")


def read_map(path: Path, coordinates: str | None, asked: ColumnChoice) -> DataTable:
    """Read a map: its features are the coordinates."""
    with local_file(path) as local:
        suffix = check_file(local)
        if suffix in ARRAY_READERS:
            array = asked.array
            if suffix == ANNOTATED and array is None:
                array = next(iter(maps_of(local)), None)
                if array is None:
                    raise ValueError(
                        f"{path} has no map, a matrix of 2 or 3 columns in obsm; `vicinal embed` makes one"
                    )
            return read_table(local, replace(asked, array=array))
        frame, form = read_frame_of(local, asked)
    places = options.names_of(coordinates) or _coordinates(path, frame.columns)
    label = asked.label or next((name for name in LABELS if name in frame.columns), None)
    return frame_table(path, frame, replace(asked, features=places, label=label, form=form))


def _coordinates(path: Path, names: list[str]) -> list[str]:
    lower = {name.lower(): name for name in names}
    for group in COORDINATES:
        found = [lower[name] for name in group if name in lower]
        if len(found) >= 2 and found[:2] == [lower.get(group[0]), lower.get(group[1])]:
            return found
    raise ValueError(f"{path} has no columns x and y; name them with --coordinates a,b; it has {listed(names)}")
