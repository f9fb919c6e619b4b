"""Write maps, pictures and reports, and print tables to the terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vicinal.cli.fitting import STAGES, FitResult, categories
from vicinal.cli.methods import EstimatorSpec
from vicinal.files.atomic import StagedFiles
from vicinal.files.data_table import Column, Role, values_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vicinal.quality import QualityReport, Reliability


MODEL_SUFFIX = ".vicinal"


@dataclass(frozen=True)
class OutputFiles:
    """The paths of the requested outputs, one per format."""

    output: Path | None = None
    png: Path | None = None
    html: Path | None = None
    report: Path | None = None
    model: Path | None = None

    @property
    def any(self) -> bool:
        return any(vars(self).values())

    def check(self, source: Path, n_components: int, force: bool, **more: tuple[Path | None, tuple[str, ...]]) -> None:
        """Raise if an output cannot be written; ``more`` has further paths and suffixes by option name."""
        for name, path, able in (("--png", self.png, (2,)), ("--html", self.html, (2, 3))):
            if path is not None and n_components not in able:
                widths = " or ".join(map(str, able))
                raise ValueError(f"{name} requires a map of {widths} dimensions, but --n-components is {n_components}")
        outputs: dict[str, tuple[Path | None, tuple[str, ...]]] = {
            "--output": (self.output, MAP_SUFFIXES),
            "--png": (self.png, (".png",)),
            "--html": (self.html, (".html",)),
            "--report": (self.report, (".json",)),
            "--model": (self.model, (MODEL_SUFFIX,)),
        }
        others = {f"--{name.replace('_', '-')}": path for name, path in more.items()}
        check_outputs(outputs | others, [source], force)

    def write(
        self,
        result: FitResult,
        columns: Sequence[Column],
        source: Path,
        shape: tuple[int, ...],
        spec: EstimatorSpec,
    ) -> None:
        """Write all outputs, or none if one fails."""
        with StagedFiles() as staged:
            measured = _reliability_columns(result.reliability, columns)
            if self.output is not None:
                path = self.output if is_stdout(self.output) else staged.path_for(self.output)
                write_map(path, result.embedding, columns, measured)
            if self.png is not None:
                write_picture(staged.path_for(self.png), result.embedding, columns, None)
            if self.html is not None:
                from vicinal.viewer.export import write_page
                from vicinal.viewer.packing import pack

                packed = pack(result.embedding, [*columns, *measured], title=source.stem)
                write_page(staged.path_for(self.html), packed)
            if self.model is not None:
                save_model(result.model, staged.path_for(self.model))
            if self.report is not None:
                write_report(staged.path_for(self.report), str(source), shape, spec, result)

    def listed(self) -> str:
        """Return the paths as a list for a message."""
        return ", ".join(str(path) for path in vars(self).values() if path is not None)


def _reliability_columns(found: Reliability | None, columns: Sequence[Column]) -> list[Column]:
    """Return the reliability and the trust of every row, unless columns of these names exist."""
    if found is None:
        return []
    taken = {column.name for column in columns}
    added = [Column("reliability", Role.VALUE, found.reliability), Column("trust", Role.DISPLAY, found.label)]
    return [column for column in added if column.name not in taken]


def save_model(model: Any, path: Path) -> None:
    """Save a model without its callback, the progress bars of this process."""
    model.set_params(callback=None)
    model.save(path)


MAP_SUFFIXES = (".npy", ".csv", ".parquet")
STDOUT = Path("-")


def is_stdout(path: Path | None) -> bool:
    """Return whether an output goes to standard output."""
    return path == STDOUT


def check_outputs(outputs: Mapping[str, tuple[Path | None, tuple[str, ...]]], sources: list[Path], force: bool) -> None:
    """Raise if an output cannot be written: wrong suffix, existing file, missing directory or no permission."""
    seen = {source.resolve(): "the input" for source in sources}
    for name, (path, suffixes) in outputs.items():
        if path is None or (name == "--output" and is_stdout(path) and ".csv" in suffixes):
            continue
        if path.suffix.lower() not in suffixes:
            raise ValueError(f"{name} {path}: the file name must end in {' or '.join(suffixes)}")
        if path.is_dir():
            raise ValueError(f"{name} {path} is a directory")
        if not path.resolve().parent.is_dir():
            raise ValueError(f"{name} {path}: the directory does not exist")
        if path.resolve() in seen:
            raise ValueError(f"{name} {path} is the same file as {seen[path.resolve()]}")
        seen[path.resolve()] = name
        if path.exists() and not force:
            raise ValueError(f"{name} {path} already exists; use --force to replace it")
        if not os.access(path.resolve().parent, os.W_OK):
            raise ValueError(f"{name} {path}: the directory is not writable")


def write_map(
    path: Path, embedding: NDArray[np.float32], columns: Sequence[Column], measured: Sequence[Column] = ()
) -> None:
    """Write a map as .npy, .csv or .parquet; tables also contain the columns other than features, ``measured`` last."""
    import numpy as np
    import polars as pl

    if path.suffix.lower() == ".npy":
        np.save(path, embedding)
        return
    width = embedding.shape[1]
    names = ["x", "y", "z"][:width] if width <= 3 else [f"d{a + 1}" for a in range(width)]
    beside = (Role.ID, Role.VALUE, Role.DISPLAY)
    written = {column.name: _listed(column) for column in columns if column.role in beside}
    frame = pl.DataFrame(written | {name: embedding[:, a] for a, name in enumerate(names)})
    labels = [pl.Series("label", _listed(column)) for column in columns if column.role is Role.LABEL]
    frame = frame.with_columns(labels + [pl.Series(column.name, _listed(column)) for column in measured])
    if is_stdout(path):
        sys.stdout.write(frame.write_csv())
    elif path.suffix.lower() == ".csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path)


def _listed(column: Column) -> list[Any]:
    return [] if column.values is None else list(column.values.tolist())


def write_picture(path: Path, embedding: NDArray[np.float32], columns: Sequence[Column], title: str | None) -> None:
    """Write a picture of a map, colored by its labels or by the first of its values."""
    # Figure instead of pyplot: needs no display and leaves no global state
    from matplotlib.figure import Figure

    from vicinal import plot
    from vicinal.plot.look import OWN

    figure = Figure(figsize=plot.FIGURE_INCHES, layout="constrained")
    figure.set_gid(OWN)
    axes = figure.add_subplot()
    labels = values_of(columns, Role.LABEL)
    classes = categories(labels)
    numbers = values_of(columns, Role.VALUE) if labels is None else labels if classes is None else None
    plot.save(path, plot.points(embedding, classes, numbers, ax=axes, title=title))


def write_report(path: Path, source: str, shape: tuple[int, ...], spec: EstimatorSpec, result: FitResult) -> None:
    import vicinal

    document = {
        "vicinal": vicinal.__version__,
        "source": source,
        "rows": shape[0],
        "columns": shape[1],
        "method": str(spec.method),
        "parameters": spec.parameters,
        "seconds": {stage: round(spent, 4) for stage, spent in result.seconds.items()},
        "quality": None if result.quality is None else result.quality.as_dict(),
        "reliability": None if result.reliability is None else result.reliability.summary(),
    }
    write_json(path, document)


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2, allow_nan=False, default=str) + "\n", encoding="utf-8")


def print_quality(report: QualityReport) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table("quality", title_justify="left")
    table.add_column("value", justify="right")
    for name, value in report.measures().items():
        table.add_row(name, "-" if value is None else f"{value:.4f}")
    console.print(table)
    for note in report.notes:
        console.print(f"note: {note}", markup=False)


def print_result(result: FitResult) -> None:
    from rich.console import Console
    from rich.table import Table

    if result.quality is not None:
        print_quality(result.quality)
    if result.reliability is not None:
        print(result.reliability)
    table = Table("stage")
    table.add_column("seconds", justify="right")
    for stage, spent in result.seconds.items():
        table.add_row(STAGES.get(stage, stage), f"{spent:.2f}")
    Console().print(table)
