"""Progress of a fit: calls of the callback, stopping by it, and the output of verbose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import UMAP

STAGES = ("neighbors", "graph", "initialize")


class Recorder:
    """Keep every call; return True at one (stage, epoch)."""

    def __init__(self, stop_at: tuple[str, int] | None = None) -> None:
        self.calls: list[tuple[str, int, int, NDArray[np.float32] | None]] = []
        self.stop_at = stop_at

    def __call__(self, stage: str, epoch: int, n_epochs: int, embedding: NDArray[np.float32] | None) -> bool:
        self.calls.append((stage, epoch, n_epochs, embedding))
        return (stage, epoch) == self.stop_at


@pytest.mark.parametrize("supervised", [False, True])
def test_callback_is_called_for_every_stage_and_epoch_in_order(iris: NDArray[np.float32], supervised: bool) -> None:
    recorder = Recorder()
    model = UMAP(n_epochs=12, random_state=0, n_components=3, callback=recorder)
    model.fit(iris, np.arange(150) // 50 if supervised else None)
    heard = [call[:3] for call in recorder.calls]
    stages = [(stage, done, 1) for stage in STAGES for done in (0, 1)]
    assert heard == stages + [("layout", epoch, 12) for epoch in range(1, 13)]
    places = [call[3] for call in recorder.calls]
    assert places[: len(stages)] == [None] * len(stages)
    for embedding in places[len(stages) :]:
        assert embedding is not None
        assert embedding.shape == (150, 3)
        assert embedding.dtype == np.float32
    np.testing.assert_array_equal(places[-1], model.embedding_)


def test_callback_gets_copies(iris: NDArray[np.float32]) -> None:
    def spoil(stage: str, epoch: int, n_epochs: int, embedding: NDArray[np.float32] | None) -> None:
        if embedding is not None:
            embedding[:] = np.nan

    spoiled = UMAP(n_epochs=10, random_state=0, callback=spoil).fit_transform(iris)
    np.testing.assert_array_equal(spoiled, UMAP(n_epochs=10, random_state=0).fit_transform(iris))


def test_true_result_stops_the_layout_and_keeps_the_map(iris: NDArray[np.float32]) -> None:
    recorder = Recorder(stop_at=("layout", 7))
    model = UMAP(n_epochs=50, random_state=0, callback=recorder).fit(iris)
    assert model.n_epochs_ == 7
    assert recorder.calls[-1][:3] == ("layout", 7, 50)
    np.testing.assert_array_equal(model.embedding_, recorder.calls[-1][3])
    assert np.isfinite(model.transform(iris[:5] + 0.1)).all()


@pytest.mark.parametrize("stage", STAGES)
def test_true_result_before_the_layout_returns_the_initial_places(iris: NDArray[np.float32], stage: str) -> None:
    model = UMAP(n_epochs=50, random_state=0, callback=Recorder(stop_at=(stage, 1))).fit(iris)
    assert model.n_epochs_ == 0
    np.testing.assert_array_equal(model.embedding_, UMAP(n_epochs=0, random_state=0).fit_transform(iris))


@pytest.mark.parametrize("answer", [np.True_, 1, "stop", [0]])
def test_any_truthy_result_stops(iris: NDArray[np.float32], answer: Any) -> None:
    model = UMAP(n_epochs=50, callback=lambda stage, *_: answer if stage == "layout" else None).fit(iris)
    assert model.n_epochs_ == 1


@pytest.mark.parametrize("at", ["neighbors", "layout"])
def test_error_in_the_callback_is_raised(iris: NDArray[np.float32], at: str) -> None:
    def fail(stage: str, *_: Any) -> None:
        if stage == at:
            raise RuntimeError("from the callback")

    with pytest.raises(RuntimeError, match="from the callback"):
        UMAP(n_epochs=5, callback=fail, verbose=True).fit(iris)


def test_nothing_is_printed_by_default(iris: NDArray[np.float32], capfd: pytest.CaptureFixture[str]) -> None:
    model = UMAP(n_epochs=10).fit(iris)
    model.transform(iris + 0.1)
    UMAP(n_epochs=10).fit(iris, np.arange(150) % 3)
    UMAP(n_epochs=5).fit(np.zeros((30, 2)))
    assert capfd.readouterr() == ("", "")


def test_verbose_draws_one_bar_per_stage(iris: NDArray[np.float32], capfd: pytest.CaptureFixture[str]) -> None:
    UMAP(n_epochs=20, verbose=True).fit(iris)
    out, err = capfd.readouterr()
    assert out == ""
    for stage in (*STAGES, "layout"):
        assert stage in err
    assert "20/20" in err
    assert "1/1" in err


def test_tqdm_kwds_are_passed_to_the_bars(iris: NDArray[np.float32], capfd: pytest.CaptureFixture[str]) -> None:
    given = {"desc": "my map", "bar_format": "{desc} <{n_fmt}>", "leave": True}
    model = UMAP(n_epochs=20, verbose=True, tqdm_kwds=given).fit(iris)
    err = capfd.readouterr().err
    assert "my map <20>" in err
    assert model.tqdm_kwds is given
    UMAP(n_epochs=20, verbose=True, tqdm_kwds={"disable": True}).fit(iris)
    assert capfd.readouterr() == ("", "")


def test_stage_times_are_recorded_without_a_callback(iris: NDArray[np.float32]) -> None:
    model = UMAP(n_epochs=10).fit(iris)
    assert list(model.stage_times_) == [*STAGES, "layout"]
    assert all(seconds >= 0 for seconds in model.stage_times_.values())
