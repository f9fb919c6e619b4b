"""Graph and first places -> places: sweeps over parts, with a snapshot of all places exchanged between them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any

import dask
import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray

from vicinal.cluster.engine import Engine, Kept, Shelf, new_key, task
from vicinal.cluster.graph import GraphParts, PartSpan, load_graph
from vicinal.cluster.sizes import edge_budget
from vicinal.layout.partition import LayoutPart, NegativeTable, SweepRule

Places = NDArray[np.float32]

# Places are checkpointed about every CHECKPOINT_SECONDS; a graph of tasks has at most MOST_TASKS.
CHECKPOINT_SECONDS, MOST_TASKS = 15.0, 4_000
# Parts of the graph are joined up to so many rows for the layout: a sweep of a few rows costs more than its work.
SWEEP_ROWS = 250_000
EDGES = ("indptr", "tails", "rate", "phase")


@dataclass(frozen=True)
class SweepPart:
    """What a sweep of one part needs besides its number and the places: the edges are kept, not held."""

    edges: Kept
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


_WORKER_EDGES = EdgeCache()  # of a worker process


def forget_edges() -> None:
    """Free the edges that this process remembers."""
    _WORKER_EDGES.forget()


class PartedLayout:
    """A layout in parts with the interface of :class:`~vicinal.layout.sampled.Layout`: ``epoch`` and ``step``.

    Given the same graph, first places and seed, places have the same bits as those of a ``Layout``, for any number of
    parts and workers.
    """

    def __init__(
        self, graph: GraphParts, start: list[Any], rule: SweepRule, engine: Engine, weights: Any = None
    ) -> None:
        self._engine, self._rule = engine, rule
        shared = None if weights is None else engine.share(weights)
        negatives = None if weights is None else engine.run([task(_negatives, "negatives")(shared, engine.shelf)])[0]
        joined = [_joined_parts(parts) for parts in engine.spread(graph.spans)]
        edges = engine.run(
            [
                task(_prepare, "prepare")(parts, graph.n, rule, shared, engine.shelf, engine.task_jobs)
                for one in joined
                for parts in one
            ]
        )
        budget = edge_budget(graph.n, max(engine.values([one[1] for one in edges])), engine)
        parts = iter(
            engine.run([task(SweepPart, "part")(one[0], negatives, rule, engine.threads, budget) for one in edges])
        )
        groups = [list(islice(parts, len(one))) for one in joined]
        self._sweeps = (_LocalSweeps if engine.client is None else _SpreadSweeps)(groups, start, engine)

    @property
    def epoch(self) -> int:
        """Number of epochs completed."""
        return self._sweeps.number // self._rule.schedule.sweeps

    @property
    def places(self) -> list[Any]:
        """The places of each part: arrays, or results of tasks."""
        return self._sweeps.places()

    def step(self, n: int = 1) -> None:
        """Run ``n`` more epochs."""
        self._sweeps.run_to((self.epoch + n) * self._rule.schedule.sweeps)

    def close(self) -> None:
        """Free what the workers remember of this layout."""
        if self._engine.client is not None:
            self._engine.client.run(forget_edges)


class _LocalSweeps:
    """The sweeps of one process: parts one after the other, each with all threads."""

    def __init__(self, groups: list[list[Any]], start: list[Any], engine: Engine) -> None:
        self._parts: list[SweepPart] = engine.values(list(chain(*groups)))
        self._places = np.concatenate(engine.values(start))
        self._cache = EdgeCache()
        self.number = 0

    def places(self) -> list[Any]:
        return [self._places.copy()]

    def run_to(self, stop: int) -> None:
        after = np.empty_like(self._places)
        while self.number < stop:
            first = 0
            for part in self._parts:
                moved = part.sweep(self._places, self.number, self._cache)
                after[first : first + len(moved)] = moved
                first += len(moved)
            self._places, after = after, self._places
            self.number += 1


class _SpreadSweeps:
    """The sweeps of a cluster: in every sweep one task per worker, which takes the places of all rows.

    Some sweeps at a time are one graph of tasks. If a worker is lost, Dask repeats the sweeps since the last
    checkpoint: the places at the end of a graph are written to files, or without a common directory held by two
    workers.
    """

    def __init__(self, groups: list[list[Any]], start: list[Any], engine: Engine) -> None:
        self._groups, self._engine = groups, engine
        self._places = engine.run(start)
        self._count = 4
        self.number = 0

    def places(self) -> list[Any]:
        return self._places

    def run_to(self, stop: int) -> None:
        while self.number < stop:
            count = min(stop - self.number, self._count)
            begin = time.perf_counter()
            self._places = self._run(count)
            self.number += count
            pace = (time.perf_counter() - begin) / count
            self._count = int(np.clip(CHECKPOINT_SECONDS / max(pace, 1e-4), 1, max(1, MOST_TASKS // len(self._groups))))

    def _run(self, count: int) -> list[Any]:
        engine, name = self._engine, new_key("sweep")
        graph: dict[str, Any] = {}
        for held in (*chain(*self._groups), *self._places):
            graph |= dict(held.__dask_graph__())
        before = [held.key for held in self._places]
        for number in range(self.number, self.number + count):
            after = [f"{name}-{number}-{worker}" for worker in range(len(self._groups))]
            for key, group in zip(after, self._groups, strict=True):
                graph[key] = (_sweep_parts, [part.key for part in group], number, before)
            before = after
        with dask.annotate(workers=partial(_home, workers=engine.workers), allow_other_workers=True):
            return self._checkpointed([Delayed(key, graph) for key in before], self.number + count)

    def _checkpointed(self, places: list[Any], number: int) -> list[Any]:
        engine = self._engine
        if engine.shelf.directory is None:
            kept = engine.run(places)
            engine.client.replicate(kept, n=min(2, len(engine.workers)))
            return kept
        saved = engine.run(
            [task(_checkpoint, "checkpoint")(part, p, number, engine.shelf) for p, part in enumerate(places)]
        )
        return engine.run([task(_restore, "restore")(part) for part in saved])


def _home(key: Any, workers: list[str]) -> list[str]:
    """Return the worker of a task: sweeps of the same parts go to the same one, which remembers their edges."""
    last = str(key).rsplit("-", 1)[-1]
    return [workers[int(last) % len(workers)]] if str(key).startswith("sweep") and last.isdigit() else workers


def _negatives(weights: NDArray[np.float32], shelf: Shelf) -> Kept:
    table = NegativeTable.of(weights)
    return shelf.keep("negatives", {"keep": table.keep, "alias": table.alias})


def _joined_parts(parts: list[PartSpan]) -> list[list[PartSpan]]:
    """Join consecutive parts up to SWEEP_ROWS rows."""
    joined: list[list[PartSpan]] = []
    for part in parts:
        if not joined or part[2] - joined[-1][0][1] > SWEEP_ROWS:
            joined.append([])
        joined[-1].append(part)
    return joined


def _prepare(
    parts: list[PartSpan], n: int, rule: SweepRule, weights: Any, shelf: Shelf, n_jobs: int
) -> tuple[Kept, int]:
    """Keep the edges of consecutive parts as a sweep reads them; also return their size in bytes."""
    made = []
    for part, first, _ in parts:
        graph = load_graph(part, n)
        if weights is not None:
            graph = graph.weighing_tails(weights)
        made.append(LayoutPart.of(first, (graph.indptr, graph.indices, graph.weights), rule, n_jobs))
    joined = LayoutPart.joined(made)
    arrays = {name: getattr(joined, name) for name in EDGES} | {"first": np.array([joined.first])}
    return shelf.keep(f"prepared-{joined.first}", arrays), joined.n_bytes


def _sweep_parts(parts: list[SweepPart], number: int, before: list[Places]) -> Places:
    places = np.concatenate(before)
    return np.concatenate([part.sweep(places, number, _WORKER_EDGES) for part in parts])


def _checkpoint(places: Places, part: int, number: int, shelf: Shelf) -> Kept:
    return shelf.keep(f"places-{part}-{number}", {"places": places})


def _restore(kept: Kept) -> Places:
    return kept.load("places")
