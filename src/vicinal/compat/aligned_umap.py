"""umap-learn's ``umap.aligned_umap``."""

from __future__ import annotations

from vicinal.estimators.aligned import AlignedUMAP

__all__ = ["AlignedUMAP"]
