"""UMAP with umap-learn's constructor: composition of neighbours, graph, supervision, start and layout."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vicinal import _core
from vicinal.estimators._base import Embedding
from vicinal.graph import bipartite_graph, fuzzy_graph
from vicinal.initialize import INITIALIZERS, InitialTask, initial_embedding, neighbor_mean, to_extent
from vicinal.kernel import Kernel, fit_ab
from vicinal.layout import SMALL_ROWS, Layout, Schedule, default_epochs
from vicinal.neighbors import ALIASES, METRICS, Method, NeighborIndex
from vicinal.parameters import Interval, StrOptions
from vicinal.progress import LAYOUT, Progress
from vicinal.seen_rows import SeenRows
from vicinal.supervision import intersect_labels

# Parameters that umap-learn has and this release does not implement: what they must be left at.
NOT_YET: dict[str, tuple[Any, ...]] = {
    "metric_kwds": (None, {}),
    "output_metric": ("euclidean", "l2"),
    "output_metric_kwds": (None, {}),
    "target_metric": ("categorical",),
    "target_metric_kwds": (None, {}),
    "transform_mode": ("embedding",),
    "unique": (False,),
    "densmap": (False,),
    "output_dens": (False,),
    "precomputed_knn": (None, (None, None, None)),
}

# A new row finds its place among many fixed ones quickly (umap-learn's numbers).
TRANSFORM_EPOCHS_SMALL, TRANSFORM_EPOCHS_LARGE, TRANSFORM_SLOWER = 100, 30, 4.0


class UMAP(Embedding):
    """Uniform Manifold Approximation and Projection.

    The parameters are umap-learn's, with the same names, order and defaults; ``callback`` and
    ``update_negatives`` are additions. The same ``random_state`` gives the same bits for any ``n_jobs``.

    Parameters
    ----------
    n_neighbors : int, default 15
        Size of the neighbourhoods, the row itself counted. Larger shows more of the global structure.
    n_components : int, default 2
        Dimensions of the embedding.
    metric : str, default "euclidean"
        euclidean, sqeuclidean, manhattan, chebyshev, cosine or correlation.
    n_epochs : int, optional
        Default 500 up to 10,000 rows, 200 beyond.
    learning_rate : float, default 1.0
        At the first epoch; falls to 0 as (1 - e/n_epochs)^1.5.
    init : {"spectral", "pca", "random"} or array [rows, n_components], default "spectral"
        Where the rows start. ``init_used_`` says what was used, and why if not what was asked for.
    min_dist, spread : float, default 0.1 and 1.0
        How close rows may lie in the embedding, and its scale. ``a``, ``b`` override them.
    n_jobs : int, default -1
        Threads; -1 uses all.
    set_op_mix_ratio : float, default 1.0
        Fuzzy union (1) or intersection (0) of the neighbourhoods.
    local_connectivity : float, default 1.0
        Neighbours a row is certainly connected to.
    repulsion_strength, negative_sample_rate : float and int, default 1.0 and 5
        Weight and number of the negative samples.
    random_state : int, RandomState or None
        Seed of everything random in ``fit``.
    target_weight : float, default 0.5
        With ``y``: how far apart classes are drawn; at 1 edges between classes vanish. Rows with y = -1 are
        unlabelled.
    transform_seed : int, default 42
        Seed of ``transform``.
    force_approximation_algorithm : bool, default False
        Approximate neighbours even where comparing every pair is faster.
    verbose, tqdm_kwds : bool and dict
        A progress bar for every stage.
    disconnection_distance : float, optional
        Rows this far apart or more are no neighbours.
    callback : callable(stage, epoch, n_epochs, embedding), optional
        Called before and after each stage and after every epoch of the layout; a truthy answer stops the layout
        and keeps the map.
    update_negatives : bool, default False
        Whether negative samples move too (the line of Algorithm 1 that "does not exist in original UMAP").

    ``low_memory``, ``angular_rp_forest``, ``transform_queue_size`` and ``target_n_neighbors`` are accepted and have
    no effect.

    Attributes
    ----------
    embedding_ : array [rows, n_components]
    graph_ : sparse matrix of the fuzzy graph
    init_used_ : str
    stage_times_ : dict of seconds
    n_epochs_ : int, epochs that were run
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 2, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "metric": [StrOptions({*METRICS, *ALIASES, "precomputed"}), callable],
        "metric_kwds": [dict, None],
        "output_metric": [str, callable],
        "output_metric_kwds": [dict, None],
        "n_epochs": [Interval(Integral, 0, None, closed="left"), list, tuple, None],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "init": [StrOptions(set(INITIALIZERS)), "array-like"],
        "min_dist": [Interval(Real, 0, None, closed="left")],
        "spread": [Interval(Real, 0, None, closed="neither")],
        "low_memory": ["boolean"],
        "n_jobs": [Integral, None],
        "set_op_mix_ratio": [Interval(Real, 0, 1, closed="both")],
        "local_connectivity": [Interval(Real, 0, None, closed="left")],
        "repulsion_strength": [Interval(Real, 0, None, closed="left")],
        "negative_sample_rate": [Interval(Integral, 0, None, closed="left")],
        "transform_queue_size": [Interval(Real, 0, None, closed="left")],
        "a": [Interval(Real, 0, None, closed="neither"), None],
        "b": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
        "angular_rp_forest": ["boolean"],
        "target_n_neighbors": [Integral],
        "target_metric": [str, callable],
        "target_metric_kwds": [dict, None],
        "target_weight": [Interval(Real, 0, 1, closed="both")],
        "transform_seed": [Interval(Integral, 0, None, closed="left")],
        "transform_mode": [StrOptions({"embedding", "graph"})],
        "force_approximation_algorithm": ["boolean"],
        "verbose": ["verbose"],
        "tqdm_kwds": [dict, None],
        "unique": ["boolean"],
        "densmap": ["boolean"],
        "dens_lambda": [Interval(Real, 0, None, closed="left")],
        "dens_frac": [Interval(Real, 0, 1, closed="both")],
        "dens_var_shift": [Interval(Real, 0, None, closed="left")],
        "output_dens": ["boolean"],
        "disconnection_distance": [Interval(Real, 0, None, closed="neither"), None],
        "precomputed_knn": [tuple, list, None],
        "callback": [callable, None],
        "update_negatives": ["boolean"],
    }

    def __init__(
        self,
        n_neighbors: int = 15,
        n_components: int = 2,
        metric: Any = "euclidean",
        metric_kwds: dict[str, Any] | None = None,
        output_metric: Any = "euclidean",
        output_metric_kwds: dict[str, Any] | None = None,
        n_epochs: int | None = None,
        learning_rate: float = 1.0,
        init: Any = "spectral",
        min_dist: float = 0.1,
        spread: float = 1.0,
        low_memory: bool = True,
        n_jobs: int | None = -1,
        set_op_mix_ratio: float = 1.0,
        local_connectivity: float = 1.0,
        repulsion_strength: float = 1.0,
        negative_sample_rate: int = 5,
        transform_queue_size: float = 4.0,
        a: float | None = None,
        b: float | None = None,
        random_state: Any = None,
        angular_rp_forest: bool = False,
        target_n_neighbors: int = -1,
        target_metric: Any = "categorical",
        target_metric_kwds: dict[str, Any] | None = None,
        target_weight: float = 0.5,
        transform_seed: int = 42,
        transform_mode: str = "embedding",
        force_approximation_algorithm: bool = False,
        verbose: bool = False,
        tqdm_kwds: dict[str, Any] | None = None,
        unique: bool = False,
        densmap: bool = False,
        dens_lambda: float = 2.0,
        dens_frac: float = 0.3,
        dens_var_shift: float = 0.1,
        output_dens: bool = False,
        disconnection_distance: float | None = None,
        precomputed_knn: Any = (None, None, None),
        *,
        callback: Any = None,
        update_negatives: bool = False,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.metric = metric
        self.metric_kwds = metric_kwds
        self.output_metric = output_metric
        self.output_metric_kwds = output_metric_kwds
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.init = init
        self.min_dist = min_dist
        self.spread = spread
        self.low_memory = low_memory
        self.n_jobs = n_jobs
        self.set_op_mix_ratio = set_op_mix_ratio
        self.local_connectivity = local_connectivity
        self.repulsion_strength = repulsion_strength
        self.negative_sample_rate = negative_sample_rate
        self.transform_queue_size = transform_queue_size
        self.a = a
        self.b = b
        self.random_state = random_state
        self.angular_rp_forest = angular_rp_forest
        self.target_n_neighbors = target_n_neighbors
        self.target_metric = target_metric
        self.target_metric_kwds = target_metric_kwds
        self.target_weight = target_weight
        self.transform_seed = transform_seed
        self.transform_mode = transform_mode
        self.force_approximation_algorithm = force_approximation_algorithm
        self.verbose = verbose
        self.tqdm_kwds = tqdm_kwds
        self.unique = unique
        self.densmap = densmap
        self.dens_lambda = dens_lambda
        self.dens_frac = dens_frac
        self.dens_var_shift = dens_var_shift
        self.output_dens = output_dens
        self.disconnection_distance = disconnection_distance
        self.precomputed_knn = precomputed_knn
        self.callback = callback
        self.update_negatives = update_negatives

    def fit(self, X: Any, y: Any = None) -> UMAP:
        """Embeds ``X``; with ``y`` (classes, -1 = unlabelled) the map is drawn apart by class."""
        self._check_parameters()
        rows = self._check_rows(X, reset=True)
        labels = self._check_labels(y, rows.shape[0])
        start = self._check_init(rows.shape[0])
        kernel = self._kernel()
        seed = self._seed(self.random_state)
        jobs = self._jobs()
        progress = Progress(callback=self.callback, verbose=bool(self.verbose), tqdm_kwds=self.tqdm_kwds)

        with progress.stage("neighbors"):
            seen = SeenRows(rows, jobs)
            index = NeighborIndex(rows, self.metric, seed=seed, n_jobs=jobs)
            method: Method = "approximate" if self.force_approximation_algorithm else "auto"
            neighbors = index.search(min(self.n_neighbors, rows.shape[0]), method)
        with progress.stage("graph"):
            graph = fuzzy_graph(
                neighbors,
                local_connectivity=self.local_connectivity,
                set_op_mix_ratio=self.set_op_mix_ratio,
                disconnection_distance=self.disconnection_distance,
                n_jobs=jobs,
            )
            search_graph = graph
            if labels is not None:
                graph = intersect_labels(graph, labels, self.target_weight)
        with progress.stage("initialize"):
            if start is None:
                task = InitialTask(graph, rows, self.n_components, seed, jobs)
                start, self.init_used_ = initial_embedding(self.init, task)
            else:
                self.init_used_ = "array"
        n_epochs = default_epochs(rows.shape[0]) if self.n_epochs is None else int(self.n_epochs)
        layout = Layout(graph, start, kernel, self._schedule(n_epochs), seed=seed, n_jobs=jobs)
        # Equal rows share one place: transform could not tell them apart.
        def places() -> NDArray[np.float32]:
            return layout.embedding[seen.first]

        self.n_epochs_ = self._run(layout, n_epochs, progress, places)

        self._raw_data = rows
        self._seen, self._index, self._search_graph = seen, index, search_graph
        self._knn_indices, self._knn_dists = neighbors.index, neighbors.distance
        self._rhos, self._sigmas = graph.rho, graph.sigma
        self._a, self._b = kernel.a, kernel.b
        self.graph_ = graph.to_scipy()
        self.embedding_ = places()
        self.stage_times_ = progress.times
        return self

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[np.float32]:
        """``fit(X, y).embedding_``."""
        return self.fit(X, y).embedding_

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Places of rows in the fitted map, which stays as it is.

        A row of the training data gets its place there; any other is placed among its neighbours. The result
        for a row depends on that row alone, not on what else is in ``X``.
        """
        self._check_is_fitted("embedding_")
        rows = self._check_rows(X, reset=False)
        keys = _core.hash_rows(rows, self._jobs())
        known = self._seen.find(rows, keys)
        out = np.empty((rows.shape[0], self.embedding_.shape[1]), dtype=np.float32)
        out[known >= 0] = self.embedding_[known[known >= 0]]
        new = np.flatnonzero(known < 0)
        if new.size:
            everything = new.size == rows.shape[0]
            out[new] = self._place(rows if everything else rows[new], keys if everything else keys[new])
        return out

    def _place(self, rows: NDArray[np.float32], keys: NDArray[np.uint64]) -> NDArray[np.float32]:
        """Places of unseen rows: the mean of their neighbours, then a short layout among the fixed map."""
        jobs, n = self._jobs(), self.embedding_.shape[0]
        neighbors = self._index.query(rows, min(self.n_neighbors, n), self._search_graph)
        graph = bipartite_graph(neighbors, n, local_connectivity=self.local_connectivity, n_jobs=jobs)
        start = neighbor_mean(graph, self.embedding_)
        n_epochs = TRANSFORM_EPOCHS_SMALL if n <= SMALL_ROWS else TRANSFORM_EPOCHS_LARGE
        if self.n_epochs is not None:
            n_epochs = int(self.n_epochs) // 3
        layout = Layout(
            graph,
            start,
            Kernel(self._a, self._b),
            self._schedule(n_epochs, self.learning_rate / TRANSFORM_SLOWER, moving=False),
            seed=int(self.transform_seed),
            n_jobs=jobs,
            reference=self.embedding_,
            row_keys=keys,
        )
        layout.step(n_epochs)
        return layout.embedding

    def _run(
        self, layout: Layout, n_epochs: int, progress: Progress, places: Callable[[], NDArray[np.float32]]
    ) -> int:
        with progress.stage(LAYOUT, n_epochs):
            if not progress.wants_epochs:
                layout.step(n_epochs)
            while layout.epoch < n_epochs and not progress.stopped:
                layout.step(1)
                progress.report(LAYOUT, layout.epoch, n_epochs, places)
        return layout.epoch

    def _schedule(self, n_epochs: int, learning_rate: float | None = None, moving: bool = True) -> Schedule:
        return Schedule(
            n_epochs,
            self.learning_rate if learning_rate is None else learning_rate,
            int(self.negative_sample_rate),
            self.repulsion_strength,
            bool(self.update_negatives) and moving,
        )

    def _kernel(self) -> Kernel:
        if self.a is not None and self.b is not None:
            return Kernel(float(self.a), float(self.b))
        return fit_ab(self.spread, self.min_dist)

    def _check_parameters(self) -> None:
        self._validate_params()
        for name, allowed in NOT_YET.items():
            value = getattr(self, name)
            if not any(_same(value, one) for one in allowed):
                raise NotImplementedError(f"{name} is not implemented yet; leave it at {allowed[0]!r}")
        if self.metric == "precomputed" or callable(self.metric):
            raise NotImplementedError(f"metric={self.metric!r} is not implemented yet; use one of {sorted(METRICS)}")
        if isinstance(self.n_epochs, list | tuple):
            raise NotImplementedError("n_epochs as a list is not implemented yet; give one number")
        if self.n_jobs == 0:
            raise ValueError("n_jobs must not be 0; -1 uses all processors")
        if self.min_dist > self.spread:
            raise ValueError(f"min_dist must not exceed spread, got min_dist={self.min_dist}, spread={self.spread}")
        if (self.a is None) != (self.b is None):
            raise ValueError(f"a and b must be given together, got a={self.a}, b={self.b}")

    def _check_labels(self, y: Any, n: int) -> NDArray[Any] | None:
        if y is None:
            return None
        labels = np.asarray(y)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels.reshape(-1)
        if labels.ndim != 1 or labels.shape[0] != n:
            raise ValueError(f"y must hold one label a row, got shape {np.shape(y)} for {n} rows")
        if labels.dtype.kind in "fc" and not np.isfinite(labels).all():
            raise ValueError(f"y contains NaN or infinity, first in row {int(np.argmin(np.isfinite(labels)))}")
        return labels

    def _check_init(self, n: int) -> NDArray[np.float32] | None:
        """The start given as an array, stretched to the usual extent, or None for a name."""
        if isinstance(self.init, str):
            return None
        try:
            places = np.asarray(self.init, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"init must be one of {sorted(INITIALIZERS)} or an array of numbers: {error}") from error
        if places.shape != (n, self.n_components):
            raise ValueError(f"init must have shape {(n, self.n_components)}, got {places.shape}")
        if not np.isfinite(places).all():
            bad = int(np.argmin(np.isfinite(places).all(axis=1)))
            raise ValueError(f"init contains NaN or infinity, first in row {bad}")
        return to_extent(places).astype(np.float32)


def _same(value: Any, allowed: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(one is None for one in value) and isinstance(allowed, tuple)
    return bool(type(value) is type(allowed) and value == allowed) or (value is None and allowed is None)
