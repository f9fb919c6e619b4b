"""Write maps, pictures and reports, and print tables to the terminal."""

from __future__ import annotations

import io
import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vicinal.cli.fitting import STAGES, FitResult
from vicinal.cli.methods import EstimatorSpec
from vicinal.files.atomic import StagedFiles
from vicinal.files.data_table import Column, Role
from vicinal.files.spreadsheets import inert_frame

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from vicinal.quality import QualityReport, Reliability


MODEL_SUFFIX = ".vicinal"
ANNOTATED = ".h5ad"
# The file names that each option accepts.
SUFFIXES: dict[str, tuple[str, ...]] = {
    "output": (".npy", ".csv", ".parquet", ANNOTATED),
    "png": (".png",),
    "html": (".html",),
    "report": (".json",),
    "model": (MODEL_SUFFIX,),
    "save_state": (MODEL_SUFFIX,),
}
STDOUT = Path("-")


@dataclass(frozen=True)
class OutputFiles:
    """The paths of the requested outputs, one per format, and what the page shows beside the columns.

    Picture and page show the rows of the table, unless ``drawn`` has a whole map and its columns.
    """

    output: Path | None = None
    png: Path | None = None
    html: Path | None = None
    report: Path | None = None
    model: Path | None = None
    on_page: Mapping[str, Any] | None = None
    drawn: tuple[NDArray[np.float32], Sequence[Column]] | None = None

    @property
    def paths(self) -> dict[str, Path | None]:
        return {name: path for name, path in vars(self).items() if name not in ("on_page", "drawn")}

    @property
    def any(self) -> bool:
        return any(self.paths.values())

    def check(self, source: Path, n_components: int, force: bool, **more: Path | None) -> None:
        """Raise if an output, or one of ``more`` by option name, cannot be written."""
        for name, path, able in (("--png", self.png, (2,)), ("--html", self.html, (2, 3))):
            if path is not None and n_components not in able:
                widths = " or ".join(map(str, able))
                raise ValueError(f"{name} requires a map of {widths} dimensions, but --n-components is {n_components}")
        check_outputs(self.paths | more, [source], force)

    def write(
        self,
        result: FitResult,
        columns: Sequence[Column],
        source: Path,
        report: Mapping[str, Any],
        about: str = "",
    ) -> None:
        """Write all outputs of the rows of ``source``, or none if one fails.

        ``about`` says what the columns of the file are used for.
        """
        with StagedFiles() as staged:
            measured = _reliability_columns(result.reliability, columns)
            if self.output is not None:
                path = self.output if self.output == STDOUT else staged.path_for(self.output)
                if path.suffix.lower() == ANNOTATED:
                    _write_annotated(source, path, result)
                else:
                    write_map(path, result.embedding, columns, measured)
            places, beside = self.drawn or (result.embedding, [*columns, *measured])
            if self.png is not None:
                write_picture(staged.path_for(self.png), places, columns if self.drawn is None else beside, None)
            if self.html is not None:
                shown = {"columns": beside, "title": source.stem, "about": about}
                self._write_page(staged.path_for(self.html), replace(result, embedding=places), shown)
            if self.model is not None:
                save_model(result.model, staged.path_for(self.model))
            if self.report is not None:
                write_report(staged.path_for(self.report), report)

    def _write_page(self, path: Path, result: FitResult, shown: Mapping[str, Any]) -> None:
        from vicinal.viewer.export import neighbor_table, write_page
        from vicinal.viewer.packing import has_neighbors, pack
        from vicinal.viewer.relayout import size_line, with_layout

        on_page = self.on_page or {}
        near = on_page.get("neighbors")
        if near is not None and not has_neighbors(result.model):
            print(f"a {type(result.model).__name__} keeps no neighbors: the page shows none", file=sys.stderr)
            near = None
        table = neighbor_table(result.model, near)
        packed = pack(result.embedding, **shown, images=on_page.get("images"), neighbors=table)
        if on_page.get("interactive"):
            packed = with_layout(packed, result.model, True)
            print(size_line(packed), file=sys.stderr)
        write_page(path, packed)

    def announce(self, result: FitResult, shape: tuple[int, ...], matrix: str = "") -> None:
        """Print the measures, the times and the paths, unless the map goes to standard output.

        ``matrix`` names the features, if the file has several matrices.
        """
        if self.output == STDOUT:
            return
        print_result(result)
        paths = ", ".join(str(path) for path in self.paths.values() if path is not None)
        which = f" of {matrix}" if matrix else ""
        print(f"wrote {paths} from {shape[0]:,} rows of {shape[1]} columns{which}")


def _reliability_columns(found: Reliability | None, columns: Sequence[Column]) -> list[Column]:
    """Return the reliability and the trust of every row, unless columns of these names exist."""
    if found is None:
        return []
    taken = {column.name for column in columns}
    added = [Column("reliability", Role.VALUE, found.reliability), Column("trust", Role.DISPLAY, found.explained())]
    return [column for column in added if column.name not in taken]


def _write_annotated(source: Path, path: Path, result: FitResult) -> None:
    """Write an AnnData file with the content of ``source``, the map and what was measured, by the names of tl.umap."""
    from vicinal.files.annotated_files import write_h5ad

    basis, judged = type(result.model).__name__.lower(), result.reliability
    key = f"{basis}_reliability"
    measured = {} if judged is None else {key: judged.reliability, f"{key}_label": judged.label}
    params = {name: value for name in ("a", "b") if (value := getattr(result.model, f"_{name}", None)) is not None}
    if hasattr(result.model, "perplexity_"):
        params["perplexity"] = result.model.perplexity_
    write_h5ad(source, path, basis, result.embedding, params, measured)


def pictures_of(X: NDArray[np.float32], size: str | None) -> NDArray[np.float32] | None:
    """Return the rows as pictures of a size such as 28x28 or 32x32x3; None without a size."""
    if size is None:
        return None
    parts = size.lower().split("x")
    sides = [int(part) for part in parts if part.isdigit()]
    if len(sides) != len(parts) or len(sides) not in (2, 3) or math.prod(sides) != X.shape[1]:
        raise ValueError(
            f"--images {size}: must be HEIGHTxWIDTH, with a product of {X.shape[1]}, the number of features"
        )
    return X.reshape(len(X), *sides)


def save_model(model: Any, path: Path) -> None:
    """Save a model without its callback, the progress bars of this process."""
    model.set_params(callback=None)
    model.save(path)


def check_outputs(
    outputs: Mapping[str, Path | None],
    sources: list[Path],
    force: bool,
    suffixes: Mapping[str, tuple[str, ...]] = SUFFIXES,
) -> None:
    """Raise if an output cannot be written: wrong suffix, existing file, missing directory or no permission."""
    seen = {source.resolve(): "the input" for source in sources}
    for option, path in outputs.items():
        able, name = suffixes[option], f"--{option.replace('_', '-')}"
        if path is None or (option == "output" and path == STDOUT and ".csv" in able):
            continue
        if path.suffix.lower() not in able:
            raise ValueError(f"{name} {path}: the file name must end in {' or '.join(able)}")
        if path.suffix.lower() == ANNOTATED and sources[-1].suffix.lower() != ANNOTATED:
            raise ValueError(f"{name} {path}: an .h5ad file can be written only if the rows are read from one")
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
        made = io.BytesIO()
        np.save(made, embedding)
        path.write_bytes(made.getbuffer())
        return
    width = embedding.shape[1]
    names = ["x", "y", "z"][:width] if width <= 3 else [f"d{a + 1}" for a in range(width)]
    before = [column for column in columns if column.role in (Role.ID, Role.VALUE, Role.DISPLAY)]
    after = [column for column in columns if column.role is Role.LABEL] + list(measured)
    written: dict[str, Any] = {_free(one.name, names): np.asarray(one.values).tolist() for one in before}
    written |= {name: embedding[:, a] for a, name in enumerate(names)}
    written |= {_free(one.name, names): np.asarray(one.values).tolist() for one in after}
    write_frame(path, pl.DataFrame(written, infer_schema_length=None))


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Write a table as .csv, without formulas, or as .parquet."""
    if path == STDOUT:
        sys.stdout.write(inert_frame(frame).write_csv())
        return
    # in memory first: polars reports a full disk in different ways, or not by its name
    made = io.BytesIO()
    (inert_frame(frame).write_csv if path.suffix.lower() == ".csv" else frame.write_parquet)(made)
    path.write_bytes(made.getbuffer())


def _free(name: str, taken: Sequence[str]) -> str:
    """Return the name of a column in an output whose coordinates have the names ``taken``."""
    return f"{name} (data)" if name in taken else name


def write_picture(path: Path, embedding: NDArray[np.float32], columns: Sequence[Column], title: str | None) -> None:
    """Write a picture of a map, colored by its labels or by the first of its values, with the names of its areas."""
    from vicinal import plot
    from vicinal.viewer.pictures import draw_map

    plot.save(path, draw_map(embedding, columns, title))


def report_of(source: str, shape: tuple[int, ...], spec: EstimatorSpec, result: FitResult) -> dict[str, Any]:
    """Return the report of a fit."""
    import vicinal

    return {
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


def write_report(path: Path, document: Mapping[str, Any]) -> None:
    """Write a report as JSON."""
    path.write_text(json.dumps(document, indent=2, allow_nan=False, default=str) + "\n", encoding="utf-8")


def print_table(head: tuple[str, str], rows: Iterable[tuple[str, str]], *, numbers: bool = False, **look: Any) -> None:
    """Print a table of two columns; ``numbers`` are aligned to the right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(head[0], **look)
    table.add_column(head[1], justify="right" if numbers else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def print_quality(report: QualityReport) -> None:
    """Print the measures of a report and its notes."""
    measures = report.measures().items()
    rows = ((name, "-" if value is None else f"{value:.4f}") for name, value in measures)
    print_table(("quality", "value"), rows, numbers=True)
    for note in report.notes:
        print("note:", note)


def print_result(result: FitResult) -> None:
    """Print what was measured, and the time of each stage."""
    if result.quality is not None:
        print_quality(result.quality)
    if result.reliability is not None:
        print(result.reliability)
    rows = ((STAGES.get(stage, stage), f"{spent:.2f}") for stage, spent in result.seconds.items())
    print_table(("stage", "seconds"), rows, numbers=True)
