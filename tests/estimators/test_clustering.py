"""`clusters`: of every kind of model and of maps made elsewhere; predictions, names, files and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

import vicinal
from vicinal.estimators.clustering import named_clusters
from vicinal.files.data_table import Column, Role

N = 500


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    found = load_digits()
    return np.ascontiguousarray(found.data[:N], dtype=np.float32), found.target[:N]


@pytest.fixture(scope="module")
def model(digits: tuple[np.ndarray, np.ndarray]) -> Any:
    return vicinal.UMAP(random_state=0).fit(digits[0])


@pytest.fixture(scope="module")
def found(model: Any) -> Any:
    return vicinal.clusters(model)


def test_clusters_are_the_classes_and_training_rows_keep_theirs(found: Any, digits: Any) -> None:
    X, y = digits
    assert adjusted_rand_score(y, found.labels) > 0.75
    for layer in range(len(found)):
        assert np.array_equal(found.predict(X, layer), found.layers[layer].labels)


def test_new_rows_belong_to_the_clusters_of_their_class(found: Any, digits: Any) -> None:
    X, y = load_digits(return_X_y=True)
    common = [np.bincount(digits[1][found.labels == one]).argmax() for one in range(found.layer().n_clusters)]
    labels = found.predict(X[N : N + 200])
    inside = labels >= 0
    assert inside.mean() > 0.9
    assert np.mean(np.array(common)[labels[inside]] == y[N : N + 200][inside]) > 0.85
    # the result for a row depends on that row alone
    assert np.array_equal(labels[:7], found.predict(X[N : N + 7]))
    mixed = np.concatenate([X[N : N + 3], X[:3]])
    assert found.predict(mixed).tolist() == [*labels[:3], *found.labels[:3]]
    share = found.membership(mixed).toarray()
    assert share.shape == (6, found.layer().n_clusters)
    assert (share.sum(axis=1) <= 1 + 1e-6).all()


def test_the_model_and_the_rows_stay_as_they_were(digits: Any) -> None:
    rows = digits[0].copy()
    model = vicinal.UMAP(random_state=0, n_epochs=20).fit(rows)
    before, state = model.embedding_.copy(), set(vars(model))
    vicinal.clusters(model).predict(rows[:5] + 0.5)
    assert np.array_equal(rows, digits[0])
    assert np.array_equal(model.embedding_, before)
    assert set(vars(model)) == state


@pytest.mark.parametrize("name", ["DensMAP", "LargeVis", "TSNE", "ProgressiveUMAP"])
def test_other_models_have_clusters(name: str, digits: Any) -> None:
    X, y = digits
    found = vicinal.clusters(getattr(vicinal, name)(random_state=0).fit(X))
    assert adjusted_rand_score(y, found.labels) > 0.5
    assert (found.predict(X[:20]) == found.labels[:20]).all()


def test_composed_and_aligned_models_have_clusters(digits: Any) -> None:
    X, _ = digits
    one = vicinal.UMAP(random_state=0, n_epochs=50)
    product = one.fit(X) * vicinal.UMAP(random_state=0, n_epochs=50).fit(X[:, ::-1].copy())
    assert len(vicinal.clusters(product).labels) == N
    slices = [X[:200], X[100:300]]
    relations = [{a: a - 100 for a in range(100, 200)}]
    aligned = vicinal.AlignedUMAP(random_state=0, n_epochs=30).fit(slices, relations=relations)
    found = vicinal.clusters(aligned)
    assert [len(one.labels) for one in found] == [200, 200]
    assert found[1].predict(slices[1][:5]).tolist() == found[1].labels[:5].tolist()


def test_equal_rows_and_rows_without_weight_follow_the_rows_that_were_laid_out(digits: Any) -> None:
    X = np.concatenate([digits[0][:300], digits[0][:50]])
    found = vicinal.clusters(vicinal.UMAP(random_state=0, unique=True).fit(X))
    assert np.array_equal(found.labels[300:], found.labels[:50])
    assert found.predict(X[:10]).tolist() == found.labels[:10].tolist()
    weight = np.ones(len(X))
    weight[300:] = 0
    found = vicinal.clusters(vicinal.UMAP(random_state=0, n_epochs=50).fit(digits[0][:350], sample_weight=weight))
    assert len(found.labels) == 350
    assert found.gaps()


def test_maps_made_elsewhere_have_clusters_but_predict_nothing(model: Any, digits: Any) -> None:
    X, y = digits
    found = vicinal.clusters(X, model.embedding_)
    assert adjusted_rand_score(y, found.labels) > 0.7
    with pytest.raises(ValueError, match=r"with_model\(model\)"):
        found.predict(X[:3])
    with pytest.raises(ValueError, match="have no model"):
        found.gaps()
    assert found.with_model(model).predict(X[:3]).shape == (3,)


def test_clusters_are_saved_with_and_without_their_model(found: Any, digits: Any, tmp_path: Path) -> None:
    X, y = digits
    named = found.named({"digit": [f"digit {one}" for one in y]})
    named.save(tmp_path / "whole.vicinal")
    named.save(tmp_path / "bare.vicinal", include_model=False)
    whole, bare = vicinal.load(tmp_path / "whole.vicinal"), vicinal.load(tmp_path / "bare.vicinal")
    assert whole.table() == bare.table() == named.table()
    assert np.array_equal(whole.predict(X[:9] + 0.1), named.predict(X[:9] + 0.1))
    assert bare.model is None
    assert (tmp_path / "bare.vicinal").stat().st_size < (tmp_path / "whole.vicinal").stat().st_size / 4


def test_names_come_from_columns_feature_names_or_a_hook(found: Any, digits: Any) -> None:
    pandas = pytest.importorskip("pandas")
    X, y = digits
    kinds = [f"digit {one}" for one in y]
    named = found.named({"digit": kinds})
    assert set(named.names) <= {*kinds, "", *(name for name in named.names if "digit" in name)}
    assert len({name for name in named.names if name}) == sum(map(bool, named.names))
    asked: list[dict[str, Any]] = []

    def hook(given: dict[str, Any]) -> str:
        asked.append(given)
        return f"cluster {given['cluster']}" if given["layer"] else ""

    hooked = found.named({"digit": kinds}, hook)
    assert hooked.layers[0].names == named.layers[0].names
    assert hooked.layers[1].names == tuple(f"cluster {a}" for a in range(hooked.layers[1].n_clusters))
    assert asked[0]["examples"]
    assert asked[0]["traits"]
    frame = pandas.DataFrame(X[:, :5], columns=["a", "b", "c", "d", "e"])
    by_features = vicinal.clusters(vicinal.UMAP(random_state=0, n_epochs=50).fit(frame))
    assert all(name.split()[0] in ("high", "low") for layer in by_features.layers for name in layer.names if name)
    assert {trait.column for some in by_features.describe() for trait in some} <= set("abcde")


def test_clusters_of_two_fits_are_matched(found: Any, model: Any) -> None:
    pairs = found.match(vicinal.clusters(model))
    assert [one["cluster"] for one in pairs] == [one["other"] for one in pairs]
    assert all(one["jaccard"] == 1.0 for one in pairs)


def test_areas_of_a_page_have_names_places_sizes_and_levels(model: Any, digits: Any) -> None:
    kinds = Column("kind", Role.DISPLAY, np.array([f"digit {one}" for one in digits[1]], dtype=object))
    for source in (model, model.embedding_):
        spots = named_clusters(source, [kinds])
        assert {frozenset(one) for one in spots} == {frozenset(("name", "place", "size", "level"))}
        assert all(one["name"].startswith("digit") and len(one["place"]) == 2 and one["size"] > 0 for one in spots)
    labels = Column("class", Role.LABEL, digits[1])
    assert named_clusters(model, [kinds, labels]) == []
    assert named_clusters(model.embedding_[:100], [kinds]) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"resolutions": [0.5, -1]}, "resolutions must be one or more positive numbers"),
        ({"resolutions": []}, "resolutions must be one or more positive numbers"),
        ({"min_size": 1}, "min_size must be"),
        ({"name": "x"}, "name must be a function, got 'x'"),
        ({"embedding": np.zeros((N, 2))}, "embedding must be None with a model"),
        ({"columns": {"a": [1, 2]}}, "column 'a' must have one entry for each of the 500 rows, got 2"),
    ],
    ids=["negative resolution", "no resolution", "min_size", "hook", "embedding", "columns"],
)
def test_bad_arguments_are_named(model: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vicinal.clusters(model, **options)


def test_layers_that_do_not_exist_and_small_maps_are_refused(found: Any) -> None:
    with pytest.raises(ValueError, match="layer must be a whole number below"):
        found.predict(np.zeros((1, 64)), layer=17)
    with pytest.raises(ValueError, match="at least 4 rows"):
        vicinal.clusters(np.eye(3), np.eye(3))
