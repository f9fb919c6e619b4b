"""Check vicinal on the platforms that this machine can compile for and emulate.

``python tests/portable/run.py [PART...]`` runs the named parts, or all, and prints one line for each: passed, failed or
skipped with the reason. ``--write-golden`` writes ``golden_maps.json`` again instead.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable

import golden
from arm64_wheel import check_arm64_wheel
from platforms import ARM64, MACOS, TESTS, WINDOWS, X86_64, Platform, Skipped, run


def check_golden(platform: Platform, level: str) -> None:
    """Raise RuntimeError if a digest that is promised for the level differs."""
    differing = golden.differences("core", platform.output("golden_maps", level), level)
    if differing:
        raise RuntimeError(
            f"golden maps differ on {platform.name} {level}: {', '.join(differing)}\n"
            "If x86-64 differs too, results have changed: if that is intended, run `make golden`."
        )


def available_levels(platform: Platform) -> list[str]:
    """Return the levels of a build that this processor supports."""
    if platform.levels == ("native",):
        return ["native"]
    names = {"v2": "sse4_2", "v3": "avx2", "v4": "avx512bw"}
    with open("/proc/cpuinfo") as file:
        flags = next((line.split() for line in file if line.startswith("flags")), [])
    return [level for level in platform.levels if names[level] in flags]


def check_x86_64() -> str:
    """Compare the golden maps at every level; `make assertions` runs the C++ tests on this platform."""
    X86_64.build("golden_maps")
    levels = available_levels(X86_64)
    for level in levels:
        check_golden(X86_64, level)
    return f"golden maps at {', '.join(levels)}"


def check_emulated(platform: Platform) -> str:
    """Run the C++ tests and compare the golden maps under an emulator."""
    platform.build(*TESTS, "golden_maps")
    counts = [platform.output(tests).splitlines()[-1].split()[0] for tests in TESTS]
    levels = available_levels(platform)
    for level in levels:
        check_golden(platform, level)
    return f"{sum(map(int, counts))} C++ tests in {len(TESTS)} programs, golden maps at {', '.join(levels)}"


def check_macos() -> str:
    """Compile and link the core and its tests; nothing here can run them."""
    MACOS.build(*TESTS, "golden_maps")
    return f"{len(TESTS)} programs compiled and linked with libc++; not run"


PARTS: dict[str, Callable[[], str]] = {
    "x86-64": check_x86_64,
    "arm64": lambda: check_emulated(ARM64),
    "arm64-wheel": check_arm64_wheel,
    "windows": lambda: check_emulated(WINDOWS),
    "macos": check_macos,
}


def write_golden() -> None:
    """Write the golden file from this machine's best level, with the vicinal of this interpreter."""
    X86_64.build("golden_maps")
    core = golden.digests(X86_64.output("golden_maps", available_levels(X86_64)[-1]))
    package = golden.digests(run([sys.executable, str(golden.DIGITS_MAP)], dict(os.environ)))
    golden.write(core, package)
    print(f"{golden.FILE}: {len(core)} digests of the core, {len(package)} of the package")


def main() -> int:
    """Run the parts and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--write-golden", action="store_true", help="write golden_maps.json again")
    options = parser.parse_args()
    if options.write_golden:
        write_golden()
        return 0
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name in options.parts or PARTS:
        start = time.perf_counter()
        try:
            outcome, said = "passed", PARTS[name]()
        except Skipped as reason:
            outcome, said = "skipped", str(reason)
        except RuntimeError as error:
            outcome, said = "failed", str(error)
        counts[outcome] += 1
        print(f"{name} {outcome} after {time.perf_counter() - start:.0f} s: {said}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
