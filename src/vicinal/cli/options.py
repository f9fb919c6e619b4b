"""Options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from vicinal.cli.methods import Method, Recipe, recipe

LARGEST_SEED = 2**32 - 1
SEED = 42
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
Png = Annotated[Path | None, typer.Option(help="Also draw the map.")]
Html = Annotated[Path | None, typer.Option(help="Also write a page to explore it.")]
Report = Annotated[Path | None, typer.Option(help="Also measure the map; write .json.")]
Kept = Annotated[Path | None, typer.Option(help="Also keep the fitted model, for `transform`.")]
Port = Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0 takes a free one.")]
Browser = Annotated[bool, typer.Option(help="Open the page in a browser.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]


def checked_recipe(method: Method, options: Mapping[str, Any], param: list[str] | None, seed: int, jobs: int) -> Recipe:
    """The recipe of the options given."""
    for name, value in options.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"--{name.replace('_', '-')} must be finite, got {value}")
    if jobs < -1 or jobs == 0:
        raise ValueError(f"--jobs must be positive, or -1 for all cores, got {jobs}")
    return recipe(method, options, param or [], seed=seed, jobs=jobs)


def reading(
    columns: str | None, label: str | None, ids: str | None, hover: str | None, array: str | None
) -> dict[str, Any]:
    """What the readers are told by the options for columns."""
    along = [*([] if ids is None else [ids]), *_names(hover)]
    return {"columns": None if columns is None else _names(columns), "label": label, "along": along, "array": array}


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]
