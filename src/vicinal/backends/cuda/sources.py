"""The CUDA C++ sources of the kernels, with the headers that they share with the CPU's core."""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from pathlib import Path

# Fused multiply-adds are written explicitly, as in the core; everything else rounds as on the CPU.
OPTIONS = ("--std=c++20", "--device-as-default-execution-space", "--fmad=false")
HEADERS = ("base", "neighbors", "graph", "layout", "losses", "cuda", "nvrtc")


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
    """Return a hash of all sources. It is part of the text of a kernel, by which compiled kernels are cached."""
    digest = hashlib.sha256()
    for name in HEADERS:
        for path in sorted((source_folder() / name).iterdir()):
            if path.suffix in ("", ".hpp", ".cu"):
                digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def cached_file(key: str) -> Path:
    """Return where compiled kernels are kept: in CuPy's cache, or in a folder of this process if that is read-only."""
    folder = Path(os.environ.get("CUPY_CACHE_DIR", "~/.cupy/kernel_cache")).expanduser() / "vicinal"
    name = hashlib.sha256(key.encode()).hexdigest()[:32] + ".cubin"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(_private_folder()) / name
    return (folder if os.access(folder, os.W_OK) else Path(_private_folder())) / name


@functools.cache
def _private_folder() -> str:
    return tempfile.mkdtemp(prefix="vicinal-kernels-")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that other processes see complete or not at all."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as part:
        part.write(content)
    os.replace(part.name, path)


def kernel_source(name: str) -> str:
    """Return the text of a source file of kernels."""
    return f"// {source_hash()}\n" + (source_folder() / "cuda" / f"{name}.cu").read_text()


def compile_options(defines: tuple[tuple[str, str], ...] = ()) -> tuple[str, ...]:
    """Return the options of NVRTC, with preprocessor definitions."""
    folder = source_folder()
    defined = (f"-D{name}={value}" for name, value in defines)
    return (*OPTIONS, f"-I{folder}", f"-I{folder / 'nvrtc'}", *defined)
