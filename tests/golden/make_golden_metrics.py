"""Write `golden/metrics.npz`: distances between a few rows as umap-learn 0.5.12 gives them.

Run it in the benchmark environment: `.venv-bench/bin/python tests/golden/make_golden_metrics.py`.
The file holds plain arrays, and running it again gives the same bytes.

  real, positive, counts, truth     float32 [n, d], the rows
  bits                              uint8 [n, d], the rows of the metrics of bits
  weights, precision                float64 [d], [d, d], for the metrics that take them
  D_<metric>                        float64 [n, n], of the rows that RULES names
"""

from __future__ import annotations

import numpy as np
from make_golden import GOLDEN
from pynndescent.distances import bit_hamming, bit_jaccard
from umap.distances import named_distances

N, D = 14, 9

# Which rows a metric is evaluated on, and its positional arguments after the two rows.
RULES: dict[str, tuple[str, tuple[str, ...]]] = {
    **dict.fromkeys(("euclidean", "manhattan", "chebyshev", "canberra", "braycurtis", "cosine"), ("real", ())),
    "correlation": ("real", ()),
    "minkowski": ("real", ("p",)),
    "seuclidean": ("real", ("weights",)),
    "wminkowski": ("real", ("weights", "p")),
    "mahalanobis": ("real", ("precision",)),
    "hellinger": ("positive", ()),
    "ll_dirichlet": ("counts", ()),
    **dict.fromkeys(("hamming", "jaccard", "dice", "matching", "kulsinski", "rogerstanimoto"), ("truth", ())),
    **dict.fromkeys(("russellrao", "sokalmichener", "sokalsneath", "yule"), ("truth", ())),
}


def main() -> None:
    rng = np.random.default_rng(20240229)
    turn = rng.normal(size=(D, D))
    rows = {
        "real": rng.normal(size=(N, D)),
        "positive": rng.gamma(2.0, size=(N, D)),
        "counts": rng.poisson(3.0, size=(N, D)),
        "truth": rng.random((N, D)) < 0.4,
    }
    rows = {name: values.astype(np.float32) for name, values in rows.items()}
    # Rows that are equal, and rows that hold nothing.
    for name in ("real", "positive", "truth"):
        rows[name][3] = rows[name][2]
    rows["truth"][5:7] = 0.0
    extra = {"weights": rng.uniform(0.5, 2.0, size=D), "precision": turn @ turn.T, "p": 3.0}
    tables = {}
    for metric, (name, arguments) in RULES.items():
        given = [extra[key] for key in arguments]
        # In float64: the float32 of some of umap-learn's sums is not what is compared.
        X = rows[name].astype(np.float64)
        tables[f"D_{metric}"] = np.array([[named_distances[metric](x, y, *given) for y in X] for x in X], float)
    bits = np.random.default_rng(20260229).integers(0, 256, size=(N, D), dtype=np.uint8)
    bits[3] = bits[2]
    for function in (bit_hamming, bit_jaccard):
        tables[f"D_{function.__name__}"] = np.array([[function(x, y) for y in bits] for x in bits], float)
    arrays = {"bits": bits} | {name: extra[name] for name in ("weights", "precision")}
    np.savez_compressed(GOLDEN / "metrics.npz", **rows, **arrays, **tables)


if __name__ == "__main__":
    main()
