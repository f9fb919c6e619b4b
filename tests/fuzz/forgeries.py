"""Values that an attacker would write into a valid file, and sparse matrices whose arrays contradict each other."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

NUMBERS = (
    0, 1, -1, 2, 7, 255, 256, 1024, 65_535, 10**6, 2**24, 2**31 - 1, 2**31, 2**32, 2**52, 2**62, 2**63 - 1, 2**63,
    2**64, -(2**31), -(2**63), 10**30,
)  # fmt: skip
FLOATS = (0.0, -0.0, -1.0, 0.5, 1e-45, 1e-300, 1e15, 1e38, 1e308, -1e308)
SPECIAL = ({"float": "nan"}, {"float": "inf"}, {"float": "-inf"})
TEXTS = ("", "x", "x" * 100_000, "euclidean", "precomputed", "cosine", "random", "\ud800", "None")
LENGTHS = (0, 1, 3, 10**5, 4 * 10**7, 6 * 10**8, 2**40)


def forged_document(rng: random.Random, document: dict[str, Any]) -> dict[str, Any]:
    """Replace a value of the description by another one of the same kind, or of any."""
    leaves: list[tuple[Any, Any]] = []
    parents: list[Any] = [document["model"]]
    for parent in parents:
        items = parent.items() if isinstance(parent, dict) else enumerate(parent)
        for key, value in items:
            (parents if isinstance(value, dict | list) else leaves).append(
                value if isinstance(value, dict | list) else (parent, key)
            )
    parent, key = rng.choice(leaves)
    value = parent[key]
    if rng.random() < 0.1:
        parent[key] = rng.choice(
            (None, True, [], {}, {"list": []}, {"coded": ["x" * 10**5], "codes": None, "text": True})
        )
    elif isinstance(value, bool) or value is None:
        parent[key] = rng.choice((*NUMBERS, *FLOATS, not value))
    elif isinstance(value, int):
        parent[key] = rng.choice((*NUMBERS, value + 1, value - 1, 2 * value, -value))
    elif isinstance(value, float):
        parent[key] = rng.choice((*FLOATS, *SPECIAL, *NUMBERS))
    else:
        other, name = rng.choice(leaves)
        parent[key] = rng.choice((*TEXTS, other[name]))
    return document


def forged_arrays(rng: random.Random, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Change one array: some of its values, its shape or its type; or exchange two."""
    if not arrays:
        return arrays
    name = rng.choice(sorted(arrays))
    array = arrays[name]
    ways: list[Callable[[], NDArray[Any]]] = [
        lambda: _with_values(rng, array),
        lambda: _with_values(rng, array),
        lambda: _with_values(rng, array),
        lambda: arrays[rng.choice(sorted(arrays))],
        lambda: array[: len(array) // 2] if array.ndim else array,
        lambda: np.concatenate([array, array]) if array.ndim else array,
        lambda: np.empty((rng.choice(LENGTHS), 0), array.dtype),
        lambda: np.empty((0, rng.choice(LENGTHS)), array.dtype),
        lambda: array.reshape(-1),
        lambda: np.ascontiguousarray(array.T),
        lambda: _converted(rng, array),
        lambda: np.sort(array.reshape(-1))[::-1].reshape(array.shape).copy(),
    ]
    return arrays | {name: rng.choice(ways)()}


def _with_values(rng: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    """Replace one value, a few or all by values at the limits of the type."""
    out = array.copy()
    flat = out.reshape(-1)
    if not flat.size:
        return out
    if out.dtype.kind == "b":
        flat[rng.randrange(flat.size)] ^= True
        return out
    count = rng.choice((1, 1, 1, 3, flat.size))
    where = np.array([rng.randrange(flat.size) for _ in range(count)])
    if out.dtype.kind == "f":
        values = [rng.choice((np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-45, 3e38, -3e38)) for _ in range(count)]
    else:
        info = np.iinfo(out.dtype)
        near = [int(flat[at]) + rng.choice((-1, 1)) for at in where]
        limits = (info.min, info.max, 0, 1, flat.size, flat.size - 1, -1 if info.min < 0 else 2)
        values = [rng.choice((*limits, one)) for one in near]
        values = [min(max(value, info.min), info.max) for value in values]
    flat[where] = values
    return out


def _converted(rng: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        return array.astype(rng.choice((np.int8, np.int32, np.int64, np.uint64, np.float32, np.float64, np.bool_)))


def random_matrix(rng: random.Random) -> Any:
    """Return a small sparse matrix of any format."""
    kind = rng.choice(("csr", "csr", "csr", "csc", "coo", "bsr", "dok", "lil", "dia"))
    draw = np.random.default_rng(rng.randrange(2**32))
    drawn = sparse.random(40, 40, density=0.15, dtype=np.float32, random_state=draw)
    return sparse.csr_array(drawn).asformat(kind)


def forged_matrix(rng: random.Random, X: Any) -> Any:
    """Change the arrays of a matrix behind SciPy's back, once or twice."""
    for _ in range(rng.choice((1, 1, 2))):
        if X.format in ("csr", "csc", "bsr"):
            part = rng.choice(("indptr", "indptr", "indices", "data"))
            setattr(X, part, _forged_part(rng, getattr(X, part)))
        elif X.format == "coo":
            coords = list(X.coords)
            at = rng.randrange(2)
            coords[at] = _forged_part(rng, coords[at])
            X.coords = tuple(coords)
        elif X.format == "dok":
            X._dict[rng.choice((-1, 0, 39, 40, 2**31, 2**62, -(2**40))), rng.choice((-7, 0, 40, 10**9))] = np.float32(1)
        elif X.format == "lil":
            lists = rng.choice((X.rows, X.data))[rng.randrange(40)]
            if rng.random() < 0.7:
                lists.append(rng.choice((-1, 40, 10**9, 1)))
            else:
                lists.clear()
        else:
            part = rng.choice(("offsets", "data"))
            setattr(X, part, _forged_part(rng, getattr(X, part)))
    return X


def _forged_part(rng: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    ways: list[Callable[[], NDArray[Any]]] = [
        lambda: _with_values(rng, array),
        lambda: _with_values(rng, array),
        lambda: array[: rng.randrange(len(array) + 1)].copy(),
        lambda: np.concatenate([array, array]),
        lambda: _converted(rng, array),
        lambda: array[::-1].copy(),
        lambda: array.reshape(1, -1),
    ]
    return rng.choice(ways)()
