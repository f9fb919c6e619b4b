"""A scikit-learn pipeline with UMAP, whose parameters GridSearchCV searches, on digits."""

from __future__ import annotations

from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import vicinal


def main() -> None:
    rows, digits = load_digits(return_X_y=True)
    steps = [
        ("scale", StandardScaler(with_std=False)),
        ("umap", vicinal.UMAP(random_state=0, n_epochs=100)),
        ("classify", KNeighborsClassifier(5)),
    ]
    choices = {"umap__n_neighbors": [5, 15], "umap__n_components": [2, 5], "classify__n_neighbors": [5]}
    search = GridSearchCV(Pipeline(steps), choices, cv=3, n_jobs=2).fit(rows, digits)
    assert search.best_score_ > 0.93, f"the best score is only {search.best_score_:.3f}"
    best = {name.removeprefix("umap__"): value for name, value in search.best_params_.items() if "umap" in name}
    print(f"scikit-learn GridSearchCV: accuracy {search.best_score_:.3f} with {best}")


if __name__ == "__main__":
    main()
