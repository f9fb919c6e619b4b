"""The output files of a command: checked before any work, written together afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vicinal.cli.fitting import FitResult
from vicinal.cli.methods import EstimatorSpec
from vicinal.cli.writing import MAP_SUFFIXES, check_outputs, write_map, write_picture, write_report
from vicinal.files.atomic import StagedFiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODEL_SUFFIX = ".vicinal"


@dataclass(frozen=True)
class RowMetadata:
    """Labels and extra columns of the rows, and the names of the label and id columns."""

    labels: NDArray[Any] | None = None
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)
    label_name: str | None = None
    id_name: str | None = None

    @property
    def ids(self) -> list[Any] | None:
        return None if self.id_name is None else list(self.columns[self.id_name].tolist())

    @property
    def hover(self) -> dict[str, NDArray[Any]] | None:
        return {name: column for name, column in self.columns.items() if name != self.id_name} or None


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
        for name, path in {"--png": self.png, "--html": self.html}.items():
            if path is not None and n_components != 2:
                raise ValueError(f"{name} requires a 2-dimensional map, but --n-components is {n_components}")
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
            if self.output is not None:
                write_map(staged.path_for(self.output), result.embedding, metadata.labels, metadata.columns)
            if self.png is not None:
                write_picture(staged.path_for(self.png), result.embedding, metadata.labels, None)
            if self.html is not None:
                _write_page(staged.path_for(self.html), result, metadata, source.stem)
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
    from vicinal import viewer

    viewer.export(
        path,
        result.embedding,
        metadata.labels,
        hover=metadata.hover,
        ids=metadata.ids,
        title=title,
        label=metadata.label_name or "",
    )
