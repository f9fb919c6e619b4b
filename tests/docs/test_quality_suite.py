"""The quality suite of benchmarks/: verdicts, measures, and the published figures of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def records(values: Sequence[float], name: str = "recall_15", group: str = "quality") -> list[dict[str, Any]]:
    return [{"case": "tree", "rows": 3000, group: {name: value}} for value in values]


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([0.50, 0.51, 0.52], [0.40, 0.41, 0.42], "better"),
        ([0.40, 0.41, 0.42], [0.50, 0.51, 0.52], "worse"),
        ([0.40, 0.45, 0.50], [0.42, 0.47, 0.52], "equal"),  # within the spread
        ([0.500, 0.500, 0.500], [0.501, 0.501, 0.501], "equal"),  # below the floor
        ([], [0.5], None),
    ],
    ids=["better", "worse", "spread", "floor", "missing"],
)
def test_verdict_needs_more_than_the_spread_of_the_seeds(
    ours: list[float], theirs: list[float], expected: str | None
) -> None:
    from quality_table import MEASURES, verdict

    assert verdict(MEASURES["recall_15"], records(ours), records(theirs)) == expected


def test_lower_loss_is_better() -> None:
    from quality_table import MEASURES, verdict

    low, high = (records(values, "resting", "loss") for values in ([100.0, 100.5], [110.0, 110.5]))
    assert verdict(MEASURES["resting"], low, high) == "better"
    assert verdict(MEASURES["resting"], high, low) == "worse"


def test_triplets_of_the_data_itself_are_kept_and_mirrored_places_agree(global_random_seed: int) -> None:
    from score import centroid_triplets, random_triplets, seed_agreement

    rng = np.random.default_rng(global_random_seed)
    rows, labels = rng.normal(size=(300, 2)), np.arange(300) % 5
    turned = 3.0 * rows[:, ::-1] + 7.0
    assert random_triplets(rows, turned, np.arange(300)) == 1.0
    assert centroid_triplets(rows, turned, labels) == 1.0
    assert seed_agreement([rows, turned]) == pytest.approx(1.0)
    noise = rng.normal(size=(300, 2))
    assert 0.4 < random_triplets(rows, noise, np.arange(300)) < 0.6
    assert seed_agreement([rows, noise]) < 0.2


def test_sheets_are_flattened_without_error() -> None:
    from shapes import SEED, straightened, unrolled
    from sklearn.datasets import make_s_curve, make_swiss_roll

    rows, angle = make_s_curve(500, random_state=SEED)
    assert np.abs(straightened(rows)[:, 0] - angle).max() < 1e-6
    rows, angle = make_swiss_roll(500, random_state=SEED)
    assert np.abs(np.hypot(rows[:, 0], rows[:, 2]) - angle).max() < 1e-6
    assert (np.argsort(unrolled(rows)[:, 0]) == np.argsort(angle)).all()


def test_both_halves_have_eight_sets_of_their_own() -> None:
    from quality import CASES

    halves = {half: [case for case in CASES if case.half == half] for half in ("tuning", "judging")}
    names = {half: {case.name for case in cases} for half, cases in halves.items()}
    assert min(len(found) for found in names.values()) >= 8
    assert not names["tuning"] & names["judging"]


def test_graph_of_the_ring_is_that_of_the_paper() -> None:
    """Damrich and Hamprecht 2021 print both means of the graph of their 1,000 rows."""
    from published import ring
    from published_table import RING

    found = ring(None)[0]  # type: ignore[arg-type]  # the ring needs no measured process
    for key, (_, value) in RING.items():
        assert found[key] == pytest.approx(value, abs=5e-5)
