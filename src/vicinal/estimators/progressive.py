"""Progressive UMAP (survey section 8, Algorithm 3): a map that grows with its data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators._base import Embedding
from vicinal.estimators._umap_parameters import UMAPParameters
from vicinal.estimators.umap import UMAP
from vicinal.graph.fuzzy import bipartite_graph
from vicinal.initialize.start import INITIALIZER_ALIASES, INITIALIZERS
from vicinal.maps.growing_map import NEIGHBORS, TURN, GrowingMap
from vicinal.maps.memory import ByteSize, Ledger, Table, add_growing_map, add_online_search, check_limit
from vicinal.maps.row_facts import Given, unlabelled
from vicinal.neighbors.metrics import ALIASES, METRICS, Rows, check_metric
from vicinal.neighbors.online import OnlineNeighbors
from vicinal.neighbors.training_data import placed
from vicinal.runtime.parameters import Interval, StrOptions
from vicinal.runtime.progress import LAYOUT, Progress

# Parameters that mean what they mean to UMAP.
OF_UMAP = (
    "n_neighbors", "n_components", "metric", "metric_kwds", "learning_rate", "min_dist", "spread", "n_jobs",
    "set_op_mix_ratio", "local_connectivity", "repulsion_strength", "negative_sample_rate", "a", "b", "random_state",
    "target_weight", "transform_seed", "verbose", "tqdm_kwds", "disconnection_distance", "callback",
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """Where a map stands after some work."""

    n_rows: int
    n_placed: int
    pending: int
    coverage: float
    moved: int
    stage: str


class ProgressiveUMAP(Embedding):
    """UMAP of rows that arrive over time: every call is bounded, and there is a map at all times.

    >>> model = ProgressiveUMAP()
    >>> for batch in batches:
    ...     model.partial_fit(batch)
    >>> model.run().polish().embedding_

    ``partial_fit`` finds the neighbours of a batch and moves what is to be moved a little; ``insert`` and ``step`` do
    the same in pieces as small as you like, ``run`` all that is left, ``polish`` a last pass over all rows. The first
    rows start from the spectral layout, each later one at its nearest neighbour's place with a little noise.
    Memberships are computed, and epochs run, for new rows and for those whose neighbours changed, and for no others.
    The same calls with the same ``random_state`` give the same bits for any ``n_jobs``, unless bounded by time.

    Parameters
    ----------
    n_neighbors, n_components, metric, metric_kwds, learning_rate, min_dist, spread, n_jobs, set_op_mix_ratio,
    local_connectivity, repulsion_strength, negative_sample_rate, a, b, target_weight, transform_seed,
    disconnection_distance, random_state, verbose, tqdm_kwds
        As in :class:`vicinal.UMAP`. The metric is one of dense rows, by its name.
    init : {"spectral", "pca", "random"}, default "spectral"
        Where the first rows start.
    move : {"active", "all"}, default "active"
        Whether rows whose neighbours stayed the same move too when others arrive, as little as updated ones do. The
        cost of a batch is then that of all rows.
    new_epochs, updated_epochs, polish_epochs : int, default 18, 6 and 12
        Epochs that a new row moves for, one whose neighbours changed (half of these move, drawn anew each time), and
        all rows in ``polish``. A row that has n epochs left has (n / 60)^1.5 of ``learning_rate``, at most all of it. A
        batch that is a large share of the map moves it for longer.
    batch_size : int, default 1000
        Rows that ``fit`` takes at a time.
    callback : callable(stage, epoch, n_epochs, embedding), optional
        Called after neighbours were found and after every turn of the layout, with the epochs that the map has run and
        will have run as things stand; a truthy answer ends the present call.
    memory_limit : int or str, optional
        Bytes, or a text such as "2GB": rows with which the map would take more are refused with a MemoryError.

    Attributes
    ----------
    embedding_ : array [rows placed so far, n_components]
    n_rows_ : int, rows inserted so far
    rows_ : array [n_rows_, columns], these rows: a view, not to be written to
    age_ : array, epochs that each of these rows has moved for
    pending_ : int, rows waiting for neighbours, for a refresh of them, or for epochs
    coverage_ : float, share of the rows whose neighbours are known and up to date
    graph_ : sparse matrix of the fuzzy graph of the rows placed so far
    bytes_per_row_ : float, memory that a row takes
    init_used_ : str
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: UMAPParameters._parameter_constraints[name] for name in OF_UMAP},
        "metric": [StrOptions({*METRICS, *ALIASES})],
        "init": [StrOptions({*INITIALIZERS, *INITIALIZER_ALIASES})],
        "move": [StrOptions({"active", "all"})],
        "new_epochs": [Interval(Integral, 0, None, closed="left")],
        "updated_epochs": [Interval(Integral, 0, None, closed="left")],
        "polish_epochs": [Interval(Integral, 0, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "memory_limit": [ByteSize(), None],
    }
    _map: GrowingMap

    def __init__(
        self,
        n_neighbors: int = 15,
        n_components: int = 2,
        metric: str = "euclidean",
        metric_kwds: dict[str, Any] | None = None,
        learning_rate: float = 1.0,
        init: str = "spectral",
        min_dist: float = 0.1,
        spread: float = 1.0,
        *,
        move: str = "active",
        new_epochs: int = 18,
        updated_epochs: int = 6,
        polish_epochs: int = 12,
        batch_size: int = 1000,
        n_jobs: int | None = -1,
        set_op_mix_ratio: float = 1.0,
        local_connectivity: float = 1.0,
        repulsion_strength: float = 1.0,
        negative_sample_rate: int = 5,
        a: float | None = None,
        b: float | None = None,
        random_state: Any = None,
        target_weight: float = 0.5,
        transform_seed: int = 42,
        disconnection_distance: float | None = None,
        verbose: bool = False,
        tqdm_kwds: dict[str, Any] | None = None,
        callback: Any = None,
        memory_limit: float | str | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.metric = metric
        self.metric_kwds = metric_kwds
        self.learning_rate = learning_rate
        self.init = init
        self.min_dist = min_dist
        self.spread = spread
        self.move = move
        self.new_epochs = new_epochs
        self.updated_epochs = updated_epochs
        self.polish_epochs = polish_epochs
        self.batch_size = batch_size
        self.n_jobs = n_jobs
        self.set_op_mix_ratio = set_op_mix_ratio
        self.local_connectivity = local_connectivity
        self.repulsion_strength = repulsion_strength
        self.negative_sample_rate = negative_sample_rate
        self.a = a
        self.b = b
        self.random_state = random_state
        self.target_weight = target_weight
        self.transform_seed = transform_seed
        self.disconnection_distance = disconnection_distance
        self.verbose = verbose
        self.tqdm_kwds = tqdm_kwds
        self.callback = callback
        self.memory_limit = memory_limit

    def insert(self, X: Any, y: Any = None) -> ProgressiveUMAP:
        """Queues rows, which costs next to nothing; ``y`` holds classes, -1, NaN or None where there is none."""
        rows, labels = self._checked(X, y, first=not hasattr(self, "_map"))
        self._map.insert(rows, labels)
        return self

    def _checked(self, X: Any, y: Any, *, first: bool) -> tuple[NDArray[np.float32], NDArray[Any] | None]:
        """Rows and labels that fit the map; the first ones make an empty one."""
        model = self._umap()
        model._check_parameters()
        self._validate_params()
        rows = self._check_rows(X, reset=first)
        if not first and self.memory_limit is not None:
            check_limit(self, Table(self.n_rows_ + len(rows), rows.shape[1]))
        check_metric(self.metric, self.metric_kwds, rows.shape[1], False)
        labels = None if y is None else model._supervision(0).check(y, len(rows))
        if first:
            self._map = self._new_map(model)
        return rows, labels

    def _add_memory(self, ledger: Ledger, table: Table) -> None:
        add_online_search(ledger, table, int(self.n_neighbors), self.metric)
        add_growing_map(ledger, table.n, int(self.n_neighbors), int(self.n_components))

    def step(self, budget_ms: float | None = None, n_ops: int | None = None) -> Step:
        """Works for about ``budget_ms``, or until ``n_ops`` rows were searched or refreshed and as many moved.

        Rows move for a turn of six epochs at a time. With neither bound, all neighbours that are pending are found, and
        every row that is to move moves for a turn; after a large batch, until all are at rest.
        """
        self._check_is_fitted("_map")
        stages = ["idle"]
        progress = self._progress()

        def report(stage: str) -> bool:
            stages.append(stage)
            return self._report(progress, stage)

        moved = self._map.advance(n_ops, budget_ms, report)
        search = self._map.search
        return Step(search.n, self._map.n_placed, self.pending_, search.coverage_, moved, stages[-1])

    def partial_fit(self, X: Any, y: Any = None) -> ProgressiveUMAP:
        """Adds rows, finds their neighbours and moves what is to move for a turn."""
        rows, labels = self._checked(X, y, first=not hasattr(self, "_map"))
        progress = self._progress()
        watched = self.callback is not None or bool(self.verbose)
        self._map.add(rows, labels, (lambda stage: self._report(progress, stage)) if watched else None)
        return self

    def run(self) -> ProgressiveUMAP:
        """Works until nothing is pending, or the callback asks to stop."""
        self._check_is_fitted("_map")
        progress = self._progress()
        with progress.stage(LAYOUT, self._end()):
            while self.pending_ and not progress.stopped:
                self._map.advance(report=lambda stage: self._report(progress, stage))
        return self

    def polish(self, n_epochs: int | None = None) -> ProgressiveUMAP:
        """Moves all rows together for ``n_epochs`` (default ``polish_epochs``), as gently as their number says."""
        self._check_is_fitted("_map")
        self._map.wake(int(self.polish_epochs if n_epochs is None else n_epochs))
        return self.run()

    def fit(self, X: Any, y: Any = None) -> ProgressiveUMAP:
        """Embeds ``X``, ``batch_size`` rows at a time; what was there before is forgotten."""
        rows, labels = self._checked(X, y, first=True)
        for begin in range(0, len(rows), self.batch_size):
            batch = slice(begin, begin + self.batch_size)
            self._map.insert(rows[batch], None if labels is None else labels[batch])
            self.step()
        return self.run().polish()

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """``fit(X, y).embedding_``."""
        return self.fit(X, y).embedding_

    def transform(self, X: Any) -> Any:
        """Places of rows in the map as it is, which they do not change; rows of the map get their own."""
        self._check_is_fitted("embedding_")
        rows = self._check_rows(X, reset=False)
        grown, places, model = self._map, self._map.embedding, self._umap()
        model._a, model._b, model._given = grown.growth.a, grown.growth.b, Given()

        def settle(new: Rows, keys: NDArray[np.uint64]) -> NDArray[np.float32]:
            neighbors = grown.search.query(new, min(int(self.n_neighbors), len(places)))
            graph = bipartite_graph(
                neighbors, len(places), local_connectivity=self.local_connectivity, n_jobs=self._jobs()
            )
            return model._settled(graph, places, keys)

        return placed(grown.placed_rows(), rows, places, settle)

    def to_umap(self) -> UMAP:
        """An ordinary fitted model of the rows placed so far, which knows nothing of this one."""
        self._check_is_fitted("embedding_")
        grown, model = self._map, self._umap()
        neighbors, graph = grown.search.table(), grown.whole_graph()
        plain = model._fuzzy_graph(neighbors) if grown.graph.classes else graph
        known = grown.placed_rows()
        model._keep(
            replace(known, rows=known.rows.copy()), Given(y=self._labels()), neighbors, plain, graph, known.seed
        )
        model.embedding_, model.init_used_ = self.embedding_, grown.init_used
        model.n_epochs_, model.stage_times_ = int(grown.age.view.max(initial=0)), {}
        model.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            setattr(model, "feature_names_in_", self.feature_names_in_)  # noqa: B010
        return model

    @property
    def embedding_(self) -> NDArray[np.float32]:  # type: ignore[override]
        if not hasattr(self, "_map") or not self._map.n_placed:
            raise AttributeError("embedding_: there is no map yet")
        return self._map.embedding

    @property
    def age_(self) -> NDArray[np.int32]:
        return self._fitted_map().age.view.copy()

    @property
    def n_rows_(self) -> int:
        return int(self._fitted_map().search.n)

    @property
    def rows_(self) -> NDArray[np.float32]:
        return self._fitted_map().search.rows

    @property
    def pending_(self) -> int:
        return self._fitted_map().pending

    @property
    def coverage_(self) -> float:
        return float(self._fitted_map().search.coverage_)

    @property
    def bytes_per_row_(self) -> float:
        return self._fitted_map().bytes_per_row

    @property
    def graph_(self) -> Any:
        return self._fitted_map().whole_graph().to_scipy()

    @property
    def init_used_(self) -> str:
        return self._fitted_map().init_used

    def _state(self, include_data: bool) -> dict[str, Any]:
        state = super()._state(include_data)
        return state | {"_map": self._map.state()} if "_map" in state else state

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state | {"_map": GrowingMap.from_state(state["_map"])} if "_map" in state else state)

    def _fitted_map(self) -> GrowingMap:
        if not hasattr(self, "_map"):
            raise AttributeError(f"this {type(self).__name__} has no rows yet")
        return self._map

    def _umap(self) -> UMAP:
        """The model that shares this one's parameters."""
        return UMAP(**{name: getattr(self, name) for name in OF_UMAP})

    def _new_map(self, model: UMAP) -> GrowingMap:
        seed = self._seed(self.random_state)
        search = OnlineNeighbors(
            int(self.n_neighbors), self.metric, metric_kwds=self.metric_kwds, seed=seed, n_jobs=self._jobs()
        )
        growth = model._growth(
            seed,
            init=str(INITIALIZER_ALIASES.get(self.init, self.init)),
            new_epochs=int(self.new_epochs),
            updated_epochs=int(self.updated_epochs),
            move_all=self.move == "all",
        )
        return GrowingMap(search, growth)

    def _labels(self) -> NDArray[Any] | None:
        """The classes of the rows placed, as they were given."""
        grown = self._map
        if not grown.graph.classes:
            return None
        known = np.array(list(grown.graph.classes))
        codes = grown.graph.labels.view[: grown.n_placed]
        nothing = unlabelled(1, known)
        kinds = known.astype(object) if nothing.dtype.kind == "O" else known
        labels: NDArray[Any] = np.concatenate([kinds, nothing])[codes]
        return labels

    def _progress(self) -> Progress:
        return Progress(callback=self.callback, verbose=bool(self.verbose), tqdm_kwds=self.tqdm_kwds)

    def _end(self) -> int:
        """Epochs that the map will have run when all rows are at rest."""
        return self._map.round * TURN + int(self._map.left.view.max(initial=0))

    def _report(self, progress: Progress, stage: str) -> bool:
        if stage == NEIGHBORS:
            return progress.report(stage, self._map.search.n_searched, self._map.search.n, lambda: self._map.embedding)
        return progress.report(stage, self._map.round * TURN, self._end(), lambda: self._map.embedding)
