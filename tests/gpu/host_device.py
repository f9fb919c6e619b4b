"""A device made of NumPy and of kernels that the host's compiler has compiled: the CUDA backend without a GPU."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends.cuda.device import kernel_files, source_folder

HERE = Path(__file__).parent
# Compiled kernels are kept from run to run.
CACHE = HERE.parents[1] / "build" / "host-kernels"
COMPILER = shutil.which("g++") or shutil.which("clang++")
FLAGS = ("-std=c++20", "-O1", "-ffp-contract=off", "-fno-math-errno", "-mfma", "-shared", "-fPIC", "-w")


@functools.cache
def sources_and_compiler() -> bytes:
    """Return a digest of everything that kernels are compiled from, and of the compiler."""
    assert COMPILER is not None
    digest = hashlib.sha256(subprocess.run([COMPILER, "--version"], capture_output=True, check=True).stdout)
    digest.update(repr((COMPILER, FLAGS)).encode())
    for file in (HERE / "host_launch.hpp", *sorted(source_folder().rglob("*"))):
        if file.is_file() and file.suffix != ".cpp":
            digest.update(file.read_bytes())
    return digest.digest()


@functools.cache
def library(source: str, defines: tuple[tuple[str, str], ...]) -> ctypes.CDLL:
    """Compile a file of kernels for the host, unless a run before has done so."""
    key = hashlib.sha256(sources_and_compiler() + repr((source, defines)).encode()).hexdigest()[:16]
    kept = CACHE / f"{source}-{key}.so"
    if not kept.exists():
        compile_kernels(source, defines, kept)
    return ctypes.CDLL(str(kept))


def compile_kernels(source: str, defines: tuple[tuple[str, str], ...], out: Path) -> None:
    """Compile in a folder of its own: several processes of one run may need the same kernels."""
    assert COMPILER is not None
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        program, made = Path(folder) / f"{source}.cpp", Path(folder) / out.name
        program.write_text(f'#include "cuda/{source}.cu"\n')
        options = [f"-D{name}={value}" for name, value in defines]
        includes = [f"-I{source_folder()}", f"-I{HERE}"]
        subprocess.run([COMPILER, *FLAGS, *includes, *options, str(program), "-o", str(made)], check=True)
        os.replace(made, out)


class HostDevice:
    """NumPy as the array module, and a launch as a loop over the threads."""

    xp = np
    name = "host"

    def active(self) -> Any:
        return contextlib.nullcontext()

    def kernel(self, name: str, defines: tuple[tuple[str, str], ...] = ()) -> Any:
        function = getattr(library(kernel_files()[name], defines), f"launch_{name}")

        def run(grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...], shared_mem: int = 0) -> None:
            kept = [_argument(value) for value in arguments]
            pointers = (ctypes.c_void_p * len(kept))(*[value.ctypes.data for value in kept])
            function(ctypes.c_uint(grid[0]), ctypes.c_uint(block[0]), pointers)

        return run

    def asarray(self, values: Any, dtype: Any = None) -> NDArray[Any]:
        return np.ascontiguousarray(values, dtype=dtype)

    def to_numpy(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.array(values)

    def half_products(self, heads: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float32]:
        a, b = (part.view(np.float16).astype(np.float32) for part in (heads, rows))
        return np.matmul(a, b.transpose(0, 2, 1))

    def synchronize(self) -> None:
        pass

    def free_bytes(self) -> int:
        return 2**36

    def capacity_bytes(self) -> int:
        return self.free_bytes()

    def release(self) -> None:
        pass

    def collect(self) -> None:
        pass


def _argument(value: Any) -> NDArray[Any]:
    """Return an array of one item that holds a scalar, or the address of an array."""
    if isinstance(value, np.ndarray) and value.ndim > 0:
        assert value.flags.c_contiguous
        return np.array([value.ctypes.data], dtype=np.uint64)
    assert isinstance(value, np.generic | np.ndarray), f"arguments of kernels have NumPy types, got {value!r}"
    return np.array([value])
