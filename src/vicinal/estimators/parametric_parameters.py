"""Parameters of ParametricUMAP: the constructor, the allowed values, and the parts of a fit that follow from them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import Place
from vicinal.estimators.base import Estimator
from vicinal.estimators.parameters import (
    affinity_of,
    check_curve,
    check_precomputed,
    given_knn,
    given_neighbors,
    kernel_of,
)
from vicinal.graph.supervision import Supervision
from vicinal.initialize.start import INITIALIZERS
from vicinal.layout.forces import Forces
from vicinal.neighbors.metrics import ALIASES, METRICS, PRECOMPUTED, Rows, check_metric, is_low_level, is_sparse
from vicinal.neighbors.rows import HasRows, PlacedRows, as_rows, scan_rows, stack_rows, usable_place
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingData, TrainingDistances
from vicinal.pipeline.memory import add_graph, add_search, add_start
from vicinal.pipeline.recipe import Recipe, SampledPlan
from vicinal.runtime.memory import ByteSize, InputShape, Ledger
from vicinal.runtime.parameters import LEARNING_RATE, NEGATIVES, SEED, Interval, StrOptions

if TYPE_CHECKING:
    import torch

    from vicinal.parametric.networks import Model
    from vicinal.parametric.training import Data, Objective, Plan


LandmarkPairs = tuple[Rows, NDArray[np.float32]]  # rows and their positions


def chosen_rows(n: int, sample_pct: float, sample_mode: str, idx: Any, seed: int) -> NDArray[Any]:
    """Return which of ``n`` rows become landmarks: some at random, or those that ``idx`` lists or marks."""
    if sample_mode == "predetermined" and idx is not None:
        return np.asarray(idx)
    if sample_mode == "uniform" and 0.0 < sample_pct <= 1.0:
        return np.random.default_rng(seed).choice(n, max(1, int(n * sample_pct)), replace=False)
    raise ValueError(
        "give sample_mode='uniform' with sample_pct in (0, 1], or 'predetermined' with idx; "
        f"got sample_mode={sample_mode!r}, sample_pct={sample_pct}, idx={idx}"
    )


def all_landmarks(
    known: LandmarkPairs | None, rows: Rows, landmark_positions: Any, n_components: int
) -> LandmarkPairs | None:
    """Return the landmarks of earlier fits and the rows of a fit that are given positions; None if there are none."""
    if known is not None and known[1].shape[1] != n_components:
        raise ValueError(
            f"n_components={n_components} differs from the {known[1].shape[1]} components of the landmarks; "
            "call remove_landmarks first"
        )
    if landmark_positions is None:
        return known
    positions = np.require(landmark_positions, np.float32, ["C", "A"])
    if positions.shape != (rows.shape[0], n_components):
        raise ValueError(f"landmark_positions must have shape {(rows.shape[0], n_components)}, got {positions.shape}")
    placed = np.isfinite(positions).all(axis=1)
    if known is None:
        return rows[placed], positions[placed]
    return _joined(known[0], rows[placed]), np.concatenate([known[1], positions[placed]])


def _joined(above: Rows, below: Rows) -> Rows:
    """Stack rows; the result is sparse if either part is."""
    if is_sparse(above) != is_sparse(below):
        from scipy.sparse import csr_matrix

        above, below = csr_matrix(above), csr_matrix(below)
    return stack_rows(above, below)


# Edges per batch. Small batches leave a GPU idle: with 60,000 images on an H200, 512 edges take 23 s (trustworthiness
# 0.974, accuracy of new rows 0.748), 2,048 edges 7 s (0.972, 0.745); see benchmarks/results/parametric_gpu.json.
BATCH_SIZE = {"cpu": 512, "cuda": 2048}
# Rows whose statistics are computed together; vicinal.parametric.networks has the same number, but imports torch.
MEASURED_ROWS, MEASURED_SIZE = 1 << 14, 1 << 24


class ParametricParameters(Estimator):
    """The constructor of :class:`vicinal.ParametricUMAP`, and the parts of a fit that depend on its arguments only."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "dims": [tuple, list, None],
        "encoder": [str, callable, None],
        "decoder": [str, callable, None],
        "parametric_reconstruction": ["boolean"],
        "parametric_reconstruction_loss_fcn": [callable, None],
        "parametric_reconstruction_loss_weight": [Interval(Real, 0, None, closed="left")],
        "autoencoder_loss": ["boolean"],
        "reconstruction_validation": ["array-like", None],
        "global_correlation_loss_weight": [Interval(Real, 0, None, closed="left")],
        "landmark_loss_fn": [callable, None],
        "landmark_loss_weight": [Interval(Real, 0, None, closed="left")],
        "keras_fit_kwargs": [dict, None],
        "n_neighbors": [Interval(Integral, 2, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "metric": [StrOptions({*METRICS, *ALIASES, PRECOMPUTED}), callable, tuple],
        "metric_kwds": [dict, None],
        "n_epochs": [Interval(Integral, 0, None, closed="left"), None],
        "learning_rate": [LEARNING_RATE],
        "init": [StrOptions(set(INITIALIZERS))],
        "min_dist": [Interval(Real, 0, None, closed="left")],
        "spread": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "set_op_mix_ratio": [Interval(Real, 0, 1, closed="both")],
        "local_connectivity": [Interval(Real, 0, None, closed="left")],
        "repulsion_strength": [Interval(Real, 0, None, closed="left")],
        "negative_sample_rate": [NEGATIVES],
        "a": [Interval(Real, 0, None, closed="neither"), None],
        "b": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
        "target_weight": [Interval(Real, 0, 1, closed="both")],
        "force_approximation_algorithm": ["boolean"],
        "verbose": ["verbose"],
        "tqdm_kwds": [dict, None],
        "disconnection_distance": [Interval(Real, 0, None, closed="neither"), None],
        "precomputed_knn": [tuple, list, "array-like", None],
        "callback": [callable, None],
        "optimizer": [StrOptions({"adam", "adamw", "sgd"}), callable],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "clip_norm": [Interval(Real, 0, None, closed="neither"), None],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "min_improvement": [Interval(Real, 0, None, closed="left")],
        "device": [str],
        "dtype": [StrOptions({"float32", "float64", "bfloat16"})],
        "supervision": [StrOptions({"cross_entropy", "triplet", "graph"})],
        "supervision_weight": [Interval(Real, 0, None, closed="left")],
        "memory_limit": [ByteSize(), None],
        "n_training_epochs": [Interval(Integral, 1, None, closed="left")],
        "unique": ["boolean"],
        **{name: ["boolean"] for name in ("densmap", "output_dens", "low_memory", "angular_rp_forest")},
        "transform_seed": [SEED],
        "transform_queue_size": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        batch_size: int | None = None,
        dims: Any = None,
        encoder: Any = "mlp",
        decoder: Any = None,
        parametric_reconstruction: bool = False,
        parametric_reconstruction_loss_fcn: Any = None,
        parametric_reconstruction_loss_weight: float = 1.0,
        autoencoder_loss: bool = False,
        reconstruction_validation: Any = None,
        global_correlation_loss_weight: float = 0,
        landmark_loss_fn: Any = None,
        landmark_loss_weight: float = 1.0,
        keras_fit_kwargs: dict[str, Any] | None = None,
        *,
        n_neighbors: int = 15,
        n_components: int = 2,
        metric: Any = "euclidean",
        metric_kwds: dict[str, Any] | None = None,
        n_epochs: int | None = None,
        learning_rate: float = 0.006,
        init: str = "spectral",
        min_dist: float = 0.1,
        spread: float = 1.0,
        n_jobs: int | None = -1,
        set_op_mix_ratio: float = 1.0,
        local_connectivity: float = 1.0,
        repulsion_strength: float = 1.0,
        negative_sample_rate: int = 5,
        a: float | None = None,
        b: float | None = None,
        random_state: Any = None,
        target_weight: float = 0.5,
        force_approximation_algorithm: bool = False,
        verbose: bool = False,
        tqdm_kwds: dict[str, Any] | None = None,
        disconnection_distance: float | None = None,
        precomputed_knn: Any = (None, None, None),
        callback: Any = None,
        optimizer: Any = "adam",
        weight_decay: float = 0.0,
        clip_norm: float | None = 1.0,
        patience: int | None = None,
        min_improvement: float = 1e-3,
        device: str = "auto",
        dtype: str = "float32",
        supervision: str = "cross_entropy",
        supervision_weight: float = 1.0,
        memory_limit: float | str | None = None,
        n_training_epochs: int = 1,
        unique: bool = False,
        densmap: bool = False,
        output_dens: bool = False,
        low_memory: bool = True,
        angular_rp_forest: bool = False,
        transform_seed: int = 42,
        transform_queue_size: float = 4.0,
    ) -> None:
        self.batch_size = batch_size
        self.dims = dims
        self.encoder = encoder
        self.decoder = decoder
        self.parametric_reconstruction = parametric_reconstruction
        self.parametric_reconstruction_loss_fcn = parametric_reconstruction_loss_fcn
        self.parametric_reconstruction_loss_weight = parametric_reconstruction_loss_weight
        self.autoencoder_loss = autoencoder_loss
        self.reconstruction_validation = reconstruction_validation
        self.global_correlation_loss_weight = global_correlation_loss_weight
        self.landmark_loss_fn = landmark_loss_fn
        self.landmark_loss_weight = landmark_loss_weight
        self.keras_fit_kwargs = keras_fit_kwargs
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.metric = metric
        self.metric_kwds = metric_kwds
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.init = init
        self.min_dist = min_dist
        self.spread = spread
        self.n_jobs = n_jobs
        self.set_op_mix_ratio = set_op_mix_ratio
        self.local_connectivity = local_connectivity
        self.repulsion_strength = repulsion_strength
        self.negative_sample_rate = negative_sample_rate
        self.a = a
        self.b = b
        self.random_state = random_state
        self.target_weight = target_weight
        self.force_approximation_algorithm = force_approximation_algorithm
        self.verbose = verbose
        self.tqdm_kwds = tqdm_kwds
        self.disconnection_distance = disconnection_distance
        self.precomputed_knn = precomputed_knn
        self.callback = callback
        self.optimizer = optimizer
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm
        self.patience = patience
        self.min_improvement = min_improvement
        self.device = device
        self.dtype = dtype
        self.supervision = supervision
        self.supervision_weight = supervision_weight
        self.memory_limit = memory_limit
        self.n_training_epochs = n_training_epochs
        self.unique = unique
        self.densmap = densmap
        self.output_dens = output_dens
        self.low_memory = low_memory
        self.angular_rp_forest = angular_rp_forest
        self.transform_seed = transform_seed
        self.transform_queue_size = transform_queue_size

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False  # an encoder cannot read NaN, even if the metric can
        tags.input_tags.pairwise = False  # X has rows for the encoder; distances are an argument of their own
        return tags

    def add_memory(self, ledger: Ledger, shape: InputShape) -> None:
        """Add what the graph and the passes over the rows take, part by part; PyTorch's memory is not counted."""
        recipe = self._recipe(0)
        k = recipe.affinity.columns(shape.n)
        if given_knn(self.precomputed_knn) is None:
            add_search(ledger, shape, k, metric=self.metric, approximate=recipe.search == "approximate")
        edges = add_graph(ledger, shape.n, k)
        add_start(ledger, self.init, shape, self.n_components, edges)
        values = MEASURED_ROWS * shape.d
        ledger.use(16.0 * (values if shape.stored is None else min(values, max(shape.d, MEASURED_SIZE))))

    def _check_parameters(self) -> None:
        """Raise, naming the parameter, for what is wrong with any data."""
        self._validate_params()
        if isinstance(self.metric, tuple) and not is_low_level(self.metric):
            raise TypeError(f"metric must be a name, a function or a scipy.LowLevelCallable, got {self.metric!r}")
        check_metric(self.metric, self.metric_kwds)
        check_curve(self)
        check_precomputed(self)
        for name in ("densmap", "output_dens"):
            if getattr(self, name):
                raise ValueError(
                    f"{name}=True is not possible: an encoder does not follow densities, vicinal.DensMAP does"
                )
        unknown = sorted(set(self.keras_fit_kwargs or {}) - {"verbose"})
        if unknown:
            raise ValueError(
                f"keras_fit_kwargs has {unknown}, but the networks are trained by PyTorch: use n_epochs, batch_size, "
                "patience and callback instead"
            )

    def _graph_data(self, rows: Rows, precomputed_distances: Any, seed: int) -> TrainingData:
        """Return what the graph is made of: the rows, or with ``metric="precomputed"`` their distances."""
        pairwise = isinstance(self.metric, str) and self.metric == PRECOMPUTED
        if pairwise != (precomputed_distances is not None):
            raise ValueError("precomputed_distances must be given with metric='precomputed', and with no other metric")
        if not pairwise:
            check_metric(self.metric, self.metric_kwds, rows.shape[1], is_sparse(rows))
            return self._training_rows(PlacedRows(rows).on(self._search_place()), seed, scan_rows(rows)[0])
        data = TrainingDistances(as_rows(precomputed_distances, "precomputed_distances"), self._jobs())
        if data.n != rows.shape[0]:
            raise ValueError(f"precomputed_distances must have {rows.shape[0]} rows, one for each of X, got {data.n}")
        return data

    def _search_place(self) -> Place:
        """Return the GPU that trains if CuPy can use it for neighbors and graph as well; None for the CPU."""
        from vicinal.parametric.rows import choose_device

        device = choose_device(self.device)
        if device.type != "cuda":
            return None
        return usable_place(f"cuda:{device.index or 0}", "the neighbors and the graph")

    def _check_validation(self, n_features: int) -> Rows | None:
        """Return the rows of ``reconstruction_validation``, dense or sparse."""
        if self.reconstruction_validation is None:
            return None
        if not (self.parametric_reconstruction or self.autoencoder_loss or self.decoder is not None):
            raise ValueError("reconstruction_validation needs a decoder: set parametric_reconstruction=True")
        name = "reconstruction_validation"
        return check_width(name, as_rows(flat_rows(self.reconstruction_validation), name), n_features)

    def _given_neighbors(self, rows: HasRows) -> Neighbors | None:
        return given_neighbors(self.precomputed_knn, rows, self.n_neighbors)

    def _recipe(self, seed: int) -> Recipe:
        """Return how the rows become a graph and a start. Its plan has the kernel, but the layout is not run."""
        supervision = None
        if self.supervision == "graph":
            supervision = Supervision(
                weight=self.target_weight, n_neighbors=int(self.n_neighbors), seed=seed, n_jobs=self._jobs()
            )
        return Recipe(
            affinity_of(self),
            SampledPlan(Forces(kernel_of(self))),
            int(self.n_components),
            self.init,
            search="approximate" if self.force_approximation_algorithm else "auto",
            supervision=supervision,
            unique=bool(self.unique),
        )

    def _build(self, n_features: int, shape_of_row: tuple[int, ...], device: torch.device) -> Model:
        import torch

        from vicinal.parametric.networks import Model, Shape

        dims = shape_of_row if self.dims is None else tuple(int(size) for size in self.dims)
        if np.prod(dims) != n_features:
            raise ValueError(f"dims={dims} has {np.prod(dims)} numbers, but rows have {n_features}")
        decoder = self.decoder
        if decoder is None and (self.parametric_reconstruction or self.autoencoder_loss):
            decoder = "mlp"
        dtype = torch.float64 if self.dtype == "float64" else torch.float32
        shape = Shape(n_features, int(self.n_components), dims)
        return Model.build(shape, "mlp" if self.encoder is None else self.encoder, decoder, device, dtype)

    def _objective(self, classes: NDArray[np.int64] | None, landmarks: LandmarkPairs | None) -> Objective:
        from vicinal.parametric.training import Objective

        return Objective(
            kernel_of(self),
            int(self.negative_sample_rate),
            self.repulsion_strength,
            self.global_correlation_loss_weight,
            self.parametric_reconstruction_loss_weight,
            self.parametric_reconstruction_loss_fcn,
            self.autoencoder_loss,
            landmarks,
            self.landmark_loss_weight,
            self.landmark_loss_fn,
            None if self.supervision == "graph" else classes,
            self.supervision == "triplet",
            self.supervision_weight,
        )

    def _plan(self, data: Data, device: torch.device) -> Plan:
        import torch

        from vicinal.parametric.training import Plan, training_epochs

        return Plan(
            self.learning_rate,
            BATCH_SIZE.get(device.type, 512) if self.batch_size is None else int(self.batch_size),
            int(self.n_training_epochs) * (training_epochs(data) if self.n_epochs is None else int(self.n_epochs)),
            optimizer=self.optimizer,
            weight_decay=self.weight_decay,
            clip_norm=self.clip_norm,
            patience=self.patience,
            min_improvement=self.min_improvement,
            autocast=torch.bfloat16 if self.dtype == "bfloat16" else None,
        )


def flat_rows(X: Any) -> Any:
    """Return images and other arrays of more than two dimensions as rows; anything else as it is."""
    return np.asarray(X).reshape(len(X), -1) if getattr(X, "ndim", 0) > 2 else X


def shape_of_row(X: Any, rows: Rows) -> tuple[int, ...]:
    """Return the shape of one row, which is that of an image if X has more than two dimensions."""
    return tuple(int(size) for size in (X if getattr(X, "ndim", 0) > 2 else rows).shape[1:])


def check_width(name: str, rows: Rows, n_columns: int) -> Rows:
    """Return a matrix, or raise ValueError if it does not have ``n_columns`` columns."""
    if rows.ndim != 2 or rows.shape[1] != n_columns:
        raise ValueError(f"{name} must have shape [rows, {n_columns}], got {rows.shape}")
    return rows
