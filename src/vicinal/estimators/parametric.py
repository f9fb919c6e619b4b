"""Parametric UMAP: an encoder trained with UMAP's loss (survey section 7, Algorithm 2), on PyTorch."""

from __future__ import annotations

import copy
import os
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators._base import Embedding
from vicinal.graph import Graph, fuzzy_graph
from vicinal.initialize import INITIALIZERS, InitialTask, initial_embedding
from vicinal.kernel import Kernel, fit_ab
from vicinal.neighbors import ALIASES, METRICS, Method, NeighborIndex
from vicinal.parameters import Interval, StrOptions
from vicinal.progress import LAYOUT, Progress
from vicinal.supervision import UNLABELLED, intersect_labels

if TYPE_CHECKING:
    from vicinal.parametric.fitting import Data, Objective
    from vicinal.parametric.model import Model
    from vicinal.parametric.training import Plan

Path = str | os.PathLike[str]
BATCH_SIZE = 512


class ParametricUMAP(Embedding):
    """UMAP as a network: rows are embedded by an encoder, so new ones cost a forward pass and no graph.

    The first parameters are those of umap-learn's class of the same name, in its order; the others are by keyword.
    On the CPU the same ``random_state`` and number of threads give the same bits.

    Parameters
    ----------
    batch_size : int, optional
        Edges in a batch, 512 by default. Each brings two rows.
    dims : tuple of int, optional
        The form of a row: (height, width) or (height, width, channels) for ``encoder="conv"``; a module of your own
        receives [batch, \\*dims].
    encoder : str or torch.nn.Module, default "mlp"
        "mlp", "conv", a registered name (``vicinal.parametric.encoders.register_encoder``), or a module, of which a
        copy is trained. The named ones standardise the data themselves.
    decoder : str or torch.nn.Module, optional
        "mlp", a registered name or a module; "mlp" if only a reconstruction is asked for.
    parametric_reconstruction : bool, default False
        Train a decoder, for ``inverse_transform``.
    parametric_reconstruction_loss_fcn : callable(decoded, rows), optional
        Default: the squared error relative to the variance of the rows.
    parametric_reconstruction_loss_weight : float, default 1.0
    autoencoder_loss : bool, default False
        Whether reconstruction shapes the map too (joint), or trains the decoder only (detached).
    reconstruction_validation : array, optional
        Rows whose reconstruction is measured after every epoch, as ``loss_history_["validation"]``.
    global_correlation_loss_weight : float, default 0
        Weight of 1 - correlation between distances in the data and in the map, across a batch.
    landmark_loss_fn : callable(places, wanted), optional
        Default: the squared distance.
    landmark_loss_weight : float, default 1.0
    n_neighbors, n_components, metric, min_dist, spread, set_op_mix_ratio, local_connectivity, repulsion_strength, \
    negative_sample_rate, a, b, disconnection_distance, force_approximation_algorithm, target_weight
        As in :class:`~vicinal.UMAP`.
    init : {"spectral", "pca", "random"}, default "spectral"
        The encoder is first led to these places, in a few steps; "random" leaves it as it was made.
    n_epochs : int, optional
        An epoch draws as many edges as fire when each is tested once. Default: as many epochs as make
        about 4 million edges, at least 4 and at most 40.
    optimizer : {"adam", "adamw", "sgd"} or callable(parameters, lr=, weight_decay=), default "adam"
    learning_rate : float, default 0.006
        After a short rise; falls linearly to 0.
    weight_decay : float, default 0
    clip_norm : float or None, default 1.0
        Bound of the gradient's norm.
    patience : int, optional
        Early stopping: end when the loss has not fallen by ``min_improvement`` of itself for so many epochs.
    device : str, default "auto"
        "cpu", "cuda", "cuda:1"; "auto" takes CUDA where there is one.
    dtype : {"float32", "float64", "bfloat16"}, default "float32"
        "bfloat16" is mixed precision.
    supervision : {"cross_entropy", "triplet", "graph"}, default "cross_entropy"
        What labels do: a class head on the map, triplets, or (as in UMAP) an intersection of the graph. If some rows
        are labelled -1 (unlabelled), batches of UMAP and of classification alternate.
    supervision_weight : float, default 1.0
    n_jobs : int, default -1
        Threads, torch's too.
    random_state : int, RandomState or None
    verbose, tqdm_kwds, callback
        As in :class:`~vicinal.UMAP`; the training is the stage "layout".

    Attributes
    ----------
    embedding_ : array [rows, n_components]
    loss_history_ : dict of lists, the mean of every term of the loss by epoch
    n_epochs_ : int, epochs that were run
    graph_ : sparse matrix of the fuzzy graph
    init_used_ : str
    stage_times_ : dict of seconds
    """

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
        "n_neighbors": [Interval(Integral, 2, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "metric": [StrOptions({*METRICS, *ALIASES})],
        "n_epochs": [Interval(Integral, 0, None, closed="left"), None],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "init": [StrOptions(set(INITIALIZERS))],
        "min_dist": [Interval(Real, 0, None, closed="left")],
        "spread": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "set_op_mix_ratio": [Interval(Real, 0, 1, closed="both")],
        "local_connectivity": [Interval(Real, 0, None, closed="left")],
        "repulsion_strength": [Interval(Real, 0, None, closed="left")],
        "negative_sample_rate": [Interval(Integral, 0, None, closed="left")],
        "a": [Interval(Real, 0, None, closed="neither"), None],
        "b": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
        "target_weight": [Interval(Real, 0, 1, closed="both")],
        "force_approximation_algorithm": ["boolean"],
        "verbose": ["verbose"],
        "tqdm_kwds": [dict, None],
        "disconnection_distance": [Interval(Real, 0, None, closed="neither"), None],
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
    }

    _model: Model
    _landmarks: tuple[NDArray[np.float32], NDArray[np.float32]]

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
        *,
        n_neighbors: int = 15,
        n_components: int = 2,
        metric: str = "euclidean",
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
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.metric = metric
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

    def fit(self, X: Any, y: Any = None, *, landmark_positions: Any = None) -> ParametricUMAP:
        """Trains the encoder on ``X``; ``y`` holds classes, -1 = unlabelled.

        After :meth:`add_landmarks` the training goes on from the present encoder and keeps the landmarks' places;
        ``landmark_positions`` [rows, n_components] gives places to rows of ``X``, NaN to those that have none.
        """
        self._check_parameters()
        going_on = hasattr(self, "_landmarks")
        rows = self._check_rows(X, reset=not going_on)
        classes = _classes(y, rows.shape[0])
        landmarks = self._landmarks_with(rows, landmark_positions)
        validation = self._check_validation(rows.shape[1])
        from vicinal.parametric.fitting import Data, fit_model
        from vicinal.parametric.rows import choose_device, threads
        from vicinal.parametric.training import seeded

        seed, device = self._seed(self.random_state), choose_device(self.device)
        progress = Progress(callback=self.callback, verbose=bool(self.verbose), tqdm_kwds=self.tqdm_kwds)
        with threads(self._jobs()):
            with seeded(seed, device):
                model = copy.deepcopy(self._model) if going_on else self._build(rows.shape[1], device)
                if not going_on:
                    model.measure(rows)
            graph = self._make_graph(rows, classes, progress, seed)
            start = None if going_on else self._start(graph, rows, progress, seed)
            data = Data(rows, graph.indptr, graph.indices, graph.weights, start)
            objective = self._objective(classes, landmarks)
            plan = self._plan(data)
            validated: list[float] = []

            def after_epoch(done: int) -> bool:
                if validation is not None:
                    validated.append(float(np.square(model.decode(model.encode(validation)) - validation).mean()))
                return progress.report(LAYOUT, done, plan.n_epochs, lambda: model.encode(rows))

            with progress.stage(LAYOUT, plan.n_epochs), seeded(seed, device):
                history = fit_model(model, data, objective, plan, seed=seed, after_epoch=after_epoch)
            self.embedding_ = model.encode(rows)
        self._model, self.graph_, self.stage_times_ = model, graph.to_scipy(), progress.times
        self.loss_history_ = history | ({} if validation is None else {"validation": validated})
        self.n_epochs_ = len(history["loss"])
        return self

    def fit_transform(self, X: Any, y: Any = None, *, landmark_positions: Any = None) -> NDArray[np.float32]:
        """``fit(X, y).embedding_``."""
        return self.fit(X, y, landmark_positions=landmark_positions).embedding_

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Places of rows: one pass through the encoder. A row's place does not depend on the others."""
        self._check_is_fitted("embedding_")
        rows = self._check_rows(X, reset=False)
        from vicinal.parametric.rows import threads

        with threads(self._jobs()):
            return self._model.encode(rows)

    def inverse_transform(self, X: Any) -> NDArray[np.float32]:
        """Rows that the decoder draws at places of the map."""
        self._check_is_fitted("embedding_")
        if "decoder" not in self._model.networks:
            raise AttributeError("this model has no decoder; fit it with parametric_reconstruction=True")
        places = _places("X", X, self._model.shape.n_components)
        if not np.isfinite(places).all():
            bad = int(np.argmin(np.isfinite(places).all(axis=1)))
            raise ValueError(f"X contains NaN or infinity, first in row {bad}")
        from vicinal.parametric.rows import threads

        with threads(self._jobs()):
            return self._model.decode(places)

    def add_landmarks(
        self, X: Any, sample_pct: float = 0.01, sample_mode: str = "uniform", idx: Any = None
    ) -> ParametricUMAP:
        """Makes the next ``fit`` keep the places that rows of ``X`` have in this map.

        A share ``sample_pct`` of the rows is drawn ("uniform"), or rows ``idx`` are taken ("predetermined").
        """
        self._check_is_fitted("embedding_")
        rows = self._check_rows(X, reset=False)
        if sample_mode == "predetermined" and idx is not None:
            chosen = np.asarray(idx)
        elif sample_mode == "uniform" and 0.0 < sample_pct <= 1.0:
            rng = np.random.default_rng(self._seed(self.random_state))
            chosen = rng.choice(len(rows), max(1, int(len(rows) * sample_pct)), replace=False)
        else:
            raise ValueError(
                "give sample_mode='uniform' with sample_pct in (0, 1], or 'predetermined' with idx; "
                f"got sample_mode={sample_mode!r}, sample_pct={sample_pct}, idx={idx}"
            )
        kept = rows[chosen]
        self._landmarks = (kept, self._model.encode(kept))
        return self

    def remove_landmarks(self) -> ParametricUMAP:
        """Lets the next ``fit`` begin anew."""
        self.__dict__.pop("_landmarks", None)
        return self

    def save(self, path: Path) -> None:
        """Writes the model, without the training data, to one file: arrays and JSON, no code."""
        self._check_is_fitted("embedding_")
        from vicinal.parametric.files import save_estimator

        save_estimator(path, self)

    @classmethod
    def load(cls, path: Path, *, encoder: Any = None, decoder: Any = None, device: str = "auto") -> ParametricUMAP:
        """A saved model. Networks that were modules of your own are given again here, or registered by name."""
        from vicinal.parametric.files import load_estimator

        fresh = cls(encoder=encoder, decoder=decoder, device=device)
        load_estimator(path, fresh)
        return fresh

    def to_onnx(self, path: Path) -> None:
        """Writes the encoder as an ONNX file: "X" [rows, features] to "embedding" [rows, components], float32."""
        self._check_is_fitted("embedding_")
        self._model.to_onnx(path)

    to_ONNX = to_onnx  # umap-learn's spelling

    def _build(self, n_features: int, device: Any) -> Model:
        import torch

        from vicinal.parametric.encoders import Shape
        from vicinal.parametric.model import Model

        dims = (n_features,) if self.dims is None else tuple(int(size) for size in self.dims)
        if np.prod(dims) != n_features:
            raise ValueError(f"dims={dims} has {np.prod(dims)} numbers, but rows have {n_features}")
        decoder = self.decoder
        if decoder is None and (self.parametric_reconstruction or self.autoencoder_loss):
            decoder = "mlp"
        dtype = torch.float64 if self.dtype == "float64" else torch.float32
        shape = Shape(n_features, int(self.n_components), dims)
        return Model.build(shape, "mlp" if self.encoder is None else self.encoder, decoder, device, dtype)

    def _make_graph(
        self, rows: NDArray[np.float32], classes: NDArray[np.int64] | None, progress: Progress, seed: int
    ) -> Graph:
        jobs = self._jobs()
        with progress.stage("neighbors"):
            index = NeighborIndex(rows, self.metric, seed=seed, n_jobs=jobs)
            method: Method = "approximate" if self.force_approximation_algorithm else "auto"
            neighbors = index.search(min(self.n_neighbors, rows.shape[0]), method)
        with progress.stage("graph"):
            graph = fuzzy_graph(
                neighbors,
                local_connectivity=self.local_connectivity,
                set_op_mix_ratio=self.set_op_mix_ratio,
                disconnection_distance=self.disconnection_distance,
                n_jobs=jobs,
            )
            if classes is not None and self.supervision == "graph":
                graph = intersect_labels(graph, classes, self.target_weight)
        return graph

    def _start(
        self, graph: Graph, rows: NDArray[np.float32], progress: Progress, seed: int
    ) -> NDArray[np.float32] | None:
        with progress.stage("initialize"):
            if self.init == "random":
                self.init_used_ = "random"
                return None
            task = InitialTask(graph, rows, self.n_components, seed, self._jobs())
            start, self.init_used_ = initial_embedding(self.init, task)
            return start

    def _objective(
        self, classes: NDArray[np.int64] | None, landmarks: tuple[NDArray[np.float32], NDArray[np.float32]] | None
    ) -> Objective:
        from vicinal.parametric.fitting import Objective

        return Objective(
            fit_ab(self.spread, self.min_dist) if self.a is None or self.b is None else Kernel(self.a, self.b),
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

    def _plan(self, data: Data) -> Plan:
        import torch

        from vicinal.parametric.fitting import default_epochs
        from vicinal.parametric.training import Plan

        return Plan(
            self.learning_rate,
            BATCH_SIZE if self.batch_size is None else int(self.batch_size),
            default_epochs(data) if self.n_epochs is None else int(self.n_epochs),
            optimizer=self.optimizer,
            weight_decay=self.weight_decay,
            clip_norm=self.clip_norm,
            patience=self.patience,
            min_improvement=self.min_improvement,
            autocast=torch.bfloat16 if self.dtype == "bfloat16" else None,
        )

    def _check_parameters(self) -> None:
        self._validate_params()
        if self.n_jobs == 0:
            raise ValueError("n_jobs must not be 0; -1 uses all processors")
        if self.min_dist > self.spread:
            raise ValueError(f"min_dist must not exceed spread, got min_dist={self.min_dist}, spread={self.spread}")
        if (self.a is None) != (self.b is None):
            raise ValueError(f"a and b must be given together, got a={self.a}, b={self.b}")

    def _check_validation(self, n_features: int) -> NDArray[np.float32] | None:
        if self.reconstruction_validation is None:
            return None
        if not (self.parametric_reconstruction or self.autoencoder_loss or self.decoder is not None):
            raise ValueError("reconstruction_validation needs a decoder: set parametric_reconstruction=True")
        return _places("reconstruction_validation", self.reconstruction_validation, n_features)

    def _landmarks_with(
        self, rows: NDArray[np.float32], positions: Any
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        """Landmarks added before, and rows of ``X`` that are given places."""
        known = getattr(self, "_landmarks", None)
        if positions is None:
            return known
        places = _places("landmark_positions", positions, int(self.n_components))
        if len(places) != len(rows):
            raise ValueError(f"landmark_positions must have {len(rows)} rows, got {len(places)}")
        given = np.isfinite(places).all(axis=1)
        if known is None:
            return rows[given], places[given]
        return np.concatenate([known[0], rows[given]]), np.concatenate([known[1], places[given]])


def _places(name: str, values: Any, width: int) -> NDArray[np.float32]:
    array = np.require(values, dtype=np.float32, requirements=["C", "A"])
    if array.ndim != 2 or array.shape[1] != width:
        raise ValueError(f"{name} must have shape [rows, {width}], got {array.shape}")
    return array


def _classes(y: Any, n: int) -> NDArray[np.int64] | None:
    """Labels as 0, 1, ...; -1 stays."""
    if y is None:
        return None
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.reshape(-1)
    if labels.shape != (n,):
        raise ValueError(f"y must hold one label a row, got shape {np.shape(y)} for {n} rows")
    if labels.dtype.kind in "fc" and not np.isfinite(labels).all():
        raise ValueError(f"y contains NaN or infinity, first in row {int(np.argmin(np.isfinite(labels)))}")
    known = labels != UNLABELLED if labels.dtype.kind in "iuf" else np.ones(n, dtype=bool)
    classes = np.full(n, UNLABELLED, dtype=np.int64)
    classes[known] = np.unique(labels[known], return_inverse=True)[1].reshape(-1)
    return classes
