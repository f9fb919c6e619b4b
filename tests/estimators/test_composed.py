"""Composed models: maps of two fitted models of the same rows."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import vicinal
from vicinal import TSNE, UMAP, KNeighborsTransformer, LargeVis
from vicinal.quality.measures import trustworthiness

Rows = NDArray[np.float32]
OPERATIONS = {"*": operator.mul, "+": operator.add, "-": operator.sub}


@pytest.fixture(scope="module")
def halves(digits: Rows) -> tuple[UMAP, UMAP]:
    return tuple(UMAP(n_epochs=100, random_state=0).fit(half) for half in (digits[:600, :32], digits[:600, 32:]))


@pytest.mark.parametrize("sign", OPERATIONS)
def test_composed_model_maps_fitted_and_new_rows(sign: str, halves: tuple[UMAP, UMAP], digits: Rows) -> None:
    model = OPERATIONS[sign](*halves)
    assert model.embedding_.shape == (600, 2)
    assert np.isfinite(model.embedding_).all()
    new = digits[590:620, :32], digits[590:620, 32:]
    places = model.transform(new)
    np.testing.assert_array_equal(places[:10], model.embedding_[590:])
    np.testing.assert_array_equal(model.transform((new[0][15:16], new[1][15:16])), places[15:16])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(new), places)


def test_graphs_are_those_of_umap_learn(golden: Any) -> None:
    """umap-learn drops edges that do not fire in 200 epochs."""
    file, epochs = golden("functions"), 200
    left, right = (UMAP(n_neighbors=10, n_epochs=epochs, random_state=0).fit(view) for view in file["views"])
    for operation, expected in zip(OPERATIONS.values(), file["composed"], strict=True):
        apart = np.abs(operation(left, right).graph_.toarray() - expected)
        assert apart.max() < 1.0 / epochs + 1e-5


def test_composed_model_is_a_umap_that_follows_from_its_parts(halves: tuple[UMAP, UMAP], digits: Rows) -> None:
    model = (halves[0] * halves[1]) + halves[1]
    assert isinstance(model, UMAP)
    assert (model.n_neighbors, model.min_dist, model.n_epochs) == (15, 0.1, 100)
    assert set(model.get_params(deep=False)) == {"left", "right", "operation"}
    assert not hasattr(model, "n_rows")
    with pytest.raises(TypeError, match="fit or update them, and compose them again"):
        model.fit(digits)
    assert not hasattr(model, "_raw_data")


def test_graphs_without_maps_are_composed_to_a_map(iris: Rows) -> None:
    model = UMAP(transform_mode="graph").fit(iris[:, :2]) * UMAP(n_epochs=20, random_state=0).fit(iris[:, 2:])
    assert model.embedding_.shape == (150, 2)


def test_intersection_of_two_halves_is_better_than_each_half(halves: tuple[UMAP, UMAP], digits: Rows) -> None:
    whole = halves[0] * halves[1]
    quality = [trustworthiness(digits[:600], m.embedding_) for m in (whole, *halves)]
    assert quality[0] > max(quality[1:])


def test_composed_model_can_be_composed_again(halves: tuple[UMAP, UMAP], digits: Rows) -> None:
    a, b = halves
    model = (a * b) + a
    places = model.transform(((digits[600:603, :32], digits[600:603, 32:]), digits[600:603, :32]))
    assert np.isfinite(places).all()


def test_invalid_composition_is_refused(halves: tuple[UMAP, UMAP], digits: Rows) -> None:
    with pytest.raises(ValueError, match="600 rows and one of 100"):
        halves[0] * UMAP(n_epochs=5).fit(digits[:100])
    with pytest.raises(TypeError, match="float"):
        halves[0] + 2.0
    with pytest.raises(TypeError, match="pair"):
        (halves[0] * halves[1]).transform(digits[:5])


# Rows that are equal in the left part, in the right part, or in both.
EQUAL = {"both": (7, 3), "both, twice": (8, 3), "left only": (9, 3), "right only": (10, 3)}


@pytest.fixture(scope="module")
def parts(digits: Rows) -> tuple[Rows, Rows]:
    """The halves of rows; row 3 occurs again as ``EQUAL`` says."""
    left, right = digits[:300, :32].copy(), digits[:300, 32:].copy()
    for part, names in ((left, ("both", "both, twice", "left only")), (right, ("both", "both, twice", "right only"))):
        for name in names:
            part[EQUAL[name][0]] = part[EQUAL[name][1]]
    return left, right


@pytest.fixture(scope="module")
def fitted_parts(parts: tuple[Rows, Rows]) -> tuple[UMAP, UMAP]:
    left, right = (UMAP(n_epochs=60, random_state=0).fit(part) for part in parts)
    return left, right


def check_equal_rows(model: Any, given: Callable[[slice], Any]) -> None:
    """Check that rows share a place exactly if all parts are equal, and that fitted rows keep their places."""
    places = model.embedding_
    for name, (row, first) in EQUAL.items():
        assert np.array_equal(places[row], places[first]) == name.startswith("both"), name
    np.testing.assert_array_equal(model.transform(given(slice(None))), places)
    # Whatever else is in the call.
    np.testing.assert_array_equal(model.transform(given(slice(7, 11))), places[7:11])


@pytest.mark.parametrize("sign", OPERATIONS)
def test_rows_equal_in_both_parts_share_one_place(
    sign: str, parts: tuple[Rows, Rows], fitted_parts: tuple[UMAP, UMAP], tmp_path: Path
) -> None:
    model = OPERATIONS[sign](*fitted_parts)

    def given(rows: slice) -> Any:
        return parts[0][rows], parts[1][rows]

    check_equal_rows(model, given)
    model.save(tmp_path / "model.vicinal")
    check_equal_rows(vicinal.load(tmp_path / "model.vicinal"), given)


@pytest.mark.parametrize("nested_first", [True, False])
def test_rows_equal_in_all_parts_of_a_nested_composition_share_one_place(
    nested_first: bool, parts: tuple[Rows, Rows], fitted_parts: tuple[UMAP, UMAP], tmp_path: Path
) -> None:
    left, right = fitted_parts
    model = (left * right) + left if nested_first else left + (right * left)

    def given(rows: slice) -> Any:
        a, b = parts[0][rows], parts[1][rows]
        return ((a, b), a) if nested_first else (a, (b, a))

    check_equal_rows(model, given)
    model.save(tmp_path / "model.vicinal")
    check_equal_rows(vicinal.load(tmp_path / "model.vicinal"), given)


def test_pair_of_fitted_rows_that_never_came_together_is_a_new_row(
    parts: tuple[Rows, Rows], fitted_parts: tuple[UMAP, UMAP]
) -> None:
    model = fitted_parts[0] * fitted_parts[1]
    place = model.transform((parts[0][20:21], parts[1][21:22]))
    assert np.isfinite(place).all()
    assert not (model.embedding_ == place).all(axis=1).any()


@pytest.mark.parametrize("selection", ["unique", "weights of zero"])
def test_rows_that_were_not_laid_out_have_places(selection: str, parts: tuple[Rows, Rows], tmp_path: Path) -> None:
    """Rows 7 and 8 equal row 3 in both parts; rows of weight 0 are placed as new rows are."""
    left, right = (np.concatenate([part[7:9], part[20:100], part[:4]]) for part in parts)
    options = {"unique": True} if selection == "unique" else {}
    weight = None if selection == "unique" else np.where(np.arange(86) % 9 == 5, 0.0, 1.0)
    models = [UMAP(n_epochs=10, random_state=0, **options).fit(part, sample_weight=weight) for part in (left, right)]
    model = models[0] * models[1]
    assert model.embedding_.shape == (86, 2)
    assert model.graph_.shape == models[0].graph_.shape
    assert model.graph_.shape[0] < 86
    np.testing.assert_array_equal(model.transform((left, right)), model.embedding_)
    np.testing.assert_array_equal(model.embedding_[:2], model.embedding_[[85, 85]])
    model.save(tmp_path / "model.vicinal")
    np.testing.assert_array_equal(vicinal.load(tmp_path / "model.vicinal").embedding_, model.embedding_)


def test_models_that_lay_out_different_rows_are_refused(parts: tuple[Rows, Rows]) -> None:
    first, last = np.arange(300) > 0, np.arange(300) < 299
    models = [
        UMAP(n_epochs=2, random_state=0).fit(part, sample_weight=weight)
        for part, weight in zip(parts, (first, last), strict=True)
    ]
    with pytest.raises(ValueError, match="lay out different rows"):
        models[0] * models[1]


@pytest.mark.parametrize("cls", [TSNE, LargeVis, KNeighborsTransformer])
def test_models_without_a_fuzzy_graph_are_refused(cls: Any, iris: Rows) -> None:
    left, right = UMAP(n_epochs=2).fit(iris), cls().fit(iris)
    with pytest.raises(TypeError, match=f"fuzzy graphs.*{cls.__name__}"):
        left * right
    with pytest.raises(TypeError):
        right + left
