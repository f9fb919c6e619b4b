"""Model files, readers of data files, row batches, and atomic file writes."""
