"""AlignedUMAP with umap-learn's constructor: one map per slice of related data, laid out side by side."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators.base import Estimator, Result, random_seed, require_fitted, whole_or_nothing
from vicinal.estimators.parameters import Parameter, like, parameter, parameters_of, with_parameters
from vicinal.estimators.umap import UMAP
from vicinal.layout.alignment import check_relation, check_relations
from vicinal.pipeline.align import DEFAULT_EPOCHS, AlignedMaps, AlignmentPlan, extend_aligned, fit_aligned
from vicinal.runtime.constraints import NOT_NEGATIVE, whole
from vicinal.runtime.progress import Progress
from vicinal.runtime.sizes import InputShape, Ledger, check_limit

# Parameters that the maps of all slices share; the other parameters of UMAP may differ from slice to slice.
OF_ALL = (
    "n_components", "n_epochs", "low_memory", "a", "b", "transform_seed", "force_approximation_algorithm", "n_jobs"
)  # fmt: skip
# Anything, since the UMAP of each slice checks its own value.
PER_SLICE = [object]


def per_slice(name: str) -> Parameter:
    """Return UMAP's parameter of this name, of which a list, tuple or vector gives each slice its own value."""
    shared = parameters_of(UMAP)[name]
    return replace(shared, allowed=PER_SLICE, kind=f"{shared.kind}, or a list with one per slice")


@with_parameters
class AlignedUMAP(Estimator):
    """Maps of several sets of data in which related rows have similar places.

    ``fit`` takes a list of data sets (slices) and ``relations``: for each slice but the last a dict
    {row: row of the next slice}. Rows without a partner are allowed, and so is an empty dict.

    ``n_jobs`` and ``memory_limit`` are additions to umap-learn's parameters. The same ``random_state`` gives the same
    bits for any ``n_jobs``. scikit-learn's ``check_estimator`` does not apply, because ``fit`` takes a list of data
    sets.

    Attributes
    ----------
    embeddings_ : list of arrays [rows, n_components]
    mappers_ : list of UMAP
        One fitted model per slice.
    n_models_ : int

    See Also
    --------
    UMAP : one map.
    ProgressiveUMAP : rows that arrive over time.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vicinal import AlignedUMAP
    >>> X = load_iris().data
    >>> slices = [X[:100], X[20:120]]
    >>> same = {row: row - 20 for row in range(20, 100)}
    >>> model = AlignedUMAP(random_state=42).fit(slices, relations=[same])
    >>> [places.shape for places in model.embeddings_]
    [(100, 2), (100, 2)]
    """

    # fmt: off
    n_neighbors: Any = per_slice
    n_components: int = like(UMAP)
    metric: Any = per_slice
    metric_kwds: Any = per_slice
    n_epochs: int | None = parameter(None, [whole(0), None], f"Number of epochs, by default {DEFAULT_EPOCHS}.")
    learning_rate: Any = per_slice
    init: Any = like(UMAP, default="spectral", allowed=PER_SLICE, kind="str or array, or a list", doc="""
        Initial positions of the rows of each slice, see :class:`UMAP`, or a list with one per slice.""")
    alignment_regularisation: float = parameter(0.01, [NOT_NEGATIVE], "How strongly related rows attract each other.")
    alignment_window_size: int = parameter(3, [whole(1)], "Number of slices over which relations reach.")
    min_dist: Any = per_slice
    spread: Any = per_slice
    low_memory: bool = like(UMAP, default=False)
    set_op_mix_ratio: Any = per_slice
    local_connectivity: Any = per_slice
    repulsion_strength: Any = per_slice
    negative_sample_rate: Any = per_slice
    transform_queue_size: Any = per_slice
    a: float | None = like(UMAP)
    b: float | None = like(UMAP)
    random_state: Any = like(UMAP)
    angular_rp_forest: Any = per_slice
    target_n_neighbors: Any = per_slice
    target_metric: Any = per_slice
    target_metric_kwds: Any = per_slice
    target_weight: Any = per_slice
    transform_seed: int = like(UMAP)
    force_approximation_algorithm: bool = like(UMAP)
    verbose: bool = like(UMAP)
    unique: bool = like(UMAP, doc="Accepted for umap-learn, without effect: equal rows share a position in any case.")
    _: KW_ONLY
    n_jobs: int | None = like(UMAP)
    memory_limit: float | str | None = like(UMAP)
    # fmt: on

    _result = "mappers_"

    @whole_or_nothing
    def fit(self, X: Any, y: Any = None, *, relations: Any = None, window_size: int | None = None) -> AlignedUMAP:
        """Map every slice of ``X``; ``y`` may hold labels for each of them, or None."""
        self._validate_params()
        slices = _as_list("X", X)
        labels = [None] * len(slices) if y is None else _as_list("y", y, len(slices))
        partners = check_relations(relations, [_n_rows(rows, i) for i, rows in enumerate(slices)])
        plan, seed = self._plan(window_size), random_seed(self.random_state)
        mappers = [self._mapper(i, len(slices), seed) for i in range(len(slices))]
        self._check_memory(mappers, slices)
        inputs = [mapper.executor(*one) for mapper, *one in zip(mappers, slices, labels, strict=True)]
        aligned = fit_aligned(inputs, partners, plan, seed, Progress(verbose=bool(self.verbose)))
        self._seed, self._partners = seed, list(partners)
        self.mappers_ = [mapper.adopt_map(one) for mapper, one in zip(mappers, aligned.maps, strict=True)]
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> list[NDArray[np.float32]]:
        """Fit the model and return ``embeddings_``."""
        return self.fit(X, y, **fit_params).embeddings_

    @whole_or_nothing
    def update(
        self, X: Any, y: Any = None, *, relations: Any = None, window_size: int | None = None, **changes: Any
    ) -> AlignedUMAP:
        """Add a slice. ``relations`` is a dict {row of the last slice: row of the new one}.

        The maps so far stay as they are. ``changes`` are parameters of the new slice's map, which otherwise has those
        of the last one.
        """
        require_fitted(self)
        self._validate_params()
        unknown = sorted(set(changes) - set(OF_SLICES))
        if unknown:
            raise TypeError(f"update takes parameters of a slice, {list(OF_SLICES)}, not {unknown}")
        if relations is None:
            raise ValueError("relations must be given: a dict {row of the last slice: row of the new one}")
        last = self.mappers_[-1]
        partner = check_relation(relations, "relations", len(last.embedding_), _n_rows(X, self.n_models_))
        plan = self._plan(window_size)
        mapper = UMAP(**last.get_params()).set_params(**changes)
        inputs = mapper.executor(X, y)
        aligned = extend_aligned(self._aligned(), inputs, partner, plan, Progress(verbose=bool(self.verbose)))
        self._partners = list(aligned.partners)
        self.mappers_ = [*self.mappers_, mapper.adopt_map(aligned.maps[-1])]
        return self

    def transform(self, X: Any, at: int | None = None) -> Any:
        """Return the places of new rows: a list with rows for every slice, or with ``at`` rows for that slice only."""
        require_fitted(self)
        if at is not None:
            if not isinstance(at, Integral) or not -self.n_models_ <= at < self.n_models_:
                raise ValueError(f"at must be the number of one of the {self.n_models_} slices, got {at!r}")
            return self.mappers_[int(at)].transform(X)
        rows = _as_list("X", X, self.n_models_)
        return [mapper.transform(one) for mapper, one in zip(self.mappers_, rows, strict=True)]

    @property
    def embeddings_(self) -> list[NDArray[np.float32]]:
        return [mapper.embedding_ for mapper in self.learned("embeddings_")]

    n_models_ = Result(len)
    _n_features_out = Result(lambda mappers: int(mappers[0].embedding_.shape[1]))

    def add_memory(self, ledger: Ledger, shape: InputShape) -> None:
        """Add what one slice takes."""
        self._mapper(0, 1, 0).add_memory(ledger, shape)

    def _aligned(self) -> AlignedMaps:
        return AlignedMaps(tuple(mapper.map_ for mapper in self.mappers_), tuple(self._partners), self._seed)

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        if "mappers_" in vars(self):
            if not all(type(mapper) is UMAP for mapper in self.mappers_):
                raise TypeError("the slices of an aligned model are UMAP models")
            self._aligned().check()

    def _plan(self, window_size: int | None) -> AlignmentPlan:
        window = self.alignment_window_size if window_size is None else window_size
        if not isinstance(window, Integral) or window < 1:
            raise ValueError(f"window_size must be a whole number of at least 1, got {window!r}")
        n_epochs = None if self.n_epochs is None else int(self.n_epochs)
        return AlignmentPlan(self.alignment_regularisation, int(window), n_epochs)

    def _mapper(self, i: int, n: int, seed: int) -> UMAP:
        """Return the model of slice ``i`` of ``n``."""
        own = {name: _of_slice(name, getattr(self, name), i, n) for name in OF_SLICES}
        return UMAP(**own, **{name: getattr(self, name) for name in OF_ALL}, random_state=seed)

    def _check_memory(self, mappers: list[UMAP], slices: list[Any]) -> None:
        """Raise MemoryError if all slices together would take more than ``memory_limit``."""
        if self.memory_limit is None:
            return
        ledger, rows = Ledger(), 0
        for mapper, one in zip(mappers, slices, strict=True):
            shape = InputShape.of(one) or InputShape(*np.shape(one))
            mapper.add_input_and_fit(ledger, shape)
            rows += shape.n
        check_limit(ledger, self.memory_limit, f"AlignedUMAP to {rows} rows in {len(slices)} slices")


# Parameters of the slices' maps.
OF_SLICES = tuple(name for name, one in parameters_of(AlignedUMAP).items() if one.allowed is PER_SLICE)


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
    """Return the i-th entry of a list, or the one value that all slices share."""
    if not isinstance(value, list | tuple) and not (isinstance(value, np.ndarray) and value.ndim == 1):
        return value
    if len(value) != n:
        raise ValueError(f"{name} must have an entry for each of {n} slices, got {len(value)}")
    return value[i].item() if isinstance(value, np.ndarray) else value[i]
