"""Parametric UMAP: an encoder trained with UMAP's loss (survey section 7, Algorithm 2), on PyTorch."""

from __future__ import annotations

import copy
import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators.base import over_blocks, random_seed, require_fitted, whole_or_nothing
from vicinal.estimators.parametric_map import FILE_NAMES, ParametricMap
from vicinal.estimators.parametric_parameters import LandmarkPairs, ParametricParameters, check_width
from vicinal.files.container import ModelFileError
from vicinal.graph.supervision import Supervision, class_codes
from vicinal.maps.fitting import Prepared, prepare
from vicinal.maps.judging import JudgedMap
from vicinal.maps.recipe import Recipe
from vicinal.maps.row_facts import RowFacts
from vicinal.neighbors.metrics import Rows, check_metric, is_sparse
from vicinal.neighbors.rows import check_rows, stack_rows
from vicinal.runtime.inputs import check_input
from vicinal.runtime.progress import LAYOUT, Progress

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from vicinal.parametric.fitting import Data, Objective
    from vicinal.parametric.model import Model

# What a model file leaves out with include_data=False: the encoder places new rows without it.
TRAINING_DATA = ("embedding_", "graph_", "_landmarks")
NETWORKS = ("encoder", "decoder")  # parameters by which a model file builds the networks again


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
    metric, metric_kwds, precomputed_knn
        As in :class:`~vicinal.UMAP`, except for ``metric="precomputed"``: the encoder needs rows.
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
    def fit(self, X: Any, y: Any = None, *, landmark_positions: Any = None) -> ParametricUMAP:
        """Train the encoder.

        After :meth:`add_landmarks` the training continues with the fitted encoder and keeps the landmarks' points.

        Parameters
        ----------
        X : array or sparse matrix [rows, columns]
            The rows. Sparse rows become dense batch by batch.
        y : array [rows], optional
            Classes; -1, NaN and None mean unlabeled.
        landmark_positions : array [rows, n_components], optional
            Positions that the points of rows should have; NaN for rows without one.

        Returns
        -------
        self
        """
        self._check_parameters()
        continued = "_landmarks" in vars(self)
        rows = self._check_rows(X, reset=not continued, sparse=True)
        check_metric(self.metric, self.metric_kwds, rows.shape[1], is_sparse(rows))
        labels = None if y is None else Supervision().check(y, rows.shape[0])
        landmarks = self._all_landmarks(rows, landmark_positions)
        validation = self._check_validation(rows.shape[1])
        from vicinal.parametric.fitting import Data
        from vicinal.parametric.rows import threads

        seed, progress = random_seed(self.random_state), self._progress()
        data, recipe = self._training_rows(rows, seed), self._recipe(seed)
        with threads(self._jobs()):
            model = copy.deepcopy(self.map_.model) if continued else self._measured_model(rows, seed)
            prepared = prepare(data, recipe, RowFacts(labels), progress)
            start, init_used = (None, "encoder") if continued else _start(prepared, recipe, progress, seed)
            graph = prepared.graph
            training = Data(rows, graph.indptr, graph.indices, graph.weights, start)
            objective = self._objective(None if labels is None else class_codes(labels), landmarks)
            history = self._train(model, training, objective, validation, progress, seed)
            embedding = model.encode(rows)
        if not continued:
            self._fit_params = {name: getattr(self, name) for name in NETWORKS}
        n_epochs = len(history["loss"])
        judged = JudgedMap(prepared.neighbors, graph, embedding, prepared.data, n_jobs=self._jobs())
        self.map_ = ParametricMap(
            model, embedding, graph.to_scipy(), history, n_epochs, init_used, progress.times, judged
        )
        return self

    def _measured_model(self, rows: Rows, seed: int) -> Model:
        from vicinal.parametric.rows import choose_device
        from vicinal.parametric.training import seeded

        device = choose_device(self.device)
        with seeded(seed, device):
            model = self._build(rows.shape[1], device)
            model.measure(rows)
        return model

    def _train(
        self, model: Model, data: Data, objective: Objective, validation: Rows | None, progress: Progress, seed: int
    ) -> dict[str, list[float]]:
        """Train the model in place and return the losses by epoch."""
        from vicinal.parametric.fitting import fit_model
        from vicinal.parametric.training import seeded

        plan = self._plan(data, model.device)
        errors: list[float] = []

        def after_epoch(done: int) -> bool:
            if validation is not None:
                errors.append(model.reconstruction_error(validation))
            return progress.report(LAYOUT, done, plan.n_epochs, lambda: model.encode(data.X))

        with progress.stage(LAYOUT, plan.n_epochs), seeded(seed, model.device):
            history = fit_model(model, data, objective, plan, seed=seed, after_epoch=after_epoch)
        return history if validation is None else history | {"validation": errors}

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> NDArray[np.float32]:
        """Fit the model and return ``embedding_``."""
        return self.fit(X, y, **fit_params).embedding_

    @over_blocks
    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the points of rows, dense or sparse. The point of a row does not depend on other rows."""
        require_fitted(self)
        rows = self._check_rows(X, reset=False, sparse=True)
        return self._encode(rows)

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
        self, X: Any, sample_pct: float = 0.01, sample_mode: str = "uniform", idx: Any = None
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
        idx : array of int or bool, optional
            Rows that "predetermined" takes.

        Returns
        -------
        self
        """
        require_fitted(self)
        rows = self._check_rows(X, reset=False, sparse=True)
        n = rows.shape[0]
        if sample_mode == "predetermined" and idx is not None:
            chosen = np.asarray(idx)
        elif sample_mode == "uniform" and 0.0 < sample_pct <= 1.0:
            rng = np.random.default_rng(random_seed(self.random_state))
            chosen = rng.choice(n, max(1, int(n * sample_pct)), replace=False)
        else:
            raise ValueError(
                "give sample_mode='uniform' with sample_pct in (0, 1], or 'predetermined' with idx; "
                f"got sample_mode={sample_mode!r}, sample_pct={sample_pct}, idx={idx}"
            )
        kept = rows[chosen]
        self._landmarks = (kept, self._encode(kept))
        return self

    def remove_landmarks(self) -> ParametricUMAP:
        """Make the next ``fit`` start with an untrained encoder."""
        self.__dict__.pop("_landmarks", None)
        return self

    def _all_landmarks(self, rows: Rows, landmark_positions: Any) -> LandmarkPairs | None:
        """Return the landmarks of `add_landmarks` and the rows of a fit that are given positions."""
        known: LandmarkPairs | None = vars(self).get("_landmarks")
        n_components = int(self.n_components)
        if known is not None and known[1].shape[1] != n_components:
            raise ValueError(
                f"n_components={n_components} differs from the {known[1].shape[1]} components of the landmarks; "
                "call remove_landmarks first"
            )
        if landmark_positions is None:
            return known
        positions = np.require(landmark_positions, np.float32, ["C", "A"])
        check_width("landmark_positions", positions, n_components)
        if len(positions) != rows.shape[0]:
            raise ValueError(f"landmark_positions must have {rows.shape[0]} rows, got {len(positions)}")
        placed = np.isfinite(positions).all(axis=1)
        if known is None:
            return rows[placed], positions[placed]
        return _joined(known[0], rows[placed]), np.concatenate([known[1], positions[placed]])

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
        encoder, decoder : torch.nn.Module or str, optional
            The networks, if the model was saved with modules of your own: a file holds their weights only.
        device : str, default "auto"
            As in the constructor.
        """
        from vicinal.files.models import load

        networks = {"encoder": encoder, "decoder": decoder}
        given = {name: network for name, network in networks.items() if network is not None}
        model = load(path, device=device, **given)
        if not isinstance(model, cls):
            raise ModelFileError(f"{path} holds a {type(model).__name__}, not a {cls.__name__}")
        return model

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
        made_by = vars(self).get("_fit_params", self.get_params(deep=False))
        self._fit_params = {name: made_by[name] for name in NETWORKS}
        try:
            self.map_ = ParametricMap.from_state(state, **self._fit_params, device=self.device)
        except ValueError as error:
            raise ModelFileError(str(error)) from error


def _start(prepared: Prepared, recipe: Recipe, progress: Progress, seed: int) -> tuple[NDArray[np.float32] | None, str]:
    """Return the initial points and the initializer; no points for "random", which keeps the untrained encoder."""
    with progress.stage("initialize"):
        return (None, "random") if recipe.init == "random" else recipe.start(prepared.graph, prepared.data, seed)


def _joined(above: Rows, below: Rows) -> Rows:
    """Stack rows; the result is sparse if either part is."""
    if is_sparse(above) != is_sparse(below):
        from scipy.sparse import csr_matrix

        above, below = csr_matrix(above), csr_matrix(below)
    return stack_rows(above, below)
