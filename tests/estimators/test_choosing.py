"""Parameters chosen by measurement."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

import vicinal

ROWS = load_iris().data.astype(np.float32)


def test_models_are_sorted_by_score_and_equal_own_fits() -> None:
    choice = vicinal.choose(ROWS, vicinal.UMAP(n_epochs=50), {"n_neighbors": [5, 30], "min_dist": (0.0, 0.8)})
    scores = [row["score"] for row in choice.table]
    assert len(choice.models) == 4
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1]
    best = choice.table[0]
    assert best["score"] == pytest.approx((best["near"] + best["wide"]) / 2)
    chosen = {name: best[name] for name in ("n_neighbors", "min_dist")}
    again = vicinal.UMAP(n_epochs=50, random_state=0, **chosen).fit(ROWS)
    assert np.array_equal(again.embedding_, choice.best.embedding_)
    assert "n_neighbors" in str(choice)
    assert len(str(choice).splitlines()) == 5


def test_scores_are_those_of_the_true_neighbors() -> None:
    choice = vicinal.choose(ROWS, vicinal.UMAP(n_epochs=50), {"n_neighbors": [10]}, n_neighbors=7)
    recall = vicinal.quality.neighbor_recall(ROWS, choice.best.embedding_, n_neighbors=7)
    assert choice.table[0]["near"] == pytest.approx(recall, abs=0.02)  # ties count as kept here


def test_other_models_have_other_parameters() -> None:
    choice = vicinal.choose(ROWS, vicinal.TSNE(max_iter=50), {"perplexity": [5.0, 20.0]})
    assert {model.perplexity for model in choice.models} == {5.0, 20.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": {"perplexity": [5]}}, "grid has the parameter 'perplexity', which UMAP does not have"),
        ({"grid": {"n_neighbors": []}}, "must be a list of values"),
        ({"grid": {}}, "at least one parameter"),
        ({"model": "umap"}, "model must be an estimator"),
        ({"n_neighbors": 0}, "n_neighbors must be a positive integer"),
    ],
)
def test_wrong_arguments_are_refused_before_any_fit(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vicinal.choose(ROWS, **arguments)
