"""All kernels compile for a GPU: NVRTC needs no GPU, only its library."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path

import pytest

from vicinal.backends.cuda.device import compile_options, kernel_source
from vicinal.backends.cuda.layout import FORCES, SPACES
from vicinal.backends.cuda.losses import TERMS
from vicinal.backends.cuda.neighbors import RULES

SHAPE = (
    ("VICINAL_PULLS", "2"),
    ("VICINAL_NEGATIVES", "5"),
    ("VICINAL_MOVING", "1"),
    ("VICINAL_WEIGHTED", "1"),
    ("VICINAL_SLICES", "4"),
)
# Spaces that use all functions of base/simd.hpp for a GPU.
CHOSEN = ("mahalanobis", "correlation", "haversine", "hyperboloid")
LAYOUTS = [*[("UmapForce", SPACES[name], 2) for name in CHOSEN], ("UmapForce", SPACES["minkowski"], 50)]


def layout(force: str, space: str, dim: int) -> tuple[str, tuple[tuple[str, str], ...]]:
    chosen = (("VICINAL_FORCE", force), ("VICINAL_SPACE", space), ("VICINAL_DIM", str(dim)))
    return "layout", (*chosen, *SHAPE)


RANKS = sorted({rule.rank for rule in RULES.values()} - {"Squared"})
# Kernels of a plain fit.
FEW = [("graph", ()), ("neighbors", (("VICINAL_RANK", "Squared"),)), layout("UmapForce", "EuclideanSpace", 2)]
VARIANTS = [
    ("spectral", ()),
    ("sums", ()),
    *[("losses", (("VICINAL_DIM", "2"), ("VICINAL_TERM", term))) for term in (*TERMS.values(), "Cauchy")],
    *[("density", (("VICINAL_DIM", dim),)) for dim in ("2", "3")],
    *[
        ("full_layout", (("VICINAL_DIM", dim), ("VICINAL_CAUCHY", cauchy)))
        for dim, cauchy in (("1", "true"), ("2", "true"), ("2", "false"), ("3", "true"), ("7", "false"))
    ],
    *[
        ("neighbors", (("VICINAL_RANK", rank),))
        for rank in sorted({rule.rank for rule in RULES.values()} - {"Squared"})
    ],
    *[layout(*chosen) for chosen in [*LAYOUTS, (FORCES["largevis"], "EuclideanSpace", 2)]],
]


def nvrtc() -> ctypes.CDLL:
    """Load the library of the wheel nvidia-cuda-nvrtc, or of an installed CUDA toolkit."""
    found = importlib.util.find_spec("nvidia")
    folders = [Path(place) for place in found.submodule_search_locations or ()] if found else []
    wheels = [path for folder in folders for path in folder.glob("*/lib/libnvrtc.so.*") if "alt" not in path.name]
    for name in [*map(str, sorted(wheels, reverse=True)), "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    pytest.skip("no NVRTC: pip install nvidia-cuda-nvrtc")


@pytest.mark.parametrize(
    ("source", "defines"),
    [*FEW, *[pytest.param(*variant, marks=pytest.mark.nightly) for variant in VARIANTS]],
    ids=lambda value: str(value).replace("VICINAL_", ""),
)
def test_kernels_compile_for_a_gpu(source: str, defines: tuple[tuple[str, str], ...]) -> None:
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    text = kernel_source(source).encode()
    assert library.nvrtcCreateProgram(ctypes.byref(program), text, source.encode(), 0, None, None) == 0
    options = [option.encode() for option in ("--gpu-architecture=sm_90", *compile_options(defines))]
    status = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    assert status == 0, log.value.decode()
    assert library.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0
    assert size.value > 1000
    library.nvrtcDestroyProgram(ctypes.byref(program))
