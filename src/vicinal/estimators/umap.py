"""UMAP with umap-learn's constructor."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils.metadata_routing import UNUSED

from vicinal.estimators.base import MapEstimator, over_blocks, random_seed, whole_or_nothing
from vicinal.estimators.composed import difference, intersection, union
from vicinal.estimators.parameters import (
    check_curve,
    check_precomputed,
    epoch_stops,
    given_neighbors,
    output_space_of,
    recipe_of,
)
from vicinal.initialize.start import INITIALIZER_ALIASES, INITIALIZERS, given_start
from vicinal.neighbors.metrics import ALIASES, METRICS, PRECOMPUTED, Finite, check_metric, is_low_level
from vicinal.neighbors.rows import HasRows, as_rows, like_input
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingRows
from vicinal.pipeline.fit import ArrayExecutor, GivenPlaces, fit, update
from vicinal.pipeline.options import RowOptions, check_pins, check_weights
from vicinal.pipeline.place import inverse_rows, memberships, place
from vicinal.pipeline.recipe import Recipe
from vicinal.runtime.inputs import check_input, is_dask
from vicinal.runtime.memory import ByteSize
from vicinal.runtime.parameters import DEVICE, LEARNING_RATE, NEGATIVES, SEED, Interval, StrOptions


class UMAP(MapEstimator):
    """Uniform Manifold Approximation and Projection.

    The parameters are umap-learn's, with the same names, order and defaults; ``callback``, ``update_negatives``,
    ``compute_loss``, ``memory_limit`` and ``device`` are additions. The same ``random_state`` gives the same bits for
    any ``n_jobs``.

    Parameters
    ----------
    n_neighbors : int, default 15
        Size of the neighborhoods, the row itself included. Larger values show more of the global structure.
    n_components : int, default 2
        Dimensions of the map.
    metric : str or callable, default "euclidean"
        A name in ``vicinal.metrics.METRICS``, "precomputed" (``X`` holds distances, dense or sparse), a function of
        two rows that returns their distance or (distance, gradient), or a ``scipy.LowLevelCallable``; ``metric_kwds``
        are its keywords.
    output_metric : str or callable, default "euclidean"
        The distance of the map: haversine, hyperboloid, manhattan, cosine and others; with ``output_metric_kwds``. A
        function of two points returns (distance, gradient) and is called for every pair, which is slow.
    n_epochs : int or list of int, optional
        Default 500 up to 30,000 rows, 200 for more. ``embedding_list_`` holds the maps at the epochs of a list.
    learning_rate : float, default 1.0
        Rate of the first epoch; falls to 0 as (1 - e/n_epochs)^2, up to 10,000 rows after 0.3 of the epochs.
    init : {"spectral", "pca", "random"} or array [rows, n_components], default "spectral"
        Where the rows start. ``init_used_`` says what was used, and why if it differs from what was asked for.
    min_dist, spread : float, default 0.1 and 1.0
        How close points may lie in the map, and its scale. ``a`` and ``b`` override them.
    n_jobs : int or None, default -1
        Threads; -1 uses all processors, None means what it means in scikit-learn.
    set_op_mix_ratio : float, default 1.0
        Fuzzy union (1) or intersection (0) of the neighborhoods.
    local_connectivity : float, default 1.0
        Number of neighbors that a row is certainly connected to.
    repulsion_strength, negative_sample_rate : float and int, default 1.0 and 5
        Weight and number of the negative samples per edge sample.
    random_state, transform_seed : int, RandomState or None; and int, default 42
        Seeds of everything random in ``fit``, and of ``transform``.
    target_metric : str or callable, default "categorical"
        How ``y`` is compared: "categorical" classes, "ordinal" levels, "count" whole numbers, "string" texts, or a
        metric of numbers; with ``target_metric_kwds`` and, for numbers, ``target_n_neighbors`` (-1: ``n_neighbors``).
    target_weight : float, default 0.5
        How far ``y`` separates classes; at 1 edges between classes vanish. Rows with y = -1 or NaN are unlabeled.
    transform_mode : {"embedding", "graph"}, default "embedding"
        "graph" returns memberships instead of places, and no layout is computed.
    unique : bool, default False
        Whether equal rows are laid out as one.
    densmap, dens_lambda, dens_frac, dens_var_shift, output_dens
        See :class:`vicinal.DensMAP`.
    precomputed_knn : (indices, distances[, index]) or sparse graph, optional
        Neighbors of the rows, each row itself included, used instead of a search.
    force_approximation_algorithm : bool, default False
        Search neighbors approximately even if comparing every pair is faster.
    verbose, tqdm_kwds : bool and dict
        Show a progress bar for every stage.
    disconnection_distance : float, optional
        Rows at this distance or farther are not neighbors. By default the largest distance of the metric, if it has
        one (cosine 2, jaccard 1). Rows without neighbors lie around the map; ``map_.disconnected`` marks them.
    callback : callable(stage, epoch, n_epochs, embedding), optional
        Called around each stage and after every epoch; a true return value stops the layout and keeps the map.
    update_negatives : bool, default False
        Whether negative samples move too (the line of Algorithm 1 that "does not exist in original UMAP").
    compute_loss : bool, default False
        Whether ``loss_history_`` records the expected loss of the sampler along the layout
        (:func:`vicinal.losses.effective_loss`): survey eq. 29 if negatives move, with half its repulsion if they rest.
    memory_limit : int or str, optional
        Bytes, or a text such as "2GB". A fit that would take more memory beyond its input
        (:func:`vicinal.estimate_memory`) raises MemoryError before it allocates anything.
    device : {None, "cpu", "cuda", "cuda:N"}, default None
        Where a fit is done. None means where ``X`` lives: on the CPU, or on the GPU of a CuPy array or CUDA tensor.

    ``low_memory``, ``angular_rp_forest`` and ``transform_queue_size`` are accepted and have no effect.

    Attributes
    ----------
    embedding_ : array [rows, n_components]
    graph_ : sparse matrix
        The fuzzy graph of the rows.
    map_ : FittedMap
        Everything that the fit learned.
    init_used_ : str
    stage_times_ : dict
        Seconds per stage.
    n_epochs_ : int
        Number of epochs that were run.
    rad_orig_, rad_emb_, radius_correlation_ : arrays and float
        Logarithms of local radii in the data and in the map, and their correlation (``densmap``, ``output_dens``). As
        in umap-learn, the radii of the map are those of a neighbor graph of the map.
    density_correlation_ : float
        Correlation of the radii that densMAP's cost compares, over the edges of ``graph_`` (``densmap``,
        ``output_dens``).

    See Also
    --------
    TSNE, DensMAP, ParametricUMAP, ProgressiveUMAP

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vicinal import UMAP
    >>> UMAP(n_neighbors=10, random_state=42).fit(load_iris().data).embedding_.shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 2, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "metric": [StrOptions({*METRICS, *ALIASES, PRECOMPUTED}), callable, tuple],
        "metric_kwds": [dict, None],
        "output_metric": [str, callable],
        "output_metric_kwds": [dict, None],
        "n_epochs": [Interval(Integral, 0, None, closed="left"), list, tuple, None],
        "learning_rate": [LEARNING_RATE],
        "init": [StrOptions({*INITIALIZERS, *INITIALIZER_ALIASES}), "array-like"],
        "min_dist": [Interval(Real, 0, None, closed="left")],
        "spread": [Interval(Real, 0, None, closed="neither")],
        "low_memory": ["boolean"],
        "n_jobs": [Integral, None],
        "set_op_mix_ratio": [Interval(Real, 0, 1, closed="both")],
        "local_connectivity": [Interval(Real, 0, None, closed="left")],
        "repulsion_strength": [Interval(Real, 0, None, closed="left")],
        "negative_sample_rate": [NEGATIVES],
        "transform_queue_size": [Interval(Real, 0, None, closed="left")],
        "a": [Interval(Real, 0, None, closed="neither"), None],
        "b": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
        "angular_rp_forest": ["boolean"],
        "target_n_neighbors": [Interval(Integral, 2, None, closed="left"), Interval(Integral, -1, -1, closed="both")],
        "target_metric": [str, callable],
        "target_metric_kwds": [dict, None],
        "target_weight": [Interval(Real, 0, 1, closed="both")],
        "transform_seed": [SEED],
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
        "precomputed_knn": [tuple, list, "array-like", None],
        "callback": [callable, None],
        "update_negatives": ["boolean"],
        "compute_loss": ["boolean"],
        "memory_limit": [ByteSize(), None],
        "device": [DEVICE, None],
    }
    _chooses_device = True

    def __init__(
        self,
        n_neighbors: int = 15,
        n_components: int = 2,
        metric: Any = "euclidean",
        metric_kwds: dict[str, Any] | None = None,
        output_metric: Any = "euclidean",
        output_metric_kwds: dict[str, Any] | None = None,
        n_epochs: int | list[int] | None = None,
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
        compute_loss: bool = False,
        memory_limit: float | str | None = None,
        device: str | None = None,
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
        self.compute_loss = compute_loss
        self.memory_limit = memory_limit
        self.device = device

    # umap-learn's argument is not metadata of the rows
    __metadata_request__fit = __metadata_request__transform = {"ensure_all_finite": UNUSED}  # noqa: RUF012

    @whole_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        ensure_all_finite: Finite = True,
        *,
        sample_weight: Any = None,
        fixed_mask: Any = None,
        fixed_positions: Any = None,
    ) -> UMAP:
        """Map the rows of ``X``.

        Parameters
        ----------
        X : array, sparse matrix or Dask array [rows, columns]
            The rows, or with ``metric="precomputed"`` their distances.
        y : array [rows], optional
            Labels or numbers that shape the map; -1 (classes) and NaN mean unlabeled.
        ensure_all_finite : bool or "allow-nan", default True
            Whether a metric of your own receives finite values only, NaN too ("allow-nan"), or any value (False). Named
            metrics receive what they are defined for.
        sample_weight : array [rows], optional
            A row counts as that many rows. A row of weight 0 is placed, and moves no other row.
        fixed_mask, fixed_positions : arrays [rows] and [rows, n_components], optional
            Marked rows are put at their positions and stay there, bit for bit.
        """
        if is_dask(X):
            if fixed_mask is not None or fixed_positions is not None:
                raise ValueError("fixed_mask and fixed_positions are not possible for a Dask array")
            return self._fit_array(X, y, sample_weight)
        executor = self.executor(X, y, sample_weight, fixed_mask, fixed_positions, ensure_all_finite)
        return self.adopt_map(fit(executor, self._progress()))

    def executor(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        fixed_mask: Any = None,
        fixed_positions: Any = None,
        ensure_all_finite: Finite = True,
    ) -> ArrayExecutor:
        """Check parameters and arguments as ``fit`` does; return the argument of :func:`vicinal.pipeline.fit`."""
        self._check_parameters()
        seed = random_seed(self.random_state)
        data = self._check_training_data(X, seed, ensure_all_finite)
        n = data.n
        recipe = self._recipe(n, seed)
        labels = None if y is None or recipe.supervision is None else recipe.supervision.check(y, n)
        pins = check_pins(fixed_mask, fixed_positions, n, recipe.n_components)
        options = RowOptions(labels, check_weights(sample_weight, n), pins)
        if pins is not None:
            options = options.with_equal_rows_pinned(data.duplicates.first)
        start = given_start(self.init, n, recipe.n_components)
        return ArrayExecutor(data, recipe, options, first_places=start, seed=seed)

    def fit_transform(self, X: Any, y: Any = None, ensure_all_finite: Finite = True, **fit_params: Any) -> Any:
        """Fit and return ``embedding_``; the graph with ``transform_mode="graph"``; with ``output_dens`` radii too."""
        self.fit(X, y, ensure_all_finite, **fit_params)
        if self.transform_mode == "graph":
            return self.graph_
        results = (self.embedding_, self.rad_orig_, self.rad_emb_) if self.output_dens else (self.embedding_,)
        placed = tuple(like_input(X, result) for result in results)
        return placed if self.output_dens else placed[0]

    @over_blocks
    def transform(self, X: Any, ensure_all_finite: Finite = True) -> Any:
        """Return the places of rows in the fitted map, which stays as it is.

        A row of the training data has its place there; any other is placed among its neighbors. The result for a row
        depends on that row alone. With ``transform_mode="graph"`` the memberships of the rows, as a sparse matrix.
        ``ensure_all_finite`` as in :meth:`fit`.
        """
        self._require_map()
        rows, fitted = self.check_new_rows(X, ensure_all_finite), self._map_for(X)
        if fitted.embedding is None:
            return memberships(fitted, rows).to_scipy()
        return like_input(X, place(fitted, rows))

    def _require_map(self) -> None:
        if self._set_by_program():
            settings, places = self._set_settings(), self._given_embedding
            given = self._with_settings(settings).executor(self._raw_data)
            data = given.data
            if len(places) != data.n:
                raise ValueError(f"embedding_ must have a place for each of {data.n} rows, got {len(places)}")
            adopted = fit(GivenPlaces(data, given.recipe, first_places=places, seed=given.seed))
            self.adopt_map(adopted)._fit_params = settings
        super()._require_map()

    def inverse_transform(self, X: Any) -> Any:
        """Return rows that would lie at the given places, inside or outside of the map."""
        self._require_map()
        fitted = self.local_map
        data = fitted.searched
        if not isinstance(data, TrainingRows):
            raise ValueError("inverse_transform needs rows: a model of precomputed distances has none")
        if fitted.embedding is None:
            raise ValueError("inverse_transform needs a map: this model was fitted with transform_mode='graph'")
        check_input(X)
        k, kernel = fitted.recipe.affinity.columns(data.n), fitted.recipe.plan.forces.kernel
        places = fitted.reference_places
        return inverse_rows(X, places, data.rows, kernel, n_neighbors=k, n_jobs=data.n_jobs)

    @whole_or_nothing
    def update(self, X: Any, y: Any = None, ensure_all_finite: Finite = True) -> UMAP:
        """Add rows to the fitted map, whose points move a little to make room.

        With ``metric="precomputed"`` the rows hold the distances to the known rows and then to each other.
        ``ensure_all_finite`` as in :meth:`fit`.
        """
        self._require_map()
        fitted = self.local_map
        if fitted.embedding is None:
            raise ValueError("update needs a map: this model was fitted with transform_mode='graph'")
        pairwise = not isinstance(fitted.data, TrainingRows)
        rows = as_rows(X) if pairwise else self.check_new_rows(X, ensure_all_finite)
        labels = None
        if y is not None and fitted.recipe.supervision is not None:
            labels = fitted.recipe.supervision.check(y, rows.shape[0])
        self.map_ = update(fitted, rows, labels, self._progress())
        self.n_features_in_ = int(self.map_.data.rows.shape[1])
        return self

    def partial_fit(self, X: Any, y: Any = None) -> UMAP:
        """``fit`` the first time, ``update`` from then on."""
        return self.update(X, y) if self.__sklearn_is_fitted__() else self.fit(X, y)

    def _check_parameters(self) -> None:
        """Raise, naming the parameter, for what is wrong whatever the data is."""
        self._validate_params()
        if isinstance(self.metric, tuple) and not is_low_level(self.metric):
            raise TypeError(f"metric must be a name, a function or a scipy.LowLevelCallable, got {self.metric!r}")
        check_metric(self.metric, self.metric_kwds)
        check_curve(self)
        epoch_stops(self.n_epochs)
        if self._matches_density() and not output_space_of(self).is_euclidean:
            raise ValueError(f"densmap requires output_metric='euclidean', got {self.output_metric!r}")
        check_precomputed(self)

    def _matches_density(self) -> bool:
        """Whether the map's local radii are to follow the data's."""
        return bool(self.densmap)

    def _recipe(self, n: int, seed: int) -> Recipe:
        return recipe_of(self, seed, self._jobs(), matches_density=self._matches_density())

    def _given_neighbors(self, rows: HasRows) -> Neighbors | None:
        return given_neighbors(self.precomputed_knn, rows, self.n_neighbors)

    __mul__ = intersection
    __add__ = union
    __sub__ = difference


class DensMAP(UMAP):
    """UMAP with ``densmap=True``: local radii of the map follow those of the data.

    All parameters are those of :class:`vicinal.UMAP`. ``dens_lambda`` is the weight of the radii: a larger one matches
    them better and keeps fewer neighbors (digits, correlation of local distances, recall@15: 0.5 gives 0.84 and 0.52,
    2 gives 0.89 and 0.47, 5 gives 0.91 and 0.38). ``dens_frac`` is the fraction of the epochs in which they count,
    ``dens_var_shift`` stabilizes their variance; ``densmap`` has no effect.
    New rows are placed so that their own radius is matched too.

    Attributes
    ----------
    rad_orig_, rad_emb_ : arrays [rows]
        Logarithms of the local radii in the data and in the map, both in a neighbor graph of their own.
    radius_correlation_ : float
        Their correlation.
    density_correlation_ : float
        Correlation of the radii that the cost compares, over the edges of the graph of the data (survey eq. 31, 33).

    See Also
    --------
    UMAP : without the term of the densities.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vicinal import DensMAP
    >>> X = load_iris().data
    >>> model = DensMAP(random_state=42, output_dens=True).fit(X)
    >>> model.embedding_.shape, model.rad_orig_.shape
    ((150, 2), (150,))
    """

    def _matches_density(self) -> bool:
        return True
