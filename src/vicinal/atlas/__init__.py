"""An atlas: versions of one map, which people still recognize while its rows come, change and go."""
