"""Print the oldest versions of the packages that pyproject.toml admits, as constraints for pip.

``python tests/portable/oldest.py EXTRA...`` prints a line "name==minimum" for every requirement of the package and of
the extras. What these packages need themselves is left to pip.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
MINIMUM = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,]+\])?>=(?P<version>[\w.]+)(?:\s*;.*)?")
OTHER_EXTRAS = re.compile(r"vicinal\[[\w,]+\]")


def minimums(project: dict[str, object], extras: list[str]) -> list[str]:
    """Return the constraints of the requirements of a project and of some of its extras.

    Raise ValueError for a requirement without a minimum: it would be tested with any version.
    """
    optional = project["optional-dependencies"]
    assert isinstance(optional, dict)
    required = [*project["dependencies"], *(line for extra in extras for line in optional[extra])]  # type: ignore[misc]
    constraints = []
    for requirement in required:
        found = MINIMUM.fullmatch(requirement)
        if found is not None:
            constraints.append(f"{found['name']}=={found['version']}")
        elif "==" not in requirement and not OTHER_EXTRAS.fullmatch(requirement):
            raise ValueError(f"{requirement!r} has no minimum")
    return sorted(set(constraints))


if __name__ == "__main__":
    print("\n".join(minimums(tomllib.loads(PYPROJECT.read_text())["project"], sys.argv[1:])))
