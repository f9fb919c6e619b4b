"""The command line: `vicinal embed`, `describe`, `transform`, `update`, `clusters`, `stream`, `atlas` and others.

Invalid input prints one line `error: …` to stderr and exits with code 2. Outputs are written under temporary names and
renamed together at the end, so that a failed or interrupted run leaves existing files unchanged.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import Any

# Optional dependencies: the library works without them.
APP_PACKAGES = ("typer", "rich", "polars", "matplotlib")
BAD_INPUT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; no error becomes a traceback."""
    missing = [name for name in APP_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        return _fail(f"the command line requires {', '.join(missing)}; install with: pip install 'vicinal[app]'")
    import typer

    from vicinal.cli import commands
    from vicinal.cli.fitting import INTERRUPTED

    try:
        result: Any = commands.build()(args=arguments, prog_name="vicinal", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        result = INTERRUPTED
    except Exception as error:
        return _fail(_describe(error))
    if result == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    return result if isinstance(result, int) else 0


def _describe(error: Exception) -> str:
    """Return one line for an exception; with VICINAL_TRACEBACK set, raise it with its traceback."""
    if os.environ.get("VICINAL_TRACEBACK"):
        raise error
    if hasattr(error, "format_message"):
        # a usage error of typer, whose class is defined by different packages in different versions
        return str(error.format_message())
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}" if str(error) else "not enough memory"
    if isinstance(error, (ValueError, TypeError, NotImplementedError, ImportError)):
        return str(error) or type(error).__name__
    return f"unexpected {type(error).__name__}: {error} (set VICINAL_TRACEBACK=1 to see the traceback)"


def _fail(message: str) -> int:
    print("error:", " ".join(message.split()), file=sys.stderr)
    return BAD_INPUT
