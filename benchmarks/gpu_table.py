"""The section of the results about a GPU, from the raw JSON of gpu.py."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

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


def quality_lines(found: dict[str, Any]) -> list[list[str]]:
    """Return the lines of the table of the maps of both processors."""
    kinds = {"cuda": "GPU", "cpu": "CPU"}
    return [
        [
            kinds[device],
            f"{part['neighbor_recall']:.4f}",
            f"{part['neighbor_recall_within']:.4f}",
            f"{part['J']:,.0f}",
            str(part["far points"]),
        ]
        for device, part in found.get("quality", {}).items()
        if device in kinds
    ]


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
    file = results / "gpu.json"
    if not file.is_file():
        return []
    found = json.loads(file.read_text())
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
        head = ["Fashion-MNIST on", "recall@15", "true 15 in 100", "J", "points far from all neighbors"]
        lines += _rows(head, quality_lines(found))
    if "bits" in found:
        kinds = ", ".join(name for name in found["bits"] if name != "libraries")
        said = "have the bits of the CPU" if all_equal(found["bits"]) else "DO NOT ALL have the bits of the CPU"
        lines += [f"Compared bit by bit, and {said}: {kinds}.", ""]
    return lines
