"""The output files of a command: checked before any work, written together afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vicinal.cli.fitting import FitResult
from vicinal.cli.methods import EstimatorSpec
from vicinal.cli.rows import RowMetadata
from vicinal.cli.writing import MAP_SUFFIXES, check_outputs, is_stdout, write_map, write_picture, write_report
from vicinal.files.atomic import StagedFiles

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
        self, result: FitResult, metadata: RowMetadata, source: Path, shape: tuple[int, ...], spec: EstimatorSpec
    ) -> None:
        """Write all outputs, or none if one fails."""
        with StagedFiles() as staged:
            judged = metadata.with_reliability(result.reliability)
            if self.output is not None:
                path = self.output if is_stdout(self.output) else staged.path_for(self.output)
                measured = {name: judged.columns[name] for name in judged.columns if name not in metadata.columns}
                write_map(path, result.embedding, metadata.labels, metadata.columns, measured)
            if self.png is not None:
                write_picture(staged.path_for(self.png), result.embedding, metadata.labels, None, metadata.values)
            if self.html is not None:
                _write_page(staged.path_for(self.html), result, judged, source.stem)
            if self.model is not None:
                save_model(result.model, staged.path_for(self.model))
            if self.report is not None:
                write_report(staged.path_for(self.report), str(source), shape, spec, result)

    def listed(self) -> str:
        """Return the paths as a list for a message."""
        return ", ".join(str(path) for path in vars(self).values() if path is not None)


def save_model(model: Any, path: Path) -> None:
    """Save a model without its callback, the progress bars of this process."""
    model.set_params(callback=None)
    model.save(path)


def _write_page(path: Path, result: FitResult, metadata: RowMetadata, title: str) -> None:
    from vicinal.viewer.export import write_page
    from vicinal.viewer.packing import pack

    write_page(path, pack(result.embedding, metadata.page_columns(), title=title))
