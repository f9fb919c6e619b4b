"""Graph and first places -> places: sweeps over parts, with a snapshot of all places exchanged between them."""

from __future__ import annotations

from itertools import islice
from typing import Any

from vicinal.cluster.edges import SweepPart, forget_edges, joined_parts, keep_negatives, prepare_edges
from vicinal.cluster.engine import Engine, task
from vicinal.cluster.exchange import ProcessSweeps
from vicinal.cluster.graph import GraphParts
from vicinal.cluster.sizes import edge_budget
from vicinal.cluster.sweeps import LocalSweeps, TaskSweeps
from vicinal.layout.partition import SweepRule


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
