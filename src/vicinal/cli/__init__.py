"""The command line: `vicinal embed`, `transform`, `stream`, `serve`, `quality`, `info`, `methods` and `demo`.

Bad input is one line `error: …` on stderr and exit code 2. Outputs are written under temporary names beside
their final ones and renamed together at the end: a run that fails or is interrupted leaves what was there.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import Any

# The package itself installs without these; main says how to get them.
APP_PACKAGES = ("typer", "rich", "polars", "matplotlib")
BAD_INPUT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; nothing it meets becomes a traceback."""
    missing = [name for name in APP_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        return _fail(f"the command line needs {', '.join(missing)}: pip install 'vicinal[app]'")
    import typer

    from vicinal.cli import commands
    from vicinal.cli.embedding import INTERRUPTED

    try:
        result: Any = commands.build()(args=arguments, prog_name="vicinal", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        result = INTERRUPTED
    except Exception as error:
        return _fail(_explained(error))
    if result == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    return result if isinstance(result, int) else 0


def _explained(error: Exception) -> str:
    """One line for an exception; a bug is shown in full when VICINAL_TRACEBACK is set."""
    if os.environ.get("VICINAL_TRACEBACK"):
        raise error
    if hasattr(error, "format_message"):
        # a usage error of typer's; which package defines its class depends on typer's version
        return str(error.format_message())
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}"
    if isinstance(error, (ValueError, TypeError, NotImplementedError, ImportError)):
        return str(error) or type(error).__name__
    return f"unexpected {type(error).__name__}: {error} (VICINAL_TRACEBACK=1 shows where)"


def _fail(message: str) -> int:
    print("error:", " ".join(message.split()), file=sys.stderr)
    return BAD_INPUT
