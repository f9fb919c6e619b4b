"""umap-learn's plots of a model fitted by vicinal: points, connectivity and diagnostics."""

from __future__ import annotations

import copy
import tempfile
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import umap.plot
from sklearn.datasets import load_digits

import vicinal


def large(model: vicinal.UMAP) -> vicinal.UMAP:
    """Return the model as umap-learn sees one of more than 4,096 rows: neighbors come from its search index."""
    other = copy.copy(model)
    other._small_data = False
    return other


def main() -> None:
    warnings.simplefilter("ignore")
    rows, digits = load_digits(return_X_y=True)
    model = vicinal.UMAP(random_state=0).fit(rows)
    drawn = {
        "points": lambda: umap.plot.points(model, labels=digits, width=400, height=400),
        "values": lambda: umap.plot.points(model, values=digits.astype(float), theme="fire"),
        "connectivity": lambda: umap.plot.connectivity(model, labels=digits),
        "pca": lambda: umap.plot.diagnostic(model, diagnostic_type="pca"),
        "vq": lambda: umap.plot.diagnostic(model, diagnostic_type="vq"),
        "neighborhood": lambda: umap.plot.diagnostic(model, diagnostic_type="neighborhood"),
        "local_dim": lambda: umap.plot.diagnostic(model, diagnostic_type="local_dim"),
        "large neighborhood": lambda: umap.plot.diagnostic(large(model), diagnostic_type="neighborhood"),
        "histogram": lambda: umap.plot.nearest_neighbour_distribution(model),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, draw in drawn.items():
            axes = draw()
            path = Path(folder) / f"{name}.png"
            axes.figure.savefig(path)
            assert path.stat().st_size > 5_000, f"{name} is empty"
            matplotlib.pyplot.close("all")
    print(f"umap.plot: {', '.join(drawn)} of a fitted model")


if __name__ == "__main__":
    main()
