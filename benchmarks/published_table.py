"""Figures of papers beside ours, from the raw results of several suites."""

from __future__ import annotations

from dataclasses import dataclass

from bars import Documents, mean, middle, select


@dataclass(frozen=True)
class Figure:
    """A published number, and where ours is: the part of the suite `published`, and the record and key of it."""

    paper: str
    what: str
    data: str
    method: str
    value: float
    part: str
    key: str
    smaller_is_better: bool = False

    def ours(self, documents: Documents) -> float | None:
        records = select(documents, "published", part=self.part, case=self.data, system=self.method)
        return mean(records, self.key)


SAINBURG = "Sainburg, McInnes and Gentner 2021"
DAMRICH = "Damrich and Hamprecht 2021"
NARAYAN = "Narayan, Berger and Cho 2021"
KO = "Ko, Jo and Seo 2020"
METHODS = {"vicinal t-SNE": "t-SNE", "vicinal": "UMAP", "vicinal Parametric": "parametric UMAP"}
PARTS = {"vicinal Parametric": "networks"}
MEASURES = {
    "trustworthiness": "trustworthiness",
    "accuracy_5nn": "5-NN accuracy of test rows",
    "silhouette": "silhouette of the classes",
}
# (data, measure): t-SNE, UMAP, parametric UMAP.
SAINBURG_TABLE = {
    ("fashion", "trustworthiness"): (0.9906, 0.9777, 0.9733),
    ("fashion", "accuracy_5nn"): (0.8039, 0.7608, 0.7407),
    ("fashion", "silhouette"): (0.125, 0.194, 0.214),
    ("mnist", "trustworthiness"): (0.9874, 0.9601, 0.9573),
    ("mnist", "accuracy_5nn"): (0.9502, 0.9544, 0.9614),
    ("mnist", "silhouette"): (0.350, 0.519, 0.556),
}
SAINBURG_ERRORS = {"inverse_transform": 0.0347, "decoder": 0.0266, "joint autoencoder": 0.0240}
NARAYAN_TABLE = {"mnist": 0.8125, "fashion": 0.7769}
FIGURES = (
    *(
        Figure(SAINBURG, MEASURES[measure], data, method, value, PARTS.get(method, "projections"), measure)
        for (data, measure), values in SAINBURG_TABLE.items()
        for method, value in zip(METHODS, values, strict=True)
    ),
    *(
        Figure(
            SAINBURG, "error of rebuilt test rows", "fashion", decoder, value, "reconstruction", "squared_error", True
        )
        for decoder, value in SAINBURG_ERRORS.items()
    ),
    *(
        Figure(NARAYAN, "correlation of local radii", data, "vicinal DensMAP", value, "density", "radius_correlation")
        for data, value in NARAYAN_TABLE.items()
    ),
)
RING = {"degree": ("mean degree of the graph", 5.8273), "neighbors": ("mean number of neighbors", 16.524)}
# Seconds until the first map of Fashion-MNIST, seconds of umap-learn, and the final cost in costs of UMAP.
KO_FIRST, KO_WHOLE, KO_COST = 2.9, 27.7, 1.52
NAMES = {"fashion": "Fashion-MNIST", "mnist": "MNIST", **METHODS, "vicinal DensMAP": "densMAP"}
# A difference that other random numbers explain.
EQUAL = 0.005


def published_lines(documents: Documents) -> list[list[str]]:
    """Return the lines of the table: paper, what, data, method, published, ours, and the verdict."""
    lines = [["paper", "what", "data", "method", "published", "ours", ""]]
    for figure in FIGURES:
        ours = figure.ours(documents)
        names = [NAMES.get(name, name) for name in (figure.data, figure.method)]
        shown = "not measured" if ours is None else f"{ours:.4f}"
        lines.append([figure.paper, figure.what, *names, f"{figure.value:.4f}", shown, judge(figure, ours)])
    for key, (what, value) in RING.items():
        ours = mean(select(documents, "published", part="ring"), key)
        shown = "not measured" if ours is None else f"{ours:.4f}"
        lines.append(
            [
                DAMRICH,
                what,
                "ring, 1,000 rows",
                "UMAP",
                f"{value:.4f}",
                shown,
                "equal" if ours and abs(ours - value) < 1e-4 else "differs",
            ]
        )
    return lines + progressive_lines(documents)


def judge(figure: Figure, ours: float | None) -> str:
    if ours is None:
        return ""
    better = (figure.value - ours) if figure.smaller_is_better else (ours - figure.value)
    slack = EQUAL * (figure.value if figure.smaller_is_better else 1.0)
    return "equal" if abs(better) <= slack else "better" if better > 0.0 else "worse"


def progressive_lines(documents: Documents) -> list[list[str]]:
    """Compare the time of the first map as a share of a whole fit, because machines differ, and the final cost."""
    first = middle(select(documents, "progressive", system="progressive"), "first_map")
    whole = middle(select(documents, "progressive", system="one_shot"), "total")
    where = {"case": "fashion", "rows": 70_000}
    costs = [
        mean(select(documents, "quality", system=system, **where), "loss", "resting")
        for system in ("vicinal Progressive", "vicinal")
    ]
    lines = []
    if first and whole:
        ratio = f"{first:.2f} s of {whole:.1f} s: 1/{whole / first:.0f}"
        theirs = f"{KO_FIRST} s of {KO_WHOLE} s: 1/{KO_WHOLE / KO_FIRST:.0f}"
        found = "better" if first / whole < KO_FIRST / KO_WHOLE else "worse"
        lines.append([KO, "first map, share of a whole fit", "Fashion-MNIST", "progressive UMAP", theirs, ratio, found])
    if costs[0] and costs[1]:
        more = costs[0] / costs[1]
        found = "better" if more < KO_COST else "worse"
        row = [f"{KO_COST - 1:+.0%}", f"{more - 1:+.1%}", found]
        lines.append([KO, "final cost, against UMAP's", "Fashion-MNIST", "progressive UMAP", *row])
    return lines


def published_table(documents: Documents) -> list[str]:
    """Return the lines of the table in Markdown."""
    head, *rest = published_lines(documents)
    return ["| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rest]] + [""]


def published_section(documents: Documents) -> list[str]:
    """Return the section of RESULTS.md."""
    return ["## Published figures", "", documents["published"]["description"], "", *published_table(documents)]
