"""UMAP's parameters: their names, order and defaults (umap-learn's), what they may be, and how they go together."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators._sourced import Sourced
from vicinal.initialize.start import INITIALIZER_ALIASES, INITIALIZERS, given_start
from vicinal.layout.kernel import Kernel, fit_ab
from vicinal.layout.output_space import OutputSpace, output_space
from vicinal.layout.schedule import Schedule, default_epochs
from vicinal.maps.memory import ByteSize, Ledger, Table, add_density, add_graph, add_layout, add_search, add_start
from vicinal.neighbors.metrics import ALIASES, METRICS, PRECOMPUTED, check_metric, is_low_level
from vicinal.runtime.parameters import Interval, StrOptions

if TYPE_CHECKING:
    from vicinal.maps.growing_map import Growth


class UMAPParameters(Sourced):
    """The constructor of :class:`vicinal.UMAP`, and what follows from its arguments alone."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 2, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "metric": [StrOptions({*METRICS, *ALIASES, PRECOMPUTED}), callable, tuple],
        "metric_kwds": [dict, None],
        "output_metric": [str, callable],
        "output_metric_kwds": [dict, None],
        "n_epochs": [Interval(Integral, 0, None, closed="left"), list, tuple, None],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "init": [StrOptions({*INITIALIZERS, *INITIALIZER_ALIASES}), "array-like"],
        "min_dist": [Interval(Real, 0, None, closed="left")],
        "spread": [Interval(Real, 0, None, closed="neither")],
        "low_memory": ["boolean"],
        "n_jobs": [Integral, None],
        "set_op_mix_ratio": [Interval(Real, 0, 1, closed="both")],
        "local_connectivity": [Interval(Real, 0, None, closed="left")],
        "repulsion_strength": [Interval(Real, 0, None, closed="left")],
        "negative_sample_rate": [Interval(Integral, 0, None, closed="left")],
        "transform_queue_size": [Interval(Real, 0, None, closed="left")],
        "a": [Interval(Real, 0, None, closed="neither"), None],
        "b": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
        "angular_rp_forest": ["boolean"],
        "target_n_neighbors": [Interval(Integral, 2, None, closed="left"), Interval(Integral, -1, -1, closed="both")],
        "target_metric": [str, callable],
        "target_metric_kwds": [dict, None],
        "target_weight": [Interval(Real, 0, 1, closed="both")],
        "transform_seed": [Interval(Integral, 0, None, closed="left")],
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
    }

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

    def _check_parameters(self) -> None:
        """Raises, naming the parameter, for what can be seen to be wrong before there is any data."""
        self._validate_params()
        if isinstance(self.metric, tuple) and not is_low_level(self.metric):
            raise TypeError(f"metric must be a name, a function or a scipy.LowLevelCallable, got {self.metric!r}")
        check_metric(self.metric, self.metric_kwds)
        self._output_space()
        if self._matches_density() and not self._output_space().is_euclidean:
            raise ValueError(f"densmap goes with output_metric='euclidean', got {self.output_metric!r}")
        if self.min_dist > self.spread:
            raise ValueError(f"min_dist must not exceed spread, got min_dist={self.min_dist}, spread={self.spread}")
        if (self.a is None) != (self.b is None):
            raise ValueError(f"a and b must be given together, got a={self.a}, b={self.b}")
        if isinstance(self.n_epochs, list | tuple):
            whole = Interval(Integral, 0, None, closed="left")
            if not self.n_epochs or not all(whole.allows(epoch) for epoch in self.n_epochs):
                raise ValueError(f"n_epochs must list whole numbers of at least 0, got {self.n_epochs!r}")
        if self.unique and (self.metric == PRECOMPUTED or self._given_knn() is not None):
            raise ValueError("unique=True compares rows: it does not go with precomputed distances or neighbours")
        if self.metric == PRECOMPUTED and self._given_knn() is not None:
            raise ValueError("precomputed_knn does not go with metric='precomputed': one of them says it all")

    def _add_memory(self, ledger: Ledger, table: Table) -> None:
        if self._given_knn() is None:
            add_search(
                ledger, table, self.n_neighbors, metric=self.metric, approximate=self.force_approximation_algorithm
            )
        edges = add_graph(ledger, table.n, min(self.n_neighbors, table.n))
        if self.transform_mode == "embedding":
            add_start(ledger, self.init, table, self.n_components, edges)
            add_layout(ledger, table.n, self.n_components, edges)
            if self._matches_density() or self.output_dens:
                add_density(ledger, table.n, min(self.n_neighbors, table.n), edges)

    def _check_init(self, n: int) -> NDArray[np.float32] | None:
        return given_start(self.init, n, int(self.n_components))

    def _matches_density(self) -> bool:
        """Whether the map's local radii are to follow the data's."""
        return bool(self.densmap)

    def _initializer(self) -> str:
        return str(INITIALIZER_ALIASES.get(self.init, self.init))

    def _given_knn(self) -> Any:
        """The neighbours given, or None; umap-learn's default is a tuple of three None."""
        given = self.precomputed_knn
        nothing = given is None or (isinstance(given, tuple | list) and all(one is None for one in given))
        return None if nothing else given

    def _output_space(self) -> OutputSpace:
        return output_space(self.output_metric, self.output_metric_kwds, int(self.n_components))

    def _kernel(self) -> Kernel:
        if self.a is not None and self.b is not None:
            return Kernel(float(self.a), float(self.b))
        return fit_ab(self.spread, self.min_dist)

    def _epoch_stops(self, n: int) -> list[int]:
        """The epochs whose maps are wanted, the last of which ends the layout."""
        if self.n_epochs is None:
            return [default_epochs(n)]
        return sorted({int(epoch) for epoch in np.atleast_1d(np.asarray(self.n_epochs))})

    def _growth(self, seed: int, **pace: Any) -> Growth:
        """How a map of rows that arrive is laid out; ``pace`` says for how long they move."""
        from vicinal.maps.growing_map import Growth

        kernel = self._kernel()
        return Growth(
            a=kernel.a,
            b=kernel.b,
            n_components=int(self.n_components),
            learning_rate=self.learning_rate,
            negative_sample_rate=int(self.negative_sample_rate),
            repulsion_strength=self.repulsion_strength,
            local_connectivity=self.local_connectivity,
            set_op_mix_ratio=self.set_op_mix_ratio,
            disconnection_distance=self.disconnection_distance,
            target_weight=self.target_weight,
            seed=seed,
            n_jobs=self._jobs(),
            **pace,
        )

    def _schedule(self, n_epochs: int, learning_rate: float, moving: bool = True) -> Schedule:
        return Schedule(
            n_epochs,
            learning_rate,
            int(self.negative_sample_rate),
            self.repulsion_strength,
            bool(self.update_negatives) and moving,
        )
