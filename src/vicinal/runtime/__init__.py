"""What every stage may use: progress, declared parameters, memory sizes, interruption."""
