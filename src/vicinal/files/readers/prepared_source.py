"""How the rows of a fit were read and prepared, kept with the model to treat other files in the same way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.files.preparation import Steps
from vicinal.files.readers import DataTable, read_table
from vicinal.files.readers.source_columns import SourceColumns


@dataclass(frozen=True)
class PreparedSource:
    """How the rows of a fit were read and prepared, to read and prepare others in the same way."""

    columns: SourceColumns | None
    steps: Steps

    @classmethod
    def of_model(cls, model: Any) -> PreparedSource:
        return cls(SourceColumns.of_model(model), Steps.of_model(model))

    def read(self, path: Path, **changes: Any) -> DataTable:
        """Read rows to place; ``changes`` replaces column arguments."""
        if self.columns is None:
            return read_table(path, **changes)
        return self.columns.read(path, **{name: value for name, value in changes.items() if value})

    def read_rows(self, path: Path) -> NDArray[np.float32]:
        """Read rows to place and prepare them."""
        return self.steps.apply(self.read(path).X)

    def keep_in(self, model: Any) -> None:
        """Store all of it in a fitted model."""
        self.steps.keep_in(model)
        if self.columns is not None:
            self.columns.keep_in(model)
