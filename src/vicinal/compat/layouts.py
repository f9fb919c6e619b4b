"""umap-learn's ``umap.layouts``: the layout of a list of edges.

Results are new arrays; the given ones stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_matrix, csr_matrix

from vicinal.compat.distances import given_keywords
from vicinal.estimators.base import random_seed
from vicinal.graph.graph import Graph
from vicinal.layout.forces import Forces, Kernel, OutputSpace, output_space
from vicinal.layout.sampled import Layout, Placement, run_layout
from vicinal.layout.schedule import Schedule
from vicinal.neighbors.metrics import ALIASES, METRICS, canonical_metric
from vicinal.pipeline.recipe import SampledPlan
from vicinal.runtime.progress import Progress

Places = NDArray[np.float32]

__all__ = ["clip", "optimize_layout_euclidean", "optimize_layout_generic", "rdist"]

LARGEST_STEP = 4.0


def clip(val: float) -> float:
    """Return a number, limited to the range from -4 to 4."""
    return float(np.clip(val, -LARGEST_STEP, LARGEST_STEP))


def rdist(x: ArrayLike, y: ArrayLike) -> float:
    """Return the squared euclidean distance of two vectors."""
    apart = np.asarray(x, dtype=np.float64) - np.asarray(y, dtype=np.float64)
    return float(apart @ apart)


def optimize_layout_euclidean(
    head_embedding: Any,
    tail_embedding: Any,
    head: ArrayLike,
    tail: ArrayLike,
    n_epochs: int | Sequence[int],
    n_vertices: int,
    epochs_per_sample: ArrayLike,
    a: float,
    b: float,
    rng_state: Any,
    gamma: float = 1.0,
    initial_alpha: float = 1.0,
    negative_sample_rate: float = 5.0,
    parallel: bool = False,
    verbose: bool = False,
    densmap: bool = False,
    densmap_kwds: Mapping[str, Any] | None = None,
    tqdm_kwds: dict[str, Any] | None = None,
    move_other: bool = False,
) -> Any:
    """Lay out edges that are sampled once in ``epochs_per_sample`` epochs; return the places of the heads.

    Parameters
    ----------
    head_embedding : array [rows, n_components]
        First places of the rows.
    tail_embedding : array [points, n_components]
        The same array if all rows move; otherwise the places of a map that stays as it is.
    head, tail : int arrays [edges]
        The edges, as row numbers of the two arrays.
    n_epochs : int or list of int
        Number of epochs. With a list, the places after each of them.
    n_vertices : int
        Ignored: it is the number of points.
    epochs_per_sample : array [edges]
        Edges with values that are not above 0 are left out.
    a, b : float
        Parameters of the kernel.
    rng_state : int, RandomState or array of int
        Seed, or umap-learn's state of three integers.
    gamma, initial_alpha, negative_sample_rate : float
        Weight of the repulsion, first learning rate, negatives per edge.
    parallel, densmap_kwds
        Ignored.
    verbose, tqdm_kwds
        Whether and how to show a progress bar.
    densmap : bool
        Must be False: :func:`simplicial_set_embedding` lays out densMAP's maps.
    move_other : bool
        Whether the tails move too. They do if both arrays are the same.
    """
    if densmap:
        raise ValueError("densmap must be False here: simplicial_set_embedding(densmap=True) lays out densMAP's maps")
    given = head_embedding, tail_embedding, head, tail, n_epochs, n_vertices, epochs_per_sample, a, b, rng_state
    rates = gamma, initial_alpha, negative_sample_rate
    return optimize_layout_generic(*given, *rates, verbose=verbose, tqdm_kwds=tqdm_kwds, move_other=move_other)


def optimize_layout_generic(
    head_embedding: Any,
    tail_embedding: Any,
    head: ArrayLike,
    tail: ArrayLike,
    n_epochs: int | Sequence[int],
    n_vertices: int,
    epochs_per_sample: ArrayLike,
    a: float,
    b: float,
    rng_state: Any,
    gamma: float = 1.0,
    initial_alpha: float = 1.0,
    negative_sample_rate: float = 5.0,
    output_metric: Any = "euclidean",
    output_metric_kwds: Any = (),
    verbose: bool = False,
    tqdm_kwds: dict[str, Any] | None = None,
    move_other: bool = False,
) -> Any:
    """Lay out edges in another space; return the places of the heads.

    ``output_metric`` is a name, one of ``umap.distances``, or a function that returns (distance, gradient);
    ``output_metric_kwds`` holds its further arguments, in order or by name. The other parameters are those of
    :func:`optimize_layout_euclidean`.
    """
    n_components = int(np.shape(head_embedding)[1])
    plan = SampledPlan(
        Forces(Kernel(float(a), float(b)), space=_space(output_metric, output_metric_kwds, n_components)),
        learning_rate=float(initial_alpha),
        negative_sample_rate=int(negative_sample_rate),
        repulsion_strength=float(gamma),
    )
    moves = move_other or np.shares_memory(np.asarray(head_embedding), np.asarray(tail_embedding))
    edges = _weights(head, tail, epochs_per_sample, (len(head_embedding), len(tail_embedding)))
    progress = Progress(verbose=bool(verbose), tqdm_kwds=tqdm_kwds)
    return _lay_out(plan, edges, head_embedding, None if moves else tail_embedding, n_epochs, rng_state, progress)


def _space(metric: Any, given: Any, n_components: int) -> OutputSpace:
    if isinstance(given, Mapping):
        return output_space(metric, dict(given), n_components)
    if callable(metric) and not isinstance(metric, str):
        return output_space(lambda x, y: metric(x, y, *given), None, n_components)
    accepted = METRICS[canonical_metric(metric)].keywords if metric in (*METRICS, *ALIASES) else ()
    return output_space(str(metric), given_keywords(accepted, given, {}, n_components), n_components)


def _weights(head: ArrayLike, tail: ArrayLike, epochs_per_sample: ArrayLike, shape: tuple[int, int]) -> csr_matrix:
    """Return how often each edge is sampled per epoch, at most once."""
    heads, tails = np.asarray(head), np.asarray(tail)
    wait = np.asarray(epochs_per_sample, dtype=np.float64)
    if not heads.shape == tails.shape == wait.shape or heads.ndim != 1:
        raise ValueError("head, tail and epochs_per_sample must be vectors of the same length")
    for name, found, n in (("head", heads, shape[0]), ("tail", tails, shape[1])):
        if len(found) and not 0 <= found.min() <= found.max() < n:
            raise ValueError(f"{name} must hold row numbers from 0 to {n - 1}")
    fires = wait > 0
    weights = 1.0 / np.maximum(wait[fires], 1.0)
    return coo_matrix((weights, (heads[fires], tails[fires])), shape=shape).tocsr()


def _lay_out(
    plan: SampledPlan, edges: csr_matrix, start: Any, reference: Any, n_epochs: Any, state: Any, progress: Progress
) -> Any:
    """Move all rows of a map, or rows among the points of ``reference``."""
    stops = sorted({int(epoch) for epoch in np.atleast_1d(np.asarray(n_epochs))})
    places = np.ascontiguousarray(start, dtype=np.float32)
    seed = _seed(state)
    layout: Layout | Placement
    if reference is None:
        if edges.shape[0] != edges.shape[1]:
            raise ValueError("head_embedding and tail_embedding must have the same rows if all rows move")
        graph = Graph.from_scipy((edges + edges.T) / 2.0)
        layout = Layout(graph, places, plan.forces, plan.schedule(stops[-1], graph.n), seed=seed)
    else:
        nothing = np.zeros(edges.shape[0], np.float32)
        none = np.zeros(edges.shape[0] + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
        graph = Graph(*none, edges.shape[1], nothing, nothing).with_weights(edges)
        schedule = Schedule(stops[-1], plan.learning_rate, plan.negative_sample_rate, plan.repulsion_strength, sweeps=1)
        layout = Placement(graph, places, reference, plan.forces, schedule, seed=seed)
    reached = run_layout(layout, stops, progress, lambda: layout.embedding)
    return reached if isinstance(n_epochs, list | tuple) else layout.embedding


def _seed(state: Any) -> int:
    """Return a seed for umap-learn's state of three integers, or for a random state."""
    if isinstance(state, np.ndarray | list | tuple):
        words = [int(word) % 2**64 for word in state]
        return int(np.random.default_rng(words).integers(2**31))
    return random_seed(state)
