"""The command `vicinal stream`: a map that grows while its file is read, shown on a page or written at the end."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli.fitting import INTERRUPTED
from vicinal.cli.methods import EstimatorSpec, Method
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
    Label,
    Metric,
    MinDist,
    NComponents,
    NNeighbors,
    Output,
    Param,
    Png,
    Port,
    Quiet,
    Report,
    SavedModel,
    Seed,
    Source,
    Value,
    Vectors,
    checked_spec,
)
from vicinal.cli.output_files import MODEL_SUFFIX, OutputFiles
from vicinal.cli.rows import ColumnOptions
from vicinal.cli.writing import is_stdout, print_result

if TYPE_CHECKING:
    from vicinal.cli.stream_fitting import StreamSource

BATCH_ROWS = 1000


def stream(
    file: Source,
    output: Annotated[Path | None, Output] = None,
    batch_rows: Annotated[int, typer.Option(metavar="N", min=1, help="Rows per batch.")] = BATCH_ROWS,
    columns: Columns = None,
    label: Label = None,
    ids: Ids = None,
    hover: Hover = None,
    array: Array = None,
    value: Value = None,
    vectors: Vectors = None,
    png: Png = None,
    html: Html = None,
    report: Report = None,
    model: SavedModel = None,
    save_state: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save the state every minute, to resume a stopped run.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Resume from a saved state, or from a model of fewer rows.")
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
    """Read a file in batches into a map that grows.

    Without an output, a local page shows the map while it grows; Ctrl-C stops it.

    With an output, the map is written when all rows are placed; Ctrl-C writes the rows placed so far.
    """
    from vicinal.cli.stream_fitting import StreamSource

    options = {"n_neighbors": n_neighbors, "min_dist": min_dist, "metric": metric, "n_components": n_components}
    spec = checked_spec(Method.PROGRESSIVE, options | {"batch_size": batch_rows}, param, seed, jobs)
    outputs = OutputFiles(output, png, html, report, model)
    # a run may save its state to the file that it resumes from
    state_to_check = None if save_state == resume else save_state
    outputs.check(file, n_components, force, save_state=(state_to_check, (MODEL_SUFFIX,)))
    chosen = ColumnOptions(columns, label, ids, hover, array, value, vectors)
    source = StreamSource(file, batch_rows, chosen.reading(), ids, tuple(chosen.values))
    if not outputs.any:
        if save_state is not None or resume is not None:
            raise ValueError("--save-state and --resume require an output, such as --output map.parquet")
        return _show(source, spec, port, browser)
    fitted = _resume(resume, spec) if resume else spec.build()
    return _write(source, fitted, spec, outputs, save_state, quiet)


def _write(
    source: StreamSource, model: Any, spec: EstimatorSpec, outputs: OutputFiles, state: Path | None, quiet: bool
) -> int:
    from vicinal.cli.stream_fitting import StreamFit

    fit = StreamFit(source, model, state)
    result = fit.run(with_quality=outputs.report is not None, quiet=quiet)
    shape = (len(result.embedding), model.n_features_in_)
    if fit.extra.first is not None:
        source.layout(fit.extra.first).keep_in(result.model)
    outputs.write(result, source.metadata(fit.extra, len(result.embedding)), source.path, shape, spec)
    if not quiet and not is_stdout(outputs.output):
        print_result(result)
        first = fit.extra.first
        skipped = f", ignoring {len(first.ignored)} other column(s)" if first is not None and first.ignored else ""
        print(f"wrote {outputs.listed()} from {shape[0]:,} rows of {shape[1]} columns{skipped}")
    return INTERRUPTED if result.interrupted else 0


def _show(source: StreamSource, spec: EstimatorSpec, port: int, browser: bool) -> int:
    from vicinal.cli.serving import serve_until_interrupted, stream_server

    n_components = spec.parameters["n_components"]
    if n_components != 2:
        raise ValueError(f"the page of a stream shows maps of 2 dimensions, but --n-components is {n_components}")
    server = stream_server(source, spec, port=port)
    server.session.start()
    serve_until_interrupted(server, browser)
    return 0


def _resume(path: Path, spec: EstimatorSpec) -> Any:
    """Load the model of a saved state; its parameters cannot be changed."""
    import vicinal

    if not path.is_file():
        raise ValueError(f"--resume {path} does not exist")
    model = vicinal.load(path)
    if not isinstance(model, vicinal.ProgressiveUMAP):
        raise ValueError(f"--resume {path} contains a {type(model).__name__}; only a ProgressiveUMAP can be resumed")
    defaults = inspect.signature(type(model)).parameters
    for name, value in spec.parameters.items():
        if name not in ("n_jobs", "random_state") and value not in (defaults[name].default, getattr(model, name)):
            raise ValueError(f"{name} cannot be changed: {path} was made with {getattr(model, name)!r}")
    model.set_params(n_jobs=spec.parameters["n_jobs"])
    return model
