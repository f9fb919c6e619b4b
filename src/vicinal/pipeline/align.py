"""Maps of several related sets of rows (slices), laid out together so that related rows have similar places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.initialize.medoid import aligned_to
from vicinal.layout.alignment import AlignedLayouts, Alignment, link_slices, steps_per_epoch
from vicinal.layout.sampled import Layout, run_layout
from vicinal.layout.surroundings import surrounded
from vicinal.pipeline.fit import FitInputs, fit
from vicinal.pipeline.fitted import FittedMap
from vicinal.pipeline.place import surroundable
from vicinal.pipeline.recipe import RowFacts, SampledPlan
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


def fit_aligned(
    slices: Sequence[FitInputs],
    partners: Sequence[NDArray[np.int64]],
    plan: AlignmentPlan,
    seed: int,
    progress: Progress,
) -> AlignedMaps:
    """Map all slices together."""
    with progress.stage("slices", len(slices)):
        starts = []
        for i, one in enumerate(slices):
            starts.append(_start_only(one))
            progress.report("slices", i + 1, len(slices))
    places = [_places(starts[0])]
    for fitted, partner in zip(starts[1:], partners, strict=True):
        related = np.flatnonzero(partner >= 0)
        turned = aligned_to(_places(fitted), partner[related], places[-1][related], scaled=False)
        places.append(turned.astype(np.float32))
    graphs = [fitted.graph for fitted in starts]
    steps = np.concatenate([_steps(fitted) for fitted in starts])
    alignment = Alignment(link_slices(partners, graphs, plan.window), steps, plan.regularisation)
    layouts = [_layout(fitted, start, plan, seed) for fitted, start in zip(starts, places, strict=True)]
    together = AlignedLayouts(layouts, alignment)
    run_layout(together, [plan.epochs], progress, lambda: together.embedding)
    maps = [_finished(*one, plan) for one in zip(starts, layouts, strict=True)]
    return AlignedMaps(tuple(maps), tuple(partners), seed)


def extend_aligned(
    aligned: AlignedMaps, added: FitInputs, partner: NDArray[np.int64], plan: AlignmentPlan, progress: Progress
) -> AlignedMaps:
    """Add a slice; the maps so far stay as they are. ``partner`` relates the rows of the last slice to the new ones."""
    with progress.stage("slices"):
        fitted = _start_only(added)
    near = slice(max(0, len(aligned.maps) - plan.window), None)  # the slices that relations can reach
    graphs = [*(one.graph for one in aligned.maps[near]), fitted.graph]
    partners = (*aligned.partners, partner)
    links = link_slices(partners[near], graphs, plan.window)[-fitted.graph.n :]
    alignment = Alignment(links, _steps(fitted), plan.regularisation, mutual=False)
    start = _start_from(_places(fitted), fitted.graph, partner, _places(aligned.maps[-1]))
    layout = _layout(fitted, start, plan, aligned.seed)
    others = np.concatenate([_places(one) for one in aligned.maps[near]])
    together = AlignedLayouts([layout], alignment, others)
    run_layout(together, [plan.epochs], progress, lambda: together.embedding)
    return replace(aligned, maps=(*aligned.maps, _finished(fitted, layout, plan)), partners=partners)


def _start_only(one: FitInputs) -> FittedMap:
    """Fit a slice without a layout: its graph, and its start as the embedding."""
    plan = one.recipe.plan
    assert isinstance(plan, SampledPlan)
    return fit(replace(one, recipe=replace(one.recipe, plan=replace(plan, stops=(0,)))))


def _steps(fitted: FittedMap) -> NDArray[np.float64]:
    return steps_per_epoch(fitted.graph, _sampled(fitted).negative_sample_rate)


def _layout(fitted: FittedMap, start: NDArray[np.float32], plan: AlignmentPlan, seed: int) -> Layout:
    own = _sampled(fitted)
    return own.layout(
        fitted.graph, start, RowFacts(), own.schedule(plan.epochs, fitted.graph.n), seed=seed, n_jobs=fitted.data.n_jobs
    )


def _finished(fitted: FittedMap, layout: Layout, plan: AlignmentPlan) -> FittedMap:
    """Return a slice's map with the places of the layout; equal rows share one."""
    stops = None if plan.n_epochs is None else (plan.n_epochs,)
    recipe = replace(fitted.recipe, plan=replace(_sampled(fitted), stops=stops))
    isolated = surroundable(fitted.graph, _sampled(fitted))
    places = layout.embedding if isolated is None else surrounded(layout.embedding, isolated)
    embedding = places[fitted.data.duplicates.first]
    report = replace(fitted.report, n_epochs=plan.epochs)
    return replace(fitted, recipe=recipe, embedding=embedding, report=report)


def _sampled(fitted: FittedMap) -> SampledPlan:
    assert isinstance(fitted.recipe.plan, SampledPlan)
    return fitted.recipe.plan


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
