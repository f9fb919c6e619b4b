"""The bars: required and desired results, as a ratio to another library in the same run or as an absolute limit."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Documents = dict[str, dict[str, Any]]
Record = dict[str, Any]

NO_LIMIT = float("inf")
QUALITY_SLACK = 0.005
# Twice the standard error of a recall that is measured on 2,000 rows.
RECALL_SLACK = 0.002
QUALITY_NAMES = {
    "recall_15": "recall@15",
    "true_15_in_100": "true 15 in 100",
    "accuracy_10nn": "10-NN accuracy",
    "spearman": "Spearman",
}
OTHER_QUALITY_NAMES = {"trustworthiness_15": "trustworthiness", "accuracy_5nn": "5-NN accuracy"}
DIGITS_LIMITS = {"trustworthiness_15": 0.985, "accuracy_5nn": 0.975}


@dataclass(frozen=True)
class Bar:
    """One row of the table: `value` must satisfy `limit`; `aim` is a stricter, optional goal."""

    work: str
    ours: str
    peer: str
    value: float
    limit: float
    aim: float | None = None
    # ratio, share, seconds, loss, cost, count: smaller is better; score, difference: larger is better
    kind: str = "ratio"

    @property
    def at_least(self) -> bool:
        return self.kind in ("score", "difference")

    def reaches(self, bound: float) -> bool:
        return self.value >= bound if self.at_least else self.value <= bound

    @property
    def met(self) -> str:
        aimed = self.aim is not None and self.reaches(self.aim)
        if self.limit == NO_LIMIT:
            return "aim met" if aimed else "aim missed"
        if not self.reaches(self.limit):
            return "no"
        return "yes, aim too" if aimed else "yes"


def select(documents: Documents, suite: str, **where: Any) -> list[Record]:
    records = documents.get(suite, {}).get("records", [])
    return [r for r in records if all(r.get(key) == value for key, value in where.items())]


def middle(records: list[Record], *path: str) -> float | None:
    """Return the median over records of the number at a path of keys, or None if no record has it."""
    values = []
    for record in records:
        value: Any = record
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            values.append(float(value))
    return statistics.median(values) if values else None


def mean_quality(records: list[Record], name: str) -> float | None:
    values = [r["quality"][name] for r in records if name in r.get("quality", {})]
    return statistics.fmean(values) if values else None


def seconds(value: float) -> str:
    if value < 0.1:
        return f"{value * 1e3:.2f} ms"
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def ratio(work: str, ours: float | None, peer: float | None, limit: float, aim: float | None) -> list[Bar]:
    if ours is None or peer is None:
        return []
    return [Bar(work, seconds(ours), seconds(peer), ours / peer, limit, aim)]


def faster_umap(documents: Documents, suite: str, case: str) -> float | None:
    """Return the time of umap-learn's fresh process, with or without a seed, whichever is faster."""
    walls = [middle(select(documents, suite, case=case, system="umap-learn", seeded=s), "wall") for s in (True, False)]
    known = [wall for wall in walls if wall is not None]
    return min(known) if known else None


def sparse_bars(documents: Documents) -> list[Bar]:
    ours = select(documents, "sparse", system="vicinal")
    work = "sparse rows, fresh process, seeded (umap-learn: the faster of seeded and not)"
    bars = ratio(work, middle(ours, "wall"), faster_umap(documents, "sparse", "topics"), 1 / 3, None)
    peak = middle(ours, "peak_bytes")
    if peak is not None:
        bars.append(Bar("sparse rows, peak memory", mebibytes(peak), "2 GB", peak / 2e9, 1.0))
    return bars


# The suite "stages" on processors of two kinds: how its rows begin, and the limit and the aim of the whole fit.
STAGES_ON = {"stages": ("", 1 / 10, 1 / 14), "stages_avx2": ("without AVX-512: ", 1 / 6.5, 1 / 9)}


def stage_bars(documents: Documents, suite: str) -> list[Bar]:
    """Compare warm stages with those of umap-learn and pynndescent."""
    ours, umap, pynndescent = (
        select(documents, suite, system=name) for name in ("vicinal", "umap-learn", "pynndescent")
    )
    machine, fit_limit, fit_aim = STAGES_ON[suite]
    bars = []
    for work, stage, peer, limit, aim in (
        ("whole fit, warm, against umap-learn without a seed", "fit", umap, fit_limit, fit_aim),
        ("neighbor graph, warm, against pynndescent", "neighbors", pynndescent, 1 / 1.7, 1 / 2.2),
        ("layout, 200 epochs, warm, against umap-learn without a seed", "layout", umap, 1 / 4, 1 / 8),
    ):
        bars += ratio(machine + work, middle(ours, "stages", stage), middle(peer, "stages", stage), limit, aim)
    found, wanted = middle(ours, "neighbor_recall"), middle(pynndescent, "neighbor_recall")
    if found is not None and wanted is not None:
        work = f"{machine}neighbor graph, recall: difference from pynndescent"
        bars.append(Bar(work, f"{found:.4f}", f"{wanted:.4f}", found - wanted, -RECALL_SLACK, kind="difference"))
    return bars


def speed_bars(documents: Documents) -> list[Bar]:
    bars = []
    for suite, case, limit, aim in (("iris", "iris", 1 / 10, None), ("fresh", "fashion", 1 / 7, 1 / 15)):
        ours = middle(select(documents, suite, case=case, system="vicinal"), "wall")
        work = f"{case}, fresh process, seeded (umap-learn: the faster of seeded and not)"
        bars += ratio(work, ours, faster_umap(documents, suite, case), limit, aim)
    for suite in STAGES_ON:
        bars += stage_bars(documents, suite)
    ours, peer = (select(documents, "large", system=name) for name in ("vicinal", "umap-learn"))
    if ours:
        work = f"{ours[0]['rows']:,} rows, whole fit, warm, against umap-learn without a seed"
        bars += ratio(work, middle(ours, "fit"), middle(peer, "fit"), 1 / 10, 1 / 14)
    moved, moved_umap = (select(documents, "transform", system=name) for name in ("vicinal", "umap-learn"))
    if moved:
        work = f"transform of {moved[0]['many_rows']:,} unseen rows, warm, against umap-learn"
        bars += ratio(work, middle(moved, "many"), middle(moved_umap, "many"), 1 / 7, 1 / 15)
    return bars


def tsne_bars(documents: Documents) -> list[Bar]:
    """Compare t-SNE with openTSNE: the time, and how far our divergence is below theirs."""
    ours, peer = (select(documents, "tsne", system=name) for name in ("vicinal t-SNE", "openTSNE"))
    bars = ratio("t-SNE, fresh process, against openTSNE", middle(ours, "wall"), middle(peer, "wall"), 1 / 8, 1 / 10)
    if bars:
        low, high = middle(ours, "kl_divergence") or 0.0, middle(peer, "kl_divergence") or 0.0
        work = "t-SNE, KL divergence: how far below openTSNE's"
        bars.append(Bar(work, f"{low:.4f}", f"{high:.4f}", high - low, 0.0, kind="difference"))
    return bars


LARGEVIS_SLACK = 0.02
# Half of what a fit of LargeVis took, in fits of UMAP, before its layout was made faster.
LARGEVIS_TIME = 2.2


def family_bars(documents: Documents) -> list[Bar]:
    """Compare densMAP with UMAP (cost) and umap-learn's densMAP (radii, neighbors), LargeVis with t-SNE (classes)."""
    umap, ours, peer, largevis = (
        select(documents, "family", system=name)
        for name in ("vicinal", "vicinal DensMAP", "umap-learn densMAP", "vicinal LargeVis")
    )
    bars = ratio("densMAP, fit, against our UMAP", middle(ours, "fit"), middle(umap, "fit"), 1.5, 1.2)
    bars += ratio(
        "densMAP, fresh process, against umap-learn's", middle(ours, "wall"), middle(peer, "wall"), NO_LIMIT, None
    )
    bars += ratio("LargeVis, fit, against our UMAP", middle(largevis, "fit"), middle(umap, "fit"), LARGEVIS_TIME, None)
    first, second = middle(ours, "radius_correlation"), middle(peer, "radius_correlation")
    if first is not None and second is not None:
        work = "densMAP, correlation of log radii: difference from umap-learn's"
        bars.append(Bar(work, f"{first:.3f}", f"{second:.3f}", first - second, 0.0, kind="difference"))
    pairs = [("densMAP, recall@15: difference from umap-learn's", ours, peer, "recall_15", 0.0)]
    tsne = select(documents, "tsne", system="vicinal t-SNE")
    pairs.append(
        ("LargeVis, 10-NN accuracy: difference from t-SNE's", largevis, tsne, "accuracy_10nn", -LARGEVIS_SLACK)
    )
    for work, one, other, name, limit in pairs:
        first, second = mean_quality(one, name), mean_quality(other, name)
        if first is not None and second is not None:
            bars.append(Bar(work, f"{first:.4f}", f"{second:.4f}", first - second, limit, kind="difference"))
    return bars


PROGRESSIVE_SLACK = {"trustworthiness_15": 0.02, "accuracy_10nn": 0.008}


def progressive_bars(documents: Documents) -> list[Bar]:
    """Compare a stream with one fit of all rows."""
    ours, whole = (select(documents, "progressive", system=name) for name in ("progressive", "one_shot"))
    if not ours or not whole:
        return []
    first = middle(ours, "first_map") or 0.0
    calm = statistics.quantiles([step for record in ours for step in record["steps"]], n=20)[-1]
    bars = [
        Bar("progressive, map of the first 1,000 rows", seconds(first), "", first, 0.5, kind="seconds"),
        Bar("progressive, p95 of a step of 100 ms", seconds(calm), "", calm, 0.15, kind="seconds"),
    ]
    work = "progressive, complete after all batches, against the fit of all rows"
    bars += ratio(work, middle(ours, "total"), middle(whole, "total"), 1.3, 1.2)
    recall = middle(ours, "neighbor_recall") or 0.0
    bars.append(Bar("progressive, recall of the neighbor graph", f"{recall:.4f}", "", recall, 0.95, kind="score"))
    for name, slack in PROGRESSIVE_SLACK.items():
        one, other = mean_quality(ours, name) or 0.0, mean_quality(whole, name) or 0.0
        title = (QUALITY_NAMES | OTHER_QUALITY_NAMES)[name]
        work = f"progressive, {title}: difference from the fit of all rows"
        bars.append(Bar(work, f"{one:.4f}", f"{other:.4f}", one - other, -slack, 0.0, "difference"))
    small, large = (middle(ours, "inserts", size) for size in ("10000", "100000"))
    bars += ratio("progressive, 100 more rows for 100,000, against for 10,000", large, small, 2.0, None)
    drift = middle(ours, "inserts", "drift")
    if drift is not None:
        work = "progressive, median way of old rows when 1 % arrive, of the extent"
        bars.append(Bar(work, f"{drift:.4f}", "", drift, 0.02, kind="share"))
    return bars


def own_bars(documents: Documents) -> list[Bar]:
    """Return bars that are absolute limits."""
    stages = select(documents, "stages", system="vicinal")
    one_row = {s: middle(select(documents, "transform", system=s), "one_row_median") for s in ("vicinal", "umap-learn")}
    imported = middle(select(documents, "startup", system="vicinal -X importtime"), "wall")
    iris = middle(select(documents, "iris", system="vicinal"), "wall")
    spectral, whole = middle(stages, "stages", "fit_initialize"), middle(stages, "stages", "fit")
    recall = middle(stages, "neighbor_recall")
    bars = []
    if imported is not None:
        bars.append(Bar("import, by -X importtime", seconds(imported), "", imported, 0.3, kind="seconds"))
    if iris is not None:
        bars.append(Bar("iris, fresh process", seconds(iris), "", iris, NO_LIMIT, 1.0, "seconds"))
    if spectral is not None and whole is not None:
        work = "spectral initialization's share of the fit"
        bars.append(Bar(work, seconds(spectral), "", spectral / whole, 0.15, 0.05, "share"))
    if recall is not None:
        work = "recall of the neighbor graph (14 others a row)"
        bars.append(Bar(work, f"{recall:.4f}", "", recall, 0.97, kind="score"))
    if one_row["vicinal"] is not None:
        ours, peer = one_row["vicinal"], one_row["umap-learn"]
        bars.append(Bar("transform of one row", seconds(ours), show(peer, seconds), ours, 0.005, kind="seconds"))
    return bars + memory_bar(documents) + growth_bar(documents)


def show(value: float | None, how: Callable[[float], str]) -> str:
    return "" if value is None else how(value)


def mebibytes(value: float) -> str:
    return f"{value / 2**20:.0f} MiB"


def memory_bar(documents: Documents) -> list[Bar]:
    ours = middle(select(documents, "memory", system="vicinal"), "beyond_input_bytes")
    peer = middle(select(documents, "memory", system="umap-learn", seeded=False), "beyond_input_bytes")
    if ours is None or peer is None:
        return []
    return [Bar("peak memory beyond the input", mebibytes(ours), mebibytes(peer), ours / peer, 1.0, 0.5)]


def growth_bar(documents: Documents) -> list[Bar]:
    base, grown = (middle(select(documents, "growth", case=case), "fit") for case in ("base", "grown"))
    if base is None or grown is None:
        return []
    work = "fit of ten times the rows (pixel-shifted copies), against ours of the rows"
    return [Bar(work, seconds(grown), seconds(base), grown / base, 12.5, 11.0)]


def quality_bars(documents: Documents) -> list[Bar]:
    bars = []
    for name, title in QUALITY_NAMES.items():
        ours, peer = (
            mean_quality(select(documents, "fresh", case="fashion", system=system), name)
            for system in ("vicinal", "umap-learn")
        )
        if ours is not None and peer is not None:
            work, shown = f"fashion, {title}: difference from umap-learn", (f"{ours:.4f}", f"{peer:.4f}")
            bars.append(Bar(work, *shown, ours - peer, -QUALITY_SLACK, 0.0, "difference"))
    for name, limit in DIGITS_LIMITS.items():
        ours, peer = (
            mean_quality(select(documents, "quality", case="digits", system=system), name)
            for system in ("vicinal", "umap-learn")
        )
        if ours is not None:
            work = f"digits, mean over seeds, {OTHER_QUALITY_NAMES[name]}"
            bars.append(Bar(work, f"{ours:.4f}", show(peer, "{:.4f}".format), ours, limit, kind="score"))
    return bars


COMPARED_SUITES = ("optimum_small", "optimum_images", "optimum_shapes")
TEARABLE = ("grid", "swiss roll")  # sheets, which a map can show whole
FIDELITY_NAMES = {
    "spearman": "correlation of distances",
    "continuity_15": "continuity",
    "true_15_in_100": "true 15 in 100",
}
FIDELITY_SLACK, TRUST_SLACK, ORDER_SLACK = 0.005, 0.003, 0.002
SHAPE_MEASURES = (
    ("trustworthiness_15", "trustworthiness", -TRUST_SLACK),
    ("spearman_sheet", "correlation with distances on its sheet", 0.0),
)
SMALL_FITS = {"digits": 0.3, "iris": 0.1}
START_SHARES = {200: (0.15, 0.05), 2000: (0.15, 0.05)}


def mean(records: list[Record], *path: str) -> float | None:
    """Return the mean over records of the number at a path of keys, or None if no record has it."""
    values = [value for record in records if (value := middle([record], *path)) is not None]
    return statistics.fmean(values) if values else None


def cases(documents: Documents, *suites: str) -> list[tuple[str, list[Record], list[Record]]]:
    """Return (data, our records, umap-learn's) for every data set of these suites."""
    names = {(suite, record["case"]): None for suite in suites for record in select(documents, suite)}
    return [
        (case, *(select(documents, suite, case=case, system=system) for system in ("vicinal", "umap-learn")))
        for suite, case in names
    ]


def loss_bars(documents: Documents) -> list[Bar]:
    """Compare J, the expected loss of resting negatives, what is torn, and the seconds of small fits."""
    bars = []
    for case, ours, peer in cases(documents, *COMPARED_SUITES):
        low, high = mean(ours, "loss", "resting"), mean(peer, "loss", "resting")
        if low is not None and high is not None:
            work = f"{case}, loss J, mean over {len(ours)} seeds, against umap-learn's"
            bars.append(Bar(work, f"{low:,.0f}", f"{high:,.0f}", low / high, 1.0, 0.99, "loss"))
        whole, other = mean(ours, "whole_rows"), mean(peer, "whole_rows")
        if whole is not None and other is not None:
            work = f'{case}, rows of class "1" in its largest piece, of {ours[0]["class_rows"]}: difference'
            bars.append(Bar(work, f"{whole:.1f}", f"{other:.1f}", whole - other, 0.0, kind="difference"))
        long, longer = mean(ours, "loss", "long_edges"), mean(peer, "loss", "long_edges")
        if case in TEARABLE and long is not None and longer is not None:
            work = f"{case}, weight of edges longer than 2: less than umap-learn's by"
            bars.append(Bar(work, f"{long:.4f}", f"{longer:.4f}", longer - long, 0.0, kind="difference"))
        seconds_of_fit, limit = middle(ours, "fit"), SMALL_FITS.get(case)
        if seconds_of_fit is not None and limit is not None:
            shown = seconds(seconds_of_fit), show(middle(peer, "fit"), seconds)
            bars.append(Bar(f"{case}, fit alone, warm", *shown, seconds_of_fit, limit, kind="seconds"))
    return bars


def fidelity_bars(documents: Documents) -> list[Bar]:
    """Compare trustworthiness on every shape, other measures as a mean of all data sets and on the worst for us."""
    bars = []
    for case, ours, peer in cases(documents, "optimum_shapes"):
        for name, title, limit in SHAPE_MEASURES:
            bars += [
                difference(f"{case}, {title}", first, second, limit) for first, second in both_means(ours, peer, name)
            ]
    for name, title in FIDELITY_NAMES.items():
        found = [
            (case, first, second)
            for case, ours, peer in cases(documents, *COMPARED_SUITES)
            for first, second in both_means(ours, peer, name)
        ]
        if found:
            means = (statistics.fmean(each[system] for each in found) for system in (1, 2))
            bars.append(difference(f"{title}, mean of {len(found)} data sets", *means, -FIDELITY_SLACK))
            case, first, second = min(found, key=lambda each: each[1] - each[2])
            bars.append(difference(f"{title}, worst of all data ({case})", first, second, -FIDELITY_SLACK))
    return bars


def both_means(ours: list[Record], peer: list[Record], name: str) -> Iterator[tuple[float, float]]:
    """Yield our mean and the peer's, if both measured it."""
    first, second = mean_quality(ours, name), mean_quality(peer, name)
    if first is not None and second is not None:
        yield first, second


def difference(work: str, ours: float, peer: float, limit: float) -> Bar:
    work = f"{work}: difference from umap-learn"
    return Bar(work, f"{ours:.4f}", f"{peer:.4f}", ours - peer, limit, 0.0, "difference")


def order_bars(documents: Documents) -> list[Bar]:
    """Compare maps of ordered rows with those of the same rows shuffled, for each method where it is worst."""
    records = select(documents, "optimum_order")
    bars = []
    for system in dict.fromkeys(record["system"] for record in records):
        found = []
        for case in dict.fromkeys(record["case"] for record in records):
            where = {"system": system, "case": case}
            ordered, shuffled = (
                mean(select(documents, "optimum_order", order=order, **where), "trustworthiness")
                for order in ("in order", "shuffled")
            )
            if ordered is not None and shuffled is not None:
                work = f"{system}, rows in order, trustworthiness: difference from shuffled rows, worst ({case})"
                shown = f"{ordered:.4f}", f"{shuffled:.4f}"
                found.append(Bar(work, *shown, ordered - shuffled, -ORDER_SLACK, kind="difference"))
        bars += sorted(found, key=lambda bar: bar.value)[:1]
    return bars


def start_bars(documents: Documents) -> list[Bar]:
    bars = []
    for clusters, (limit, aim) in START_SHARES.items():
        records = select(documents, "optimum_start", clusters=clusters)
        start, whole = middle(records, "stages", "initialize"), middle(records, "fit")
        if start is not None and whole is not None:
            work = f"start's share of the fit, {records[0]['rows']:,} rows in {clusters:,} clusters"
            bars.append(Bar(work, seconds(start), "", start / whole, limit, aim, "share"))
    return bars


def noise_bars(documents: Documents) -> list[Bar]:
    ours, peer = (select(documents, "optimum_noise", system=system) for system in ("vicinal", "pynndescent"))
    bars = ratio(
        "neighbor graph of noise, warm, against pynndescent",
        *(middle(r, "neighbors") for r in (ours, peer)),
        1.0,
        None,
    )
    first, second = middle(ours, "neighbor_recall"), middle(peer, "neighbor_recall")
    if first is not None and second is not None:
        work = "neighbor graph of noise, recall: difference from pynndescent"
        bars.append(Bar(work, f"{first:.4f}", f"{second:.4f}", first - second, 0.0, kind="difference"))
    return bars


def all_bars(documents: Documents) -> list[Bar]:
    kinds = (
        speed_bars,
        sparse_bars,
        tsne_bars,
        family_bars,
        progressive_bars,
        own_bars,
        quality_bars,
        loss_bars,
        fidelity_bars,
        order_bars,
        start_bars,
        noise_bars,
    )
    return [bar for kind in kinds for bar in kind(documents)]
