"""An arm64 wheel: built by Debian's arm64 Python under qemu with a cross compiler, installed and tried there."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path

import golden
from platforms import ARM64, BUILD, ROOT, Skipped, require, run

FOLDER = BUILD / "arm64-wheel"
SYSTEM = FOLDER / "root"  # Debian's packages, unpacked, not installed
TOOLS = FOLDER / "tools"  # the build backend
PYTHON = FOLDER / "python3"
PACKAGES = "python3,libpython3-dev"
SMOKE = ROOT / "tests" / "smoke"


def check_arm64_wheel() -> str:
    """Build the wheel, install it with its dependencies, run the smoke test and compare the golden maps."""
    require({**ARM64.tools, "mmdebstrap": "mmdebstrap", "cmake": "cmake", "ninja": "ninja-build"})
    unpack_system()
    version = run([str(PYTHON), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).strip()
    wheel = build_wheel()
    site = install(wheel, version)
    bare = {"PATH": "/nonexistent", "HOME": os.environ.get("HOME", "/"), "VICINAL_SITE": str(site)}
    checks = run([str(PYTHON), str(SMOKE / "smoke.py")], bare, Path("/")).splitlines()
    run([sys.executable, str(SMOKE / "contents.py"), str(wheel)])
    differing = golden.differences("package", run([str(PYTHON), str(golden.DIGITS_MAP)], bare, Path("/")), "native")
    if differing:
        raise RuntimeError(f"golden maps of the arm64 wheel differ: {', '.join(differing)}")
    return f"{wheel.name}: {len(checks)} checks of the smoke test, golden maps"


def unpack_system() -> None:
    """Unpack Debian's arm64 Python, and write a command that runs it."""
    if not (SYSTEM / "usr" / "bin" / "python3").exists():
        if not Path("/etc/debian_version").exists():
            raise Skipped("needs a Debian system, for its arm64 packages")
        suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
        shutil.rmtree(SYSTEM, ignore_errors=True)
        FOLDER.mkdir(parents=True, exist_ok=True)
        unpack = ["mmdebstrap", "--quiet", "--variant=extract", "--architectures=arm64", f"--include={PACKAGES}"]
        run([*unpack, suite, str(SYSTEM)])
    # sys.executable is this script, so that Python can start itself; the kernel starts x86-64 programs as usual.
    qemu = shutil.which("qemu-aarch64-static")
    PYTHON.write_text(
        f'#!/bin/sh\nexec {qemu} -L {SYSTEM} -0 "$0" -E PYTHONHOME={SYSTEM}/usr '
        f'-E PYTHONPATH="${{VICINAL_SITE:-{FOLDER}/site-packages}}" {SYSTEM}/usr/bin/python3 "$@"\n'
    )
    PYTHON.chmod(0o755)


def build_wheel() -> Path:
    """Call the build backend in the arm64 Python, so that tags and file names are those of its platform."""
    backend = ["scikit-build-core", "nanobind"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    run([*pip, "--target", str(TOOLS), *backend])
    dist = FOLDER / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir(parents=True)
    environment = os.environ | {
        "VICINAL_SITE": str(TOOLS),
        "CMAKE_GENERATOR": "Ninja",
        "CMAKE_TOOLCHAIN_FILE": str(ROOT / "cmake" / "linux-arm64.cmake"),
        # The headers of Python are in the unpacked system, those of the C library are the cross compiler's own.
        "CXXFLAGS": f"-idirafter {SYSTEM}/usr/include",
    }
    if shutil.which("ccache"):
        environment |= {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}
    program = "import sys; from scikit_build_core.build import build_wheel; build_wheel(sys.argv[1])"
    run([str(PYTHON), "-c", program, str(dist)], environment, ROOT)
    (wheel,) = dist.glob("*.whl")
    return wheel


def install(wheel: Path, version: str) -> Path:
    """Install the wheel and its dependencies, as wheels for arm64, into a folder."""
    site = FOLDER / "site-packages"
    shutil.rmtree(site, ignore_errors=True)
    platforms = [f"--platform={name}_aarch64" for name in ("linux", "manylinux2014", "manylinux_2_28")]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
    run([*pip, *platforms, "--implementation=cp", f"--python-version={version}", "--target", str(site), str(wheel)])
    return site
