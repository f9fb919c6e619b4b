"""Model files, readers of tables, streams of batches, and files that are written completely or not at all."""
