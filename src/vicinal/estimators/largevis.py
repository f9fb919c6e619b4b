"""LargeVis (survey eq. 18, 19, 21, 23): the entropic graph, drawn by the sampled layout."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators._sourced import Sourced
from vicinal.graph.entropic import entropic_bipartite_graph, entropic_graph
from vicinal.graph.graph import Graph
from vicinal.initialize.medoid import neighbor_medoid
from vicinal.initialize.start import INITIALIZERS, given_start, initial_embedding
from vicinal.initialize.task import InitialTask
from vicinal.layout.kernel import Kernel
from vicinal.layout.sampled import Layout
from vicinal.layout.schedule import Schedule
from vicinal.maps.memory import ByteSize, Ledger, Table, add_graph, add_layout, add_search, add_start
from vicinal.neighbors.metrics import Rows, check_metric
from vicinal.neighbors.training_data import placed
from vicinal.runtime.parameters import Interval, StrOptions
from vicinal.runtime.progress import Progress

CAUCHY = Kernel(1.0, 1.0)  # eq. 21
NEGATIVE_POWER = 0.75  # of a row's degree, how often it is a negative: word2vec's, and so LargeVis'
NEIGHBORS_A_PERPLEXITY = 3  # neighbours beyond three times the perplexity have next to no weight

# An edge sampled in an epoch moves a row; how many a row needs does not depend on the perplexity.
SAMPLES_A_ROW, LEAST_EPOCHS = 4_000, 100
TRANSFORM_EPOCHS, TRANSFORM_SLOWER = 50, 4.0


class LargeVis(Sourced):
    """LargeVis: t-SNE's graph, an unnormalised Cauchy kernel, negatives drawn by degree.

    The same ``random_state`` gives the same bits for any ``n_jobs``.

    Parameters
    ----------
    n_components : int, default 2
        Dimensions of the map.
    perplexity : float, default 8
        How many neighbours count; 3 * perplexity are looked up. The authors' program takes 50 and ``gamma`` 7; on
        Fashion-MNIST (70,000 images) the 10-NN accuracy is 0.792 with (15, 7), 0.824 with (8, 20), t-SNE's 0.839.
    gamma : float, default 20
        Weight of the negatives (lambda of eq. 23).
    metric, metric_kwds : str or callable, default "euclidean", and dict
        Distance of the data, as in :class:`vicinal.UMAP`.
    n_epochs : int, optional
        By default as many as give a row enough edge samples.
    negative_sample_rate : int, default 5
        Negatives for every edge sample, drawn in proportion to degree^0.75.
    learning_rate : float, default 1.0
        At the first epoch; falls to 0.
    init : {"pca", "spectral", "random"} or array [rows, n_components], default "pca"
        Where the rows start.
    random_state : int, RandomState or None
        Seed of everything random in ``fit``.
    transform_seed : int, default 42
        Seed of ``transform``.
    n_jobs : int, default -1
        Threads; -1 uses all.
    verbose, tqdm_kwds : bool and dict
        A progress bar for every stage.
    callback : callable(stage, epoch, n_epochs, embedding), optional
        As in :class:`vicinal.UMAP`.
    memory_limit : int or str, optional
        As in :class:`vicinal.UMAP`.

    Attributes
    ----------
    embedding_ : array [rows, n_components]
    graph_ : sparse matrix of the entropic graph; rows weigh 1 on average
    init_used_, stage_times_, n_epochs_ : as in :class:`vicinal.UMAP`
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "perplexity": [Interval(Real, 1, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="left")],
        "metric": [str, callable],
        "metric_kwds": [dict, None],
        "n_epochs": [Interval(Integral, 0, None, closed="left"), None],
        "negative_sample_rate": [Interval(Integral, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "init": [StrOptions(set(INITIALIZERS)), "array-like"],
        "random_state": ["random_state"],
        "transform_seed": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "tqdm_kwds": [dict, None],
        "callback": [callable, None],
        "memory_limit": [ByteSize(), None],
    }

    def __init__(
        self,
        n_components: int = 2,
        perplexity: float = 8.0,
        gamma: float = 20.0,
        metric: Any = "euclidean",
        metric_kwds: dict[str, Any] | None = None,
        n_epochs: int | None = None,
        negative_sample_rate: int = 5,
        learning_rate: float = 1.0,
        init: Any = "pca",
        random_state: Any = None,
        transform_seed: int = 42,
        n_jobs: int | None = -1,
        verbose: bool = False,
        tqdm_kwds: dict[str, Any] | None = None,
        callback: Any = None,
        memory_limit: float | str | None = None,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.gamma = gamma
        self.metric = metric
        self.metric_kwds = metric_kwds
        self.n_epochs = n_epochs
        self.negative_sample_rate = negative_sample_rate
        self.learning_rate = learning_rate
        self.init = init
        self.random_state = random_state
        self.transform_seed = transform_seed
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.tqdm_kwds = tqdm_kwds
        self.callback = callback
        self.memory_limit = memory_limit

    def _add_memory(self, ledger: Ledger, table: Table) -> None:
        k = self._n_neighbors(table.n)
        add_search(ledger, table, k, metric=self.metric)
        edges = add_graph(ledger, table.n, k)
        add_start(ledger, self.init, table, self.n_components, edges)
        add_layout(ledger, table.n, self.n_components, edges)

    def fit(self, X: Any, y: Any = None) -> LargeVis:
        """Embeds ``X``; ``y`` is ignored."""
        self._validate_params()
        check_metric(self.metric, self.metric_kwds)
        rows = self._check_data(X, reset=True)
        start = given_start(self.init, rows.shape[0], self.n_components)
        seed, jobs = self._seed(self.random_state), self._jobs()
        source = self._source_of(rows, seed)
        progress = Progress(callback=self.callback, verbose=bool(self.verbose), tqdm_kwds=self.tqdm_kwds)

        with progress.stage("neighbors"):
            neighbors = source.neighbors(self._n_neighbors(source.n))
        with progress.stage("graph"):
            graph = entropic_graph(neighbors, self.perplexity, normalised=False, n_jobs=jobs)
        with progress.stage("initialize"):
            self.init_used_ = "array"
            if start is None:
                start, self.init_used_ = initial_embedding(
                    self.init, InitialTask(graph, source.coordinates, int(self.n_components), seed, jobs)
                )
        n_epochs = default_epochs(graph) if self.n_epochs is None else int(self.n_epochs)
        negatives = graph.degree() ** NEGATIVE_POWER
        layout = Layout(
            graph,
            start,
            CAUCHY,
            self._schedule(n_epochs, self.learning_rate),
            seed=seed,
            n_jobs=jobs,
            force="largevis",
            negative_weights=negatives if negatives.sum() > 0 else None,
        )

        # Equal rows share one place: transform could not tell them apart.
        def places() -> NDArray[np.float32]:
            return layout.embedding[source.seen.first]

        layout.run([n_epochs], progress, places)
        self.n_epochs_ = layout.epoch
        self._source, self._search_graph, self._negatives = source, graph, negatives
        self.graph_ = graph.to_scipy()
        self.embedding_ = places()
        self.stage_times_ = progress.times
        return self

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[np.float32]:
        """``fit(X).embedding_``."""
        return self.fit(X, y).embedding_

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Places of rows in the fitted map, which stays as it is; each depends on its own row alone."""
        self._check_is_fitted("embedding_")
        return placed(self._source, self._check_data(X, reset=False), self.embedding_, self._settled)

    def _settled(self, rows: Rows, keys: NDArray[np.uint64]) -> NDArray[np.float32]:
        jobs, n = self._jobs(), self.embedding_.shape[0]
        neighbors = self._source.query(rows, self._n_neighbors(n), self._search_graph)
        graph = entropic_bipartite_graph(neighbors, n, self.perplexity, n_jobs=jobs)
        layout = Layout(
            graph.relative(),
            neighbor_medoid(graph, self.embedding_),
            CAUCHY,
            self._schedule(TRANSFORM_EPOCHS, self.learning_rate / TRANSFORM_SLOWER),
            seed=int(self.transform_seed),
            n_jobs=jobs,
            reference=self.embedding_,
            row_keys=keys,
            force="largevis",
            negative_weights=self._negatives if self._negatives.sum() > 0 else None,
        )
        layout.step(TRANSFORM_EPOCHS)
        return layout.embedding

    def _n_neighbors(self, n: int) -> int:
        """Columns of the neighbour table, the row itself counted."""
        return min(int(NEIGHBORS_A_PERPLEXITY * self.perplexity) + 1, n)

    def _schedule(self, n_epochs: int, learning_rate: float) -> Schedule:
        return Schedule(n_epochs, learning_rate, int(self.negative_sample_rate), self.gamma)


def default_epochs(graph: Graph) -> int:
    """Epochs that give a row SAMPLES_A_ROW edge samples; the heaviest edge fires once an epoch."""
    if graph.n_edges == 0:
        return LEAST_EPOCHS
    a_row_an_epoch = float(graph.weights.sum(dtype=np.float64)) / float(graph.weights.max()) / graph.n
    return max(LEAST_EPOCHS, round(SAMPLES_A_ROW / a_row_an_epoch))
