"""The most memory that a worker had while tasks of each name ran."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cluster_watch import highest_bytes
from distributed import WorkerPlugin


class TaskPeaks(WorkerPlugin):
    """A plugin of a worker: the most memory that it had while tasks of each name ran, if one ran at a time.

    The kernel keeps the largest resident size of a process, which is set back before every task.
    """

    name = "task-peaks"

    def setup(self, worker: Any) -> None:
        self.peaks: dict[str, int] = {}

    def teardown(self, worker: Any) -> None:
        pass

    def transition(self, key: Any, start: str, finish: str, **kwargs: Any) -> None:
        if finish == "executing":
            Path("/proc/self/clear_refs").write_text("5")
        elif start == "executing":
            name = str(key).rsplit("-", 1)[0]
            self.peaks[name] = max(self.peaks.get(name, 0), highest_bytes())


def task_peaks(dask_worker: Any) -> dict[str, int]:
    return dict(dask_worker.plugins[TaskPeaks.name].peaks)
