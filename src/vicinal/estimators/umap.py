"""UMAP with umap-learn's constructor: composition of neighbours, graph, supervision, start and layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators._density import Densities
from vicinal.estimators._umap_parameters import UMAPParameters
from vicinal.estimators.composed import Composable
from vicinal.graph.fuzzy import bipartite_graph, fuzzy_graph
from vicinal.graph.graph import Graph
from vicinal.graph.supervision import Supervision
from vicinal.initialize.medoid import neighbor_medoid
from vicinal.initialize.start import initial_embedding
from vicinal.initialize.task import InitialTask
from vicinal.layout.density import DensityTerm
from vicinal.layout.kernel import Kernel
from vicinal.layout.sampled import Layout
from vicinal.layout.schedule import SMALL_ROWS, Schedule
from vicinal.maps.row_facts import Given, RowFacts, check_facts
from vicinal.neighbors.index import Method
from vicinal.neighbors.metrics import PRECOMPUTED, Rows
from vicinal.neighbors.precomputed import neighbors_from_knn
from vicinal.neighbors.rows import as_rows
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import RowSource, Source, placed, recognised
from vicinal.runtime.progress import Progress

if TYPE_CHECKING:
    from vicinal.quality.losses import History

# A new row finds its place among many fixed ones quickly (umap-learn's numbers).
TRANSFORM_EPOCHS_SMALL, TRANSFORM_EPOCHS_LARGE, TRANSFORM_SLOWER = 100, 30, 4.0
# Points of a recorded loss, and partners of a row that each is estimated from where all pairs would take too long.
LOSS_RECORDS, LOSS_SAMPLES = 20, 64


class UMAP(Composable, Densities, UMAPParameters):
    """Uniform Manifold Approximation and Projection.

    The parameters are umap-learn's, with the same names, order and defaults; ``callback``, ``update_negatives``,
    ``compute_loss`` and ``memory_limit`` are additions. The same ``random_state`` gives the same bits for any
    ``n_jobs``.

    Parameters
    ----------
    n_neighbors : int, default 15
        Size of the neighbourhoods, the row itself counted. Larger shows more of the global structure.
    n_components : int, default 2
        Dimensions of the embedding.
    metric : str or callable, default "euclidean"
        A name of ``vicinal.neighbors.metrics.METRICS``, "precomputed" (``X`` holds distances, dense or sparse), a function of two
        rows, or a ``scipy.LowLevelCallable``; ``metric_kwds`` are its keywords.
    output_metric : str, default "euclidean"
        The distance of the map: haversine, hyperboloid, manhattan, cosine and others; with ``output_metric_kwds``.
    n_epochs : int or list of int, optional
        Default 500 up to 10,000 rows, 200 beyond. Of a list the maps at all these epochs are ``embedding_list_``.
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
    target_metric : str or callable, default "categorical"
        How ``y`` is compared: classes, "ordinal" levels, or a metric of numbers; with ``target_metric_kwds`` and, for
        numbers, ``target_n_neighbors`` (-1: ``n_neighbors``).
    target_weight : float, default 0.5
        With ``y``: how far apart classes are drawn; at 1 edges between classes vanish. Rows with y = -1 or NaN are
        unlabelled.
    transform_mode : {"embedding", "graph"}, default "embedding"
        "graph" gives memberships instead of places, and no layout is computed.
    unique : bool, default False
        Whether equal rows are embedded as one.
    densmap, dens_lambda, dens_frac, dens_var_shift, output_dens
        See :class:`vicinal.DensMAP`.
    precomputed_knn : (indices, distances[, index]) or sparse graph, optional
        Neighbours of the rows, itself counted, to be used instead of a search.
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
    compute_loss : bool, default False
        Whether ``loss_history_`` records the loss that the sampler minimises (survey eq. 29) along the layout.
    memory_limit : int or str, optional
        Bytes, or a text such as "2GB". A fit that would take more beyond its input (``vicinal.estimate_memory``) raises
        MemoryError before it allocates anything.

    ``low_memory``, ``angular_rp_forest`` and ``transform_queue_size`` are accepted and have no effect.

    Attributes
    ----------
    embedding_ : array [rows, n_components]
    graph_ : sparse matrix of the fuzzy graph
    init_used_ : str
    stage_times_ : dict of seconds
    n_epochs_ : int, epochs that were run
    rad_orig_, rad_emb_ : logarithms of local radii in the data and in the map (``densmap``, ``output_dens``)
    radius_correlation_ : their correlation
    """

    def fit(self, X: Any, y: Any = None, **facts: Unpack[RowFacts]) -> UMAP:
        """Embeds ``X``.

        With ``y`` the map is drawn apart by it; -1 (classes) and NaN mean unlabelled. By name:

        - ``sample_weight``: a row counts as that many rows.
        - ``fixed_mask``, ``fixed_positions`` [rows, components]: marked rows are put there and stay, bit for bit.
        - ``ensure_all_finite`` has no effect: NaN is accepted by metrics that know it, and by no other.
        """
        self._check_parameters()
        seed = self._seed(self.random_state)
        source = self._source_of(self._check_data(X, reset=True), seed)
        labels = None if y is None else self._supervision(seed).check(y, source.n)
        given = check_facts(facts, labels, source.n, int(self.n_components))
        start = self._check_init(source.n)
        return self._embed(source, given, start, self._epoch_stops(source.n), self.learning_rate, seed)

    def fit_transform(self, X: Any, y: Any = None, **facts: Unpack[RowFacts]) -> Any:
        """``fit(X, y).embedding_``, or the graph if ``transform_mode="graph"``; with ``output_dens`` and the radii."""
        self.fit(X, y, **facts)
        if self.transform_mode == "graph":
            return self.graph_
        return (self.embedding_, self.rad_orig_, self.rad_emb_) if self.output_dens else self.embedding_

    def transform(self, X: Any) -> Any:
        """Places of rows in the fitted map, which stays as it is.

        A row of the training data gets its place there; any other is placed among its neighbours. The result
        for a row depends on that row alone, not on what else is in ``X``. With ``transform_mode="graph"`` the rows'
        memberships of the training rows, as a sparse matrix.
        """
        self._check_is_fitted("graph_")
        rows = self._check_data(X, reset=False)
        if self.transform_mode == "graph":
            return self._memberships(rows).to_scipy()
        places = self._places()

        def settle(new: Rows, keys: NDArray[np.uint64]) -> NDArray[np.float32]:
            neighbors = self._nearest(new)
            graph = self._memberships(new, neighbors)
            return self._settled(graph, places, keys, self._placing_density(graph, neighbors))

        return placed(self._source, rows, places, settle)

    def inverse_transform(self, X: Any) -> Any:
        """Rows that would lie at the given places of the map, in or outside of where it has points."""
        self._check_is_fitted("embedding_")
        if self.metric == PRECOMPUTED:
            raise ValueError("inverse_transform needs rows: a model of precomputed distances has none")
        from vicinal.maps.inverse import inverse_rows

        return inverse_rows(
            X,
            self._places(),
            self._source.rows,
            Kernel(self._a, self._b),
            n_neighbors=int(self.n_neighbors),
            n_jobs=self._jobs(),
        )

    def update(self, X: Any, y: Any = None) -> UMAP:
        """Adds rows to the fitted map, whose points give way a little.

        With ``metric="precomputed"`` the rows hold the distances to the known rows and then to each other.
        """
        self._check_is_fitted("embedding_")
        self._check_parameters()
        pairwise = self.metric == PRECOMPUTED
        rows = as_rows(X) if pairwise else self._check_data(X, reset=False)
        n, m = self._everything.n, rows.shape[0]
        table = Neighbors(self._knn_indices, self._knn_dists)
        source = self._everything.extended(rows, table if self._kept is None and not self.unique else None)
        labels = None if y is None else self._supervision(self._fit_seed).check(y, m)
        given = self._given.extended(m, labels, n)
        graph = self._memberships(rows[:, :n] if pairwise else rows)
        start = np.concatenate([self.embedding_, neighbor_medoid(graph, self._places())])
        n_epochs = self._few_epochs(n + m)
        rate = self.learning_rate / TRANSFORM_SLOWER
        self._embed(source, given, start, [n_epochs], rate, self._fit_seed)
        self.n_features_in_ = n + m if pairwise else self.n_features_in_
        return self

    def partial_fit(self, X: Any, y: Any = None) -> UMAP:
        """``fit`` the first time, ``update`` from then on."""
        return self.update(X, y) if hasattr(self, "embedding_") else self.fit(X, y)

    def _embed(
        self,
        everything: Source,
        given: Given,
        start: NDArray[np.float32] | None,
        stops: list[int],
        learning_rate: float,
        seed: int,
    ) -> UMAP:
        """Neighbours, graph, start and layout; the results become attributes when all of it is done."""
        progress = Progress(callback=self.callback, verbose=bool(self.verbose), tqdm_kwds=self.tqdm_kwds)
        method: Method = "approximate" if self.force_approximation_algorithm else "auto"
        kept = None
        with progress.stage("neighbors"):
            source, own, inverse = everything, given, everything.seen.first
            if self.unique:
                kept = np.flatnonzero(inverse == np.arange(everything.n))
                inverse = np.searchsorted(kept, inverse)
                source, own = everything.chosen(kept), given.chosen(kept, inverse)
                start = None if start is None else start[kept]
            neighbors = source.neighbors(min(self.n_neighbors, source.n), method)
        with progress.stage("graph"):
            search_graph = self._fuzzy_graph(neighbors)
            graph = search_graph if own.y is None else self._supervision(seed).apply(search_graph, own.y)
        kernel = self._kernel()
        if self.transform_mode == "embedding":
            with progress.stage("initialize"):
                start, init_used = self._start(start, graph, source, seed)
            radii = self._radii_of(graph, neighbors)
            schedule = self._schedule(stops[-1], learning_rate)
            layout = self._layout(graph, start, kernel, own, schedule, seed, self._density_term(radii))
            history = self._loss_history(graph, kernel, schedule, kept) if self.compute_loss else None
            if history is not None:
                progress.listen(history)

            def places() -> NDArray[np.float32]:
                # Equal rows share one place, since transform could not tell them apart; pins go before.
                return given.pinned(layout.embedding[inverse])

            listed = layout.run(stops, progress, places)
            self.embedding_, self.init_used_, self.n_epochs_ = places(), init_used, layout.epoch
            if history is not None:
                self.loss_history_ = {"epoch": history.epochs, "loss": history.values.tolist()}
            self._keep_density(radii, layout, inverse)
            if isinstance(self.n_epochs, list | tuple):
                self.embedding_list_ = listed
        self._keep(source, given, neighbors, search_graph, graph, seed)
        self._everything, self._kept, self._raw_data = everything, kept, everything.rows
        self.stage_times_ = progress.times
        return self

    def _fuzzy_graph(self, neighbors: Neighbors) -> Graph:
        return fuzzy_graph(
            neighbors,
            local_connectivity=self.local_connectivity,
            set_op_mix_ratio=self.set_op_mix_ratio,
            disconnection_distance=self.disconnection_distance,
            n_jobs=self._jobs(),
        )

    def _keep(
        self, source: Source, given: Given, neighbors: Neighbors, search_graph: Graph, graph: Graph, seed: int
    ) -> None:
        """What a fitted model knows besides its map."""
        kernel = self._kernel()
        self._everything, self._source, self._kept, self._given = source, source, None, given
        self._raw_data, self._fit_seed, self._search_graph = source.rows, seed, search_graph
        self._knn_indices, self._knn_dists = neighbors.index, neighbors.distance
        self._rhos, self._sigmas = graph.rho, graph.sigma
        self._a, self._b = kernel.a, kernel.b
        self.graph_ = graph.to_scipy()

    def _loss_history(
        self, graph: Graph, kernel: Kernel, schedule: Schedule, kept: NDArray[np.int64] | None
    ) -> History:
        """Records what the sampler minimises (eq. 29) about twenty times along the layout."""
        from vicinal.quality.losses import History, Loss, effective_loss

        def loss(embedding: NDArray[np.float32]) -> Loss:
            places = embedding if kept is None else embedding[kept]
            samples = None if graph.n <= SMALL_ROWS else LOSS_SAMPLES
            return effective_loss(graph, places, kernel, schedule, samples=samples, n_jobs=self._jobs())

        return History(loss, every=max(1, schedule.n_epochs // LOSS_RECORDS))

    def _start(
        self, start: NDArray[np.float32] | None, graph: Graph, source: Source, seed: int
    ) -> tuple[NDArray[np.float32], str]:
        if start is not None:
            return start, "array"
        task = InitialTask(graph, source.coordinates, int(self.n_components), seed, self._jobs())
        places, used = initial_embedding(self._initializer(), task)
        return self._output_space().start(places), used

    def _layout(
        self,
        graph: Graph,
        start: NDArray[np.float32],
        kernel: Kernel,
        given: Given,
        schedule: Schedule,
        seed: int,
        density: DensityTerm | None = None,
    ) -> Layout:
        if given.weight is not None:
            heaviest = graph.weights.max(initial=0.0)
            graph = graph.weighing_tails(given.weight)
            schedule = schedule.with_firings(max(1.0, float(graph.weights.max(initial=1.0) / (heaviest or 1.0))))
        return Layout(
            graph,
            start if given.pins is None else given.pins.start(start),
            kernel,
            schedule,
            seed=seed,
            n_jobs=self._jobs(),
            fixed=None if given.pins is None else given.pins.mask,
            negative_weights=given.weight,
            output_metric=self.output_metric,
            output_metric_kwds=self.output_metric_kwds,
            density=density,
        )

    def _places(self) -> NDArray[np.float32]:
        """Where the rows lie that others are compared with."""
        return self.embedding_ if self._kept is None else self.embedding_[self._kept]

    def _recognised(self, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        return recognised(self._source, rows)

    def _nearest(self, rows: Rows) -> Neighbors:
        """New rows' nearest known rows."""
        return self._source.query(rows, min(self.n_neighbors, self._source.n), self._search_graph)

    def _memberships(self, rows: Rows, neighbors: Neighbors | None = None) -> Graph:
        """New rows' edges to their nearest known rows."""
        return bipartite_graph(
            self._nearest(rows) if neighbors is None else neighbors,
            self._source.n,
            local_connectivity=self.local_connectivity,
            n_jobs=self._jobs(),
        )

    def _settled(
        self,
        graph: Graph,
        places: NDArray[np.float32],
        keys: NDArray[np.uint64],
        density: DensityTerm | None = None,
    ) -> NDArray[np.float32]:
        """Places of unseen rows: the medoid of their neighbours, then a short layout among the fixed map."""
        n_epochs = self._few_epochs(places.shape[0])
        layout = Layout(
            graph,
            neighbor_medoid(graph, places),
            Kernel(self._a, self._b),
            self._schedule(n_epochs, self.learning_rate / TRANSFORM_SLOWER, moving=False),
            seed=int(self.transform_seed),
            n_jobs=self._jobs(),
            reference=places,
            row_keys=keys,
            negative_weights=self._given.weight,
            output_metric=self.output_metric,
            output_metric_kwds=self.output_metric_kwds,
            density=density,
        )
        layout.step(n_epochs)
        return layout.embedding

    def _few_epochs(self, n: int) -> int:
        """Epochs for rows that find their place among others which have theirs."""
        if self.n_epochs is not None:
            return self._epoch_stops(n)[-1] // 3
        return TRANSFORM_EPOCHS_SMALL if n <= SMALL_ROWS else TRANSFORM_EPOCHS_LARGE

    def _source_of(self, rows: Rows, seed: int) -> Source:
        knn = self._given_knn()
        if knn is None:
            return super()._source_of(rows, seed)
        n = int(rows.shape[0])
        given = neighbors_from_knn(knn, n, min(self.n_neighbors, n))
        return RowSource(rows, self.metric, self.metric_kwds, seed, self._jobs(), given)

    def _supervision(self, seed: int) -> Supervision:
        k = self.n_neighbors if self.target_n_neighbors == -1 else self.target_n_neighbors
        kwds = dict(self.target_metric_kwds or {})
        return Supervision(self.target_metric, kwds, self.target_weight, int(k), seed, self._jobs())
