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
PACKAGES = "python3,libpython3-dev,libstdc++6"
SMOKE = ROOT / "tests" / "smoke"
PIP = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def check_arm64_wheel() -> str:
    """Build the wheel, install it with its dependencies, run the smoke test and compare the golden maps."""
    require({**ARM64.tools, "mmdebstrap": "mmdebstrap", "cmake": "cmake", "ninja": "ninja-build"})
    unpack_system()
    wheel = build_wheel()
    user = Environment("user")
    user.install_for_arm64(wheel)
    bare = {"PATH": "/nonexistent"}
    checks = run([str(user.python), str(SMOKE / "smoke.py")], bare, Path("/")).splitlines()
    run([sys.executable, str(SMOKE / "contents.py"), str(wheel)])
    digits = run([str(user.python), str(golden.DIGITS_MAP)], bare, Path("/"))
    differing = golden.differences("package", digits, "native")
    if differing:
        raise RuntimeError(f"golden maps of the arm64 wheel differ: {', '.join(differing)}")
    return f"{wheel.name}: {len(checks)} checks of the smoke test, golden maps"


def unpack_system() -> None:
    """Unpack Debian's arm64 Python."""
    if (SYSTEM / "usr" / "bin" / "python3").exists():
        return
    if not Path("/etc/debian_version").exists():
        raise Skipped("needs a Debian system, for its arm64 packages")
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
    shutil.rmtree(SYSTEM, ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    unpack = ["mmdebstrap", "--quiet", "--variant=extract", "--architectures=arm64", f"--include={PACKAGES}"]
    run([*unpack, suite, str(SYSTEM)])


class Environment:
    """A virtual environment of the unpacked Python, whose interpreter is a script that starts it under qemu.

    The script is ``sys.executable``, so Python can start itself. It sets no variable, so Python can start programs of
    this machine, such as CMake.
    """

    def __init__(self, name: str) -> None:
        folder = FOLDER / name
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "bin").mkdir(parents=True)
        self.python = folder / "bin" / "python3"
        qemu = shutil.which("qemu-aarch64-static")
        self.python.write_text(f'#!/bin/sh\nexec {qemu} -L {SYSTEM} -0 "$0" {SYSTEM}/usr/bin/python3 "$@"\n')
        self.python.chmod(0o755)
        (folder / "pyvenv.cfg").write_text(f"home = {SYSTEM}/usr/bin\ninclude-system-site-packages = false\n")
        self.version = run([str(self.python), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).strip()
        self.site = folder / "lib" / f"python{self.version}" / "site-packages"

    def install_for_arm64(self, wheel: Path) -> None:
        """Install a wheel and its dependencies, as wheels for arm64."""
        platforms = [f"--platform={name}_aarch64" for name in ("linux", "manylinux2014", "manylinux_2_28")]
        kind = [*platforms, "--only-binary=:all:", "--implementation=cp", f"--python-version={self.version}"]
        run([*PIP, *kind, "--target", str(self.site), str(wheel)])


def build_wheel() -> Path:
    """Call the build backend in the arm64 Python, so that tags and file names are those of its platform."""
    builder = Environment("builder")
    run([*PIP, "--target", str(builder.site), "scikit-build-core", "nanobind", "hatch-fancy-pypi-readme"])
    dist = FOLDER / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir(parents=True)
    environment = os.environ | {
        "CI": "true",  # the backend then waits longer for the version of CMake
        "CMAKE_GENERATOR": "Ninja",
        "CMAKE_TOOLCHAIN_FILE": str(ROOT / "cmake" / "linux-arm64.cmake"),
        # The headers of Python are in the unpacked system, those of the C library are the cross compiler's own.
        "CXXFLAGS": f"-idirafter {SYSTEM}/usr/include",
    }
    if shutil.which("ccache"):
        environment |= {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}
    program = "import sys; from scikit_build_core.build import build_wheel; build_wheel(sys.argv[1])"
    run([str(builder.python), "-c", program, str(dist)], environment, ROOT)
    (wheel,) = dist.glob("*.whl")
    return wheel
