"""Progressive UMAP (survey section 8, Algorithm 3): a map that grows with its data."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from vicinal.estimators.base import Estimator, Result, over_blocks, random_seed, require_fitted, whole_or_nothing
from vicinal.estimators.parameters import (
    check_curve,
    growing_recipe_of,
    like,
    pace_of,
    parameter,
    parameters_of,
    with_parameters,
)
from vicinal.estimators.umap import UMAP
from vicinal.graph.supervision import Supervision
from vicinal.initialize.start import INITIALIZER_ALIASES, INITIALIZERS
from vicinal.layout.schedule import DECAY, SMALL_ROWS
from vicinal.neighbors.metrics import ALIASES, METRICS, Rows, check_metric, is_sparse
from vicinal.neighbors.online import OnlineNeighbors
from vicinal.neighbors.rows import check_rows
from vicinal.pipeline.continued import grown_from
from vicinal.pipeline.fitted import FittedMap
from vicinal.pipeline.grow import (
    MOST_LAYOUTS,
    MOVED_SHARE,
    SLICE,
    GrowingMap,
    Step,
    Stream,
    as_fitted,
    check_numbers,
    last_epoch,
    place_in,
    reporter,
)
from vicinal.pipeline.memory import add_first_map, add_growing_map, add_online_search
from vicinal.pipeline.online_graph import DEVIATIONS, FIRST_MAP_ROWS, FULL_EPOCHS, MOST_REMADE, TARGET_METRICS, Batch
from vicinal.pipeline.recipe import Recipe
from vicinal.runtime.constraints import Interval, StrOptions, check_parameters, whole
from vicinal.runtime.progress import LAYOUT
from vicinal.runtime.sizes import InputShape, Ledger

# A map that starts with few rows has lists of at most this length.
MOST_EARLY_NEIGHBORS = 4096
# Parameters that can be changed between batches; the others are those of the first.
PER_CALL = ("callback", "memory_limit", "tqdm_kwds", "verbose")


@with_parameters
class ProgressiveUMAP(Estimator):
    """UMAP of rows that arrive over time: every call is bounded, and there is a map at any time.

    ``partial_fit`` finds the neighbors of a batch and moves the rows concerned a little. ``insert`` and ``step`` do the
    same in pieces of any size, ``run`` does everything that is left, ``polish`` is a last pass over all rows. The first
    rows start from the spectral layout, each later one at the place of its nearest neighbor, plus noise. Memberships
    are computed, and epochs run, only for new rows and for those whose neighbors changed.
    The same calls with the same ``random_state`` give the same bits for any ``n_jobs``, unless they are bounded by
    time. The parameters of the map are those of the first batch; later changes take effect with the next ``fit``.
    ``partial_fit`` and ``forget`` take effect completely or not at all, also if they are interrupted. An interrupted
    ``insert``, ``step``, ``run`` or ``polish`` leaves a map that can go on.

    Rows leave by ``forget``, or because a ``window`` is full. The others keep their places, and move only as later rows
    arrive. Neither the model nor its saved file keeps any value of a row that left, except for what it contributed to
    sums over many rows, such as the axes by which the search compares rows.

    Attributes
    ----------
    embedding_ : array [rows placed so far, n_components]
    n_rows_ : int
        Number of rows: those inserted and not forgotten.
    n_seen_ : int
        Number of rows inserted so far, forgotten ones included.
    row_ids_ : array of int64 [rows]
        The lasting number of each row, which ``forget`` takes: row ``i`` was the ``row_ids_[i]``-th to be inserted,
        from 0.
    rows_ : array or sparse matrix [rows, columns]
        The rows: a view, not to be written to.
    age_ : array [rows placed so far]
        Epochs that each row has moved for.
    pending_ : int
        Number of rows waiting for neighbors, for a refresh of them, or for epochs.
    coverage_ : float
        Share of the rows whose neighbors are known and up to date.
    graph_ : sparse matrix
        The fuzzy graph of the rows whose neighbors are known.
    bytes_per_row_ : float
        Memory per row.
    init_used_ : str

    See Also
    --------
    UMAP, OnlineNeighbors

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vicinal import ProgressiveUMAP
    >>> model = ProgressiveUMAP(random_state=0).partial_fit(load_iris().data)
    >>> model.run().polish().embedding_.shape
    (150, 2)
    """

    # fmt: off
    n_neighbors: int = like(UMAP, f"""At most the number of rows of the first call, or {MOST_EARLY_NEIGHBORS:,} if that
        is more, since rows may follow.""")
    n_components: int = like(UMAP)
    metric: Any = like(UMAP, '"precomputed" is not possible here.', kind="str or callable",
        allowed=[StrOptions({*METRICS, *ALIASES}), callable, tuple])
    metric_kwds: dict[str, Any] | None = like(UMAP)
    learning_rate: float = like(UMAP, doc=f"""
        Learning rate. A row that has n epochs left moves with (n / {FULL_EPOCHS})^1.5 of it, at most with all of
        it; up to {SMALL_ROWS:,} rows the exponent is {DECAY:g}.""")
    init: str = like(UMAP, default="spectral", allowed=[StrOptions({*INITIALIZERS, *INITIALIZER_ALIASES})],
        kind='{"spectral", "pca", "random"}', doc="Initial positions of the first rows.")
    min_dist: float = like(UMAP)
    spread: float = like(UMAP)
    _: KW_ONLY
    move: str = parameter("active", [StrOptions({"active", "all"})], """
        Which rows move when others arrive: new rows and rows whose neighbors changed, or all rows. With "all" every
        batch costs as much as all rows.""")
    new_epochs: int = parameter(18, [whole(0)], f"""
        Epochs that a new row moves for. A batch that is a large share of the map moves it for longer. All rows move
        when the map has doubled. Up to {FIRST_MAP_ROWS:,} rows, the map is then made anew and aligned to the last one;
        up to {MOST_REMADE:,} rows, this also happens if most of the latest rows belong where the map has none, as in
        sorted data.""")
    updated_epochs: int = parameter(18, [whole(0)], f"""
        Epochs that a row moves for if its neighbors changed. {MOVED_SHARE:.0%} of these rows move, drawn again each
        time.""")
    polish_epochs: int = parameter(12, [whole(0)], "Epochs that all rows move for in ``polish``.")
    batch_size: int = parameter(1000, [whole(1)], "Rows that ``fit`` takes at a time.")
    window: int | None = parameter(None, [whole(1), None], """
        Number of rows that stay: when more are inserted, the oldest leave. None keeps all rows.""")
    n_jobs: int | None = like(UMAP)
    set_op_mix_ratio: float = like(UMAP)
    local_connectivity: float = like(UMAP)
    repulsion_strength: float = like(UMAP)
    negative_sample_rate: int = like(UMAP)
    a: float | None = like(UMAP)
    b: float | None = like(UMAP)
    random_state: Any = like(UMAP)
    target_metric: str = like(UMAP, allowed=[StrOptions(set(TARGET_METRICS))], doc=f"""
        How the values of ``y`` are compared: as classes ("categorical"), as levels, one number per row ("ordinal"), or
        as numbers, one or several per row (a metric). Numbers {DEVIATIONS:g} standard deviations apart, as the first
        batch has them, count as much as two classes.""",
        kind='{"categorical", "ordinal", "euclidean", "manhattan", "chebyshev"}')
    target_weight: float = like(UMAP)
    transform_seed: int = like(UMAP)
    disconnection_distance: float | None = like(UMAP)
    verbose: bool = like(UMAP)
    tqdm_kwds: dict[str, Any] | None = like(UMAP)
    callback: Any = like(UMAP, doc="""
        Called after neighbors were found and after every turn of the layout, with the epochs that the map has run and
        will have run as things stand. A true return value ends the call.""")
    memory_limit: float | str | None = like(UMAP, doc="""
        Bytes, or a text such as "2GB". Rows with which the map would take more are refused with a MemoryError.""")
    # fmt: on

    keeps_types = False  # rows are stored as float32 where they can grow
    _result = "_stream"

    @property
    def _map(self) -> GrowingMap:
        return self._stream.map

    def __sklearn_is_fitted__(self) -> bool:
        return "_stream" in vars(self) and self._map.n_placed > 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.allow_nan = isinstance(self.metric, str), False
        return tags

    @whole_or_nothing
    def insert(self, X: Any, y: Any = None) -> ProgressiveUMAP:
        """Queue rows, which costs next to nothing.

        Parameters
        ----------
        X : array or sparse matrix [rows, columns]
        y : array [rows] or [rows, numbers], optional
            Classes or numbers, as ``target_metric`` says. NaN, and for classes -1 and None, mean unknown.
        """
        batch = self._check_batch(X, y)
        self._map_or_new(batch).insert(batch)
        return self

    def step(self, budget_ms: float | None = None, n_ops: int | None = None) -> Step:
        """Work for about ``budget_ms``, or until ``n_ops`` rows were searched or refreshed and as many moved.

        Rows move for a turn of six epochs at a time. Without a bound, all pending rows are searched, and rows move
        until all are at rest.
        """
        for name, value, kind in (("budget_ms", budget_ms, Real), ("n_ops", n_ops, Integral)):
            allowed = Interval(kind, 0, None, closed="left")
            if value is not None and not allowed.allows(value):
                raise ValueError(f"{name} must be {allowed} or None, got {value!r}")
        grown, stages = self._map_with_rows(), ["idle"]
        report = reporter(grown, self._progress())

        def listen(stage: str) -> bool:
            stages.append(stage)
            return report(stage)

        known, search = grown.n_placed, grown.search
        n_moved, moved = grown.advance_and_record(n_ops, budget_ms, listen)
        new = np.arange(known, grown.n_placed)
        return Step(search.n, grown.n_placed, grown.pending, search.coverage_, n_moved, stages[-1], new, moved)

    @whole_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> ProgressiveUMAP:
        """Add rows, find their neighbors and move the rows concerned, completely or not at all.

        Parameters
        ----------
        X : array or sparse matrix [rows, columns]
        y : array [rows] or [rows, numbers], optional
            Classes or numbers, as ``target_metric`` says. NaN, and for classes -1 and None, mean unknown.
        """
        batch = self._check_batch(X, y)
        grown = self._map_or_new(batch)
        watched = self.callback is not None or bool(self.verbose)
        self._stream.add(batch, reporter(grown, self._progress()) if watched else None)
        return self

    def forget(self, rows: Any) -> ProgressiveUMAP:
        """Remove rows; the others keep their places.

        The neighbors of the others are filled again by the next ``partial_fit``, ``step`` or ``run``.

        Parameters
        ----------
        rows : array of int
            Lasting numbers of the rows, as in ``row_ids_``. Some rows must stay.
        """
        search = self._map_with_rows().search
        if len(search.rows_of(rows)) == search.n:
            raise ValueError(f"rows must not name all {search.n} rows; to begin anew, use fit")
        self._stream.forget(rows)
        return self

    def run(self) -> ProgressiveUMAP:
        """Work until nothing is pending, or the callback asks to stop."""
        self._run(self._map_with_rows())
        return self

    def polish(self, n_epochs: int | None = None) -> ProgressiveUMAP:
        """Move all rows together for ``n_epochs`` (default ``polish_epochs``)."""
        grown = self._map_with_rows()
        grown.wake(int(self.polish_epochs if n_epochs is None else n_epochs))
        self._run(grown)
        return self

    @whole_or_nothing
    def fit(self, X: Any, y: Any = None) -> ProgressiveUMAP:
        """Map ``X``, ``batch_size`` rows at a time, instead of everything inserted before.

        With a ``window`` the map holds the last rows of ``X``.

        Parameters
        ----------
        X : array or sparse matrix [rows, columns]
        y : array [rows] or [rows, numbers], optional
            Classes or numbers, as ``target_metric`` says. NaN, and for classes -1 and None, mean unknown.
        """
        given = self._check_batch(X, y, first=True)
        grown = self._new_map(given)
        report = reporter(grown, self._progress())
        for begin in range(0, given.rows.shape[0], self.batch_size):
            part = slice(begin, begin + self.batch_size)
            grown.insert(Batch(given.rows[part], None if given.y is None else given.y[part]))
            grown.advance(listen=report)
        self._run(grown)
        grown.wake(int(self.polish_epochs))
        self._run(grown)
        self._adopt(grown)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit the model and return ``embedding_``."""
        return self.fit(X, y).embedding_

    @over_blocks
    def transform(self, X: Any) -> Any:
        """Return the places of rows in the map as it is, which they do not change; rows of the map have their own."""
        check_rows(rows := self._convert_like_map(X), self._jobs())
        return place_in(self._map, rows)

    def adopt_map(self, fitted: FittedMap) -> ProgressiveUMAP:
        """Go on from a fitted map (:meth:`UMAP.to_progressive`), which stays as it is."""
        self._validate_params()
        k = self._list_length(fitted.data.n)
        recipe = self._growing_recipe(self._settings(), k, fitted.seed)
        self._adopt(grown_from(fitted, recipe, pace_of(self), k, self._jobs()))
        self.n_features_in_ = fitted.data.shape[1]
        return self

    def to_umap(self) -> UMAP:
        """Return an ordinary fitted model of the rows placed so far, which shares nothing with this one."""
        require_fitted(self)
        made_by = self._fit_params
        model = UMAP(**{name: value for name, value in made_by.items() if name in parameters_of(UMAP)})
        model.adopt_map(as_fitted(self._map))
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        return model

    def add_memory(self, ledger: Ledger, shape: InputShape) -> None:
        """Add what a map of ``shape.n`` rows takes, part by part."""
        k = self._list_length(shape.n)
        add_online_search(ledger, shape, k, self.metric)
        add_first_map(ledger, shape, self._growing_recipe(self._settings(), k, 0))
        add_growing_map(
            ledger, shape.n, k, int(self.n_components), (SLICE, MOST_LAYOUTS), snapshot="_stream" in vars(self)
        )

    embedding_ = Result(lambda grown: grown.embedding if grown.n_placed else None, "there is no map yet")
    age_ = Result(lambda grown: grown.age.view.copy())
    n_rows_ = Result(lambda grown: int(grown.search.n))
    n_seen_ = Result(lambda grown: int(grown.search.n_ever))
    row_ids_ = Result(lambda grown: grown.search.ids)
    rows_ = Result(lambda grown: grown.search.rows)
    pending_ = Result(lambda grown: grown.pending)
    coverage_ = Result(lambda grown: float(grown.search.coverage_))
    bytes_per_row_ = Result(lambda grown: grown.bytes_per_row)
    graph_ = Result(lambda grown: grown.whole_graph().to_scipy())
    init_used_ = Result(lambda grown: grown.init_used)
    _n_features_out = Result(lambda grown: grown.recipe.n_components)

    def learned(self, name: str) -> GrowingMap:
        """Return the map, or raise AttributeError for the attribute ``name`` that there is not yet."""
        if "_stream" not in vars(self):
            raise AttributeError(f"{name}: this {type(self).__name__} has no rows yet")
        return self._map

    def _map_with_rows(self) -> GrowingMap:
        if "_stream" not in vars(self):
            raise NotFittedError(f"This {type(self).__name__} instance has no rows yet. Call 'insert' or 'fit' first.")
        return self._map

    def _check_batch(self, X: Any, y: Any, *, first: bool | None = None) -> Batch:
        """Check parameters, rows and labels; ``first`` says that the rows start a map, by default if there is none."""
        first = "_stream" not in vars(self) if first is None else first
        if first:
            self._validate_params()
            check_curve(self)
            check_metric(self.metric, self.metric_kwds)
            rows = self._convert_rows(X, reset=True, sparse=True)
            check_metric(self.metric, self.metric_kwds, rows.shape[1], is_sparse(rows))
        else:
            params = {name: getattr(self, name) for name in PER_CALL}
            check_parameters(type(self).__name__, params, {name: self._parameter_constraints[name] for name in params})
            rows = self._convert_like_map(X)
            stored = rows.nnz + self.rows_.nnz if is_sparse(rows) else None
            self._within_limit(InputShape(self.n_rows_ + rows.shape[0], rows.shape[1], stored))
        labels = Supervision(self.target_metric) if first else self._map.graph.labels
        largest = check_rows(rows, self._jobs())
        return Batch(rows, None if y is None else labels.check(y, rows.shape[0]), largest)

    def _convert_like_map(self, X: Any) -> Rows:
        """Convert rows, which must be of the kind of those of the map."""
        if is_sparse(rows := self._convert_rows(X, reset=False, sparse=True)) != is_sparse(self.rows_):
            raise TypeError(f"X must be {'dense' if is_sparse(rows) else 'sparse'} like the first rows of this map")
        return rows

    def _map_or_new(self, first: Batch) -> GrowingMap:
        if "_stream" not in vars(self):
            self._adopt(self._new_map(first))
        return self._map

    def _list_length(self, n: int) -> int:
        """Return the length of the neighbor lists of a map that starts with ``n`` rows."""
        return min(int(self.n_neighbors), max(n, MOST_EARLY_NEIGHBORS))

    def _new_map(self, first: Batch) -> GrowingMap:
        """Return an empty map with the present parameters, for rows of which these are the first."""
        seed, n_jobs, k = random_seed(self.random_state), self._jobs(), self._list_length(first.rows.shape[0])
        search = OnlineNeighbors(k, self.metric, metric_kwds=self.metric_kwds, seed=seed, n_jobs=n_jobs)
        return GrowingMap(search, self._growing_recipe(self._settings(), k, seed), pace_of(self), n_jobs)

    def _growing_recipe(self, settings: dict[str, Any], k: int, seed: int) -> Recipe:
        """Return the recipe of a map with these parameters and neighbor lists of length ``k``."""
        return growing_recipe_of(self._with_settings(settings | {"n_neighbors": k}), seed, self._jobs())

    def _adopt(self, grown: GrowingMap) -> None:
        self._fit_params = self._settings()
        self._stream = Stream(grown)

    def _run(self, grown: GrowingMap) -> None:
        progress = self._progress()
        report = reporter(grown, progress)
        with progress.stage(LAYOUT, last_epoch(grown)):
            while grown.pending and not progress.stopped:
                grown.advance(listen=report)

    def _state(self, include_data: bool) -> dict[str, Any]:
        state = super()._state(include_data)
        if state.pop("_stream", None) is None:
            return state
        grown = self._map.state()
        if not isinstance(grown["search"]["metric"], str):
            grown["search"]["metric"] = None  # a function is one of the parameters, and given to `load` again
        return state | {"growing_map": grown}

    def _restore(self, state: dict[str, Any]) -> None:
        grown = state.pop("growing_map", None)
        super()._restore(state)
        if grown is None:
            return
        made_by, search = self._with_settings(self._fit_params), grown["search"]
        if search["metric"] is None:
            search["metric"] = made_by.metric
        check_numbers(grown)
        recipe = self._growing_recipe(self._fit_params, int(search["k"]), int(search["seed"]))
        self._stream = Stream(GrowingMap.from_state(grown, recipe, pace_of(made_by), self._jobs()))
