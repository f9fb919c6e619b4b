"""Draw the pictures of docs/guides/reliability.md: `python docs/guides/reliability.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from pictures import shrink
from sklearn.datasets import load_digits

import vicinal
from vicinal import plot

IMAGES = Path(__file__).resolve().parents[1] / "images"
SEED = 42


def panels(count: int) -> tuple[Figure, Any]:
    figure = Figure(figsize=(5.2 * count, 5.2), layout="constrained")
    return figure, figure.subplots(1, count)


def draw_digits() -> None:
    bunch = load_digits()
    model = vicinal.UMAP(random_state=SEED).fit(bunch.data)
    print(model.reliability_)
    figure, axes = panels(3)
    plot.points(model, bunch.target, ax=axes[0], title="Digits")
    plot.reliability(model, ax=axes[1])
    plot.torn_edges(model, ax=axes[2])
    figure.savefig(IMAGES / "reliability-digits.png", dpi=80)
    shrink(IMAGES / "reliability-digits.png")
    figure, axes = panels(3)
    for ax, part in zip(axes, ("label", "spread", "stretch"), strict=True):
        values = np.clip(model.reliability_.columns()[part], None, 1.0) if part == "spread" else None
        if values is None:
            plot.reliability(model, part=part, ax=ax)
        else:
            plot.points(model, values=values, ax=ax, title="Spread, at most 1")
    figure.savefig(IMAGES / "reliability-parts.png", dpi=80)
    shrink(IMAGES / "reliability-parts.png")


def draw_noise() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2000, 50))
    model = vicinal.UMAP(random_state=SEED, n_neighbors=5).fit(noise)
    print(model.reliability_)
    figure, axes = panels(2)
    plot.points(model, ax=axes[0], title="Normal noise, n_neighbors=5")
    plot.reliability(model, ax=axes[1], title="Reliability of the map of noise")
    figure.savefig(IMAGES / "reliability-noise.png", dpi=80)
    shrink(IMAGES / "reliability-noise.png")


def draw_averages() -> None:
    """Averages of two rows each have half the noise: they are neighbors of each other and form islands of their own."""
    rng = np.random.default_rng(0)
    centers = 4.0 * rng.normal(size=(5, 30))
    cluster = rng.integers(5, size=2000)
    rows = centers[cluster] + rng.normal(size=(2000, 30))
    mixed = np.arange(2000) < 100
    other = (cluster[mixed] + 1 + rng.integers(4, size=100)) % 5
    rows[mixed] = 0.5 * (rows[mixed] + centers[other] + rng.normal(size=(100, 30)))
    model = vicinal.UMAP(random_state=SEED).fit(rows)
    figure, axes = panels(2)
    plot.points(model, np.where(mixed, "average of two rows", "row of a cluster"), ax=axes[0], title="Five clusters")
    plot.reliability(model, ax=axes[1])
    found = model.reliability_.reliability
    print(f"averages {found[mixed].mean():.2f}, rows of clusters {found[~mixed].mean():.2f}")
    figure.savefig(IMAGES / "reliability-averages.png", dpi=80)
    shrink(IMAGES / "reliability-averages.png")


if __name__ == "__main__":
    draw_digits()
    draw_noise()
    draw_averages()
