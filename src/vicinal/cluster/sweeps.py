"""Sweeps over parts of the rows: each reads a snapshot of all places, which is exchanged between them.

``groups`` are the prepared edges of each worker (:class:`~vicinal.cluster.edges.SweepPart`).
"""

from __future__ import annotations

import time
from functools import partial
from itertools import chain
from typing import Any

import dask
import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray

from vicinal.cluster.edges import EdgeCache, Places, SweepPart, sweep_parts
from vicinal.cluster.engine import Engine, new_key, task
from vicinal.cluster.shelf import Kept, Shelf

# Places are checkpointed about every CHECKPOINT_SECONDS; a graph of tasks has at most MOST_TASKS.
CHECKPOINT_SECONDS, MOST_TASKS = 15.0, 4_000


class LocalSweeps:
    """The sweeps of one process: parts one after the other, each with all threads."""

    def __init__(self, groups: list[list[Any]], start: list[Any], engine: Engine) -> None:
        self._parts: list[SweepPart] = engine.values(list(chain(*groups)))
        self._places = np.concatenate([load_places(one) for one in engine.values(start)])
        self._cache = EdgeCache()
        self.number = 0

    def places(self) -> list[Any]:
        return [_held(self._places.copy())]

    def run_to(self, stop: int) -> None:
        """Run the sweeps up to the number ``stop``."""
        after = np.empty_like(self._places)
        while self.number < stop:
            first = 0
            for part in self._parts:
                moved = part.sweep(self._places, self.number, self._cache)
                after[first : first + len(moved)] = moved
                first += len(moved)
            self._places, after = after, self._places
            self.number += 1


class SpreadSweeps:
    """The sweeps of several workers, some at a time: if a worker is lost, those since the last checkpoint are repeated.

    ``_most`` is the largest number of sweeps between two checkpoints.
    """

    _most: int

    def __init__(self, groups: list[list[Any]], engine: Engine) -> None:
        self._groups, self._engine = groups, engine
        self._count = 4
        self.number = 0

    def run_to(self, stop: int) -> None:
        """Run the sweeps up to the number ``stop``."""
        while self.number < stop:
            count = min(stop - self.number, self._count)
            begin = time.perf_counter()
            self._run(count)
            self.number += count
            pace = (time.perf_counter() - begin) / count
            self._count = int(np.clip(CHECKPOINT_SECONDS / max(pace, 1e-4), 1, self._most))

    def _run(self, count: int) -> None:
        raise NotImplementedError


class TaskSweeps(SpreadSweeps):
    """Sweeps of workers on several machines: in every sweep one task per worker, which takes the places of all rows.

    A checkpoint is written to files, or without a common directory held by two workers.
    """

    def __init__(self, groups: list[list[Any]], start: list[Any], engine: Engine) -> None:
        super().__init__(groups, engine)
        self._most = max(1, MOST_TASKS // len(groups))
        if engine.shelf.directory is not None:
            self._groups = [engine.run([engine.share(one) for one in group]) for group in groups]
        self._places = engine.run([task(load_places, "start")(one) for one in start])

    def places(self) -> list[Any]:
        return [task(_held, "places")(one) for one in self._places]

    def _run(self, count: int) -> None:
        name = new_key("sweep")
        graph: dict[str, Any] = {}
        for held in (*chain(*self._groups), *self._places):
            graph |= dict(held.__dask_graph__())
        before = [held.key for held in self._places]
        for number in range(self.number, self.number + count):
            after = [f"{name}-{number}-{worker}" for worker in range(len(self._groups))]
            for key, group in zip(after, self._groups, strict=True):
                graph[key] = (_sweep_task, [part.key for part in group], number, before)
            before = after
        with dask.annotate(workers=partial(_home, workers=self._engine.workers), allow_other_workers=True):
            self._places = self._checkpointed([Delayed(key, graph) for key in before], self.number + count)

    def _checkpointed(self, places: list[Any], number: int) -> list[Any]:
        engine = self._engine
        if engine.shelf.directory is None:
            kept = engine.run(places)
            engine.client.replicate(kept, n=min(2, len(engine.workers)))
            return kept
        # Known here, so that places that are lost are read again, and no sweep is repeated for them.
        saved = engine.values(
            [task(keep_places, "checkpoint")(one, p, number, engine.shelf) for p, one in enumerate(places)]
        )
        return engine.run([task(load_places, "restore")(one) for one in saved])


def _home(key: Any, workers: list[str]) -> list[str]:
    """Return the worker of a task: sweeps of the same parts go to the same one, which remembers their edges."""
    last = str(key).rsplit("-", 1)[-1]
    return [workers[int(last) % len(workers)]] if str(key).startswith("sweep") and last.isdigit() else workers


def _sweep_task(parts: list[SweepPart], number: int, places: list[Places]) -> Places:
    return sweep_parts(parts, number, np.concatenate(places))


def keep_places(places: Places, part: int, number: int, shelf: Shelf) -> Kept:
    """Keep the places of a part before a sweep."""
    return shelf.keep(f"places-{part}-{number}", {"places": places})


def load_places(kept: Kept) -> Places:
    """Return places that were kept."""
    return kept.load("places")


def places_of(rows: NDArray[np.int32], kept: list[Kept]) -> Places:
    """Return the places of some rows, given those of all rows in pieces of consecutive rows."""
    found, first = [], 0
    for one in kept:
        stop = first + one.length("places")
        at = np.flatnonzero((rows >= first) & (rows < stop))
        if len(at):
            low, high = int(rows[at].min()), int(rows[at].max()) + 1
            found.append((at, one.load("places", low - first, high - first)[rows[at] - low]))
        first = stop
    places = np.empty((len(rows), found[0][1].shape[1]), np.float32)
    for at, some in found:
        places[at] = some
    return places


def _held(places: Places) -> Kept:
    return Kept({"places": places})
