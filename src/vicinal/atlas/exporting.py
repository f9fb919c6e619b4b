"""Write a version of an atlas to one file that other programs read."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vicinal.areas.hierarchy import NOISE
from vicinal.atlas.tables import require_polars
from vicinal.files.atomic import atomic_write
from vicinal.files.data_table import Column, Role

if TYPE_CHECKING:
    import polars as pl

    from vicinal.atlas.atlas import Atlas

SUFFIXES = (".csv", ".parquet", ".vicinal", ".html")


def write_version(atlas: Atlas, path: Path, version: int | None) -> None:
    """Write a version: a table, a page, or the fitted model of the newest version."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"path must end in {', '.join(SUFFIXES)}, got {str(path)!r}")
    if suffix == ".vicinal":
        if version not in (None, atlas.version):
            raise ValueError("only the newest version has a model: roll back to have that of another one")
        atlas.model.save(path)
    elif suffix == ".html":
        _write_page(atlas, path, version)
    else:
        content = io.BytesIO()
        frame = table_of(atlas, version)
        frame.write_csv(content) if suffix == ".csv" else frame.write_parquet(content)
        with atomic_write(path) as file:
            file.write(content.getbuffer())


def table_of(atlas: Atlas, version: int | None = None) -> pl.DataFrame:
    """Return ids, coordinates, areas, territory and the further columns of a version."""
    from vicinal.files.spreadsheets import inert_frame

    pl = require_polars()
    found, further = atlas.snapshot(version), atlas.columns(version)
    width = found.embedding.shape[1]
    axes = ["x", "y", "z"][:width] if width <= 3 else [f"d{a + 1}" for a in range(width)]
    names = np.array([*found.names, None], dtype=object)
    own: dict[str, Any] = {"id": found.ids.tolist()}
    own |= {name: found.embedding[:, a] for a, name in enumerate(axes)}
    own |= {"area": names[np.where(found.labels == NOISE, -1, found.labels)].tolist(), "territory": found.territory}
    free = further.rename({name: f"{name} (data)" for name in further.columns if name in own})
    frame = pl.DataFrame(own, infer_schema_length=None)
    return inert_frame(frame.hstack(free) if free.width else frame)


def _write_page(atlas: Atlas, path: Path, version: int | None) -> None:
    from vicinal.viewer.export import write_page
    from vicinal.viewer.packing import pack

    frame = table_of(atlas, version)
    places = atlas.snapshot(version).embedding
    axes = places.shape[1]
    columns = [Column("id", Role.ID, np.array(frame["id"].to_list(), dtype=object))]
    for name in frame.columns[1 + axes :]:
        role = Role.LABEL if name == "area" else Role.DISPLAY
        columns.append(Column(name, role, np.array(frame[name].to_list(), dtype=object)))
    write_page(path, pack(places, columns=columns, title=path.stem))
