"""Graph and first places -> places: sweeps over parts, with a snapshot of all places exchanged between them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any

import dask
import numpy as np
from numpy.typing import NDArray

from vicinal.cluster.engine import Engine, Kept, Shelf, task
from vicinal.cluster.graph import GraphParts, load_graph
from vicinal.layout.partition import LayoutPart, NegativeTable, SweepRule

Places = NDArray[np.float32]

# Places are checkpointed about every CHECKPOINT_SECONDS; a graph of tasks has at most MOST_TASKS.
CHECKPOINT_SECONDS, MOST_TASKS = 15.0, 4_000
EDGES = ("indptr", "tails", "rate", "phase")


class PartedLayout:
    """A layout in parts with the interface of :class:`~vicinal.layout.sampled.Layout`: ``epoch`` and ``step``.

    Given the same graph, first places and seed, places have the same bits as those of a ``Layout``, for any number of
    parts and workers.
    """

    def __init__(
        self, graph: GraphParts, start: list[Any], rule: SweepRule, engine: Engine, weights: Any = None
    ) -> None:
        self._engine, self._rule, self._bounds = engine, rule, graph.bounds
        self._sweep, self._sweeps_per_batch = 0, rule.schedule.sweeps
        shelf, n = engine.shelf, graph.n
        jobs = engine.task_jobs
        shared = None if weights is None else engine.share(weights)
        self._negatives = None if weights is None else engine.run([task(_negatives, "negatives")(shared)])[0]
        self._edges = engine.run(
            [
                task(_prepare, "edges")(part, int(graph.bounds[p]), n, rule, shared, shelf, jobs)
                for p, part in enumerate(graph.parts)
            ]
        )
        if engine.client is None:
            places = np.concatenate(engine.values(start))
            self._local = _LocalSweeps(engine.values(self._edges), places, rule, engine, self._negatives)
        self._places = start

    @property
    def epoch(self) -> int:
        """Number of epochs completed."""
        done = self._sweep if self._engine.client is not None else self._local.sweep
        return done // self._rule.schedule.sweeps

    @property
    def places(self) -> list[Any]:
        """The places of each part: arrays, or futures of them."""
        if self._engine.client is not None:
            return self._places
        spans = zip(self._bounds[:-1], self._bounds[1:], strict=True)
        return [self._local.places[first:stop].copy() for first, stop in spans]

    def step(self, n: int = 1) -> None:
        """Run ``n`` more epochs."""
        stop = (self.epoch + n) * self._rule.schedule.sweeps
        if self._engine.client is None:
            self._local.run_to(stop)
            return
        while self._sweep < stop:
            count = min(stop - self._sweep, self._sweeps_per_batch)
            begin = time.perf_counter()
            self._places = self._run_batch(count)
            self._sweep += count
            pace = (time.perf_counter() - begin) / count
            most = max(1, MOST_TASKS // len(self._edges))
            self._sweeps_per_batch = int(np.clip(CHECKPOINT_SECONDS / max(pace, 1e-4), 1, most))

    def close(self) -> None:
        """Free what the workers remember of this layout."""
        if self._engine.client is not None:
            self._engine.client.run(forget_edges)

    def _run_batch(self, count: int) -> list[Any]:
        """Run sweeps as one graph of tasks. Only its last places are kept: they are the next checkpoint."""
        engine, places = self._engine, self._places
        budget = _edge_budget(engine)
        for number in range(self._sweep, self._sweep + count):
            after = []
            for p, edges in enumerate(self._edges):
                home = engine.workers[p % len(engine.workers)]
                with dask.annotate(workers=[home], allow_other_workers=True):
                    after.append(
                        task(_sweep, f"sweep-{number}")(
                            edges,
                            places,
                            int(self._bounds[p]),
                            self._rule,
                            number,
                            self._negatives,
                            engine.threads,
                            budget,
                        )
                    )
            places = after
        if engine.shelf.directory is not None:
            number = self._sweep + count
            saved = [task(_checkpoint, "checkpoint")(part, p, number, engine.shelf) for p, part in enumerate(places)]
            return [task(_restore, "restore")(part) for part in engine.run(saved)]
        kept = engine.run(places)
        engine.client.replicate(kept, n=min(2, len(engine.workers)))
        return kept


@dataclass
class _LocalSweeps:
    """The sweeps of one process: parts one after the other, each with all threads."""

    edges: list[Kept]
    places: Places
    rule: SweepRule
    engine: Engine
    negatives: Any
    sweep: int = 0
    cache: EdgeCache = field(default_factory=lambda: EdgeCache())

    def __post_init__(self) -> None:
        if self.negatives is not None:
            self.negatives = self.engine.values([self.negatives])[0]

    def run_to(self, stop: int) -> None:
        budget = _edge_budget(self.engine)
        after = np.empty_like(self.places)
        while self.sweep < stop:
            for kept in self.edges:
                part = self.cache.load(kept, budget)
                after[part.first : part.first + part.rows] = part.sweep(
                    self.places, self.rule, self.sweep, negatives=self.negatives, n_jobs=self.engine.threads
                )
            self.places, after = after, self.places
            self.sweep += 1


def _edge_budget(engine: Engine) -> float:
    """Return the bytes of prepared edges that a process holds; others are read from their files in every sweep."""
    return float("inf") if engine.memory is None else 0.3 * engine.memory / len(engine.workers)


def _negatives(weights: NDArray[np.float32]) -> NegativeTable:
    return NegativeTable.of(weights)


def _prepare(part: Kept, first: int, n: int, rule: SweepRule, weights: Any, shelf: Shelf, n_jobs: int) -> Kept:
    """Keep the edges of a part as a sweep reads them."""
    graph = load_graph(part, n)
    if weights is not None:
        graph = graph.weighing_tails(weights)
    made = LayoutPart.of(first, (graph.indptr, graph.indices, graph.weights), rule, n_jobs)
    arrays = {name: getattr(made, name) for name in EDGES} | {"at": np.array([first])}
    return shelf.keep(f"prepared-{first}", arrays)


class EdgeCache:
    """Prepared edges that a process has read from the files of one directory, as many as fit a budget of bytes."""

    def __init__(self) -> None:
        self._parts: dict[str, LayoutPart] = {}

    def load(self, kept: Kept, budget: float) -> LayoutPart:
        """Return the prepared edges of a part, and remember them if there is room."""
        if kept.path is None:
            return _loaded(kept)
        self.forget(beside=os.path.dirname(kept.path))
        found = self._parts.get(kept.path)
        if found is None:
            found = _loaded(kept)
            held = sum(part.n_bytes for part in self._parts.values())
            if found.n_bytes + held <= budget:
                self._parts[kept.path] = found
        return found

    def forget(self, beside: str = "") -> None:
        """Forget the edges of all directories but one."""
        for path in [path for path in self._parts if os.path.dirname(path) != beside]:
            self._parts.pop(path, None)


def _loaded(kept: Kept) -> LayoutPart:
    return LayoutPart(int(kept.load("at")[0]), *(kept.load(name) for name in EDGES))


_WORKER_EDGES = EdgeCache()  # of a worker process


def forget_edges() -> None:
    """Free the edges that this process remembers."""
    _WORKER_EDGES.forget()


def _sweep(
    edges: Kept,
    places: list[Places],
    first: int,
    rule: SweepRule,
    number: int,
    negatives: NegativeTable | None,
    n_jobs: int,
    budget: float,
) -> Places:
    snapshot = np.concatenate(places)
    return _WORKER_EDGES.load(edges, budget).sweep(snapshot, rule, number, negatives=negatives, n_jobs=n_jobs)


def _checkpoint(places: Places, part: int, number: int, shelf: Shelf) -> Kept:
    return shelf.keep(f"places-{part}-{number}", {"places": places})


def _restore(kept: Kept) -> Places:
    return kept.load("places")
