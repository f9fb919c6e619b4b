"""Progress of a fit as bars with the time left, and warnings as single lines."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

STAGES = {
    "neighbors": "finding neighbours",
    "graph": "weighing the graph",
    "initialize": "initial map",
    "layout": "laying out",
    "train": "training",
    "read": "placing rows",
    "rest": "coming to rest",
    "polish": "polishing",
    "quality": "measuring quality",
}


class Bars:
    """The estimator's callback as one progress bar a stage; it answers true once `stopped` is set."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.tasks: dict[str, TaskID] = {}
        self.stage = ""
        self.stopped = False

    def __call__(self, stage: str, epoch: int, n_epochs: int, embedding: object) -> bool:
        self.stage = stage
        if self.progress is None:
            return self.stopped
        # a stage of one step cannot say how far it is: rich draws a moving bar for a total of None
        total = n_epochs if n_epochs > 1 or epoch else None
        if stage not in self.tasks:
            self.finish()
            self.tasks[stage] = self.progress.add_task(STAGES.get(stage, stage), total=total)
        self.progress.update(self.tasks[stage], completed=epoch, total=total)
        return self.stopped

    def finish(self) -> None:
        """Fill the bars so far: a stage has ended when the next begins."""
        for task in self.tasks.values():
            if self.progress is not None:
                self.progress.update(task, completed=1, total=1)


@contextlib.contextmanager
def stage_bars(quiet: bool) -> Iterator[Bars]:
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield Bars(None)
        return
    columns = (
        *Progress.get_default_columns()[:3],
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        bars = Bars(progress)
        yield bars
        bars.finish()


@contextlib.contextmanager
def one_line_warnings(quiet: bool) -> Iterator[None]:
    """Show the warnings of a run that succeeded as lines without source code."""
    with warnings.catch_warnings(record=True) as caught:
        yield
    for text in dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught):
        if not quiet:
            print("warning:", text, file=sys.stderr)
