"""A published map that grows, changes and forgets: :class:`Atlas`."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.atlas.areas import GREW, KEPT, SHRANK, match_areas, shared_rows
from vicinal.atlas.difference import Difference
from vicinal.atlas.drift import Drift, measure_drift
from vicinal.atlas.exporting import write_version
from vicinal.atlas.fits import checked_estimator, find_areas, kept_attributes, put_estimator, put_table, read_table
from vicinal.atlas.forgetting import rows_to_forget, without
from vicinal.atlas.placing import place_batch, placed_fit
from vicinal.atlas.refit import (
    LOYALTY,
    Refit,
    describe_moves,
    kept_neighbors,
    lines_of,
    moved_shares,
    neighbor_rows,
    refit,
    stored_map,
    zoomed,
)
from vicinal.atlas.snapshot import Snapshot
from vicinal.atlas.strain import Strain, measure_strain
from vicinal.atlas.tables import (
    INSIDE,
    Entries,
    Placed,
    as_columns,
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
)
from vicinal.atlas.territory import Held
from vicinal.atlas.versions import HEAD, LOCK, OBJECTS, Chunk, Folder, Head, Manifest, child
from vicinal.files.models import load
from vicinal.neighbors.metrics import is_sparse
from vicinal.neighbors.rows import hash_rows
from vicinal.runtime.inputs import is_dask

if TYPE_CHECKING:
    import polars as pl

# Fewer rows of the last fit cannot place others.
LEAST_FIT_ROWS = 2


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
        if (
            folder.path.exists()
            and (not folder.path.is_dir() or any(folder.path.iterdir()))
            and not _unfinished(folder)
        ):
            raise FileExistsError(f"{folder.path} exists and is not empty")
        model = checked_estimator(estimator)
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
            labels, areas, resolution = find_areas(model, frame)
            match = match_areas(labels[:0], labels, np.full(len(X), -1), (), [str(one["name"]) for one in areas])
            placed = placed_fit(model, fitted.embedding, entries.row, labels)
            manifest = Manifest(
                number=1,
                parent=0,
                made="create",
                at=when,
                estimator=put_estimator(folder, model),
                dtype=X.dtype.name,
                next_row=len(X),
                chunks=(chunk,),
                pieces=(folder.put(encode_places(placed), ".parquet"),),
                table=put_table(folder, fitted.neighbors),
                areas=tuple({**one, "name": name} for one, name in zip(areas, match.names, strict=True)),
                resolution=resolution,
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
        """Read the newest version, or change nothing if that fails; its model is read when it is needed."""
        manifest = self._folder.manifest(head)
        self._placed, self._entries = self._read(manifest)
        self._head, self._manifest = head, manifest
        self._model: Any = None

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
        manifests = self._manifests()
        return [{"version": one.number, "made": one.made, "at": one.at, **one.record} for one in manifests]

    def snapshot(self, version: int | None = None) -> Snapshot:
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
        names = tuple(self._names())
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
            self._model = self._stored_model(self._manifest)
        return self._model

    def _fit_rows(self) -> Placed:
        """Return the rows of the last fit, in its order, at the places of the fit."""
        return decode_places(self._folder.object(self._manifest.pieces[0]))

    def estimator(self) -> Any:
        """Return an unfitted estimator as that of the last fit, which knows how its rows were read and prepared."""
        return load(self._folder.object(self._manifest.estimator))

    def _stored_model(self, manifest: Manifest) -> Any:
        """Return the model of a version; its neighbors are searched again if their table was deleted."""
        fitted = decode_places(self._folder.object(manifest.pieces[0]))
        model = load(self._folder.object(manifest.estimator))
        kept, table = kept_attributes(model), read_table(self._folder, manifest.table)
        X = read_vectors(self._chunk_paths(manifest), fitted.row, manifest.dtype)
        made = stored_map(model, X, zoomed(fitted.places, manifest.zoom), table)
        vars(made).update(kept)
        return made

    def diff(self, before: int, after: int | None = None) -> Difference:
        """Compare two versions: rows that came, went and moved, and what became of the areas.

        Parameters
        ----------
        before : int
        after : int, optional
            By default the newest version.
        """
        old, new = self.snapshot(before), self.snapshot(after)
        position = shared_rows(old.ids.tolist(), new.ids.tolist())
        match = match_areas(old.labels, new.labels, position, old.names, new.names)
        return Difference(old, new, match, position, (self.columns(old.version), self.columns(new.version)))

    def drift(self, since: int | None = None, label: str | None = None, **options: Any) -> Drift:
        """Measure how rows that came after a version differ from its rows, per area and as a whole.

        Parameters
        ----------
        since : int, optional
            A version; by default that of the last fit.
        label : str, optional
            A column of classes whose shares are compared too.
        **options
            ``resamples`` and ``seed`` of :func:`vicinal.atlas.drift.measure_drift`.
        """
        earlier = self._fit_rows().row if since is None else self.snapshot(since).row
        old = np.isin(self._placed.row, earlier)
        if old.all() or not old.any():
            raise ValueError("drift needs rows of the earlier version and rows that came later")
        labels = None
        if label is not None:
            columns = self.columns()
            if label not in columns.columns:
                raise ValueError(f"label must be one of the columns {columns.columns}, got {label!r}")
            values = columns[label].to_numpy()
            labels = values[old], values[~old]
        X, data = self.rows(), self.model.map_.data
        areas, kwds = (self.labels[old], self.labels[~old]), {"metric": data.metric, "metric_kwds": data.metric_kwds}
        return measure_drift(X[old], X[~old], areas, self._names(), labels, **kwds, **options)

    def export(self, path: str | os.PathLike[str], version: int | None = None) -> None:
        """Write a version to a file, by its name.

        A ``.csv`` or ``.parquet`` file has ids, coordinates, areas, territory and the further columns. A ``.vicinal``
        file is the fitted model of the newest version: it has the rows of the last fit, in the scale of its layout. An
        ``.html`` file is a page.
        """
        write_version(self, Path(path), version)

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
            Further columns of the rows. Without them, rows that were there before keep theirs.
        deleted : sequence, optional
            Ids of rows that go. Older versions keep them: :meth:`forget` removes them from there too.
        at : datetime, optional
            When the rows came; by default now.

        Returns
        -------
        dict
            ``rows`` of the new version, and how many were ``added``, ``skipped``, ``changed`` (they moved),
            ``described`` (only their further columns changed), ``deleted`` and put into ``new_territory``. If nothing
            changes there is no new version.
        """
        with self._folder.writing():
            self.refresh()
            X = self.model.check_new_rows(_dense(rows))
            given = self._next_ids(len(X)) if ids is None else check_ids(ids, len(X))
            gone = self._positions(deleted, "deleted")
            frame = None if columns is None else as_columns(columns, len(X))
            if len(gone) and len(set(self.ids[gone].tolist()) & set(given.tolist())):
                both = next(iter(set(self.ids[gone].tolist()) & set(given.tolist())))
                raise ValueError(f"deleted has {both!r}, which is also an id of the new rows")
            return self._append(X, given, frame, gone, _time(at))

    def _append(
        self, X: NDArray[Any], ids: NDArray[Any], frame: pl.DataFrame | None, gone: NDArray[np.int64], when: str
    ) -> dict[str, Any]:
        known = self._find(ids)
        there = known >= 0
        if frame is None:
            frame, note = self._columns_of(known), np.where(there, self._entries.note[known], 0).astype(np.uint64)
        else:
            note = notes(frame, len(X))
        entries = Entries(np.zeros(len(X), dtype=np.int64), ids, hash_rows(X), note)
        same = there & (self._entries.key[known] == entries.key)
        skipped = same & (self._entries.note[known] == entries.note)
        stored = np.flatnonzero(~skipped)
        manifest, record = (
            self._manifest,
            {
                "added": int((~there).sum()),
                "skipped": int(skipped.sum()),
                "changed": int((there & ~same).sum()),
                "described": int((same & ~skipped).sum()),
                "deleted": len(gone),
            },
        )
        if not len(stored) and not len(gone):
            return {"rows": len(self._placed), **record, "new_territory": 0}
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
        self._publish(following, placed, self._model)
        return following.record

    def _columns_of(self, known: NDArray[np.int64]) -> pl.DataFrame:
        """Return the further columns of rows that were there before, by their positions; nothing for others (-1)."""
        there = known >= 0
        old = read_columns(self._chunk_paths(self._manifest), self._placed.row[known[there]])
        if not old.width or not there.any():
            return as_columns(None, len(known))
        line = np.full(len(known), None, dtype=object)
        line[there] = range(int(there.sum()))
        return old.select(require_polars().all().gather(line.tolist()))

    def _place(self, X: NDArray[Any], numbers: NDArray[np.int64], left: NDArray[np.bool_]) -> Placed:
        fit, held = self._fit_rows(), self._territory_rows(left)
        since = int((~np.isin(self._placed.row[left], fit.row)).sum()) + len(X)
        everyone = self.embedding[left]
        return place_batch(
            self.model.map_, X, numbers,
            fit=fit, zoom=self._manifest.zoom, held=held, everyone=everyone, since=since,
        )  # fmt: skip

    def _territory_rows(self, left: NDArray[np.bool_]) -> Held:
        """Return the rows of new territory that stay."""
        which = np.flatnonzero((self._placed.territory != INSIDE) & left)
        width = self.model.n_features_in_
        X = self._values(which) if len(which) else np.empty((0, width), dtype=self._manifest.dtype)
        return Held(X, self.embedding[which], self._placed.territory[which])

    def _publish(self, manifest: Manifest, placed: Placed, model: Any) -> None:
        """Make a manifest the newest version, and its rows those of this object."""
        head = self._folder.add(self._head, manifest)
        entries = read_entries(self._chunk_paths(manifest)).of(placed.row)
        self._head, self._manifest, self._placed, self._entries = head, manifest, placed, entries
        self._model = model

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
            raise ValueError(
                f"{name} has {given.tolist()[int(np.argmin(found))]!r}, which no row of the atlas has as its id"
            )
        return found

    def _next_ids(self, n: int) -> NDArray[Any]:
        if self.ids.dtype == object and len(self.ids):
            raise ValueError("ids must be given: those of the atlas are texts")
        return int(self.ids.max(initial=-1)) + 1 + np.arange(n)

    def refit(self, loyalty: float = LOYALTY, *, fresh: bool = False, at: datetime | None = None) -> dict[str, Any]:
        """Lay all rows out again such that people recognize the map; return what moved.

        Areas keep their names while most of their rows stay together.

        Parameters
        ----------
        loyalty : float, default 0.2
            How strongly rows are pulled toward their old places; 0 for no pull.
        fresh : bool, default False
            Whether the layout starts anew instead of from the published map. It is turned, mirrored and moved to match
            the published map in any case.
        at : datetime, optional
            When; by default now.

        Returns
        -------
        dict
            ``loss`` is J, the loss that sampling lowers, ``loss_without_loyalty`` that of the same layout without the
            pull; ``median_move`` is a share of the width of the map; ``areas`` tells for each area how far its rows
            moved and what changed around them; ``changes`` lists areas that were born, split, merged or gone.
        """
        if not (np.isfinite(loyalty) and loyalty >= 0):
            raise ValueError(f"loyalty must be a number from 0 on, got {loyalty!r}")
        with self._folder.writing():
            self.refresh()
            manifest, placed, model = self._manifest, self._placed, self.estimator()
            X, was = self.rows(), self._known_neighbors()
            laid_out = self._lay_out_again(model, X, None if fresh else loyalty)
            return self._publish_fit(model, laid_out, placed.row, was, manifest.chunks, "refit", _time(at))

    def migrate(
        self, rows: Any, ids: Any, *, estimator: Any = None, loyalty: float = LOYALTY, at: datetime | None = None
    ) -> Migration:
        """Lay the same rows out by other values, such as those of a new embedding model, onto the old map.

        Parameters
        ----------
        rows : array [rows, columns]
            New values for every row of the atlas, in any order. The number of columns may differ.
        ids : array [rows]
            Their ids, the same as those of the atlas.
        estimator : UMAP, DensMAP or LargeVis, optional
            How to fit the new values; by default as the old ones.
        loyalty, at
            As in :meth:`refit`.
        """
        with self._folder.writing():
            self.refresh()
            X = _dense(rows)
            found = self._positions(check_ids(ids, X.shape[0]), "ids")
            if len(found) < len(self.ids):
                missing = np.setdiff1d(np.arange(len(self.ids)), found)
                first = self.ids.tolist()[int(missing[0])]
                raise ValueError(f"ids misses {len(missing)} rows of the atlas, the first {first!r}")
            X, when = X[np.argsort(found)], _time(at)
            model = self.estimator() if estimator is None else checked_estimator(estimator)
            if estimator is None:
                vars(model).pop("feature_names_in_", None)
            was = neighbor_rows(self._all_rows_model(), self._placed.row)
            before, ids_before = self._placed, self.ids
            laid_out = self._lay_out_again(model, X, loyalty)
            X = model.map_.data.rows
            frame, numbers = self.columns(), self._manifest.next_row + np.arange(len(X))
            entries = Entries(numbers, ids_before, hash_rows(X), self._entries.note)
            chunk = Chunk(self._folder.put(encode_rows(entries, X, frame), ".parquet"), len(X), when)
            kept = kept_neighbors(was, neighbor_rows(model.map_, before.row))
            share = round(float(kept.mean()), 5)
            self._publish_fit(model, laid_out, numbers, was, (chunk,), "migrate", when, kept_neighbors=share)
            away = moved_shares(before, replace(self._placed, row=before.row))[1]
            return Migration(ids_before, kept, away, self._manifest.record)

    def _all_rows_model(self) -> Any:
        """Return the neighbors of all rows by their old values: those of the last fit if it had all rows."""
        if np.array_equal(self._fit_rows().row, self._placed.row):
            return self.model.map_
        return stored_map(self.estimator(), self.rows(), self.embedding, None).map_

    def _known_neighbors(self) -> NDArray[np.int64]:
        """Return the neighbors of each row in the last fit, -1 for rows that it did not have."""
        numbers = self._fit_rows().row
        table = neighbor_rows(self.model.map_, numbers)
        return lines_of(table, numbers, self._placed.row)

    def _lay_out_again(self, model: Any, X: Any, loyalty: float | None) -> Refit:
        """Fit a model to new or old values of all rows, from their places."""
        start, published = zoomed(self.embedding, self._manifest.zoom), self.embedding.copy()
        published[self.new_territory] = np.nan
        kept = kept_attributes(model)
        made = refit(model, X, start, published, loyalty)
        vars(model).update(kept)
        return made

    def _publish_fit(
        self,
        model: Any,
        laid_out: Refit,
        numbers: NDArray[np.int64],
        was: NDArray[np.int64],
        chunks: tuple[Chunk, ...],
        made: str,
        when: str,
        **record: Any,
    ) -> dict[str, Any]:
        """Make the fit of all rows the newest version: areas with the names that they had, and what moved."""
        before, manifest = self._placed, self._manifest
        labels, areas, resolution = find_areas(model, self.columns(), manifest.resolution, laid_out.zoom)
        match = match_areas(
            before.area, labels, np.arange(len(before)), self._names(), [str(one["name"]) for one in areas]
        )
        areas = tuple({**one, "name": name} for one, name in zip(areas, match.names, strict=True))
        placed = placed_fit(model, laid_out.places, numbers, labels)
        now = neighbor_rows(model.map_, before.row)
        moved, by_area = describe_moves(before, replace(placed, row=before.row), was, now, match.names)
        told = [str(one) for one in match.changes if one.kind not in (KEPT, GREW, SHRANK)]
        following = child(
            manifest, self._head, made, when,
            estimator=put_estimator(self._folder, model),
            dtype=model.map_.data.rows.dtype.name,
            next_row=max(manifest.next_row, int(numbers.max()) + 1),
            chunks=chunks,
            pieces=(self._folder.put(encode_places(placed), ".parquet"),),
            table=put_table(self._folder, model.map_.neighbors),
            areas=areas,
            resolution=resolution,
            zoom=laid_out.zoom,
            record={
                "rows": len(placed), **laid_out.losses, **record, "median_move": moved,
                "names_kept": round(match.kept, 5), "areas": by_area, "changes": told,
            },
        )  # fmt: skip
        self._publish(following, placed, model)
        return following.record

    def rollback(self, version: int, at: datetime | None = None) -> int:
        """Make a new version with the content of an old one; return its number."""
        with self._folder.writing():
            self.refresh()
            old = self._folder.manifest(self._head, version)
            record = {"rows": len(self._read(old)[0]), "of": old.number}
            following = replace(
                old, number=self._head.next_version, parent=self.version, made="rollback", at=_time(at),
                next_row=self._manifest.next_row, record=record,
            )  # fmt: skip
            if not self._folder.has(old.table):
                table = self._stored_model(following).map_.neighbors
                following = replace(following, table=put_table(self._folder, table))
            self._folder.add(self._head, following)
            self._load(self._folder.head())
            return self.version

    def forget(
        self,
        ids: Any = None,
        *,
        older_than: datetime | None = None,
        keep_last: int | None = None,
        at: datetime | None = None,
    ) -> dict[str, Any]:
        """Remove rows from the map, its model, its index and all files, also from those of old versions.

        The places of all other rows stay where they are. Versions of which no row is left are removed.

        Parameters
        ----------
        ids : sequence, optional
            Ids of the rows, with everything that was ever stored under them.
        older_than : datetime, optional
            Rows that came before this time.
        keep_last : int, optional
            All rows but this number of the latest ones.
        at : datetime, optional
            When; by default now.

        Notes
        -----
        When the method returns, the files are gone. If the process is killed before, either nothing has changed or the
        next change removes the files. What the rows contributed to others stays: places of other rows, names of areas,
        and what steps of preparation learned.
        """
        given = [
            name
            for name, one in {"ids": ids, "older_than": older_than, "keep_last": keep_last}.items()
            if one is not None
        ]
        if len(given) != 1:
            raise ValueError(f"forget takes one of ids, older_than and keep_last, got {' and '.join(given) or 'none'}")
        with self._folder.writing():
            self.refresh()
            manifests, limit = self._manifests(), None if older_than is None else _time(older_than)
            numbers = rows_to_forget(self._folder, manifests, self._placed, ids=ids, before=limit, keep_last=keep_last)
            left = self._fit_rows().row
            if np.isin(left, numbers).sum() > len(left) - LEAST_FIT_ROWS:
                raise ValueError(
                    "nothing would be left of the last fit: refit before, so that it has the rows that stay"
                )
            return self._forget(numbers, _time(at))

    def _forget(self, numbers: NDArray[np.int64], when: str) -> dict[str, Any]:
        manifests = without(self._folder, self._manifests(), numbers)
        newest, gone = manifests[-1], int(np.isin(self._placed.row, numbers).sum())
        record = {"rows": len(self._placed) - gone, "forgotten": gone, "stored_rows": len(numbers)}
        following = child(newest, self._head, "forget", when, record=record)
        if following.table is None:
            table = self._stored_model(following).map_.neighbors
            following = replace(following, table=put_table(self._folder, table))
        self._folder.rewrite(self._head, [*manifests, following])
        self._load(self._folder.head())
        return record

    def _manifests(self) -> list[Manifest]:
        return [self._folder.manifest(self._head, number) for number in sorted(self._head.versions)]

    def _names(self) -> list[str]:
        return [str(one["name"]) for one in self._manifest.areas]

    def _values(self, which: NDArray[np.int64]) -> NDArray[Any]:
        return read_vectors(self._chunk_paths(self._manifest), self._placed.row[which], self._manifest.dtype)


@dataclass(frozen=True)
class Migration:
    """What another model changed: one entry per row of the atlas in each array.

    Attributes
    ----------
    ids : array
    kept_neighbors : array
        Share of the neighbors of each row that it had by its old values, 0 to 1.
    moved : array
        How far each row moved, as a share of the width of the map.
    record : dict
        The record of the version.
    """

    ids: NDArray[Any]
    kept_neighbors: NDArray[np.float64]
    moved: NDArray[np.float64]
    record: dict[str, Any]


def _dense(rows: Any) -> Any:
    """Refuse rows that an atlas cannot store."""
    if is_dask(rows) or is_sparse(rows):
        raise TypeError(f"rows must be a dense array or data frame, got {type(rows).__name__}")
    return rows if hasattr(rows, "shape") else np.asarray(rows)


def _time(at: datetime | None) -> str:
    """Return a time as text in UTC, which sorts as times do; a time without a zone is in UTC."""
    if at is None:
        at = datetime.now(UTC)
    if not isinstance(at, datetime):
        raise TypeError(f"a time must be a datetime, got {at!r}")
    moment = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return moment.isoformat(timespec="microseconds")


def _unfinished(folder: Folder) -> bool:
    """Return whether a folder has only what a killed creation left."""
    return all(one.name in (OBJECTS, LOCK) or one.name.startswith(f".{HEAD}.") for one in folder.path.iterdir())
