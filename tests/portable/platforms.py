"""Platforms for which the core is compiled here, with the commands that compile and run it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "portable"
TESTS = sorted(path.stem for path in (ROOT / "tests" / "cpp").glob("*_tests.cpp"))


class Skipped(Exception):
    """Say why a part cannot run on this machine."""


@dataclass(frozen=True)
class Platform:
    """A target of the compiler.

    ``tools`` maps commands to the package that has them; ``runner`` is the command that runs a program of the platform,
    None if nothing here can; ``levels`` are the instruction-set levels to build, lowest first.
    """

    name: str
    toolchain: str | None = None
    tools: dict[str, str] = field(default_factory=dict)
    runner: tuple[str, ...] | None = ()
    levels: tuple[str, ...] = ("native",)
    suffix: str = ""

    @property
    def folder(self) -> Path:
        """Return the folder of the build."""
        return BUILD / self.name

    def build(self, *targets: str) -> None:
        """Compile the core and the named programs."""
        require({"cmake": "cmake", "ninja": "ninja-build", **self.tools})
        environment = dict(os.environ)
        options = [f"-DVICINAL_LEVELS={';'.join(self.levels)}"] if "native" not in self.levels else []
        if self.toolchain is not None:
            options.append(f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'cmake' / self.toolchain}")
        if shutil.which("ccache"):
            options.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
            environment |= {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}
        if self.toolchain == "macos-zig.cmake":
            environment["VICINAL_ZIG_TOOLS"] = str(zig_tools())
        configure = ["cmake", "-S", str(ROOT), "-B", str(self.folder), "-G", "Ninja", *options]
        run([*configure, "-DVICINAL_MODULE=OFF", "-DVICINAL_CORE_TESTS=ON"], environment)
        run(["cmake", "--build", str(self.folder), "--target", *targets], environment)

    def output(self, program: str, level: str | None = None) -> str:
        """Run a program of the platform and return what it prints."""
        assert self.runner is not None
        # Wine starts slowly and prints its own messages; they say nothing about the program.
        environment = os.environ | {"WINEDEBUG": "-all", "WINEPREFIX": str(BUILD / "wine")}
        if level not in (None, "native"):
            environment["VICINAL_LEVEL"] = str(level)
        return run([*self.runner, str(self.folder / f"{program}{self.suffix}")], environment)


X86_64 = Platform("x86-64", levels=("v2", "v3", "v4"))
ARM64 = Platform(
    "arm64",
    toolchain="linux-arm64.cmake",
    tools={"aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu", "qemu-aarch64-static": "qemu-user-static"},
    runner=("qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"),
)
WINE = shutil.which("wine64") or shutil.which("wine64", path="/usr/lib/wine") or "wine64"
WINDOWS = Platform(
    "windows",
    toolchain="windows-mingw.cmake",
    tools={"x86_64-w64-mingw32-g++-posix": "g++-mingw-w64-x86-64-posix", WINE: "wine64"},
    runner=(WINE,),
    levels=("v2", "v3"),
    suffix=".exe",
)
MACOS = Platform("macos", toolchain="macos-zig.cmake", runner=None)


def require(tools: dict[str, str]) -> None:
    """Raise Skipped if a command is missing, naming the package that has it."""
    missing = {tool: package for tool, package in tools.items() if shutil.which(tool) is None}
    if missing:
        named = ", ".join(f"{Path(tool).name} (package {package})" for tool, package in missing.items())
        raise Skipped(f"not installed: {named}")


def run(command: list[str], environment: dict[str, str] | None = None, folder: Path | None = None) -> str:
    """Run a command and return its output; raise RuntimeError with the end of both streams if it fails."""
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
        raise RuntimeError(f"{' '.join(command)} returned {done.returncode}:\n{said}")
    return done.stdout


def zig_tools() -> Path:
    """Write commands for CMake that call the ziglang package, and return their folder."""
    if subprocess.run([sys.executable, "-m", "ziglang", "version"], capture_output=True, check=False).returncode != 0:
        raise Skipped(f"not installed: the Python package ziglang, for {sys.executable}")
    folder = BUILD / "zig"
    folder.mkdir(parents=True, exist_ok=True)
    for name, arguments in {"c++": "c++ -target aarch64-macos", "ar": "ar", "ranlib": "ranlib"}.items():
        path = folder / f"zig-{name}"
        path.write_text(f'#!/bin/sh\nexec {sys.executable} -m ziglang {arguments} "$@"\n')
        path.chmod(0o755)
    return folder
