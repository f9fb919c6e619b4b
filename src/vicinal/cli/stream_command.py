"""The command `vicinal stream`: a map that grows while its file is read, shown on a page or written at the end."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli.fitting import (
    INTERRUPTED,
    FitResult,
    ProgressBars,
    measure_quality,
    one_line_warnings,
    stage_bars,
    stop_on_interrupt,
)
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
from vicinal.cli.rows import ColumnOptions, RowMetadata
from vicinal.cli.writing import MODEL_SUFFIX, OutputFiles, is_stdout, print_result, save_model
from vicinal.files.batches import POLISH, READ, ExtraColumns, fit_in_pieces
from vicinal.files.data_table import DataTable, ReadError
from vicinal.files.preparation import SourceColumns
from vicinal.files.readers import is_local

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# The state is saved at most once per STATE_S seconds, and saving takes at most the fraction STATE_SHARE of the time.
STATE_S, STATE_SHARE = 60.0, 0.1


@dataclass(frozen=True)
class StreamSource:
    """A file and how to read it; ``columns`` are keyword arguments of ``read_batches``."""

    path: Path
    batch_rows: int
    columns: dict[str, Any]
    id_name: str | None = None
    value_names: tuple[str, ...] = ()

    def tables(self) -> Iterator[DataTable]:
        from vicinal.files.batches import read_batches

        tables = read_batches(self.path, self.batch_rows, **self.columns)
        first = next(tables, None)
        if first is None:
            raise ReadError(f"{self.path} has no rows")
        yield first
        yield from tables

    def total(self) -> int | None:
        """Return the number of rows, or None if it is unknown."""
        from vicinal.files.readers import row_count

        return row_count(self.path) if is_local(self.path) else None

    def metadata(self, extra: ExtraColumns, n: int) -> RowMetadata:
        """Return labels and extra columns of the first ``n`` rows."""
        label, values = self.columns["label"], self.value_names
        return RowMetadata(extra.labels(n), extra.columns(n), label, self.id_name, values)

    def layout(self, table: DataTable) -> SourceColumns:
        """Return the columns of the file, to read others of the same layout."""
        extra = tuple(name for name in self.columns["extra"] if name != self.id_name)
        vectors = self.columns.get("vectors")
        return SourceColumns(table.feature_names, self.columns["label"], self.id_name, extra, vectors)


class StreamFit:
    """Fit a model to the batches of a file; the model may already contain the first rows."""

    def __init__(self, source: StreamSource, model: Any, state: Path | None = None) -> None:
        self.source, self.model, self.state = source, model, state
        self.extra = ExtraColumns()
        self.seconds: dict[str, float] = {}
        self._saved = time.perf_counter()
        self._saving = 0.0

    @property
    def n_placed(self) -> int:
        return len(self.model.age_) if hasattr(self.model, "embedding_") else 0

    def run(self, *, with_quality: bool, quiet: bool) -> FitResult:
        """Fit all batches; Ctrl-C stops at a point from which the model can be continued, and keeps the map."""
        with stage_bars(quiet) as bars, one_line_warnings(quiet):
            # read the first batch before drawing bars, so that errors in the file come first
            tables = self.extra.collect(self.source.tables())
            first = next(tables)
            with stop_on_interrupt(bars, lambda: self.n_placed > 0):
                self._fit(self._unread(first, tables), bars)
            n = self.n_placed
            quality = None
            if with_quality:
                quality = measure_quality(self.model.rows_[:n], self.model, self.extra.labels(n), bars, self.seconds)
        return FitResult(self.model.embedding_, self.seconds, quality, bars.stopped, self.model)

    def _fit(self, rows: Iterator[NDArray[np.float32]], bars: ProgressBars) -> None:
        total, start, most = self.source.total(), time.perf_counter(), 0
        for stage in fit_in_pieces(self.model, rows):
            now = time.perf_counter()
            self.seconds[stage] = self.seconds.get(stage, 0.0) + now - start
            start = now
            self._save_state(due=bars.stopped or stage == POLISH)
            if bars.stopped:
                return
            if stage == READ:
                bars(READ, self.extra.n, total or 0, None)
            elif stage == POLISH:
                self.model.set_params(callback=_polish_callback(bars))
            else:
                most = max(most, self.model.pending_)
                bars(stage, most - self.model.pending_, most, None)
        self.seconds[POLISH] += time.perf_counter() - start

    def _unread(self, first: DataTable, tables: Iterator[DataTable]) -> Iterator[NDArray[np.float32]]:
        """Yield the rows that the model does not contain yet."""
        known = self.model.n_rows_ if hasattr(self.model, "n_rows_") else 0
        width = first.X.shape[1]
        if known and width != self.model.n_features_in_:
            raise ReadError(
                f"{self.source.path} has {width} features, but the resumed run read {self.model.n_features_in_}"
            )
        table: DataTable | None = first
        while table is not None:
            begin = self.extra.n - len(table.X)
            if self.extra.n > known:
                yield table.X[max(known - begin, 0) :]
            table = next(tables, None)
        if self.extra.n < known:
            raise ReadError(f"{self.source.path} has {self.extra.n} rows, but the resumed run read {known}")

    def _save_state(self, due: bool) -> None:
        since = time.perf_counter() - self._saved
        if self.state is None or not (due or since > max(STATE_S, self._saving / STATE_SHARE)):
            return
        start = time.perf_counter()
        save_model(self.model, self.state)
        self._saved = time.perf_counter()
        self._saving = self._saved - start


def _polish_callback(bars: ProgressBars) -> Any:
    """Return a callback that counts the epochs of the final pass from 0."""
    first: list[int] = []

    def report(stage: str, epoch: int, n_epochs: int, embedding: object) -> bool:
        first.append(epoch)
        return bars(POLISH, epoch - first[0], n_epochs - first[0], None)

    return report


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
    from vicinal.cli.page_commands import serve_until_interrupted, stream_server

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
