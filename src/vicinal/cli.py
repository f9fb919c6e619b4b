"""The command line: `vicinal demo` and `vicinal embed FILE -o OUT`.

Bad input is one line `error: …` on stderr and exit code 2. Outputs are written under temporary names beside
their final ones and renamed together at the end: a run that fails or is interrupted leaves what was there.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from vicinal.outputs import Outputs

# The package itself installs without these; main says how to get them. typer resolves the annotations of the
# commands below among this module's names, so it has to be one of them.
APP_PACKAGES = ("typer", "rich", "polars", "matplotlib")
with contextlib.suppress(ModuleNotFoundError):
    import typer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.progress import Progress, TaskID

    from vicinal.quality import QualityReport

BAD_INPUT = 2
INTERRUPTED = 130
STAGES = {
    "neighbors": "finding neighbours",
    "graph": "weighing the graph",
    "initialize": "initial map",
    "layout": "laying out",
    "quality": "measuring quality",
}
MAP_SUFFIXES = (".npy", ".csv", ".parquet")
LARGEST_SEED = 2**32 - 1
DEMO_SEED = 42


class Dataset(StrEnum):
    """What `demo` can show without a download."""

    DIGITS = "digits"
    IRIS = "iris"
    WINE = "wine"


TITLES = {Dataset.DIGITS: "Handwritten digits", Dataset.IRIS: "Iris flowers", Dataset.WINE: "Wines"}


@dataclass(frozen=True)
class Settings:
    """The estimator's parameters that the command line offers, by their names there."""

    n_neighbors: int = 15
    min_dist: float = 0.1
    n_components: int = 2
    metric: str = "euclidean"
    n_epochs: int | None = None
    random_state: int | None = DEMO_SEED
    n_jobs: int = -1

    def check(self) -> None:
        """Refuse what the option types let through."""
        if not math.isfinite(self.min_dist):
            raise ValueError(f"--min-dist must be finite, got {self.min_dist}")
        if self.n_jobs < -1 or self.n_jobs == 0:
            raise ValueError(f"--jobs must be positive, or -1 for all cores, got {self.n_jobs}")


@dataclass(frozen=True)
class Embedded:
    """A map with all that is worth telling about it."""

    embedding: NDArray[np.float32]
    seconds: dict[str, float]
    quality: QualityReport | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; nothing it meets becomes a traceback."""
    missing = [name for name in APP_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        return _fail(f"the command line needs {', '.join(missing)}: pip install 'vicinal[app]'")
    try:
        result = _command()(args=arguments, prog_name="vicinal", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        result = INTERRUPTED
    except Exception as error:
        return _fail(_explained(error))
    if result == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    return result if isinstance(result, int) else 0


def _explained(error: Exception) -> str:
    """One line for an exception; a bug is shown in full when VICINAL_TRACEBACK is set."""
    if os.environ.get("VICINAL_TRACEBACK"):
        raise error
    if hasattr(error, "format_message"):
        # a usage error of typer's; which package defines its class depends on typer's version
        return str(error.format_message())
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}"
    if isinstance(error, (ValueError, TypeError, NotImplementedError, ImportError)):
        return str(error) or type(error).__name__
    return f"unexpected {type(error).__name__}: {error} (VICINAL_TRACEBACK=1 shows where)"


def _fail(message: str) -> int:
    print("error:", " ".join(message.split()), file=sys.stderr)
    return BAD_INPUT


def _categories(labels: NDArray[Any] | None) -> NDArray[Any] | None:
    """Labels unless they are measurements: numbers with a fraction have no classes to vote or to list."""
    if labels is None or labels.dtype.kind != "f":
        return labels
    import numpy as np

    return None if (labels[np.isfinite(labels)] % 1 != 0).any() else labels


def _command() -> Any:
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(_root)
    app.command()(demo)
    app.command()(embed)
    return typer.main.get_command(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        import vicinal

        print(f"vicinal {vicinal.__version__}")
        raise typer.Exit


def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Maps of high-dimensional data: UMAP, fast and reproducible."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def demo(
    out: Annotated[Path, typer.Option(help="Directory to write to; made if need be.")] = Path("out"),
    dataset: Annotated[Dataset, typer.Option(help="What to embed.")] = Dataset.DIGITS,
) -> None:
    """Embed a data set that comes with scikit-learn; write map.html, map.png, embedding.csv and report.json."""
    from vicinal import viewer

    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file, not a directory")
    out.mkdir(parents=True, exist_ok=True)
    settings = Settings()
    X, labels, images = _bundled(dataset)
    made = _embedded(X, labels, settings, measured=True, quiet=False)
    with Outputs() as outputs:
        title = f"{dataset}: {X.shape[0]:,} rows of {X.shape[1]}"
        viewer.export(
            outputs.staged(out / "map.html"), made.embedding, labels, images=images, title=TITLES[dataset]
        )
        _write_picture(outputs.staged(out / "map.png"), made.embedding, labels, title)
        _write_map(outputs.staged(out / "embedding.csv"), made.embedding, labels)
        _write_report(outputs.staged(out / "report.json"), str(dataset), X.shape, settings, made)
    _show(made)
    print(f"wrote map.html, map.png, embedding.csv and report.json to {out}; open {out / 'map.html'} in a browser")


def embed(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Data: .npy, .csv, .tsv or .parquet, one row a point.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Map to write: .npy, .csv or .parquet.")],
    columns: Annotated[str | None, typer.Option(help="Columns to use, a,b,c; else all numeric ones.")] = None,
    label: Annotated[str | None, typer.Option(help="Column of labels: colours, not features.")] = None,
    png: Annotated[Path | None, typer.Option(help="Also draw the map.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also measure the map; write .json.")] = None,
    n_neighbors: Annotated[
        int, typer.Option(metavar="N", min=2, help="Neighbours of a point, itself included.")
    ] = 15,
    min_dist: Annotated[
        float, typer.Option(metavar="N", min=0.0, help="How close points may lie in the map.")
    ] = 0.1,
    n_components: Annotated[int, typer.Option(metavar="N", min=1, help="Dimensions of the map.")] = 2,
    metric: Annotated[str, typer.Option(help="Distance between rows of the data.")] = "euclidean",
    n_epochs: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Rounds of the layout; else by size.")
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, max=LARGEST_SEED, help="Same seed, same map.")
    ] = DEMO_SEED,
    jobs: Annotated[
        int, typer.Option(metavar="N", help="Threads; -1 for all cores. Does not change the map.")
    ] = -1,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Embed the rows of a file and write the map."""
    from vicinal.readers import read_table

    settings = Settings(n_neighbors, min_dist, n_components, metric, n_epochs, seed, jobs)
    settings.check()
    if png is not None and n_components != 2:
        raise ValueError(f"--png draws maps of 2 dimensions, not {n_components}")
    targets = {
        "--output": (output, MAP_SUFFIXES),
        "--png": (png, (".png",)),
        "--report": (report, (".json",)),
    }
    _check_targets({name: target for name, target in targets.items() if target[0]}, file, force)
    picked = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    table = read_table(file, columns=picked, label=label)
    made = _embedded(table.X, table.labels, settings, measured=report is not None, quiet=quiet)
    with Outputs() as outputs:
        _write_map(outputs.staged(output), made.embedding, table.labels)
        if png is not None:
            _write_picture(outputs.staged(png), made.embedding, table.labels, None)
        if report is not None:
            _write_report(outputs.staged(report), str(file), table.X.shape, settings, made)
    if not quiet:
        _show(made)
        skipped = f", ignoring {len(table.ignored)} other column(s)" if table.ignored else ""
        print(f"wrote {output} from {table.X.shape[0]:,} rows of {table.X.shape[1]} columns{skipped}")


def _check_targets(
    targets: dict[str, tuple[Path | None, tuple[str, ...]]], source: Path, force: bool
) -> None:
    """Refuse before any work what could not be written after it."""
    seen = {source.resolve(): "the input"}
    for name, (path, suffixes) in targets.items():
        assert path is not None
        if path.suffix.lower() not in suffixes:
            raise ValueError(f"{name} {path} must end in {' or '.join(suffixes)}")
        if path.is_dir():
            raise ValueError(f"{name} {path} is a directory")
        if not path.resolve().parent.is_dir():
            raise ValueError(f"{name} {path} is in a directory that does not exist")
        if path.resolve() in seen:
            raise ValueError(f"{name} {path} is the same file as {seen[path.resolve()]}")
        seen[path.resolve()] = name
        if path.exists() and not force:
            raise ValueError(f"{name} {path} exists; --force replaces it")
        if not os.access(path.resolve().parent, os.W_OK):
            raise ValueError(f"{name} {path} is in a directory that cannot be written to")


def _bundled(dataset: Dataset) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[Any] | None]:
    import numpy as np
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{dataset}")()
    X = np.ascontiguousarray(bunch.data, dtype=np.float32)
    if dataset is Dataset.WINE:
        # thirteen measurements in as many units: one column would outweigh the rest
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, bunch.target_names[bunch.target], bunch.get("images")


def _embedded(
    X: NDArray[np.float32], labels: NDArray[Any] | None, settings: Settings, *, measured: bool, quiet: bool
) -> Embedded:
    import vicinal
    from vicinal import quality

    with _stage_bars(quiet) as bars, _one_line_warnings(quiet):
        # without a bar to move, the estimator is spared a report of every epoch
        model = vicinal.UMAP(**asdict(settings), callback=None if bars.progress is None else bars)
        model.fit(X)
        seconds = {stage: float(spent) for stage, spent in model.stage_times_.items()}
        found = None
        if measured:
            bars("quality", 0, 0, None)
            start = time.perf_counter()
            found = quality.report(X, model.embedding_, _categories(labels), metric=settings.metric)
            seconds["quality"] = time.perf_counter() - start
    return Embedded(model.embedding_, seconds, found)


class _Bars:
    """The estimator's callback as one progress bar a stage; without `progress` it does nothing."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.tasks: dict[str, TaskID] = {}

    def __call__(self, stage: str, epoch: int, n_epochs: int, embedding: object) -> bool:
        if self.progress is None:
            return False
        # a stage of one step cannot say how far it is: rich draws a moving bar for a total of None
        total = n_epochs if n_epochs > 1 or epoch else None
        if stage not in self.tasks:
            self.finish()
            self.tasks[stage] = self.progress.add_task(STAGES.get(stage, stage), total=total)
        self.progress.update(self.tasks[stage], completed=epoch, total=total)
        return False

    def finish(self) -> None:
        """Fill the bars so far: a stage has ended when the next begins."""
        for task in self.tasks.values():
            if self.progress is not None:
                self.progress.update(task, completed=1, total=1)


@contextlib.contextmanager
def _stage_bars(quiet: bool) -> Iterator[_Bars]:
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield _Bars(None)
        return
    columns = (
        *Progress.get_default_columns()[:3],
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        bars = _Bars(progress)
        yield bars
        bars.finish()


@contextlib.contextmanager
def _one_line_warnings(quiet: bool) -> Iterator[None]:
    """Show the warnings of a run that succeeded as lines without source code."""
    with warnings.catch_warnings(record=True) as caught:
        yield
    for text in dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught):
        if not quiet:
            print("warning:", text, file=sys.stderr)


def _write_map(path: Path, embedding: NDArray[np.float32], labels: NDArray[Any] | None) -> None:
    import numpy as np
    import polars as pl

    if path.suffix.lower() == ".npy":
        np.save(path, embedding)
        return
    width = embedding.shape[1]
    names = ["x", "y", "z"][:width] if width <= 3 else [f"d{a + 1}" for a in range(width)]
    frame = pl.DataFrame({name: embedding[:, a] for a, name in enumerate(names)})
    if labels is not None:
        frame = frame.with_columns(pl.Series("label", labels.tolist()))
    if path.suffix.lower() == ".csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path)


def _write_picture(
    path: Path, embedding: NDArray[np.float32], labels: NDArray[Any] | None, title: str | None
) -> None:
    # Figure rather than pyplot: no window system is asked for, no global state is left
    from matplotlib.figure import Figure

    from vicinal import plot

    axes = Figure(figsize=plot.FIGURE_INCHES, layout="constrained").add_subplot()
    classes = _categories(labels)
    values = labels if classes is None else None
    plot.save(path, plot.points(embedding, classes, values, ax=axes, title=title))


def _write_report(
    path: Path, source: str, shape: tuple[int, ...], settings: Settings, made: Embedded
) -> None:
    import vicinal

    document = {
        "vicinal": vicinal.__version__,
        "source": source,
        "rows": shape[0],
        "columns": shape[1],
        "parameters": asdict(settings),
        "seconds": {stage: round(spent, 4) for stage, spent in made.seconds.items()},
        "quality": None if made.quality is None else made.quality.as_dict(),
    }
    path.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _show(made: Embedded) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if made.quality is not None:
        table = Table("quality", title_justify="left")
        table.add_column("value", justify="right")
        for name, value in made.quality.measures().items():
            table.add_row(name, "-" if value is None else f"{value:.4f}")
        console.print(table)
        for note in made.quality.notes:
            console.print(f"note: {note}", markup=False)
    table = Table("stage")
    table.add_column("seconds", justify="right")
    for stage, spent in made.seconds.items():
        table.add_row(STAGES.get(stage, stage), f"{spent:.2f}")
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
