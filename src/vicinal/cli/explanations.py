"""What the parameters of a method mean, from the numpydoc sections of its estimator."""

from __future__ import annotations

import inspect
import re

from vicinal.cli.methods import ESTIMATORS, Method, estimator

ENTRY = re.compile(r"^(\w+(?:, \w+)*)(?: : .*)?$")
REFERENCE = re.compile(r"^(?:As in|See) :class:`vicinal\.(\w+)`")


def explanations(method: Method) -> dict[str, str]:
    """Return the meaning of each parameter; one that refers to another method is explained as it is there."""
    found = _documented(method)
    by_class = {name: one for one, name in ESTIMATORS.items()}
    for name, text in found.items():
        other = REFERENCE.match(text)
        if other and by_class.get(other[1], method) is not method:
            found[name] = _documented(by_class[other[1]]).get(name, text)
    if method is not Method.UMAP:
        for name, text in _documented(Method.UMAP).items():
            found.setdefault(name, text)
    # a parameter without an entry of its own is explained with the one that mentions it
    for name in inspect.signature(estimator(method)).parameters:
        mentions = (text for text in list(found.values()) if re.search(rf"\b{name}\b", text))
        found.setdefault(name, next(mentions, ""))
    return found


def _documented(method: Method) -> dict[str, str]:
    """Return the texts of the section "Parameters" by name; an entry may have several names."""
    document = inspect.getdoc(estimator(method)) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", document, flags=re.S | re.M)
    found: dict[str, str] = {}
    names: list[str] = []
    for line in (section[1] if section else "").splitlines():
        entry = ENTRY.match(line)
        if entry:
            names = entry[1].split(", ")
            found |= dict.fromkeys(names, "")
        elif not line.startswith(" "):
            names = []
        for name in names if line.startswith(" ") else []:
            found[name] = f"{found[name]} {_plain(line.strip())}".strip()
    return found


def _plain(text: str) -> str:
    """Remove the marks of reStructuredText; a reference keeps its name."""
    return re.sub(r":\w+:`(?:vicinal\.)?([^`]*)`", r"\1", text).replace("``", "")
