"""Public names, signatures, options and file formats are those of the recorded list: docs/guides/stability.md."""

from __future__ import annotations

import difflib
import re

import pytest
from docs.public_names import HOW, NEEDED, RECORD, arguments, listed


@pytest.fixture(scope="module")
def present() -> str:
    for package in NEEDED:
        pytest.importorskip(package, reason=f"the list names what needs {package}, which is not installed")
    return listed()


def test_public_names_are_the_recorded_ones(present: str) -> None:
    recorded = RECORD.read_text(encoding="utf-8").splitlines()
    changed = list(difflib.unified_diff(recorded, present.splitlines(), "recorded", "present", lineterm="", n=0))
    how = f"If the change is meant, `{HOW}` records it. Say in CHANGELOG.md what users have to change."
    assert not changed, "\n".join([*changed, how])


def test_list_is_the_same_in_every_process(present: str) -> None:
    assert not re.search(r"0x[0-9a-f]{6}|<.* at ", present)
    assert "/" not in present.replace(", /", "")  # no path of this machine


def test_arguments_are_written_as_python_reads_them() -> None:
    def function(a, /, b, c=1.5, *rest, d, e="x", **more):  # type: ignore[no-untyped-def]
        pass

    def keywords(*, a=None, b=(1, [True])):  # type: ignore[no-untyped-def]
        pass

    assert arguments(function) == "(a, /, b, c=1.5, *rest, d, e='x', **more)"
    assert arguments(keywords) == "(*, a=None, b=(1, [True]))"
