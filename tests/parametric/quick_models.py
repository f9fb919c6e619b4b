"""Models for tests that do not need a good map."""

from __future__ import annotations

from typing import Any

import pytest

from vicinal import ParametricUMAP

torch = pytest.importorskip("torch")


def quick(**options: Any) -> ParametricUMAP:
    """Return an estimator with a short training."""
    given: dict[str, Any] = {"n_epochs": 2, "batch_size": 64, "init": "random", "random_state": 0, "n_jobs": 1}
    return ParametricUMAP(**given | options)


class Narrow(torch.nn.Module):  # type: ignore[name-defined, misc]
    """A user's encoder with dropout, which draws from torch's global generator."""

    def __init__(self, n_features: int = 64) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Flatten(),
            torch.nn.Linear(n_features, 16),
            torch.nn.Tanh(),
            torch.nn.Dropout(0.2),
            torch.nn.Linear(16, 2),
        )

    def forward(self, x: Any) -> Any:
        return self.layers(x / 16.0)
