"""The CUDA C++ sources of the kernels, with the headers that they share with the CPU's core."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

# Fused multiply-adds are written explicitly, as in the core; everything else rounds as on the CPU.
OPTIONS = ("--std=c++20", "--device-as-default-execution-space", "--fmad=false")
HEADERS = ("base", "neighbors", "graph", "layout", "cuda", "nvrtc")


@functools.cache
def source_folder() -> Path:
    """Return the folder of the sources: installed beside this module, or ``cpp`` of a source tree."""
    here = Path(__file__).parent
    for folder in (here / "cpp", here.parents[3] / "cpp"):
        if (folder / "cuda" / "layout.cu").is_file():
            return folder
    raise FileNotFoundError(f"the sources of the CUDA kernels are missing: {here / 'cpp'}")


@functools.cache
def source_hash() -> str:
    """Return a hash of all sources. Compiled kernels are cached by the text of a kernel, which its headers are not."""
    digest = hashlib.sha256()
    for name in HEADERS:
        for path in sorted((source_folder() / name).iterdir()):
            if path.suffix in ("", ".hpp", ".cu"):
                digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def kernel_source(name: str) -> str:
    """Return the text of a source file of kernels."""
    return f"// {source_hash()}\n" + (source_folder() / "cuda" / f"{name}.cu").read_text()


def compile_options(defines: tuple[tuple[str, str], ...] = ()) -> tuple[str, ...]:
    """Return the options of NVRTC, with preprocessor definitions."""
    folder = source_folder()
    return (*OPTIONS, f"-I{folder}", f"-I{folder / 'nvrtc'}", *(f"-D{name}={value}" for name, value in defines))
