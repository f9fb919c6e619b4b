"""Maps to look into: `export` writes one offline HTML page."""

from vicinal.viewer.export import export

__all__ = ["export"]
