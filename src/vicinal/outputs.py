"""Files that appear whole or not at all."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType


class Outputs:
    """Files written under temporary names, renamed together if all went well and removed if not."""

    def __init__(self) -> None:
        self.pending: dict[Path, Path] = {}

    def staged(self, path: Path) -> Path:
        """The name to write to instead of `path`, beside it: a rename cannot cross file systems."""
        # resolved: a rename onto a symbolic link would replace the link, not the file it leads to
        final = path.resolve()
        temporary = final.with_name(f".{secrets.token_hex(6)}{final.suffix}")
        self.pending[temporary] = final
        return temporary

    def __enter__(self) -> Outputs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for temporary, final in self.pending.items():
            if kind is None:
                temporary.replace(final)
            else:
                temporary.unlink(missing_ok=True)
