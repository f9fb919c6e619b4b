"""t-SNE with the parameters of scikit-learn's and openTSNE's: entropic graph, full layout."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators.base import MapEstimator, Result
from vicinal.estimators.parameters import epoch_stops, initializer_of, like, parameter, with_parameters
from vicinal.estimators.umap import UMAP
from vicinal.graph.graph import Graph
from vicinal.initialize.start import INITIALIZERS
from vicinal.layout.forces import Forces, Kernel
from vicinal.layout.full import GRID_COMPONENTS, Phase
from vicinal.neighbors.metrics import check_metric
from vicinal.pipeline.fit import Listeners
from vicinal.pipeline.recipe import NEIGHBORS_PER_PERPLEXITY, EntropicAffinity, FullPlan, LargeVisPlan, Recipe
from vicinal.runtime.constraints import LEARNING_RATE, NOT_NEGATIVE, POSITIVE, Interval, StrOptions, whole
from vicinal.runtime.progress import Callback

EARLY_EXAGGERATION = 12.0
QUERY_PERPLEXITY = 5.0  # of new rows, as in openTSNE: few neighbors place a row more sharply
AUTO = StrOptions({"auto"})
INIT = [StrOptions(set(INITIALIZERS)), "array-like"]
INIT_KIND = '{"pca", "spectral", "random"} or array [rows, n_components]'


@with_parameters
class TSNE(MapEstimator):
    """t-distributed Stochastic Neighbor Embedding.

    The same ``random_state`` gives the same bits for any ``n_jobs``.

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

    # fmt: off
    n_components: int = like(UMAP, f"With more than {GRID_COMPONENTS}, every pair of rows is computed.")
    _: KW_ONLY
    perplexity: float = parameter(30.0, [POSITIVE], """
        Effective number of neighbors of a row, at least 1 and at most a third of the other rows. ``perplexity_`` is
        the value that was used.""")
    early_exaggeration: Any = parameter("auto", [AUTO, Interval(Real, 1, None, closed="left")], f"""
        Factor of the attraction in the first phase. "auto" is {EARLY_EXAGGERATION:g}, or ``exaggeration`` if that is
        larger.""", kind='float or "auto"')
    learning_rate: Any = parameter("auto", [AUTO, LEARNING_RATE], """
        As in scikit-learn, a quarter of openTSNE's. "auto" is rows / exaggeration / 4 in each phase.""",
        kind='float or "auto"')
    max_iter: int = parameter(750, [whole(0)], "Iterations of both phases together.")
    early_exaggeration_iter: int = parameter(250, [whole(0)], "Iterations of the first phase.")
    n_iter: int | None = parameter(None, [whole(0), None], """
        openTSNE's name for the iterations after the first phase. If given, it replaces ``max_iter``.""")
    exaggeration: float | None = parameter(None, [POSITIVE, None], """
        Factor of the attraction in the second phase, by default 1.""")
    dof: float = parameter(1.0, [Interval(Real, 0.01, None, closed="left")], """
        Degrees of freedom of the kernel. Below 1 its tails are heavier and clusters finer.""")
    init: Any = like(UMAP, "An array is used unchanged.", default="pca", allowed=INIT, kind=INIT_KIND)
    metric: Any = like(UMAP)
    metric_kwds: dict[str, Any] | None = like(UMAP)
    method: str = parameter("auto", [StrOptions({"auto", "exact", "fft", "barnes_hut"})], f"""
        How the repulsion is computed: from every pair ("exact"), or by a grid and FFT for up to {GRID_COMPONENTS}
        components. "auto" is exact for few rows. "barnes_hut", the name in other libraries, selects the grid too, which
        is more accurate than a tree.""")
    n_jobs: int | None = like(UMAP)
    random_state: Any = like(UMAP)
    callbacks: Any = parameter(None, [callable, list, tuple, None], """
        openTSNE's callbacks: each is called as ``f(iteration, kl_divergence, embedding)``. A true return value stops
        the layout.""", kind="callable or list of them")
    callbacks_every_iters: int = parameter(50, [whole(1)], "Iterations from one call of ``callbacks`` to the next.")
    callback: Any = like(UMAP)
    verbose: bool = like(UMAP)
    tqdm_kwds: dict[str, Any] | None = like(UMAP)
    memory_limit: float | str | None = like(UMAP)
    device: str | None = like(UMAP)
    # fmt: on

    _chooses_device = True
    _scales_start = False

    kl_divergence_ = Result(lambda fitted: fitted.report.divergence)
    n_iter_ = Result(lambda fitted: fitted.report.n_epochs)
    learning_rate_ = Result(lambda fitted: fitted.recipe.plan.first_rate)
    perplexity_ = Result(lambda fitted: fitted.recipe.affinity.perplexity)

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


@with_parameters
class LargeVis(MapEstimator):
    """LargeVis: t-SNE's graph, an unnormalized Cauchy kernel, negatives drawn by degree.

    The same ``random_state`` gives the same bits for any ``n_jobs``.

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

    # fmt: off
    n_components: int = like(UMAP)
    perplexity: float = parameter(8.0, [Interval(Real, 1, None, closed="left")], f"""
        Effective number of neighbors. {NEIGHBORS_PER_PERPLEXITY} times as many are searched. The authors' program uses
        50 and ``gamma`` 7. On Fashion-MNIST (70,000 images) the 10-NN accuracy is 0.792 with (15, 7), 0.824 with
        (8, 20), and t-SNE's is 0.839.""")
    gamma: float = parameter(20.0, [NOT_NEGATIVE], "Weight of the negative samples (lambda of eq. 23).")
    metric: Any = like(UMAP)
    metric_kwds: dict[str, Any] | None = like(UMAP)
    n_epochs: int | None = parameter(None, [whole(0), None], """
        Number of epochs, by default as many as give each row enough edge samples.""")
    negative_sample_rate: int = like(UMAP, "They are drawn in proportion to degree^0.75.")
    learning_rate: float = like(UMAP, doc="Learning rate of the first epoch; it falls to 0.")
    init: Any = like(UMAP, default="pca", allowed=INIT, kind=INIT_KIND)
    random_state: Any = like(UMAP)
    transform_seed: int = like(UMAP)
    n_jobs: int | None = like(UMAP)
    verbose: bool = like(UMAP)
    tqdm_kwds: dict[str, Any] | None = like(UMAP)
    callback: Any = like(UMAP)
    memory_limit: float | str | None = like(UMAP)
    device: str | None = like(UMAP)
    # fmt: on

    _chooses_device = True

    def _check_parameters(self) -> None:
        self._validate_params()
        check_metric(self.metric, self.metric_kwds)

    def _recipe(self, n: int, seed: int) -> Recipe:
        plan = LargeVisPlan(
            Forces(CAUCHY, "largevis"),
            epoch_stops(self.n_epochs),
            self.learning_rate,
            int(self.negative_sample_rate),
            self.gamma,
            placement_seed=int(self.transform_seed),
        )
        affinity = EntropicAffinity(float(self.perplexity), normalized=False)
        return Recipe(affinity, plan, int(self.n_components), initializer_of(self.init))
