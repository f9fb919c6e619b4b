"""The fuzzed readers, each with seed files and the exceptions that it may raise."""

from __future__ import annotations

import io
import os
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from data.make_models import MODELS, iris, models

import vicinal
from vicinal.files.readers import ReadError, read_table
from vicinal.runtime.inputs import ROW_TYPES

ROWS = [[1.0, 2.5, -3.0], [0.0, 1e30, 4.0], [5.5, 1e-30, 6.0]]
FOLDER = Path(tempfile.mkdtemp(prefix="vicinal-fuzz-"))


@dataclass(frozen=True)
class Target:
    """``feed`` reads the bytes of a file; any exception that it does not handle is a failure.

    ``endless`` names a library that is known to loop forever on some corrupted files, which is not a failure of ours.
    """

    seeds: Callable[[], list[bytes]]
    feed: Callable[[bytes], None]
    endless: str = ""


def _model(content: bytes) -> None:
    path = FOLDER / f"{os.getpid()}.vicinal"
    path.write_bytes(content)
    with suppress(vicinal.ModelFileError):
        vicinal.load(path)


def _models() -> list[bytes]:
    """Return small model files of all releases and of this version."""
    present = FOLDER / "present"
    present.mkdir(exist_ok=True)
    for name, model in models(iris()[0]).items():
        model.save(present / f"{name}.vicinal")
    files = [*sorted(MODELS.glob("*/*.vicinal")), *sorted(present.iterdir())]
    return [file.read_bytes() for file in files if file.stat().st_size < 100_000]


def _table(suffix: str) -> Callable[[bytes], None]:
    def feed(content: bytes) -> None:
        path = FOLDER / f"{os.getpid()}{suffix}"
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                table = read_table(path)
            except ReadError as error:
                if "\n" in str(error):
                    raise AssertionError("the message has more than one line") from error
                return
        assert table.X.ndim == 2
        assert table.X.dtype in ROW_TYPES
        assert np.isfinite(table.X).all()
        assert len(table.feature_names) == table.X.shape[1]

    return feed


def _delimited(separator: str) -> list[bytes]:
    numbers = "\n".join(separator.join(map(str, row)) for row in ROWS)
    header = separator.join(["a", '"b"', "c"])
    words = separator.join(["x", "1", "NA"])
    texts = (numbers, f"{header}\n{numbers}\n", f"{header}\r\n{words}\r\n", "\ufeff1\n2\n")
    return [text.encode() for text in texts]


def _frames(write: str) -> list[bytes]:
    import polars as pl

    frame = pl.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1, 2, 3], "label": ["x", "y", None]})
    out = io.BytesIO()
    getattr(frame, write)(out)
    return [out.getvalue()]


def _arrays() -> list[bytes]:
    made = []
    rows = np.array(ROWS)
    for array in (rows, np.asfortranarray(rows, dtype=np.float32), np.arange(6, dtype=np.int8).reshape(2, 3)):
        out = io.BytesIO()
        np.save(out, array)
        made.append(out.getvalue())
    return made


def _archives() -> list[bytes]:
    out, small = io.BytesIO(), io.BytesIO()
    np.savez(out, X=np.array(ROWS), label=np.array(["x", "y", "z"]))
    np.savez_compressed(small, X=np.array(ROWS))
    return [out.getvalue(), small.getvalue()]


def _annotated() -> list[bytes]:
    import h5py

    made = []
    for compressed in (False, True):
        out = io.BytesIO()
        with h5py.File(out, "w") as file:
            if compressed:
                group = file.create_group("X")
                group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", (3, 3)
                for name, values in (("data", [1.0, 2.0]), ("indices", [0, 2]), ("indptr", [0, 1, 1, 2])):
                    group[name] = values
            else:
                file["X"] = np.array(ROWS, dtype=np.float32)
            obs = file.create_group("obs")
            obs["kind/codes"], obs["kind/categories"] = np.array([0, 1, -1], dtype=np.int8), np.array([b"a", b"b"])
        made.append(out.getvalue())
    return made


TARGETS: dict[str, Target] = {
    "model": Target(_models, _model),
    "csv": Target(lambda: _delimited(","), _table(".csv")),
    "tsv": Target(lambda: _delimited("\t"), _table(".tsv")),
    "jsonl": Target(lambda: [*_frames("write_ndjson"), b'{"a": 1, "b": [1, 2]}\n{"a": null}\n'], _table(".jsonl")),
    "npy": Target(_arrays, _table(".npy")),
    "npz": Target(_archives, _table(".npz")),
    "parquet": Target(lambda: _frames("write_parquet"), _table(".parquet")),
    "feather": Target(lambda: _frames("write_ipc"), _table(".feather")),
    "h5ad": Target(_annotated, _table(".h5ad"), "HDF5's heap of variable-length texts"),
}
