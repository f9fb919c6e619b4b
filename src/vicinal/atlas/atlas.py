"""A published map that grows, changes and forgets: :class:`Atlas`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.areas.hierarchy import NOISE
from vicinal.atlas.placing import edge_costs, place_batch
from vicinal.atlas.refit import LOYALTY, refit, stored_map, width_of
from vicinal.atlas.snapshot import Snapshot
from vicinal.atlas.strain import Strain, measure_strain
from vicinal.atlas.tables import (
    INSIDE,
    Entries,
    Placed,
    as_columns,
    as_ids,
    check_ids,
    decode_places,
    encode_places,
    encode_rows,
    joined,
    notes,
    read_columns,
    read_entries,
    read_vectors,
    require_polars,
    without_rows,
)
from vicinal.atlas.territory import Held
from vicinal.atlas.versions import AtlasError, Chunk, Folder, Head, Manifest, child
from vicinal.files.container import packed, read_file
from vicinal.files.models import encoded, load
from vicinal.files.preparation import COLUMNS_ATTRIBUTE, STEPS_ATTRIBUTE
from vicinal.neighbors.metrics import PRECOMPUTED, is_sparse
from vicinal.neighbors.rows import hash_rows
from vicinal.neighbors.table import Neighbors
from vicinal.runtime.inputs import is_dask

if TYPE_CHECKING:
    import polars as pl

SEED = 0
# Attributes that an unfitted estimator keeps: how rows are read and prepared, and the names of their columns.
KEPT_ATTRIBUTES = (COLUMNS_ATTRIBUTE, STEPS_ATTRIBUTE, "feature_names_in_")


class Atlas:
    """A folder with the versions of one map.

    Rows are added day by day and placed in the map, whose other rows stay where they are, bit for bit. From time to
    time all rows are laid out again such that people still find their way. Every change makes a new version, whole or
    not at all; a process that is killed leaves the version before. :meth:`create` makes an atlas, :meth:`open` opens
    one.

    Attributes
    ----------
    path : Path
    version : int
        The newest version.

    See Also
    --------
    UMAP : the map without a folder.

    Examples
    --------
    >>> import tempfile, vicinal
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     atlas = vicinal.Atlas.create(f"{folder}/digits", X[:1500])
    ...     before = atlas.embedding
    ...     record = atlas.append(X[1500:])
    ...     record["added"], bool((atlas.embedding[:1500] == before).all())
    (297, True)
    """

    def __init__(self, folder: Folder, head: Head) -> None:
        self._folder = folder
        self._load(head)

    # Making and opening

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        rows: Any,
        ids: Any = None,
        *,
        columns: Any = None,
        estimator: Any = None,
        at: datetime | None = None,
    ) -> Atlas:
        """Fit a map and make it the first version of a new atlas.

        Parameters
        ----------
        path : path
            A folder that does not exist, or is empty.
        rows : array [rows, columns]
        ids : array [rows], optional
            Texts or whole numbers, each different; by default 0, 1, 2, ….
        columns : data frame or mapping of str to sequences, optional
            Further columns of the rows: texts, classes, numbers. They name areas and are shown on pages.
        estimator : UMAP, DensMAP or LargeVis, optional
            How to fit. Its ``random_state`` must be a number; None means 0.
        at : datetime, optional
            When the rows came; by default now.
        """
        require_polars()
        folder = Folder(path)
        if folder.path.exists() and (not folder.path.is_dir() or any(folder.path.iterdir())) and not _unfinished(folder):
            raise FileExistsError(f"{folder.path} exists and is not empty")
        model = _checked_estimator(estimator)
        X = _dense(rows)
        found = np.arange(X.shape[0]) if ids is None else check_ids(ids, X.shape[0])
        frame = as_columns(columns, X.shape[0])
        folder.path.mkdir(parents=True, exist_ok=True)
        with folder.writing():
            if folder.is_atlas():
                raise FileExistsError(f"{folder.path} already holds an atlas")
            model.fit(rows)
            fitted = model.map_
            X, when = fitted.data.rows, _time(at)
            entries = Entries(np.arange(len(X)), found, hash_rows(X, fitted.data.n_jobs), notes(frame, len(X)))
            chunk = Chunk(folder.put(encode_rows(entries, X, frame), ".parquet"), len(X), when)
            stored = _Fit.of(model, entries.row, frame)
            manifest = Manifest(
                number=1,
                parent=0,
                made="create",
                at=when,
                estimator=_put_estimator(folder, model),
                dtype=X.dtype.name,
                next_row=len(X),
                chunks=(chunk,),
                pieces=(folder.put(encode_places(stored.placed), ".parquet"),),
                table=_put_table(folder, fitted.neighbors),
                areas=stored.areas,
                record={"rows": len(X), "added": len(X)},
            )
            atlas = cls(folder, folder.add(None, manifest))
            atlas._model = model
        return atlas

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Atlas:
        """Open an atlas; nothing is locked until it is changed."""
        require_polars()
        folder = Folder(path)
        return cls(folder, folder.head())

    def _load(self, head: Head) -> None:
        """Read the newest version; its model is read when it is needed."""
        self._head, self._manifest = head, self._folder.manifest(head)
        self._placed, self._entries = self._read(self._manifest)
        self._model: Any = None
        self._held: Held | None = None

    def _read(self, manifest: Manifest) -> tuple[Placed, Entries]:
        """Return the rows of a version, and their ids."""
        pieces = [decode_places(self._folder.object(name)) for name in manifest.pieces]
        placed = pieces[0]
        for piece in pieces[1:]:
            placed = placed.followed_by(piece)
        return placed, read_entries(self._chunk_paths(manifest)).of(placed.row)

    def _chunk_paths(self, manifest: Manifest) -> list[Path]:
        return [self._folder.object(chunk.file) for chunk in manifest.chunks]

    def refresh(self) -> Atlas:
        """Read the newest version if another process has made one; return the atlas."""
        head = self._folder.head()
        if head != self._head:
            self._load(head)
        return self

    # What there is

    @property
    def path(self) -> Path:
        return self._folder.path

    @property
    def version(self) -> int:
        """The newest version."""
        return self._manifest.number

    @property
    def versions(self) -> list[dict[str, Any]]:
        """Number, change, time and record of each version, the oldest first."""
        manifests = [self._folder.manifest(self._head, number) for number in sorted(self._head.versions)]
        return [{"version": one.number, "made": one.made, "at": one.at, **one.record} for one in manifests]

    def at(self, version: int | None = None) -> Snapshot:
        """Return a version as plain arrays, by default the newest."""
        if version is None or version == self.version:
            manifest, placed, entries = self._manifest, self._placed, self._entries
        else:
            manifest = self._folder.manifest(self._head, version)
            placed, entries = self._read(manifest)
        return Snapshot(
            version=manifest.number,
            made=manifest.made,
            at=manifest.at,
            record=manifest.record,
            ids=entries.id,
            row=placed.row,
            embedding=placed.places,
            labels=placed.area,
            names=tuple(str(one["name"]) for one in manifest.areas),
            territory=placed.territory,
        )

    @property
    def ids(self) -> NDArray[Any]:
        """The ids of the rows: first those of the last fit, then the others as they came."""
        return self._entries.id

    @property
    def embedding(self) -> NDArray[np.float32]:
        """The places of the rows."""
        return self._placed.places

    @property
    def labels(self) -> NDArray[np.int32]:
        """The area of each row; -1 for none."""
        return self._placed.area

    @property
    def areas(self) -> list[dict[str, Any]]:
        """Number, name, rows and place of each area."""
        rows = np.bincount(self.labels[self.labels >= 0], minlength=len(self._manifest.areas))
        return [{"area": a, **one, "rows": int(rows[a])} for a, one in enumerate(self._manifest.areas)]

    @property
    def new_territory(self) -> NDArray[np.bool_]:
        """Which rows fit nowhere in the map of the last fit."""
        return np.asarray(self._placed.territory != INSIDE)

    @property
    def strain(self) -> Strain:
        """How much the map needs a refit, per area."""
        names = tuple(str(one["name"]) for one in self._manifest.areas)
        unseen = ~np.isin(self._placed.row, self._fit_rows().row)
        return measure_strain(self._placed, unseen, names)

    def columns(self, version: int | None = None) -> pl.DataFrame:
        """Return the further columns of the rows of a version."""
        manifest = self._manifest if version is None else self._folder.manifest(self._head, version)
        placed = self._placed if manifest is self._manifest else self._read(manifest)[0]
        return read_columns(self._chunk_paths(manifest), placed.row)

    def rows(self, version: int | None = None) -> NDArray[Any]:
        """Return the values of the rows of a version."""
        manifest = self._manifest if version is None else self._folder.manifest(self._head, version)
        placed = self._placed if manifest is self._manifest else self._read(manifest)[0]
        return read_vectors(self._chunk_paths(manifest), placed.row, manifest.dtype)

    @property
    def model(self) -> Any:
        """The fitted estimator of the last fit, in which new rows are placed."""
        if self._model is None:
            self._model = self._stored_model()
        return self._model

    def _fit_rows(self) -> Placed:
        """Return the rows of the last fit, in its order, at the places of the fit."""
        return decode_places(self._folder.object(self._manifest.pieces[0]))

    def _unfitted(self) -> Any:
        return load(self._folder.object(self._manifest.estimator))

    def _stored_model(self) -> Any:
        manifest, fitted = self._manifest, self._fit_rows()
        model, table = self._unfitted(), None
        if self._folder.has(manifest.table):
            arrays, document = read_file(self._folder.object(str(manifest.table)))
            table = Neighbors(arrays["index"], arrays["distance"], float(document["share"]))
        kept = {name: vars(model)[name] for name in KEPT_ATTRIBUTES if name in vars(model)}
        X = read_vectors(self._chunk_paths(manifest), fitted.row, manifest.dtype)
        made = stored_map(model, X, fitted.places, table)
        vars(made).update(kept)
        return made

    # Changes

    def append(
        self, rows: Any, ids: Any = None, *, columns: Any = None, deleted: Any = (), at: datetime | None = None
    ) -> dict[str, Any]:
        """Add rows to the map and return what was done, in numbers. All other rows stay where they are, bit for bit.

        A row whose id is known is skipped if its content is the same, and moves if it is not. Rows that fit nowhere
        are marked and drawn apart (:attr:`new_territory`).

        Parameters
        ----------
        rows : array [rows, columns]
        ids : array [rows], optional
            By default the numbers that follow the largest id, if all ids are numbers.
        columns : data frame or mapping, optional
            Further columns of the rows.
        deleted : sequence, optional
            Ids of rows that go. Older versions keep them: :meth:`forget` removes them from there too.
        at : datetime, optional
            When the rows came; by default now.

        Returns
        -------
        dict
            ``rows`` of the new version, and how many were ``added``, ``skipped``, ``changed`` (they moved),
            ``described`` (only their further columns changed), ``deleted`` and put into ``new_territory``.
        """
        with self._folder.writing():
            self.refresh()
            X = self.model.check_new_rows(_dense(rows))
            given = self._next_ids(len(X)) if ids is None else check_ids(ids, len(X))
            frame, gone = as_columns(columns, len(X)), self._positions(deleted, "deleted")
            if len(gone) and len(set(self.ids[gone].tolist()) & set(given.tolist())):
                both = next(iter(set(self.ids[gone].tolist()) & set(given.tolist())))
                raise ValueError(f"deleted has {both!r}, which is also an id of the new rows")
            return self._append(X, given, frame, gone, _time(at))

    def _append(
        self, X: NDArray[Any], ids: NDArray[Any], frame: pl.DataFrame, gone: NDArray[np.int64], when: str
    ) -> dict[str, Any]:
        known = self._find(ids)
        entries = Entries(np.zeros(len(X), dtype=np.int64), ids, hash_rows(X), notes(frame, len(X)))
        there = known >= 0
        same = there & (self._entries.key[known] == entries.key)
        skipped = same & (self._entries.note[known] == entries.note)
        stored = np.flatnonzero(~skipped)
        manifest, record = self._manifest, {
            "added": int((~there).sum()),
            "skipped": int(skipped.sum()),
            "changed": int((there & ~same).sum()),
            "described": int((same & ~skipped).sum()),
            "deleted": len(gone),
        }
        numbers = manifest.next_row + np.arange(len(stored))
        replaced = known[stored]
        moving, staying = ~same[stored], same[stored]
        pieces = [Placed.gone(self._placed.row[[*gone, *replaced[replaced >= 0]]], self.embedding.shape[1])]
        stays = self._placed.take(replaced[staying])
        pieces.append(replace(stays, row=numbers[staying]))
        if moving.any():
            left = np.ones(len(self._placed), dtype=bool)
            left[[*gone, *replaced[replaced >= 0]]] = False
            pieces.append(self._place(X[stored[moving]], numbers[moving], left))
        piece = joined(pieces)
        chunks = manifest.chunks
        if len(stored):
            taken = Entries(numbers, entries.id[stored], entries.key[stored], entries.note[stored])
            content = encode_rows(taken, X[stored], frame[stored.tolist()] if frame.width else frame)
            chunks = (*chunks, Chunk(self._folder.put(content, ".parquet"), len(stored), when))
        placed = self._placed.followed_by(piece)
        new = np.isin(placed.row, numbers[moving])
        record["new_territory"] = int((placed.territory[new] != INSIDE).sum())
        names = (*manifest.pieces, self._folder.put(encode_places(piece), ".parquet"))
        following = child(
            manifest, self._head, "append", when,
            next_row=manifest.next_row + len(stored), chunks=chunks, pieces=names,
            record={"rows": len(placed), **record},
        )  # fmt: skip
        self._publish(following, placed, model=self._model, held=None)
        return following.record

    def _place(self, X: NDArray[Any], numbers: NDArray[np.int64], left: NDArray[np.bool_]) -> Placed:
        fit = self._fit_rows()
        held = self._territory_rows(left)
        return place_batch(
            self.model.map_, X, numbers, areas=fit.area, held=held, everyone=self.embedding[left]
        )

    def _territory_rows(self, left: NDArray[np.bool_]) -> Held:
        """Return the rows of new territory that stay."""
        which = np.flatnonzero((self._placed.territory != INSIDE) & left)
        width = self.model.n_features_in_
        X = np.empty((0, width), dtype=self._manifest.dtype)
        if len(which):
            X = read_vectors(self._chunk_paths(self._manifest), self._placed.row[which], self._manifest.dtype)
        return Held(X, self.embedding[which], self._placed.territory[which])

    def _publish(self, manifest: Manifest, placed: Placed, *, model: Any, held: Held | None) -> None:
        """Make a manifest the newest version, and its rows those of this object."""
        head = self._folder.add(self._head, manifest)
        entries = read_entries(self._chunk_paths(manifest)).of(placed.row)
        self._head, self._manifest, self._placed, self._entries = head, manifest, placed, entries
        self._model, self._held = model, held

    def _find(self, ids: NDArray[Any]) -> NDArray[np.int64]:
        """Return the position of each id, or -1."""
        known = self._entries.id
        if len(known) and len(ids) and (known.dtype == object) != (ids.dtype == object):
            kinds = ["whole numbers", "texts"]
            raise TypeError(f"ids must be {kinds[known.dtype == object]} as those of the atlas are")
        at = {one: position for position, one in enumerate(known.tolist())}
        return np.array([at.get(one, -1) for one in ids.tolist()], dtype=np.int64)

    def _positions(self, ids: Any, name: str) -> NDArray[np.int64]:
        """Return the positions of ids that must exist."""
        given = check_ids(list(ids), len(list(ids)), name)
        found = self._find(given)
        if (found < 0).any():
            raise ValueError(f"{name} has {given[np.argmin(found)]!r}, which no row of the atlas has as its id")
        return found

    def _next_ids(self, n: int) -> NDArray[Any]:
        if self.ids.dtype == object and len(self.ids):
            raise ValueError("ids must be given: those of the atlas are texts")
        return int(self.ids.max(initial=-1)) + 1 + np.arange(n)

    def refit(self, loyalty: float = LOYALTY, *, fresh: bool = False, at: datetime | None = None) -> dict[str, Any]:
        """Lay all rows out again such that people recognize the map, and return what moved.

        Parameters
        ----------
        loyalty : float, default 0.1
            How strongly rows are pulled towards their old places; 0 for no pull.
        fresh : bool, default False
            Whether the layout starts anew instead of from the published map. It is still turned, mirrored and moved
            to match.
        at : datetime, optional
            When; by default now.
        """
        if not (np.isfinite(loyalty) and loyalty >= 0):
            raise ValueError(f"loyalty must be a number from 0 on, got {loyalty!r}")
        with self._folder.writing():
            self.refresh()
            return self._lay_out_again(self._unfitted(), self.rows(), self._manifest.chunks, loyalty, fresh, "refit", _time(at))

    def _lay_out_again(
        self, model: Any, X: Any, numbers: NDArray[np.int64], pull: Pull, **changes: Any
    ) -> tuple[dict[str, Any], Placed]:
        """Lay rows out again, with a model that is not fitted yet, and publish the result."""
        before, table = self._placed, self._manifest.table
        names = self._names
        start = self._start(X)
        published = np.where(self.new_territory[:, None], np.float32(np.nan), self.embedding)
        kept = {name: vars(model)[name] for name in KEPT_ATTRIBUTES if name in vars(model)}
        losses = refit(model, X, start, published, pull)
        vars(model).update(kept)
        placed, areas = placed_fit(model, numbers, self.columns())
        moved = moves(before, placed, self._neighbor_rows(table), neighbor_rows(model.map_, numbers))
        record = {
            "rows": len(placed),
            "loyalty": pull.loyalty,
            **losses,
            "median_move": median_move(before, placed),
            "areas": [{"name": areas[one.area]["name"], **asdict(one)} for one in moved],
        }
