"""Golden maps: digests of fixed data that are the same on every platform.

``golden_maps.json`` has two parts, each a table of names and digests:

- ``core``: printed by the C++ program ``golden_maps`` (tests/cpp/golden_maps.cpp), which runs wherever the core does;
- ``package``: printed by ``digits_map.py``, which runs wherever the package is installed.

``make golden`` writes the file again, after a change that is meant to change results. ``python golden.py`` compares
an installed package with its part, ``python golden.py PROGRAM LEVEL`` the C++ program of a build.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FILE = Path(__file__).with_name("golden_maps.json")
DIGITS_MAP = Path(__file__).with_name("digits_map.py")
# Levels without fused multiply-add round distances differently, unless all sums are exact, as those of integers.
WITHOUT_FUSED = ("v2",)
FUSED_ONLY = ("reals ", "wide reals ")


def digests(output: str) -> dict[str, str]:
    """Return the digests of a program's lines ``name: digest``."""
    lines = [line.rpartition(": ") for line in output.splitlines() if line]
    return {name: digest for name, _, digest in lines}


def expected(part: str) -> dict[str, str]:
    """Return the digests of one part of the file."""
    table: dict[str, str] = json.loads(FILE.read_text())[part]
    return table


def write(core: dict[str, str], package: dict[str, str]) -> None:
    """Replace the file."""
    FILE.write_text(json.dumps({"core": core, "package": package}, indent=1) + "\n")


def differences(part: str, output: str, level: str) -> list[str]:
    """Return the names whose digests are missing or not the expected ones, among those promised for the level."""
    found, table = digests(output), expected(part)
    promised = [name for name in table if not (level in WITHOUT_FUSED and name.startswith(FUSED_ONLY))]
    return [name for name in promised if found.get(name) != table[name]] + [name for name in found if name not in table]


CHANGED = "results have changed: if that is intended, run `make golden` and say so in CHANGELOG.md"


def check(part: str, command: list[str], level: str) -> int:
    """Compare the output of a command with a part of the file, and return the exit status."""
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    differing = differences(part, output, level)
    print(f"golden maps at {level}: {', '.join(differing) + ' differ; ' + CHANGED if differing else 'the same bits'}")
    return 1 if differing else 0


def main(arguments: list[str]) -> int:
    """Check the program and level in the arguments, or the vicinal of this interpreter at its best level."""
    if arguments:
        program, level = arguments
        return check("core", [program], level)
    from vicinal.backends import cpu

    return check("package", [sys.executable, str(DIGITS_MAP)], cpu.active_level())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
