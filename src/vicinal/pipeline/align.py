"""Maps of several related sets of rows (slices), laid out together so that related rows have similar places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.initialize.medoid import aligned_to
from vicinal.layout.alignment import AlignedLayouts, Alignment, link_slices, steps_per_epoch
from vicinal.layout.sampled import Layout, run_layout
from vicinal.neighbors.rows import explain_out_of_memory
from vicinal.pipeline.fit import ArrayExecutor, Executor, fit, linked_rows
from vicinal.pipeline.fitted import FittedMap
from vicinal.pipeline.recipe import Places
from vicinal.pipeline.row_options import pushing_weights
from vicinal.runtime.progress import Progress

DEFAULT_EPOCHS = 200


@dataclass(frozen=True)
class AlignmentPlan:
    """How strongly related rows attract each other, over how many slices, and for how many epochs."""

    regularisation: float = 0.01
    window: int = 3
    n_epochs: int | None = None

    @property
    def epochs(self) -> int:
        return DEFAULT_EPOCHS if self.n_epochs is None else self.n_epochs


@dataclass(frozen=True)
class AlignedMaps:
    """Maps side by side. ``partners[i]`` gives for each row of slice i the related row of slice i + 1, or -1."""

    maps: tuple[FittedMap, ...]
    partners: tuple[NDArray[np.int64], ...]
    seed: int

    @property
    def embeddings(self) -> list[NDArray[np.float32]]:
        return [_places(one) for one in self.maps]

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together: a model file may hold anything."""
        if not self.maps or len(self.partners) != len(self.maps) - 1:
            raise ValueError("an aligned model has a relation between each slice and the next")
        for one, partner, following in zip(self.maps, self.partners, self.maps[1:], strict=False):
            if partner.shape != (one.data.n,) or not -1 <= partner.min(initial=-1) <= partner.max(initial=-1):
                raise ValueError("a relation of an aligned model does not cover the rows of its slice")
            if partner.max(initial=-1) >= following.data.n:
                raise ValueError("a relation of an aligned model names rows that do not exist")


class AlignedExecutor(Executor):
    """A fit of several slices: each goes through the steps by itself, except that all are laid out together.

    ``fixed`` are maps of earlier slices, which stay as they are; ``partners`` relate every slice to the next one, the
    fixed slices included.
    """

    refuses: ClassVar[dict[str, str]] = {"orient": "turning a slice would undo its alignment with the others"}

    def __init__(
        self,
        slices: Sequence[ArrayExecutor],
        partners: Sequence[NDArray[np.int64]],
        plan: AlignmentPlan,
        seed: int,
        fixed: Sequence[FittedMap] = (),
    ) -> None:
        self.slices, self.partners, self.plan, self.seed, self.fixed = slices, partners, plan, seed, fixed

    def check(self) -> None:
        for one in self.slices:
            one.prepared(Progress())
            one.check()

    def search(self) -> None:
        for one in self.slices:
            with explain_out_of_memory(one.data, one.recipe.affinity.columns(one.data.n)):
                one.search()

    def relate(self) -> None:
        for one in self.slices:
            one.relate()

    def build_graph(self) -> None:
        for one in self.slices:
            one.build_graph()

    def supervise(self) -> None:
        for one in self.slices:
            one.supervise()

    def start(self) -> None:
        for one in self.slices:
            one.start()
            one.started = one.selection.spread(one.started)  # equal rows share one place
        if self.fixed:
            (one,) = self.slices
            one.started = _start_from(one.started, one.graph, self.partners[-1], _places(self.fixed[-1]))
            return
        for one, other, partner in zip(self.slices, self.slices[1:], self.partners, strict=False):
            related = np.flatnonzero(partner >= 0)
            turned = aligned_to(other.started, partner[related], one.started[related], scaled=False)
            other.started = turned.astype(np.float32)

    def lay_out(self, finish: Callable[[list[Places]], list[Places]]) -> None:
        near = list(self.fixed)[max(0, len(self.fixed) - self.plan.window) :]  # the slices that relations can reach
        graphs = [*(one.graph for one in near), *(one.graph for one in self.slices)]
        partners = list(self.partners)[len(self.fixed) - len(near) :]
        links = link_slices(partners, graphs, self.plan.window)[-sum(one.graph.n for one in self.slices) :]
        steps = np.concatenate([_steps(one) for one in self.slices])
        alignment = Alignment(links, steps, self.plan.regularisation, mutual=not self.fixed)
        others = np.concatenate([_places(one) for one in near]) if near else None
        layouts = [_layout(one, self.plan, self.seed) for one in self.slices]
        together = AlignedLayouts(layouts, alignment, others)

        def places() -> list[Places]:
            return finish(together.embeddings)

        run_layout(together, [self.plan.epochs], self.progress, lambda: np.concatenate(places()))
        for one, embedding in zip(self.slices, places(), strict=True):
            one.finished = embedding

    def surround(self, places: list[Places]) -> list[Places]:
        """Draw the rows without edges around the map of their slice; equal rows share one place."""
        around = []
        for one, own in zip(self.slices, places, strict=True):
            one.linked = linked_rows(one.graph) if one.recipe.plan.has_outside else None
            around.append(one.selection.spread(own if one.linked is None else one.surround(own[one.linked])))
        return around

    def report(self) -> list[FittedMap]:
        return [_finished(one, self.plan) for one in self.slices]


def fit_aligned(
    slices: Sequence[ArrayExecutor],
    partners: Sequence[NDArray[np.int64]],
    plan: AlignmentPlan,
    seed: int,
    progress: Progress,
) -> AlignedMaps:
    """Map all slices together."""
    maps = fit(AlignedExecutor(slices, partners, plan, seed), progress)
    return AlignedMaps(tuple(maps), tuple(partners), seed)


def extend_aligned(
    aligned: AlignedMaps, added: ArrayExecutor, partner: NDArray[np.int64], plan: AlignmentPlan, progress: Progress
) -> AlignedMaps:
    """Add a slice; the maps so far stay as they are. ``partner`` relates the rows of the last slice to the new ones."""
    partners = (*aligned.partners, partner)
    maps = fit(AlignedExecutor([added], partners, plan, aligned.seed, aligned.maps), progress)
    return replace(aligned, maps=(*aligned.maps, *maps), partners=partners)


def _steps(one: ArrayExecutor) -> NDArray[np.float64]:
    return steps_per_epoch(one.graph, one.recipe.plan.negative_sample_rate)


def _layout(one: ArrayExecutor, plan: AlignmentPlan, seed: int) -> Layout:
    own, graph, isolated = one.recipe.plan, one.graph, one.graph.isolated()
    return Layout(
        graph,
        one.started,
        own.forces,
        own.schedule(plan.epochs, graph.n),
        seed=seed,
        n_jobs=one.data.n_jobs,
        negative_weights=pushing_weights(None, isolated),
    )


def _finished(one: ArrayExecutor, plan: AlignmentPlan) -> FittedMap:
    fitted: FittedMap = one.report()
    stops = None if plan.n_epochs is None else (plan.n_epochs,)
    own: Any = one.recipe.plan
    report = replace(fitted.report, init_used=one.init_used, n_epochs=plan.epochs)
    return replace(fitted, recipe=replace(one.recipe, plan=replace(own, stops=stops)), report=report)


def _places(fitted: FittedMap) -> NDArray[np.float32]:
    assert fitted.embedding is not None
    return fitted.embedding


def _start_from(
    own: NDArray[np.float32], graph: Graph, partner: NDArray[np.int64], previous: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Start related rows at their partners' places, others at the mean of their related neighbors, if they have any."""
    related = np.flatnonzero(partner >= 0)
    start = aligned_to(own, partner[related], previous[related], scaled=False).astype(np.float32)
    known = np.zeros(graph.n, dtype=bool)
    known[partner[related]] = True
    start[partner[related]] = previous[related]
    to_known = graph.to_scipy().astype(np.float64).multiply(known).tocsr()
    total = np.asarray(to_known.sum(axis=1)).reshape(-1)
    beside = ~known & (total > 0)
    start[beside] = (to_known @ start.astype(np.float64))[beside] / total[beside, None]
    return start
