"""Parametric UMAP: an encoder trained with UMAP's loss (survey section 7, Algorithm 2), on PyTorch."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metadata_routing import UNUSED

from vicinal.backends import Place
from vicinal.estimators.base import Estimator, over_blocks, random_seed, require_fitted, whole_or_nothing
from vicinal.estimators.parameters import (
    affinity_of,
    check_curve,
    check_precomputed,
    given_knn,
    given_neighbors,
    kernel_of,
    like,
    parameter,
    with_parameters,
)
from vicinal.estimators.umap import UMAP
from vicinal.files.atomic import StagedFiles
from vicinal.files.container import ModelFileError
from vicinal.graph.supervision import Supervision, class_codes
from vicinal.initialize.start import INITIALIZERS
from vicinal.layout.forces import Forces
from vicinal.neighbors.metrics import PRECOMPUTED, Rows, check_metric, is_sparse
from vicinal.neighbors.rows import HasRows, PlacedRows, as_rows, check_rows, scan_rows, stack_rows, usable_place
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingData, TrainingDistances
from vicinal.pipeline.fit import ArrayExecutor, fit
from vicinal.pipeline.judge import JudgedMap
from vicinal.pipeline.memory import add_graph, add_search, add_start
from vicinal.pipeline.recipe import Places, Recipe, SampledPlan
from vicinal.pipeline.row_options import RowOptions
from vicinal.runtime.constraints import NOT_NEGATIVE, POSITIVE, StrOptions, whole
from vicinal.runtime.inputs import as_array
from vicinal.runtime.progress import LAYOUT
from vicinal.runtime.sizes import InputShape, Ledger

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from vicinal.parametric.networks import Model

LandmarkPairs = tuple[Rows, NDArray[np.float32]]  # rows and their positions

# Attributes of ParametricUMAP, as model files call them, by the fields of a ParametricMap.
FILE_NAMES = {"model": "_model"} | {
    part: f"{part}_" for part in ("embedding", "graph", "loss_history", "n_epochs", "init_used", "stage_times")
}


@dataclass(frozen=True)
class ParametricMap:
    """A trained model, the points of the training rows, their graph, and how the training went.

    ``embedding`` and ``graph`` are None if the model comes from a file without training data. ``training`` holds the
    training rows with their neighbors, by which the map is judged; it is not part of a file.
    """

    model: Model
    embedding: NDArray[np.float32] | None = None
    graph: csr_matrix | None = None
    loss_history: dict[str, list[float]] = field(default_factory=dict)
    n_epochs: int = 0
    init_used: str = ""
    stage_times: dict[str, float] = field(default_factory=dict)
    training: JudgedMap | None = None

    def state(self) -> dict[str, Any]:
        """Return plain values by the names that model files use."""
        from vicinal.parametric.networks import model_state

        values = vars(self) | {"model": model_state(self.model)}
        return {name: values[part] for part, name in FILE_NAMES.items() if values[part] is not None}

    @staticmethod
    def from_state(state: dict[str, Any], *, encoder: Any, decoder: Any, device: str) -> ParametricMap:
        """Return the map whose `state` is given; raise ValueError if its parts do not fit together."""
        from vicinal.parametric.device_rows import choose_device
        from vicinal.parametric.networks import model_from_state

        parts = {part: state[name] for part, name in FILE_NAMES.items() if name in state}
        parts["model"] = model_from_state(parts["model"], encoder, decoder, choose_device(device))
        fitted = ParametricMap(**parts)
        points, graph, width = fitted.embedding, fitted.graph, fitted.model.shape.n_components
        if points is not None and (points.dtype != np.float32 or points.ndim != 2 or points.shape[1] != width):
            raise ValueError(f"embedding_ must have float32 points of {width} components")
        # equal rows may share a row of the graph (unique)
        if points is not None and graph is not None and not graph.shape[0] == graph.shape[1] <= len(points):
            raise ValueError(f"graph_ must have at most {len(points)} rows and as many columns, got {graph.shape}")
        return fitted


def model_file(path: str | os.PathLike[str]) -> Path:
    """Return the file of a model, given it or its folder: umap-learn saves models in folders."""
    return Path(path) / "model.vicinal" if Path(path).is_dir() else Path(path)


# What a model file leaves out with include_data=False: the encoder places new rows without it.
TRAINING_DATA = ("embedding_", "graph_", "_landmarks")
NETWORKS = ("encoder", "decoder")  # parameters by which a model file builds the networks again
# Rows whose statistics are computed together; vicinal.parametric.networks has the same number, but imports torch.
MEASURED_ROWS, MEASURED_SIZE = 1 << 14, 1 << 24


class TrainingExecutor(ArrayExecutor):
    """A fit whose layout is the training of an encoder, which then places every row, with edges or without."""

    refuses: ClassVar[dict[str, str]] = {
        "orient": "the encoder decides where components lie",
        "surround": "the encoder places rows without edges too",
    }
    encoder_start: Places | None = None  # no points for "random", which keeps the untrained encoder

    def __init__(self, *args: Any, train: Callable[[TrainingExecutor], Any], continued: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        self._train, self._continued = train, continued

    def start(self) -> None:
        if self._continued or self.recipe.init == "random":
            self.init_used = "encoder" if self._continued else "random"
            return
        super().start()
        self.encoder_start = self.started

    def lay_out(self, finish: Callable[[Places], Places]) -> None:
        self.losses = self._train(self)

    def report(self) -> Any:
        """Return the losses by epoch."""
        return self.losses


@with_parameters
class ParametricUMAP(Estimator):
    """UMAP by a neural network: an encoder maps rows to points, so new rows need one forward pass and no graph.

    The first parameters are those of umap-learn's class of the same name, in the same order; the others are
    keyword-only. On the CPU the same ``random_state`` and number of threads give the same bits.

    Attributes
    ----------
    embedding_ : array [rows, n_components]
        The points of the training rows.
    loss_history_ : dict of str to list of float
        Mean of every term of the loss by epoch.
    n_epochs_ : int
        Number of epochs that were run.
    graph_ : sparse matrix
        The fuzzy graph.
    init_used_ : str
        The initializer that was used, or "encoder" if the training continued with an earlier encoder.
    stage_times_ : dict of str to float
        Seconds per stage.

    See Also
    --------
    UMAP : without a network.
    vicinal.parametric.register_encoder : name a network of your own.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vicinal import ParametricUMAP
    >>> X = load_iris().data
    >>> model = ParametricUMAP(n_epochs=1, random_state=42).fit(X)
    >>> model.transform(X[:3]).shape
    (3, 2)
    """

    # fmt: off
    batch_size: int | None = parameter(None, [whole(1), None], """
        Edges per batch, two rows each. By default 512, or 2,048 on a GPU.""")
    dims: Any = parameter(None, [tuple, list, None], kind="tuple of int", doc="""
        Shape of a row: (height, width) or (height, width, channels) for ``encoder="conv"``. A module of your own
        receives rows of shape ``[batch, *dims]``.""")
    encoder: Any = parameter("mlp", [str, callable, None], kind="str or torch.nn.Module", doc="""
        "mlp", "conv", a name registered by :func:`vicinal.parametric.register_encoder`, or a module, a copy of which
        is trained. "mlp" and "conv" standardize the data themselves.""")
    decoder: Any = parameter(None, [str, callable, None], kind="str or torch.nn.Module", doc="""
        "mlp", a name registered by :func:`vicinal.parametric.register_decoder`, or a module. By default "mlp" if
        ``parametric_reconstruction`` or ``autoencoder_loss`` is set, else no decoder.""")
    parametric_reconstruction: bool = parameter(False, ["boolean"], """
        Whether to train a decoder, for ``inverse_transform``.""")
    parametric_reconstruction_loss_fcn: Any = parameter(None, [callable, None], kind="callable(decoded, rows)", doc="""
        Loss of the decoder, by default the squared error relative to the variance of the rows.""")
    parametric_reconstruction_loss_weight: float = parameter(1.0, [NOT_NEGATIVE], "Weight of the decoder's loss.")
    autoencoder_loss: bool = parameter(False, ["boolean"], """
        Whether the decoder's loss trains the encoder too, and so shapes the map.""")
    reconstruction_validation: Any = parameter(None, ["array-like", None], kind="array or sparse matrix", doc="""
        Rows whose squared reconstruction error is recorded after every epoch, in ``loss_history_["validation"]``.""")
    global_correlation_loss_weight: float = parameter(0, [NOT_NEGATIVE], """
        Weight of 1 - correlation between distances in the data and distances in the map.""")
    landmark_loss_fn: Any = parameter(None, [callable, None], kind="callable(points, positions)", doc="""
        Loss of landmarks, by default the mean squared distance.""")
    landmark_loss_weight: float = parameter(1.0, [NOT_NEGATIVE], "Weight of the landmarks' loss.")
    keras_fit_kwargs: dict[str, Any] | None = parameter(None, [dict, None], """
        umap-learn's arguments of Keras. Only "verbose" is accepted, without effect.""")
    _: KW_ONLY
    n_neighbors: int = like(UMAP)
    n_components: int = like(UMAP)
    metric: Any = like(UMAP, """With "precomputed", the distances are the argument ``precomputed_distances`` of
        :meth:`fit`, and ``X`` holds the rows for the encoder.""")
    metric_kwds: dict[str, Any] | None = like(UMAP)
    n_epochs: int | None = parameter(None, [whole(0), None], """
        Number of epochs. In one epoch as many edges are drawn as fire if each is tested once. By default as many epochs
        as draw about 4 million edges, at least 4 and at most 40.""")
    learning_rate: float = like(UMAP, default=0.006, doc="""
        Largest learning rate: it rises for a short time, then falls linearly to 0.""")
    init: str = like(UMAP, default="spectral", allowed=[StrOptions(set(INITIALIZERS))],
        kind='{"spectral", "pca", "random"}', doc="""
        Initial points, to which the encoder is fitted in a few steps; "random" leaves the untrained encoder.""")
    min_dist: float = like(UMAP)
    spread: float = like(UMAP)
    n_jobs: int | None = like(UMAP, "PyTorch uses as many.")
    set_op_mix_ratio: float = like(UMAP)
    local_connectivity: float = like(UMAP)
    repulsion_strength: float = like(UMAP)
    negative_sample_rate: int = like(UMAP)
    a: float | None = like(UMAP)
    b: float | None = like(UMAP)
    random_state: Any = like(UMAP)
    target_weight: float = like(UMAP, """Used with ``supervision="graph"``.""")
    force_approximation_algorithm: bool = like(UMAP)
    verbose: bool = like(UMAP)
    tqdm_kwds: dict[str, Any] | None = like(UMAP)
    disconnection_distance: float | None = like(UMAP)
    precomputed_knn: Any = like(UMAP)
    callback: Any = like(UMAP, """The training is the stage "layout".""")
    optimizer: Any = parameter("adam", [StrOptions({"adam", "adamw", "sgd"}), callable], """
        Optimizer of the networks.""", kind='{"adam", "adamw", "sgd"} or callable(parameters, lr=, weight_decay=)')
    weight_decay: float = parameter(0.0, [NOT_NEGATIVE], "Weight decay of the optimizer.")
    clip_norm: float | None = parameter(1.0, [POSITIVE, None], "Largest norm of the gradient; None means no limit.")
    patience: int | None = parameter(None, [whole(1), None], """
        Stop when the loss has not fallen by ``min_improvement`` of itself for this number of epochs.""")
    min_improvement: float = parameter(1e-3, [NOT_NEGATIVE], "See ``patience``.")
    device: str = parameter("auto", [str], """
        Where the networks are trained: "cpu", "cuda", "cuda:1" and so on. "auto" is CUDA if it is available.""")
    dtype: str = parameter("float32", [StrOptions({"float32", "float64", "bfloat16"})], """
        Type of the networks. "bfloat16" trains with mixed precision.""")
    supervision: str = parameter("cross_entropy", [StrOptions({"cross_entropy", "triplet", "graph"})], """
        How labels are used: by a classifier of points, by triplets, or by an intersection of the graph as in
        :class:`vicinal.UMAP`. If some rows are unlabeled, batches of UMAP and of classification alternate.""")
    supervision_weight: float = parameter(1.0, [NOT_NEGATIVE], "Weight of the labels' loss.")
    memory_limit: float | str | None = like(UMAP, "PyTorch's memory is not counted.")
    n_training_epochs: int = parameter(1, [whole(1)], "Factor on the number of epochs.")
    unique: bool = like(UMAP)
    densmap: bool = like(UMAP, doc="umap-learn's argument; only False is accepted.")
    output_dens: bool = like(UMAP, doc="umap-learn's argument; only False is accepted.")
    low_memory: bool = like(UMAP)
    angular_rp_forest: bool = like(UMAP)
    transform_seed: int = like(UMAP, doc="Accepted for umap-learn, without effect.")
    transform_queue_size: float = like(UMAP)
    # fmt: on

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False  # an encoder cannot read NaN, even if the metric can
        tags.input_tags.pairwise = False  # X has rows for the encoder; distances are an argument of their own
        return tags

    @whole_or_nothing
    def fit(
        self, X: Any, y: Any = None, precomputed_distances: Any = None, landmark_positions: Any = None
    ) -> ParametricUMAP:
        """Train the encoder.

        After :meth:`add_landmarks` the training continues with the fitted encoder and keeps the landmarks' points.

        Parameters
        ----------
        X : array or sparse matrix [rows, columns]
            The rows. Sparse rows become dense batch by batch. Images may have more dimensions, [rows, height, width]
            or [rows, height, width, channels].
        y : array [rows], optional
            Classes; -1, NaN and None mean unlabeled.
        precomputed_distances : array or sparse matrix [rows, rows], optional
            Distances of the rows, from which the graph is made with ``metric="precomputed"``.
        landmark_positions : array [rows, n_components], optional
            Positions that the points of rows should have; NaN for rows without one.

        Returns
        -------
        self
        """
        self._check_parameters()
        continued = "_landmarks" in vars(self)
        rows = self._check_rows(flat_rows(X), reset=not continued, sparse=True)
        labels = None if y is None else Supervision().check(y, rows.shape[0])
        landmarks = all_landmarks(vars(self).get("_landmarks"), rows, landmark_positions, int(self.n_components))
        validation = self._check_validation(rows.shape[1])
        from vicinal.parametric.device_rows import threads
        from vicinal.parametric.training import Training, seeded

        seed, progress = random_seed(self.random_state), self._progress()
        data, recipe = self._graph_data(rows, precomputed_distances, seed), self._recipe(seed)
        with threads(self._jobs()):
            dims = shape_of_row(X, rows)
            model = copy.deepcopy(self._fitted("fit").model) if continued else self._new_model(rows, dims, seed)

            def train(fitted: TrainingExecutor) -> dict[str, list[float]]:
                kept, options = fitted.selection.take(rows), fitted.selection.options
                classes = None if self.supervision == "graph" else options.y
                training = Training(self, kernel_of(self), model, kept, fitted.graph, seed)
                errors: list[float] = []

                def after_epoch(done: int) -> bool:
                    if validation is not None:
                        errors.append(model.reconstruction_error(validation))
                    return progress.report(LAYOUT, done, training.n_epochs, lambda: model.encode(kept))

                with progress.stage(LAYOUT, training.n_epochs), seeded(seed, model.device):
                    if fitted.encoder_start is not None:
                        training.approach(fitted.encoder_start)
                    codes = None if classes is None else class_codes(classes)
                    history = training.run(codes, landmarks, after_epoch)
                return history | ({} if validation is None else {"validation": errors})

            options = RowOptions(labels)
            executor = TrainingExecutor(data, recipe, options, seed=seed, train=train, continued=continued)
            history = fit(executor, progress)
            embedding = model.encode(rows)
        if not continued:
            self._fit_params = {name: getattr(self, name) for name in NETWORKS}
        n_epochs, graph = len(history["loss"]), executor.graph
        judged = JudgedMap(executor.neighbors, graph, embedding, executor.rows, n_jobs=self._jobs())
        self.map_ = ParametricMap(
            model, embedding, graph.to_scipy(), history, n_epochs, executor.init_used, progress.times, judged
        )
        return self

    def fit_transform(
        self, X: Any, y: Any = None, precomputed_distances: Any = None, landmark_positions: Any = None
    ) -> NDArray[np.float32]:
        """Fit the model and return ``embedding_``."""
        return self.fit(X, y, precomputed_distances, landmark_positions).embedding_

    # umap-learn's argument is not metadata of the rows
    __metadata_request__transform = {"batch_size": UNUSED}  # noqa: RUF012

    @over_blocks
    def transform(self, X: Any, batch_size: int | None = None) -> NDArray[np.float32]:
        """Return the points of rows, dense or sparse, or of images. The point of a row does not depend on other rows.

        ``batch_size`` is accepted and has no effect: batches are chosen so that they fit into memory.
        """
        require_fitted(self)
        if batch_size is not None and not whole(1).allows(batch_size):
            raise ValueError(f"batch_size must be a whole number of at least 1 or None, got {batch_size!r}")
        return self._apply(self.map_.model.encode, self._check_rows(flat_rows(X), reset=False, sparse=True))

    def _apply(self, network: Callable[[Rows], NDArray[np.float32]], rows: Rows) -> NDArray[np.float32]:
        """Apply a network of the model to rows, on the threads that ``n_jobs`` allows."""
        from vicinal.parametric.device_rows import threads

        with threads(self._jobs()):
            return network(rows)

    def inverse_transform(self, X: Any) -> NDArray[np.float32]:
        """Return the rows that the decoder assigns to points of the map."""
        require_fitted(self)
        model = self.map_.model
        if "decoder" not in model.networks:
            raise AttributeError("this model has no decoder; fit it with parametric_reconstruction=True")
        points = check_width("X", np.require(as_array(X), np.float32, ["C", "A"]), model.shape.n_components)
        check_rows(points, self._jobs())
        return self._apply(model.decode, points)

    def add_landmarks(
        self,
        X: Any,
        sample_pct: float = 0.01,
        sample_mode: str = "uniform",
        landmark_loss_weight: float | None = None,
        idx: Any = None,
        reset_optimizer: bool = True,
    ) -> ParametricUMAP:
        """Choose rows whose points the next ``fit`` keeps.

        Parameters
        ----------
        X : array or sparse matrix [rows, columns]
            Rows; their points in the fitted map are the positions to keep.
        sample_pct : float, default 0.01
            Share of the rows that "uniform" draws.
        sample_mode : {"uniform", "predetermined"}, default "uniform"
            Whether to draw rows at random or to take the rows ``idx``.
        landmark_loss_weight : float, optional
            Replaces the parameter of the same name.
        idx : array of int or bool, optional
            Rows that "predetermined" takes.
        reset_optimizer : True
            umap-learn's argument: every fit starts with a fresh optimizer.

        Returns
        -------
        self
        """
        require_fitted(self)
        if reset_optimizer is not True:
            raise ValueError(f"reset_optimizer must be True: every fit has a fresh optimizer, got {reset_optimizer!r}")
        if landmark_loss_weight is not None and not NOT_NEGATIVE.allows(landmark_loss_weight):
            raise ValueError(f"landmark_loss_weight must be a number of at least 0, got {landmark_loss_weight!r}")
        rows = self._check_rows(flat_rows(X), reset=False, sparse=True)
        kept = rows[chosen_rows(rows.shape[0], sample_pct, sample_mode, idx, random_seed(self.random_state))]
        self._landmarks = (kept, self._apply(self.map_.model.encode, kept))
        if landmark_loss_weight is not None:
            self.landmark_loss_weight = landmark_loss_weight
        return self

    def remove_landmarks(self) -> ParametricUMAP:
        """Make the next ``fit`` start with an untrained encoder."""
        self.__dict__.pop("_landmarks", None)
        return self

    # Results

    @property
    def embedding_(self) -> NDArray[np.float32]:
        points = self._fitted("embedding_").embedding
        if points is None:
            raise AttributeError("embedding_: the model was saved without its training data")
        return points

    @property
    def graph_(self) -> csr_matrix:
        graph = self._fitted("graph_").graph
        if graph is None:
            raise AttributeError("graph_: the model was saved without its training data")
        return graph

    @property
    def loss_history_(self) -> dict[str, list[float]]:
        return self._fitted("loss_history_").loss_history

    _history = loss_history_  # umap-learn's name

    @property
    def n_epochs_(self) -> int:
        return self._fitted("n_epochs_").n_epochs

    @property
    def init_used_(self) -> str:
        return self._fitted("init_used_").init_used

    @property
    def stage_times_(self) -> dict[str, float]:
        return self._fitted("stage_times_").stage_times

    @property
    def _n_features_out(self) -> int:
        return self._fitted("_n_features_out").model.shape.n_components

    def _fitted(self, name: str) -> ParametricMap:
        """Return the map, or raise AttributeError for the result ``name`` of a model that is not fitted."""
        if "map_" not in vars(self):
            raise AttributeError(f"{name}: this {type(self).__name__} is not fitted yet")
        return self.map_

    # Parts of a fit that follow from the parameters

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
        from vicinal.parametric.device_rows import choose_device

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

    def _new_model(self, rows: Rows, shape_of_row: tuple[int, ...], seed: int) -> Model:
        """Return untrained networks that standardize the rows."""
        import torch

        from vicinal.parametric.device_rows import choose_device
        from vicinal.parametric.networks import Model, Shape
        from vicinal.parametric.training import seeded

        device, n_features = choose_device(self.device), rows.shape[1]
        dims = shape_of_row if self.dims is None else tuple(int(size) for size in self.dims)
        if np.prod(dims) != n_features:
            raise ValueError(f"dims={dims} has {np.prod(dims)} numbers, but rows have {n_features}")
        decoder = self.decoder
        if decoder is None and (self.parametric_reconstruction or self.autoencoder_loss):
            decoder = "mlp"
        dtype = torch.float64 if self.dtype == "float64" else torch.float32
        shape = Shape(n_features, int(self.n_components), dims)
        with seeded(seed, device):
            model = Model.build(shape, "mlp" if self.encoder is None else self.encoder, decoder, device, dtype)
            model.measure(rows)
        return model

    # Files

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, encoder: Any = None, decoder: Any = None, device: str = "auto"
    ) -> ParametricUMAP:
        """Load a model file.

        Parameters
        ----------
        path : path
            The file, or the folder that was given to :meth:`save`.
        encoder, decoder : torch.nn.Module or str, optional
            The networks, if the model was saved with modules of your own: a file holds their weights only.
        device : str, default "auto"
            As in the constructor.
        """
        from vicinal.files.models import load

        networks = {"encoder": encoder, "decoder": decoder}
        given = {name: network for name, network in networks.items() if network is not None}
        model = load(model_file(path), device=device, **given)
        if not isinstance(model, cls):
            raise ModelFileError(f"{path} holds a {type(model).__name__}, not a {cls.__name__}")
        return model

    def save(
        self,
        path: str | os.PathLike[str],
        verbose: bool = True,
        exclude_raw_data: bool = False,
        *,
        include_data: bool = True,
    ) -> None:
        """Write the model to a file of plain arrays and JSON, which :meth:`load` reads without running code.

        Parameters
        ----------
        path : path
            The file, or a folder that exists, in which the file is named "model.vicinal".
        verbose, exclude_raw_data : bool
            umap-learn's arguments: the first has no effect, the second is the opposite of ``include_data``.
        include_data : bool, default True
            False leaves out the points, the graph and the landmarks: the encoder places new rows without them.
        """
        super().save(model_file(path), include_data=include_data and not exclude_raw_data)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the encoder as an ONNX file: "X" [rows, columns] to "embedding" [rows, n_components], float32."""
        require_fitted(self)
        with StagedFiles() as staged:
            self.map_.model.to_onnx(staged.path_for(Path(path)))

    to_ONNX = to_onnx  # umap-learn's spelling

    def _state(self, include_data: bool) -> dict[str, Any]:
        state = super()._state(include_data=True)
        if "map_" in state:
            try:
                state |= state.pop("map_").state()
            except ValueError as error:
                raise ModelFileError(str(error)) from error
        return state if include_data else {name: v for name, v in state.items() if name not in TRAINING_DATA}

    def _restore(self, state: dict[str, Any]) -> None:
        names = set(FILE_NAMES.values())
        super()._restore({name: value for name, value in state.items() if name not in names})
        if FILE_NAMES["model"] not in state:
            return
        # The parameters may have been changed after the fit.
        made_by = vars(self).get("_fit_params", self._settings())
        self._fit_params = {name: made_by[name] for name in NETWORKS}
        try:
            self.map_ = ParametricMap.from_state(state, **self._fit_params, device=self.device)
        except ValueError as error:
            raise ModelFileError(str(error)) from error


def flat_rows(X: Any) -> Any:
    """Return images and other arrays of more than two dimensions as rows; anything else as it is."""
    return as_array(X).reshape(len(X), -1) if getattr(X, "ndim", 0) > 2 else X


def shape_of_row(X: Any, rows: Rows) -> tuple[int, ...]:
    """Return the shape of one row, which is that of an image if X has more than two dimensions."""
    return tuple(int(size) for size in (X if getattr(X, "ndim", 0) > 2 else rows).shape[1:])


def check_width(name: str, rows: Rows, n_columns: int) -> Rows:
    """Return a matrix, or raise ValueError if it does not have ``n_columns`` columns."""
    if rows.ndim != 2 or rows.shape[1] != n_columns:
        raise ValueError(f"{name} must have shape [rows, {n_columns}], got {rows.shape}")
    return rows


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
