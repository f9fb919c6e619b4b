"""Layouts by sampled forces (survey Algorithm 1): edges attract, randomly drawn negatives repel.

The rows that move make the type:

==================  =====================================================================
`Layout`            all rows of a symmetric graph, except those marked as fixed
`Placement`         rows without a place yet, among a reference map that does not move
`PartialLayout`     some rows of a map, while the others stay (growing maps)
==================  =====================================================================

All of them are resumable: ``step(10); step(190)`` equals ``step(200)`` bit for bit, for any ``n_jobs``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import backend_of, cpu, resolve_place, say_fallback
from vicinal.graph.graph import Graph
from vicinal.layout.density import DensityTerm, Summary
from vicinal.layout.forces import Forces, Kernel
from vicinal.layout.schedule import Schedule
from vicinal.runtime.progress import LAYOUT, Progress

# A row is pulled once for each of its edges that fires, and in a symmetric graph a second time for the mirrored edge.
PULLS_SYMMETRIC, PULLS_BIPARTITE = 2, 1
MOST_RATES = 1 << 17  # learning rates that are computed at a time, where each row has its own


NegativeTable = tuple[NDArray[np.uint32], NDArray[np.int32]]
Measured = NDArray[np.float64]  # a line (log radius in the map, sum of affinities) for each of consecutive rows


class _SampledLayout:
    """What all sampled layouts share: an engine of the backend that is stepped epoch by epoch."""

    first_epoch: int = 0
    ages: NDArray[np.int32] = np.zeros(1, dtype=np.int32)  # epochs that each moving row is ahead, or one for all

    def __init__(self, engine: Any, shape: tuple[int, ...], forces: Forces, schedule: Schedule, n_jobs: int) -> None:
        self.forces = forces
        self.schedule = schedule
        # A Python function can be called by one thread at a time.
        self.n_jobs = n_jobs if forces.space.function is None else 1
        self._engine = engine
        self._shape = shape

    @property
    def epoch(self) -> int:
        """Number of epochs completed."""
        return int(self._engine.sweep) // self.schedule.sweeps - self.first_epoch

    @property
    def embedding(self) -> NDArray[np.float32]:
        """Copy of the places of all rows. Assigning to it moves all rows, fixed ones included."""
        places: NDArray[np.float32] = self._engine.embedding()
        return places

    @embedding.setter
    def embedding(self, places: NDArray[np.floating]) -> None:
        if np.shape(places) != self._shape:
            raise ValueError(f"embedding must have shape {self._shape}, got {np.shape(places)}")
        checked = np.require(places, dtype=np.float32, requirements=["C", "A"])
        bad = ~np.isfinite(checked).all(axis=1)
        if bad.any():
            raise ValueError(f"embedding contains NaN or infinity, first in row {int(np.argmax(bad))}")
        self._engine.place(checked)

    @property
    def density_summary(self) -> Summary:
        """(mean, variance, covariance, strength) of the radii of the map as it is; requires a density term."""
        summary: Summary = self._engine.density_summary(self.n_jobs)
        return summary

    def step(self, n: int = 1) -> None:
        """Run ``n`` more epochs.

        Parameters
        ----------
        n : int, default 1
            Number of epochs. Epochs after the last one of the schedule have the learning rate 0.
        """
        sweeps, end = self.schedule.sweeps, self.epoch + n
        ages = self.ages[:1] if (self.ages == self.ages[:1]).all() else self.ages
        while self.epoch < end:
            epochs = np.arange(self.epoch, min(self.epoch + max(1, MOST_RATES // max(len(ages), 1)), end))
            # One row per epoch, with one column for all rows of the map or one column per moving row.
            rates = self.schedule.learning_rates(epochs[:, None] + ages)
            # If an interrupt ended the last call within an epoch, the sweeps that are left of it come first.
            self._engine.step(np.repeat(rates, sweeps, axis=0)[self._engine.sweep % sweeps :], self.n_jobs)

    def _set_negative_weights(self, weights: NDArray[np.floating] | None) -> None:
        if weights is not None:
            self._engine.weigh_negatives(np.require(weights, dtype=np.float32, requirements=["C", "A"]))

    def _set_density(self, density: DensityTerm | None) -> None:
        if density is None:
            return
        if not self.forces.space.is_euclidean:
            raise ValueError(f"a density term requires the euclidean distance, got space {self.forces.space.kind!r}")
        self._engine.add_density(
            density.target,
            density.weight,
            density.variance_shift,
            *density.sweeps(self.schedule),
            None if density.fitted is None else list(density.fitted),
        )


class Layout(_SampledLayout):
    """Layout of a symmetric graph in which all rows move.

    Parameters
    ----------
    graph : Graph
        Symmetric weighted graph over the rows.
    embedding : array of shape (n_rows, n_components)
        Initial places of the rows. The array is copied.
    forces : Forces or Kernel
        Attraction and repulsion. A :class:`Kernel` stands for UMAP's forces with that kernel.
    schedule : Schedule
        Number of epochs, learning rate and negatives.
    seed : int, default 0
        Seed of the random draws.
    n_jobs : int, default -1
        Number of threads; -1 uses all. The result does not depend on it.
    fixed : bool array of shape (n_rows,), optional
        Rows that keep their places bit for bit. They attract and repel the other rows.
    negative_weights : array of shape (n_rows,), optional
        Negatives are drawn in proportion to these weights; uniformly by default.
    density : DensityTerm, optional
        The density term of densMAP.
    device : {None, "cpu", "cuda", "cuda:N"}, default None
        Where the work is done; None means where the graph lives. The result has the same bits everywhere.

    See Also
    --------
    UMAP : the estimator.
    FullLayout : the layout of t-SNE.
    Schedule : epochs and learning rates.

    Examples
    --------
    >>> import numpy as np
    >>> from vicinal import Layout, Schedule, find_neighbors, fit_ab, fuzzy_graph
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(300, 8)).astype(np.float32)
    >>> start = rng.uniform(0, 10, size=(300, 2)).astype(np.float32)
    >>> graph = fuzzy_graph(find_neighbors(rows, 15))
    >>> layout = Layout(graph, start, fit_ab(min_dist=0.1), Schedule(n_epochs=200), seed=42)
    >>> layout.step(10)  # look at the map, then continue
    >>> layout.step(190)
    >>> layout.epoch, layout.embedding.shape
    (200, (300, 2))
    """

    def __init__(
        self,
        graph: Graph,
        embedding: NDArray[np.float32],
        forces: Forces | Kernel,
        schedule: Schedule,
        *,
        seed: int = 0,
        n_jobs: int = -1,
        fixed: NDArray[np.bool_] | None = None,
        negative_weights: NDArray[np.floating] | None = None,
        density: DensityTerm | None = None,
        device: str | None = None,
    ) -> None:
        if device is not None:
            graph = graph.on(resolve_place(device))
        forces = _as_forces(forces)
        graph = _placed(graph, "the layout", forces)
        places = _as_places(graph, embedding)
        work = backend_of(graph.place)
        options = layout_options(work, forces, schedule, places.shape[1], seed)
        engine = work.SampledLayout(*graph.edges, places, None, None, options, None, n_jobs)
        super().__init__(engine, places.shape, forces, schedule, n_jobs)
        self._set_density(density)
        if fixed is not None:
            engine.pin(_row_mask(fixed, places.shape[0]))
        self._set_negative_weights(negative_weights)


class Placement(_SampledLayout):
    """Layout of rows among a reference map whose points do not move.

    ``graph`` is bipartite, from the rows to the points of ``reference``, which attract and repel. A weight is the
    probability that its edge fires in an epoch, so that the place of a row does not depend on the other rows of the
    call. ``row_keys`` are uint64 names of the rows for the random generator, by default their numbers: keys made from
    the rows' content make the place of a row independent of its position in the call. ``negative_weights`` has an
    entry per point of the reference, ``density`` the summary of the reference in ``fitted``; negatives cannot move.
    The other parameters are those of :class:`Layout`.
    """

    def __init__(
        self,
        graph: Graph,
        embedding: NDArray[np.float32],
        reference: NDArray[np.float32],
        forces: Forces | Kernel,
        schedule: Schedule,
        *,
        seed: int = 0,
        n_jobs: int = -1,
        row_keys: NDArray[np.uint64] | None = None,
        negative_weights: NDArray[np.floating] | None = None,
        density: DensityTerm | None = None,
    ) -> None:
        forces = _as_forces(forces)
        graph = _placed(graph, "the placement", forces)
        places = _as_places(graph, embedding)
        work = backend_of(graph.place)
        options = layout_options(work, forces, schedule, places.shape[1], seed, pulls=PULLS_BIPARTITE)
        options.heaviest = 1.0  # weights are probabilities as they are
        engine = work.SampledLayout(
            *graph.edges,
            places,
            np.ascontiguousarray(reference, dtype=np.float32),
            row_keys,
            options,
            None,
            n_jobs,
        )
        super().__init__(engine, places.shape, forces, schedule, n_jobs)
        self._set_density(density)
        self._set_negative_weights(negative_weights)


class PartialLayout(_SampledLayout):
    """Layout that moves some rows of a map while the others stay.

    It moves them in the array of the caller, so that creating and stepping it costs as much as the edges of the moving
    rows, not of all rows. An interrupted step leaves the array as it was before the step.

    ``graph`` has one row per entry of ``heads``, which are the rows of ``embedding`` that move; tails are rows of
    ``embedding``, which is C-contiguous and writable. ``ages`` are the epochs of the schedule that each head has
    completed, which set its learning rate. ``first_epoch`` is the number of the first epoch for the random draws: a map
    that is moved repeatedly counts its epochs on, so that draws do not repeat. The other parameters are those of
    :class:`Layout`.
    """

    def __init__(
        self,
        graph: Graph,
        embedding: NDArray[np.float32],
        heads: NDArray[np.int32],
        forces: Forces | Kernel,
        schedule: Schedule,
        *,
        ages: NDArray[np.int32],
        first_epoch: int = 0,
        seed: int = 0,
        n_jobs: int = -1,
        negative_weights: NDArray[np.floating] | None = None,
    ) -> None:
        check_size(graph.n_tails, embedding.shape[1])
        forces = _as_forces(forces)
        options = layout_options(cpu, forces, schedule, embedding.shape[1], seed)
        options.first_sweep = first_epoch * schedule.sweeps
        # The oldest row decides how many of the epochs with a single negative are left.
        oldest = int(ages.max()) if ages.size else 0
        options.single_sweeps = max(options.single_sweeps - oldest * schedule.sweeps, 0) + options.first_sweep
        engine = cpu.SampledLayout.in_place(
            graph.indptr, graph.indices, graph.weights, embedding, options, heads, n_jobs
        )
        super().__init__(engine, embedding.shape, forces, schedule, n_jobs)
        self._set_negative_weights(negative_weights)
        self.first_epoch, self.heads, self.ages = first_epoch, heads, ages

    def attach(self, embedding: NDArray[np.float32]) -> None:
        """Continue in another array, which has at least as many rows, without a copy."""
        self._engine.attach(embedding)
        self._shape = embedding.shape


def _as_places(graph: Graph, embedding: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the places in the form that the backend takes."""
    places = np.ascontiguousarray(embedding, dtype=np.float32)
    check_size(graph.n_tails, places.shape[1])
    return places


def check_size(n: int, n_components: int) -> None:
    """Raise ValueError if the backend, which addresses coordinates by 32-bit offsets except in 2-D, cannot hold n."""
    if n_components != 2 and n * n_components >= 2**31:
        raise ValueError(f"n_components={n_components} is too large for {n} rows")


def _placed(graph: Graph, stage: str, forces: Forces) -> Graph:
    """Return the graph where it lives, or on the CPU if a part of the layout runs only there."""
    if backend_of(graph.place).has_space(forces.space.kind):
        return graph
    say_fallback(stage, "a function as output_metric runs there")
    return graph.on(None)


def _as_forces(forces: Forces | Kernel) -> Forces:
    """Return UMAP's forces for a kernel."""
    return Forces(forces) if isinstance(forces, Kernel) else forces


def layout_options(
    work: Any, forces: Forces, schedule: Schedule, n_components: int, seed: int, pulls: int = PULLS_SYMMETRIC
) -> Any:
    """Return the options of the backend ``work``."""
    options = work.LayoutOptions()
    options.set_force(forces.kind, forces.kernel.a, forces.kernel.b, schedule.repulsion_strength)
    if forces.space.function is None:
        options.set_space(forces.space.kind, list(forces.space.values), n_components)
    else:
        options.set_space_function(forces.space.evaluate)
    options.negatives = schedule.negative_sample_rate
    options.single_sweeps = round(schedule.single_negative_share * schedule.n_epochs) * schedule.sweeps
    options.longest_push = schedule.longest_push
    options.pulls = pulls
    options.firings_per_sweep = min(1.0, schedule.firings / schedule.sweeps)
    options.update_negatives = schedule.update_negatives
    options.seed = seed
    return options


def _row_mask(mask: NDArray[np.bool_], n: int) -> NDArray[np.bool_]:
    """Check for one bool per row. Integers are rejected, since they could be meant as row numbers."""
    found = np.asarray(mask)
    if found.dtype != np.bool_ or found.shape != (n,):
        raise ValueError(f"fixed must hold one bool for each of {n} rows, got shape {found.shape} of {found.dtype}")
    return np.ascontiguousarray(found)


@dataclass(frozen=True)
class SweepRule:
    """What all parts of a layout have in common; ``heaviest`` is the largest weight of all edges."""

    n: int
    n_components: int
    forces: Forces
    schedule: Schedule
    seed: int
    heaviest: float

    def __post_init__(self) -> None:
        check_size(self.n, self.n_components)
        if self.schedule.update_negatives:
            raise ValueError("update_negatives=True moves rows of other parts, so a layout in parts cannot have it")

    def options(self) -> cpu.LayoutOptions:
        """Return the options of the backend, which cannot be sent to other processes."""
        options: cpu.LayoutOptions = layout_options(cpu, self.forces, self.schedule, self.n_components, self.seed)
        options.heaviest = self.heaviest
        return options


@dataclass(frozen=True)
class LayoutPart:
    """The edges of the rows from ``first`` on, in the order of a sweep, with rate and phase of each edge."""

    first: int
    indptr: NDArray[np.int64]
    tails: NDArray[np.int32]
    rate: NDArray[np.uint32]
    phase: NDArray[np.uint32]

    @property
    def rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_bytes(self) -> int:
        return int(self.indptr.nbytes + self.tails.nbytes + self.rate.nbytes + self.phase.nbytes)

    @classmethod
    def of(
        cls,
        first: int,
        edges: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]],
        rule: SweepRule,
        n_jobs: int = 1,
    ) -> LayoutPart:
        """Prepare the edges (indptr, indices, weights) of consecutive rows; the tails are rows of the whole."""
        indptr, indices, weights = edges
        prepared = cpu.layout_edges(indptr, indices, weights, first, rule.n, rule.n_components, rule.options(), n_jobs)
        return cls(first, indptr, *prepared)

    @classmethod
    def joined(cls, parts: list[LayoutPart]) -> LayoutPart:
        """Join parts whose rows follow each other."""
        counts = [int(part.indptr[-1]) for part in parts]
        before = np.cumsum([0, *counts[:-1]])
        indptr = [part.indptr[:-1] + edges for part, edges in zip(parts, before, strict=True)]
        # Behind its edges an array has slots that vectors may read: only those of the last part stay.
        kept = [*counts[:-1], None]
        arrays = (
            np.concatenate([getattr(part, name)[:stop] for part, stop in zip(parts, kept, strict=True)])
            for name in ("tails", "rate", "phase")
        )
        return cls(parts[0].first, np.concatenate([*indptr, parts[-1].indptr[-1:] + before[-1]]), *arrays)

    def sweep(
        self,
        places: NDArray[np.float32],
        rule: SweepRule,
        number: int,
        *,
        negatives: NegativeTable | None = None,
        density: DensityStep | None = None,
        n_jobs: int = 1,
    ) -> NDArray[np.float32]:
        """Return the places of the rows of this part after one sweep from the snapshot ``places`` of all rows.

        ``density`` is given in the sweeps in which a density term acts.
        """
        rate = float(rule.schedule.learning_rates(np.array([number // rule.schedule.sweeps]))[0])
        keep, alias = negatives or (None, None)
        edges, options, moves, every = self._edges(), rule.options(), None, 1
        if density is not None:
            moves = edges.density_moves(places, options, density.summary, density.share, density.weight, n_jobs)
            every = density.every
        return edges.sweep(places, options, number, rate, keep, alias, moves, every, n_jobs)

    def measure(self, places: NDArray[np.float32], rule: SweepRule, n_jobs: int = 1) -> Measured:
        """Return the log radius of each row of this part in the map, and the sum of its affinities."""
        return np.stack(self._edges().measure_density(places, rule.options(), n_jobs), axis=1)

    @property
    def rates(self) -> int:
        """The sum of the rates of all edges."""
        return int(self.rate[: self.indptr[-1]].sum(dtype=np.uint64))

    def _edges(self) -> cpu.PartEdges:
        return cpu.PartEdges(self.indptr, self.tails, self.rate, self.phase, self.first)


class DensityStep(NamedTuple):
    """What the density term of one sweep takes from all rows: the summary, and two numbers for each row.

    The step is ``every`` times as long as that of a sweep, because the term acts in every ``every``-th sweep only.
    """

    summary: Summary
    share: NDArray[np.float32]
    weight: float
    every: int


@dataclass(frozen=True)
class PartedDensity:
    """The density term of a layout in parts; ``rates`` is the sum over all parts."""

    term: DensityTerm
    schedule: Schedule
    rates: int

    def acts_in(self, number: int) -> bool:
        """Tell whether the term acts in a sweep."""
        first, every = self.term.sweeps(self.schedule)
        return number >= first and (number - first) % every == 0

    def summary(self, measured: Measured) -> Summary:
        """Return the ``density_summary`` of a layout, given the measures of all rows."""
        log_radius = np.ascontiguousarray(measured[:, 0])
        return cpu.summarize_density(self.term.target, log_radius, self.term.variance_shift, self.rates)

    def step(self, measured: Measured) -> DensityStep:
        """Return what all parts need for a sweep, given the measures of all rows."""
        summary, every = self.summary(measured), self.term.sweeps(self.schedule)[1]
        log_radius, mass = np.ascontiguousarray(measured.T)
        share = cpu.density_shares(self.term.target, log_radius, mass, summary)
        return DensityStep(summary, share, self.term.weight, every)


def negative_table(weights: NDArray[np.floating[Any]]) -> NegativeTable:
    """Return the table (keep and alias of each row) by which negatives are drawn in proportion to weights."""
    return cpu.alias_table(np.ascontiguousarray(weights, dtype=np.float32))


# A step makes tables of its epochs, which are not interruptible and take memory.
MOST_EPOCHS_PER_STEP = 100_000


def run_layout(
    layout: Any, stops: Sequence[int], progress: Progress, places: Callable[[], NDArray[np.float32]]
) -> list[NDArray[np.float32]]:
    """Run a layout to the last of ``stops``, or until a callback asks to stop.

    The layout, anything with ``epoch`` and ``step(n)``, is stepped to the next epoch that anyone watches. It does not
    depend on how its epochs are divided into steps, so the result does not depend on who watches. ``places()`` returns
    the current places, which callbacks see. The result has the places at each of the ascending stops that were reached.
    """
    reached = []
    with progress.stage(LAYOUT, stops[-1]):
        for stop in stops:
            while layout.epoch < stop and not progress.stopped:
                watched = progress.next_report(layout.epoch, stop)
                while layout.epoch < watched:
                    layout.step(min(watched - layout.epoch, MOST_EPOCHS_PER_STEP))
                progress.report(LAYOUT, layout.epoch, stops[-1], places)
            if layout.epoch == stop:
                reached.append(places())
    return reached
