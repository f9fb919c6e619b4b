"""A folder with versions of one map that grows, changes and forgets, and that people still recognize."""
