"""Used by every stage: progress, parameter constraints, memory sizes, threads, interruption, cached values."""
