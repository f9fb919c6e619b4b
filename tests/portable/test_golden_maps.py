"""Golden maps: this machine computes the digests of the file at every level, and differences are found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from portable import golden, platforms

from vicinal.backends import cpu


@pytest.mark.parametrize("level", cpu.available_levels())
def test_package_computes_the_golden_maps_at_every_level(level: str, child_environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, str(golden.DIGITS_MAP)],
        env=child_environment | {"VICINAL_LEVEL": level},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    differing = golden.differences("package", done.stdout, level)
    assert differing == [], golden.CHANGED


def lines(table: dict[str, str]) -> str:
    return "".join(f"{name}: {digest}\n" for name, digest in table.items())


def test_changed_missing_and_unknown_lines_are_differences() -> None:
    core = golden.expected("core")
    assert len(core) > 40
    first, second, *_ = core
    assert golden.differences("core", lines(core), "v3") == []
    assert golden.differences("core", lines(core | {first: "0"}), "v3") == [first]
    without = {name: digest for name, digest in core.items() if name != second}
    assert golden.differences("core", lines(without), "native") == [second]
    assert golden.differences("core", lines(core | {"other": "0"}), "v3") == ["other"]


def test_levels_without_fused_multiply_add_promise_less() -> None:
    core = golden.expected("core")
    fused = [name for name in core if name.startswith(golden.FUSED_ONLY)]
    assert fused
    changed = core | dict.fromkeys(fused, "0")
    assert golden.differences("core", lines(changed), "v2") == []
    assert golden.differences("core", lines(changed), "v4") == fused
    layouts = [name for name in core if name.startswith("layout ")]
    assert golden.differences("core", lines(core | dict.fromkeys(layouts, "0")), "v2") == layouts


def test_check_of_a_program_returns_whether_it_agrees(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(golden, "FILE", tmp_path / "golden.json")
    golden.write({"a": "1"}, {})
    assert golden.check("core", [sys.executable, "-c", "print('a: 1')"], "v3") == 0
    assert golden.check("core", [sys.executable, "-c", "print('a: 2')"], "v3") == 1
    first, second = capfd.readouterr().out.splitlines()
    assert first == "golden maps at v3: the same bits"
    assert second == f"golden maps at v3: a differ; {golden.CHANGED}"


def test_missing_tool_is_a_reason_to_skip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        platforms.Skipped, match=r"cmake \(package cmake\).*aarch64-linux-gnu-g\+\+ \(package g\+\+-aar"
    ):
        platforms.ARM64.build("golden_maps")


def test_failing_program_is_an_error_with_its_output() -> None:
    with pytest.raises(RuntimeError, match=r"returned 3:\nsaid"):
        platforms.run([sys.executable, "-c", "import sys; print('said'); sys.exit(3)"], dict(os.environ))


def test_parts_without_tools_are_skipped_and_reported(tmp_path: Path, child_environment: dict[str, Any]) -> None:
    program = Path(platforms.__file__).with_name("run.py")
    command = [sys.executable, str(program), "arm64", "windows"]
    done = subprocess.run(
        command, env=child_environment | {"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    first, second, last = done.stdout.splitlines()
    assert first.startswith("arm64 skipped after 0 s: not installed: cmake (package cmake)")
    assert "x86_64-w64-mingw32-g++-posix (package g++-mingw-w64-x86-64-posix)" in second
    assert last == "0 passed, 0 failed, 2 skipped"
