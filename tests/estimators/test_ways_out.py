"""What a fitted model can do besides transform: grow, go back to rows, be composed, keep rows where they are."""

from __future__ import annotations

import operator
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

from vicinal import UMAP
from vicinal.layout.kernel import fit_ab
from vicinal.maps.inversion import inverse_rows
from vicinal.quality.measures import trustworthiness

Rows = NDArray[np.float32]


def extent(embedding: Rows) -> float:
    return float(np.ptp(embedding, axis=0).max())


class TestUpdate:
    def test_new_rows_land_among_their_kind_and_old_ones_stay_near(
        self, digits: Rows, digit_labels: NDArray[np.int64]
    ) -> None:
        model = UMAP(random_state=0).fit(digits[:1500])
        before = model.embedding_
        model.update(digits[1500:])
        moved = np.linalg.norm(model.embedding_[:1500] - before, axis=1)
        assert np.median(moved) < 0.05 * extent(before)
        nearest = cdist(model.embedding_[1500:], model.embedding_[:1500]).argmin(axis=1)
        assert (digit_labels[nearest] == digit_labels[1500:]).mean() > 0.93
        assert trustworthiness(digits, model.embedding_) > 0.98

    @pytest.mark.parametrize("size", [1, 2, 500])
    def test_batches_of_any_size(self, digits: Rows, size: int) -> None:
        model = UMAP(n_epochs=20, random_state=0).fit(digits[:50])
        model.update(digits[50 : 50 + size])
        assert model.embedding_.shape == (50 + size, 2)
        assert np.isfinite(model.embedding_).all()

    def test_partial_fit_is_fit_then_update(self, digits: Rows) -> None:
        model = UMAP(n_epochs=20, random_state=0)
        model.partial_fit(digits[:200]).partial_fit(digits[200:250])
        expected = UMAP(n_epochs=20, random_state=0).fit(digits[:200]).update(digits[200:250])
        np.testing.assert_array_equal(model.embedding_, expected.embedding_)

    def test_labels_may_come_later_or_not_at_all(self, digits: Rows, digit_labels: NDArray[np.int64]) -> None:
        with_later = UMAP(n_epochs=20, random_state=0).fit(digits[:200], digit_labels[:200])
        with_later.update(digits[200:250]).update(digits[250:300], digit_labels[250:300])
        labels = with_later.map_.facts.y
        assert labels is not None
        assert (labels[200:250] == -1).all()
        np.testing.assert_array_equal(labels[250:], digit_labels[250:300])
        without = UMAP(n_epochs=20, random_state=0).fit(digits[:200])
        without.update(digits[200:250], digit_labels[200:250])
        assert (without.map_.facts.y[:200] == -1).all()

    def test_a_refused_batch_loses_nothing(self, digits: Rows) -> None:
        model = UMAP(n_epochs=10, random_state=0).fit(digits[:100])
        before = model.embedding_.copy()
        for bad in (digits[:5, :10], np.full((3, 64), np.nan), np.zeros((0, 64))):
            with pytest.raises(ValueError, match=r"X|features|NaN|sample"):
                model.update(bad)
        np.testing.assert_array_equal(model.embedding_, before)
        np.testing.assert_array_equal(model.transform(digits[:3]), before[:3])


class TestInverse:
    @pytest.mark.parametrize("n_components", [1, 2, 5])
    def test_closer_to_the_truth_than_the_nearest_training_row(self, digits: Rows, n_components: int) -> None:
        train, held = digits[:1500], digits[1500:]
        model = UMAP(n_components=n_components, n_epochs=100, random_state=0).fit(train)
        places = model.transform(held)
        error = np.linalg.norm(model.inverse_transform(places) - held, axis=1).mean()
        nearest = cdist(places, model.embedding_).argmin(axis=1)
        assert error < 0.95 * np.linalg.norm(train[nearest] - held, axis=1).mean()

    def test_outside_the_map_and_one_at_a_time(self, digits: Rows) -> None:
        model = UMAP(n_epochs=20, random_state=0).fit(digits[:300])
        places = np.array([[-1e3, 1e3], [5.0, 5.0], [1e6, 0.0]], dtype=np.float32)
        rows = model.inverse_transform(places)
        assert np.isfinite(rows).all()
        assert rows.min() >= digits[:300].min()
        assert rows.max() <= digits[:300].max()
        np.testing.assert_array_equal(model.inverse_transform(places[1:2]), rows[1:2])

    def test_sparse_rows_come_back_sparse(self, digits: Rows) -> None:
        model = UMAP(n_epochs=20, random_state=0).fit(sparse.csr_matrix(digits[:300]))
        rows = model.inverse_transform(model.embedding_[:5])
        assert sparse.issparse(rows)
        expected = inverse_rows(model.embedding_[:5], model.embedding_, digits[:300], fit_ab(), n_neighbors=15)
        np.testing.assert_allclose(rows.toarray(), expected, rtol=1e-5, atol=1e-5)

    def test_distances_have_no_rows(self) -> None:
        line = np.arange(20.0)
        model = UMAP(metric="precomputed", n_neighbors=3, n_epochs=5).fit(np.abs(line[:, None] - line))
        with pytest.raises(ValueError, match="precomputed"):
            model.inverse_transform(np.zeros((1, 2)))


OPERATIONS = {"*": operator.mul, "+": operator.add, "-": operator.sub}


class TestComposition:
    @pytest.fixture(scope="class")
    def halves(self, digits: Rows) -> tuple[UMAP, UMAP]:
        return tuple(UMAP(n_epochs=100, random_state=0).fit(half) for half in (digits[:600, :32], digits[:600, 32:]))

    @pytest.mark.parametrize("sign", OPERATIONS)
    def test_a_map_of_both_with_transform(self, sign: str, halves: tuple[UMAP, UMAP], digits: Rows) -> None:
        model = OPERATIONS[sign](*halves)
        assert model.embedding_.shape == (600, 2)
        assert np.isfinite(model.embedding_).all()
        new = digits[590:620, :32], digits[590:620, 32:]
        places = model.transform(new)
        np.testing.assert_array_equal(places[:10], model.embedding_[590:])
        np.testing.assert_array_equal(model.transform((new[0][15:16], new[1][15:16])), places[15:16])
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.transform(new), places)

    def test_two_halves_tell_more_than_one(self, halves: tuple[UMAP, UMAP], digits: Rows) -> None:
        whole = halves[0] * halves[1]
        quality = [trustworthiness(digits[:600], m.embedding_) for m in (whole, *halves)]
        assert quality[0] > max(quality[1:])

    def test_compositions_compose(self, halves: tuple[UMAP, UMAP], digits: Rows) -> None:
        a, b = halves
        model = (a * b) + a
        places = model.transform(((digits[600:603, :32], digits[600:603, 32:]), digits[600:603, :32]))
        assert np.isfinite(places).all()

    def test_only_models_of_the_same_rows(self, halves: tuple[UMAP, UMAP], digits: Rows) -> None:
        with pytest.raises(ValueError, match="600 rows and one of 100"):
            halves[0] * UMAP(n_epochs=5).fit(digits[:100])
        with pytest.raises(TypeError, match="float"):
            halves[0] + 2.0
        with pytest.raises(TypeError, match="pair"):
            (halves[0] * halves[1]).transform(digits[:5])


class TestPins:
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_pinned_rows_stay_bit_for_bit(self, digits: Rows, n_jobs: int) -> None:
        X = np.concatenate([digits[:300], digits[:10]])  # a pinned row may have a twin that is not
        rng = np.random.default_rng(0)
        mask = np.zeros(310, dtype=bool)
        mask[rng.choice(300, 60, replace=False)] = True
        places = (rng.normal(size=(310, 2)) * 7 + 30).astype(np.float32)
        model = UMAP(n_epochs=50, random_state=0, n_jobs=n_jobs).fit(X, fixed_mask=mask, fixed_positions=places)
        np.testing.assert_array_equal(model.embedding_[mask], places[mask])
        assert np.isfinite(model.embedding_).all()
        model.update(digits[300:320])
        np.testing.assert_array_equal(model.embedding_[:310][mask], places[mask])

    def test_the_rest_follows_the_pinned_map(self, digits: Rows) -> None:
        """A map turned around and pinned in part comes out turned around as a whole."""
        first = UMAP(random_state=0).fit_transform(digits)
        turned = first @ np.array([[0.0, -1.0], [1.0, 0.0]], dtype=np.float32) + 100
        mask = np.arange(len(digits)) % 3 == 0
        model = UMAP(random_state=1).fit(digits, fixed_mask=mask, fixed_positions=turned)
        away = np.linalg.norm(model.embedding_ - turned, axis=1)
        assert np.median(away) < 0.05 * extent(first)

    @pytest.mark.parametrize("mask", [np.ones(50, bool), np.zeros(50, bool), np.arange(50) == 7])
    def test_all_none_or_one(self, digits: Rows, mask: NDArray[np.bool_]) -> None:
        places = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
        model = UMAP(n_epochs=10, random_state=0).fit(digits[:50], fixed_mask=mask, fixed_positions=places)
        np.testing.assert_array_equal(model.embedding_[mask], places[mask])
        assert np.isfinite(model.embedding_).all()


class TestSampleWeights:
    def test_a_heavy_class_takes_more_room(self, digits: Rows, digit_labels: NDArray[np.int64]) -> None:
        """As rows that stand there several times do; the others keep the shape they have."""

        def radius(embedding: Rows, which: int) -> float:
            places = embedding[digit_labels == which]
            return float(np.median(np.linalg.norm(places - np.median(places, axis=0), axis=1)))

        plain = UMAP(random_state=0).fit_transform(digits)
        weight = np.where(digit_labels == 0, 4.0, 1.0)
        heavy = UMAP(random_state=0).fit_transform(digits, sample_weight=weight)
        assert radius(heavy, 0) > 1.4 * radius(plain, 0)
        assert trustworthiness(digits, heavy) > 0.98

    def test_equal_weights_are_none(self, digits: Rows) -> None:
        expected = UMAP(n_epochs=20, random_state=0).fit_transform(digits[:200])
        for weight in (np.ones(200), np.full(200, 7.5), [2] * 200):
            actual = UMAP(n_epochs=20, random_state=0).fit_transform(digits[:200], sample_weight=weight)
            np.testing.assert_array_equal(actual, expected)


def test_maps_at_several_epochs(digits: Rows) -> None:
    model = UMAP(n_epochs=[30, 10, 20], random_state=0).fit(digits[:300])
    assert len(model.embedding_list_) == 3
    np.testing.assert_array_equal(model.embedding_list_[-1], model.embedding_)
    assert model.n_epochs_ == 30
    # The same run, looked at on its way: not three runs.
    assert not np.array_equal(model.embedding_list_[0], UMAP(n_epochs=10, random_state=0).fit(digits[:300]).embedding_)
    np.testing.assert_array_equal(model.embedding_, UMAP(n_epochs=30, random_state=0).fit(digits[:300]).embedding_)


def test_a_list_of_one_epoch_lists_one_map(digits: Rows) -> None:
    model = UMAP(n_epochs=[20], random_state=0).fit(digits[:200])
    np.testing.assert_array_equal(np.stack(model.embedding_list_), model.embedding_[None])


def test_transform_to_the_graph(digits: Rows) -> None:
    model = UMAP(transform_mode="graph", random_state=0)
    graph = model.fit_transform(digits[:300])
    assert not hasattr(model, "embedding_")
    np.testing.assert_array_equal(graph.toarray(), model.graph_.toarray())
    new = model.transform(digits[300:310])
    assert new.shape == (10, 300)
    assert (new.max(axis=1).toarray() > 0.2).all()
    assert (np.diff(new.indptr) == 15).all()


def test_distinct_rows_only(digits: Rows) -> None:
    """With 30 copies of a row its neighbours would all be copies; embedded once, it has others."""
    X = np.concatenate([digits[:200], np.repeat(digits[:1], 30, axis=0)])
    model = UMAP(unique=True, n_epochs=50, random_state=0).fit(X)
    assert model.embedding_.shape == (230, 2)
    assert model.graph_.shape == (200, 200)
    assert (model.embedding_[200:] == model.embedding_[0]).all()
    once = UMAP(unique=True, n_epochs=50, random_state=0).fit(digits[:200])
    np.testing.assert_array_equal(model.embedding_[:200], once.embedding_)
    np.testing.assert_array_equal(model.transform(X[195:]), model.embedding_[195:])
    np.testing.assert_array_equal(model.transform(digits[200:210]), once.transform(digits[200:210]))
    model.update(digits[200:220])
    assert model.embedding_.shape == (250, 2)


@pytest.mark.parametrize("metric", ["haversine", "hyperboloid", "manhattan", "cosine"])
def test_maps_on_other_surfaces(metric: str, digits: Rows, digit_labels: NDArray[np.int64]) -> None:
    """Rows of a class lie together by the map's own distance, and new rows join them."""
    dim = 2 if metric in ("haversine", "hyperboloid", "manhattan") else 3
    model = UMAP(output_metric=metric, n_components=dim, random_state=0, n_epochs=200).fit(digits[:1000])
    places = np.concatenate([model.embedding_, model.transform(digits[1000:1200])])
    assert np.isfinite(places).all()
    D = map_distance(metric, places[1000:], places[:1000])
    assert (digit_labels[D.argmin(axis=1)] == digit_labels[1000:1200]).mean() > 0.85


def map_distance(metric: str, A: Rows, B: Rows) -> NDArray[Any]:
    a, b = A.astype(np.float64), B.astype(np.float64)
    if metric == "haversine":

        def sphere(p: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.stack([np.sin(p[:, 0]) * np.cos(p[:, 1]), np.sin(p[:, 0]) * np.sin(p[:, 1]), np.cos(p[:, 0])], 1)

        return cdist(sphere(a), sphere(b))
    if metric == "hyperboloid":
        lift_a, lift_b = np.sqrt(1 + (a**2).sum(1)), np.sqrt(1 + (b**2).sum(1))
        return np.arccosh(np.maximum(np.outer(lift_a, lift_b) - a @ b.T, 1.0))
    return cdist(a, b, {"manhattan": "cityblock"}.get(metric, metric))


class TestLossHistory:
    def test_it_falls_and_changes_nothing(self, digits: Rows) -> None:
        model = UMAP(n_epochs=100, random_state=0, compute_loss=True).fit(digits[:500])
        plain = UMAP(n_epochs=100, random_state=0).fit(digits[:500])
        np.testing.assert_array_equal(model.embedding_, plain.embedding_)
        assert not hasattr(plain, "loss_history_")
        history = model.loss_history_
        assert history["epoch"] == list(range(5, 101, 5))
        assert history["loss"][-1] < 0.9 * history["loss"][0]

    def test_a_callback_and_the_history_are_both_told(self, digits: Rows) -> None:
        told: list[int] = []
        model = UMAP(
            n_epochs=40, random_state=0, compute_loss=True, unique=True, callback=lambda s, e, n, y: told.append(e)
        ).fit(np.concatenate([digits[:200], digits[:50]]))
        assert len(model.loss_history_["loss"]) == 20
        assert 40 in told
        assert pickle.loads(pickle.dumps(model.set_params(callback=None))).loss_history_ == model.loss_history_
