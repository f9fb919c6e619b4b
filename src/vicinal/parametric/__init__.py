"""Parametric UMAP's networks, losses and training on PyTorch (survey section 7, Algorithm 2).

Only this package imports torch. It does not use the compiled core: training needs torch, NumPy and a stored graph.
"""

from __future__ import annotations

from vicinal.runtime.interruption import deferred_interrupts

try:
    with deferred_interrupts():  # a process cannot import torch again after an import that Ctrl-C cut in two
        import torch  # noqa: F401
except ImportError as error:
    raise ImportError("ParametricUMAP needs PyTorch: pip install 'vicinal[torch]'") from error

from vicinal.parametric.networks import Shape as Shape
from vicinal.parametric.networks import register_decoder as register_decoder
from vicinal.parametric.networks import register_encoder as register_encoder
