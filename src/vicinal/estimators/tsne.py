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
from vicinal.layout.schedule import SMALL_ROWS
from vicinal.neighbors.metrics import KEYWORD_ALIASES, PRECOMPUTED, check_metric, is_sparse
from vicinal.neighbors.training_data import TrainingDistances
from vicinal.pipeline.fit import ArrayExecutor, Listeners
from vicinal.pipeline.recipe import (
    LARGEVIS_GAMMA,
    LARGEVIS_SMALL_GAMMA,
    NEIGHBORS_PER_PERPLEXITY,
    SMALL_NEGATIVES,
    EntropicAffinity,
    FullPlan,
    LargeVisPlan,
    Recipe,
)
from vicinal.runtime.constraints import NOT_NEGATIVE, POSITIVE, SHARE, Interval, StrOptions, whole
from vicinal.runtime.progress import Callback

PERPLEXITY = 30.0
EARLY_EXAGGERATION = 12.0
QUERY_PERPLEXITY = 5.0  # of new rows, as in openTSNE: few neighbors place a row more sharply
AUTO = StrOptions({"auto"})
INIT = [StrOptions(set(INITIALIZERS)), "array-like"]
INIT_KIND = '{"pca", "spectral", "random"} or array [rows, n_components]'
# scikit-learn's and openTSNE's words for the methods that compute the repulsion.
METHODS = {
    **dict.fromkeys(["auto", "barnes_hut", "barnes-hut", "bh", "BH"], "auto"),
    **dict.fromkeys(["fft", "FFT", "interpolation"], "fft"),
    "exact": "exact",
}
EXACT_SEARCHES = ("exact", "balltree")  # openTSNE's words
LARGEST = 1e9  # factors beyond it move points out of the range of float32
CHECKED_EVERY = 50  # iterations, as in scikit-learn
UNUSED = "openTSNE's parameter, accepted without effect."


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
        Number of the last iteration, counted from 0 as in scikit-learn. ``n_epochs_`` is the number of iterations.
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
    perplexity: float | None = parameter(None, [POSITIVE, None], f"""
        Effective number of neighbors of a row, less than the number of rows, by default {PERPLEXITY:g}. More than a
        third of the other rows is lowered to that. ``perplexity_`` is the value that was used.""")
    _: KW_ONLY
    early_exaggeration: Any = parameter("auto", [AUTO, Interval(Real, 1, LARGEST)], f"""
        Factor of the attraction in the first phase. "auto" is {EARLY_EXAGGERATION:g}, or ``exaggeration`` if that is
        larger.""", kind='float or "auto"')
    learning_rate: Any = parameter("auto", [AUTO, Interval(Real, 0, LARGEST, closed="right")], """
        As in scikit-learn, a quarter of openTSNE's. "auto" is rows / exaggeration / 4 in each phase.""",
        kind='float or "auto"')
    max_iter: int = parameter(750, [whole(0)], "Iterations of both phases together.")
    early_exaggeration_iter: int = parameter(250, [whole(0)], "Iterations of the first phase.")
    n_iter: int | None = parameter(None, [whole(0), None], """
        openTSNE's name for the iterations after the first phase. If given, it replaces ``max_iter``.""")
    exaggeration: float | None = parameter(None, [Interval(Real, 1 / LARGEST, LARGEST), None], """
        Factor of the attraction in the second phase, by default 1.""")
    dof: float = parameter(1.0, [Interval(Real, 0.01, LARGEST)], """
        Degrees of freedom of the kernel. Below 1 its tails are heavier and clusters finer.""")
    init: Any = parameter(None, [*INIT, None], """
        Initial positions of the rows, by default "pca", or "random" if ``X`` holds distances. An array is used
        unchanged.""", kind=INIT_KIND)
    metric: Any = like(UMAP)
    metric_kwds: dict[str, Any] | None = like(UMAP)
    method: str = parameter("auto", [StrOptions(METHODS)], f"""
        How the repulsion is computed: from every pair ("exact"), or by a grid and FFT ("fft") for up to
        {GRID_COMPONENTS} components. "auto" is exact for few rows, and so is "barnes_hut", the name of other libraries:
        a grid is more accurate than a tree.""", kind="str")
    min_grad_norm: float | None = parameter(None, [NOT_NEGATIVE, None], f"""
        If given, the second phase ends when the norm of the gradient, which is computed every {CHECKED_EVERY}
        iterations, is not larger.""")
    n_iter_without_progress: int | None = parameter(None, [whole(-1), None], f"""
        If given, the second phase ends after more iterations than this without a smaller divergence, which is computed
        every {CHECKED_EVERY} iterations.""")
    initial_momentum: float = parameter(0.8, [SHARE], "Momentum of the first phase.")
    final_momentum: float = parameter(0.8, [SHARE], "Momentum of the second phase.")
    metric_params: dict[str, Any] | None = parameter(None, [dict, None], """
        ``metric_kwds`` by the name in other libraries. ``V`` of "mahalanobis" is the covariance of the columns.""")
    initialization: Any = parameter(None, [*INIT, None], "``init`` by openTSNE's name.", kind=INIT_KIND)
    negative_gradient_method: str | None = parameter(None, [StrOptions(METHODS), None], """
        ``method`` by openTSNE's name.""", kind="str")
    neighbors: Any = parameter("auto", [object], """
        openTSNE's method of the search: "exact" and "balltree" compare all rows. Others have no effect.""", kind="str")
    angle: float = parameter(0.5, [NOT_NEGATIVE], "scikit-learn's parameter, accepted without effect.")
    theta: Any = parameter(0.5, [object], UNUSED, kind="float")
    n_interpolation_points: Any = parameter(3, [object], UNUSED, kind="int")
    min_num_intervals: Any = parameter(50, [object], UNUSED, kind="int")
    ints_in_interval: Any = parameter(1, [object], UNUSED, kind="float")
    max_grad_norm: Any = parameter(None, [object], UNUSED, kind="float")
    max_step_norm: Any = parameter(5, [object], f"{UNUSED} No step is longer than 5.", kind="float")
    knn_kwargs: Any = parameter(None, [object], UNUSED, kind="dict")
    n_jobs: int | None = like(UMAP)
    random_state: Any = like(UMAP)
    callbacks: Any = parameter(None, [callable, list, tuple, None], """
        openTSNE's callbacks: each is called as ``f(iteration, kl_divergence, embedding)``. A true return value stops
        the layout. Their method ``optimization_about_to_start``, if there is one, is called before.""",
        kind="callable or list of them")
    callbacks_every_iters: int = parameter(50, [whole(1)], "Iterations from one call of ``callbacks`` to the next.")
    callback: Any = like(UMAP)
    verbose: bool = like(UMAP, f"2 also prints divergence and gradient every {CHECKED_EVERY} iterations.")
    tqdm_kwds: dict[str, Any] | None = like(UMAP)
    memory_limit: float | str | None = like(UMAP)
    device: str | None = like(UMAP)
    # fmt: on

    _chooses_device = True
    _scales_start = False

    kl_divergence_ = Result(lambda fitted: fitted.report.divergence)
    n_iter_ = Result(lambda fitted: max(0, fitted.report.n_epochs - 1))
    learning_rate_ = Result(lambda fitted: fitted.recipe.plan.first_rate)
    perplexity_ = Result(lambda fitted: fitted.recipe.affinity.perplexity)

    def executor(self, X: Any) -> ArrayExecutor:
        """Check parameters and arguments as ``fit`` does; return the argument of :func:`vicinal.pipeline.fit`."""
        made = super().executor(X)
        n, affinity = made.data.n, made.recipe.affinity
        if self.perplexity is not None and self.perplexity >= n > 1:
            raise ValueError(f"perplexity ({self.perplexity}) must be less than n_samples ({n})")
        if isinstance(made.data, TrainingDistances) and is_sparse(made.data.rows):
            if self._method() == "exact":
                raise TypeError("method='exact' requires all distances, X is a sparse matrix; use method='auto'")
            stored, required = np.diff(made.data.rows.indptr).min(), affinity.columns(n)
            # Each row stores its neighbors and perhaps its distance to itself.
            if stored + 1 < required:
                raise ValueError(
                    f"{required} neighbors per samples are required, but some samples have only {stored}: "
                    "store more distances, or lower the perplexity"
                )
        return made

    def _recipe(self, n: int, seed: int) -> Recipe:
        wanted = PERPLEXITY if self.perplexity is None else float(self.perplexity)
        perplexity = max(1.0, min(wanted, (n - 1) / NEIGHBORS_PER_PERPLEXITY))
        affinity = EntropicAffinity(perplexity, query_perplexity=min(QUERY_PERPLEXITY, perplexity))
        plan = FullPlan(self._phases(n), float(self.dof), self._method())
        exact = isinstance(self.neighbors, str) and self.neighbors in EXACT_SEARCHES
        search: Any = "exact" if exact else "auto"
        return Recipe(affinity, plan, int(self.n_components), initializer_of(self._init()), search=search)

    def _init(self) -> Any:
        given = self.init if self.initialization is None else self.initialization
        return "pca" if given is None else given

    def _method(self) -> Any:
        return METHODS[self.negative_gradient_method or self.method]

    def _metric_keywords(self) -> dict[str, Any] | None:
        keywords = self.metric_kwds if self.metric_params is None else self.metric_params
        if self.metric == "mahalanobis":
            keywords = dict(keywords or {})
            if "V" in keywords:
                keywords["VI"] = np.linalg.inv(np.asarray(keywords.pop("V"), dtype=np.float64))
            if not {KEYWORD_ALIASES.get(name, name) for name in keywords} & {"VI"}:
                raise ValueError("Must provide either V or VI for Mahalanobis distance")
        return keywords

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

        momentum = float(self.initial_momentum), float(self.final_momentum)
        return Phase(first, early, rate(early), momentum[0]), Phase(second, late, rate(late), momentum[1])

    def _listeners(self) -> Listeners | None:
        """Return openTSNE's callbacks and scikit-learn's checks as listeners of the layout."""
        callbacks = self.callbacks or []
        callbacks = [callbacks] if callable(callbacks) else list(callbacks)
        prints = int(self.verbose) > 1
        stops = prints or self.min_grad_norm is not None or self.n_iter_without_progress is not None

        def listeners(graph: Graph) -> list[tuple[Callback, int]]:
            def divergence(places: NDArray[np.float32]) -> float:
                return FullPlan((), float(self.dof)).divergence(graph, places, self._jobs())

            def tell(stage: str, iteration: int, n_iterations: int, places: NDArray[np.float32] | None) -> bool:
                assert places is not None
                error = divergence(places)
                answers = [callback(iteration, error, places) for callback in callbacks]
                return any(answers)

            for callback in callbacks:
                getattr(callback, "optimization_about_to_start", lambda: None)()
            watching: list[tuple[Callback, int]] = []
            if callbacks:
                watching.append((tell, int(self.callbacks_every_iters)))
            if stops:
                watching.append((self._check_progress(graph, prints), CHECKED_EVERY))
            return watching

        return listeners if callbacks or stops else None

    def _check_progress(self, graph: Graph, prints: bool) -> Callback:
        """Return a callback that ends the second phase as scikit-learn does, and prints what it found."""
        plan = FullPlan(self._phases(graph.n), float(self.dof), self._method())
        first, limit = plan.phases[0].n_epochs, self.n_iter_without_progress
        best, best_iteration = np.inf, first

        def say(text: str) -> None:
            if prints:
                print(f"[t-SNE] {text}")

        say(f"Joined {graph.n} rows with their nearest neighbors...")
        say(f"Computed conditional probabilities. Mean sigma: {float(np.mean(graph.sigma)):.6f}")

        def check(stage: str, iteration: int, n_iterations: int, places: NDArray[np.float32] | None) -> bool:
            nonlocal best, best_iteration
            assert places is not None
            error = plan.divergence(graph, places, self._jobs())
            if iteration <= first:
                say(f"Iteration {iteration} with early exaggeration: error = {error:.7f}")
                return False
            slope = plan.gradient_norm(graph, places, self._jobs())
            say(f"Iteration {iteration}: error = {error:.7f}, gradient norm = {slope:.7f}")
            if error < best:
                best, best_iteration = error, iteration
            if limit is not None and iteration - best_iteration > limit:
                say(f"Iteration {iteration}: did not make any progress during the last {limit} episodes. Finished.")
                return True
            if self.min_grad_norm is not None and slope <= self.min_grad_norm:
                say(f"Iteration {iteration}: gradient norm {slope:.7f}. Finished.")
                return True
            return False

        return check

    def _check_parameters(self) -> None:
        self._validate_params()
        if self.n_components > GRID_COMPONENTS and (self.method not in ("auto", "exact") or self._method() == "fft"):
            raise ValueError(
                f"'n_components' should be at most {GRID_COMPONENTS} for method={self.method!r}, got "
                f"{self.n_components}; use method='exact'"
            )
        pairwise = isinstance(self.metric, str) and self.metric == PRECOMPUTED
        for both, one in (("init", "initialization"), ("metric_kwds", "metric_params")):
            if getattr(self, both) is not None and getattr(self, one) is not None:
                raise ValueError(f"{both} and {one} are the same parameter: give one of them")
        if "pca" in [one for one in (self.init, self.initialization) if isinstance(one, str)] and pairwise:
            raise ValueError('The parameter init="pca" cannot be used with metric="precomputed".')
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
    gamma: float | None = parameter(None, [NOT_NEGATIVE, None], f"""
        Weight of the negative samples (lambda of eq. 23). None means {LARGEVIS_SMALL_GAMMA:g} up to {SMALL_ROWS:,}
        rows, otherwise {LARGEVIS_GAMMA:g}.""")
    metric: Any = like(UMAP)
    metric_kwds: dict[str, Any] | None = like(UMAP)
    n_epochs: int | None = parameter(None, [whole(0), None], """
        Number of epochs, by default as many as give each row enough edge samples.""")
    negative_sample_rate: int = like(UMAP, f"""They are drawn in proportion to degree^0.75. Up to
        {SMALL_ROWS:,} rows, {SMALL_NEGATIVES} times as many are drawn, each with its share of ``gamma``.""")
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

    def _weight_of_negatives(self, n: int) -> float:
        if self.gamma is not None:
            return float(self.gamma)
        return LARGEVIS_SMALL_GAMMA if n <= SMALL_ROWS else LARGEVIS_GAMMA

    def _recipe(self, n: int, seed: int) -> Recipe:
        plan = LargeVisPlan(
            Forces(CAUCHY, "largevis"),
            epoch_stops(self.n_epochs),
            self.learning_rate,
            int(self.negative_sample_rate),
            self._weight_of_negatives(n),
            placement_seed=int(self.transform_seed),
        )
        affinity = EntropicAffinity(float(self.perplexity), normalized=False)
        return Recipe(affinity, plan, int(self.n_components), initializer_of(self.init))
