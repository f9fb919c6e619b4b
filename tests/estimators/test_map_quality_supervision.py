"""Supervised maps of digits: labels improve the places of rows with and without labels, random labels do not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier

from vicinal import UMAP

Rows = NDArray[np.float32]


def held_out_accuracy(X: Rows, given: NDArray[np.int64] | None, truth: NDArray[np.int64], seed: int) -> float:
    """Return the 5-NN accuracy of held-out rows, placed by transform among the training rows and their true labels."""
    held = np.arange(len(X)) % 4 == 0
    model = UMAP(random_state=seed).fit(X[~held], None if given is None else given[~held])
    nearest = KNeighborsClassifier(5).fit(model.embedding_, truth[~held])
    return float(nearest.score(model.transform(X[held]), truth[held]))


@pytest.fixture(scope="module")
def accuracies(digits: Rows, digit_labels: NDArray[np.int64], global_random_seed: int) -> dict[str, float]:
    labeled = np.random.default_rng(global_random_seed).random(len(digits)) < 0.5
    kinds = {"none": None, "half": np.where(labeled, digit_labels, -1), "all": digit_labels}
    return {name: held_out_accuracy(digits, given, digit_labels, global_random_seed) for name, given in kinds.items()}


def test_held_out_rows_are_placed_in_their_class(accuracies: dict[str, float]) -> None:
    """umap-learn 0.5.12 reaches 0.988 with the same split, on average over three seeds."""
    assert accuracies["all"] >= 0.984


def test_accuracy_with_half_of_the_labels_is_in_between(accuracies: dict[str, float]) -> None:
    tolerance = 0.004  # one of the 450 held-out rows
    assert accuracies["none"] - tolerance <= accuracies["half"] <= accuracies["all"] + tolerance


@pytest.mark.nightly
def test_half_of_the_labels_separate_the_classes(
    digits: Rows, digit_labels: NDArray[np.int64], global_random_seed: int
) -> None:
    """Compare the share of neighbors in the map that are of the class of the row."""
    half = np.where(np.random.default_rng(global_random_seed).random(len(digits)) < 0.5, digit_labels, -1)
    purity = []
    for given in (None, half, digit_labels):
        model = UMAP(random_state=global_random_seed).fit(digits, given)
        around = KNeighborsClassifier(15).fit(model.embedding_, digit_labels).kneighbors(return_distance=False)
        purity.append((digit_labels[around] == digit_labels[:, None]).mean())
    assert purity[0] < purity[1] < purity[2]
    assert purity[2] > 0.99


def test_random_labels_do_not_predict_held_out_rows(digits: Rows, global_random_seed: int) -> None:
    random = np.random.default_rng(global_random_seed).integers(10, size=len(digits))
    accuracy = held_out_accuracy(digits, random, random, global_random_seed)
    assert accuracy < 0.1 + 4 * np.sqrt(0.1 * 0.9 / 450)  # chance plus four standard errors


def test_rows_of_similar_continuous_targets_are_neighbors(digits: Rows, global_random_seed: int) -> None:
    """A larger target_weight brings rows of similar values closer; new rows are placed without the target."""
    value = digits.sum(axis=1)
    held = np.arange(len(digits)) % 4 == 0
    models = {
        weight: UMAP(target_metric="l2", target_weight=weight, random_state=global_random_seed).fit(
            digits[~held], value[~held]
        )
        for weight in (0.1, 0.9)
    }
    spreads = []
    for model in models.values():
        around = KNeighborsClassifier(15).fit(model.embedding_, np.zeros(len(model.embedding_)))
        rows = around.kneighbors(return_distance=False)
        spreads.append(np.abs(value[~held][rows] - value[~held][:, None]).mean())
        assert np.isfinite(model.transform(digits[held])).all()
    assert spreads[1] < 0.8 * spreads[0]


@pytest.mark.nightly
def test_nan_in_a_continuous_target_means_unlabeled(digits: Rows, global_random_seed: int) -> None:
    value = digits.sum(axis=1)
    some = np.where(np.arange(len(digits)) % 2 == 0, value, np.nan)
    apart = []
    for y in (value, some, np.full(len(digits), np.nan)):
        model = UMAP(target_metric="l2", target_weight=0.9, random_state=global_random_seed).fit(digits, y)
        apart.append(np.abs(value[nearest(model)] - value[:, None]).mean())
    assert apart[0] < apart[1] < apart[2]


def nearest(model: UMAP) -> NDArray[np.int64]:
    fitted = KNeighborsClassifier(15).fit(model.embedding_, np.zeros(len(model.embedding_)))
    return np.asarray(fitted.kneighbors(return_distance=False))


@pytest.mark.nightly
def test_neighbors_have_similar_ordinal_levels(
    digits: Rows, digit_labels: NDArray[np.int64], global_random_seed: int
) -> None:
    """Labels as ordered levels bring rows of close levels together."""
    ordered = UMAP(target_metric="ordinal", target_weight=0.7, random_state=global_random_seed).fit(
        digits, digit_labels
    )
    unlabeled = UMAP(random_state=global_random_seed).fit(digits)
    apart = [np.abs(digit_labels[nearest(model)] - digit_labels[:, None]).mean() for model in (ordered, unlabeled)]
    assert apart[0] < apart[1]
