"""LargeVis (survey eq. 18, 19, 21, 23): the entropic graph, drawn by the sampled layout."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from vicinal.estimators.base import random_seed, whole_or_nothing
from vicinal.estimators.map_estimator import MapEstimator
from vicinal.estimators.settings import epoch_stops, initializer_of
from vicinal.initialize.start import INITIALIZERS, given_start
from vicinal.layout.forces import Forces
from vicinal.layout.kernel import Kernel
from vicinal.maps.fitting import FitInputs, fit
from vicinal.maps.plans import LargeVisPlan
from vicinal.maps.recipe import EntropicAffinity, Recipe
from vicinal.neighbors.metrics import check_metric
from vicinal.runtime.memory import ByteSize
from vicinal.runtime.parameters import DEVICE, LEARNING_RATE, NEGATIVES, SEED, Interval, StrOptions

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
        inputs = FitInputs(data, self._recipe(data.n, seed), start=start, seed=seed)
        return self.adopt_map(fit(inputs, self._progress()))

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
