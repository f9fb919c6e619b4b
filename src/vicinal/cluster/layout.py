"""Graph and first places -> places: sweeps over parts, with a snapshot of all places exchanged between them."""

from __future__ import annotations

import os
import shutil
import threading
import time
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any

import dask
import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray

from vicinal.cluster.engine import Engine, new_key, task
from vicinal.cluster.graph import GraphParts, PartSpan, load_graph
from vicinal.cluster.neighbors import edge_budget
from vicinal.cluster.store import Kept, Shelf
from vicinal.layout.sampled import LayoutPart, NegativeTable, SweepRule

Places = NDArray[np.float32]

# Parts of the graph are joined up to so many rows for the layout: a sweep of a few rows costs more than its work.
SWEEP_ROWS = 125_000
EDGES = ("indptr", "tails", "rate", "phase")


@dataclass(frozen=True)
class SweepPart:
    """What a sweep of one part needs besides its number and the places: the edges are kept, not held."""

    edges: Kept
    rows: int
    negatives: Kept | None
    rule: SweepRule
    n_jobs: int
    budget: float  # bytes of edges that a process holds; others are read from their files in every sweep

    def loaded(self) -> tuple[LayoutPart, NegativeTable | None]:
        """Return the edges, and the table of negatives if they are drawn by weight."""
        edges = LayoutPart(int(self.edges.load("first")[0]), *(self.edges.load(name) for name in EDGES))
        if self.negatives is None:
            return edges, None
        return edges, NegativeTable(self.negatives.load("keep"), self.negatives.load("alias"))

    def sweep(self, places: Places, number: int, cache: EdgeCache) -> Places:
        """Return the places of the rows of this part after a sweep from the snapshot of all places."""
        edges, negatives = cache.load(self)
        return edges.sweep(places, self.rule, number, negatives=negatives, n_jobs=self.n_jobs)


class EdgeCache:
    """Edges that a process has read from the files of one directory, as many as fit a budget of bytes."""

    def __init__(self) -> None:
        self._parts: dict[str, tuple[LayoutPart, NegativeTable | None]] = {}

    def load(self, part: SweepPart) -> tuple[LayoutPart, NegativeTable | None]:
        """Return the edges of a part, and remember them if there is room."""
        path = part.edges.path
        if path is None:
            return part.loaded()
        self.forget(beside=os.path.dirname(path))
        found = self._parts.get(path)
        if found is None:
            found = part.loaded()
            held = sum(edges.n_bytes for edges, _ in self._parts.values())
            if found[0].n_bytes + held <= part.budget:
                self._parts[path] = found
        return found

    def forget(self, beside: str = "") -> None:
        """Forget the edges of all directories but one."""
        for path in [path for path in self._parts if os.path.dirname(path) != beside]:
            self._parts.pop(path, None)


WORKER_EDGES = EdgeCache()  # of a worker process


def forget_edges() -> None:
    """Free the edges that this process remembers."""
    WORKER_EDGES.forget()


def joined_parts(parts: list[PartSpan]) -> list[list[PartSpan]]:
    """Join consecutive parts up to SWEEP_ROWS rows."""
    joined: list[list[PartSpan]] = []
    for part in parts:
        if not joined or part[2] - joined[-1][0][1] > SWEEP_ROWS:
            joined.append([])
        joined[-1].append(part)
    return joined


def prepare_edges(
    parts: list[PartSpan], n: int, rule: SweepRule, weights: Kept | None, shelf: Shelf, n_jobs: int
) -> tuple[Kept, int, int]:
    """Keep the edges of consecutive parts as a sweep reads them; also return their rows and their size in bytes."""
    made = []
    for part, first, _ in parts:
        graph = load_graph(part, n)
        if weights is not None:
            graph = graph.weighing_tails(weights.load("weights"))
        made.append(LayoutPart.of(first, (graph.indptr, graph.indices, graph.weights), rule, n_jobs))
    joined = LayoutPart.joined(made)
    arrays = {name: getattr(joined, name) for name in EDGES} | {"first": np.array([joined.first])}
    return shelf.keep(f"prepared-{joined.first}", arrays), joined.rows, joined.n_bytes


def keep_negatives(weights: Kept, shelf: Shelf) -> Kept:
    """Keep the table that draws negatives in proportion to weights."""
    table = NegativeTable.of(weights.load("weights"))
    return shelf.keep("negatives", {"keep": table.keep, "alias": table.alias})


def sweep_parts(parts: list[SweepPart], number: int, places: Places) -> Places:
    """Return the places of the rows of consecutive parts after a sweep from the snapshot of all places."""
    return np.concatenate([part.sweep(places, number, WORKER_EDGES) for part in parts])


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


class PartedLayout:
    """A layout in parts with the interface of :class:`~vicinal.layout.sampled.Layout`: ``epoch`` and ``step``.

    Given the same graph, first places and seed, places have the same bits as those of a ``Layout``, for any number of
    parts and workers.
    """

    def __init__(
        self, graph: GraphParts, start: list[Any], rule: SweepRule, engine: Engine, weights: Any = None
    ) -> None:
        self._engine, self._rule, shelf = engine, rule, engine.shelf
        negatives = None if weights is None else engine.keep([task(keep_negatives, "negatives")(weights, shelf)])[0]
        joined = [joined_parts(parts) for parts in engine.spread(graph.spans)]
        shared = engine.share(rule)
        edges = engine.keep(
            [
                task(prepare_edges, "prepare")(parts, graph.n, shared, weights, shelf, engine.task_jobs)
                for one in joined
                for parts in one
            ]
        )
        budget = edge_budget(graph.n, max(engine.values([one[2] for one in edges])), engine)
        in_memory = shelf.directory is None
        make: Any = task(SweepPart, "part") if in_memory else SweepPart
        made = [make(one[0], one[1], negatives, rule, engine.threads, budget) for one in edges]
        parts = iter(engine.run(made) if in_memory else made)
        groups = [list(islice(parts, len(one))) for one in joined]
        kind = LocalSweeps if engine.client is None else ProcessSweeps if engine.one_machine else TaskSweeps
        self._sweeps: LocalSweeps | ProcessSweeps | TaskSweeps = kind(groups, start, engine)

    @property
    def epoch(self) -> int:
        """Number of epochs completed."""
        return self._sweeps.number // self._rule.schedule.sweeps

    @property
    def places(self) -> list[Any]:
        """The places of all rows, kept as "places" in pieces of consecutive rows."""
        return self._sweeps.places()

    def step(self, n: int = 1) -> None:
        """Run ``n`` more epochs."""
        self._sweeps.run_to((self.epoch + n) * self._rule.schedule.sweeps)

    def close(self) -> None:
        """Free what the workers remember of this layout."""
        if self._engine.client is not None:
            self._engine.client.run(forget_edges)
