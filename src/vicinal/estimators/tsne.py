"""t-SNE with the parameters of scikit-learn's and openTSNE's: entropic graph, full layout."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators._sourced import Sourced
from vicinal.graph.entropic import entropic_bipartite_graph, entropic_graph
from vicinal.graph.graph import Graph
from vicinal.initialize.medoid import neighbor_medoid
from vicinal.initialize.start import INITIALIZERS, given_start, narrow_embedding
from vicinal.initialize.task import InitialTask
from vicinal.layout.convolution import GRID_COMPONENTS
from vicinal.layout.full import FullLayout, Phase, Repulsion
from vicinal.maps.memory import ByteSize, Ledger, Table, add_full_layout, add_graph, add_search, add_start
from vicinal.neighbors.metrics import ALIASES, METRICS, PRECOMPUTED, Rows
from vicinal.neighbors.training_data import placed
from vicinal.quality.losses import kl_divergence
from vicinal.runtime.parameters import Interval, StrOptions
from vicinal.runtime.progress import LAYOUT, Progress

EARLY_EXAGGERATION = 12.0
# Neighbours in the table for one of perplexity: the Gaussian is small beyond (van der Maaten's number).
NEIGHBORS_PER_PERPLEXITY = 3
# Unseen rows: few neighbours place a row more sharply (openTSNE's perplexity), and each moves in a fixed landscape.
TRANSFORM_PERPLEXITY, TRANSFORM_PHASE = 5.0, Phase(100, 1.5, 0.1, 0.8)


class TSNE(Sourced):
    """t-distributed Stochastic Neighbor Embedding.

    The same ``random_state`` gives the same bits for any ``n_jobs``.

    Parameters
    ----------
    n_components : int, default 2
        Dimensions of the embedding. Up to 3 scale to many rows; with more, every pair is computed.
    perplexity : float, default 30
        Effective number of neighbours of a row, at least 1 and at most a third of the other rows: ``perplexity_`` is
        what was used.
    early_exaggeration : float or "auto", default "auto"
        Factor on the attraction in the first phase; "auto" is 12, or ``exaggeration`` if that is more.
    learning_rate : float or "auto", default "auto"
        As in scikit-learn, a quarter of openTSNE's. "auto" is rows / exaggeration / 4 in either phase.
    max_iter : int, default 750
        Iterations of both phases together.
    early_exaggeration_iter : int, default 250
        Iterations of the first phase.
    n_iter : int, optional
        openTSNE's name for the iterations after the first phase; given, it replaces ``max_iter``.
    exaggeration : float, optional
        Factor on the attraction in the second phase, default 1.
    dof : float, default 1
        Degrees of freedom of the kernel; below 1 its tails are heavier and clusters finer.
    init : {"pca", "random", "spectral"} or array [rows, n_components], default "pca"
        Where the rows start; an array is taken as it is. ``init_used_`` says what was used.
    metric : str or callable, default "euclidean"
        Any metric of the neighbour search, or "precomputed": ``X`` then holds distances. Rows may be sparse.
    metric_kwds : dict, optional
        Arguments of the metric.
    method : {"auto", "exact", "fft", "barnes_hut"}, default "auto"
        How rows repel: every pair, or a grid and FFT for up to three components. "auto" is exact for few rows.
        "barnes_hut", the name other libraries know, is the grid too, which approximates better than a tree.
    n_jobs : int, default -1
        Threads; -1 uses all.
    random_state : int, RandomState or None
        Seed of everything random.
    callbacks : callable or list of them, optional
        ``f(iteration, kl_divergence, embedding)`` every ``callbacks_every_iters`` iterations; true stops the layout.
    callback : callable, optional
        ``f(stage, epoch, n_epochs, embedding)`` for every stage and every iteration; true stops the layout.
    verbose : bool, default False
        Progress bars, one a stage; ``tqdm_kwds`` are passed on to tqdm.
    memory_limit : int or str, optional
        As in :class:`vicinal.UMAP`.

    Attributes
    ----------
    embedding_ : array [rows, n_components]
    kl_divergence_ : float
        The divergence of the map (survey eq. 22), exact.
    n_iter_ : int
        Iterations done.
    learning_rate_ : float
        Of the first phase.
    perplexity_ : float
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "perplexity": [Interval(Real, 0, None, closed="neither")],
        "early_exaggeration": [StrOptions({"auto"}), Interval(Real, 1, None, closed="left")],
        "learning_rate": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "early_exaggeration_iter": [Interval(Integral, 0, None, closed="left")],
        "n_iter": [Interval(Integral, 0, None, closed="left"), None],
        "exaggeration": [Interval(Real, 0, None, closed="neither"), None],
        "dof": [Interval(Real, 0.01, None, closed="left")],
        "init": [StrOptions(set(INITIALIZERS)), "array-like"],
        "metric": [StrOptions({*METRICS, *ALIASES, PRECOMPUTED}), callable],
        "metric_kwds": [dict, None],
        "method": [StrOptions({"auto", "exact", "fft", "barnes_hut"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "callbacks": [callable, list, tuple, None],
        "callbacks_every_iters": [Interval(Integral, 1, None, closed="left")],
        "callback": [callable, None],
        "verbose": ["verbose"],
        "tqdm_kwds": [dict, None],
        "memory_limit": [ByteSize(), None],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 30.0,
        early_exaggeration: Any = "auto",
        learning_rate: Any = "auto",
        max_iter: int = 750,
        early_exaggeration_iter: int = 250,
        n_iter: int | None = None,
        exaggeration: float | None = None,
        dof: float = 1.0,
        init: Any = "pca",
        metric: Any = "euclidean",
        metric_kwds: dict[str, Any] | None = None,
        method: str = "auto",
        n_jobs: int | None = -1,
        random_state: Any = None,
        callbacks: Any = None,
        callbacks_every_iters: int = 50,
        callback: Any = None,
        verbose: bool = False,
        tqdm_kwds: dict[str, Any] | None = None,
        memory_limit: float | str | None = None,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.early_exaggeration = early_exaggeration
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.early_exaggeration_iter = early_exaggeration_iter
        self.n_iter = n_iter
        self.exaggeration = exaggeration
        self.dof = dof
        self.init = init
        self.metric = metric
        self.metric_kwds = metric_kwds
        self.method = method
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callbacks = callbacks
        self.callbacks_every_iters = callbacks_every_iters
        self.callback = callback
        self.verbose = verbose
        self.tqdm_kwds = tqdm_kwds
        self.memory_limit = memory_limit

    def _add_memory(self, ledger: Ledger, table: Table) -> None:
        k = min(table.n, int(NEIGHBORS_PER_PERPLEXITY * self.perplexity) + 1)
        add_search(ledger, table, k, metric=self.metric)
        edges = add_graph(ledger, table.n, k, normalised=True)
        add_start(ledger, self.init, table, self.n_components, edges)
        add_full_layout(ledger, table.n, self.n_components, edges)

    def fit(self, X: Any, y: Any = None) -> TSNE:
        """Embeds ``X``; ``y`` is ignored."""
        self._check_parameters()
        rows = self._check_data(X, reset=True)
        n, jobs = rows.shape[0], self._jobs()
        start = given_start(self.init, n, int(self.n_components), stretched=False)
        seed = self._seed(self.random_state)
        source = self._source_of(rows, seed)
        perplexity = max(1.0, min(float(self.perplexity), (n - 1) / NEIGHBORS_PER_PERPLEXITY))
        progress = Progress(callback=self.callback, verbose=bool(self.verbose), tqdm_kwds=self.tqdm_kwds)

        with progress.stage("neighbors"):
            first = source.seen.first
            neighbors = source.neighbors(min(n, int(NEIGHBORS_PER_PERPLEXITY * perplexity) + 1))
        with progress.stage("graph"):
            graph = entropic_graph(neighbors, perplexity, n_jobs=jobs)
        with progress.stage("initialize"):
            if start is None:
                task = InitialTask(graph, source.coordinates, int(self.n_components), seed, jobs)
                start, self.init_used_ = narrow_embedding(self.init, task)
            else:
                self.init_used_ = "array"
        phases = self._phases(n)
        layout = FullLayout(graph, start, phases, dof=self.dof, method=self._repulsion(), n_jobs=jobs)

        # Equal rows share one place: transform could not tell them apart.
        def places() -> NDArray[np.float32]:
            return layout.embedding[first]

        with progress.stage(LAYOUT, layout.n_epochs):
            self._run(layout, graph, progress, places)
        self.embedding_ = places()
        with progress.stage("divergence"):
            self.kl_divergence_ = self._divergence(graph, self.embedding_)
        self.n_iter_ = layout.epoch
        self.learning_rate_ = phases[0].learning_rate
        self.perplexity_ = perplexity
        self.stage_times_ = progress.times
        self._source, self._graph = source, graph
        return self

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[np.float32]:
        """``fit(X, y).embedding_``."""
        return self.fit(X, y).embedding_

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Places of rows in the fitted map, which stays as it is.

        A row of the training data gets its place there; any other is placed among its neighbours, minimising its own
        divergence. The result for a row depends on that row alone, not on what else is in ``X``.
        """
        self._check_is_fitted("embedding_")
        return placed(self._source, self._check_data(X, reset=False), self.embedding_, self._settled)

    def _settled(self, rows: Rows, _: NDArray[np.uint64]) -> NDArray[np.float32]:
        """Places of unseen rows, each in the landscape of the fixed map."""
        jobs, n = self._jobs(), self.embedding_.shape[0]
        perplexity = min(TRANSFORM_PERPLEXITY, self.perplexity_)
        k = min(n, int(NEIGHBORS_PER_PERPLEXITY * perplexity))
        neighbors = self._source.query(rows, k, self._graph)
        graph = entropic_bipartite_graph(neighbors, n, perplexity, n_jobs=jobs)
        layout = FullLayout(
            graph,
            neighbor_medoid(graph, self.embedding_),
            [TRANSFORM_PHASE],
            dof=self.dof,
            method=self._repulsion(),
            n_jobs=jobs,
            reference=self.embedding_,
        )
        layout.step(layout.n_epochs)
        return layout.embedding

    def _phases(self, n: int) -> list[Phase]:
        """The two phases; exaggeration is theirs, the graph stays as it is."""
        late = 1.0 if self.exaggeration is None else float(self.exaggeration)
        early = self.early_exaggeration
        early = max(EARLY_EXAGGERATION, late) if early == "auto" else float(early)
        first = int(self.early_exaggeration_iter)
        second = max(0, int(self.max_iter) - first) if self.n_iter is None else int(self.n_iter)
        if self.n_iter is None:
            first = min(first, int(self.max_iter))

        def rate(exaggeration: float) -> float:
            return n / exaggeration / 4.0 if self.learning_rate == "auto" else float(self.learning_rate)

        return [Phase(first, early, rate(early)), Phase(second, late, rate(late))]

    def _run(
        self, layout: FullLayout, graph: Graph, progress: Progress, places: Callable[[], NDArray[np.float32]]
    ) -> None:
        """All iterations, or until someone asks to stop."""
        callbacks = self.callbacks or []
        callbacks = [callbacks] if callable(callbacks) else list(callbacks)
        every = int(self.callbacks_every_iters)
        while layout.epoch < layout.n_epochs and not progress.stopped:
            left = layout.n_epochs - layout.epoch
            ahead = min(left, every - layout.epoch % every) if callbacks else left
            layout.step(1 if progress.wants_epochs else ahead)
            progress.report(LAYOUT, layout.epoch, layout.n_epochs, places)
            if callbacks and layout.epoch % every == 0:
                now = places()
                divergence = self._divergence(graph, now)
                answers = [one(layout.epoch, divergence, now) for one in callbacks]
                if any(answers):
                    break

    def _divergence(self, graph: Graph, places: NDArray[np.float32]) -> float:
        """c4 of the map; a row alone diverges from nothing."""
        return float(kl_divergence(graph, places, self.dof, n_jobs=self._jobs())) if graph.weights.any() else 0.0

    def _repulsion(self) -> Repulsion:
        return "fft" if self.method == "barnes_hut" else self.method  # type: ignore[return-value]

    def _check_parameters(self) -> None:
        self._validate_params()
        if self.n_components > GRID_COMPONENTS and self.method in ("fft", "barnes_hut"):
            raise ValueError(
                f"method={self.method!r} is for at most {GRID_COMPONENTS} components, got n_components="
                f"{self.n_components}; use method='exact'"
            )
        for one in self.callbacks if isinstance(self.callbacks, list | tuple) else []:
            if not callable(one):
                raise TypeError(f"callbacks must be callable, got {one!r}")
