"""Clusters of maps: `python benchmarks/clusters.py [--peers PYTHON] [CASE...]` writes results/clusters.json.

Cases are digits, fashion-10k, fashion and debian: the short descriptions of Debian's packages (`apt-cache
dumpavail`), TF-IDF and 96 components, with the sections as classes. For each case: the layers with ARI, AMI and
noise, the time of the clusters relative to that of the fit, equal bits on one and two threads, HDBSCAN on the map,
agreement of `predict` with two kinds of refits on held-out rows, and for texts the share of rows that have the words
of their cluster's name. With --peers, an interpreter that has EVoC runs it on the same rows.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from datasets import open_dataset
from machine import save_cases
from numpy.typing import NDArray
from release import read_result
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

import vicinal
from vicinal.areas.layers import matched
from vicinal.areas.traits import words_of

SEED = 42
HELD_OUT = 0.1
KMEANS_CLUSTERS = 40
RESULTS = Path(__file__).with_name("results") / "clusters.json"
CASES = ("digits", "fashion-10k", "fashion", "debian")
EVOC = """
import json, sys, time
import evoc, numpy as np
X = np.load(sys.argv[1]).astype(np.float32)
evoc.EVoC(random_state=0).fit(X[:1000])
start = time.perf_counter()
model = evoc.EVoC(random_state=0)
model.fit(X)
seconds = time.perf_counter() - start
layers = {f"layer{i}": one for i, one in enumerate(model.cluster_layers_)}
np.savez(sys.argv[2], seconds=seconds, labels=model.labels_, **layers)
"""

Rows = NDArray[np.float32]
Labels = NDArray[Any]


def debian() -> tuple[Rows, Labels, list[str]]:
    """Return components, sections and short descriptions of Debian's packages."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    listed = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    found: dict[str, tuple[str, str]] = {}
    for block in listed.split("\n\n"):
        fields = {
            name: match[1]
            for name in ("Package", "Section", "Description(?:-en)?")
            if (match := re.search(rf"^{name}: (.*)$", block, re.MULTILINE))
        }
        if len(fields) == 3:
            package, section, text = fields.values()
            found.setdefault(package, (section, text))
    texts = [text for _, text in found.values()]
    weights = TfidfVectorizer(max_features=30_000, stop_words="english", sublinear_tf=True, min_df=3).fit_transform(
        texts
    )
    rows = TruncatedSVD(96, random_state=0).fit_transform(weights).astype(np.float32)
    return rows, np.array([section for section, _ in found.values()]), texts


def read(case: str) -> tuple[Rows, Labels, list[str] | None]:
    if case == "debian":
        return debian()
    name, _, size = case.partition("-")
    dataset = open_dataset(name, int(size.replace("k", "000")) if size else None)
    return np.ascontiguousarray(dataset.data(), dtype=np.float32), dataset.labels(), None


def scores(y: Labels, labels: Labels) -> dict[str, float]:
    """Return agreement with the classes; noise counts as one cluster."""
    return {
        "clusters": int(labels.max()) + 1,
        "noise": float((labels < 0).mean()),
        "ari": float(adjusted_rand_score(y, labels)),
        "ami": float(adjusted_mutual_info_score(y, labels)),
    }


def hdbscan(places: Rows, y: Labels) -> list[dict[str, Any]]:
    """Run scikit-learn's HDBSCAN on the map with its defaults and with larger clusters."""
    from sklearn.cluster import HDBSCAN

    n, found = len(places), []
    for options in ({}, {"min_samples": 10}, {"min_samples": 10, "min_cluster_size": max(15, n // 200)}):
        start = perf_counter()
        labels = HDBSCAN(copy=True, **options).fit_predict(places)
        found.append({"options": options, "seconds": perf_counter() - start, **scores(y, labels)})
    return found


def evoc(python: str, rows: Rows, y: Labels) -> list[dict[str, Any]]:
    """Run EVoC on the rows in another interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder, "rows.npy"), Path(folder, "labels.npz")
        np.save(given, rows)
        subprocess.run([python, "-c", EVOC, given, out], check=True)
        with np.load(out) as found:
            seconds = float(found["seconds"])
            return [
                {"layer": name, "seconds": seconds, **scores(y, found[name])} for name in found if name != "seconds"
            ]


def refits(rows: Rows) -> list[dict[str, Any]]:
    """Compare `predict` for held-out rows with clusters of an updated map and of a new fit of all rows."""
    held = np.zeros(len(rows), dtype=bool)
    held[np.random.default_rng(0).choice(len(rows), round(HELD_OUT * len(rows)), replace=False)] = True
    model = vicinal.UMAP(random_state=SEED).fit(rows[~held])
    before = vicinal.clusters(model)
    predicted = [before.predict(rows[held], layer) for layer in range(len(before))]
    again = vicinal.clusters(vicinal.UMAP(random_state=SEED).fit(rows))
    model.update(rows[held])
    updated, known = vicinal.clusters(model), int((~held).sum())
    found = []
    for number, layer in enumerate(before.layers):
        one: dict[str, Any] = {"layer": number, "main": number == before.main, "stability": layer.stability}
        for name, other, old, new in (
            ("updated", updated, slice(0, known), slice(known, None)),
            ("new fit", again, ~held, held),
        ):
            partner = [a for a in other.layers if a.resolution == layer.resolution]
            if partner:
                labels = partner[0].labels
                number_of = np.full(layer.n_clusters + 1, -1)
                for pair in matched(layer.labels, labels[old], layer.n_clusters, partner[0].n_clusters):
                    number_of[pair["cluster"]] = pair["other"]
                one[name] = {
                    "held_out": float((number_of[predicted[number]] == labels[new]).mean()),
                    "training": float((number_of[layer.labels] == labels[old]).mean()),
                }
        found.append(one)
    return found


def coverage(names: tuple[str, ...], labels: Labels, texts: list[str]) -> dict[str, Any]:
    """Return the median share of a cluster's rows that have the first, second and third word of its name."""
    words = [set(words_of(text)) for text in texts]
    shares: list[list[float]] = [[], [], []]
    for cluster, name in enumerate(names):
        rows = np.flatnonzero(labels == cluster)
        for place, word in enumerate(name.split(", ") if name else []):
            shares[place].append(float(np.mean([word in words[row] for row in rows])))
    return {
        "clusters": len(names),
        "named": sum(map(bool, names)),
        "median_share": [float(np.median(some)) if some else None for some in shares],
        "with_word": [len(some) for some in shares],
        "examples": list(names[:12]),
    }


def name_coverage(found: Any, rows: Rows, texts: list[str]) -> list[dict[str, Any]]:
    """Measure the names of all layers, and of 40 clusters by k-means, which do not depend on the map."""
    from sklearn.cluster import KMeans

    from vicinal.areas.traits import Namer, describe_columns

    measured = [
        {"division": f"layer {a}"} | coverage(layer.names, layer.labels, texts) for a, layer in enumerate(found.layers)
    ]
    labels = KMeans(KMEANS_CLUSTERS, random_state=0).fit_predict(rows).astype(np.int32)
    names = Namer(describe_columns({"text": texts}, len(texts))).names(labels, KMEANS_CLUSTERS)
    return [*measured, {"division": "k-means"} | coverage(tuple(names), labels, texts)]


def times(rows: Rows) -> dict[str, float]:
    """Return the seconds of a fit and of its clusters."""
    start = perf_counter()
    model = vicinal.UMAP(random_state=SEED).fit(rows)
    fit = perf_counter() - start
    start = perf_counter()
    vicinal.clusters(model)
    seconds = perf_counter() - start
    return {"fit": fit, "seconds": seconds, "share_of_fit": seconds / fit}


def measure(case: str, peers: str | None) -> dict[str, Any]:
    rows, y, texts = read(case)
    model = vicinal.UMAP(random_state=SEED).fit(rows)
    found = vicinal.clusters(model)
    single = vicinal.clusters(vicinal.UMAP(random_state=SEED, n_jobs=1).fit(rows))
    record: dict[str, Any] = {"case": case, "rows": len(rows), "columns": rows.shape[1]}
    record["same_bits"] = all(
        a.labels.tobytes() == b.labels.tobytes() and a.strength.tobytes() == b.strength.tobytes()
        for a, b in zip(found.layers, single.layers, strict=True)
    )
    record["layers"] = [
        {
            "resolution": layer.resolution,
            "stability": layer.stability,
            "main": a == found.main,
            **scores(y, layer.labels),
        }
        for a, layer in enumerate(found.layers)
    ]
    verdicts = [gap.verdict for gap in found.gaps()]
    record["gaps"] = {one: verdicts.count(one) for one in sorted(set(verdicts))}
    record["hdbscan_on_map"] = hdbscan(model.embedding_, y)
    record["predict"] = refits(rows)
    if texts is not None:
        start = perf_counter()
        named = found.named({"text": texts})
        record["naming_seconds"] = perf_counter() - start
        record["names"] = name_coverage(named, rows, texts)
    if peers is not None:
        record["evoc"] = evoc(peers, rows, y)
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default="all", choices=("all", *CASES))
    parser.add_argument("--peers", help="interpreter with EVoC")
    parser.add_argument("--times", action="store_true", help="measure only times, on a machine that does nothing else")
    given = parser.parse_args()
    cases = CASES if "all" in given.cases else given.cases
    if given.times:
        times(read("digits")[0])
    rows = {case: read(case)[0] for case in cases} if given.times else {}
    for case in cases:
        known = (read_result(RESULTS) or {"records": []})["records"]
        before = next((one for one in known if one["case"] == case), {"case": case})
        record = before | {"times": times(rows[case])} if given.times else before | measure(case, given.peers)
        save_cases(RESULTS, [record])
        print(json.dumps(record, indent=1), flush=True)


if __name__ == "__main__":
    main()
