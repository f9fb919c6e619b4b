"""Values that an attacker would write into valid files and messages, and sparse matrices that contradict themselves."""

from __future__ import annotations

import copy
import csv
import io
import json
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


MESSAGES: tuple[dict[str, Any], ...] = (
    {"type": "drawn"},
    {"type": "pause"},
    {"type": "resume"},
    {"type": "select", "rows": [0, 3]},
    {"type": "neighbors", "row": 3},
    {"type": "rerun", "parameters": {"n_neighbors": 7}},
    {"type": "rerun", "parameters": {"n_epochs": 3, "min_dist": 0.5}},
)
VALUES: tuple[Any, ...] = (
    None, True, [], {}, [[]], "rows", "n_epochs", "\ud800", "x" * 10_000, *NUMBERS, *FLOATS, float("nan"), float("inf"),
    -float("inf"), 10**400, [-1], [0.5], [10**400], [True], list(range(1000)), {"n_epochs": [1]}, {"__class__": 1},
)  # fmt: skip


def forged_message(rng: random.Random) -> str | None:
    """Return a message of the page with values, keys or characters replaced; None stands for bytes without text."""
    message: dict[str, Any] = copy.deepcopy(rng.choice(MESSAGES))
    for _ in range(rng.choice((1, 1, 2, 3))):
        part = message
        inner = message.get("parameters")
        if isinstance(inner, dict) and inner and rng.random() < 0.5:
            part = inner
        key = rng.choice(sorted(part)) if part and rng.random() < 0.8 else rng.choice(TEXTS)
        if rng.random() < 0.15:
            part.pop(key, None)
        else:
            part[key] = rng.choice(VALUES)
    text = json.dumps(message)
    if rng.random() < 0.3:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(("", "{", "[" * 5000, '"', "1" * 5000, "\0", "\ud800")) + text[at + 1 :]
    return None if rng.random() < 0.02 else text


CELLS: tuple[str, ...] = (
    "", "1", "-1.5", "1e999", "-1e39", "nan", "inf", "NA", "1,5", "=1+1", "@x", "\ud7ff", "x" * 1000, "\x00", '"', "'",
    "\n", "\r", "\t", "true", "2020-01-01", "0x10", "1_000", "\u0661", " 3 ", "9" * 400,
)  # fmt: skip


def forged_table(rng: random.Random) -> tuple[str, bytes]:
    """Return the suffix and the content of a valid file with unusual names, types, shapes and values."""
    import polars as pl

    n, width = rng.choice((0, 1, 2, 3, 30)), rng.choice((0, 1, 2, 5, 300))
    names = [rng.choice((f"c{a}", f"c{a}", rng.choice(CELLS) + str(a))) for a in range(width)]
    if names and rng.random() < 0.1:
        names[0] = "x" * 140_000
    suffix = rng.choice((".csv", ".tsv", ".jsonl", ".parquet", ".feather", ".npy", ".npz"))
    if suffix in (".csv", ".tsv"):
        text = io.StringIO()
        writer = csv.writer(text, delimiter=rng.choice(",\t;|"), lineterminator=rng.choice(("\n", "\r\n", "\r")))
        writer.writerow(names)
        for _ in range(n):
            cells = [rng.choice(("1", "2.5", rng.choice(CELLS))) for _ in range(width + rng.choice((0, 0, 0, 1, -1)))]
            writer.writerow(cells)
        return suffix, text.getvalue().encode(rng.choice(("utf-8", "utf-8-sig", "utf-16")), "surrogatepass")
    if suffix == ".jsonl":
        rows = [{name: rng.choice(VALUES + CELLS) for name in names} for _ in range(n)]
        return suffix, "\n".join(map(json.dumps, rows)).encode()
    out = io.BytesIO()
    if suffix in (".npy", ".npz"):
        shape = tuple(rng.choice((0, 1, 3, 7)) for _ in range(rng.choice((0, 1, 2, 2, 2, 3))))
        kind = rng.choice(("f4", ">f8", "f2", "i1", "u8", "?", "c16", "S3", "U2", "M8[s]", "m8[D]", "V4"))
        made = rng.randbytes(int(np.prod(shape)) * np.dtype(kind).itemsize)
        values = np.frombuffer(made, kind).reshape(shape)
        if suffix == ".npy":
            np.save(out, values)
        else:
            np.savez(out, **{name.replace("\x00", "")[:50] or "X": values for name in [*names[:3], "X"]})
        return suffix, out.getvalue()
    makers: tuple[Callable[[], Any], ...] = (
        lambda: pl.Series(rng.choices((1.0, -0.0, float("nan"), float("inf"), 1e39, None), k=n), dtype=pl.Float64),
        lambda: pl.Series(rng.choices((0, 1, 2**31 - 1, None), k=n), dtype=rng.choice((pl.Int32, pl.UInt64, pl.Int64))),
        lambda: pl.Series(rng.choices((*CELLS, None), k=n), dtype=rng.choice((pl.String, pl.Categorical))),
        lambda: pl.Series([[1.0] * rng.choice((0, 1, 2)) for _ in range(n)], dtype=pl.List(pl.Float64)),
        lambda: pl.Series([{"a": 1}] * n, dtype=pl.Struct({"a": pl.Int64})),
        lambda: pl.Series([b"\xff"] * n, dtype=pl.Binary),
        lambda: pl.Series([0] * n, dtype=pl.Int32).cast(rng.choice((pl.Date, pl.Boolean, pl.Decimal(9, 2)))),
        lambda: pl.Series([None] * n, dtype=pl.Null),
    )
    frame = pl.DataFrame({name: rng.choice(makers)() for name in names})
    (frame.write_parquet if suffix == ".parquet" else frame.write_ipc)(out)
    return suffix, out.getvalue()
