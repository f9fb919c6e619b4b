"""Describe the machine and the package versions of a measurement."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from driver import Driver
from release import measured_code, read_result
from systems import SYSTEMS

LIST_VERSIONS = """
import importlib.metadata, json, sys
found = {}
for package in sys.argv[1:]:
    try:
        found[package] = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


def describe_machine() -> dict[str, str | int | float]:
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "vector_extensions": vector_extensions(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def cpu_information() -> str:
    file = Path("/proc/cpuinfo")
    return file.read_text() if file.exists() else ""


def cpu_model() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", cpu_information(), re.MULTILINE)
    return found.group(1) if found else platform.processor() or "unknown"


def vector_extensions() -> str:
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", cpu_information(), re.MULTILINE)
    known = ("sse4_2", "avx2", "fma", "avx512f", "asimd", "sve")
    return " ".join(flag for flag in known if flags and flag in flags.group(1).split())


def installed_versions(interpreters: dict[str, Path]) -> dict[str, dict[str, str]]:
    """Return the package versions by environment."""
    versions = {}
    for environment, interpreter in interpreters.items():
        packages = sorted({p for s in SYSTEMS.values() if s.environment == environment for p in s.packages})
        listed = subprocess.run(
            [interpreter, "-c", LIST_VERSIONS, *packages], capture_output=True, text=True, check=True
        )
        versions[environment] = json.loads(listed.stdout)
    return versions


def describe_run(
    name: str, suite: Callable[[Driver], Any], driver: Driver, records: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return what is written about a suite: its description, where it ran, and its records."""
    versions = installed_versions(driver.interpreters)
    return {
        "suite": name,
        "description": (suite.__doc__ or "").strip(),
        "code": measured_code(versions["own"]["vicinal"]),
        "machine": describe_machine(),
        "versions": versions,
        "repeats": driver.repeats,
        "size": driver.size,
        "records": records,
    }


def save_result(file: Path, records: list[dict[str, Any]]) -> str:
    """Write the result of a program that is no suite, and return its text."""
    document = {"suite": file.stem, "code": measured_code(), "machine": describe_machine(), "records": records}
    text = json.dumps(document, indent=1) + "\n"
    file.write_text(text)
    return text


def save_cases(file: Path, records: list[dict[str, Any]]) -> str:
    """Replace the records of the same cases. Records of other cases stay if this release measured them."""
    known = (read_result(file) or {"records": []})["records"]
    cases = {record["case"] for record in records}
    return save_result(file, [one for one in known if one["case"] not in cases] + records)
