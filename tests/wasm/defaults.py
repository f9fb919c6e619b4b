"""Export the numbers by which the package decides, for the same decisions in JavaScript (web/src/core/defaults.json).

``python tests/wasm/defaults.py`` writes the file again; tests/wasm/test_defaults.py fails if it is not current.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vicinal.estimators.parameters import parameters_of
from vicinal.estimators.tsne import CAUCHY, PERPLEXITY, TSNE, LargeVis
from vicinal.estimators.umap import UMAP
from vicinal.initialize import task
from vicinal.layout import density
from vicinal.layout.forces import LARGEST_SPREAD, SMALLEST_SPREAD, Forces, Kernel
from vicinal.layout.sampled import PULLS_BIPARTITE, PULLS_SYMMETRIC
from vicinal.layout.schedule import LARGE_ROWS, SMALL_ROWS
from vicinal.neighbors import rows, search, table
from vicinal.neighbors.metrics import METRICS
from vicinal.pipeline import recipe

FILE = Path(__file__).parents[2] / "web" / "src" / "core" / "defaults.json"

# Metrics whose rows the core compares as they are.
METRIC_NAMES = ("euclidean", "manhattan", "chebyshev", "cosine", "correlation")
PARAMETERS = {
    "umap": (UMAP, "n_neighbors n_components metric learning_rate min_dist spread set_op_mix_ratio local_connectivity "
             "repulsion_strength negative_sample_rate update_negatives transform_seed dens_lambda dens_frac "
             "dens_var_shift"),
    "largevis": (LargeVis, "perplexity negative_sample_rate learning_rate"),
    "tsne": (TSNE, "max_iter early_exaggeration_iter dof initial_momentum final_momentum"),
}  # fmt: skip
# Row counts at which schedules change.
TIERS = (SMALL_ROWS, LARGE_ROWS, None)
SCHEDULE = ("n_epochs", "sweeps", "firings", "decay", "constant_rate_share", "single_negative_share", "longest_push",
            "negative_sample_rate", "repulsion_strength")  # fmt: skip


def camel(name: str) -> str:
    """Return the name in JavaScript: n_neighbors becomes nNeighbors."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _tier(plan: Any, most_rows: int | None) -> dict[str, Any]:
    n = LARGE_ROWS + 1 if most_rows is None else most_rows
    schedule = plan.schedule(plan.default_epochs(recipe.EdgeTotals(n, float(n), 1.0)), n)
    values = {camel(name): getattr(schedule, name) for name in SCHEDULE}
    return {"mostRows": most_rows, **values, "placementEpochs": plan.short_epochs(n)}


def _plan(kind: str) -> dict[str, Any]:
    if kind == "umap":
        plan: Any = recipe.SampledPlan(Forces(Kernel(1.0, 1.0)))
        return {"tiers": [_tier(plan, most) for most in TIERS]}
    plan = recipe.LargeVisPlan(Forces(CAUCHY, "largevis"))
    least = recipe.LEAST_EPOCHS
    return {
        "tiers": [
            _tier(plan, most)
            | {
                # The weight of negatives and their number are relative to the parameters.
                "samplesPerRow": recipe.SAMPLES_PER_ROW if most is not None else recipe.LARGE_SAMPLES_PER_ROW,
                "gamma": recipe.LARGEVIS_SMALL_GAMMA if most == SMALL_ROWS else recipe.LARGEVIS_GAMMA,
            }
            for most in TIERS
        ],
        "leastEpochs": least,
        "negativePower": recipe.NEGATIVE_POWER,
        "kernel": asdict(CAUCHY),
        "neighborsPerPerplexity": recipe.NEIGHBORS_PER_PERPLEXITY,
    }


def _tsne() -> dict[str, Any]:
    model = TSNE()
    phases = [{camel(k): v for k, v in asdict(phase).items()} for phase in model._phases(10_000)]
    return {
        "perplexity": PERPLEXITY,
        "phasesOf10000": phases,
        "narrow": task.NARROW,
        "neighborsPerPerplexity": recipe.NEIGHBORS_PER_PERPLEXITY,
    }


def defaults() -> dict[str, Any]:
    """Return all exported numbers."""
    given = {
        kind: {camel(name): parameters_of(cls)[name].default for name in names.split()}
        for kind, (cls, names) in PARAMETERS.items()
    }
    options = {camel(name): value for name, value in asdict(search.SearchOptions()).items()}
    harder = asdict(search.SearchOptions().harder())
    long_table = asdict(search.SearchOptions().for_table(search.LONG_TABLE + 1))
    return {
        "parameters": given,
        "umap": _plan("umap"),
        "largevis": _plan("largevis"),
        "tsne": _tsne(),
        "layout": {
            "pullsSymmetric": PULLS_SYMMETRIC,
            "pullsBipartite": PULLS_BIPARTITE,
            "placementRate": recipe.PLACEMENT_RATE,
            "mostTurnedRows": SMALL_ROWS,
            "smallestSpread": SMALLEST_SPREAD,
            "largestSpread": LARGEST_SPREAD,
            "leastExtent": task.LEAST_EXTENT,
            "spacing": task.SPACING,
        },
        "density": {
            "exactShare": density.EXACT_SHARE,
            "exactShift": density.EXACT_SHIFT,
            "sweeps": density.DENSITY_SWEEPS,
        },
        "metrics": {
            name: {"unrelated": METRICS[name].unrelated, "unrelatedNonNegative": METRICS[name].unrelated_non_negative}
            for name in METRIC_NAMES
        },
        "search": {
            "sketchWidth": search.SKETCH_WIDTH,
            "exactRows": search.EXACT_ROWS,
            "exactWork": search.EXACT_WORK,
            "exactRowsPerNeighbor": search.EXACT_ROWS_PER_NEIGHBOR,
            "longTable": search.LONG_TABLE,
            "enoughSought": search.ENOUGH_SOUGHT,
            "leastSpare": search.LEAST_SPARE,
            "mostSpare": search.MOST_SPARE,
            "forestRows": search.FOREST_ROWS,
            "recallSample": search.RECALL_SAMPLE,
            "goodRecall": search.GOOD_RECALL,
            "exactLater": search.EXACT_LATER,
            "queryTrees": search.QUERY_TREES,
            "largestSafe": rows.LARGEST_SAFE,
            "smallestSafe": rows.SMALLEST_SAFE,
            "rounding": table.ROUNDING,
            "options": options,
            "harder": {camel(name): harder[name] for name in harder if harder[name] != options[camel(name)]},
            "longTableEnds": {name: long_table[name] for name in ("coarse", "fine", "final")},
        },
    }


def text() -> str:
    """Return the contents of the file; JSON has no infinity."""

    def finite(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: finite(one) for key, one in value.items()}
        if isinstance(value, list):
            return [finite(one) for one in value]
        return None if isinstance(value, float) and math.isinf(value) else value

    return json.dumps(finite(defaults()), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
