"""Progress: times of stages, progress bars, and when callbacks are called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vicinal.runtime.progress import LAYOUT, Progress


def test_a_stage_reports_start_and_end_and_records_its_time() -> None:
    calls: list[tuple[Any, ...]] = []
    progress = Progress(callback=lambda *call: calls.append(call))
    with progress.stage("graph"):
        assert calls == [("graph", 0, 1, None)]
    assert calls == [("graph", 0, 1, None), ("graph", 1, 1, None)]
    assert list(progress.times) == ["graph"]
    assert progress.times["graph"] >= 0


def test_the_layout_stage_reports_epochs_only() -> None:
    calls: list[tuple[Any, ...]] = []
    places = np.zeros((2, 2), dtype=np.float32)
    progress = Progress(callback=lambda *call: calls.append(call))
    with progress.stage(LAYOUT, 2):
        progress.report(LAYOUT, 1, 2, lambda: places)
    assert [call[:3] for call in calls] == [(LAYOUT, 1, 2)]
    assert calls[0][3] is places


def test_a_request_to_stop_is_remembered() -> None:
    answers = iter([True, False, None])
    progress = Progress(callback=lambda *_: next(answers))
    assert progress.report("graph", 0, 1) is True
    assert progress.report("graph", 1, 1) is True
    assert progress.stopped


def test_the_embedding_is_not_computed_if_nobody_watches() -> None:
    def fail() -> Any:
        pytest.fail("the embedding was computed")

    progress = Progress()
    assert progress.report(LAYOUT, 1, 30, fail) is False
    progress.listen(print, every=7)
    assert progress.report(LAYOUT, 8, 30, fail) is False


def test_next_report_is_the_stop_if_nobody_watches() -> None:
    assert Progress().next_report(0, 500) == 500


@pytest.mark.parametrize("options", [{"verbose": True}, {"callback": print}])
def test_bars_and_the_users_callback_watch_every_epoch(options: dict[str, Any]) -> None:
    progress = Progress(**options)
    progress.listen(print, every=50)
    assert [progress.next_report(epoch, 500) for epoch in (0, 1, 49)] == [1, 2, 50]


def test_next_report_is_the_nearest_multiple_of_any_period() -> None:
    progress = Progress()
    progress.listen(print, every=50)
    progress.listen(print, every=20)
    found, epoch = [], 0
    while epoch < 110:
        epoch = progress.next_report(epoch, 110)
        found.append(epoch)
    assert found == [20, 40, 50, 60, 80, 100, 110]


def test_listeners_are_called_at_their_periods_and_on_request_at_the_last_epoch() -> None:
    calls: dict[str, list[int]] = {"periodic": [], "with last": []}
    progress = Progress()
    progress.listen(lambda _, epoch, *__: calls["periodic"].append(epoch), every=4)
    progress.listen(lambda _, epoch, *__: calls["with last"].append(epoch), every=4, last=True)
    for epoch in range(1, 11):
        progress.report(LAYOUT, epoch, 10, lambda: np.zeros((1, 2), dtype=np.float32))
    assert calls == {"periodic": [4, 8], "with last": [4, 8, 10]}


def test_listeners_are_not_called_outside_the_layout() -> None:
    progress = Progress()
    progress.listen(lambda *_: pytest.fail("called for another stage"))
    with progress.stage("graph"):
        progress.report("graph", 1, 1)


def test_every_callback_is_called_and_any_of_them_can_stop() -> None:
    stages: list[str] = []
    progress = Progress(callback=lambda stage, *_: stages.append(stage))
    assert not progress.report("graph", 0, 1)
    progress.listen(lambda *_: True)
    assert progress.report(LAYOUT, 1, 9)
    assert stages == ["graph", LAYOUT]


def test_a_period_below_one_is_rejected() -> None:
    with pytest.raises(ValueError, match="every must be at least 1"):
        Progress().listen(print, every=0)


def test_bars_are_closed_when_a_stage_fails(capfd: pytest.CaptureFixture[str]) -> None:
    progress = Progress(verbose=True)
    with pytest.raises(RuntimeError, match="in the stage"), progress.stage("graph"):
        raise RuntimeError("in the stage")
    assert progress._bar is None
    assert "graph" not in progress.times
    assert "graph" in capfd.readouterr().err


def test_tqdm_kwds_are_copied() -> None:
    given = {"desc": "x"}
    progress = Progress(verbose=True, tqdm_kwds=given)
    given["desc"] = "y"
    assert progress._tqdm_kwds == {"desc": "x"}
