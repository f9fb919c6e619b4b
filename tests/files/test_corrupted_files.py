"""Invalid and corrupted model files are refused quickly and with memory proportional to their size."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data.make_models import FAST, iris
from scipy import sparse

import vicinal
from vicinal import ModelFileError
from vicinal.files import container

SCRIPT = Path(__file__).parents[1] / "fuzz" / "corrupted_models.py"
FILES = 1500
TERABYTE = 1 << 40


@functools.cache
def whole() -> bytes:
    """Return the bytes of a valid model file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "umap.vicinal"
        vicinal.UMAP(**FAST).fit(iris()[0]).save(path)
        return path.read_bytes()


EMBEDDING = "UMAP.map_.embedding"


@pytest.mark.nightly
@pytest.mark.requires_torch
def test_thousands_of_corrupted_files_are_refused_or_load_intact(child_environment: dict[str, str]) -> None:
    """Every file raises ModelFileError or loads intact; the script checks memory, time and open files."""
    command = [sys.executable, str(SCRIPT), "--files", str(FILES)]
    done = subprocess.run(command, env=child_environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["refused"] > 0.8 * FILES


def with_header(header: Any, data: bytes = b"") -> bytes:
    written = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(written).to_bytes(8, "little") + written + data


def with_array(**entry: Any) -> bytes:
    """Return a complete file in which the description of one array is changed."""
    content = whole()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header[EMBEDDING] |= entry
    return with_header(header, content[8 + length :])


def with_length(length: int) -> bytes:
    """Return a complete file in which the length of the header is changed."""
    return length.to_bytes(8, "little") + whole()[8:]


BROKEN: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "a header longer than the file": lambda: with_length(len(whole())),
    "a header longer than any": lambda: with_length(2**64 - 1),
    "a header of many megabytes": lambda: with_header(b" " * (container.MOST_HEADER + 1)),
    "a header of nested lists": lambda: with_header(b"[" * 1_000_000),
    "a header of nested objects": lambda: with_header(b'{"a":' * 1_000_000),
    "a header that is not an object": lambda: with_header([1, 2]),
    "a header that is not JSON": lambda: with_header(b"\x80\x04K\x01."),
    "a number of a million digits": lambda: with_header(b'{"a":' + b"9" * 1_000_000 + b"}"),
    "an array of a terabyte": lambda: with_array(shape=[TERABYTE], data_offsets=[0, 4 * TERABYTE]),
    "a shape of a terabyte": lambda: with_array(shape=[TERABYTE, TERABYTE]),
    "a shape with a zero and a huge dimension": lambda: with_array(shape=[0, 2**61], data_offsets=[0, 0]),
    "a shape of texts": lambda: with_array(shape=["60", 2]),
    "a negative shape": lambda: with_array(shape=[-60, -2]),
    "a thousand dimensions": lambda: with_array(shape=[60, 2, *[1] * 1000]),
    "offsets beyond the end": lambda: with_array(data_offsets=[10**6, 10**6 + 480]),
    "offsets that overlap": lambda: with_array(data_offsets=[0, 480]),
    "offsets in reverse order": lambda: with_array(data_offsets=[480, 0]),
    "another type": lambda: with_array(dtype="I32"),
    "an unknown type": lambda: with_array(dtype="BF16"),
    "a type that is a list": lambda: with_array(dtype=["F32"]),
    "an additional field": lambda: with_array(code="import os"),
    "bytes at the end": lambda: whole() + b"x",
    "metadata that are not texts": lambda: with_header({"__metadata__": {"format": 1}}),
    "no metadata": lambda: with_header({}),
}


def test_whole_file_loads(tmp_path: Path) -> None:
    """The changes above are the reason why the changed files are refused."""
    path = tmp_path / "model"
    for content in (whole(), with_array()):
        path.write_bytes(content)
        assert vicinal.load(path).embedding_.shape == (60, 2)


@pytest.mark.parametrize("name", BROKEN)
def test_invalid_file_is_refused_with_little_memory(name: str, tmp_path: Path) -> None:
    content = BROKEN[name]()
    path = tmp_path / "model"
    path.write_bytes(content)
    opened = set(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else set()
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match="model"):
            vicinal.load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(content) + 1_000_000
    assert not opened or set(os.listdir("/proc/self/fd")) == opened


@pytest.mark.parametrize("number", [container.FORMAT + 1, 999_999_999])
def test_newer_format_asks_for_an_update(number: int, tmp_path: Path) -> None:
    path = tmp_path / "model"
    content = whole()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["__metadata__"]["format"] = f"vicinal {number}"
    path.write_bytes(with_header(header, content[8 + length :]))
    with pytest.raises(ModelFileError, match="update vicinal"):
        vicinal.load(path)


def test_sparse_matrix_with_decreasing_row_pointers_is_refused(tmp_path: Path) -> None:
    """SciPy accepts row pointers that overflowed and would then write outside of its arrays."""
    vicinal.UMAP(**FAST).fit(sparse.csr_matrix(iris()[0])).save(tmp_path / "whole")
    arrays, document = container.read_file(tmp_path / "whole")
    for pointers in (arrays["UMAP.map_.data.rows.indptr"].astype(np.int8), np.array([0, *[3] * 59, 0])):
        container.write_file(tmp_path / "model", arrays | {"UMAP.map_.data.rows.indptr": pointers}, document)
        with pytest.raises(ModelFileError, match="indptr"):
            vicinal.load(tmp_path / "model")


@pytest.mark.parametrize("made", ["folder", "pipe"])
def test_directory_and_pipe_are_refused_without_waiting(made: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.mkdir() if made == "folder" else os.mkfifo(path)
    with pytest.raises(FileNotFoundError):
        vicinal.load(path)


def test_model_with_too_large_header_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="up to"):
        vicinal.UMAP(metric_kwds={"name": "x" * container.MOST_HEADER}).save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
