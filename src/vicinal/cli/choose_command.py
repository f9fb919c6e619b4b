"""The command that compares parameters. typer evaluates the annotations with the names of this module."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from vicinal.cli.methods import Method, value_of
from vicinal.cli.options import (
    SEED,
    Array,
    Columns,
    Force,
    How,
    ImputeMissing,
    Jobs,
    Label,
    Log1p,
    Metric,
    Param,
    Pca,
    Png,
    Quiet,
    SavedModel,
    ScaleColumns,
    Seed,
    Source,
    Vectors,
    checked_spec,
)
from vicinal.cli.output_files import MODEL_SUFFIX, save_model
from vicinal.cli.preprocessing import Preprocessing
from vicinal.cli.progress_bars import one_line_warnings
from vicinal.cli.rows import ColumnOptions, load_rows
from vicinal.cli.writing import MAP_SUFFIXES, check_outputs, is_stdout, write_json, write_map, write_picture
from vicinal.files.atomic import StagedFiles

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
