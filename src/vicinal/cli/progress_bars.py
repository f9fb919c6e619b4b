"""Progress bars of a fit with the remaining time, and warnings as single lines."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

STAGES = {
    "neighbors": "finding neighbors",
    "graph": "building the graph",
    "initialize": "initializing",
    "layout": "optimizing the layout",
    "train": "training",
    "read": "reading and placing rows",
    "rest": "settling the map",
    "polish": "polishing",
    "quality": "measuring quality",
    "reliability": "measuring reliability",
}


class ProgressBars:
    """Callback of an estimator that draws one progress bar per stage; returns True to stop once ``stopped`` is set."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.tasks: dict[str, TaskID] = {}
        self.stage = ""
        self.stopped = False

    def __call__(self, stage: str, epoch: int, n_epochs: int, embedding: object) -> bool:
        self.stage = stage
        if self.progress is None:
            return self.stopped
        # a stage with a single step has no measurable progress: rich draws a moving bar if the total is None
        total = n_epochs if n_epochs > 1 or epoch else None
        if stage not in self.tasks:
            self.finish()
            self.tasks[stage] = self.progress.add_task(STAGES.get(stage, stage), total=total)
        self.progress.update(self.tasks[stage], completed=epoch, total=total)
        return self.stopped

    def finish(self) -> None:
        """Fill the bars of all stages so far: a stage ends when the next one starts."""
        for task in self.tasks.values():
            if self.progress is not None:
                self.progress.update(task, completed=1, total=1)


@contextlib.contextmanager
def stage_bars(quiet: bool) -> Iterator[ProgressBars]:
    """Show progress bars on stderr if it is a terminal."""
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield ProgressBars(None)
        return
    columns = (
        *Progress.get_default_columns()[:3],
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        bars = ProgressBars(progress)
        yield bars
        bars.finish()


@contextlib.contextmanager
def one_line_warnings(quiet: bool) -> Iterator[None]:
    """Print the warnings of a successful run as single lines, without source code."""
    with warnings.catch_warnings(record=True) as caught:
        yield
    for text in dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught):
        if not quiet:
            print("warning:", text, file=sys.stderr)
