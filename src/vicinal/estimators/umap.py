"""UMAP with umap-learn's constructor."""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partialmethod
from numbers import Integral
from typing import TYPE_CHECKING, Any

from sklearn.utils.metadata_routing import UNUSED

from vicinal.estimators.base import MapEstimator, over_blocks, random_seed, whole_or_nothing
from vicinal.estimators.parameters import (
    AUTO,
    check_curve,
    check_precomputed,
    epoch_stops,
    given_neighbors,
    output_space_of,
    parameter,
    parameters_of,
    recipe_of,
    with_parameters,
)
from vicinal.initialize.start import INITIALIZER_ALIASES, INITIALIZERS, given_start
from vicinal.layout.schedule import DECAY, EPOCHS, LARGE_EPOCHS, LARGE_ROWS, SMALL_HOLD, SMALL_ROWS
from vicinal.neighbors.metrics import ALIASES, METRICS, PRECOMPUTED, Finite, check_metric
from vicinal.neighbors.rows import HasRows, as_rows, like_input
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingRows
from vicinal.pipeline.fit import ArrayExecutor, GivenPlaces, fit, update
from vicinal.pipeline.place import inverse_rows, memberships, place
from vicinal.pipeline.recipe import ARRANGED_EPOCHS, ARRANGED_RATE, Recipe
from vicinal.pipeline.row_options import RowOptions, check_pins, check_weights
from vicinal.runtime.constraints import (
    DEVICE,
    LEARNING_RATE,
    NEGATIVES,
    NOT_NEGATIVE,
    POSITIVE,
    SEED,
    SHARE,
    Interval,
    StrOptions,
    WholeFloat,
    whole,
)
from vicinal.runtime.inputs import is_dask
from vicinal.runtime.sizes import ByteSize

if TYPE_CHECKING:
    from vicinal.estimators.progressive import ProgressiveUMAP


@with_parameters
class UMAP(MapEstimator):
    """Uniform Manifold Approximation and Projection.

    The parameters are umap-learn's, with the same names and order, and the same defaults except for ``init``;
    ``callback``, ``update_negatives``, ``compute_loss``, ``disconnected``, ``memory_limit`` and ``device`` are
    additions. The same ``random_state`` gives the same bits for any ``n_jobs``.

    Attributes
    ----------
    embedding_ : array [rows, n_components]
    graph_ : sparse matrix
        The fuzzy graph of the rows.
    map_ : FittedMap
        Everything that the fit learned. ``map_.disconnected`` marks the rows without neighbors.
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

    # fmt: off
    n_neighbors: int = parameter(15, [whole(2)], """
        Size of the neighborhoods, the row itself included. Larger values show more of the global structure.""")
    n_components: int = parameter(2, [whole(1), WholeFloat(1)], "Dimensions of the map.", kind="int")
    metric: Any = parameter("euclidean", [StrOptions({*METRICS, *ALIASES, PRECOMPUTED}), callable, tuple], """
        Distance of the rows: a name in ``vicinal.metrics.METRICS``, "precomputed" (``X`` holds distances, dense or
        sparse), a function of two rows that returns their distance or (distance, gradient), or a
        ``scipy.LowLevelCallable``.""", kind="str or callable")
    metric_kwds: dict[str, Any] | None = parameter(None, [dict, None], "Keyword arguments of ``metric``.")
    output_metric: Any = parameter("euclidean", [str, callable], kind="str or callable", doc="""
        Distance of the points in the map: "haversine", "hyperboloid", "manhattan", "cosine" and others. A function of
        two points returns (distance, gradient); it is called for every pair, which is slow.""")
    output_metric_kwds: dict[str, Any] | None = parameter(None, [dict, None], "Keyword arguments of ``output_metric``.")
    n_epochs: int | list[int] | None = parameter(None, [whole(0), list, tuple, None], f"""
        Number of epochs, by default {EPOCHS} up to {LARGE_ROWS:,} rows; for more, {ARRANGED_EPOCHS} with
        ``init="auto"`` and {LARGE_EPOCHS} otherwise. With a list, ``embedding_list_`` holds the map at each of these
        epochs.""", kind="int or list of int")
    learning_rate: float = parameter(1.0, [LEARNING_RATE], f"""
        Learning rate of the first epoch, times {ARRANGED_RATE:g} beyond {LARGE_ROWS:,} rows with ``init="auto"``. The
        rate of epoch e falls to 0 in proportion to (1 - e/n_epochs)^{DECAY:g}. Up to {SMALL_ROWS:,} rows, it stays
        constant for the first {SMALL_HOLD:.0%} of the epochs.""")
    init: Any = parameter(AUTO, [StrOptions({AUTO, *INITIALIZERS, *INITIALIZER_ALIASES}), "array-like"],
        kind='{"auto", "spectral", "pca", "random"} or array [rows, n_components]', doc=f"""
        Initial positions of the rows. "auto" takes principal components, or eigenvectors ("spectral") if a short trial
        shows that principal components fold the data; beyond {LARGE_ROWS:,} rows it lays groups of similar rows out
        first. DensMAP and maps that are not euclidean start with "spectral" instead. An array is moved and scaled to
        the usual size, all axes by one factor. ``init_used_`` says which positions were used, and why if they differ
        from this parameter.""")
    min_dist: float = parameter(0.1, [NOT_NEGATIVE], """
        How close points may lie in the map. Smaller values give tighter clusters. Not larger than ``spread``.""")
    spread: float = parameter(1.0, [POSITIVE], "Scale of the map.")
    low_memory: bool = parameter(True, ["boolean"], "Accepted for umap-learn, without effect.")
    n_jobs: int | None = parameter(-1, [Integral, None], """
        Number of threads. -1 uses all processors; None means what it means in scikit-learn.""")
    set_op_mix_ratio: float = parameter(1.0, [SHARE], """
        How the neighborhoods of two rows are combined: 1 is the fuzzy union, 0 the intersection.""")
    local_connectivity: float = parameter(1.0, [NOT_NEGATIVE], """
        Number of nearest neighbors to which a row is connected with full weight.""")
    repulsion_strength: float = parameter(1.0, [NOT_NEGATIVE], "Factor on the repulsion by negative samples.")
    negative_sample_rate: int = parameter(5, [NEGATIVES, WholeFloat(0, 10_000)], """
        Negative samples per sampled edge.""", kind="int")
    transform_queue_size: float = parameter(4.0, [NOT_NEGATIVE], "Accepted for umap-learn, without effect.")
    a: float | None = parameter(None, [POSITIVE, None], """
        Parameter a of the kernel 1 / (1 + a d^(2b)), given together with ``b``. By default both are fitted to
        ``min_dist`` and ``spread``.""")
    b: float | None = parameter(None, [POSITIVE, None], "Parameter b of the kernel, see ``a``.")
    random_state: Any = parameter(None, ["random_state"], kind="int or RandomState", doc="""
        Seed of everything random in ``fit``.""")
    angular_rp_forest: bool = parameter(False, ["boolean"], "Accepted for umap-learn, without effect.")
    target_n_neighbors: int = parameter(-1, [whole(2), Interval(Integral, -1, -1)], """
        Size of the neighborhoods among the numbers in ``y``; -1 means ``n_neighbors``.""")
    target_metric: Any = parameter("categorical", [str, callable], kind="str or callable", doc="""
        How the values of ``y`` are compared: "categorical" (classes), "ordinal" (levels), "count" (whole numbers),
        "string" (texts), or a metric of numbers.""")
    target_metric_kwds: dict[str, Any] | None = parameter(None, [dict, None], "Keyword arguments of ``target_metric``.")
    target_weight: float = parameter(0.5, [SHARE], """
        How far ``y`` separates the classes. With 1, edges between classes vanish. Rows with y = -1 or NaN are
        unlabeled.""")
    transform_seed: int = parameter(42, [SEED], "Seed of ``transform``.")
    transform_mode: str = parameter("embedding", [StrOptions({"embedding", "graph"})], """
        "graph" returns memberships instead of positions, and no layout is computed.""")
    force_approximation_algorithm: bool = parameter(False, ["boolean"], """
        Whether to search neighbors approximately even if comparing every pair is faster.""")
    verbose: bool = parameter(False, ["verbose"], "Whether to show a progress bar for every stage.")
    tqdm_kwds: dict[str, Any] | None = parameter(None, [dict, None], "Keyword arguments of the progress bars.")
    unique: bool = parameter(False, ["boolean"], """
        Whether equal rows are laid out as one. They share a position in any case.""")
    densmap: bool = parameter(False, ["boolean"], """
        Whether the local radii of the map follow those of the data, as :class:`vicinal.DensMAP` does. It has no effect
        there.""")
    dens_lambda: float = parameter(2.0, [NOT_NEGATIVE], """
        Weight of the radii in densMAP. A larger weight matches them better and keeps fewer neighbors (digits,
        correlation of local distances and recall@15: 0.84 and 0.52 for 0.5, 0.89 and 0.47 for 2, 0.91 and 0.38
        for 5).""")
    dens_frac: float = parameter(0.3, [SHARE], "Fraction of the epochs, at the end, in which densMAP's radii count.")
    dens_var_shift: float = parameter(0.1, [NOT_NEGATIVE], """
        Constant added to the variance of densMAP's radii, for numerical stability.""")
    output_dens: bool = parameter(False, ["boolean"], """
        Whether to compute ``rad_orig_`` and ``rad_emb_``, which ``fit_transform`` then returns beside the map.""")
    disconnection_distance: float | None = parameter(None, [POSITIVE, None], """
        Cut-off: rows at least this far apart are not neighbors. By default the largest distance of the metric, if it
        has one (cosine 2, jaccard 1). Rows without neighbors are drawn around the map; their position carries no
        information.""")
    precomputed_knn: Any = parameter((None, None, None), [tuple, list, "array-like", None],
        kind="(indices, distances[, index]) or sparse graph", doc="""
        Neighbors of the rows, each row itself included, that are used instead of a search.""")
    _: KW_ONLY
    callback: Any = parameter(None, [callable, None], kind="callable(stage, epoch, n_epochs, embedding)", doc="""
        Called around each stage and after every epoch. A true return value stops the layout and keeps the map.""")
    update_negatives: bool = parameter(False, ["boolean"], """
        Whether negative samples move too (the line of Algorithm 1 that "does not exist in original UMAP").""")
    compute_loss: bool = parameter(False, ["boolean"], """
        Whether ``loss_history_`` records the expected loss of the sampler along the layout
        (:func:`vicinal.losses.effective_loss`): survey eq. 29 if negatives move, and with half of its repulsion if they
        do not.""")
    disconnected: str = parameter("around", [StrOptions({"around", "nan"})], """
        What ``embedding_`` and ``transform`` have for rows without neighbors: positions around the map, or NaN as in
        umap-learn.""")
    memory_limit: float | str | None = parameter(None, [ByteSize(), None], kind="int or str", doc="""
        Bytes, or a text such as "2GB". A fit that would take more memory beyond its input
        (:func:`vicinal.estimate_memory`) raises MemoryError before it allocates anything.""")
    device: str | None = parameter(None, [DEVICE, None], kind='{"cpu", "cuda", "cuda:N"}', doc="""
        Where to fit. By default where ``X`` is: on the CPU, or on the GPU of a CuPy array or a CUDA tensor.""")
    # fmt: on

    _chooses_device = True

    # umap-learn's argument is not metadata of the rows
    __metadata_request__fit = __metadata_request__transform = {  # noqa: RUF012
        "ensure_all_finite": UNUSED,
        "force_all_finite": UNUSED,
    }

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
        force_all_finite: Finite | None = None,
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
        force_all_finite : bool or "allow-nan", optional
            ``ensure_all_finite`` by the name in umap-learn before 0.5.8.
        """
        finite = ensure_all_finite if force_all_finite is None else force_all_finite
        if is_dask(X):
            if fixed_mask is not None or fixed_positions is not None:
                raise ValueError("fixed_mask and fixed_positions are not possible for a Dask array")
            return self._fit_array(X, y, sample_weight)
        executor = self.executor(X, y, sample_weight, fixed_mask, fixed_positions, finite)
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
    def transform(self, X: Any, ensure_all_finite: Finite = True, *, force_all_finite: Finite | None = None) -> Any:
        """Return the places of rows in the fitted map, which stays as it is.

        A row of the training data has its place there; any other is placed among its neighbors. The result for a row
        depends on that row alone. With ``transform_mode="graph"`` the memberships of the rows, as a sparse matrix.
        ``ensure_all_finite`` and ``force_all_finite`` as in :meth:`fit`.
        """
        finite = ensure_all_finite if force_all_finite is None else force_all_finite
        rows, fitted = self.check_new_rows(X, finite), self._map_for(X)
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
        k, kernel = fitted.recipe.affinity.columns(data.n), fitted.recipe.plan.forces.kernel
        places = fitted.reference_places
        return inverse_rows(X, places, data.rows, kernel, n_neighbors=k, n_jobs=data.n_jobs)

    @whole_or_nothing
    def update(
        self, X: Any, y: Any = None, ensure_all_finite: Finite = True, *, force_all_finite: Finite | None = None
    ) -> UMAP:
        """Add rows to the fitted map, whose points move a little to make room.

        With ``metric="precomputed"`` the rows hold the distances to the known rows and then to each other.
        ``ensure_all_finite`` and ``force_all_finite`` as in :meth:`fit`.
        """
        finite = ensure_all_finite if force_all_finite is None else force_all_finite
        self._require_map()
        fitted = self.local_map
        if fitted.embedding is None:
            raise ValueError("update needs a map: this model was fitted with transform_mode='graph'")
        pairwise = not isinstance(fitted.data, TrainingRows)
        rows = as_rows(X) if pairwise else self.check_new_rows(X, finite)
        labels = None
        if y is not None and fitted.recipe.supervision is not None:
            labels = fitted.recipe.supervision.check(y, rows.shape[0])
        self.map_ = update(fitted, rows, labels, self._progress())
        self.n_features_in_ = int(self.map_.data.rows.shape[1])
        return self

    def to_progressive(self, **parameters: Any) -> ProgressiveUMAP:
        """Return a model that holds the same rows, edges and places, and takes more rows with ``partial_fit``.

        The two models share nothing. What a stream cannot have is refused by name: labels, weights and pins of rows,
        densMAP, output metrics, precomputed distances or neighbors.

        Parameters
        ----------
        **parameters
            Parameters that only :class:`ProgressiveUMAP` has, such as ``window``. The others are those of the fit.
        """
        from vicinal.estimators.progressive import ProgressiveUMAP
        from vicinal.pipeline.continued import reason_against

        self._require_map()
        known, made_by = parameters_of(ProgressiveUMAP), self._fit_params
        own = [name for name in known if name not in parameters_of(UMAP)]
        for name in parameters:
            if name not in own:
                raise TypeError(f"to_progressive takes the parameters {', '.join(own)}, got {name!r}")
        if (reason := reason_against(self.local_map)) is not None:
            raise ValueError(f"to_progressive: this {type(self).__name__} has {reason}, which a stream cannot have")
        # How a map starts and how labels are compared plays no role for a map that is there, and has no labels.
        shared = {name: made_by[name] for name in known if name in made_by and name not in ("init", "target_metric")}
        model = ProgressiveUMAP(**(shared | parameters)).adopt_map(self.local_map)
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        return model

    def partial_fit(self, X: Any, y: Any = None) -> UMAP:
        """``fit`` the first time, ``update`` from then on."""
        return self.update(X, y) if self.__sklearn_is_fitted__() else self.fit(X, y)

    def _check_parameters(self) -> None:
        """Raise, naming the parameter, for values that are wrong for any data."""
        self._validate_params()
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

    def _composed(self, other: Any, operation: str) -> Any:
        from vicinal.estimators.composed import compose

        return compose(self, other, operation)

    __mul__ = partialmethod(_composed, operation="intersection")
    __add__ = partialmethod(_composed, operation="union")
    __sub__ = partialmethod(_composed, operation="difference")


@with_parameters
class DensMAP(UMAP):
    """UMAP with ``densmap=True``: local radii of the map follow those of the data.

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
