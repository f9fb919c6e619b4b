"""Parametric UMAP's parts, on PyTorch (survey section 7, Algorithm 2): the only package that imports torch.

Nothing here needs the compiled core, so that training runs wherever torch and a stored graph are.
"""

from __future__ import annotations

from vicinal.runtime.interruption import imported

try:
    imported("torch")
except ImportError as error:
    raise ImportError("ParametricUMAP needs PyTorch: pip install 'vicinal[torch]'") from error
