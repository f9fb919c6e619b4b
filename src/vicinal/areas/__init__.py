"""Areas of a map: clusters in layers, what sets them apart, and what they are called."""
