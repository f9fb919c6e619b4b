"""Models as files: one file of plain arrays and a JSON document, which to read runs nothing.

The container is safetensors: a header of names, types and shapes, then raw bytes. The JSON document in its metadata
describes the model as a tree of plain values, arrays by name, and objects of the few classes in ``CLASSES``; nothing
else can be named in a file, so nothing else can be made by reading one. A checksum over the arrays and the document
refuses files that were cut off or changed. Files are written beside their target and renamed into place.

Compatibility: ``FORMAT`` rises when older readers cannot read what is written; a reader takes every format up to its
own. Parameters that a file does not know keep their defaults, those it knows and the class no longer has are an error.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT = 1
MOST_DEPTH = 64

# Where the classes live that a file may name.
CLASSES = {
    "AlignedUMAP": "estimators.aligned",
    "ComposedUMAP": "estimators.composed",
    "DensMAP": "estimators.densmap",
    "DistanceSource": "source",
    "Given": "given",
    "Graph": "graph",
    "Kernel": "kernel",
    "KNeighborsTransformer": "estimators.kneighbors",
    "LargeVis": "estimators.largevis",
    "Neighbors": "neighbors",
    "Pins": "given",
    "Radii": "density",
    "RowSource": "source",
    "TSNE": "estimators.tsne",
    "UMAP": "estimators.umap",
}
CSR_PARTS = ("data", "indices", "indptr")
# Attributes that belong to a session, not to a model.
TRANSIENT = {"callback", "callbacks", "_sklearn_output_config"}


class ModelFileError(ValueError):
    """A file is no model, or not a whole one, or a model cannot be written to a file."""


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Writes a fitted or unfitted model to ``path``; an interrupted save leaves an older file as it was."""
    arrays: dict[str, NDArray[Any]] = {}
    tree = _Encoder(arrays).encode(model, type(model).__name__)
    write_file(path, arrays, {"model": tree})


def load(path: str | os.PathLike[str], **params: Any) -> Any:
    """The model in a file. Parameters given by name replace the file's; functions have to be given so."""
    arrays, document = read_file(path)
    if "parametric" in document:
        from vicinal.estimators.parametric import ParametricUMAP

        return ParametricUMAP.load(path, **params)
    try:
        model = _Decoder(arrays, params).decode(document["model"])
    except ModelFileError:
        raise
    except (AttributeError, KeyError, IndexError, RecursionError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} does not hold a model: {type(error).__name__}: {error}") from error
    if not hasattr(model, "get_params"):
        raise ModelFileError(f"{path} holds a {type(model).__name__}, not a model")
    return model


def write_file(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], document: Mapping[str, Any]) -> None:
    """Arrays and a document, checksummed, at once or not at all."""
    from safetensors.numpy import save as to_bytes

    from vicinal import __version__

    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    text = json.dumps(document, sort_keys=True, allow_nan=False)
    metadata = {
        "format": f"vicinal {FORMAT}",
        "version": __version__,
        "document": text,
        "sha256": _checksum(plain, text),
    }
    target = Path(path)
    content = to_bytes(plain, metadata=metadata)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o644)
            os.replace(file.name, target)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def read_file(path: str | os.PathLike[str]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the document of a file that is whole."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{path} is not a model file, or not a whole one: {error}") from error
    kind, _, number = metadata.get("format", "").partition(" ")
    if kind != "vicinal" or not number.isdecimal():
        raise ModelFileError(f"{path} is not a model file of vicinal")
    if int(number) > FORMAT:
        raise ModelFileError(f"{path} has format {number}; this version reads up to {FORMAT}: please update vicinal")
    text = metadata.get("document", "")
    if metadata.get("sha256") != _checksum(arrays, text):
        raise ModelFileError(f"{path} was changed after it was written: its checksum does not match")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} does not describe a model: {error}") from error
    if not isinstance(document, dict):
        raise ModelFileError(f"{path} does not describe a model")
    return arrays, document


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a file holds, without making a model of it: class, parameters, version, shapes of its arrays."""
    arrays, document = read_file(path)
    model = document.get("model", {})
    if "parametric" in document:
        model = {"object": "ParametricUMAP", "params": document["parametric"].get("parameters", {})}
    return {
        "class": model.get("object"),
        "parameters": model.get("params", {}),
        "arrays": {name: (str(array.dtype), array.shape) for name, array in sorted(arrays.items())},
        "bytes": Path(path).stat().st_size,
    }


def _checksum(arrays: Mapping[str, NDArray[Any]], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"|{name}|{array.dtype.str}|{array.shape}|".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


class _Encoder:
    """Values to JSON. An array or object that is met twice is written once."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.arrays = arrays
        self.names: dict[int, str] = {}
        self.kept: list[Any] = []  # ids are only good while the objects live

    def encode(self, value: Any, where: str) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, int | bool):
            return value
        if isinstance(value, float):
            return value if np.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, list | tuple):
            items = [self.encode(item, f"{where}.{i}") for i, item in enumerate(value)]
            return {"tuple" if isinstance(value, tuple) else "list": items}
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"dict": {key: self.encode(item, f"{where}.{key}") for key, item in value.items()}}
        if hasattr(value, "indptr") and hasattr(value, "tocsr"):
            parts = {name: self._array(getattr(value, name), f"{where}.{name}") for name in CSR_PARTS}
            return {"csr": parts, "shape": list(value.shape)}
        if type(value).__name__ in CLASSES:
            return self._object(value, where)
        raise ModelFileError(f"{where} is {type(value).__name__}, which a model file cannot hold")

    def _array(self, array: NDArray[Any], where: str) -> Any:
        if array.dtype.kind not in "biuf":
            return {"objects": [self.encode(item, where) for item in array.reshape(-1)], "shape": list(array.shape)}
        if id(array) not in self.names:
            self.names[id(array)] = where
            self.kept.append(array)
            self.arrays[where] = array
        return {"array": self.names[id(array)]}

    def _object(self, value: Any, where: str) -> Any:
        if id(value) in self.names:
            return {"same": self.names[id(value)]}
        self.names[id(value)] = where
        self.kept.append(value)
        out: dict[str, Any] = {"object": type(value).__name__, "id": where}
        if is_dataclass(value):
            params, state = {one.name: getattr(value, one.name) for one in fields(value)}, {}
        else:
            params = value.get_params(deep=False)
            state = {key: v for key, v in vars(value).items() if key not in params and key not in TRANSIENT}
        out["params"] = {key: self._param(v, f"{where}.{key}") for key, v in params.items() if key not in TRANSIENT}
        out["state"] = {key: self.encode(v, f"{where}.{key}") for key, v in state.items()}
        return out

    def _param(self, value: Any, where: str) -> Any:
        """Functions and generators are left for the reader to give again."""
        if isinstance(value, np.random.RandomState):
            return None
        if callable(value) and not hasattr(value, "get_params"):
            return {"function": getattr(value, "__qualname__", type(value).__name__)}
        return self.encode(value, where)


class _Decoder:
    def __init__(self, arrays: Mapping[str, NDArray[Any]], given: Mapping[str, Any]) -> None:
        self.arrays = arrays
        self.given = given
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
        if "float" in tree:
            return float(tree["float"])
        if "list" in tree:
            return [self.decode(item, depth + 1) for item in tree["list"]]
        if "tuple" in tree:
            return tuple(self.decode(item, depth + 1) for item in tree["tuple"])
        if "dict" in tree:
            return {str(key): self.decode(item, depth + 1) for key, item in tree["dict"].items()}
        if "objects" in tree:
            out = np.empty(len(tree["objects"]), dtype=object)
            out[:] = [self.decode(item, depth + 1) for item in tree["objects"]]
            out = out.reshape(tree["shape"])
            return out.astype(str) if out.size and all(isinstance(item, str) for item in out.flat) else out
        if "csr" in tree:
            return self._csr(tree, depth)
        if "object" in tree:
            return self._object(tree, depth)
        raise ModelFileError(f"the description of the model has a part of an unknown kind: {sorted(tree)[:3]}")

    def _csr(self, tree: dict[str, Any], depth: int) -> Any:
        from scipy.sparse import csr_matrix

        parts = [self.decode(tree["csr"][name], depth + 1) for name in CSR_PARTS]
        matrix = csr_matrix(tuple(parts), shape=tuple(tree["shape"]))
        matrix.check_format(full_check=True)
        return matrix

    def _object(self, tree: dict[str, Any], depth: int) -> Any:
        name = tree["object"]
        if name not in CLASSES:
            raise ModelFileError(f"a model file cannot hold a {name!r}")
        cls = getattr(importlib.import_module(f"vicinal.{CLASSES[name]}"), name)
        params = {key: self._param(key, value, depth) for key, value in tree["params"].items()}
        made = cls(**params | (dict(self.given) if depth == 0 else {}))
        for key, value in tree["state"].items():
            setattr(made, key, self.decode(value, depth + 1))
        if hasattr(made, "check"):
            made.check()
        self.made[tree["id"]] = made
        return made

    def _param(self, key: str, tree: Any, depth: int) -> Any:
        function = isinstance(tree, dict) and "function" in tree
        if key in self.given and (depth == 0 or function):
            return self.given[key]
        if function:
            raise ModelFileError(f"{key} was a function, {tree['function']}: give it as load(path, {key}=...)")
        return self.decode(tree, depth + 1)
