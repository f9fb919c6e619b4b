"""The files that a command is asked for: checked before any work, written together after it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vicinal.cli.embedding import Embedded
from vicinal.cli.methods import Recipe
from vicinal.cli.writing import MAP_SUFFIXES, check_targets, write_map, write_picture, write_report
from vicinal.files.atomic import Outputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODEL_SUFFIX = ".vicinal"


@dataclass(frozen=True)
class Beside:
    """What a file has besides features: labels, columns that come along, and the names these go by."""

    labels: NDArray[Any] | None = None
    along: dict[str, NDArray[Any]] = field(default_factory=dict)
    label: str | None = None
    ids: str | None = None

    @property
    def row_ids(self) -> list[Any] | None:
        return None if self.ids is None else list(self.along[self.ids].tolist())

    @property
    def hover(self) -> dict[str, NDArray[Any]] | None:
        return {name: column for name, column in self.along.items() if name != self.ids} or None


@dataclass(frozen=True)
class Targets:
    """Where a map is to go, and in which forms."""

    output: Path | None = None
    png: Path | None = None
    html: Path | None = None
    report: Path | None = None
    model: Path | None = None

    @property
    def any(self) -> bool:
        return any(vars(self).values())

    def check(self, source: Path, n_components: int, force: bool, **more: tuple[Path | None, tuple[str, ...]]) -> None:
        """Refuses what could not be written; ``more`` are files written otherwise, by the names of their options."""
        for name, target in {"--png": self.png, "--html": self.html}.items():
            if target is not None and n_components != 2:
                raise ValueError(f"{name} shows maps of 2 dimensions, not {n_components}")
        wanted: dict[str, tuple[Path | None, tuple[str, ...]]] = {
            "--output": (self.output, MAP_SUFFIXES),
            "--png": (self.png, (".png",)),
            "--html": (self.html, (".html",)),
            "--report": (self.report, (".json",)),
            "--model": (self.model, (MODEL_SUFFIX,)),
        }
        others = {f"--{name.replace('_', '-')}": target for name, target in more.items()}
        check_targets(wanted | others, [source], force)

    def write(self, made: Embedded, beside: Beside, source: Path, shape: tuple[int, ...], recipe: Recipe) -> None:
        """All of them or none."""
        with Outputs() as outputs:
            if self.output is not None:
                write_map(outputs.staged(self.output), made.embedding, beside.labels, beside.along)
            if self.png is not None:
                write_picture(outputs.staged(self.png), made.embedding, beside.labels, None)
            if self.html is not None:
                _write_page(outputs.staged(self.html), made, beside, source.stem)
            if self.model is not None:
                save_model(made.model, outputs.staged(self.model))
            if self.report is not None:
                write_report(outputs.staged(self.report), str(source), shape, recipe, made)

    def named(self) -> str:
        """The files as a list for a message."""
        return ", ".join(str(path) for path in vars(self).values() if path is not None)


def save_model(model: Any, path: Path) -> None:
    from vicinal.files import models as model_io

    # the bars are of this process
    model.set_params(callback=None)
    if hasattr(model, "save"):
        model.save(path)
    else:
        model_io.save(model, path)


def _write_page(path: Path, made: Embedded, beside: Beside, title: str) -> None:
    from vicinal import viewer

    viewer.export(
        path,
        made.embedding,
        beside.labels,
        hover=beside.hover,
        ids=beside.row_ids,
        title=title,
        label=beside.label or "",
    )
