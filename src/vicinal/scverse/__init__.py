"""AnnData in scanpy's conventions: ``vicinal.pp`` and ``vicinal.tl`` read and write the same keys as scanpy's modules."""
