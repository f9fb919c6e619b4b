"""The edges of some parts of the rows as a sweep reads them: kept, and remembered by the process that sweeps them."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vicinal.cluster.graph import PartSpan, load_graph
from vicinal.cluster.shelf import Kept, Shelf
from vicinal.layout.partition import LayoutPart, NegativeTable, SweepRule

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
