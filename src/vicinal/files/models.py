"""Models as files and pickles: plain arrays and a JSON document, read without running any code.

The bytes are those of :mod:`vicinal.files.container`. The document describes the model as a tree of plain values,
arrays by name, and objects of the few classes in ``CLASSES``; a file can name nothing else, so reading one can create
nothing else. An estimator decides what is written and how it is restored (``Estimator._state``, ``_restore``).

A pickle holds the same bytes, and also what a file leaves out: functions, generators, callbacks and attributes of other
types. Pickle stores those by its own rules.

Compatibility: ``container.FORMAT`` rises when older readers cannot read what is written; a reader accepts every format
up to its own. Parameters that a file does not contain have their defaults; a parameter that the class no longer has is
an error. docs/guides/model_files.md describes what users may rely on.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.files.container import MOST_EXPANSION, Content, packed, read_file, unpacked, write_file
from vicinal.files.container import ModelFileError as ModelFileError
from vicinal.runtime.inputs import check_structure

MOST_DEPTH = 64
# Bytes per text up to which texts are an array of fixed width, as NumPy has them: 16 times those of their codes.
WIDEST_TEXT = 64

# The modules of the classes that a file may name.
CLASSES = {
    "AlignedUMAP": "estimators.aligned",
    "Clusters": "estimators.clustering",
    "ComposedUMAP": "estimators.composed",
    "DensMAP": "estimators.umap",
    "KNeighborsTransformer": "estimators.kneighbors",
    "LargeVis": "estimators.tsne",
    "ParametricUMAP": "estimators.parametric",
    "ProgressiveUMAP": "estimators.progressive",
    "TSNE": "estimators.tsne",
    "UMAP": "estimators.umap",
    "FitReport": "pipeline.fitted",
    "FittedDensity": "pipeline.fitted",
    "FittedNeighbors": "pipeline.fitted",
    "Graph": "graph.graph",
    "Kernel": "layout.forces",
    "Layer": "areas.layers",
    "Neighbors": "neighbors.table",
    "Pins": "pipeline.row_options",
    "Radii": "layout.density",
    "RowOptions": "pipeline.row_options",
    "TrainingDistances": "neighbors.training_data",
    "TrainingRows": "neighbors.training_data",
}
CSR_PARTS = ("data", "indices", "indptr")
# Parameters and attributes that belong to a session or a machine, not to a model: a file leaves them out.
TRANSIENT = {"callback", "callbacks", "device", "_sklearn_output_config"}
# Errors that a malformed description may cause while objects are built from it.
MALFORMED = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def save(model: Any, path: str | os.PathLike[str], *, include_data: bool = True) -> None:
    """Write a fitted or unfitted model to ``path``; an interrupted save leaves an older file as it was."""
    write_file(path, *encoded(model, include_data=include_data))


def encoded(model: Any, *, include_data: bool = True) -> Content:
    """Return the arrays and the document of the file of a model."""
    arrays: dict[str, NDArray[Any]] = {}
    tree = _Encoder(arrays, include_data=include_data).encode(model, type(model).__name__)
    return arrays, {"model": tree}


def load(path: str | os.PathLike[str], **params: Any) -> Any:
    """Load a model from a file written by ``save``.

    Parameters
    ----------
    path : path
    **params
        Parameters that replace those of the file. Functions are not in a file and must be given here.

    See Also
    --------
    UMAP : its ``save`` writes such files.
    ModelFileError : raised for files that are not valid models.

    Examples
    --------
    >>> import tempfile, vicinal
    >>> from sklearn.datasets import load_iris
    >>> model = vicinal.UMAP(random_state=42).fit(load_iris().data)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/iris.vicinal")
    ...     loaded = vicinal.load(f"{folder}/iris.vicinal")
    >>> bool((loaded.embedding_ == model.embedding_).all())
    True
    """
    arrays, document = read_file(path)
    try:
        model = _Decoder(arrays, params, budget=MOST_EXPANSION // 2 * os.path.getsize(path)).decode(document["model"])
    except ModelFileError:
        raise
    except MALFORMED as error:
        raise ModelFileError(f"{path} does not hold a model: {type(error).__name__}: {error}") from error
    if not hasattr(model, "get_params") and type(model).__name__ != "Clusters":
        raise ModelFileError(f"{path} holds a {type(model).__name__}, not a model")
    return model


def pickled(model: Any) -> tuple[Any, ...]:
    """Return what ``__reduce__`` returns: the bytes of a file as an array, which pickle 5 and joblib need not copy."""
    arrays: dict[str, NDArray[Any]] = {}
    rest: dict[str, Any] = {}
    encoder = _Encoder(arrays, rest)
    content = b"".join(packed(arrays, {"model": encoder.root(model, type(model).__name__)}))
    return unpickled, (type(model), np.frombuffer(bytearray(content), dtype=np.uint8), rest)


def unpickled(cls: type, content: NDArray[np.uint8], rest: Mapping[str, Any]) -> Any:
    """Rebuild the model of a pickle; ``cls`` may be a subclass that the user defined."""
    arrays, document = unpacked(content)
    return _Decoder(arrays, {}, rest).root(document["model"], cls)


def _is_function(value: Any) -> bool:
    """Return whether the value is a function; a scipy.LowLevelCallable is one, although its type is a tuple."""
    named = hasattr(value, "get_params") or isinstance(value, str)
    return (callable(value) and not named) or type(value).__name__ == "LowLevelCallable"


class _Encoder:
    """Values to JSON. An array or object that occurs twice is written once.

    ``rest`` receives what a file cannot hold; without it that is an error, or left out if the reader can give it again.
    """

    def __init__(
        self, arrays: dict[str, NDArray[Any]], rest: dict[str, Any] | None = None, *, include_data: bool = True
    ) -> None:
        self.arrays = arrays
        self.rest = rest
        self.include_data = include_data
        self.names: dict[int, str] = {}
        self.kept: list[Any] = []  # an id is valid only while its object lives

    def encode(self, value: Any, where: str) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or type(value) in (bool, int, str):
            return value
        if isinstance(value, str):  # vicinal.compat.distances has names that can be called
            return str(value)
        if value is np.random:  # as a random state it means what None means: NumPy's global generator
            return None
        if type(value) is float:
            return value if np.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if type(value) in (list, tuple):
            items = [self.encode(item, f"{where}.{i}") for i, item in enumerate(value)]
            return {"tuple" if isinstance(value, tuple) else "list": items}
        if isinstance(value, dict) and all(type(key) is str for key in value):
            # In the order in which JSON is written, since an object is described where it first occurs.
            return {"dict": {key: self.encode(value[key], f"{where}.{key}") for key in sorted(value)}}
        if hasattr(value, "indptr") and hasattr(value, "tocsr"):
            parts = {name: self._array(getattr(value, name), f"{where}.{name}") for name in CSR_PARTS}
            return {"csr": parts, "shape": list(value.shape)}
        if type(value).__module__ == f"vicinal.{CLASSES.get(type(value).__name__)}":
            return self.root(value, where)
        return self._beside(value, where)

    def root(self, value: Any, where: str) -> Any:
        """Encode an object of any class: a pickle may hold any, a file only those in ``CLASSES``."""
        if id(value) in self.names:
            return {"same": self.names[id(value)]}
        self.names[id(value)] = where
        self.kept.append(value)
        if is_dataclass(value):
            params, state = {one.name: getattr(value, one.name) for one in fields(value)}, {}
        else:
            params, state = value.get_params(deep=False), value._state(self.include_data)
        return {
            "object": type(value).__name__,
            "id": where,
            "params": {
                key: self._param(key, v, f"{where}.{key}") for key, v in sorted(params.items()) if self._lasts(key, v)
            },
            "state": {key: self.encode(v, f"{where}.{key}") for key, v in sorted(state.items()) if self._lasts(key, v)},
        }

    def _lasts(self, key: str, value: Any) -> bool:
        return key not in TRANSIENT or (self.rest is not None and value is not None)

    def _param(self, key: str, value: Any, where: str) -> Any:
        """Encode a parameter; functions and generators are left for the reader to give again."""
        if key in TRANSIENT:
            return self._beside(value, where)
        if isinstance(value, np.random.RandomState):
            return None if self.rest is None else self._beside(value, where)
        if _is_function(value):
            function = {"function": getattr(value, "__qualname__", type(value).__name__)}
            return function if self.rest is None else self._beside(value, where)
        return self.encode(value, where)

    def _beside(self, value: Any, where: str) -> Any:
        if self.rest is None:
            raise ModelFileError(f"{where} is {type(value).__name__}, which a model file cannot hold")
        self.rest[where] = value
        return {"rest": where}

    def _array(self, array: NDArray[Any], where: str) -> Any:
        if array.dtype.kind in "UO":
            return self._coded(array, where)
        if array.dtype.kind not in "biuf":
            return self._beside(array, where)
        if id(array) not in self.names:
            self.names[id(array)] = where
            self.kept.append(array)
            self.arrays[where] = array
        return {"array": self.names[id(array)]}

    def _coded(self, array: NDArray[Any], where: str) -> Any:
        """Encode texts and mixed values: the distinct ones, and a code for each entry."""
        numbers: dict[tuple[type, str], int] = {}
        values: list[Any] = []
        codes = np.empty(array.size, dtype=np.int32)
        for i, item in enumerate(array.reshape(-1).tolist()):
            if not (item is None or type(item) in (bool, int, float, str)):
                return self._beside(array if self.rest is not None else item, where)
            codes[i] = numbers.setdefault((type(item), str(item)), len(values))
            if codes[i] == len(values):
                values.append(self.encode(item, where))
        return {
            "coded": values,
            "codes": self._array(codes.reshape(array.shape), where),
            "text": array.dtype.kind == "U",
        }


class _Decoder:
    """JSON to values. Arrays that are built from codes take at most ``budget`` bytes together."""

    def __init__(
        self,
        arrays: Mapping[str, NDArray[Any]],
        given: Mapping[str, Any],
        rest: Mapping[str, Any] | None = None,
        budget: float = np.inf,
    ) -> None:
        self.arrays = arrays
        self.given = given
        self.rest = rest
        self.budget = budget
        self.made: dict[str, Any] = {}

    def decode(self, tree: Any, depth: int = 0) -> Any:
        if tree is None or isinstance(tree, bool | int | float | str):
            return tree
        if depth > MOST_DEPTH or not isinstance(tree, dict):
            raise ModelFileError("the description of the model is malformed")
        if "array" in tree:
            return self.arrays[tree["array"]]
        if "same" in tree:
            return self.made[tree["same"]]
        if "rest" in tree and self.rest is not None:
            return self.rest[tree["rest"]]
        if "float" in tree:
            return float(tree["float"])
        if "list" in tree or "tuple" in tree:
            kind = list if "list" in tree else tuple
            return kind(self.decode(item, depth + 1) for item in tree[kind.__name__])
        if "dict" in tree:
            return {str(key): self.decode(item, depth + 1) for key, item in tree["dict"].items()}
        if "coded" in tree:
            return self._coded(tree, depth)
        if "csr" in tree:
            return self._csr(tree, depth)
        if "object" in tree:
            name = tree["object"]
            if name not in CLASSES:
                raise ModelFileError(f"a model file cannot hold a {name!r}")
            return self.root(tree, getattr(importlib.import_module(f"vicinal.{CLASSES[name]}"), name), depth)
        raise ModelFileError(f"the description of the model has a part of an unknown kind: {sorted(tree)[:3]}")

    def root(self, tree: dict[str, Any], cls: type, depth: int = 0) -> Any:
        """Build an object of a class that is listed, or that a pickle names."""
        params = {key: self._param(key, value, depth) for key, value in tree["params"].items()}
        made = cls(**params | (dict(self.given) if depth == 0 else {}))
        self.made[tree["id"]] = made
        if not is_dataclass(made):
            state = {key: self.decode(value, depth + 1) for key, value in tree["state"].items()}
            if self.rest is None and state:
                for name in state:  # attributes are data: none may replace a method
                    if name.startswith("__") or callable(getattr(cls, name, None)):
                        raise ModelFileError(f"a model file cannot hold an attribute {name!r}")
                made._validate_params()  # they were valid when the model was fitted
            made._restore(state)
        elif hasattr(made, "check"):
            made.check()
        return made

    def _coded(self, tree: dict[str, Any], depth: int) -> NDArray[Any]:
        """Return texts and mixed values; texts of very different lengths stay Python strings, which share memory."""
        values = np.empty(len(tree["coded"]), dtype=object)
        values[:] = [self.decode(item, depth + 1) for item in tree["coded"]]
        codes = self.decode(tree["codes"], depth + 1)
        if codes.dtype != np.int32 or codes.min(initial=0) < 0:
            raise ModelFileError("the codes of texts in a model file must be whole numbers from 0 on")
        self._spend(8 * codes.size)
        out: NDArray[Any] = values[codes]
        if not tree["text"]:
            return out
        longest = max((len(str(item)) for item in values), default=0)
        if 4 * longest > WIDEST_TEXT:
            return out
        self._spend(4 * longest * codes.size)
        return out.astype(str)

    def _spend(self, size: int) -> None:
        self.budget -= size
        if self.budget < 0:
            raise ModelFileError("the texts of the model would take far more memory than its file")

    def _csr(self, tree: dict[str, Any], depth: int) -> Any:
        from scipy.sparse import csr_matrix

        parts = [self.decode(tree["csr"][name], depth + 1) for name in CSR_PARTS]
        # SciPy does not check these types.
        if any(part.ndim != 1 for part in parts) or any(part.dtype.kind != "i" for part in parts[1:]):
            raise ModelFileError("a sparse matrix of the model is malformed")
        matrix = csr_matrix(tuple(parts), shape=tuple(tree["shape"]))
        check_structure(matrix, "a sparse matrix of the model")
        return matrix

    def _param(self, key: str, tree: Any, depth: int) -> Any:
        function = isinstance(tree, dict) and "function" in tree
        if key in self.given and (depth == 0 or function):
            return self.given[key]
        if function:
            raise ModelFileError(f"{key} was a function, {tree['function']}: give it as load(path, {key}=...)")
        return self.decode(tree, depth + 1)
