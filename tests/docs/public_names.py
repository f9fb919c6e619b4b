"""List everything that a minor release keeps: public names, their signatures, and the options of the command line.

    python tests/docs/public_names.py

writes the list to public_names.txt, beside this file. docs/guides/stability.md says what the list promises. The names
are those of the API reference. Annotations are left out, because Python writes them differently in different versions.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any, get_args

import vicinal

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).with_name("public_names.txt")
HOW = "python tests/docs/public_names.py"
# Classes whose objects are made by functions and methods, not by calling the class.
RESULTS = {"Atlas", "Clusters", "History", "Loss", "QualityReport", "Reliability", "TornEdges"}
# Packages of extras that the listed modules import.
NEEDED = ("torch", "typer", "rich", "polars", "matplotlib")
SECTION = re.compile(r"^Attributes\n-+\n((?:.*\n?)+?)(?=^[A-Z][\w ]+\n-{3,}\n|\Z)", re.M)


def reference_pages() -> Any:
    """Return the module of the documentation that lists the names of the API reference."""
    return SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "extensions" / "reference_pages.py")))


def written(value: Any) -> str:
    """Write a default value such that it is the same in every process and Python."""
    if isinstance(value, enum.Enum):
        return repr(value.value)
    if isinstance(value, (type, FunctionType)):
        return value.__qualname__
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, (tuple, list)):
        inside = ", ".join(map(written, value))
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    return "..."


def arguments(value: Any, *, method: bool = False) -> str:
    """Return the arguments of a function or a constructor, with their defaults and without annotations."""
    parts: list[str] = []
    kinds = inspect.Parameter
    before = None
    parameters = list(inspect.signature(value).parameters.values())[int(method) :]
    for one in parameters:
        if before is kinds.POSITIONAL_ONLY and one.kind is not kinds.POSITIONAL_ONLY:
            parts.append("/")
        if one.kind is kinds.KEYWORD_ONLY and before not in (kinds.KEYWORD_ONLY, kinds.VAR_POSITIONAL):
            parts.append("*")
        mark = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(one.kind, "")
        default = "" if one.default is kinds.empty else f"={written(one.default)}"
        parts.append(f"{mark}{one.name}{default}")
        before = one.kind
    if before is kinds.POSITIONAL_ONLY:
        parts.append("/")
    return f"({', '.join(parts)})"


def attributes_of(cls: type) -> list[str]:
    """Return the attributes that the docstring of a class lists."""
    found = SECTION.search(inspect.getdoc(cls) or "")
    lines = found.group(1).splitlines() if found else []
    named = [line.partition(" : ")[0] for line in lines if line and not line.startswith(" ")]
    return [name.strip() for line in named for name in line.split(",")]


def lines_of_class(name: str, cls: type, pages: Any) -> Iterator[str]:
    if issubclass(cls, enum.Enum):
        yield f"{name}: {', '.join(f'{one.name}={one.value!r}' for one in cls)}"
        return
    if issubclass(cls, Exception):
        yield f"{name}: an exception, subclass of {', '.join(base.__name__ for base in cls.__mro__[1:-2])}"
        return
    yield name if cls.__name__ in RESULTS else f"{name}{arguments(cls)}"
    fields = [field.name for field in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else []
    held = {*attributes_of(cls), *pages.properties_of(cls), *(field for field in fields if not field.startswith("_"))}
    for attribute in sorted(held - pages.INTERNAL):
        yield f"{name}.{attribute}"
    for method in pages.methods_of(cls):
        value = inspect.getattr_static(cls, method)
        bound = isinstance(value, (staticmethod, classmethod))
        yield f"{name}.{method}{arguments(getattr(cls, method), method=not bound)}"


def lines_of(name: str, value: Any, pages: Any) -> Iterator[str]:
    if inspect.isclass(value):
        yield from lines_of_class(name, value, pages)
    else:
        yield f"{name}{arguments(value)}"


def python_lines() -> Iterator[str]:
    """List the public names of the package and of its public modules, in the order of the reference."""
    pages = reference_pages()
    yield "# names of the package"
    for name in vicinal.__all__:
        yield from lines_of(f"vicinal.{name}", getattr(vicinal, name), pages)
    for name in [name for name in pages.MODULES if name not in pages.EXPERIMENTAL]:
        module = importlib.import_module(f"vicinal.{vicinal._MODULES[name]}")
        yield ""
        yield f"# vicinal.{name}"
        for public in sorted(pages.public_names(module)):
            value = getattr(module, public)
            if not (public in vicinal.__all__ and getattr(vicinal, public) is value):
                yield from lines_of(f"vicinal.{name}.{public}", value, pages)


def choices_of(annotations: tuple[Any, ...]) -> list[str]:
    """Return the values that an option accepts, if its type is an enumeration."""
    inside = [one for kind in annotations for one in (get_args(kind) or (kind,))]
    return [one.value for kind in inside if inspect.isclass(kind) and issubclass(kind, enum.Enum) for one in kind]


def option_line(option: Any, annotations: tuple[Any, ...], default: Any) -> str:
    """Describe an option or an argument: its names, its choices, and its default.

    Only the names are taken from typer, which keeps the rest in other places in other versions.
    """
    is_option = option.param_type_name == "option"
    names = [*option.opts, *option.secondary_opts] if is_option else [option.name.upper()]
    choices = choices_of(annotations)
    text = ", ".join(sorted(names, key=lambda name: (len(name), name)))
    text += f" {{{', '.join(choices)}}}" if choices else ""
    if default is inspect.Parameter.empty:
        return text + " (required)"
    return text if default is None or default is False else f"{text} = {getattr(default, 'value', default)}"


def command_lines(command: Any, name: str) -> Iterator[str]:
    """List a command with its options, and then the commands inside it."""
    declared = inspect.signature(command.callback).parameters if command.callback else {}
    options = [one for one in command.params if one.name in declared]
    yield ""
    yield name
    for option in options:
        one = declared[option.name]
        yield f"    {option_line(option, get_args(one.annotation), one.default)}"
    for inner, nested in sorted(getattr(command, "commands", {}).items()):
        yield from command_lines(nested, f"{name} {inner}")


def listed() -> str:
    """Return the whole list."""
    from vicinal.cli.commands import build
    from vicinal.cli.writing import SUFFIXES as WRITTEN
    from vicinal.files.readers import SUFFIXES as READ

    lines = [*python_lines(), *command_lines(build(), "vicinal")]
    lines += ["", "# files that the command line reads and writes", f"data: {' '.join(READ)}"]
    lines += [f"{name}: {' '.join(suffixes)}" for name, suffixes in WRITTEN.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    RECORD.write_text(listed(), encoding="utf-8")
    print(f"wrote {RECORD.name}: {len(listed().splitlines())} lines")
