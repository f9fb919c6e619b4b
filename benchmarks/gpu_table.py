"""The section of the results about a GPU, from the raw JSON of gpu.py."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from release import read_result

# Parts of gpu.py that fit rows: name, what is fitted, and the limits in seconds for rows on the device and on the host.
FITS = {
    "fashion": ("Fashion-MNIST, 70,000 x 784", 0.25, 0.30),
    "mixture-1M-50": ("mixture, 1,000,000 x 50", 1.0, 1.0),
    "mixture-1M-768": ("mixture, 1,000,000 x 768", 1.4, 2.2),
    "mixture-5M-96": ("mixture, 5,000,000 x 96", 5.0, 5.0),
}
STAGES = ("neighbors", "graph", "initialize", "layout")
TRANSFORM_LIMIT, TSNE_LIMIT = 1.5, 3.0
FIRST_LIMITS = {"cached": 3.0, "not cached": 15.0}
LEAST_RECALL = 0.97
# Divergences and losses of two maps of the same graph differ by chance, and so do their shares of neighbors.
LOSS_TOLERANCE, SHARE_TOLERANCE = 1.005, 0.005


def _rows(head: Iterable[str], lines: Iterable[Iterable[str]]) -> list[str]:
    head = list(head)
    table = [head, ["---"] * len(head), *(list(line) for line in lines)]
    return ["| " + " | ".join(line) + " |" for line in table] + [""]


def second(calls: list[Any]) -> Any:
    """Return the second call, or the only one."""
    return calls[:2][-1]


def fit_lines(found: dict[str, Any]) -> list[list[str]]:
    """Return the lines of the table of fits."""
    lines = []
    for name, (work, device_limit, host_limit) in FITS.items():
        part = found.get(name, {})
        if "device" not in part:
            continue
        on_device, on_host = second(part["device"]), second(part["host"])
        lines.append(
            [
                work,
                f"{on_device['seconds']:.2f} ({device_limit:g})",
                f"{on_host['seconds']:.2f} ({host_limit:g})",
                *(f"{on_device[stage]:.2f}" for stage in STAGES),
                f"{part['device'][-1]['recall']:.4f}",
            ]
        )
    return lines


def other_lines(found: dict[str, Any]) -> list[list[str]]:
    """Return the lines of the table of other work: what, seconds, limit."""
    lines = []
    for name, limit in FIRST_LIMITS.items():
        seconds = found.get("first call", {}).get(name)
        if isinstance(seconds, list):
            first, again = seconds[:2]
            bound = f"{again + limit:.1f}" if name == "cached" else f"{limit:g}"
            lines.append([f"first fit of a process, Fashion-MNIST, kernels {name}", f"{first:.1f}", bound])
    transform = found.get("transform-1M-50", {}).get("seconds")
    if transform:
        what = "transform of 1,000,000 rows on a model of 1,000,000 x 50"
        lines.append([what, f"{second(transform):.2f}", f"{TRANSFORM_LIMIT:g}"])
    tsne = found.get("t-SNE", {})
    if "cuda" in tsne and "cpu" in tsne:
        divergences = f"{tsne['cuda']['divergence']:.4f}; CPU: {tsne['cpu']['divergence']:.4f}"
        what = f"t-SNE of Fashion-MNIST, 750 iterations (divergence {divergences})"
        lines.append([what, f"{second(tsne['cuda']['seconds']):.2f}", f"{TSNE_LIMIT:g}"])
    return lines


MEASURES = {"recall@15": "neighbor_recall", "true 15 in 100": "neighbor_recall_within"}


def mean_of(maps: list[dict[str, Any]], device: str, name: str) -> float:
    """Return the mean of a measure over the maps of a processor."""
    values = [float(one[name]) for one in maps if one["device"] == device]
    return sum(values) / len(values)


def quality_lines(found: dict[str, Any]) -> list[list[str]]:
    """Return the lines of the table of the maps of both processors: means over the seeds."""
    maps = found.get("quality", {}).get("maps")
    if not maps:
        return []
    return [
        [
            kind,
            *(f"{mean_of(maps, device, name):.4f}" for name in MEASURES.values()),
            f"{mean_of(maps, device, 'J'):,.0f}",
            f"{mean_of(maps, device, 'far points'):g}",
        ]
        for device, kind in {"cuda": "GPU", "cpu": "CPU, the same graphs"}.items()
    ]


def streamed_line(found: dict[str, Any]) -> str:
    """Return a sentence about rows that are larger than the memory that may be used, or nothing."""
    part = found.get("streamed-2M-512", {})
    if "limited" not in part:
        return ""
    limited, unlimited = part["limited"], part["unlimited"]
    return (
        f"Rows larger than the memory: {part['rows'][0]:,} x {part['rows'][1]} rows of the host "
        f"({part['bytes of rows'] / 2**30:.1f} GiB) with a limit of {part['limit'] / 2**30:g} GiB are fitted in "
        f"{second(limited['fits'])['seconds']:.1f} s with a neighbor recall of {limited['recall']:.4f}, and at most "
        f"{limited['peak bytes'] / 2**30:.2f} GiB are allocated; without the limit "
        f"{second(unlimited['fits'])['seconds']:.1f} s, {unlimited['recall']:.4f} and "
        f"{unlimited['peak bytes'] / 2**30:.1f} GiB."
    )


def report_line(found: dict[str, Any]) -> str:
    """Return a sentence about the quality report on both processors, or nothing."""
    part = found.get("quality report", {})
    if "cuda" not in part or "cpu" not in part:
        return ""
    names = ("trustworthiness", "continuity", "neighbor_recall", "neighbor_recall_within", "distance_correlation")
    apart = max(abs(part["cuda"][name] - part["cpu"][name]) for name in names)
    return (
        f"`quality.report` of Fashion-MNIST: {second(part['cuda']['seconds']):.2f} s on the GPU, "
        f"{part['cpu']['seconds'][0]:.1f} s on the CPU; the measures differ by at most {apart:.1g}."
    )


def _bar(what: str, value: float, bar: str, met: bool) -> dict[str, Any]:
    return {"what": what, "value": round(value, 4), "bar": bar, "met": bool(met)}


def bars(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every bar: what it is about, the value, the bar, and whether it is met."""
    out = []
    for name, (work, *limits) in FITS.items():
        for place, limit in zip(("device", "host"), limits, strict=True):
            if place in found.get(name, {}):
                calls = found[name][place]
                seconds, recall = second(calls)["seconds"], calls[-1]["recall"]
                out.append(_bar(f"{work}, rows on the {place}", seconds, f"<= {limit:g} s", seconds <= limit))
                out.append(_bar(f"{work}, neighbor recall", recall, f">= {LEAST_RECALL}", recall >= LEAST_RECALL))
    for name, limit in FIRST_LIMITS.items():
        seconds = found.get("first call", {}).get(name)
        if isinstance(seconds, list):
            more = seconds[0] - seconds[1] if name == "cached" else seconds[0]
            what = "more than the second, kernels cached" if name == "cached" else "kernels not cached"
            out.append(_bar(f"first fit of a process, {what}", more, f"<= {limit:g} s", more <= limit))
    if "seconds" in found.get("transform-1M-50", {}):
        seconds = second(found["transform-1M-50"]["seconds"])
        out.append(
            _bar("transform of 1,000,000 rows", seconds, f"<= {TRANSFORM_LIMIT:g} s", seconds <= TRANSFORM_LIMIT)
        )
    tsne = found.get("t-SNE", {})
    if "cuda" in tsne and "cpu" in tsne:
        seconds, here, there = (second(tsne["cuda"]["seconds"]), tsne["cpu"]["divergence"], tsne["cuda"]["divergence"])
        out.append(_bar("t-SNE of Fashion-MNIST", seconds, f"<= {TSNE_LIMIT:g} s", seconds <= TSNE_LIMIT))
        out.append(
            _bar(
                "t-SNE, divergence", there, f"<= {LOSS_TOLERANCE:g} x CPU's {here:.4f}", there <= LOSS_TOLERANCE * here
            )
        )
    if "bits" in found:
        equal = all_equal(found["bits"])
        out.append(_bar("bits of the CPU", float(equal), "all", equal))
    maps = found.get("quality", {}).get("maps")
    if maps:
        for what, name in MEASURES.items():
            here, there = (mean_of(maps, device, name) for device in ("cpu", "cuda"))
            out.append(
                _bar(f"map, {what}", there, f">= CPU's {here:.4f} - {SHARE_TOLERANCE}", there >= here - SHARE_TOLERANCE)
            )
        here, there = (mean_of(maps, device, "J") for device in ("cpu", "cuda"))
        out.append(_bar("map, J", there, f"<= {LOSS_TOLERANCE:g} x CPU's {here:.0f}", there <= LOSS_TOLERANCE * here))
        far = sum(one["far points"] for one in maps if one["device"] == "cuda")
        out.append(_bar("map, points far from all neighbors", far, "0", far == 0))
    limited = found.get("streamed-2M-512", {}).get("limited")
    if limited:
        limit, same = found["streamed-2M-512"]["limit"], limited["same twice"]
        out.append(_bar("rows larger than the memory, two fits equal", float(same), "equal", same))
        out.append(
            _bar(
                "rows larger than the memory, recall",
                limited["recall"],
                f">= {LEAST_RECALL}",
                limited["recall"] >= LEAST_RECALL,
            )
        )
        out.append(
            _bar(
                "rows larger than the memory, peak GiB",
                limited["peak bytes"] / 2**30,
                f"<= {limit / 2**30:g}",
                limited["peak bytes"] <= limit,
            )
        )
    return out


def all_equal(value: Any) -> bool:
    """Tell whether all comparisons of bits that a part holds were equal; words and seconds are no comparisons."""
    if isinstance(value, bool):
        return value
    if isinstance(value, dict):
        return all(all_equal(one) for one in value.values())
    if isinstance(value, list):
        return all(all_equal(one) for one in value)
    return True


def gpu_section(results: Path) -> list[str]:
    """Return the section, or nothing if there are no results."""
    found = read_result(results / "gpu.json")
    if found is None:
        return []
    machine = found["machine"]
    lines = [
        "## On a GPU",
        "",
        f"{machine['card']}, driver {machine.get('driver version', machine['driver'])}, CuPy {machine['cupy']}, Python "
        f"{machine['python']}. Seconds of the second fit of a process, and in parentheses what is allowed; "
        "rows in the memory of the GPU or of the host. Raw figures: `results/gpu.json`.",
        "",
        *_rows(["UMAP of", "rows on the GPU", "rows on the host", *STAGES, "neighbor recall"], fit_lines(found)),
        *_rows(["other work", "seconds", "allowed"], other_lines(found)),
    ]
    if quality_lines(found):
        head = ["Fashion-MNIST on", *MEASURES, "J", "points far from all neighbors"]
        lines += _rows(head, quality_lines(found))
    lines += [line for sentence in (streamed_line(found), report_line(found)) if sentence for line in (sentence, "")]
    if found.get("bars"):
        missed = [bar["what"] for bar in found["bars"] if not bar["met"]]
        said = f" Not met: {', '.join(missed)}." if missed else ""
        lines += [f"{len(found['bars']) - len(missed)} of {len(found['bars'])} bars are met.{said}", ""]
    if "bits" in found:
        kinds = ", ".join(name for name in found["bits"] if name != "libraries")
        said = "have the bits of the CPU" if all_equal(found["bits"]) else "DO NOT ALL have the bits of the CPU"
        lines += [f"Compared bit by bit, and {said}: {kinds}.", ""]
    return lines
