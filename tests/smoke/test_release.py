"""What a release consists of agrees: versions, licenses, SBOM, recipe, workflows."""

from __future__ import annotations

import re
import runpy
import tomllib
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from smoke import contents

import vicinal

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def load_sbom() -> Any:
    return SimpleNamespace(**runpy.run_path(str(ROOT / "packaging" / "sbom.py")))


def recipe() -> str:
    return (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned(workflow: Path) -> None:
    used = re.findall(r"^\s*(?:- )?uses:\s*(.*)$", workflow.read_text(), re.M)
    assert used
    assert not [action for action in used if not PINNED.fullmatch(action)]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_have_the_least_permissions(workflow: Path) -> None:
    text = workflow.read_text()
    assert re.search(r"^permissions:(?: \{\}|\n  contents: read)$", text, re.M)
    writes = re.findall(r"^ +([\w-]+): write\b", text, re.M)
    assert writes == (["id-token", "attestations"] if workflow.stem == "release" else [])


def test_one_action_has_one_version() -> None:
    used = {action for path in WORKFLOWS for action in re.findall(r"uses: (\S+)", path.read_text())}
    assert len({action.partition("@")[0] for action in used}) == len(used)


def test_versions_agree() -> None:
    assert vicinal.__version__ == PROJECT["version"]
    released = PROJECT["version"].partition(".dev")[0]
    for path, pattern in {
        "CITATION.cff": r"^version: (.*)$",
        "packaging/conda/recipe.yaml": r'^  version: "(.*)"$',
        "web/package.json": r'^  "version": "(.*)",$',
    }.items():
        assert re.findall(pattern, (ROOT / path).read_text(), re.M) == [released], path


def test_license_is_that_of_all_components() -> None:
    components = load_sbom().compiled_in("0")
    expected = {"BSD-3-Clause", *(facts["license"] for facts in components.values())}
    assert set(PROJECT["license"].split(" AND ")) == expected
    assert f"  license: {PROJECT['license']}\n" in recipe()
    named = {facts["text"] for facts in components.values() if "text" in facts}
    assert named == {path.name for path in (ROOT / "licenses").glob("*.txt")}
    assert {name for name, facts in components.items() if "text" not in facts} == {"dlmalloc"}


def test_pages_contain_no_packages_without_a_license_text() -> None:
    assert load_sbom().bundled_packages() == {}


def test_sbom_is_reproducible_and_names_nanobind() -> None:
    sbom = load_sbom()
    bill = sbom.bill_of_materials("2.2.0")
    assert bill == sbom.bill_of_materials("2.2.0")
    assert bill["components"][0]["purl"] == "pkg:pypi/nanobind@2.2.0"


def test_recipe_has_the_requirements_of_the_package() -> None:
    required = re.findall(r"^    - ([\w-]+) >=(\S+)$", recipe(), re.M)
    declared = [*PYPROJECT["build-system"]["requires"], *PROJECT["dependencies"]]
    assert sorted(f"{name}>={version}" for name, version in required) == sorted(declared)


def test_every_python_of_the_classifiers_gets_a_wheel() -> None:
    versions = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)]
    built = PYPROJECT["tool"]["cibuildwheel"]["build"]
    assert [f"cp{version.replace('.', '')}-*" for version in versions] == [name for name in built if "t-" not in name]
    assert not [name for name in PROJECT["classifiers"] if name.startswith("License ::")]


def test_an_incomplete_wheel_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vicinal-0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("vicinal/__init__.py", "")
        wheel.writestr("tests/test_it.py", "")
    found = "\n".join(contents.wrong_with(path))
    for missing in (
        "one compiled core",
        "sboms/vicinal.cdx.json",
        "licenses/LICENSE",
        "licenses/musl.txt",
        "core.wasm",
    ):
        assert missing in found
    assert "should not contain tests/test_it.py" in found
