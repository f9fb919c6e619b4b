"""Quality of a map on a sample of rows, the same rows for every system.

The scores use NumPy, SciPy's k-d tree and brute force, not the package under test; only the losses, sums over all
pairs, are computed by its code, for every system on the same graph. Neighbors never include the row itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from datasets import CACHE, Dataset
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree, procrustes
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.stats import rankdata
from shapes import SHEETS

SAMPLE = 2000
SAMPLE_SEED = 20240229
NEIGHBORS = 15
WIDE_NEIGHBORS = 100
# Ranking by float32 |x|^2 + |y|^2 - 2xy may swap near ties; this many candidates are ranked again in float64. Rows with
# few columns are ranked in float64 throughout.
CANDIDATES = 64
FEW_COLUMNS = 64
BLOCK_ROWS = 250
# Pairs of other rows that are compared for every sampled row.
TRIPLETS = 20


@dataclass(frozen=True)
class Truth:
    """The reference of the scores: sampled rows, their true neighbors, the ranks of their pairwise distances."""

    rows: np.ndarray
    neighbors: np.ndarray
    pair_ranks: np.ndarray


def sample_rows(n: int) -> np.ndarray:
    if n <= SAMPLE:
        return np.arange(n)
    return np.sort(np.random.default_rng(SAMPLE_SEED).choice(n, SAMPLE, replace=False))


def load_truth(dataset: Dataset) -> Truth:
    """Return the reference of a data set, cached in `.cache/`."""
    file = CACHE / f"truth-{dataset.key}.npz"
    if not file.exists():
        truth = find_truth(dataset.data(), dataset.metric)
        np.savez(file, rows=truth.rows, neighbors=truth.neighbors, pair_ranks=truth.pair_ranks)
    with np.load(file, allow_pickle=False) as arrays:
        return Truth(arrays["rows"], arrays["neighbors"], arrays["pair_ranks"])


def find_truth(data: np.ndarray, metric: str = "euclidean") -> Truth:
    rows = sample_rows(len(data))
    k = min(NEIGHBORS, len(data) - 1)
    neighbors = np.empty((len(rows), k), dtype=np.int64)
    # SciPy's Jaccard distance is of booleans.
    exactly = data.astype(bool if metric == "jaccard" else np.float64)
    for start, ranking in ranking_blocks(data, rows, metric):
        for offset, values in enumerate(ranking):
            row = rows[start + offset]
            width = min(CANDIDATES, len(data) - 1)
            near = np.argpartition(values, width)[: width + 1]
            near = np.sort(near[near != row])
            exact = cdist(exactly[near], exactly[[row]], metric)[:, 0]
            neighbors[start + offset] = near[np.argsort(exact, kind="stable")[:k]]
    pair_ranks = rankdata(pdist(exactly[rows], metric)).astype(np.float32)
    return Truth(rows, neighbors, pair_ranks)


def ranking_blocks(data: np.ndarray, rows: np.ndarray, metric: str = "euclidean"):
    """Yield (start, values): values that grow with the distances from sampled rows to all rows.

    For Euclidean rows these are squared distances, up to a constant per row of `values`.
    """
    if data.shape[1] <= FEW_COLUMNS:
        data = data.astype(np.float64)
    if metric == "jaccard":
        yield from jaccard_blocks(data, rows)
        return
    norms = np.einsum("ij,ij->i", data, data)
    for start in range(0, len(rows), BLOCK_ROWS):
        block = data[rows[start : start + BLOCK_ROWS]]
        values = block @ data.T
        values *= -2.0
        values += norms
        yield start, values


def jaccard_blocks(data: np.ndarray, rows: np.ndarray):
    """Yield (start, distances) of rows of 0 and 1."""
    sizes = data.sum(axis=1)
    for start in range(0, len(rows), BLOCK_ROWS):
        block = rows[start : start + BLOCK_ROWS]
        common = data[block] @ data.T
        either = sizes[block, None] + sizes - common
        yield start, 1.0 - np.divide(common, either, out=np.ones_like(common), where=either > 0)


def map_neighbors(embedding: np.ndarray, rows: np.ndarray, k: int) -> np.ndarray:
    """Return the k nearest rows in the map for each sampled row, nearest first."""
    _, found = cKDTree(embedding).query(embedding[rows], k=k + 1)
    others = found != rows[:, None]
    # among many equal points the row itself may be missing from its own list
    others[others.all(axis=1), -1] = False
    return found[others].reshape(len(rows), k)


def overlap_share(true: np.ndarray, found: np.ndarray) -> float:
    """Return the fraction of true neighbors that were found."""
    hits = sum(np.isin(t, f, assume_unique=True).sum() for t, f in zip(true, found, strict=True))
    return float(hits / true.size)


def majority(votes: np.ndarray) -> np.ndarray:
    """Return the most frequent label of each row; ties go to the smallest label."""
    counts = np.stack([(votes == label).sum(axis=1) for label in range(votes.max() + 1)], axis=1)
    return counts.argmax(axis=1)


def trustworthiness(data: np.ndarray, rows: np.ndarray, near: np.ndarray, metric: str = "euclidean") -> float:
    """Return Venna and Kaski's measure, which penalises map neighbors by how far beyond k they rank in the input.

    With the map as `data` and the true neighbors as `near` it is the continuity.
    """
    n, k = len(data), near.shape[1]
    penalty = 0.0
    for start, values in ranking_blocks(data, rows, metric):
        block = near[start : start + len(values)]
        values[np.arange(len(values)), rows[start : start + len(values)]] = np.inf
        own = np.take_along_axis(values, block, axis=1)
        values.sort(axis=1)
        for ascending, found in zip(values, own, strict=True):
            penalty += np.maximum(np.searchsorted(ascending, found) + 1 - k, 0).sum()
    return float(1.0 - penalty * 2.0 / (len(rows) * k * (2.0 * n - 3.0 * k - 1.0)))


def score_embedding(dataset: Dataset, embedding_file: Path) -> dict[str, float]:
    """Return all scores of the map in a .npy file; accuracies only if the data has classes."""
    embedding = np.load(embedding_file).astype(np.float64)
    if embedding.shape[0] != dataset.rows or not np.isfinite(embedding).all():
        raise ValueError(f"expected a finite map of {dataset.rows} rows, got shape {embedding.shape}")
    truth, data = load_truth(dataset), dataset.data()
    near = map_neighbors(embedding, truth.rows, min(WIDE_NEIGHBORS, dataset.rows - 1))
    map_ranks = quick_ranks(pdist(embedding[truth.rows]))
    scores = {
        "recall_15": overlap_share(truth.neighbors, near[:, :NEIGHBORS]),
        "true_15_in_100": overlap_share(truth.neighbors, near),
        "spearman": float(np.corrcoef(truth.pair_ranks, map_ranks)[0, 1]),
        "trustworthiness_15": trustworthiness(data, truth.rows, near[:, :NEIGHBORS], dataset.metric),
        "continuity_15": trustworthiness(embedding, truth.rows, truth.neighbors),
        "random_triplets": random_triplets(data, embedding, truth.rows, dataset.metric),
    }
    if dataset.name in SHEETS:
        scores["spearman_sheet"] = score_sheet(SHEETS[dataset.name](data), embedding)
    if dataset.label_file is not None:
        labels = dataset.labels()
        # of all rows: a sample of 2,000 has a standard error of 0.009
        near = map_neighbors(embedding, np.arange(dataset.rows), 10)
        for voters in (10, 5):
            scores[f"accuracy_{voters}nn"] = float((majority(labels[near[:, :voters]]) == labels).mean())
        if dataset.metric == "euclidean" and labels.max() >= 2:
            scores["centroid_triplets"] = centroid_triplets(data, embedding, labels)
    return scores


def quick_ranks(values: np.ndarray) -> np.ndarray:
    """Return ranks without means for ties, which places of a map hardly ever have: a third of the time of rankdata."""
    ranks = np.empty(len(values), dtype=np.float32)
    ranks[np.argsort(values)] = np.arange(len(values), dtype=np.float32)
    return ranks


def random_triplets(data: np.ndarray, embedding: np.ndarray, rows: np.ndarray, metric: str = "euclidean") -> float:
    """Return the share of row triplets (i, j, k) in which j is nearer to i than k is in both, or in neither, space."""
    others = np.random.default_rng(SAMPLE_SEED).integers(len(data), size=(len(rows), 2 * TRIPLETS))
    kept = []
    for row, drawn in zip(rows, others, strict=True):
        high, low = (
            cdist(space[[row]], space[drawn], name)[0].reshape(2, TRIPLETS)
            for space, name in ((data, metric), (embedding, "euclidean"))
        )
        kept.append((high[0] < high[1]) == (low[0] < low[1]))
    return float(np.mean(kept))


def centroid_triplets(data: np.ndarray, embedding: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of triplets of class means with the same order of distances in data and map."""
    classes = np.unique(labels)
    high, low = (
        squareform(pdist(np.stack([space[labels == one].mean(axis=0, dtype=np.float64) for one in classes])))
        for space in (data, embedding)
    )
    kept = []
    for one in range(len(classes)):
        first, second = np.delete(high[one], one), np.delete(low[one], one)
        j, k = np.triu_indices(len(first), k=1)
        kept.append((first[j] < first[k]) == (second[j] < second[k]))
    return float(np.mean(kept))


def seed_agreement(maps: Sequence[np.ndarray]) -> float:
    """Return 1 - the Procrustes disparity of two maps, mean over all pairs: the share of the places that they share."""
    return float(np.mean([1.0 - procrustes(one, other)[2] for one, other in combinations(maps, 2)]))


def score_sheet(sheet: np.ndarray, places: np.ndarray) -> float:
    """Return the rank correlation of distances between places with those on the sheet that the data was made from."""
    rows = sample_rows(len(sheet))
    ranks = (quick_ranks(pdist(given[rows].astype(np.float64))) for given in (sheet, places))
    return float(np.corrcoef(*ranks)[0, 1])


def score_neighbors(dataset: Dataset, index_file: Path) -> float:
    """Return the recall of a neighbor table [n, k] whose first column is the row itself."""
    truth, index = load_truth(dataset), np.load(index_file)
    others = index.shape[1] - 1
    return overlap_share(truth.neighbors[:, :others], index[truth.rows, 1:])


def score_sparse(dataset: Dataset, index_file: Path, embedding_file: Path) -> dict[str, float]:
    """Return the recall of a neighbor table of sparse unit-length rows, and the label accuracy of the map."""
    data, labels, index = dataset.data(), dataset.labels(), np.load(index_file)
    rows = sample_rows(dataset.rows)
    others = index.shape[1] - 1
    hits = 0
    for start in range(0, len(rows), BLOCK_ROWS):
        block = rows[start : start + BLOCK_ROWS]
        likeness = (data[block] @ data.T).toarray()
        likeness[np.arange(len(block)), block] = -np.inf
        # a row that ties with the last true neighbor counts as true
        last = np.partition(likeness, -others, axis=1)[:, -others]
        found = np.take_along_axis(likeness, index[block, 1:], axis=1)
        hits += int((found >= last[:, None] - 1e-6).sum())
    near = map_neighbors(np.load(embedding_file).astype(np.float64), rows, 10)
    return {
        "neighbor_recall": hits / (len(rows) * others),
        "accuracy_10nn": float((majority(labels[near]) == labels[rows]).mean()),
    }


def largest_piece(places: np.ndarray, radius: float) -> int:
    """Return the number of points in the largest group whose points are linked by steps of at most `radius`."""
    tree = cKDTree(places)
    linked = tree.sparse_distance_matrix(tree, radius, output_type="coo_matrix")
    # Points that coincide have distance 0, which a sparse matrix would not count as a link.
    linked.data[:] = 1.0
    return int(np.bincount(connected_components(linked, directed=False)[1]).max())


LONG_EDGE = 2.0  # a map's neighbors are nearer than 1


class SampledLoss:
    """UMAP's expected loss of maps of a data set, computed by our code on one graph: J of resting negatives, eq. 29.

    Also the share of the weights whose edges are long: where a map is torn or folded.
    """

    def __init__(self, dataset: Dataset) -> None:
        from vicinal import find_neighbors, fit_ab, fuzzy_graph

        self.neighbors = find_neighbors(dataset.data(), min(15, dataset.rows), metric=dataset.metric)
        self.graph, self.kernel = fuzzy_graph(self.neighbors), fit_ab()

    def score(self, embedding_file: Path) -> dict[str, float]:
        from vicinal.quality.losses import effective_loss

        places = np.load(embedding_file)
        resting = effective_loss(self.graph, places, self.kernel, negatives="resting", samples=None)
        length = np.linalg.norm(places[self.graph.heads()] - places[self.graph.indices], axis=1)
        long = self.graph.weights[length > LONG_EDGE].sum(dtype=np.float64)
        return {
            "long_edges": float(long / self.graph.weights.sum(dtype=np.float64)),
            "attraction": resting.attraction,
            "repulsion": 2.0 * resting.repulsion,
            "resting": resting.value,
            "moving": resting.attraction + 2.0 * resting.repulsion,
        }


class Divergence:
    """The exact KL divergence of t-SNE maps of a data set, all on one graph of the default perplexity."""

    def __init__(self, dataset: Dataset) -> None:
        from vicinal import entropic_graph, find_neighbors

        self.graph = entropic_graph(find_neighbors(dataset.data(), min(91, dataset.rows)), 30.0)

    def score(self, embedding_file: Path) -> float:
        from vicinal.quality.losses import kl_divergence

        return float(kl_divergence(self.graph, np.load(embedding_file), samples=None))


class RadiusCorrelation:
    """The correlation of local radii in a data set and in its maps, computed by our code on one neighbor table."""

    def __init__(self, dataset: Dataset) -> None:
        from vicinal import find_neighbors, fuzzy_graph
        from vicinal.layout.density import Radii, edge_distances

        neighbors = find_neighbors(dataset.data(), min(15, dataset.rows))
        graph = fuzzy_graph(neighbors)
        self.radii = Radii.of(graph, edge_distances(graph, neighbors))

    def score(self, embedding_file: Path) -> float:
        from vicinal.layout.density import embedding_radii, radius_correlation

        return radius_correlation(self.radii.log_radius, embedding_radii(np.load(embedding_file), 15))


def score_transform(
    train_map: Path, train_labels: np.ndarray, moved_map: Path, labels: np.ndarray, voters: int = 10
) -> float:
    """Return the nearest-neighbor label accuracy of transformed rows among the training rows of the map."""
    _, near = cKDTree(np.load(train_map)).query(np.load(moved_map), k=voters)
    return float((majority(train_labels[near]) == labels).mean())
