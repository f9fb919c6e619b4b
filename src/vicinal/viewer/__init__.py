"""Interactive maps: `export` and `compare` write one offline HTML page, `explore` shows a model in a notebook."""

from vicinal.viewer.export import compare, export
from vicinal.viewer.notebook import explore

__all__ = ["compare", "explore", "export"]
