"""AnnData in scanpy's conventions: ``vicinal.pp`` and ``vicinal.tl`` read and write the keys that scanpy does."""
