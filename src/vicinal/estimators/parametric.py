"""Parametric UMAP: an encoder trained with UMAP's loss (survey section 7, Algorithm 2), on PyTorch."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metadata_routing import UNUSED

from vicinal.estimators.base import over_blocks, random_seed, require_fitted, whole_or_nothing
from vicinal.estimators.parametric_parameters import (
    LandmarkPairs,
    ParametricParameters,
    all_landmarks,
    check_width,
    chosen_rows,
    flat_rows,
    shape_of_row,
)
from vicinal.files.container import ModelFileError
from vicinal.graph.supervision import Supervision, class_codes
from vicinal.neighbors.metrics import Rows
from vicinal.neighbors.rows import check_rows
from vicinal.pipeline.fit import ArrayExecutor, fit
from vicinal.pipeline.judge import JudgedMap
from vicinal.pipeline.options import RowOptions
from vicinal.pipeline.recipe import Places
from vicinal.runtime.inputs import check_input
from vicinal.runtime.parameters import Interval
from vicinal.runtime.progress import LAYOUT, Progress

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from vicinal.parametric.networks import Model
    from vicinal.parametric.training import Data, Objective
    from vicinal.pipeline.judge import JudgedMap


# Attributes of ParametricUMAP, as model files call them, by the fields of a ParametricMap.
FILE_NAMES = {
    "model": "_model",
    "embedding": "embedding_",
    "graph": "graph_",
    "loss_history": "loss_history_",
    "n_epochs": "n_epochs_",
    "init_used": "init_used_",
    "stage_times": "stage_times_",
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
        from vicinal.parametric.networks import model_from_state
        from vicinal.parametric.rows import choose_device

        parts = {part: state[name] for part, name in FILE_NAMES.items() if name in state}
        parts["model"] = model_from_state(parts["model"], encoder, decoder, choose_device(device))
        fitted = ParametricMap(**parts)
        fitted.check()
        return fitted

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together: a model file may hold anything."""
        points, graph = self.embedding, self.graph
        if points is not None and (
            points.dtype != np.float32 or points.ndim != 2 or points.shape[1] != self.model.shape.n_components
        ):
            raise ValueError(f"embedding_ must have float32 points of {self.model.shape.n_components} components")
        # equal rows may share a row of the graph (unique)
        if points is not None and graph is not None and not graph.shape[0] == graph.shape[1] <= len(points):
            raise ValueError(f"graph_ must have at most {len(points)} rows and as many columns, got {graph.shape}")


def model_file(path: str | os.PathLike[str]) -> Path:
    """Return the file of a model, given it or its folder: umap-learn saves models in folders."""
    return Path(path) / "model.vicinal" if Path(path).is_dir() else Path(path)


# What a model file leaves out with include_data=False: the encoder places new rows without it.
TRAINING_DATA = ("embedding_", "graph_", "_landmarks")
NETWORKS = ("encoder", "decoder")  # parameters by which a model file builds the networks again


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


class ParametricUMAP(ParametricParameters):
    """UMAP by a neural network: an encoder maps rows to points, so new rows need one forward pass and no graph.

    The first parameters are those of umap-learn's class of the same name, in the same order; the others are
    keyword-only. On the CPU the same ``random_state`` and number of threads give the same bits.

    Parameters
    ----------
    batch_size : int, optional
        Edges per batch, two rows each. Default: 512, or 2,048 on a GPU.
    dims : tuple of int, optional
        Shape of a row: (height, width) or (height, width, channels) for ``encoder="conv"``. A module of your own
        receives [batch, \\*dims].
    encoder : str or torch.nn.Module, default "mlp"
        "mlp", "conv", a name registered by :func:`vicinal.parametric.register_encoder`, or a module, a copy of which
        is trained. "mlp" and "conv" standardize the data themselves.
    decoder : str or torch.nn.Module, optional
        "mlp", a name registered by :func:`vicinal.parametric.register_decoder`, or a module. Default: "mlp" if
        ``parametric_reconstruction`` or ``autoencoder_loss`` is set, else no decoder.
    parametric_reconstruction : bool, default False
        Whether to train a decoder, for ``inverse_transform``.
    parametric_reconstruction_loss_fcn : callable(decoded, rows), optional
        Loss of the decoder. Default: the squared error relative to the variance of the rows.
    parametric_reconstruction_loss_weight : float, default 1.0
        Weight of the decoder's loss.
    autoencoder_loss : bool, default False
        Whether the decoder's loss trains the encoder too, and so shapes the map.
    reconstruction_validation : array or sparse matrix, optional
        Rows whose squared reconstruction error is recorded after every epoch, in ``loss_history_["validation"]``.
    global_correlation_loss_weight : float, default 0
        Weight of 1 - correlation between distances in the data and distances in the map.
    landmark_loss_fn : callable(points, positions), optional
        Loss of landmarks. Default: the mean squared distance.
    landmark_loss_weight : float, default 1.0
        Weight of the landmarks' loss.
    n_neighbors, n_components, min_dist, spread, set_op_mix_ratio, local_connectivity, repulsion_strength, \
    negative_sample_rate, a, b, disconnection_distance, force_approximation_algorithm, target_weight
        As in :class:`~vicinal.UMAP`.
    metric, metric_kwds, precomputed_knn, unique
        As in :class:`~vicinal.UMAP`. ``metric="precomputed"`` needs ``precomputed_distances`` in :meth:`fit`, beside
        the rows for the encoder.
    init : {"spectral", "pca", "random"}, default "spectral"
        Initial points, to which the encoder is fitted in a few steps; "random" leaves the untrained encoder.
    n_epochs : int, optional
        Number of epochs. In one epoch as many edges are drawn as fire if each is tested once. Default: as many
        epochs as draw about 4 million edges, at least 4 and at most 40.
    optimizer : {"adam", "adamw", "sgd"} or callable(parameters, lr=, weight_decay=), default "adam"
        Optimizer of the networks.
    learning_rate : float, default 0.006
        Largest learning rate: it rises for a short time, then falls linearly to 0.
    weight_decay : float, default 0
        Weight decay of the optimizer.
    clip_norm : float or None, default 1.0
        Bound of the gradient's norm.
    patience : int, optional
        Stop when the loss has not fallen by ``min_improvement`` of itself for this number of epochs.
    min_improvement : float, default 1e-3
        See ``patience``.
    device : str, default "auto"
        "cpu", "cuda", "cuda:1", ...; "auto" is CUDA if it is available.
    dtype : {"float32", "float64", "bfloat16"}, default "float32"
        Type of the networks; "bfloat16" trains with mixed precision.
    supervision : {"cross_entropy", "triplet", "graph"}, default "cross_entropy"
        How labels are used: by a classifier of points, by triplets, or by an intersection of the graph as in
        :class:`~vicinal.UMAP`. If some rows are unlabeled, batches of UMAP and of classification alternate.
    supervision_weight : float, default 1.0
        Weight of the labels' loss.
    n_jobs : int or None, default -1
        Threads, also of PyTorch; -1 uses all processors, None means what it means in scikit-learn.
    random_state : int, RandomState or None
        Seed of everything random in ``fit``.
    verbose, tqdm_kwds, callback, memory_limit
        As in :class:`~vicinal.UMAP`; the training is the stage "layout".
    n_training_epochs : int, default 1
        Factor on the number of epochs.
    keras_fit_kwargs, densmap, output_dens
        umap-learn's arguments that have no meaning here: None or False, "verbose" among the first.
    low_memory, angular_rp_forest, transform_seed, transform_queue_size
        umap-learn's arguments that have no effect.

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

    map_: ParametricMap
    _landmarks: LandmarkPairs

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
        from vicinal.parametric.rows import threads
        from vicinal.parametric.training import Data

        seed, progress = random_seed(self.random_state), self._progress()
        data, recipe = self._graph_data(rows, precomputed_distances, seed), self._recipe(seed)
        with threads(self._jobs()):
            model = (
                copy.deepcopy(self.map_.model) if continued else self._measured_model(rows, shape_of_row(X, rows), seed)
            )

            def train(fitted: TrainingExecutor) -> dict[str, list[float]]:
                graph, selection = fitted.graph, fitted.selection
                rows_laid_out = selection.take(rows)
                training = Data(rows_laid_out, graph.indptr, graph.indices, graph.weights, fitted.encoder_start)
                classes = selection.options.y
                objective = self._objective(None if classes is None else class_codes(classes), landmarks)
                return self._train(model, training, objective, validation, progress, seed)

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

    def _measured_model(self, rows: Rows, dims: tuple[int, ...], seed: int) -> Model:
        from vicinal.parametric.rows import choose_device
        from vicinal.parametric.training import seeded

        device = choose_device(self.device)
        with seeded(seed, device):
            model = self._build(rows.shape[1], dims, device)
            model.measure(rows)
        return model

    def _train(
        self, model: Model, data: Data, objective: Objective, validation: Rows | None, progress: Progress, seed: int
    ) -> dict[str, list[float]]:
        """Train the model in place and return the losses by epoch."""
        from vicinal.parametric.training import fit_model, seeded

        plan = self._plan(data, model.device)
        errors: list[float] = []

        def after_epoch(done: int) -> bool:
            if validation is not None:
                errors.append(model.reconstruction_error(validation))
            return progress.report(LAYOUT, done, plan.n_epochs, lambda: model.encode(data.X))

        with progress.stage(LAYOUT, plan.n_epochs), seeded(seed, model.device):
            history = fit_model(model, data, objective, plan, seed=seed, after_epoch=after_epoch)
        return history if validation is None else history | {"validation": errors}

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
        if batch_size is not None and not Interval(Integral, 1, None, closed="left").allows(batch_size):
            raise ValueError(f"batch_size must be a whole number of at least 1 or None, got {batch_size!r}")
        return self._encode(self._check_rows(flat_rows(X), reset=False, sparse=True))

    def _encode(self, rows: Rows) -> NDArray[np.float32]:
        from vicinal.parametric.rows import threads

        with threads(self._jobs()):
            return self.map_.model.encode(rows)

    def inverse_transform(self, X: Any) -> NDArray[np.float32]:
        """Return the rows that the decoder assigns to points of the map."""
        require_fitted(self)
        model = self.map_.model
        if "decoder" not in model.networks:
            raise AttributeError("this model has no decoder; fit it with parametric_reconstruction=True")
        check_input(X)
        points = check_width("X", np.require(X, np.float32, ["C", "A"]), model.shape.n_components)
        check_rows(points, self._jobs())
        from vicinal.parametric.rows import threads

        with threads(self._jobs()):
            return model.decode(points)

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
        if landmark_loss_weight is not None and not Interval(Real, 0, None).allows(landmark_loss_weight):
            raise ValueError(f"landmark_loss_weight must be a number of at least 0, got {landmark_loss_weight!r}")
        rows = self._check_rows(flat_rows(X), reset=False, sparse=True)
        kept = rows[chosen_rows(rows.shape[0], sample_pct, sample_mode, idx, random_seed(self.random_state))]
        self._landmarks = (kept, self._encode(kept))
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
        self.map_.model.to_onnx(path)

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
        # The parameters may have been changed after the fit; files of version 0.1 do not say so.
        made_by = vars(self).get("_fit_params", self._settings())
        self._fit_params = {name: made_by[name] for name in NETWORKS}
        try:
            self.map_ = ParametricMap.from_state(state, **self._fit_params, device=self.device)
        except ValueError as error:
            raise ModelFileError(str(error)) from error
