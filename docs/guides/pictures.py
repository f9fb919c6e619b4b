"""Make the pictures of README and of "Pictures" in viewer.md: python docs/guides/pictures.py [name ...].

They go to docs/images. Cells come with scanpy, texts are the descriptions of functions and classes, images are
Fashion-MNIST of Debian's package dataset-fashion-mnist, tables are the package palmerpenguins.
"""

from __future__ import annotations

import gzip
import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

import vicinal
from vicinal import plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

IMAGES = Path(__file__).parents[1] / "images"
FASHION = Path("/usr/share/datasets/fashion-mnist")
CLOTHES = ["T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]
SEED = 42
# Pictures of README are drawn at about 220 pixels, a column of four: names must be legible there.
SMALL_INCHES, SMALL_DPI = 2.75, 220
LARGE_DPI = 110
COLORS = 256  # of the saved palette
# Packages whose functions and classes are the texts.
TOPICS = {
    "linear algebra": ["numpy.linalg", "scipy.linalg", "scipy.sparse.linalg"],
    "Fourier": ["numpy.fft", "scipy.fft"],
    "statistics": ["scipy.stats"],
    "signals": ["scipy.signal"],
    "images": ["scipy.ndimage"],
    "special functions": ["scipy.special"],
    "optimization": ["scipy.optimize"],
    "interpolation": ["scipy.interpolate"],
    "arrays": ["numpy"],
    "learning": ["sklearn.linear_model", "sklearn.ensemble", "sklearn.tree", "sklearn.cluster", "sklearn.metrics"],
}
CELLS = {
    "CD4+/CD25 T Reg": "T",
    "CD4+/CD45RA+/CD25- Naive T": "T",
    "CD4+/CD45RO+ Memory": "T",
    "CD8+/CD45RA+ Naive Cytotoxic": "T",
    "CD8+ Cytotoxic T": "cytotoxic T",
    "CD14+ Monocyte": "monocytes",
    "CD19+ B": "B",
    "CD34+": "progenitors",
    "CD56+ NK": "NK",
    "Dendritic": "dendritic",
}

Rows = NDArray[Any]


def small(model: Any, labels: Any, **more: Any) -> Axes:
    """Draw a square map for README, with names instead of a legend."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(SMALL_INCHES, SMALL_INCHES))
    figure.subplots_adjust(0, 0, 1, 1)
    plot.points(model, labels, ax=ax, legend=False, **{"names": True, **more})
    square(ax)
    return ax


def square(ax: Axes) -> None:
    """Give the axes a square window around the map."""
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    half = max(right - left, high - low) / 2
    ax.set_xlim((left + right) / 2 - half, (left + right) / 2 + half)
    ax.set_ylim((low + high) / 2 - half, (low + high) / 2 + half)


def clothes() -> tuple[Rows, Rows]:
    """Return 70,000 images of clothes as rows, and their kinds."""
    images, kinds = [], []
    for part in ("train", "t10k"):
        with gzip.open(FASHION / f"{part}-images-idx3-ubyte.gz") as file:
            images.append(np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784))
        with gzip.open(FASHION / f"{part}-labels-idx1-ubyte.gz") as file:
            kinds.append(np.frombuffer(file.read(), np.uint8, offset=8))
    return np.concatenate(images).astype(np.float32), np.array(CLOTHES)[np.concatenate(kinds)]


def readme_cells() -> Axes:
    import scanpy

    cells = scanpy.datasets.pbmc68k_reduced()
    kinds = [CELLS[name] for name in cells.obs["bulk_labels"]]
    return small(vicinal.UMAP(min_dist=0.3, random_state=SEED).fit(cells.obsm["X_pca"]), kinds)


def readme_texts() -> Axes:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts: dict[str, str] = {}
    for topic, modules in TOPICS.items():
        for module in map(importlib.import_module, modules):
            names = [name for name in dir(module) if not name.startswith("_") and callable(getattr(module, name))]
            # Examples contain random numbers.
            described = [(inspect.getdoc(getattr(module, name)) or "").partition("\nExamples\n")[0] for name in names]
            texts |= {text: topic for text in described if len(text) > 300 and text not in texts}
    words = TfidfVectorizer(min_df=3, max_df=0.3, stop_words="english", sublinear_tf=True)
    rows = words.fit_transform(texts)
    print(f"{rows.shape[0]:,} texts")
    return small(vicinal.UMAP(metric="cosine", min_dist=0.3, random_state=SEED).fit(rows), list(texts.values()))


def readme_images() -> Axes:
    rows, kinds = clothes()
    return small(vicinal.UMAP(random_state=SEED).fit(rows), kinds)


def readme_tables() -> Axes:
    """Draw what `vicinal embed penguins.csv --scale standard --categories one-hot` maps."""
    import pandas as pd
    from palmerpenguins import load_penguins
    from sklearn.preprocessing import StandardScaler

    table = load_penguins().dropna()
    numbers = table[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]]
    rows = np.hstack([StandardScaler().fit_transform(numbers), pd.get_dummies(table[["sex", "island"]])])
    kinds = (table["species"] + " " + table["sex"].map({"male": "♂", "female": "♀"})).to_numpy()
    return small(vicinal.UMAP(min_dist=0.3, random_state=SEED).fit(rows.astype(np.float32)), kinds)


def digits() -> tuple[Any, Rows]:
    X, y = load_digits(return_X_y=True)
    return vicinal.UMAP(random_state=SEED).fit(X), y


def plot_connectivity() -> Axes:
    return plot.connectivity(*digits())


def plot_recall() -> Axes:
    return plot.diagnostic(digits()[0], kind="recall")


def plot_quality() -> Axes:
    return plot.diagnostic(digits()[0], kind="quality")


def plot_density() -> Axes:
    return plot.diagnostic(digits()[0], kind="density")


def plot_shaded() -> Axes:
    rows, kinds = clothes()
    return plot.points(vicinal.UMAP(random_state=SEED).fit(rows), kinds, names=True)


def plot_loss() -> Axes:
    X, _ = load_digits(return_X_y=True)
    return plot.loss(vicinal.UMAP(compute_loss=True, random_state=SEED).fit(X))


def plot_compare() -> list[Axes]:
    X, y = load_digits(return_X_y=True)
    maps = {f"n_neighbors {k}": vicinal.UMAP(n_neighbors=k, random_state=SEED).fit(X) for k in (5, 15, 50)}
    return plot.compare(maps, y)


PICTURES: dict[str, Callable[[], Axes | list[Axes]]] = {
    one.__name__.replace("_", "-"): one
    for one in (
        *(readme_cells, readme_texts, readme_images, readme_tables),
        *(plot_connectivity, plot_recall, plot_quality, plot_density, plot_shaded, plot_loss, plot_compare),
    )
}


def shrink(path: Path) -> None:
    """Save a picture with a palette, which takes about half of the space.

    The most frequent colors (grounds, classes) stay as they are, the other colors cover the range of shades.
    """
    from PIL import Image

    with Image.open(path) as picture:
        colored = picture.convert("RGB")
    counts = sorted(colored.getcolors(colored.width * colored.height), reverse=True)
    frequent = [color for _, color in counts[: COLORS // 2]]
    shades = colored.quantize(COLORS - len(frequent), method=Image.Quantize.MAXCOVERAGE).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette([*(part for color in frequent for part in color), *shades])
    colored.quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)


def main(names: list[str]) -> None:
    mpl.use("Agg")
    for name in names or PICTURES:
        path = IMAGES / f"{name}.png"
        drawn = PICTURES[name]()
        if name.startswith("readme-"):
            assert not isinstance(drawn, list)
            figure = drawn.get_figure()
            assert figure is not None
            figure.savefig(path, dpi=SMALL_DPI, facecolor=drawn.get_facecolor())
        else:
            plot.save(path, drawn, dpi=LARGE_DPI)
        shrink(path)
        mpl.pyplot.close("all")
        print(f"wrote {path.name}, {path.stat().st_size / 1e3:.0f} kB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
