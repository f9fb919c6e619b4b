"""Progress: stages, their times, and who is told what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vicinal.runtime.progress import LAYOUT, Progress


def test_a_stage_reports_its_beginning_and_end_and_its_time() -> None:
    calls: list[tuple[Any, ...]] = []
    progress = Progress(callback=lambda *call: calls.append(call))
    with progress.stage("graph"):
        assert calls == [("graph", 0, 1, None)]
    assert calls == [("graph", 0, 1, None), ("graph", 1, 1, None)]
    assert list(progress.times) == ["graph"]
    assert progress.times["graph"] >= 0


def test_the_layout_reports_its_own_epochs() -> None:
    calls: list[tuple[Any, ...]] = []
    places = np.zeros((2, 2), dtype=np.float32)
    progress = Progress(callback=lambda *call: calls.append(call))
    with progress.stage(LAYOUT, 2):
        progress.report(LAYOUT, 1, 2, lambda: places)
    assert [call[:3] for call in calls] == [(LAYOUT, 1, 2)]
    assert calls[0][3] is places


def test_stopping_is_remembered() -> None:
    answers = iter([True, False, None])
    progress = Progress(callback=lambda *_: next(answers))
    assert progress.report("graph", 0, 1) is True
    assert progress.report("graph", 1, 1) is True
    assert progress.stopped


def test_the_embedding_is_not_made_for_nobody() -> None:
    def fail() -> Any:
        pytest.fail("nobody looks at the embedding")

    progress = Progress()
    assert not progress.wants_epochs
    assert progress.report(LAYOUT, 1, 2, fail) is False


@pytest.mark.parametrize("options", [{"verbose": True}, {"callback": print}])
def test_someone_wants_epochs(options: dict[str, Any]) -> None:
    assert Progress(**options).wants_epochs


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


def test_every_listener_is_told_and_any_can_stop() -> None:
    first: list[str] = []
    progress = Progress(callback=lambda stage, *_: first.append(stage))
    assert not progress.report("graph", 0, 1)
    progress.listen(lambda *_: True)
    assert progress.report("layout", 1, 9)
    assert first == ["graph", "layout"]
