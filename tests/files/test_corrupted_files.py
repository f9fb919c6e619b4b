"""Invalid and corrupted model files are refused quickly and with memory proportional to their size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from data.make_models import MODELS

import vicinal
from vicinal import ModelFileError
from vicinal.files import container

SCRIPT = Path(__file__).parents[1] / "fuzz" / "corrupted_models.py"
FILES = os.environ.get("VICINAL_CORRUPTED_FILES", "1500")
WHOLE = (MODELS / vicinal.__version__ / "umap.vicinal").read_bytes()
TERABYTE = 1 << 40


def test_thousands_of_corrupted_files_are_refused_or_load_intact(child_environment: dict[str, str]) -> None:
    """Every file raises ModelFileError or loads intact; the script checks memory, time and open files."""
    command = [sys.executable, str(SCRIPT), "--files", FILES]
    done = subprocess.run(command, env=child_environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["refused"] > 0.8 * int(FILES)


def with_header(header: Any, data: bytes = b"") -> bytes:
    written = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(written).to_bytes(8, "little") + written + data


def with_array(**entry: Any) -> bytes:
    """Return a complete file in which the description of one array is changed."""
    length = int.from_bytes(WHOLE[:8], "little")
    header = json.loads(WHOLE[8 : 8 + length])
    header["UMAP.embedding_"] |= entry
    return with_header(header, WHOLE[8 + length :])


BROKEN: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "a header longer than the file": lambda: (len(WHOLE)).to_bytes(8, "little") + WHOLE[8:],
    "a header longer than any": lambda: (2**64 - 1).to_bytes(8, "little") + WHOLE[8:],
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
    "offsets beyond the end": lambda: with_array(data_offsets=[len(WHOLE), len(WHOLE) + 480]),
    "offsets that overlap": lambda: with_array(data_offsets=[0, 480]),
    "offsets in reverse order": lambda: with_array(data_offsets=[480, 0]),
    "another type": lambda: with_array(dtype="I32"),
    "an unknown type": lambda: with_array(dtype="BF16"),
    "a type that is a list": lambda: with_array(dtype=["F32"]),
    "an additional field": lambda: with_array(code="import os"),
    "bytes at the end": lambda: WHOLE + b"x",
    "metadata that are not texts": lambda: with_header({"__metadata__": {"format": 1}}),
    "no metadata": lambda: with_header({}),
}


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


@pytest.mark.parametrize("number", ["2", "999999999"])
def test_newer_format_asks_for_an_update(number: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(WHOLE.replace(b'"vicinal 1"', f'"vicinal {number}"'.encode().ljust(11)))
    length = int.from_bytes(WHOLE[:8], "little") + len(number) - 1
    path.write_bytes(length.to_bytes(8, "little") + path.read_bytes()[8:])
    with pytest.raises(ModelFileError, match="update vicinal"):
        vicinal.load(path)


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
