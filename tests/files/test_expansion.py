"""Compressed tables that hold much more than their size are refused before they are read."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import polars as pl
import pytest

from vicinal.files.batches import read_batches
from vicinal.files.data_table import ColumnChoice
from vicinal.files.expansion import LIMIT, arrow_size, free_memory
from vicinal.files.readers import ReadError, read_table

N = 250_000


def write_h5ad(path: Path, sparse: bool = False, obs: bool = False) -> None:
    with h5py.File(path, "w") as file:
        if sparse:
            group = file.create_group("X")
            group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", (N, 4)
            for name, values in (("data", [1.0]), ("indices", [0]), ("indptr", [0, *[1] * N])):
                group.create_dataset(name, data=values, compression="gzip")
        else:
            shape = (3, 2) if obs else (N, 4)
            file.create_dataset("X", shape=shape, dtype="f8", chunks=True, compression="gzip")
        if obs:
            file.create_dataset("obs/many", shape=(4 * N,), dtype="f8", chunks=True, compression="gzip")


def write_csv(path: Path) -> None:
    path.write_bytes(gzip.compress(b"a,b\n" + b"0,0\n" * 4 * N))


def frame(kind: str) -> pl.DataFrame:
    if kind == "numbers":
        return pl.DataFrame({"a": np.zeros(N), "b": np.zeros(N), "c": np.zeros(N), "d": np.zeros(N)})
    if kind == "vectors":
        return pl.DataFrame({"v": [[0.0] * N] * 4})
    if kind == "repeated":  # files may hold this text once
        return pl.DataFrame({"a": np.arange(5000) % 7.0, "text": ["x" * 1600] * 5000})
    return pl.DataFrame({"a": [1.0, 2.0], "text": ["x" * 8 * N, "y"]})


# Each file has fewer than 100,000 bytes and takes 8 MB in memory.
BOMBS: dict[str, Callable[[Path], object]] = {
    "numbers.parquet": lambda path: frame("numbers").write_parquet(path),
    "vectors.parquet": lambda path: frame("vectors").write_parquet(path),
    "text.parquet": lambda path: frame("text").write_parquet(path),
    "repeated.parquet": lambda path: frame("repeated").write_parquet(path),
    "repeated.feather": lambda path: frame("repeated").write_ipc(path, compression="zstd"),
    "text.feather": lambda path: frame("text").write_ipc(path, compression="lz4"),
    "vectors.feather": lambda path: frame("vectors").write_ipc(path, compression="zstd"),
    "numbers.feather": lambda path: frame("numbers").write_ipc(path, compression="zstd"),
    "rows.csv.gz": write_csv,
    "rows.jsonl.gz": lambda path: path.write_bytes(gzip.compress(b'{"a": 0, "b": 1}\n' * 2 * N)),
    "rows.npz": lambda path: np.savez_compressed(path, X=np.zeros((N, 4))),
    "dense.h5ad": write_h5ad,
    "sparse.h5ad": lambda path: write_h5ad(path, sparse=True),
    "obs.h5ad": lambda path: write_h5ad(path, obs=True),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_file_that_expands_beyond_the_limit_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    BOMBS[name](path)
    assert path.stat().st_size < 100_000
    monkeypatch.setenv(LIMIT, "1.5MB")
    with pytest.raises(ReadError, match=f"{name} takes .* than {LIMIT}=1.5MB; ") as raised:
        read_table(path)
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == [path]
    if name != "obs.h5ad":  # its column has more rows than the matrix
        monkeypatch.setenv(LIMIT, "1GB")
        assert read_table(path, ColumnChoice(whole=False)).X.size > 0  # its columns are constant


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
@pytest.mark.parametrize("kind", ["numbers", "vectors", "text", "dictionary"])
def test_the_parts_of_a_feather_file_state_their_size(kind: str, compression: Any, tmp_path: Path) -> None:
    texts = pl.Series(["a longer text than twelve letters", "another"] * N, dtype=pl.Categorical)
    rows = pl.DataFrame({"a": texts}) if kind == "dictionary" else frame(kind)
    rows.write_ipc(tmp_path / "rows.feather", compression=compression)
    assert arrow_size(tmp_path / "rows.feather") == pytest.approx(rows.estimated_size(), rel=0.05)


@pytest.mark.parametrize("claimed", [4, -6])
def test_parquet_page_that_claims_other_values_than_its_column_is_refused(claimed: int, tmp_path: Path) -> None:
    """Polars ends the process when it cannot allocate what a page claims."""
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"a": [1, 2, 3], "text": ["x", "y", None]}).write_parquet(path)
    header = b"\x2c\x15"  # the structure of a data page in its header, and the first number of it
    assert header + b"\x06" in path.read_bytes()
    signed = (claimed << 1 ^ claimed >> 31).to_bytes(1)
    path.write_bytes(path.read_bytes().replace(header + b"\x06", header + signed))
    with pytest.raises(ReadError, match=r"rows\.parquet is not a valid parquet file \(a page claims more values"):
        read_table(path)


def test_batches_are_not_limited_by_the_size_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT, "1kB")
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"0,1\n" * 1000))
    assert sum(len(table.X) for table in read_batches(tmp_path / "rows.csv.gz", 300)) == 1000


def test_standard_input_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT, "1kB")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n" + b"0,1\n" * 1000)))
    with pytest.raises(ReadError, match=r"^standard input takes more memory than"):
        read_table("-")


def test_an_invalid_limit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    monkeypatch.setenv(LIMIT, "much")
    with pytest.raises(ReadError, match=f"{LIMIT} must be a size such as 8GB, got 'much'"):
        read_table(tmp_path / "rows.csv")


# polars is imported and has its threads before the memory is limited
CHILD = """
import resource, sys
from pathlib import Path
import polars as pl
from vicinal.files.expansion import free_memory
from vicinal.files.data_table import ColumnChoice
from vicinal.files.readers import ReadError, read_table
path = Path(sys.argv[1])
pl.scan_parquet(path).select(pl.len()).collect()
held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + (600 << 20), held + (600 << 20)))
assert free_memory() <= 472 << 20
try:
    read_table(path)
except ReadError as error:
    print(error)
"""


@pytest.mark.requires_proc
def test_a_limit_on_the_memory_of_the_process_counts(tmp_path: Path, child_environment: dict[str, str]) -> None:
    """The column would fit, but not its copies, without which polars ends the process."""
    path = tmp_path / "numbers.parquet"
    pl.select(a=pl.repeat(0.0, 40_000_000)).write_parquet(path)
    command = [sys.executable, "-c", CHILD, str(path)]
    done = subprocess.run(command, env=child_environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "takes about 960 MB of memory, more than the free" in done.stdout
    assert 0 < free_memory() < float("inf")
