"""The benchmark data as .npy files, so that every system reads the same float32 rows at the same cost.

Fashion-MNIST comes from Debian's package `dataset-fashion-mnist` (60,000 training rows, then 10,000 test rows); digits,
iris, wine and breast cancer come with scikit-learn, the last two standardized; shapes.py makes the others. Files are
created once and cached in `.cache/`, which git ignores.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from shapes import METRICS, SHAPES

CACHE = Path(__file__).parent / ".cache"
FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")
IMAGE_SIDE = 28
IMAGE_HEADER, LABEL_HEADER = 16, 8

# One copy per shift (rows down, columns right), the unshifted one first.
SHIFTS = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (-1, -1), (1, -1), (-1, 1), (0, 2))
# A shift that is not among the copies, for rows that are close to the data but not in it.
UNSEEN_SHIFT = (2, 0)
SHUFFLE_SEED = 20240229


@dataclass(frozen=True)
class Dataset:
    """The first `rows` rows of a file; `key` identifies them in caches and results.

    Data without classes has no `label_file`.
    """

    name: str
    rows: int
    data_file: Path
    label_file: Path | None
    metric: str = "euclidean"

    @property
    def key(self) -> str:
        return f"{self.name}-{self.rows}"

    def data(self) -> Any:
        return read_rows(self.data_file, 0, self.rows)

    def labels(self) -> np.ndarray:
        if self.label_file is None:
            raise ValueError(f"{self.name} has no classes")
        return read_rows(self.label_file, 0, self.rows)


def read_rows(file: Path, start: int, stop: int) -> Any:
    """Copy some rows of a file without loading the others; `.npz` files are sparse."""
    if file.suffix == ".npz":
        from scipy.sparse import load_npz

        return load_npz(file)[start:stop]
    return np.array(np.load(file, mmap_mode="r")[start:stop])


def open_dataset(name: str, size: int | None = None) -> Dataset:
    """Open one of SOURCES, or its first `size` rows."""
    data_file, label_file = CACHE / f"{name}.npy", CACHE / f"{name}-labels.npy"
    if not data_file.exists():
        CACHE.mkdir(exist_ok=True)
        data, labels = SOURCES[name]()
        # The file of the data is written last: if it exists, both are complete.
        if labels is not None:
            np.save(label_file, np.ascontiguousarray(labels, dtype=np.int64))
        np.save(data_file, np.ascontiguousarray(data, dtype=np.float32))
    rows = len(np.load(data_file, mmap_mode="r"))
    known = label_file if label_file.exists() else None
    return Dataset(name, min(rows, size or rows), data_file, known, METRICS.get(name, "euclidean"))


def open_shuffled(base: Dataset) -> Dataset:
    """Open the rows of a data set without classes in random order."""
    name = f"{base.key}-shuffled"
    data_file = CACHE / f"{name}.npy"
    if not data_file.exists():
        np.save(data_file, np.random.default_rng(SHUFFLE_SEED).permutation(base.data()))
    return Dataset(name, base.rows, data_file, None, base.metric)


def open_topics(size: int | None = None) -> Dataset:
    """Open the sparse rows of 20 topics (topics.py), or the first `size`."""
    from scipy.sparse import save_npz
    from topics import ROWS, make_topics

    data_file, label_file = CACHE / "topics.npz", CACHE / "topics-labels.npy"
    if not (data_file.exists() and label_file.exists()):
        CACHE.mkdir(exist_ok=True)
        data, labels = make_topics()
        save_npz(data_file, data)
        np.save(label_file, labels.astype(np.int64))
    return Dataset("topics", min(ROWS, size or ROWS), data_file, label_file)


def open_grown(base: Dataset) -> Dataset:
    """Open ten pixel-shifted copies of an image data set, one after the other."""
    name = f"{base.key}-grown"
    data_file, label_file = CACHE / f"{name}.npy", CACHE / f"{name}-labels.npy"
    rows = base.rows * len(SHIFTS)
    if not (data_file.exists() and label_file.exists()):
        data = base.data()
        partial = data_file.with_suffix(".partial.npy")
        grown = np.lib.format.open_memmap(partial, "w+", np.float32, (rows, data.shape[1]))
        for copy, shift in enumerate(SHIFTS):
            grown[copy * base.rows : (copy + 1) * base.rows] = shift_images(data, shift)
        grown.flush()
        partial.rename(data_file)
        np.save(label_file, np.tile(base.labels(), len(SHIFTS)))
    return Dataset(name, rows, data_file, label_file)


def shift_images(data: np.ndarray, shift: tuple[int, int]) -> np.ndarray:
    """Shift every image by whole pixels; pixels that leave one side are dropped, zeros enter at the other."""
    down, right = shift
    images = data.reshape(-1, IMAGE_SIDE, IMAGE_SIDE)
    moved = np.zeros_like(images)
    target_rows, source_rows = overlap(down)
    target_columns, source_columns = overlap(right)
    moved[:, target_rows, target_columns] = images[:, source_rows, source_columns]
    return moved.reshape(data.shape)


def overlap(shift: int) -> tuple[slice, slice]:
    """Return the target and source slices of a shifted axis."""
    if shift >= 0:
        return slice(shift, IMAGE_SIDE), slice(0, IMAGE_SIDE - shift)
    return slice(0, IMAGE_SIDE + shift), slice(-shift, IMAGE_SIDE)


def read_fashion() -> tuple[np.ndarray, np.ndarray]:
    images, labels = [], []
    for part in ("train", "t10k"):
        pixels = gzip.decompress((FASHION_MNIST / f"{part}-images-idx3-ubyte.gz").read_bytes())
        images.append(np.frombuffer(pixels, np.uint8, offset=IMAGE_HEADER).reshape(-1, IMAGE_SIDE**2))
        classes = gzip.decompress((FASHION_MNIST / f"{part}-labels-idx1-ubyte.gz").read_bytes())
        labels.append(np.frombuffer(classes, np.uint8, offset=LABEL_HEADER))
    return np.concatenate(images), np.concatenate(labels)


def read_digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)


def read_iris() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_iris

    return load_iris(return_X_y=True)


def read_standardized(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Read scikit-learn's data set `load_{name}` with columns of mean 0 and variance 1."""
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    data, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    return StandardScaler().fit_transform(data), labels


SOURCES = {
    "fashion": read_fashion,
    "digits": read_digits,
    "iris": read_iris,
    "wine": partial(read_standardized, "wine"),
    "breast cancer": partial(read_standardized, "breast_cancer"),
    **SHAPES,
}
