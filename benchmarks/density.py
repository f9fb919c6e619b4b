"""Densities of maps (densMAP) and maps of short documents, compared with umap-learn's.

    PYTHONPATH=../src python density.py digits fashion-10000 packages [--out results/density.json]

Both libraries run in this process; seconds are processor time. Maps are kept in `.cache/density`; remove it to make
them anew. Every map is scored by the same code:

* `log_distance`: correlation of the logarithms of the mean distance to 14 neighbors, in the data and in the map,
* `radius`: correlation of densMAP's local radii (survey eq. 33), those of the map from its own neighbors,
* `recall_15`: share of the 14 nearest rows that are among the 14 nearest points of the map,
* `trustworthiness_15` of a sample of rows, `accuracy_10nn` of all rows,
* `strays`: share of the rows none of whose 15 nearest points in the map is among their 50 nearest rows.

`packages` are the short descriptions of 8,000 Debian packages (`apt-cache dumpavail`) as TF-IDF rows, compared
by cosine, with the package's section as class: 10-NN accuracy, trustworthiness (k = 15) and recall of the map.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from datasets import CACHE, open_dataset
from scipy import sparse
from scipy.spatial import cKDTree
from score import majority, sample_rows, trustworthiness

K, STRAY_NEIGHBORS = 15, 50
MAPS = CACHE / "density"
CASES = ("digits", "fashion-10000", "fashion-70000")
DEFAULT = 2.0  # of dens_lambda, in both libraries
SEEDS = range(5)
PEER_SEEDS = {"fashion-70000": range(2)}  # a fit of umap-learn takes minutes
PACKAGES, PACKAGE_SEED, TEXT_SEEDS, TRUST_ROWS = 8000, 0, (0, 1), 2000

Record = dict[str, Any]


def map_neighbors(places: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest other points of every point of a map, and their distances."""
    distance, near = cKDTree(places).query(places, k=k + 1)
    own = near == np.arange(len(places))[:, None]
    own[~own.any(axis=1), -1] = True  # points that coincide may push the point itself out of its list
    return near[~own].reshape(len(places), k), distance[~own].reshape(len(places), k)


def recall(table: np.ndarray, near: np.ndarray) -> float:
    """Return the share of the neighbors in the data (first column: the row itself) that are neighbors in the map."""
    k = table.shape[1] - 1
    return float(np.mean([len(np.intersect1d(a[1:], b[:k])) / k for a, b in zip(table, near, strict=True)]))


class DensityScore:
    """Scores of maps of one data set."""

    def __init__(self, rows: np.ndarray, labels: np.ndarray) -> None:
        from vicinal import find_neighbors, fuzzy_graph
        from vicinal.layout.density import Radii, edge_distances

        self.rows, self.labels, self.sample = rows, labels, sample_rows(len(rows))
        self.table, self.near = find_neighbors(rows, K), find_neighbors(rows, STRAY_NEIGHBORS + 1).index[:, 1:]
        graph = fuzzy_graph(self.table)
        self.radii = Radii.of(graph, edge_distances(graph, self.table))

    def score(self, places: np.ndarray) -> Record:
        from vicinal.layout.density import embedding_radii, radius_correlation

        wide, distance = map_neighbors(places, K)
        near, distance = wide[:, :-1], distance[:, :-1]
        smallest = 1e-6 * np.median(distance)  # points may coincide
        data, mapped = np.log(self.table.distance[:, 1:].mean(axis=1) + 1e-9), np.log(distance.mean(axis=1) + smallest)
        return {
            "log_distance": float(np.corrcoef(data, mapped)[0, 1]),
            "radius": radius_correlation(self.radii.log_radius, embedding_radii(places, K)),
            "recall_15": recall(self.table.index, near),
            "trustworthiness_15": trustworthiness(self.rows, self.sample, wide[self.sample]),
            "accuracy_10nn": float((majority(self.labels[wide[:, :10]]) == self.labels).mean()),
            "strays": float(np.mean([not np.isin(a, b).any() for a, b in zip(wide, self.near, strict=True)])),
        }


def timed(name: str, fit: Callable[[], dict[str, np.ndarray]]) -> tuple[dict[str, np.ndarray], float]:
    """Return what a fit made, and its seconds; kept under a name, so that an interrupted run can be continued."""
    file = MAPS / f"{name}.npz"
    if not file.exists():
        MAPS.mkdir(parents=True, exist_ok=True)
        start = process_time()
        made = fit()
        np.savez(file, **made, seconds=process_time() - start)
    found = dict(np.load(file))
    return found, float(found.pop("seconds"))


def densities(case: str) -> Iterator[Record]:
    import umap

    import vicinal

    name, _, size = case.partition("-")
    dataset = open_dataset(name)
    rows, labels = dataset.data(), dataset.labels()
    if size and int(size) < len(rows):
        chosen = np.sort(np.random.default_rng(0).choice(len(rows), int(size), replace=False))
        rows, labels = rows[chosen], labels[chosen]
    scorer = DensityScore(rows, labels)
    for seed in SEEDS:
        for system, kind in (("vicinal", vicinal.UMAP), ("umap-learn", umap.UMAP)):
            if kind is umap.UMAP and seed not in PEER_SEEDS.get(case, SEEDS):
                continue
            made, seconds = timed(
                f"{case}-{system}-{DEFAULT}-{seed}",
                lambda k=kind, s=seed: {
                    "places": k(densmap=True, dens_lambda=DEFAULT, random_state=s).fit_transform(rows)
                },
            )
            head = {
                "case": case,
                "system": system,
                "dens_lambda": DEFAULT,
                "seed": seed,
                "seconds": None if np.isnan(seconds) else seconds,
            }
            yield head | scorer.score(made["places"].astype(np.float32))


def package_descriptions() -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return TF-IDF rows of short package descriptions, and the numbers of their sections."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    available = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    found: dict[str, tuple[str, str]] = {}
    for block in available.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Section|Description(?:-en)?): (.*)$", block, re.MULTILINE))
        text = fields.get("Description") or fields.get("Description-en")
        if text and "Section" in fields:
            found.setdefault(fields["Package"], (fields["Section"].split("/")[-1], text))
    names = sorted(found)
    drawn = np.random.default_rng(PACKAGE_SEED).choice(len(names), PACKAGES, replace=False)
    sections, texts = zip(*(found[names[i]] for i in drawn), strict=True)
    rows = TfidfVectorizer(stop_words="english", min_df=2).fit_transform(texts).astype(np.float32).tocsr()
    return rows, np.unique(sections, return_inverse=True)[1]


class TextScore:
    """Scores of maps of documents. Trustworthiness and recall are those of a sample of rows."""

    def __init__(self, rows: sparse.csr_matrix, labels: np.ndarray) -> None:
        from scipy.stats import rankdata

        self.labels = labels
        self.sample = np.random.default_rng(0).choice(rows.shape[0], TRUST_ROWS, replace=False)
        distance = 1.0 - (rows[self.sample] @ rows.T).toarray()
        distance[np.arange(TRUST_ROWS), self.sample] = -1.0
        # Rows at the same distance share their mean rank.
        self.rank = np.array([rankdata(np.round(one, 5)) for one in distance]) - 1.0

    def score(self, places: np.ndarray) -> Record:
        n, near = len(places), map_neighbors(places, K)[0]
        rank = self.rank[np.arange(TRUST_ROWS)[:, None], near[self.sample]]
        penalty = 2.0 / (TRUST_ROWS * K * (2 * n - 3 * K - 1)) * np.maximum(rank - K, 0).sum()
        return {
            "accuracy": float((majority(self.labels[near[:, :10]]) == self.labels).mean()),
            "trustworthiness": float(1.0 - penalty),
            "recall_15": float((rank <= K).mean()),
        }


def packages() -> Iterator[Record]:
    import umap

    import vicinal

    rows, labels = package_descriptions()
    scorer = TextScore(rows, labels)
    exact = vicinal.find_neighbors(rows, K, metric="cosine")
    for seed in TEXT_SEEDS:

        def peer(seed: int = seed) -> dict[str, np.ndarray]:
            model = umap.UMAP(metric="cosine", random_state=seed).fit(rows)
            return {"places": model.embedding_, "index": model._knn_indices, "distance": model._knn_dists}

        def ours(index: np.ndarray | None, distance: np.ndarray | None, seed: int = seed) -> dict[str, np.ndarray]:
            knn = None if index is None else (index, distance)
            model = vicinal.UMAP(metric="cosine", random_state=seed, precomputed_knn=knn)
            return {"places": model.fit_transform(rows)}

        theirs, seconds = timed(f"packages-umap-learn-{seed}", peer)
        yield {
            "case": "packages",
            "system": "umap-learn",
            "seed": seed,
            "seconds": seconds,
            **scorer.score(theirs["places"]),
        }
        for system, index, distance in (
            ("vicinal", None, None),
            ("vicinal, nearest rows only", exact.index, exact.distance),
            ("vicinal, umap-learn's neighbors", theirs["index"], theirs["distance"]),
        ):
            made, seconds = timed(f"packages-{system}-{seed}", lambda i=index, d=distance: ours(i, d))
            yield {
                "case": "packages",
                "system": system,
                "seed": seed,
                "seconds": seconds,
                **scorer.score(made["places"]),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="+", choices=[*CASES, "packages"])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "density.json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    records = json.loads(options.out.read_text()) if options.out.exists() else []
    for case in options.cases:
        records = [record for record in records if record["case"] != case]
        for record in packages() if case == "packages" else densities(case):
            print({key: round(value, 4) if isinstance(value, float) else value for key, value in record.items()})
            records.append(record)
        options.out.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
