"""The numbers that JavaScript decides by are those of the package."""

from __future__ import annotations

import pytest
from wasm import defaults

from vicinal.estimators.tsne import TSNE
from vicinal.layout.forces import Forces, Kernel
from vicinal.layout.schedule import LARGE_ROWS, SMALL_ROWS
from vicinal.pipeline.recipe import EdgeTotals, LargeVisPlan, SampledPlan


def test_exported_numbers_are_current() -> None:
    assert defaults.FILE.read_text() == defaults.text(), "run `python tests/wasm/defaults.py`"


@pytest.mark.parametrize("kind", ["umap", "largevis"])
@pytest.mark.parametrize("n", [2, SMALL_ROWS - 1, SMALL_ROWS, SMALL_ROWS + 1, LARGE_ROWS, LARGE_ROWS + 1, 10**6])
def test_schedules_change_at_the_exported_row_counts_only(kind: str, n: int) -> None:
    forces = Forces(Kernel(1.0, 1.0), kind)  # type: ignore[arg-type]
    plan = SampledPlan(forces) if kind == "umap" else LargeVisPlan(forces)
    tiers = defaults.defaults()[kind]["tiers"]
    tier = next(tier for tier in tiers if tier["mostRows"] is None or n <= tier["mostRows"])
    n_epochs = plan.default_epochs(EdgeTotals(n, float(n), 1.0))
    schedule = plan.schedule(n_epochs, n)
    assert {name: tier[defaults.camel(name)] for name in defaults.SCHEDULE} == {
        name: getattr(schedule, name) for name in defaults.SCHEDULE
    }
    assert tier["placementEpochs"] == plan.short_epochs(n)


def test_learning_rates_of_tsne_are_in_proportion_to_the_rows() -> None:
    exported = defaults.defaults()["tsne"]["phasesOf10000"]
    for phase, given in zip(TSNE()._phases(500), exported, strict=True):
        assert phase.learning_rate == 500 / given["exaggeration"] / 4
        assert (phase.n_epochs, phase.exaggeration, phase.momentum) == (
            given["nEpochs"],
            given["exaggeration"],
            given["momentum"],
        )
