"""The stages composed: fit a map, place unseen rows in it, update, grow, compose, align and invert it."""
