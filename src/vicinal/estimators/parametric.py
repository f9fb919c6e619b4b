"""Parametric UMAP: an encoder trained with UMAP's loss (survey section 7, Algorithm 2), on PyTorch."""

from __future__ import annotations

import copy
import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators._parametric_parameters import Landmarks, ParametricParameters, check_matrix
from vicinal.graph.fuzzy import fuzzy_graph
from vicinal.graph.graph import Graph
from vicinal.graph.supervision import Supervision, class_codes, intersect_labels
from vicinal.initialize.start import initial_embedding
from vicinal.initialize.task import InitialTask
from vicinal.neighbors.index import Method, NeighborIndex
from vicinal.runtime.progress import LAYOUT, Progress

if TYPE_CHECKING:
    from vicinal.parametric.model import Model

Path = str | os.PathLike[str]
TRAINING_DATA = {"embedding_", "graph_", "_landmarks"}


class ParametricUMAP(ParametricParameters):
    """UMAP as a network: rows are embedded by an encoder, so new ones cost a forward pass and no graph.

    The first parameters are those of umap-learn's class of the same name, in its order; the others are by keyword.
    On the CPU the same ``random_state`` and number of threads give the same bits.

    Parameters
    ----------
    batch_size : int, optional
        Edges in a batch, 512 by default, on a GPU 2,048. Each brings two rows.
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
    verbose, tqdm_kwds, callback, memory_limit
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

    _model: Model
    _landmarks: Landmarks

    def fit(self, X: Any, y: Any = None, *, landmark_positions: Any = None) -> ParametricUMAP:
        """Trains the encoder on ``X``; ``y`` holds classes, -1 = unlabelled.

        After :meth:`add_landmarks` the training goes on from the present encoder and keeps the landmarks' places;
        ``landmark_positions`` [rows, n_components] gives places to rows of ``X``, NaN to those that have none.
        """
        self._check_parameters()
        going_on = hasattr(self, "_landmarks")
        rows = self._check_rows(X, reset=not going_on)
        classes = None if y is None else class_codes(Supervision().check(y, rows.shape[0]))
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
            plan = self._plan(data, device)
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
        self._check_is_fitted("_model")
        rows = self._check_rows(X, reset=False)
        from vicinal.parametric.rows import threads

        with threads(self._jobs()):
            return self._model.encode(rows)

    def inverse_transform(self, X: Any) -> NDArray[np.float32]:
        """Rows that the decoder draws at places of the map."""
        self._check_is_fitted("_model")
        if "decoder" not in self._model.networks:
            raise AttributeError("this model has no decoder; fit it with parametric_reconstruction=True")
        places = check_matrix("X", X, self._model.shape.n_components)
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
        self._check_is_fitted("_model")
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

    @classmethod
    def load(cls, path: Path, *, encoder: Any = None, decoder: Any = None, device: str = "auto") -> ParametricUMAP:
        """A saved model. Networks that were modules of your own are given again here, or registered by name."""
        from vicinal.files.models import ModelFileError, load

        networks = {"encoder": encoder, "decoder": decoder}
        given = {name: network for name, network in networks.items() if network is not None}
        model = load(path, device=device, **given)
        if not isinstance(model, cls):
            raise ModelFileError(f"{path} holds a {type(model).__name__}, not a {cls.__name__}")
        return model

    def _state(self, include_data: bool) -> dict[str, Any]:
        """The networks by their weights. They place new rows without the map, its graph and the landmarks."""
        state = super()._state(include_data=True)
        if "_model" in state:
            from vicinal.parametric.state import model_state

            state["_model"] = model_state(self._model)
        return state if include_data else {name: v for name, v in state.items() if name not in TRAINING_DATA}

    def _restore(self, state: dict[str, Any]) -> None:
        if "_model" in state:
            from vicinal.parametric.rows import choose_device
            from vicinal.parametric.state import model_from_state

            model = model_from_state(state["_model"], self.encoder, self.decoder, choose_device(self.device))
            state = state | {"_model": model}
        super()._restore(state)

    @property
    def _n_features_out(self) -> int:
        return self._model.shape.n_components

    def to_onnx(self, path: Path) -> None:
        """Writes the encoder as an ONNX file: "X" [rows, features] to "embedding" [rows, components], float32."""
        self._check_is_fitted("_model")
        self._model.to_onnx(path)

    to_ONNX = to_onnx  # umap-learn's spelling

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

    def _landmarks_with(self, rows: NDArray[np.float32], positions: Any) -> Landmarks | None:
        """Landmarks added before, and rows of ``X`` that are given places."""
        known = getattr(self, "_landmarks", None)
        if positions is None:
            return known
        places = check_matrix("landmark_positions", positions, int(self.n_components))
        if len(places) != len(rows):
            raise ValueError(f"landmark_positions must have {len(rows)} rows, got {len(places)}")
        given = np.isfinite(places).all(axis=1)
        if known is None:
            return rows[given], places[given]
        return np.concatenate([known[0], rows[given]]), np.concatenate([known[1], places[given]])
