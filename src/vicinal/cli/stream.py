"""`vicinal stream`: a map that grows while its file is read, watched on a page or written when it is done."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli.embedding import INTERRUPTED
from vicinal.cli.methods import Method, Recipe
from vicinal.cli.options import (
    SEED,
    Array,
    Browser,
    Columns,
    Force,
    Hover,
    Html,
    Ids,
    Jobs,
    Kept,
    Label,
    Metric,
    MinDist,
    NComponents,
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
from vicinal.cli.targets import MODEL_SUFFIX, Targets
from vicinal.cli.writing import show

if TYPE_CHECKING:
    from vicinal.cli.streaming import Reading

BATCH_ROWS = 1000


def stream(
    file: Source,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Map to write: .npy, .csv or .parquet.")] = None,
    batch_rows: Annotated[int, typer.Option(metavar="N", min=1, help="Rows that are read at a time.")] = BATCH_ROWS,
    columns: Columns = None,
    label: Label = None,
    ids: Ids = None,
    hover: Hover = None,
    array: Array = None,
    png: Png = None,
    html: Html = None,
    report: Report = None,
    model: Kept = None,
    save_state: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep what a stopped run needs to go on, every minute.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Go on from such a state, or from a model of a shorter file.")
    ] = None,
    n_neighbors: NNeighbors = None,
    min_dist: MinDist = None,
    n_components: NComponents = 2,
    metric: Metric = None,
    param: Param = None,
    seed: Seed = SEED,
    jobs: Jobs = -1,
    port: Port = 0,
    browser: Browser = True,
    quiet: Quiet = False,
    force: Force = False,
) -> int:
    """Read a file batch by batch into a map that grows.

    Without an output the map is shown on a page for this machine while it grows; Ctrl-C ends that. With one it is
    written when all rows have been placed; Ctrl-C writes the map of the rows placed so far.
    """
    from vicinal.cli.streaming import Reading

    options = {"n_neighbors": n_neighbors, "min_dist": min_dist, "metric": metric, "n_components": n_components}
    chosen = checked_recipe(Method.PROGRESSIVE, options | {"batch_size": batch_rows}, param, seed, jobs)
    targets = Targets(output, png, html, report, model)
    # the state that a run goes on from may be the one that it keeps
    targets.check(file, n_components, force, save_state=(None if save_state == resume else save_state, (MODEL_SUFFIX,)))
    source = Reading(file, batch_rows, reading(columns, label, ids, hover, array), ids)
    if not targets.any:
        if save_state is not None or resume is not None:
            raise ValueError("--save-state and --resume go with an output, such as --output map.parquet")
        return _show(source, chosen, port, browser)
    return _write(source, _resumed(resume, chosen) if resume else chosen.build(), chosen, targets, save_state, quiet)


def _write(source: Reading, model: Any, chosen: Recipe, targets: Targets, state: Path | None, quiet: bool) -> int:
    from vicinal.cli.streaming import Streaming

    streaming = Streaming(source, model, state)
    made = streaming.run(measured=targets.report is not None, quiet=quiet)
    shape = (len(made.embedding), model.n_features_in_)
    targets.write(made, source.beside(streaming.gathered, len(made.embedding)), source.path, shape, chosen)
    if not quiet:
        show(made)
        first = streaming.gathered.first
        skipped = f", ignoring {len(first.ignored)} other column(s)" if first is not None and first.ignored else ""
        print(f"wrote {targets.named()} from {shape[0]:,} rows of {shape[1]} columns{skipped}")
    return INTERRUPTED if made.interrupted else 0


def _show(source: Reading, chosen: Recipe, port: int, browser: bool) -> int:
    from vicinal.cli.serving import stream_server, watch

    if chosen.parameters["n_components"] != 2:
        raise ValueError(f"the page shows maps of 2 dimensions, not {chosen.parameters['n_components']}")
    server = stream_server(source, chosen, port=port)
    server.session.start()
    watch(server, browser)
    return 0


def _resumed(path: Path, chosen: Recipe) -> Any:
    """The model of a state, which keeps its parameters: others may not be asked for."""
    import vicinal

    if not path.is_file():
        raise ValueError(f"--resume {path} does not exist")
    model = vicinal.load(path)
    if not isinstance(model, vicinal.ProgressiveUMAP):
        raise ValueError(f"--resume {path} is a {type(model).__name__}, which cannot go on")
    defaults = inspect.signature(type(model)).parameters
    for name, value in chosen.parameters.items():
        if name not in ("n_jobs", "random_state") and value not in (defaults[name].default, getattr(model, name)):
            raise ValueError(f"{name} cannot be changed: {path} was made with {getattr(model, name)!r}")
    model.set_params(n_jobs=chosen.parameters["n_jobs"])
    return model
