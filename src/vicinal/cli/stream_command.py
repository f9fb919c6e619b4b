"""The command `vicinal stream`: a map that grows while its file is read, shown on a page or written at the end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli import fitting, options
from vicinal.cli.describing import announce_columns, columns_line, roles_of
from vicinal.cli.fitting import INTERRUPTED, FitResult, ProgressBars, kept_choice, load_model
from vicinal.cli.methods import EstimatorSpec, Method, make_spec, signature
from vicinal.cli.writing import OutputFiles, report_of, save_model
from vicinal.files.batches import POLISH, READ, fit_in_pieces, join_columns, read_batches
from vicinal.files.data_table import Column, ColumnChoice, DataTable, ReadError, Role, values_of
from vicinal.files.preparation import Preparation
from vicinal.files.readers import row_count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# The state is saved at most once per STATE_S seconds, and saving takes at most the fraction STATE_SHARE of the time.
STATE_S, STATE_SHARE = 60.0, 0.1


def tables_of(path: Path, batch_rows: int, choice: ColumnChoice) -> Iterator[DataTable]:
    """Yield the batches of a file, at least one."""
    tables = read_batches(path, batch_rows, choice)
    first = next(tables, None)
    if first is None:
        raise ReadError(f"{path} has no rows")
    yield first
    yield from tables


class StreamFit:
    """Fit a model to the batches of a file; the model may already contain the first rows."""

    def __init__(self, path: Path, batch_rows: int, choice: ColumnChoice, model: Any, state: Path | None) -> None:
        self.path, self.model, self.state = path, model, state
        self.preparation = Preparation.of_model(model)
        self.n_read = 0
        choice = self.preparation.matching(path, choice)
        tables = tables_of(path, batch_rows, choice)
        self.first = next(tables)
        self.total = row_count(path, choice.form)
        self.seconds: dict[str, float] = {}
        self._tables = tables
        self._columns: list[list[Column]] = []
        self._saved = time.perf_counter()
        self._saving = 0.0

    @property
    def n_placed(self) -> int:
        return len(self.model.age_) if hasattr(self.model, "embedding_") else 0

    def columns(self) -> list[Column]:
        """Return the columns of the rows that are placed."""
        joined = join_columns(self._columns, self.n_read)
        return [one.part(self.model.row_ids_[: self.n_placed]) for one in joined]

    def run(self, *, with_quality: bool, quiet: bool) -> FitResult:
        """Fit all batches; Ctrl-C stops at a point from which the model can be continued, and keeps the map."""
        with fitting.stage_bars(quiet) as bars, fitting.one_line_warnings(quiet):
            with fitting.stop_on_interrupt(bars, lambda: self.n_placed > 0):
                self._fit(bars)
            n, quality = self.n_placed, None
            if with_quality:
                labels = values_of(self.columns(), Role.LABEL)
                quality = fitting.measure_quality(self.model.rows_[:n], self.model, labels, bars, self.seconds)
        return FitResult(self.model.embedding_, self.seconds, quality, bars.stopped, self.model)

    def _fit(self, bars: ProgressBars) -> None:
        total, start, most = self.total, time.perf_counter(), 0
        for stage in fit_in_pieces(self.model, self._unread()):
            now = time.perf_counter()
            self.seconds[stage] = self.seconds.get(stage, 0.0) + now - start
            start = now
            self._save_state(due=bars.stopped or stage == POLISH)
            if bars.stopped:
                return
            if stage == READ:
                bars(READ, self.n_read, total or 0, None)
            elif stage == POLISH:
                self.model.set_params(callback=_polish_callback(bars))
            else:
                most = max(most, self.model.pending_)
                bars(stage, most - self.model.pending_, most, None)
        self.seconds[POLISH] += time.perf_counter() - start

    def _unread(self) -> Iterator[NDArray[np.float32]]:
        """Yield the rows that the model does not contain yet."""
        known = self.model.n_seen_ if hasattr(self.model, "n_seen_") else 0
        width = self.preparation.apply(self.first.X[:1]).shape[1]
        if known and width != self.model.n_features_in_:
            raise ReadError(f"{self.path} has {width} features, but the resumed run read {self.model.n_features_in_}")
        for table in chain([self.first], self._tables):
            begin = self.n_read
            self.n_read += len(table.X)
            self._columns.append(table.read_columns)
            if self.n_read > known:
                yield self.preparation.apply(table.X[max(known - begin, 0) :])
        if self.n_read < known:
            new = "; `vicinal update` adds the rows of a file that has only new ones"
            raise ReadError(f"{self.path} has {self.n_read} rows, but the resumed run read {known}{new}")

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
    *,
    file: options.Source,
    output: Annotated[Path | None, options.Output] = None,
    batch_rows: Annotated[int, typer.Option(metavar="N", min=1, help="Rows per batch.")] = BATCH_ROWS,
    columns: options.Chosen,
    more: options.MoreOutputs,
    save_state: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save the state every minute, to resume a stopped run.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Resume from a saved state, or from a model of the first rows, also UMAP's."),
    ] = None,
    window: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Keep the last N rows: older ones leave the map.")
    ] = None,
    shape: options.Shape,
    run: options.Run,
    port: options.Port = 0,
    browser: options.Browser = True,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> int:
    """Read a file in batches into a map that grows.

    Without an output, a local page shows the map while it grows; Ctrl-C stops it.

    With an output, the map is written when all rows are placed; Ctrl-C writes the rows placed so far.
    """
    spec = make_spec(Method.PROGRESSIVE, shape | {"batch_size": batch_rows, "window": window}, **run)
    outputs = OutputFiles(output, **more)
    # a run may save its state to the file that it resumes from
    state_to_check = None if save_state == resume else save_state
    outputs.check(file, shape["n_components"], force, save_state=state_to_check)
    if not outputs.any:
        if save_state is not None or resume is not None or window is not None:
            raise ValueError("--save-state, --resume and --window require an output, such as --output map.parquet")
        return _show(file, batch_rows, columns, spec, port=port, browser=browser)
    model = _resume(resume, spec) if resume else spec.build()
    fit = StreamFit(file, batch_rows, columns, model, save_state)
    announce_columns(fit.first, output, all_columns=False, quiet=quiet)
    result = fit.run(with_quality=outputs.report is not None, quiet=quiet)
    shape_read = len(result.embedding), model.n_features_in_
    Preparation(kept_choice(fit.first, columns), fit.preparation.steps).keep_in(result.model)
    document = report_of(str(file), shape_read, spec, result) | roles_of(fit.first.columns)
    outputs.write(result, fit.columns(), file, document, columns_line(fit.first.columns, fit.first.matrix))
    if not quiet:
        outputs.announce(result, shape_read)
    return INTERRUPTED if result.interrupted else 0


def _show(path: Path, batch_rows: int, columns: ColumnChoice, spec: EstimatorSpec, *, port: int, browser: bool) -> int:
    """Serve the page of a growing map; raise if the first batch of the file is invalid."""
    from vicinal.cli.page_commands import adjustable, serve_until_interrupted, server_of
    from vicinal.viewer.session import StreamSession

    n_components = spec.parameters["n_components"]
    if n_components != 2:
        raise ValueError(f"the page of a stream shows maps of 2 dimensions, but --n-components is {n_components}")
    first = next(tables_of(path, batch_rows, columns))
    session = StreamSession(
        lambda: tables_of(path, batch_rows, columns),
        spec.build,
        adjustable(spec),
        total=row_count(path, columns.form),
        title=path.stem,
        source=Preparation(kept_choice(first, columns)),
    )
    server = server_of(session, port)
    session.start()
    serve_until_interrupted(server, browser, columns_line(first.columns, first.matrix))
    return 0


def _resume(path: Path, spec: EstimatorSpec) -> Any:
    """Load the model of a saved state; its parameters cannot be changed."""
    import vicinal

    model = load_model(path)
    if isinstance(model, vicinal.UMAP):
        preparation, own = Preparation.of_model(model), ("batch_size", "window")
        try:
            model = model.to_progressive(**{name: spec.parameters[name] for name in own if name in spec.parameters})
        except ValueError as error:
            raise ValueError(f"--resume {path}: {error}") from error
        preparation.keep_in(model)
    if not isinstance(model, vicinal.ProgressiveUMAP):
        raise ValueError(f"--resume {path} contains a {type(model).__name__}; only UMAP and ProgressiveUMAP go on")
    defaults = signature(spec.method)
    for name, value in spec.parameters.items():
        if name not in ("n_jobs", "random_state") and value not in (defaults[name].default, getattr(model, name)):
            raise ValueError(f"{name} cannot be changed: {path} was made with {getattr(model, name)!r}")
    model.set_params(n_jobs=spec.parameters["n_jobs"])
    return model
