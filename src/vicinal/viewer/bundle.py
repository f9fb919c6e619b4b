"""The files that `make web` builds: styles and programs of the pages."""

from __future__ import annotations

from importlib import resources


def bundled(name: str) -> bytes:
    """Return the content of a file of the built pages."""
    return (resources.files("vicinal.viewer") / "static" / name).read_bytes()


def bundled_text(name: str) -> str:
    """Return the text of a file of the built pages."""
    return bundled(name).decode("utf-8")
