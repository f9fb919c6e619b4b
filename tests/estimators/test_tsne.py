"""TSNE: scikit-learn's checks, determinism, transform, callbacks, errors that name the argument."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import kneighbors_graph
from sklearn.utils.estimator_checks import parametrize_with_checks

from vicinal import TSNE
from vicinal.backends import _core

Rows = NDArray[np.float32]


@parametrize_with_checks([TSNE()])
def test_estimator_checks(estimator: TSNE, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module", params=["exact", "fft"])
def model(request: pytest.FixtureRequest, digits: Rows) -> TSNE:
    return TSNE(max_iter=120, early_exaggeration_iter=60, random_state=0, method=request.param).fit(digits[:900])


@pytest.mark.parametrize("options", [{"method": "exact"}, {"method": "fft"}, {"method": "fft", "dof": 0.8}], ids=str)
def test_map_does_not_depend_on_n_jobs(digits: Rows, options: dict[str, Any]) -> None:
    def bits(n_jobs: int) -> tuple[bytes, float]:
        fitted = TSNE(max_iter=60, early_exaggeration_iter=30, random_state=3, n_jobs=n_jobs, **options).fit(digits)
        return fitted.embedding_.tobytes(), fitted.kl_divergence_

    one = bits(1)
    assert bits(2) == one
    assert bits(8) == one


def test_place_of_a_row_depends_on_that_row_alone(model: TSNE, digits: Rows) -> None:
    new = digits[900:1000]
    placed = model.transform(new)
    alone = np.concatenate([model.transform(new[i : i + 1]) for i in range(0, 100, 5)])
    np.testing.assert_array_equal(alone, placed[::5])
    np.testing.assert_array_equal(model.transform(new[::-1]), placed[::-1])
    assert np.isfinite(placed).all()


def test_training_rows_keep_their_places(model: TSNE, digits: Rows) -> None:
    np.testing.assert_array_equal(model.transform(digits[:900]), model.embedding_)
    np.testing.assert_array_equal(model.transform(digits[850:950])[:50], model.embedding_[850:])


def test_pickled_model_transforms_identically(model: TSNE, digits: Rows) -> None:
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(digits[900:950]), model.transform(digits[900:950]))


def test_rows_far_from_the_data_have_finite_places(model: TSNE, digits: Rows) -> None:
    assert np.isfinite(model.transform(digits[:5] * 1e6 + 1e9)).all()


def test_fitted_attributes(model: TSNE) -> None:
    assert model.n_epochs_ == 120
    assert model.n_iter_ == 119  # scikit-learn counts from 0
    assert model.n_features_in_ == 64
    assert model.learning_rate_ == pytest.approx(900 / 12 / 4)
    assert np.isfinite(model.kl_divergence_)
    assert model.init_used_ == "pca"
    assert set(model.stage_times_) == {"neighbors", "graph", "initialize", "layout", "divergence"}


def test_unfitted_model_raises_not_fitted_error(digits: Rows) -> None:
    with pytest.raises(NotFittedError):
        TSNE().transform(digits)


@pytest.mark.parametrize(("n", "components"), [(1, 2), (2, 2), (3, 1), (5, 2), (12, 3), (40, 5)])
def test_few_rows_have_a_finite_map(n: int, components: int) -> None:
    rows = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)
    fitted = TSNE(components, max_iter=40, random_state=0).fit(rows)
    assert fitted.embedding_.shape == (n, components)
    assert np.isfinite(fitted.embedding_).all()
    assert np.isfinite(fitted.kl_divergence_)
    assert fitted.perplexity_ <= max(1.0, (n - 1) / 3)


@pytest.mark.parametrize("method", ["exact", "fft"])
@pytest.mark.parametrize(
    "rows",
    [
        np.ones((60, 3), np.float32),
        np.repeat(np.eye(4, dtype=np.float32), 20, axis=0),
        np.concatenate([np.zeros((30, 2)), np.full((30, 2), 1e12)]).astype(np.float32),
    ],
    ids=["constant", "duplicates", "far apart"],
)
def test_constant_repeated_and_distant_rows_have_a_finite_map(rows: Rows, method: str) -> None:
    kept = rows.copy()
    embedding = TSNE(max_iter=60, early_exaggeration_iter=30, random_state=0, method=method).fit_transform(rows)
    assert np.isfinite(embedding).all()
    np.testing.assert_array_equal(rows, kept)
    for i in range(1, len(rows)):
        if (rows[i] == rows[i - 1]).all():
            np.testing.assert_array_equal(embedding[i], embedding[i - 1])


@pytest.mark.parametrize("n_components", [1, 3])
def test_grid_works_with_one_and_three_components(digits: Rows, n_components: int) -> None:
    fitted = TSNE(n_components, max_iter=30, random_state=0, method="fft").fit(digits[:400])
    assert fitted.embedding_.shape == (400, n_components)
    assert np.isfinite(fitted.embedding_).all()


@pytest.mark.parametrize("init", ["pca", "random", "spectral", "array"])
def test_every_initialization_is_narrow(iris: Rows, init: Any) -> None:
    given = np.random.default_rng(0).normal(size=(150, 2)) * 1e-4 if init == "array" else init
    fitted = TSNE(init=given, max_iter=0, random_state=0).fit(iris)
    assert fitted.n_epochs_ == 0
    assert fitted.init_used_ == init
    assert fitted.embedding_.std(axis=0).max() == pytest.approx(1e-4, rel=0.2)


def test_max_iter_and_n_iter_set_the_iterations(iris: Rows) -> None:
    assert TSNE(max_iter=30, early_exaggeration_iter=50).fit(iris).n_epochs_ == 30
    assert TSNE(n_iter=10, early_exaggeration_iter=20).fit(iris).n_epochs_ == 30


def test_callback_is_called_every_iteration_and_can_stop(iris: Rows) -> None:
    seen: list[tuple[str, int, int]] = []

    def watch(stage: str, epoch: int, n_epochs: int, embedding: Rows | None) -> bool:
        seen.append((stage, epoch, n_epochs))
        return stage == "layout" and epoch == 7

    fitted = TSNE(max_iter=50, random_state=0, callback=watch).fit(iris)
    assert fitted.n_epochs_ == 7
    assert [one for one in seen if one[0] == "layout"] == [("layout", e, 50) for e in range(1, 8)]
    unwatched = TSNE(max_iter=50, random_state=0).fit(iris)
    watched = TSNE(max_iter=50, random_state=0, callback=lambda *_: False).fit(iris)
    np.testing.assert_array_equal(watched.embedding_, unwatched.embedding_)


# Factors at the ends of what is allowed.
EXTREME: list[dict[str, float]] = [
    {"dof": 0.01},
    {"dof": 1e9},
    {"early_exaggeration": 1e9},
    {"early_exaggeration": 1e9, "learning_rate": 1e9},
    {"exaggeration": 1e9},
    {"exaggeration": 1e-9},
    {"exaggeration": 1e-9, "learning_rate": 1e9},
]


def test_callbacks_receive_the_divergence_and_can_stop(iris: Rows) -> None:
    calls: list[tuple[int, float]] = []

    def note(iteration: int, divergence: float, embedding: Rows) -> bool:
        calls.append((iteration, divergence))
        return iteration >= 40

    fitted = TSNE(callbacks=[note, note], callbacks_every_iters=20, random_state=0).fit(iris)
    assert [one[0] for one in calls] == [20, 20, 40, 40]
    assert fitted.n_epochs_ == 40
    assert calls[-1][1] == pytest.approx(fitted.kl_divergence_)


def test_callbacks_are_told_that_the_layout_begins(iris: Rows) -> None:
    """openTSNE's own callbacks, such as ErrorLogger, start their clocks then."""

    events: list[Any] = []

    class Clock:
        def optimization_about_to_start(self) -> None:
            events.append("begin")

        def __call__(self, iteration: int, divergence: float, embedding: Rows) -> None:
            events.append(iteration)

    TSNE(2, 20, callbacks=Clock(), max_iter=100, random_state=0).fit(iris)
    assert events == ["begin", 50, 100]


@pytest.mark.parametrize("options", EXTREME, ids=str)
def test_the_largest_factors_give_a_finite_map(iris: Rows, options: dict[str, float]) -> None:
    (name, value), *_ = options.items()
    model = TSNE(max_iter=30, early_exaggeration_iter=15, random_state=0, **options).fit(iris)  # type: ignore[arg-type]
    assert np.isfinite(model.embedding_).all()
    beyond = value * 1.01 if value > 1 else value / 1.01
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        TSNE(**options | {name: beyond}).fit(iris)  # type: ignore[arg-type]


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"perplexity": 0}, "perplexity"),
    ({"early_exaggeration": 0.5}, "early_exaggeration"),
    ({"early_exaggeration": "much"}, "early_exaggeration"),
    ({"learning_rate": 0}, "learning_rate"),
    ({"max_iter": -1}, "max_iter"),
    ({"n_iter": 2.5}, "n_iter"),
    ({"dof": 0}, "dof"),
    ({"metric": "nearness"}, "metric"),
    ({"method": "quick"}, "method"),
    ({"n_components": 0}, "n_components"),
    ({"n_components": 4, "method": "fft"}, "n_components"),
    ({"n_components": 4, "negative_gradient_method": "FFT"}, "n_components"),
    ({"negative_gradient_method": "quick"}, "negative_gradient_method"),
    ({"perplexity": 150}, r"perplexity \(150\) must be less than n_samples \(150\)"),
    ({"metric": "mahalanobis"}, "V or VI"),
    ({"metric_kwds": {}, "metric_params": {}}, "metric_params"),
    ({"init": "pca", "initialization": "pca"}, "initialization"),
    ({"metric": lambda x, y: -1.0, "perplexity": 5}, "All distances .* the metric given returned"),
    ({"n_jobs": 0}, "n_jobs"),
    ({"init": "somewhere"}, "init"),
    ({"init": np.zeros((3, 2))}, "init"),
    ({"init": np.full((150, 2), np.nan)}, "init"),
    ({"callbacks": ["loud"]}, "callbacks"),
]


@pytest.mark.parametrize(("options", "name"), INVALID, ids=["-".join(options) for options, _ in INVALID])
def test_invalid_parameter_is_named(iris: Rows, options: dict[str, Any], name: str) -> None:
    with pytest.raises((ValueError, TypeError), match=name):
        TSNE(**options).fit(iris)


COVARIANCE = np.cov(np.random.default_rng(0).normal(size=(4, 30)))
SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"method": "bh"}, {"method": "exact"}),
    ({"method": "barnes_hut", "angle": 0.2}, {"method": "exact"}),
    ({"negative_gradient_method": "FFT", "theta": 0.1, "n_interpolation_points": 5}, {"method": "fft"}),
    ({"initialization": "random", "neighbors": "annoy"}, {"init": "random"}),
    ({"neighbors": "balltree", "knn_kwargs": {}}, {}),
    ({"metric": "minkowski", "metric_params": {"p": 3}}, {"metric": "minkowski", "metric_kwds": {"p": 3}}),
    (
        {"metric": "mahalanobis", "metric_params": {"V": COVARIANCE}},
        {"metric": "mahalanobis", "metric_kwds": {"VI": np.linalg.inv(COVARIANCE)}},
    ),
    ({"perplexity": 30, "initial_momentum": 0.8, "final_momentum": 0.8, "max_grad_norm": 1, "max_step_norm": 5}, {}),
    ({"verbose": 0, "n_iter_without_progress": 300, "min_grad_norm": 1e-7}, {}),
]


@pytest.mark.parametrize(("theirs", "ours"), SAME, ids=[f"{o}"[:50] for o, _ in SAME])
def test_parameters_of_other_libraries_mean_what_they_mean_there(
    iris: Rows, theirs: dict[str, Any], ours: dict[str, Any]
) -> None:
    maps = [TSNE(max_iter=60, early_exaggeration_iter=30, random_state=0, **one) for one in (theirs, ours)]
    assert maps[0].fit(iris).embedding_.tobytes() == maps[1].fit(iris).embedding_.tobytes()


def test_momentum_belongs_to_its_phase(iris: Rows) -> None:
    early, late, both = (
        TSNE(max_iter=60, early_exaggeration_iter=30, random_state=0, **one).fit_transform(iris).tobytes()
        for one in ({"initial_momentum": 0.5}, {"final_momentum": 0.5}, {})
    )
    assert len({early, late, both}) == 3


def test_a_fit_without_progress_or_slope_ends_after_the_first_phase(
    iris: Rows, capsys: pytest.CaptureFixture[str]
) -> None:
    def iterations(**options: Any) -> int:
        model = TSNE(random_state=0, early_exaggeration_iter=50, max_iter=400, tqdm_kwds={"disable": True}, **options)
        return int(model.fit(iris).n_epochs_)

    assert iterations(min_grad_norm=1e9) == 100
    assert iterations(n_iter_without_progress=-1, verbose=2) == 100
    said = capsys.readouterr().out
    assert "[t-SNE] Iteration 50 with early exaggeration: error = " in said
    assert "did not make any progress during the last -1 episodes. Finished." in said
    assert iterations(min_grad_norm=0.0) == 400
    assert "gradient" not in capsys.readouterr().out


def test_gradient_norm_is_the_slope_of_the_divergence(iris: Rows) -> None:
    model = TSNE(random_state=0, max_iter=60, early_exaggeration_iter=20).fit(iris)
    graph, places, plan = model.map_.graph, model.embedding_.astype(np.float64), model.map_.recipe.plan
    rng, step = np.random.default_rng(0), 1e-2
    directions = rng.normal(size=(400, *places.shape))
    slopes = []
    for direction in directions:
        direction /= np.linalg.norm(direction)
        ends = [plan.divergence(graph, (places + sign * step * direction).astype(np.float32), 1) for sign in (1, -1)]
        slopes.append((ends[0] - ends[1]) / (2 * step))
    # The mean square of the slope along random directions is the squared norm divided by the dimensions.
    expected = np.sqrt(np.mean(np.square(slopes)) * places.size)
    assert plan.gradient_norm(graph, model.embedding_, 1) == pytest.approx(expected, rel=0.15)


def test_sparse_distances_must_be_enough_for_the_perplexity(iris: Rows) -> None:
    few = kneighbors_graph(iris, 5, mode="distance")
    with pytest.raises(ValueError, match="10 neighbors per samples are required, but some samples have only 5"):
        TSNE(metric="precomputed", perplexity=3).fit(few)
    with pytest.raises(TypeError, match="sparse"):
        TSNE(metric="precomputed", perplexity=1, method="exact").fit(few)
    with pytest.raises(ValueError, match='init="pca" cannot be used'):
        TSNE(metric="precomputed", perplexity=1, init="pca").fit(few)
    assert TSNE(metric="precomputed", perplexity=1, max_iter=5).fit(few).init_used_.startswith("random")


def test_fit_does_not_change_parameters(iris: Rows) -> None:
    model = TSNE(perplexity=80, max_iter=5)
    before = model.get_params()
    model.fit(iris)
    assert model.get_params() == before
    assert clone(model).get_params() == before


LEVEL_PROGRAM = """
import sys, hashlib
import numpy as np
from vicinal import FullLayout, Graph, Phase
from vicinal.quality.losses import kl_divergence
rng = np.random.default_rng(0)
n, k = 700, 21
indices = rng.integers(n, size=n * k).astype(np.int32)
weights = (rng.random(n * k) / (n * k)).astype(np.float32)
none = np.zeros(n, np.float32)
graph = Graph(np.arange(0, n * k + 1, k, dtype=np.int64), indices, weights, n, none, none)
digest = hashlib.sha256()
for method in ("exact", "fft"):
    for n_components in (1, 2, 3):
        for dof in (1.0, 0.6):
            start = rng.normal(size=(n, n_components)).astype(np.float32)
            layout = FullLayout(graph, start, [Phase(10, 4.0, 30.0)], dof=dof, method=method)
            layout.step(10)
            digest.update(layout.embedding.tobytes())
            digest.update(np.float64(float(kl_divergence(graph, layout.embedding, dof))).tobytes())
print(digest.hexdigest())
"""


@pytest.mark.nightly
@pytest.mark.skipif(len(_core.available_levels()) < 2, reason="this build has one level for this processor")
def test_every_level_computes_the_same_bits(child_environment: dict[str, str]) -> None:
    found = {
        subprocess.check_output([sys.executable, "-c", LEVEL_PROGRAM], env=child_environment | {"VICINAL_LEVEL": level})
        for level in _core.available_levels()
    }
    assert len(found) == 1
