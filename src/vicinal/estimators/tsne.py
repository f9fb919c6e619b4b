"""t-SNE with the parameters of scikit-learn's and openTSNE's: entropic graph, full layout."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators.base import MapEstimator, random_seed, whole_or_nothing
from vicinal.estimators.parameters import epoch_stops, initializer_of
from vicinal.graph.graph import Graph
from vicinal.initialize.start import INITIALIZERS, given_start
from vicinal.layout.forces import Forces, Kernel
from vicinal.layout.full import GRID_COMPONENTS, Phase
from vicinal.neighbors.metrics import ALIASES, METRICS, PRECOMPUTED, check_metric
from vicinal.pipeline.fit import ArrayExecutor, Listeners, fit
from vicinal.pipeline.recipe import NEIGHBORS_PER_PERPLEXITY, EntropicAffinity, FullPlan, LargeVisPlan, Recipe
from vicinal.runtime.memory import ByteSize
from vicinal.runtime.parameters import DEVICE, LEARNING_RATE, NEGATIVES, SEED, Interval, StrOptions
from vicinal.runtime.progress import Callback

EARLY_EXAGGERATION = 12.0
QUERY_PERPLEXITY = 5.0  # of new rows, as in openTSNE: few neighbors place a row more sharply


class TSNE(MapEstimator):
    """t-distributed Stochastic Neighbor Embedding.

    The same ``random_state`` gives the same bits for any ``n_jobs``.

    Parameters
    ----------
    n_components : int, default 2
        Dimensions of the embedding. Up to 3 scale to many rows; with more, every pair is computed.
    perplexity : float, default 30
        Effective number of neighbors of a row, at least 1 and at most a third of the other rows: ``perplexity_`` is
        the value that was used.
    early_exaggeration : float or "auto", default "auto"
        Factor of the attraction in the first phase; "auto" is 12, or ``exaggeration`` if that is larger.
    learning_rate : float or "auto", default "auto"
        As in scikit-learn, a quarter of openTSNE's. "auto" is rows / exaggeration / 4 in each phase.
    max_iter : int, default 750
        Iterations of both phases together.
    early_exaggeration_iter : int, default 250
        Iterations of the first phase.
    n_iter : int, optional
        openTSNE's name for the iterations after the first phase; if given, it replaces ``max_iter``.
    exaggeration : float, optional
        Factor of the attraction in the second phase, default 1.
    dof : float, default 1
        Degrees of freedom of the kernel; below 1 its tails are heavier and clusters finer.
    init : {"pca", "random", "spectral"} or array [rows, n_components], default "pca"
        Where the rows start; an array is used unchanged. ``init_used_`` says what was used.
    metric : str or callable, default "euclidean"
        Any metric of the neighbor search, or "precomputed" if ``X`` holds distances. Rows may be sparse.
    metric_kwds : dict, optional
        Arguments of the metric.
    method : {"auto", "exact", "fft", "barnes_hut"}, default "auto"
        How the repulsion is computed: every pair, or a grid and FFT for up to three components. "auto" is exact for
        few rows. "barnes_hut", the name in other libraries, also selects the grid, which is more accurate than a tree.
    n_jobs : int or None, default -1
        Threads, as in :class:`vicinal.UMAP`.
    random_state : int, RandomState or None
        Seed of everything random.
    callbacks : callable or list of them, optional
        ``f(iteration, kl_divergence, embedding)`` every ``callbacks_every_iters`` iterations; a true return value
        stops the layout.
    callback : callable, optional
        ``f(stage, epoch, n_epochs, embedding)`` for every stage and iteration; a true return value
        stops the layout.
    verbose : bool, default False
        Show a progress bar for every stage; ``tqdm_kwds`` are passed to tqdm.
    memory_limit : int or str, optional
        As in :class:`vicinal.UMAP`.
    device : {None, "cpu", "cuda", "cuda:N"}, default None
        As in :class:`vicinal.UMAP`.

    Attributes
    ----------
    embedding_ : array [rows, n_components]
    kl_divergence_ : float
        The divergence of the map (survey eq. 22), exact.
    n_iter_ : int
        Iterations done.
    learning_rate_ : float
        Learning rate of the first phase.
    perplexity_ : float

    See Also
    --------
    UMAP : faster, with tighter clusters.
    LargeVis : the same graph, laid out by sampling.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vicinal import TSNE
    >>> X = load_iris().data
    >>> model = TSNE(perplexity=20, random_state=42).fit(X)
    >>> model.embedding_.shape
    (150, 2)
    >>> bool(model.kl_divergence_ < 0.5)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "perplexity": [Interval(Real, 0, None, closed="neither")],
        "early_exaggeration": [StrOptions({"auto"}), Interval(Real, 1, None, closed="left")],
        "learning_rate": [StrOptions({"auto"}), LEARNING_RATE],
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
        "device": [DEVICE, None],
    }
    _chooses_device = True

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
        device: str | None = None,
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
        self.device = device

    @whole_or_nothing
    def fit(self, X: Any, y: Any = None) -> TSNE:
        """Map the rows of ``X``; ``y`` is ignored."""
        self._check_parameters()
        seed = random_seed(self.random_state)
        data = self._check_training_data(X, seed)
        start = given_start(self.init, data.n, int(self.n_components), stretched=False)
        recipe, listeners = self._recipe(data.n, seed), self._listeners()
        executor = ArrayExecutor(data, recipe, first_places=start, seed=seed, listeners=listeners)
        return self.adopt_map(fit(executor, self._progress()))

    @property
    def kl_divergence_(self) -> float:
        divergence = self._fitted("kl_divergence_").report.divergence
        assert divergence is not None
        return divergence

    @property
    def n_iter_(self) -> int:
        return self._fitted("n_iter_").report.n_epochs

    @property
    def learning_rate_(self) -> float:
        return self._fitted("learning_rate_").recipe.plan.first_rate

    @property
    def perplexity_(self) -> float:
        return self._fitted("perplexity_").recipe.affinity.perplexity

    def _recipe(self, n: int, seed: int) -> Recipe:
        perplexity = max(1.0, min(float(self.perplexity), (n - 1) / NEIGHBORS_PER_PERPLEXITY))
        affinity = EntropicAffinity(perplexity, query_perplexity=min(QUERY_PERPLEXITY, perplexity))
        repulsion: Any = "fft" if self.method == "barnes_hut" else self.method
        plan = FullPlan(self._phases(n), float(self.dof), repulsion)
        return Recipe(affinity, plan, int(self.n_components), initializer_of(self.init))

    def _phases(self, n: int) -> tuple[Phase, Phase]:
        """Return the two phases; exaggeration belongs to them, the graph stays as it is."""
        late = 1.0 if self.exaggeration is None else float(self.exaggeration)
        early = self.early_exaggeration
        early = max(EARLY_EXAGGERATION, late) if early == "auto" else float(early)
        first = int(self.early_exaggeration_iter)
        second = max(0, int(self.max_iter) - first) if self.n_iter is None else int(self.n_iter)
        if self.n_iter is None:
            first = min(first, int(self.max_iter))

        def rate(exaggeration: float) -> float:
            return n / exaggeration / 4.0 if self.learning_rate == "auto" else float(self.learning_rate)

        return Phase(first, early, rate(early)), Phase(second, late, rate(late))

    def _listeners(self) -> Listeners | None:
        """Return openTSNE's callbacks, which are told the divergence, as listeners of the layout."""
        callbacks = self.callbacks or []
        callbacks = [callbacks] if callable(callbacks) else list(callbacks)
        if not callbacks:
            return None

        def listeners(graph: Graph) -> list[tuple[Callback, int]]:
            def tell(stage: str, iteration: int, n_iterations: int, places: NDArray[np.float32] | None) -> bool:
                assert places is not None
                divergence = FullPlan((), float(self.dof)).divergence(graph, places, self._jobs())
                answers = [callback(iteration, divergence, places) for callback in callbacks]
                return any(answers)

            return [(tell, int(self.callbacks_every_iters))]

        return listeners

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


CAUCHY = Kernel(1.0, 1.0)  # eq. 21


class LargeVis(MapEstimator):
    """LargeVis: t-SNE's graph, an unnormalized Cauchy kernel, negatives drawn by degree.

    The same ``random_state`` gives the same bits for any ``n_jobs``.

    Parameters
    ----------
    n_components : int, default 2
        Dimensions of the map.
    perplexity : float, default 8
        Effective number of neighbors; 3 * perplexity are searched. The authors' program uses 50 and ``gamma`` 7; on
        Fashion-MNIST (70,000 images) the 10-NN accuracy is 0.792 with (15, 7), 0.824 with (8, 20), t-SNE's 0.839.
    gamma : float, default 20
        Weight of the negatives (lambda of eq. 23).
    metric, metric_kwds : str or callable, default "euclidean", and dict
        Distance of the data, as in :class:`vicinal.UMAP`.
    n_epochs : int, optional
        By default as many as give each row enough edge samples.
    negative_sample_rate : int, default 5
        Negatives per edge sample, drawn in proportion to degree^0.75.
    learning_rate : float, default 1.0
        Rate of the first epoch; falls to 0.
    init : {"pca", "spectral", "random"} or array [rows, n_components], default "pca"
        Where the rows start.
    random_state : int, RandomState or None
        Seed of everything random in ``fit``.
    transform_seed : int, default 42
        Seed of ``transform``.
    n_jobs : int or None, default -1
        Threads, as in :class:`vicinal.UMAP`.
    verbose, tqdm_kwds : bool and dict
        Show a progress bar for every stage.
    callback : callable(stage, epoch, n_epochs, embedding), optional
        As in :class:`vicinal.UMAP`.
    memory_limit : int or str, optional
        As in :class:`vicinal.UMAP`.
    device : {None, "cpu", "cuda", "cuda:N"}, default None
        As in :class:`vicinal.UMAP`.

    Attributes
    ----------
    embedding_ : array [rows, n_components]
    graph_ : sparse matrix
        The entropic graph; the weights of a row sum to 1 on average.
    init_used_, stage_times_, n_epochs_ : as in :class:`vicinal.UMAP`

    See Also
    --------
    TSNE : the same graph, all pairs repel.
    UMAP : a fuzzy graph.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vicinal import LargeVis
    >>> X = load_iris().data
    >>> LargeVis(perplexity=15, random_state=42).fit_transform(X).shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "perplexity": [Interval(Real, 1, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="left")],
        "metric": [str, callable],
        "metric_kwds": [dict, None],
        "n_epochs": [Interval(Integral, 0, None, closed="left"), None],
        "negative_sample_rate": [NEGATIVES],
        "learning_rate": [LEARNING_RATE],
        "init": [StrOptions(set(INITIALIZERS)), "array-like"],
        "random_state": ["random_state"],
        "transform_seed": [SEED],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "tqdm_kwds": [dict, None],
        "callback": [callable, None],
        "memory_limit": [ByteSize(), None],
        "device": [DEVICE, None],
    }
    _chooses_device = True

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
        device: str | None = None,
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
        self.device = device

    @whole_or_nothing
    def fit(self, X: Any, y: Any = None) -> LargeVis:
        """Map the rows of ``X``; ``y`` is ignored."""
        self._validate_params()
        check_metric(self.metric, self.metric_kwds)
        seed = random_seed(self.random_state)
        data = self._check_training_data(X, seed)
        start = given_start(self.init, data.n, int(self.n_components))
        executor = ArrayExecutor(data, self._recipe(data.n, seed), first_places=start, seed=seed)
        return self.adopt_map(fit(executor, self._progress()))

    def _recipe(self, n: int, seed: int) -> Recipe:
        plan = LargeVisPlan(
            Forces(CAUCHY, "largevis"),
            epoch_stops(self.n_epochs),
            self.learning_rate,
            int(self.negative_sample_rate),
            self.gamma,
            placement_seed=int(self.transform_seed),
        )
        affinity = EntropicAffinity(self.perplexity, normalized=False)
        return Recipe(affinity, plan, int(self.n_components), initializer_of(self.init))
