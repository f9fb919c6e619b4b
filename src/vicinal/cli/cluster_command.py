"""The command `vicinal clusters`: divide the rows of a saved model or of a map file, name and describe the parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli import options
from vicinal.cli.fitting import load_model
from vicinal.cli.page_commands import Coordinates, map_line, read_map
from vicinal.cli.writing import MODEL_SUFFIX, check_outputs, print_table, write_frame
from vicinal.files.atomic import StagedFiles
from vicinal.files.data_table import ColumnChoice
from vicinal.files.frame_table import columns_of_frame
from vicinal.files.readers import TABULAR_READERS, check_file, local_file, read_frame_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vicinal import Clusters

SUFFIXES = {
    "output": (".csv", ".parquet"),
    "report": (".json",),
    "save": (MODEL_SUFFIX,),
}
# Names that are printed.
SHOWN = 40

ModelOrMap = Annotated[
    Path, typer.Argument(metavar="MODEL_OR_MAP", help="A model saved by `embed --model`, or a map: csv, parquet, …")
]
Table = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Table to write (.csv, .parquet): cluster, name and strength of every row."),
]
Data = Annotated[
    Path | None, typer.Option(help="Table of the same rows, whose texts, categories and numbers give the names.")
]
LayerNumber = Annotated[
    int | None,
    typer.Option("--layer", metavar="N", min=0, help="Layer to write; 0 is the coarsest. Default: the main."),
]
MinSize = Annotated[int | None, typer.Option(metavar="N", min=2, help="Smallest cluster. Default: by the rows.")]
Report = Annotated[
    Path | None, typer.Option(help="Also write all layers, what sets each cluster apart, and the gaps (.json).")
]
Save = Annotated[Path | None, typer.Option(help="Also save the clusters (.vicinal), to predict new rows in Python.")]


def clusters(
    *,
    file: ModelOrMap,
    output: Table = None,
    data: Data = None,
    layer: LayerNumber = None,
    min_size: MinSize = None,
    coordinates: Coordinates = None,
    report: Report = None,
    save: Save = None,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:
    """Divide the rows of a map into clusters, in layers from coarse to fine, with names.

    Clusters of a saved model follow the graph of its data; of a map file only the places are known.
    """
    import vicinal

    sources = [file] if data is None else [file, data]
    check_outputs({"output": output, "report": report, "save": save}, sources, force, SUFFIXES)
    columns = None if data is None else _columns(data)
    if file.suffix.lower() == MODEL_SUFFIX:
        model = load_model(file)
        _check_rows(columns, len(model.embedding_), file, data)
        columns = columns and _without_coordinates(columns, model.embedding_)
        found = vicinal.clusters(model, columns=columns, min_size=min_size)
        described = columns
    else:
        table = read_map(file, coordinates, ColumnChoice())
        if not quiet:
            print(map_line(table))
        places = table.X.astype("float64")
        _check_rows(columns, len(places), file, data)
        described = {one.name: one.values for one in table.read_columns}
        described |= _without_coordinates(columns or {}, places)
        found = vicinal.clusters(places, places, columns=described or None, min_size=min_size)
    found.layer(layer)  # refused before anything is written
    with StagedFiles() as staged:
        if output is not None:
            _write_table(staged.path_for(output), found, layer)
        if report is not None:
            document = json.dumps(_document(found, described), indent=1, allow_nan=False)
            staged.path_for(report).write_text(document + "\n", encoding="utf-8")
        if save is not None:
            found.save(staged.path_for(save))
    if not quiet:
        print(found)
        chosen = found.layer(layer)
        rows = [(_shown_name(found, layer, a), f"{size:,}") for a, size in enumerate(chosen.sizes)]
        print_table(("cluster", "rows"), rows[:SHOWN], numbers=True)


def _shown_name(found: Clusters, layer: int | None, cluster: int) -> str:
    """Return the name of a cluster; without one its number, and the name of the smallest named area around it."""
    number, one = found.main if layer is None else layer, cluster
    name = found.layers[number].names[one]
    while not name and number > 0 and found.layers[number].parent[one] >= 0:
        one = int(found.layers[number].parent[one])
        number -= 1
        name = found.layers[number].names[one]
    inside = f"cluster {cluster} in {name}" if name else f"cluster {cluster}"
    return found.layer(layer).names[cluster] or inside


def _columns(path: Path) -> dict[str, Any]:
    """Read all columns of a table."""
    with local_file(path) as local:
        suffix = check_file(local)
        if suffix not in TABULAR_READERS:
            raise ValueError(f"--data {path}: names need a table (csv, tsv, parquet, feather or jsonl), not {suffix}")
        return columns_of_frame(local, *read_frame_of(local, ColumnChoice()))


def _without_coordinates(columns: dict[str, Any], places: NDArray[Any]) -> dict[str, Any]:
    """Leave out coordinates of the map, which a map file has beside its other columns: they explain nothing."""
    import numpy as np

    def is_coordinate(values: Any) -> bool:
        numbers = np.asarray(values)
        return numbers.dtype.kind == "f" and any(np.allclose(numbers, axis, rtol=1e-4) for axis in places.T)

    return {name: values for name, values in columns.items() if not is_coordinate(values)}


def _check_rows(columns: dict[str, Any] | None, n: int, file: Path, data: Path | None) -> None:
    given = n if not columns else len(next(iter(columns.values())))
    if given != n:
        raise ValueError(f"--data {data} has {given} rows, but the map of {file} has {n}")


def _write_table(path: Path, found: Clusters, layer: int | None) -> None:
    """Write the chosen layer, then the clusters of every layer."""
    import polars as pl

    chosen = found.layer(layer)
    names = [*chosen.names, ""]
    table = {"cluster": chosen.labels, "name": [names[one] for one in chosen.labels], "strength": chosen.strength}
    write_frame(path, pl.DataFrame(table | {f"layer {a}": one.labels for a, one in enumerate(found.layers)}))


def _document(found: Clusters, columns: dict[str, Any] | None) -> dict[str, Any]:
    layers = []
    for number, layer in enumerate(found.layers):
        described = found.describe(columns, number)
        clusters = [
            {key: one[key] for key in ("cluster", "parent", "name", "size", "place")}
            | {"traits": [trait._asdict() for trait in described[one["cluster"]]]}
            for one in found.table_of(number)
        ]
        gaps = [] if found.model is None else [gap._asdict() for gap in found.gaps(number)]
        about = {"resolution": layer.resolution, "stability": layer.stability, "noise": layer.noise}
        layers.append(about | {"clusters": clusters, "gaps": gaps})
    return {"rows": len(found.labels), "main": found.main, "layers": layers}
