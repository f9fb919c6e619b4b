"""umap-learn's module-level functions over the parts of this package."""
