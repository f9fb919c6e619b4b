"""Make the figures and tables of forces.md: what UMAP, LargeVis and t-SNE minimize, on digits and Fashion-MNIST.

    python docs/guides/forces.py [loss asymmetry negatives relatives]

Pictures go to docs/images/, tables are printed as Markdown. Fashion-MNIST is read through benchmarks/datasets.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from pictures import shrink

import vicinal
from vicinal import Graph, Kernel, losses, plot, quality

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
FASHION_ROWS = 10_000
N_NEIGHBORS, PERPLEXITY, SEED = 15, 30.0, 0
PANEL_INCHES, DPI = 3.1, 110

Map = NDArray[np.float32]


@dataclass(frozen=True)
class Data:
    name: str
    rows: NDArray[np.float32]
    labels: NDArray[np.int64]
    fuzzy: Graph
    entropic: Graph

    @classmethod
    def read(cls, name: str, size: int | None = None) -> Data:
        sys.path.insert(0, str(ROOT / "benchmarks"))
        from datasets import open_dataset

        dataset = open_dataset(name, size)
        rows = dataset.data()
        fuzzy = vicinal.fuzzy_graph(vicinal.find_neighbors(rows, N_NEIGHBORS))
        entropic = vicinal.entropic_graph(vicinal.find_neighbors(rows, 3 * int(PERPLEXITY) + 1), PERPLEXITY)
        return cls(name, rows, dataset.labels(), fuzzy, entropic)

    def umap(self, **parameters: Any) -> Map:
        model = vicinal.UMAP(n_neighbors=N_NEIGHBORS, random_state=SEED, **parameters)
        return model.fit_transform(self.rows)

    def scores(self, embedding: Map) -> list[str]:
        recall = quality.neighbor_recall(self.rows, embedding, n_neighbors=15, sample=2000)
        accuracy = quality.knn_accuracy(embedding, self.labels, n_neighbors=10)
        return [f"{recall:.3f}", f"{accuracy:.3f}"]


def table(header: list[str], lines: list[list[str]]) -> None:
    for line in (header, ["---", *["---:"] * (len(header) - 1)], *lines):
        print("| " + " | ".join(line) + " |")
    print()


def draw(path: str, data: Data, maps: dict[str, Map], columns: int) -> None:
    """Draw small maps side by side, each filling its own frame."""
    import matplotlib.pyplot as plt

    lines = -(-len(maps) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(PANEL_INCHES * columns, (PANEL_INCHES + 0.3) * lines), layout="constrained"
    )
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)
    for ax, (title, embedding) in zip(np.ravel(axes), maps.items(), strict=False):
        plot.points(embedding, data.labels, ax=ax, legend=False)
        # Frames are square, so that titles are aligned.
        low, high = embedding.min(axis=0), embedding.max(axis=0)
        half = 0.54 * float((high - low).max())
        ax.set_xlim(*((low + high)[0] / 2 + half * np.array([-1, 1])))
        ax.set_ylim(*((low + high)[1] / 2 + half * np.array([-1, 1])))
        ax.set_title(title, fontsize=10, loc="left")
    figure.savefig(IMAGES / path, dpi=DPI)
    shrink(IMAGES / path)
    plt.close(figure)


def minimize_cost(
    cost: Callable[[Map], losses.Loss], gradient: Callable[[Map], NDArray[np.float64]], start: Map, steps: int
) -> Map:
    """Return the map that a standard optimizer, L-BFGS, finds for a cost and its gradient."""
    from scipy.optimize import minimize

    def evaluate(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        places = flat.reshape(start.shape).astype(np.float32)
        return float(cost(places)), gradient(places).ravel()

    done = minimize(
        evaluate, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": steps, "maxfun": 2 * steps}
    )
    return np.asarray(done.x.reshape(start.shape), dtype=np.float32)


def which_loss(data: Data, steps: int = 250) -> None:
    """Compare maps that minimize the stated cost (eq. 7) and J, the effective one of resting negatives."""
    graph, kernel = data.fuzzy, vicinal.fit_ab()
    # J is eq. 29 with half the repulsion.
    halved = vicinal.Schedule(update_negatives=True, repulsion_strength=0.5)
    sampled = data.umap()
    model = vicinal.UMAP(n_neighbors=N_NEIGHBORS, random_state=SEED, n_epochs=0).fit(data.rows)
    start = model.embedding_
    effective = minimize_cost(
        lambda y: losses.effective_loss(graph, y, kernel, halved),
        lambda y: losses.expected_gradient(graph, y, kernel, halved),
        start,
        steps,
    )
    stated = minimize_cost(
        lambda y: losses.reduced_cross_entropy(graph, y, kernel),
        lambda y: losses.stated_gradient(graph, y, kernel),
        start,
        steps,
    )
    maps = {
        "the start": start,
        "UMAP's sampler": sampled,
        "L-BFGS on the effective loss J": effective,
        "L-BFGS on the stated loss (eq. 7)": stated,
    }
    draw(f"forces-loss-{data.name}.png", data, {name: maps[name] for name in list(maps)[1:]}, columns=3)
    lines = []
    for name, places in maps.items():
        one = losses.reduced_cross_entropy(graph, places, kernel)
        other = losses.effective_loss(graph, places, kernel, negatives="resting")
        lines.append(
            [
                name,
                *(f"{v:,.0f}" for v in (one.attraction, one.repulsion, one.value)),
                *(f"{v:,.0f}" for v in (other.repulsion, other.value)),
                *data.scores(places),
            ]
        )
    table(
        [
            "map",
            "attraction",
            "stated repulsion",
            "c2 (eq. 7)",
            "effective repulsion",
            "effective loss J",
            "recall@15",
            "10-NN accuracy",
        ],
        lines,
    )


def compare_gradients(data: Data, embedding: Map, kernel: Kernel) -> None:
    """Compare eq. 25 and eq. 26 in the finished map with the mean step of an epoch."""
    degree, n = data.fuzzy.degree(), data.fuzzy.n
    stated = losses.stated_gradient(data.fuzzy, embedding, kernel)
    expected = losses.expected_gradient(data.fuzzy, embedding, kernel)
    moves = np.zeros_like(expected)
    rate, seeds = 1e-3, 200
    for seed in range(seeds):
        layout = vicinal.Layout(data.fuzzy, embedding, kernel, vicinal.Schedule(1, rate), seed=seed)
        layout.step(1)
        moves -= (layout.embedding.astype(np.float64) - embedding) / rate / seeds

    def cosine(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
        return float((x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum()))

    size = [float(np.sqrt((g * g).sum(axis=1).mean())) for g in (moves, expected, stated)]
    weight = 5 * degree.mean() / (2 * n)
    print(f"mean degree {degree.mean():.2f}: the repulsion of a pair is {weight:.2e} of the stated one")
    table(
        ["gradient in UMAP's map", "length per row", "cosine with the sampler's mean step"],
        [
            ["mean of 200 epochs", f"{size[0]:.3g}", "1"],
            ["expected, eq. 25", f"{size[1]:.3g}", f"{cosine(moves, expected):.3f}"],
            ["stated, eq. 26", f"{size[2]:.3g}", f"{cosine(moves, stated):.3f}"],
        ],
    )


def asymmetry(data: Data) -> None:
    """Print how far the mean step of resting negatives is from a gradient.

    The derivative of a gradient by the places is a symmetric matrix. In that of the pushes, the block of rows i and j
    is d_i H_ij with a symmetric H_ij. Its antisymmetric part is compared with its symmetric part, by their norms: for
    the factors d_i alone, and in the finished map.
    """
    degree, kernel = data.fuzzy.degree(), vicinal.fit_ab()

    def ratio(blocks: NDArray[np.float64]) -> float:
        turned = blocks.swapaxes(0, 1)
        return float(np.linalg.norm(blocks - turned) / np.linalg.norm(blocks + turned))

    factors = np.broadcast_to(degree[:, None], (len(degree), len(degree)))
    print(f"asymmetry of the weights of the pushes: {ratio(factors):.3f}")
    if data.fuzzy.n > 2000:
        return  # the matrix of the map would not fit into memory
    places = data.umap().astype(np.float64)
    apart = places[:, None] - places[None]
    d2 = (apart**2).sum(axis=2)
    np.fill_diagonal(d2, 1.0)

    def push(squared: NDArray[np.float64]) -> NDArray[np.float64]:
        return -2 * kernel.b / ((1e-3 + squared) * (1 + kernel.a * squared**kernel.b))

    slope = (push(d2 * 1.00001) - push(d2 * 0.99999)) / (2e-5 * d2)
    blocks = push(d2)[..., None, None] * np.eye(2) + 2 * slope[..., None, None] * apart[..., None] * apart[:, :, None]
    blocks[np.arange(len(d2)), np.arange(len(d2))] = 0.0
    print(f"asymmetry of the derivative of the pushes in the map: {ratio(degree[:, None, None, None] * blocks):.3f}")


def histories(data: Data) -> None:
    """Draw both losses along UMAP's epochs, relative to their smallest value."""
    import matplotlib.pyplot as plt

    kernel = vicinal.fit_ab()
    kinds = {
        "stated, eq. 7": lambda y: losses.reduced_cross_entropy(data.fuzzy, y, kernel),
        "effective, J": lambda y: losses.effective_loss(data.fuzzy, y, kernel, negatives="resting"),
    }
    records = {name: losses.History(loss, every=10) for name, loss in kinds.items()}

    def watch(*report: Any) -> None:
        for record in records.values():
            record(*report)

    data.umap(callback=watch)
    figure, ax = plt.subplots(figsize=(5.2, 2.9), layout="constrained")
    for (name, record), color in zip(records.items(), plot.palette(2), strict=True):
        least = int(record.values.argmin())
        ax.plot(record.epochs, record.values / record.values[least], color=color, label=name)
        at = {"first": 0, "least": least, "last": -1}
        told = (f"{when} {record.values[i]:,.0f} (epoch {record.epochs[i]})" for when, i in at.items())
        print(f"{data.name}, {name}: {', '.join(told)}")
    ax.set(xlabel="epoch", ylabel="loss / its smallest value", yscale="log")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("{x:g}")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    figure.savefig(IMAGES / f"forces-history-{data.name}.png", dpi=DPI)
    shrink(IMAGES / f"forces-history-{data.name}.png")
    plt.close(figure)


def negatives(data: Data) -> None:
    """Compare maps of several negative sample rates, with and without moving negatives."""
    kernel = vicinal.fit_ab()
    maps, lines = {}, []
    for moving in (False, True):
        for rate in (1, 5, 25):
            name = f"m = {rate}" + (", negatives move" if moving else "")
            places = data.umap(negative_sample_rate=rate, update_negatives=moving)
            maps[name] = places
            common = losses.effective_loss(data.fuzzy, places, kernel, negatives="moving")
            extent = np.sqrt(((places - places.mean(axis=0)) ** 2).sum(axis=1).mean())
            lines.append(
                [
                    name,
                    f"{extent:.1f}",
                    f"{common.attraction:,.0f}",
                    f"{common.repulsion / 5:,.0f}",
                    *data.scores(places),
                ]
            )
    draw(f"forces-negatives-{data.name}.png", data, maps, columns=3)
    table(["UMAP with", "radius", "attraction", "repulsion of one negative", "recall@15", "10-NN accuracy"], lines)


def balancing_exaggeration(graph: Graph, embedding: Map, step: float = 0.01) -> float:
    """Return the exaggeration at which t-SNE would neither expand nor shrink this map.

    If the map is scaled by s, its attraction A(s) and repulsion ln Z(s) (eq. 22) change. The exaggeration rho balances
    them if rho A'(s) + (ln Z)'(s) = 0.
    """
    above, below = (losses.kl_divergence(graph, embedding * np.float32(1 + sign * step)) for sign in (1, -1))
    return -(above.repulsion - below.repulsion) / (above.attraction - below.attraction)


def relatives(data: Data) -> None:
    """Compare the balance of forces of t-SNE with several exaggerations, LargeVis and UMAP."""
    tsne = {rho: vicinal.TSNE(perplexity=PERPLEXITY, exaggeration=rho, random_state=SEED) for rho in (1.0, 4.0, 12.0)}
    maps = {f"t-SNE, exaggeration {rho:g}": model.fit_transform(data.rows) for rho, model in tsne.items()}
    maps["LargeVis"] = vicinal.LargeVis(perplexity=PERPLEXITY, random_state=SEED).fit_transform(data.rows)
    maps["UMAP, a = b = 1"] = data.umap(a=1.0, b=1.0)
    maps["UMAP"] = data.umap()
    draw(f"forces-relatives-{data.name}.png", data, maps, columns=3)
    lines = []
    for name, places in maps.items():
        divergence = losses.kl_divergence(data.entropic, places)
        lines.append(
            [
                name,
                f"{divergence.value:.3f}",
                f"{balancing_exaggeration(data.entropic, places):.2f}",
                *data.scores(places),
            ]
        )
    table(["map", "c4 (eq. 22)", "balancing exaggeration", "recall@15", "10-NN accuracy"], lines)


def main(sections: list[str]) -> None:
    mpl.use("Agg")
    wanted = sections or ["loss", "asymmetry", "negatives", "relatives"]
    for data in (Data.read("digits"), Data.read("fashion", FASHION_ROWS)):
        print(f"## {data.name}, {data.fuzzy.n} rows\n")
        if "loss" in wanted:
            if data.name == "digits":  # every step of L-BFGS computes all pairs
                which_loss(data)
            compare_gradients(data, data.umap(), vicinal.fit_ab())
            histories(data)
        if "asymmetry" in wanted:
            asymmetry(data)
        if "negatives" in wanted:
            negatives(data)
        if "relatives" in wanted:
            relatives(data)


if __name__ == "__main__":
    main(sys.argv[1:])
