"""Times of one version of the package, to compare two of them in turn (docs/decisions/2026-11-one-pipeline.md).

    for tree in old new old new; do PYTHONPATH=$tree/src python benchmarks/before_after.py --images FOLDER; done

Prints one line of JSON: medians in seconds, and digests of maps. FOLDER has the files of Fashion-MNIST.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, load_iris


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the median time of some calls."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def images(folder: Path, name: str) -> np.ndarray:
    content = gzip.decompress((folder / f"{name}-images-idx3-ubyte.gz").read_bytes())
    return np.frombuffer(content, np.uint8, offset=16).reshape(-1, 784).astype(np.float32)


def digest(places: np.ndarray) -> str:
    return hashlib.sha256(places.tobytes()).hexdigest()[:12]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path)
    folder = parser.parse_args().images
    begin = time.perf_counter()
    from vicinal import TSNE, UMAP, ProgressiveUMAP

    found: dict[str, object] = {"import": time.perf_counter() - begin}
    iris, digits = (one().data.astype(np.float32) for one in (load_iris, load_digits))
    model = UMAP(random_state=0).fit(digits)
    row = digits[:1] + np.float32(0.1)
    found["iris"] = seconds(lambda: UMAP(random_state=0).fit(iris), 7)
    found["digits"] = seconds(lambda: UMAP(random_state=0).fit(digits), 5)
    found["one row"] = seconds(lambda: model.transform(row), 300)
    found["progressive digits"] = seconds(lambda: ProgressiveUMAP(random_state=0).fit(digits), 3)
    found["t-SNE of digits"] = seconds(lambda: TSNE(random_state=0, max_iter=250).fit(digits), 3)
    found["bits of digits"] = digest(model.embedding_)
    if folder is not None:
        rows = np.concatenate([images(folder, "train"), images(folder, "t10k")])
        begin = time.perf_counter()
        model = UMAP(random_state=0).fit(rows)
        found["Fashion-MNIST"] = time.perf_counter() - begin
        found["stages"] = model.stage_times_
        found["10,000 rows"] = seconds(lambda: model.transform(rows[60_000:] + np.float32(0.5)), 1)
        found["bits of Fashion-MNIST"] = digest(model.embedding_)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
