"""AlignedUMAP with umap-learn's constructor: a map for each slice of related data, laid out side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators._contract import Estimator, random_seed
from vicinal.estimators.umap import UMAP
from vicinal.graph.graph import Graph
from vicinal.initialize.procrustes import aligned_to
from vicinal.layout.alignment import Alignment, check_relation, check_relations, link_slices, steps_an_epoch
from vicinal.layout.kernel import Kernel
from vicinal.layout.sampled import Layout
from vicinal.layout.schedule import Schedule
from vicinal.maps.memory import ByteSize, Ledger, Table, check_limit
from vicinal.runtime.parameters import Interval
from vicinal.runtime.progress import LAYOUT, Progress

DEFAULT_EPOCHS = 200

# Parameters of the slices' maps; a list, tuple or vector gives each slice its own value.
OF_SLICES = (
    "n_neighbors", "metric", "metric_kwds", "learning_rate", "init", "min_dist", "spread", "set_op_mix_ratio",
    "local_connectivity", "repulsion_strength", "negative_sample_rate", "transform_queue_size", "angular_rp_forest",
    "target_n_neighbors", "target_metric", "target_metric_kwds", "target_weight",
)  # fmt: skip
OF_ALL = (
    "n_components", "low_memory", "a", "b", "transform_seed", "force_approximation_algorithm", "n_jobs"
)  # fmt: skip


class AlignedUMAP(Estimator):
    """Maps of several sets of data in which related rows lie in like places.

    ``fit`` takes a list of data sets (slices) and ``relations``: for each slice but the last a dict
    {row: row of the next slice}. Rows without a partner are allowed, an empty dict too.

    Parameters
    ----------
    alignment_regularisation : float, default 0.01
        How strongly related rows are drawn to each other.
    alignment_window_size : int, default 3
        Over how many slices relations reach.
    n_epochs : int, default 200

    The other parameters are those of :class:`vicinal.UMAP` in umap-learn's order; most of them may be a list with a
    value for each slice. ``n_jobs`` is an addition; ``unique`` has no effect, since equal rows share a place anyway.
    The same ``random_state`` gives the same bits for any ``n_jobs``.

    Attributes
    ----------
    embeddings_ : list of arrays [rows, n_components]
    mappers_ : list of the slices' :class:`vicinal.UMAP` models
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_epochs": [Interval(Integral, 0, None, closed="left"), None],
        "alignment_regularisation": [Interval(Real, 0, None, closed="left")],
        "alignment_window_size": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "n_jobs": [Integral, None],
        "memory_limit": [ByteSize(), None],
    }

    def __init__(
        self,
        n_neighbors: Any = 15,
        n_components: int = 2,
        metric: Any = "euclidean",
        metric_kwds: Any = None,
        n_epochs: int | None = None,
        learning_rate: Any = 1.0,
        init: Any = "spectral",
        alignment_regularisation: float = 1.0e-2,
        alignment_window_size: int = 3,
        min_dist: Any = 0.1,
        spread: Any = 1.0,
        low_memory: bool = False,
        set_op_mix_ratio: Any = 1.0,
        local_connectivity: Any = 1.0,
        repulsion_strength: Any = 1.0,
        negative_sample_rate: Any = 5,
        transform_queue_size: Any = 4.0,
        a: float | None = None,
        b: float | None = None,
        random_state: Any = None,
        angular_rp_forest: Any = False,
        target_n_neighbors: Any = -1,
        target_metric: Any = "categorical",
        target_metric_kwds: Any = None,
        target_weight: Any = 0.5,
        transform_seed: int = 42,
        force_approximation_algorithm: bool = False,
        verbose: bool = False,
        unique: bool = False,
        *,
        n_jobs: int | None = -1,
        memory_limit: float | str | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.metric = metric
        self.metric_kwds = metric_kwds
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.init = init
        self.alignment_regularisation = alignment_regularisation
        self.alignment_window_size = alignment_window_size
        self.min_dist = min_dist
        self.spread = spread
        self.low_memory = low_memory
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
        self.force_approximation_algorithm = force_approximation_algorithm
        self.verbose = verbose
        self.unique = unique
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit

    def fit(self, X: Any, y: Any = None, *, relations: Any = None, window_size: int | None = None) -> AlignedUMAP:
        """Embeds every slice of ``X``; ``y`` may hold labels for each of them, or None."""
        self._validate_params()
        slices = _as_list("X", X)
        labels = [None] * len(slices) if y is None else _as_list("y", y, len(slices))
        partners = check_relations(relations, [_n_rows(rows, i) for i, rows in enumerate(slices)])
        window = self._window(window_size)
        seed = random_seed(self.random_state)
        mappers = [self._mapper(i, len(slices), seed) for i in range(len(slices))]
        self._check_memory(mappers, slices)

        progress = Progress(verbose=bool(self.verbose))
        with progress.stage("slices", len(slices)):
            graphs = []
            for i, mapper in enumerate(mappers):
                graphs.append(Graph.from_scipy(mapper.fit(slices[i], labels[i]).graph_))
                progress.report("slices", i + 1, len(slices))
        starts = [mappers[0].embedding_]
        for mapper, partner in zip(mappers[1:], partners, strict=True):
            related = np.flatnonzero(partner >= 0)
            turned = aligned_to(mapper.embedding_, partner[related], starts[-1][related], scaled=False)
            starts.append(turned.astype(np.float32))
        links = link_slices(partners, graphs, window)
        steps = [steps_an_epoch(graph, m.negative_sample_rate) for graph, m in zip(graphs, mappers, strict=True)]
        alignment = Alignment(links, np.concatenate(steps), self.alignment_regularisation)
        layouts = [self._layout(*one, seed) for one in zip(graphs, starts, mappers, strict=True)]

        def pull(learning_rate: float) -> None:
            places = np.concatenate([layout.embedding for layout in layouts])
            moved = alignment.pulled(places, places, learning_rate)
            for layout, part in zip(layouts, np.split(moved, np.cumsum([g.n for g in graphs])[:-1]), strict=True):
                layout.embedding = part

        self._run(layouts, pull, progress)
        self.mappers_, self._graphs, self._partners, self._random_seed = mappers, graphs, partners, seed
        self.embeddings_ = [self._settle(*one) for one in zip(mappers, slices, layouts, strict=True)]
        self.n_models_ = len(mappers)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, *, relations: Any = None, window_size: int | None = None
    ) -> list[NDArray[np.float32]]:
        """``fit(X, y, relations=relations).embeddings_``."""
        return self.fit(X, y, relations=relations, window_size=window_size).embeddings_

    def update(
        self, X: Any, y: Any = None, *, relations: Any = None, window_size: int | None = None, **changes: Any
    ) -> AlignedUMAP:
        """Adds a slice. ``relations`` is a dict {row of the last slice: row of the new one}.

        The maps so far stay as they are. ``changes`` are parameters of the new slice's map, which otherwise has
        those of the last one.
        """
        self._check_is_fitted("embeddings_")
        self._validate_params()
        unknown = sorted(set(changes) - set(OF_SLICES))
        if unknown:
            raise TypeError(f"update takes parameters of a slice, {list(OF_SLICES)}, not {unknown}")
        if relations is None:
            raise ValueError("relations must be given: a dict {row of the last slice: row of the new one}")
        last = self._graphs[-1].n
        partner = check_relation(relations, "relations", last, _n_rows(X, self.n_models_))
        window = self._window(window_size)
        mapper = UMAP(**self.mappers_[-1].get_params()).set_params(**{**changes, "n_epochs": 0})
        progress = Progress(verbose=bool(self.verbose))
        with progress.stage("slices"):
            graph = Graph.from_scipy(mapper.fit(X, y).graph_)
        near = slice(max(0, self.n_models_ - window), None)  # the slices that relations can reach
        graphs, partners = [*self._graphs[near], graph], [*self._partners[near], partner]
        others = np.concatenate(self.embeddings_[near])
        links = link_slices(partners, graphs, window)[-graph.n :]
        steps = steps_an_epoch(graph, mapper.negative_sample_rate)
        alignment = Alignment(links, steps, self.alignment_regularisation, mutual=False)
        start = _start_from(mapper.embedding_, graph, partner, self.embeddings_[-1])
        layout = self._layout(graph, start, mapper, self._random_seed)

        def pull(learning_rate: float) -> None:
            own = layout.embedding
            layout.embedding = alignment.pulled(own, np.concatenate([others, own]), learning_rate)

        self._run([layout], pull, progress)
        self.mappers_ = [*self.mappers_, mapper]
        self._graphs, self._partners = [*self._graphs, graph], [*self._partners, partner]
        self.embeddings_ = [*self.embeddings_, self._settle(mapper, X, layout)]
        self.n_models_ += 1
        return self

    def transform(self, X: Any, at: int | None = None) -> Any:
        """Places of new rows: a list with rows for every slice, or with ``at`` rows for that slice alone."""
        self._check_is_fitted("embeddings_")
        if at is not None:
            if not isinstance(at, Integral) or not -self.n_models_ <= at < self.n_models_:
                raise ValueError(f"at must be the number of one of the {self.n_models_} slices, got {at!r}")
            return self.mappers_[int(at)].transform(X)
        rows = _as_list("X", X, self.n_models_)
        return [mapper.transform(one) for mapper, one in zip(self.mappers_, rows, strict=True)]

    def _window(self, window_size: int | None) -> int:
        window = self.alignment_window_size if window_size is None else window_size
        if not isinstance(window, Integral) or window < 1:
            raise ValueError(f"window_size must be a whole number of at least 1, got {window!r}")
        return int(window)

    def _mapper(self, i: int, n: int, seed: int) -> UMAP:
        """The model of slice ``i`` of ``n``; its own layout is skipped, only graph and start are wanted of its fit."""
        own = {name: _of_slice(name, getattr(self, name), i, n) for name in OF_SLICES}
        return UMAP(**own, **{name: getattr(self, name) for name in OF_ALL}, n_epochs=0, random_state=seed)

    def _check_memory(self, mappers: list[UMAP], slices: list[Any]) -> None:
        """All slices are held at once."""
        if self.memory_limit is not None:
            tables = [Table.of(rows) or Table(*np.shape(rows)) for rows in slices]
            check_limit(self, *tables, models=mappers)

    def _add_memory(self, ledger: Ledger, table: Table) -> None:
        """One slice."""
        self._mapper(0, 1, 0)._add_memory(ledger, table)

    def _layout(self, graph: Graph, start: NDArray[np.float32], mapper: UMAP, seed: int) -> Layout:
        schedule = Schedule(
            self._epochs(), mapper.learning_rate, int(mapper.negative_sample_rate), mapper.repulsion_strength
        )
        jobs = -1 if self.n_jobs is None else int(self.n_jobs)
        return Layout(graph, start, Kernel(mapper._a, mapper._b), schedule, seed=seed, n_jobs=jobs)

    def _epochs(self) -> int:
        return DEFAULT_EPOCHS if self.n_epochs is None else int(self.n_epochs)

    def _run(self, layouts: Sequence[Layout], pull: Callable[[float], None], progress: Progress) -> None:
        n_epochs = self._epochs()
        rates = layouts[0].schedule.learning_rates(np.arange(n_epochs))
        with progress.stage(LAYOUT, n_epochs):
            for epoch in range(n_epochs):
                for layout in layouts:
                    layout.step(1)
                pull(float(rates[epoch]))
                progress.report(LAYOUT, epoch + 1, n_epochs)

    def _settle(self, mapper: UMAP, rows: Any, layout: Layout) -> NDArray[np.float32]:
        """Gives a slice's model its places, so that it places new rows in this map; equal rows share one."""
        mapper.set_params(n_epochs=self.n_epochs)
        mapper.embedding_ = layout.embedding
        mapper.embedding_ = np.asarray(mapper.transform(rows))
        return mapper.embedding_


def _start_from(
    own: NDArray[np.float32], graph: Graph, partner: NDArray[np.int64], previous: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Related rows where their partners are, others at the mean of their related neighbours, else where they were."""
    related = np.flatnonzero(partner >= 0)
    start = aligned_to(own, partner[related], previous[related], scaled=False).astype(np.float32)
    known = np.zeros(graph.n, dtype=bool)
    known[partner[related]] = True
    start[partner[related]] = previous[related]
    to_known = graph.to_scipy().astype(np.float64).multiply(known).tocsr()
    total = np.asarray(to_known.sum(axis=1)).reshape(-1)
    beside = ~known & (total > 0)
    start[beside] = (to_known @ start.astype(np.float64))[beside] / total[beside, None]
    return start


def _as_list(name: str, values: Any, n: int | None = None) -> list[Any]:
    if not isinstance(values, list | tuple | np.ndarray) or len(values) == 0:
        raise TypeError(f"{name} must be a list with an entry for each slice, got {type(values).__name__}")
    if n is not None and len(values) != n:
        raise ValueError(f"{name} must have an entry for each of {n} slices, got {len(values)}")
    return list(values)


def _n_rows(rows: Any, i: int) -> int:
    shape = np.shape(rows) if not hasattr(rows, "shape") else rows.shape
    if len(shape) != 2:
        raise ValueError(f"X[{i}] must be 2-D, got {len(shape)} dimensions")
    return int(shape[0])


def _of_slice(name: str, value: Any, i: int, n: int) -> Any:
    """The i-th entry of a list, or the one value for all slices."""
    if not isinstance(value, list | tuple) and not (isinstance(value, np.ndarray) and value.ndim == 1):
        return value
    if len(value) != n:
        raise ValueError(f"{name} must have an entry for each of {n} slices, got {len(value)}")
    return value[i].item() if isinstance(value, np.ndarray) else value[i]
