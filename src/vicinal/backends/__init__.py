"""The numerical work of the stages, one module of functions per kind of processor (ARCHITECTURE.md, "Backends")."""
