"""Write the pages of the API reference from the package itself: one page per public name and per public module.

The pages are written to docs/reference/api, which git ignores, before Sphinx looks for documents. A public name is a
name of ``vicinal.__all__``; the index lists it under the package that defines it, so a name that is added to the
package needs no change here.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import vicinal

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# Headings of the index, in the order of the packages.
GROUPS = {
    "estimators": "Estimators",
    "neighbors": "Neighbors",
    "cluster": "Neighbors",
    "graph": "Graphs",
    "initialize": "First places",
    "layout": "Layouts",
    "quality": "Quality",
    "files": "Files",
}
OTHER_GROUP = "Other names"
# Public modules, with a sentence for the index.
MODULES = {
    "metrics": "Metrics of rows, with their keywords and requirements.",
    "losses": "The costs of all methods, and their gradients.",
    "quality": "How faithful a map is to its data.",
    "pipeline": "The steps of a fit as functions, and their result.",
    "parametric": "Networks for ParametricUMAP.",
    "plot": "Figures.",
    "viewer": "Interactive pages.",
    "pp": "Neighbors of the cells of an AnnData.",
    "tl": "Maps of the cells of an AnnData.",
    "umap_": "umap-learn's module-level functions.",
}
# Public modules that may change in any minor release (docs/guides/stability.md).
EXPERIMENTAL = {"pipeline"}
EXPERIMENTAL_NOTE = (
    ".. note::\n\n   This module is experimental: it may change in any minor release, without a warning before.\n"
    "   See :doc:`/guides/stability`.\n\n"
)
# Methods and properties that one part of the package offers to another.
INTERNAL = {
    *("add_input_and_fit", "add_memory", "adopt", "adopt_map", "anywhere", "array", "at", "check", "check_new_rows"),
    *("distances_of", "executor", "from_checked", "held", "in_memory", "insert_checked", "learned", "local_map", "on"),
    *("place", "relative", "renumbered", "reserve", "rows_of", "table_of", "to_known_rows", "weighing_tails"),
    *("with_firings", "with_model", "without_edges", "without_result"),
}


def is_ours(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).startswith("vicinal")


def methods_of(cls: type) -> list[str]:
    """Return the public methods of a class that this package defines, in alphabetical order."""
    names = []
    for name, value in inspect.getmembers(cls):
        function = inspect.unwrap(value) if callable(value) else None
        if name.startswith("_") or name in INTERNAL or function is None or inspect.isclass(value):
            continue
        if is_ours(function) and inspect.getdoc(value):
            names.append(name)
    return names


def properties_of(cls: type) -> list[str]:
    """Return the documented public properties of a class that this package defines, in alphabetical order."""
    names = []
    for name, value in inspect.getmembers_static(cls):
        function = getattr(value, "fget", None) or getattr(value, "func", None)
        is_property = isinstance(value, (property, functools.cached_property))
        if is_property and not name.startswith("_") and name not in INTERNAL and is_ours(function) and value.__doc__:
            names.append(name)
    return names


def public_names(module: ModuleType) -> list[str]:
    """Return the public names of a module: its ``__all__``, or its documented functions and classes of this package."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [name for name in listed if callable(getattr(module, name))]
    package = module.__name__ if hasattr(module, "__path__") else None
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and (value.__module__ == module.__name__ or (package and value.__module__.startswith(package)))
    ]


def heading(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n\n"


def name_page(module: str, name: str, value: Any, line: str = "=") -> str:
    """Return the page, or the section, of one function or class."""
    text = heading(name, line) + f".. currentmodule:: {module}\n\n"
    if not inspect.isclass(value):
        return text + f".. autofunction:: {name}\n\n"
    text += f".. autoclass:: {name}\n\n"
    properties = properties_of(value)
    if properties:
        text += ".. rubric:: Properties\n\n" + "".join(f".. autoproperty:: {name}.{one}\n\n" for one in properties)
    methods = [] if issubclass(value, Exception) else methods_of(value)
    if methods:
        text += ".. rubric:: Methods\n\n" + "".join(f".. automethod:: {name}.{method}\n\n" for method in methods)
    return text


def write(path: Path, text: str) -> None:
    """Write a page unless it has this content: an unchanged file is not read again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def write_reference(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "reference" / "api"
    wanted = set()

    def page(stem: str, text: str) -> None:
        write(folder / f"{stem}.rst", text)
        wanted.add(folder / f"{stem}.rst")

    groups: dict[str, list[str]] = {title: [] for title in (*dict.fromkeys(GROUPS.values()), OTHER_GROUP)}
    for name in vicinal.__all__:
        value = getattr(vicinal, name)
        package = value.__module__.split(".")[1]
        groups[GROUPS.get(package, OTHER_GROUP)].append(name)
        gallery = f".. minigallery:: vicinal.{name}\n   :add-heading: Examples in the gallery\n"
        page(name, name_page("vicinal", name, value) + gallery)
    for name in MODULES:
        module = importlib.import_module(f"vicinal.{vicinal._MODULES[name]}")
        text = f".. _module-{name}:\n\n" + heading(f"vicinal.{name}")
        text += EXPERIMENTAL_NOTE if name in EXPERIMENTAL else ""
        text += f".. automodule:: {module.__name__}\n\n"
        for public in public_names(module):
            value = getattr(module, public)
            if public in vicinal.__all__ and getattr(vicinal, public) is value:
                text += f"``{public}`` is :class:`vicinal.{public}`.\n\n"
            else:
                text += name_page(module.__name__, public, value, "-")
        page(f"module-{name}", text)
    write(folder.parent / "index.rst", index_page(groups))
    for file in folder.glob("*.rst"):
        if file not in wanted:
            file.unlink()


def index_page(groups: dict[str, list[str]]) -> str:
    text = heading("Reference")
    text += (
        "Every public name has a page. Names are imported from the package, as in ``from vicinal import UMAP``;\n"
        "modules are attributes of it, as in ``from vicinal import losses``.\n\n"
    )
    for title, names in groups.items():
        if names:
            text += heading(title, "-") + ".. currentmodule:: vicinal\n\n.. autosummary::\n   :nosignatures:\n\n"
            text += "".join(f"   {name}\n" for name in names) + "\n"
            text += ".. toctree::\n   :hidden:\n\n" + "".join(f"   {name} <api/{name}>\n" for name in names) + "\n"
    text += heading("Modules", "-") + ".. list-table::\n   :widths: 25 75\n\n"
    for name, sentence in MODULES.items():
        mark = " Experimental." if name in EXPERIMENTAL else ""
        text += f"   * - :ref:`vicinal.{name} <module-{name}>`\n     - {sentence}{mark}\n"
    text += "\n.. toctree::\n   :hidden:\n\n"
    return text + "".join(f"   vicinal.{name} <api/module-{name}>\n" for name in MODULES)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_reference, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
