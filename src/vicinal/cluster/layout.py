"""Graph and first places -> places: sweeps over parts, with a snapshot of all places exchanged between them."""

from __future__ import annotations

import math
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any, TypeVar

import numpy as np
from dask import is_dask_collection
from dask.delayed import Delayed
from numpy.typing import NDArray

from vicinal.cluster.engine import Engine, new_key, task
from vicinal.cluster.graph import GraphParts, PartSpan, load_graph
from vicinal.cluster.neighbors import edge_budget
from vicinal.cluster.store import Store, Stored
from vicinal.layout.density import DensityTerm, Summary
from vicinal.layout.sampled import LayoutPart, NegativeTable, PartedDensity, SweepRule, negative_table

Places = NDArray[np.float32]
Radii = NDArray[np.float64]  # a line (log radius, sum of affinities) for each row
T = TypeVar("T")

# For the layout, parts of the graph are joined up to this many rows: the overhead of a sweep outweighs a few rows.
SWEEP_ROWS = 125_000
EDGES = ("indptr", "tails", "rate", "phase")


# What this process has made of files, by their paths.
_REMEMBERED: dict[str, Any] = {}


def remembered(stored: Stored, make: Callable[[Stored], T], budget: float = math.inf) -> T:
    """Return what ``make`` makes of stored arrays, and remember it while their directory exists.

    Edges are remembered if all of them together take no more than ``budget`` bytes.
    """
    if stored.path is None:
        return make(stored)
    found: T | None = _REMEMBERED.get(stored.path)
    if found is None:
        forget_edges("")
        found = make(stored)
        edges = [one.n_bytes for one in (found, *_REMEMBERED.values()) if isinstance(one, LayoutPart)]
        if sum(edges) <= budget:
            _REMEMBERED[stored.path] = found
    return found


def forget_edges(directory: str | None = None) -> None:
    """Free what this process remembers of a directory, and of those that no longer exist; by default of all."""
    for path in list(_REMEMBERED):
        parent = os.path.dirname(path)
        if directory in (None, parent) or not os.path.isdir(parent):
            _REMEMBERED.pop(path, None)


def _edges(stored: Stored) -> LayoutPart:
    return LayoutPart(int(stored.load("first")[0]), *(stored.load(name) for name in EDGES))


def _negatives(stored: Stored) -> NegativeTable:
    return stored.load("keep"), stored.load("alias")


@dataclass(frozen=True, eq=False)
class SweepGroup:
    """Consecutive parts that one worker sweeps. Arrays are stored, not held.

    A process holds edges of up to ``budget`` bytes; others are read from their files in every sweep. The targets of
    the density term are stored as ``target``, those of ``density`` are left out.
    """

    parts: list[Stored]
    rows: int
    rule: SweepRule
    n_jobs: int
    budget: float
    negatives: Stored | None = None
    density: PartedDensity | None = None
    target: Stored | None = None

    def measure(self, places: Places) -> Radii:
        """Return the radii of the rows of these parts in the map."""
        return np.concatenate([part.measure(places, self.rule, self.n_jobs) for part in self._edges()])

    def sweep(self, number: int, places: Places, radii: Radii | None = None) -> Places:
        """Return the places of the rows of these parts after a sweep from the snapshot of all places.

        ``radii`` are those of all rows, if the density term acts in this sweep.
        """
        negatives = None if self.negatives is None else remembered(self.negatives, _negatives)
        density = None if radii is None else self._term().step(radii)
        moved, filled = np.empty((self.rows, places.shape[1]), np.float32), 0
        for part in self._edges():
            after = part.sweep(places, self.rule, number, negatives=negatives, density=density, n_jobs=self.n_jobs)
            moved[filled : filled + part.rows] = after
            filled += part.rows
        return moved

    def _term(self) -> PartedDensity:
        """Return the density term with its targets."""
        assert self.density is not None
        assert self.target is not None
        target = remembered(self.target, lambda stored: stored.load("target"))
        return replace(self.density, term=replace(self.density.term, target=target))

    def _edges(self) -> Iterator[LayoutPart]:
        return (remembered(part, _edges, self.budget) for part in self.parts)


def joined_parts(parts: list[PartSpan]) -> list[list[PartSpan]]:
    """Join consecutive parts up to SWEEP_ROWS rows."""
    joined: list[list[PartSpan]] = []
    for part in parts:
        if not joined or part[2] - joined[-1][0][1] > SWEEP_ROWS:
            joined.append([])
        joined[-1].append(part)
    return joined


def prepare_edges(
    parts: list[PartSpan], n: int, rule: SweepRule, store: Store, n_jobs: int
) -> tuple[Stored, tuple[int, int, int]]:
    """Keep the edges of consecutive parts as a sweep reads them.

    Also return their rows, their size in bytes, and the sum of their rates.
    """
    made = []
    for part, first, _ in parts:
        graph = load_graph(part, n)
        made.append(LayoutPart.of(first, (graph.indptr, graph.indices, graph.weights), rule, n_jobs))
    joined = LayoutPart.joined(made)
    arrays = {name: getattr(joined, name) for name in EDGES} | {"first": np.array([joined.first])}
    return store.keep(f"prepared-{joined.first}", arrays), (joined.rows, joined.n_bytes, joined.rates)


# Places are checkpointed about every CHECKPOINT_SECONDS; a graph of tasks has at most MOST_TASKS.
CHECKPOINT_SECONDS, MOST_TASKS = 15.0, 4_000


class Sweeps:
    """The sweeps of groups, one for each worker: in every sweep one task per group takes the places of all rows.

    Without a client there is one group, and its tasks run in this thread. With one, the places are checkpointed, to
    files or without a common directory by a second worker: if a worker is lost, the sweeps since then are repeated.
    """

    def __init__(self, groups: list[Any], start: list[Any], engine: Engine, density: PartedDensity | None) -> None:
        self._engine, self._density = engine, density
        self._groups = engine.run([one if is_dask_collection(one) else engine.share(one) for one in groups])
        self._places = engine.run([task(load_places, "start")(one) for one in start])
        self._count, self._most = 4, max(1, MOST_TASKS // (2 * len(groups)))
        self.number = 0

    def places(self) -> list[Any]:
        """Return the places of all rows, kept as "places" in pieces of consecutive rows."""
        return [task(_held, "places")(one) for one in self._places]

    def run_to(self, stop: int) -> None:
        """Run the sweeps up to the number ``stop``."""
        while self.number < stop:
            count = min(stop - self.number, self._most if self._engine.client is None else self._count)
            begin = time.perf_counter()
            self._run(count)
            self.number += count
            pace = (time.perf_counter() - begin) / count
            self._count = int(np.clip(CHECKPOINT_SECONDS / max(pace, 1e-4), 1, self._most))

    def radii(self) -> list[Any]:
        """Return the radii of all rows in the map as it is."""
        places = [task(load_places, "places")(one) for one in self.places()]
        return [task(_measure, "measure")(group, places) for group in self._groups]

    def _run(self, count: int) -> None:
        moved = None
        while moved is None:
            moved = self._engine.run_at_home(self._tasks(count))
            if moved is None:  # all workers were lost, and others have come
                self._engine = replace(self._engine, workers=sorted(self._engine.client.nthreads()))
        self._places = self._checkpointed(moved, self.number + count)

    def _tasks(self, count: int) -> list[Delayed]:
        """Return the tasks that make the places after some more sweeps."""
        name, graph = new_key("sweep"), dict[str, Any]()
        for held in (*self._groups, *self._places):
            graph |= dict(held.__dask_graph__())
        before = [held.key for held in self._places]
        for number in range(self.number, self.number + count):
            radii = None
            if self._density is not None and self._density.acts_in(number):
                radii = [f"{name}-{number}-radii-{worker}" for worker in range(len(self._groups))]
                for key, group in zip(radii, self._groups, strict=True):
                    graph[key] = (_measure, group.key, before)
            after = [f"{name}-{number}-{worker}" for worker in range(len(self._groups))]
            for key, group in zip(after, self._groups, strict=True):
                graph[key] = (_sweep, group.key, number, before, radii)
            before = after
        return [Delayed(key, graph) for key in before]

    def _checkpointed(self, places: list[Any], number: int) -> list[Any]:
        engine = self._engine
        if engine.client is None:
            return places
        if engine.store.directory is None:
            engine.client.replicate(places, n=min(2, len(engine.workers)))
            return places
        # Known here, so that places that are lost are read again, and no sweep is repeated for them.
        saved = engine.values(
            [task(keep_places, "checkpoint")(one, p, number, engine.store) for p, one in enumerate(places)]
        )
        return engine.run([task(load_places, "restore")(one) for one in saved])


def _measure(group: SweepGroup, places: list[Places]) -> Radii:
    return group.measure(_joined(places))


def _sweep(group: SweepGroup, number: int, places: list[Places], radii: list[Radii] | None) -> Places:
    return group.sweep(number, _joined(places), None if radii is None else np.concatenate(radii))


def _joined(places: list[Places]) -> Places:
    return places[0] if len(places) == 1 else np.concatenate(places)


def keep_places(places: Places, part: int, number: int, store: Store) -> Stored:
    """Keep the places of a part before a sweep."""
    return store.keep(f"places-{part}-{number}", {"places": places})


def load_places(kept: Stored) -> Places:
    """Return places that were kept."""
    return kept.load("places")


def places_of(rows: NDArray[np.int32], kept: list[Stored]) -> Places:
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


def _held(places: Places) -> Stored:
    return Stored({"places": places})


EXCHANGED_BYTES = 1 << 30  # of the files between two checkpoints
LONGEST_PAUSE = 2e-3  # seconds between two looks for a file


@dataclass(frozen=True)
class Exchange:
    """Files of one array per step and worker. Worker w has the rows ``bounds[w] : bounds[w + 1]``."""

    directory: str
    bounds: tuple[int, ...]

    def complete(self, worker: int, step: str, own: NDArray[Any], whole: NDArray[Any]) -> None:
        """Write the lines of a worker, and write those of all workers into ``whole``."""
        self.write(worker, step, own)
        whole[self.bounds[worker] : self.bounds[worker + 1]] = own
        self.read(worker, step, whole)

    def write(self, worker: int, step: str, own: NDArray[Any]) -> None:
        """Write the lines of a worker."""
        path = self._path(worker, step)
        unfinished = f"{path}-{os.getpid()}-{threading.get_ident()}"
        try:
            with open(unfinished, "wb") as file:
                file.write(np.ascontiguousarray(own).data.cast("B"))
            os.replace(unfinished, path)
        except OSError as error:
            raise OSError(error.errno, f"{path} could not be written: {error.strerror}") from error

    def read(self, worker: int, step: str, whole: NDArray[Any]) -> None:
        """Wait for the lines of the other workers, and write them into ``whole``."""
        for other, (first, stop) in enumerate(pairwise(self.bounds)):
            if other != worker:
                path, target, pause = self._path(other, step), whole[first:stop].data.cast("B"), LONGEST_PAUSE / 16
                while not os.path.exists(path):
                    if not os.path.isdir(self.directory):
                        raise InterruptedError(f"{self.directory} was removed: the layout has been given up")
                    time.sleep(pause)
                    pause = min(2 * pause, LONGEST_PAUSE)
                with open(path, "rb") as file:
                    if file.readinto(target) != len(target):
                        raise OSError(f"{path} does not hold {stop - first} rows")

    def _path(self, worker: int, step: str) -> str:
        return os.path.join(self.directory, f"{step}-{worker}")


class ProcessSweeps(Sweeps):
    """The sweeps of processes that all read and write one directory of this machine.

    A task runs many sweeps and exchanges places through files
    (docs/decisions/2026-11-sweeps-on-dask.md has the measurement).
    """

    def __init__(
        self, groups: list[SweepGroup], start: list[Any], engine: Engine, density: PartedDensity | None
    ) -> None:
        self._engine, self._density, self._groups = engine, density, groups
        self._places = engine.values(start)
        self._bounds = tuple(np.cumsum([0, *(group.rows for group in groups)]).tolist())
        rule = groups[0].rule
        self._count, self._most = 4, max(1, EXCHANGED_BYTES // ((4 * rule.n_components + 16) * rule.n))
        self.number = 0

    def places(self) -> list[Any]:
        return self._places

    def _run(self, count: int) -> None:
        engine, before = self._engine, self._places
        assert engine.store.directory is not None
        exchange = Exchange(os.path.join(engine.store.directory, f"exchange-{self.number}"), self._bounds)
        os.mkdir(exchange.directory)
        numbers = (self.number, self.number + count)
        self._places = engine.gathered_at_home(
            [
                (_sweep_together, group, worker, numbers, before, exchange, engine.store)
                for worker, group in enumerate(self._groups)
            ]
        )
        shutil.rmtree(exchange.directory)
        for one in before:
            os.remove(f"{one.path}.places.npy")


def _sweep_together(
    group: SweepGroup, worker: int, numbers: tuple[int, int], before: list[Stored], exchange: Exchange, store: Store
) -> Stored:
    """Run some sweeps of the parts of a worker beside the tasks of the others; keep the places after the last."""
    from distributed import secede

    secede()
    places = np.concatenate([one.load("places") for one in before])
    radii = np.empty((len(places), 2))
    for number in range(*numbers):
        acts = group.density is not None and group.density.acts_in(number)
        if acts:
            exchange.complete(worker, f"{number}-radii", group.measure(places), radii)
        moved = group.sweep(number, places, radii if acts else None)
        if number + 1 < numbers[1]:
            exchange.complete(worker, f"{number}", moved, places)
    return keep_places(moved, worker, numbers[1], store)


class PartedLayout:
    """A layout in parts with the interface of :class:`~vicinal.layout.sampled.Layout`: ``epoch`` and ``step``.

    Given the same graph, first places and seed, places have the same bits as those of a ``Layout``, for any number of
    parts and workers. ``start`` has the first places, kept as "places" in pieces of consecutive rows. Negatives are
    drawn in proportion to ``negative_weights``, by default uniformly.
    """

    def __init__(
        self,
        graph: GraphParts,
        start: list[Any],
        rule: SweepRule,
        engine: Engine,
        *,
        negative_weights: NDArray[np.floating[Any]] | None = None,
        density: DensityTerm | None = None,
    ) -> None:
        self._engine, self._rule, store = engine, rule, engine.store
        joined = [joined_parts(parts) for parts in engine.spread(graph.spans)]
        shared = engine.share(rule)
        prepared = engine.keep(
            [
                task(prepare_edges, "prepare")(parts, graph.n, shared, store, engine.task_jobs)
                for one in joined
                for parts in one
            ]
        )
        rows, sizes, rates = zip(*engine.values([one[1] for one in prepared]), strict=True)
        negatives = target = self._density = sent = None
        if negative_weights is not None:
            keep, alias = negative_table(negative_weights)
            negatives = engine.put("negatives", {"keep": keep, "alias": alias})
        if density is not None:
            target = engine.put("target", {"target": density.target})
            self._density = PartedDensity(density, rule.schedule, sum(rates))
            sent = replace(self._density, term=replace(density, target=np.empty(0, np.float32)))
        common = (rule, engine.threads, edge_budget(graph.n, max(sizes), engine), negatives, sent, target)
        make: Any = task(SweepGroup, "group") if store.directory is None else SweepGroup
        parts, counts = iter([one[0] for one in prepared]), iter(rows)
        groups = [make(list(islice(parts, len(one))), sum(islice(counts, len(one))), *common) for one in joined]
        kind = ProcessSweeps if engine.client is not None and engine.one_machine else Sweeps
        self._sweeps = kind(groups, start, engine, self._density)

    @property
    def epoch(self) -> int:
        """Number of epochs completed."""
        return self._sweeps.number // self._rule.schedule.sweeps

    @property
    def places(self) -> list[Any]:
        """The places of all rows, kept as "places" in pieces of consecutive rows."""
        return self._sweeps.places()

    @property
    def density_summary(self) -> Summary:
        """(mean, variance, covariance, strength) of the radii of the map as it is; requires a density term."""
        assert self._density is not None
        return self._density.summary(np.concatenate(self._engine.values(self._sweeps.radii())))

    def step(self, n: int = 1) -> None:
        """Run ``n`` more epochs."""
        self._sweeps.run_to((self.epoch + n) * self._rule.schedule.sweeps)

    def close(self) -> None:
        """Free what the workers remember of this layout."""
        directory = self._engine.store.directory
        if self._engine.client is None:
            forget_edges(directory)
        else:
            self._engine.client.run(forget_edges, directory)
