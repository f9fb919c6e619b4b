"""Write the SBOM of a wheel (CycloneDX): ``python sbom.py NANOBIND_VERSION OUT``; CMake runs this.

The facts are in pyproject.toml, licenses/components.toml and web/package-lock.json. Equal facts give equal bytes.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = "vicinal/viewer/static"


def compiled_in(nanobind: str) -> dict[str, dict[str, str]]:
    """Return the components of licenses/components.toml, with the version of nanobind that compiles the core."""
    components = tomllib.loads((ROOT / "licenses" / "components.toml").read_text())
    components["nanobind"]["version"] = nanobind
    return components


def bundled_packages() -> dict[str, dict[str, str]]:
    """Return the npm packages that are part of the pages: those that are not only tools of the build."""
    packages = json.loads((ROOT / "web" / "package-lock.json").read_text())["packages"]
    names = {path.rpartition("node_modules/")[2]: entry for path, entry in packages.items() if path}
    return {
        name: {"version": entry["version"], "license": entry["license"], "purl": f"pkg:npm/{name}", "inside": PAGES}
        for name, entry in names.items()
        if not entry.get("dev")
    }


def described(name: str, facts: dict[str, str]) -> dict[str, Any]:
    """Return a component in the form of CycloneDX."""
    version = {"version": facts["version"]} if "version" in facts else {}
    return {
        "type": "library",
        "bom-ref": name,
        "name": name,
        **version,
        "licenses": [{"expression": facts["license"]}],
        "purl": "@".join((facts["purl"], *version.values())),
        "evidence": {"occurrences": [{"location": facts["inside"]}]},
    }


def bill_of_materials(nanobind: str) -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    components = compiled_in(nanobind) | bundled_packages()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": name,
                "name": name,
                "version": version,
                "licenses": [{"expression": project["license"]}],
                "purl": f"pkg:pypi/{name}@{version}",
            }
        },
        "components": [described(name, facts) for name, facts in components.items()],
        "dependencies": [{"ref": name, "dependsOn": list(components)}],
    }


if __name__ == "__main__":
    _, nanobind, out = sys.argv
    Path(out).write_text(json.dumps(bill_of_materials(nanobind), indent=2) + "\n")
