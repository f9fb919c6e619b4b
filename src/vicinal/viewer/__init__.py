"""Interactive maps: `export` writes one offline HTML page, `explore` shows a fitted model in a notebook."""

from vicinal.viewer.export import export
from vicinal.viewer.notebook import explore

__all__ = ["explore", "export"]
