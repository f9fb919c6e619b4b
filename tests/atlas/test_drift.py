"""Drift of new rows: the measures, and tests whose p-values are those they should be."""

from __future__ import annotations

import json
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import binom

from vicinal import find_neighbors
from vicinal.atlas.drift import MEASURES, NEAREST, Drift, measure_drift, variation
from vicinal.plot import THEMES

N, M = 400, 100
NAMES = ("left", "middle", "right")
CENTERS = np.array([[0.0, 0, 0, 0], [9, 0, 0, 0], [0, 9, 0, 0]])
COLORS = np.array(["blue", "green", "red"])

Draw = dict[str, Any]


def draw(seed: int, n: int = N, m: int = M) -> Draw:
    """Return old and new rows of the same distribution, with areas and labels."""
    rng = np.random.default_rng(seed)
    area = rng.choice(3, n + m, p=[0.5, 0.3, 0.2])
    rows = CENTERS[area] + rng.normal(size=(n + m, 4))
    label = COLORS[rng.choice(3, n + m, p=[0.6, 0.3, 0.1])]
    halves = {"areas": area, "labels": label}
    return {"old": rows[:n], "new": rows[n:], "names": NAMES} | {k: (v[:n], v[n:]) for k, v in halves.items()}


def p_values(found: Drift) -> list[float]:
    return [getattr(one, name).p for one in found.entries for name in MEASURES]


def test_p_values_are_uniform_without_drift() -> None:
    times = 150
    found = np.array([p_values(measure_drift(**draw(seed), resamples=19, seed=seed)) for seed in range(times)])
    # distances are not tied, so that their p-values are exact: the steps 0.05, 0.1, ... are equally likely
    for column in (0, 4, 8, 12):
        steps = np.rint(20 * found[:, column]).astype(int)
        counts = [int((steps <= step).sum()) for step in (1, 5, 10, 15)]
        likely = [binom(times, share).interval(1 - 1e-5) for share in (0.05, 0.25, 0.5, 0.75)]
        assert all(low <= count <= high for count, (low, high) in zip(counts, likely, strict=True)), counts
    # counts are tied, and a tie counts as extreme: small p-values are not more frequent than they should be
    for level in (0.05, 0.2):
        most = binom(times, level).ppf(1 - 1e-5)
        assert ((found <= level + 1e-9).sum(axis=0) <= most).all()
        # but they do occur in each measure
        assert (found.reshape(times, -1, 4) <= 0.2 + 1e-9).any(axis=(0, 1)).all()


def test_nothing_is_listed_for_rows_of_the_same_distribution() -> None:
    listed = sum(bool(measure_drift(**draw(seed), resamples=199).drifted) for seed in range(20))
    # at most 5 % of false discoveries among the areas and as many of all rows
    assert listed <= binom(20, 0.1).ppf(1 - 1e-4)


def test_each_kind_of_drift_is_found_where_it_is(global_random_seed: int) -> None:
    given = draw(global_random_seed)
    new, (old_areas, areas), (old_labels, labels) = given["new"].copy(), given["areas"], given["labels"]
    new[areas == 1] += [0, 0, 3.0, 0]
    labels = np.where(areas == 2, "red", labels)
    # the first area gets four times as many rows
    again = np.repeat(np.flatnonzero(areas == 0), 3)
    rng = np.random.default_rng((global_random_seed, 1))
    more = rng.normal(size=(len(again), 4))
    given |= {
        "new": np.concatenate([new, more]),
        "areas": (old_areas, np.append(areas, areas[again])),
        "labels": (old_labels, np.append(labels, COLORS[rng.choice(3, len(again), p=[0.6, 0.3, 0.1])])),
    }
    found = measure_drift(**given, resamples=999)
    left, middle, right = found.entries[1:]
    assert {"distance", "nowhere"} <= set(middle.drifted)
    # by chance alone, a p-value is as small once in a thousand times
    assert min(left.distance.p, right.distance.p, left.composition.p, middle.composition.p) > 0.001
    assert "composition" in right.drifted
    assert "growth" in left.drifted
    assert "growth" in found.whole.drifted
    assert (left.old, left.new) == (int((old_areas == 0).sum()), len(again) // 3 * 4)
    assert middle.distance.value > 1.5 * middle.distance.expected


def test_measures_are_what_they_say(global_random_seed: int) -> None:
    given = draw(global_random_seed)
    old, new, (old_areas, areas), (_, labels) = given["old"], given["new"], given["areas"], given["labels"]
    found = measure_drift(**given, resamples=19)
    apart = np.sort(np.linalg.norm(new[:, None] - old[None], axis=2), axis=1)[:, :NEAREST].mean(axis=1)
    assert found.whole.distance.value == pytest.approx(apart.mean(), rel=1e-5)
    among = find_neighbors(old, NEAREST + 1).distance[:, 1:].mean(axis=1)
    assert found.whole.distance.expected == pytest.approx(among.mean(), rel=1e-5)
    limits = np.array([np.quantile(among[old_areas == a], 0.99) for a in range(3)])
    limits[(np.bincount(old_areas) < 100)] = np.quantile(among, 0.99)
    assert found.whole.nowhere.value == pytest.approx((apart > limits[areas]).mean())
    for a, one in enumerate(found.entries[1:]):
        assert one.distance.value == pytest.approx(apart[areas == a].mean(), rel=1e-5)
        assert one.growth.value == pytest.approx((areas == a).sum() / (old_areas == a).sum())
    shares = [[(one == color).mean() for color in COLORS] for one in given["labels"]]
    assert found.whole.composition.value == pytest.approx(np.abs(np.subtract(*shares)).sum() / 2)
    assert labels.shape == (M,)
    assert variation(np.array([[1.0, 1, 0]]), np.array([[0.0, 0, 5]])).tolist() == [1.0]


def test_distances_of_rows_that_are_mostly_among_each_other_are_exact() -> None:
    given = draw(0)
    new = given["new"] * 1e-3 + 50.0  # one dense heap, far away: none of their neighbors is old
    found = measure_drift(given["old"], new, given["areas"], NAMES, resamples=19)
    apart = np.sort(np.linalg.norm(new[:, None] - given["old"][None], axis=2), axis=1)[:, :NEAREST]
    assert found.whole.distance.value == pytest.approx(apart.mean(), rel=1e-4)
    assert found.whole.nowhere.value == 1.0
    assert found.whole.nowhere.p == 0.05


def test_result_depends_on_the_seed_only() -> None:
    given = draw(3)
    first, again = (measure_drift(**given, resamples=99, seed=4) for _ in range(2))
    assert first == again
    assert measure_drift(**given, resamples=99, seed=5) != first
    sparse = given | {"old": csr_matrix(given["old"]), "new": csr_matrix(given["new"])}
    assert measure_drift(**sparse, resamples=99, seed=4).whole.growth == first.whole.growth


def test_empty_new_and_missing_areas_are_told() -> None:
    given = draw(1)
    (old_areas, areas), new = given["areas"], given["new"]
    changed = np.where(areas == 1, 3, np.where(areas == 2, -1, areas))
    found = measure_drift(given["old"], new, (old_areas, changed), (*NAMES, "fresh"), resamples=99)
    table = {row["name"]: row for row in found.table()}
    assert list(table) == ["all rows", *NAMES, "fresh", "no area"]
    # an area without new rows has lost growth, and has no distances
    assert (table["middle"]["new"], table["middle"]["growth"], table["middle"]["distance"]) == (0, 0.0, None)
    assert table["middle"]["growth_p"] == 0.02
    assert table["middle"]["drifted"] == ["growth"]
    # an area without old rows has grown from nothing
    assert (table["fresh"]["old"], table["fresh"]["growth"]) == (0, None)
    assert table["fresh"]["growth_p"] == 0.02
    assert table["no area"]["area"] == -1
    assert all(row["composition"] is None for row in found.table())
    document = json.loads(found.to_json())
    assert document["table"] == found.table()
    assert document["resamples"] == 99
    assert "middle: growth 0 (expected" in str(found)
    assert "areas grow differently (p = 0.01)" in str(found)


@pytest.mark.parametrize("theme", sorted(THEMES))
def test_plot_shows_every_measure(theme: str) -> None:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    given = draw(1)
    axes = measure_drift(**given, resamples=19).plot(theme=theme, most=2)
    assert [ax.get_title() for ax in axes][:2] == ["distance to old rows", "share that fits nowhere"]
    assert len(axes) == 4
    # all rows together and two areas
    assert len(axes[0].get_yticklabels()) == 3
    assert len(measure_drift(**{**given, "labels": None}, resamples=19).plot(theme=theme)) == 3
    plt.close("all")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"areas": (np.zeros(3, int), np.zeros(M, int))}, "areas of the old rows must be 400 whole numbers"),
        ({"areas": (np.zeros(N, int), np.full(M, 3))}, "areas of the new rows must be -1 or below 3, got 3 in row 0"),
        ({"labels": (np.zeros(N), np.zeros(2))}, "labels of the new rows must have 100 entries"),
        ({"labels": (np.linspace(0, 1, N), np.zeros(M))}, "labels must be categories"),
        ({"resamples": 5}, "resamples must be"),
        ({"seed": -1}, "seed must be"),
        ({"new": np.empty((0, 4)), "areas": (np.zeros(N, int), np.zeros(0, int)), "labels": None}, "at least one new"),
    ],
    ids=["old areas", "new areas", "labels", "scale", "resamples", "seed", "no rows"],
)
def test_bad_input_is_refused(change: Draw, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        measure_drift(**(draw(0) | change))
