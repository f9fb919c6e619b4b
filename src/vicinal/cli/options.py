"""Options that several commands share, one by one and in groups."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from vicinal.cli.methods import Method
from vicinal.files.data_table import Categories, ColumnChoice, Dates
from vicinal.files.number_texts import FileFormat
from vicinal.files.preparation import Impute, Preprocessing, Scale

LARGEST_SEED = 2**32 - 1
SEED = 42
LONGEST_NUMBER = 15  # characters of a number of a line, or of two
FORMATS = "csv, tsv, xlsx, ods, parquet, feather, jsonl, npy, npz or h5ad, also .gz; - is standard input"
Source = Annotated[Path, typer.Argument(metavar="FILE", help=f"Data file with one row per point: {FORMATS}.")]
SourceOrModel = Annotated[
    Path,
    typer.Argument(metavar="FILE", help=f"Data file with one row per point ({FORMATS}), a saved model, or an atlas."),
]
Features = Annotated[
    str | None,
    typer.Option(help="Feature columns: a,b,c. Default: all numbers but ids; see `vicinal describe`."),
]
Exclude = Annotated[str | None, typer.Option(help="Columns that are not features: a,b,c.")]
ClassColumns = Annotated[
    Categories,
    typer.Option(help="What columns of classes become: indicators, shares of classes, or nothing."),
]
DateColumns = Annotated[
    Dates, typer.Option(help="What columns of dates become: days, sines and cosines of year, week and day, or nothing.")
]
Decimal = Annotated[str | None, typer.Option(metavar="MARK", help="Mark before decimals: . or , Default: detected.")]
Thousands = Annotated[
    str | None, typer.Option(metavar="MARK", help="Mark between groups of three digits. Default: detected.")
]
Separator = Annotated[
    str | None,
    typer.Option(metavar="MARK", help="Mark between fields of csv: ; or tab. Default: detected."),
]
Encoding = Annotated[str | None, typer.Option(help="Encoding of csv, for example cp1252. Default: detected.")]
Missing = Annotated[
    str | None,
    typer.Option("--na", metavar="A,B,C", help="Further texts or numbers for missing values: -999,x."),
]
Sheet = Annotated[str | None, typer.Option(help="Sheet of an .xlsx or .ods file. Default: the only one with rows.")]
Skip = Annotated[
    str | None,
    typer.Option(metavar="LINES", help="Lines of a table that are no rows, such as titles and totals: 1-3,-1."),
]
Header = Annotated[
    bool | None, typer.Option("--header/--no-header", help="Whether the first line has names. Default: detected.")
]
ShowColumns = Annotated[bool, typer.Option("--columns", help="Print a table of all columns and what each is used for.")]
Label = Annotated[str | None, typer.Option(help="Column of labels, to color and evaluate the map; not a feature.")]
Value = Annotated[
    str | None,
    typer.Option(help="Columns of numbers, or genes of an .h5ad file, to color the map: a,b,c. They may be features."),
]
Vectors = Annotated[
    str | None, typer.Option(help="Column of lists of numbers, the features. Default: the only such column.")
]
ScaleColumns = Annotated[Scale | None, typer.Option(help="Scale the columns before the fit.")]
Log1p = Annotated[bool, typer.Option("--log1p", help="Replace every value x by log(1 + x) before the fit.")]
Pca = Annotated[int | None, typer.Option(metavar="N", min=1, help="Reduce to this many principal components first.")]
ImputeMissing = Annotated[Impute | None, typer.Option(help="Fill in missing values per column before the fit.")]
Counts = Annotated[
    bool,
    typer.Option(
        "--counts", help="Counts of genes: normalize, log, 2000 variable genes, scale, 50 components, as in scanpy."
    ),
]
Ids = Annotated[str | None, typer.Option("--id", help="Column of row ids.")]
Hover = Annotated[str | None, typer.Option(help="Columns to show and write even if they are large: a,b,c.")]
Array = Annotated[str | None, typer.Option(help="Matrix of an .npz or .h5ad file, for example obsm/X_pca.")]
How = Annotated[Method, typer.Option(help="Embedding method; see `vicinal methods`.")]
Param = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="Any parameter of the method; may be repeated.")
]
NNeighbors = Annotated[int | None, typer.Option(metavar="N", min=2, help="Neighbors per row, including itself.")]
MinDist = Annotated[
    float | None, typer.Option(metavar="N", min=0.0, help="Smallest distance of neighboring points in the map.")
]
NComponents = Annotated[int, typer.Option(metavar="N", min=1, help="Dimensions of the map.")]
Metric = Annotated[str | None, typer.Option(help="Distance metric of the data, for example cosine.")]
NEpochs = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Epochs of the layout. Default: depends on the number of rows.")
]
Seed = Annotated[
    int, typer.Option(metavar="N", min=0, max=LARGEST_SEED, help="Random seed: the same seed gives the same map.")
]
Jobs = Annotated[int, typer.Option(metavar="N", help="Threads; -1 uses all cores. The map does not depend on it.")]
Cluster = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Fit on the Dask cluster with this scheduler: tcp://host:8786.")
]
MemoryLimit = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Keep rows on disk and fit within this memory, for example 2GB.")
]
Output = typer.Option(
    "--output", "-o", help="Map to write: .npy, .csv, .parquet, or .h5ad from .h5ad; - writes csv to standard output."
)
PageOutput = Annotated[Path, typer.Option("--output", "-o", help="Page to write (.html).")]
Title = Annotated[str | None, typer.Option(help="Title of the page. Default: the name of the file.")]
Png = Annotated[Path | None, typer.Option(help="Also write a picture of the map (.png).")]
Html = Annotated[Path | None, typer.Option(help="Also write an interactive page (.html).")]
Images = Annotated[
    str | None,
    typer.Option(metavar="HxW", help="The features of a row are the pixels of a picture of this size: show it."),
]
Near = Annotated[
    int | None,
    typer.Option("--neighbors", metavar="N", min=1, help="Store N neighbors of every row in the page, to draw them."),
]
Interactive = Annotated[
    bool, typer.Option("--interactive", help="The page can lay out again, with other parameters or selected rows.")
]
Report = Annotated[Path | None, typer.Option(help="Also measure quality and reliability and write a report (.json).")]
SavedModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model saved by `embed --model`.")]
SavedModel = Annotated[Path | None, typer.Option(help="Also save the model (.vicinal), for `transform`.")]
Port = Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port of the page; 0 chooses a free one.")]
Browser = Annotated[bool, typer.Option(help="Open the page in a browser.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print only errors.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


class Group:
    """Annotation of a command's parameter that stands for a group of options.

    The options are the parameters of a function, except those in ``without``; the function returns the value. A
    parameter of the function may stand for another group.
    """

    def __init__(self, make: Callable[..., Any], *without: str) -> None:
        self.make = make
        signature = inspect.signature(make, eval_str=True)
        self.parameters = {name: one for name, one in signature.parameters.items() if name not in without}

    @property
    def options(self) -> list[inspect.Parameter]:
        """The options of the group and of its groups."""
        found = []
        for one in self.parameters.values():
            group = _group_of(one)
            found += [one] if group is None else group.options
        return found

    def build(self, given: dict[str, Any]) -> Any:
        """Take the options out of ``given`` and return the value."""
        found = {}
        for name, one in self.parameters.items():
            group = _group_of(one)
            found[name] = given.pop(name) if group is None else group.build(given)
        return self.make(**found)


def _group_of(parameter: inspect.Parameter) -> Group | None:
    return next((note for note in get_args(parameter.annotation) if isinstance(note, Group)), None)


def with_groups(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with the options of its groups instead of the parameters that stand for them."""
    everything = Group(command)

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        return everything.build(given)

    # keyword-only parameters may follow others with defaults
    flat = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in everything.options]
    run.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in flat}
    return run


def names_of(text: str | None) -> list[str]:
    """Return the names in a comma-separated list."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def choose_form(
    decimal: Decimal = None,
    thousands: Thousands = None,
    separator: Separator = None,
    encoding: Encoding = None,
    na: Missing = None,
    sheet: Sheet = None,
    skip: Skip = None,
    header: Header = None,
) -> FileFormat:
    """Return how the file is written, as far as options say it."""
    mark = "\t" if separator in ("tab", "\\t") else separator
    return FileFormat(decimal, thousands, mark, encoding, tuple(names_of(na)), sheet, lines_of(skip), header)


def lines_of(text: str | None) -> tuple[int, ...]:
    """Return the numbers in a list of lines such as 1-3,-1."""
    lines: list[int] = []
    for part in names_of(text):
        found = re.fullmatch(r"(-?\d+)|(\d+)-(\d+)", part)
        if found is None or len(part) > LONGEST_NUMBER:
            raise ValueError(f"--skip {text} must have the form 1-3,-1")
        lines += [int(part)] if found[1] else range(int(found[2]), int(found[3]) + 1)
    return tuple(lines)


Form = Annotated[FileFormat, Group(choose_form)]


def choose_columns(
    form: Form,
    features: Features = None,
    exclude: Exclude = None,
    label: Label = None,
    value: Value = None,
    ids: Ids = None,
    hover: Hover = None,
    array: Array = None,
    vectors: Vectors = None,
    categories: ClassColumns = Categories.IGNORE,
    dates: DateColumns = Dates.IGNORE,
) -> ColumnChoice:
    """Return the columns that options name."""
    return ColumnChoice(
        features=None if features is None else names_of(features),
        label=label,
        ids=ids,
        values=names_of(value),
        display=names_of(hover),
        array=array,
        vectors=vectors,
        exclude=names_of(exclude),
        categories=categories,
        dates=dates,
        form=form,
    )


def choose_steps(
    scale: ScaleColumns = None,
    log1p: Log1p = False,
    pca: Pca = None,
    impute: ImputeMissing = None,
    counts: Counts = False,
) -> Preprocessing:
    """Return the steps before the fit that options ask for."""
    return Preprocessing(scale, log1p, pca, impute, counts)


def shape_options(
    n_neighbors: NNeighbors = None, min_dist: MinDist = None, n_components: NComponents = 2, metric: Metric = None
) -> dict[str, Any]:
    """Return the parameters that most methods have."""
    return {"n_neighbors": n_neighbors, "min_dist": min_dist, "n_components": n_components, "metric": metric}


def run_options(param: Param = None, seed: Seed = SEED, jobs: Jobs = -1) -> dict[str, Any]:
    """Return the keyword arguments of :func:`vicinal.cli.methods.make_spec`."""
    return {"param": param, "seed": seed, "jobs": jobs}


def more_outputs(png: Png = None, html: Html = None, report: Report = None, model: SavedModel = None) -> dict[str, Any]:
    """Return the paths of the outputs beside the map, by format."""
    return {"png": png, "html": html, "report": report, "model": model}


def on_page(images: Images = None, neighbors: Near = None, interactive: Interactive = False) -> dict[str, Any]:
    """Return what the page shows and can do beside the columns."""
    return {"images": images, "neighbors": neighbors, "interactive": interactive}


Chosen = Annotated[ColumnChoice, Group(choose_columns)]
Prepared = Annotated[Preprocessing, Group(choose_steps)]
Shape = Annotated[dict[str, Any], Group(shape_options)]
Run = Annotated[dict[str, Any], Group(run_options)]
OnPage = Annotated[dict[str, Any], Group(on_page)]
MoreOutputs = Annotated[dict[str, Any], Group(more_outputs)]
