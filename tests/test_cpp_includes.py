"""Includes between the folders of cpp/ go one way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CPP = Path(__file__).parents[1] / "cpp"
# A folder may include itself and the folders before it.
STAGES = ["base", "neighbors", "graph", "initialize", "layout", "losses", "nvrtc", "cuda", "bindings", "wasm"]
GENERATED = {"base/level_list.hpp"}  # written by CMake
HOST_TESTS = '#include "host_launch.hpp"'  # of tests/gpu: kernels compiled for the host


def wrong_includes(source: str, folder: str) -> list[str]:
    """Return the includes of a file in ``folder`` that lead to a later or to no folder, or to no file."""
    allowed = STAGES[: STAGES.index(folder) + 1]
    wrong = []
    for line in source.splitlines():
        if not re.match(r"\s*#\s*include\b", line):
            continue
        if re.fullmatch(r"\s*#\s*include <[\w./]+>.*", line) or line == HOST_TESTS:
            continue
        match = re.fullmatch(r'\s*#\s*include "(\w+)/([\w.]+)".*', line)
        path = f"{match[1]}/{match[2]}" if match else ""
        if match is None or match[1] not in allowed or not (path in GENERATED or (CPP / path).is_file()):
            wrong.append(line.strip())
    return wrong


def test_every_file_lies_in_a_stage() -> None:
    files = [path.relative_to(CPP) for path in CPP.rglob("*") if path.is_file()]
    assert len(files) > 50
    assert [str(path) for path in files if len(path.parts) != 2 or path.parts[0] not in STAGES] == []


def test_includes_lead_to_the_same_or_an_earlier_stage() -> None:
    wrong = {
        str(path.relative_to(CPP)): found
        for path in sorted([*CPP.glob("*/*.[ch]pp"), *CPP.glob("*/*.cu"), *CPP.glob("nvrtc/*")])
        if (found := wrong_includes(path.read_text(), path.parent.name))
    }
    assert wrong == {}


@pytest.mark.parametrize(
    "line",
    [
        '#include "layout/force.hpp"',  # a later stage
        '  #  include "bindings/binding.hpp"  // a comment',
        '#include "utils/strings.hpp"',  # no stage
        '#include "types.hpp"',  # not written from the root of cpp/
        '#include "../base/types.hpp"',
        '#include "base/no_such_file.hpp"',
        "#include HEADER",
    ],
)
def test_wrong_includes_are_found(line: str) -> None:
    source = f'#include "base/types.hpp"\n{line}\n#include <vector>\n'
    assert wrong_includes(source, "graph") == [line.strip()]


def test_includes_of_earlier_stages_are_allowed() -> None:
    source = '#include "base/level_list.hpp"\n#include "graph/symmetrize.hpp"\n#include "neighbors/join.hpp"\n'
    assert wrong_includes(source, "graph") == []
