"""Sweeps of worker processes on one machine, which exchange places through files.

One task per worker runs many sweeps. After each it writes the places of its rows, and waits for those of the others.
Dask's scheduler has nothing to do between two checkpoints. The tasks give back their threads while they run, so that
the task of a lost worker, which starts from the last checkpoint, can run beside those that wait for it. Files of a
sweep have the same bits whoever writes them.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from vicinal.cluster.edges import Places, SweepPart, sweep_parts
from vicinal.cluster.engine import Engine
from vicinal.cluster.shelf import Kept, Shelf
from vicinal.cluster.sweeps import SpreadSweeps, keep_places

EXCHANGED_BYTES = 1 << 30  # of the files between two checkpoints
LONGEST_PAUSE = 2e-3  # seconds between two looks for a file


@dataclass(frozen=True)
class Exchange:
    """Files of places. Worker w writes those of the rows ``bounds[w] : bounds[w + 1]`` after every sweep."""

    directory: str
    bounds: tuple[int, ...]

    def write(self, worker: int, number: int, places: Places) -> None:
        """Write the places of a worker after a sweep."""
        path = self._path(worker, number)
        unfinished = f"{path}-{os.getpid()}-{threading.get_ident()}"
        try:
            with open(unfinished, "wb") as file:
                file.write(np.ascontiguousarray(places).data.cast("B"))
            os.replace(unfinished, path)
        except OSError as error:
            raise OSError(error.errno, f"{path} could not be written: {error.strerror}") from error

    def read(self, worker: int, number: int, places: Places) -> None:
        """Wait for the places of the other workers after a sweep, and write them into ``places``."""
        for other, (first, stop) in enumerate(pairwise(self.bounds)):
            if other != worker:
                path, target = self._path(other, number), places[first:stop].data.cast("B")
                self._wait_for(path)
                with open(path, "rb") as file:
                    if file.readinto(target) != len(target):
                        raise OSError(f"{path} does not hold the places of {stop - first} rows")

    def _path(self, worker: int, number: int) -> str:
        return os.path.join(self.directory, f"{number}-{worker}")

    def _wait_for(self, path: str) -> None:
        pause = LONGEST_PAUSE / 16
        while not os.path.exists(path):
            if not os.path.isdir(self.directory):
                raise InterruptedError(f"{self.directory} was removed: the layout has been given up")
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


class ProcessSweeps(SpreadSweeps):
    """The sweeps of processes that all read and write one directory of this machine."""

    def __init__(self, groups: list[list[Any]], start: list[Any], engine: Engine) -> None:
        super().__init__(groups, engine)
        self._kept = engine.values(start)
        rows = [sum(one.rows for one in group) for group in self._groups]
        self._bounds = tuple(np.cumsum([0, *rows]).tolist())
        columns = self._groups[0][0].rule.n_components
        self._most = max(1, EXCHANGED_BYTES // (4 * columns * self._bounds[-1]))

    def places(self) -> list[Any]:
        return self._kept

    def _run(self, count: int) -> None:
        engine, before = self._engine, self._kept
        assert engine.shelf.directory is not None
        exchange = Exchange(os.path.join(engine.shelf.directory, f"exchange-{self.number}"), self._bounds)
        os.mkdir(exchange.directory)
        tasks = [
            (_sweep_together, group, worker, (self.number, self.number + count), before, exchange, engine.shelf)
            for worker, group in enumerate(self._groups)
        ]
        self._kept = engine.gathered_at_home(tasks)
        shutil.rmtree(exchange.directory)
        for one in before:
            os.remove(f"{one.path}.places.npy")


def _sweep_together(
    parts: list[SweepPart], worker: int, numbers: tuple[int, int], before: list[Kept], exchange: Exchange, shelf: Shelf
) -> Kept:
    """Run some sweeps of the parts of a worker beside the tasks of the others; keep the places after the last."""
    from distributed import secede

    secede()
    places = np.concatenate([one.load("places") for one in before])
    first, last = exchange.bounds[worker], exchange.bounds[worker + 1]
    for number in range(*numbers):
        moved = sweep_parts(parts, number, places)
        if number + 1 < numbers[1]:
            exchange.write(worker, number, moved)
            places[first:last] = moved
            exchange.read(worker, number, places)
    return keep_places(moved, worker, numbers[1], shelf)
