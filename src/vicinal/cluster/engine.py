"""Where the tasks of a fit run, and where their results lie.

Tasks are Dask's: on the current ``distributed.Client``, or on Dask's threads without one. A result is small enough to
travel between workers, or it is kept: as files in a directory that all workers can reach, or in the memory of the
worker that made it. Tasks are pure functions with deterministic results, so a task of a lost worker is simply computed
again by Dask.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from vicinal.neighbors.metrics import Rows, is_sparse

Array = NDArray[Any]
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Kept:
    """Named arrays of equal length that a task has made: in memory, or in the files ``path``.name.npy."""

    arrays: dict[str, Array] | None
    path: str | None = None

    def load(self, name: str, first: int = 0, stop: int | None = None) -> Array:
        """Return the entries ``first : stop`` of an array; only these are read."""
        if self.arrays is not None:
            return self.arrays[name][first:stop]
        file = np.load(f"{self.path}.{name}.npy", mmap_mode="r")
        return np.array(file[first:stop])

    def load_rows(self, first: int, stop: int) -> Rows:
        """Return rows that were kept as :func:`rows_as_arrays`."""
        names = self.arrays if self.arrays is not None else {}
        if "values" in names or (self.path is not None and os.path.exists(f"{self.path}.values.npy")):
            return self.load("values", first, stop)
        from scipy.sparse import csr_matrix

        indptr = self.load("indptr", first, stop + 1)
        begin, end = int(indptr[0]), int(indptr[-1])
        parts = (self.load("data", begin, end), self.load("indices", begin, end), indptr - begin)
        return csr_matrix(parts, shape=(stop - first, int(self.load("columns")[0])))


@dataclass(frozen=True)
class Piece:
    """Some consecutive entries of what a task kept, for one other task."""

    kept: Kept
    first: int
    stop: int

    def load(self, name: str) -> Array:
        return self.kept.load(name, self.first, self.stop)

    def load_rows(self) -> Rows:
        return self.kept.load_rows(self.first, self.stop)


def rows_as_arrays(rows: Rows) -> dict[str, Array]:
    """Return rows, dense or sparse, as named arrays."""
    if not is_sparse(rows):
        return {"values": rows}
    columns = np.array([rows.shape[1]])
    return {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr.astype(np.int64), "columns": columns}


@dataclass(frozen=True)
class Shelf:
    """Keeps results of tasks: in ``directory``, or in the memory of the worker if that is None."""

    directory: str | None = None

    def keep(self, name: str, arrays: dict[str, Array]) -> Kept:
        """Keep arrays under a name that says what they are; writing the same twice does no harm."""
        if self.directory is None:
            return Kept({key: np.ascontiguousarray(array) for key, array in arrays.items()})
        path = os.path.join(self.directory, name)
        for key, array in arrays.items():
            self._write(f"{path}.{key}.npy", array)
        return Kept(None, path)

    def pieces(self, name: str, arrays: dict[str, Array], rows: Rows | None, bounds: Array) -> list[Piece]:
        """Keep arrays, and rows with them, for several tasks: task i gets the entries ``bounds[i] : bounds[i + 1]``."""
        spans = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
        if self.directory is None:  # each piece travels alone
            return [Piece(self.keep(name, _taken(arrays, rows, first, stop)), 0, stop - first) for first, stop in spans]
        kept = self.keep(name, arrays if rows is None else arrays | rows_as_arrays(rows))
        return [Piece(kept, first, stop) for first, stop in spans]

    def _write(self, path: str, array: Array) -> None:
        handle, unfinished = tempfile.mkstemp(dir=self.directory, suffix=".npy")
        try:
            with os.fdopen(handle, "wb") as file:
                np.save(file, np.ascontiguousarray(array))
            os.replace(unfinished, path)
        except OSError as error:
            Path(unfinished).unlink(missing_ok=True)
            raise OSError(error.errno, f"{path} could not be written: {error.strerror}") from error


def _taken(arrays: dict[str, Array], rows: Rows | None, first: int, stop: int) -> dict[str, Array]:
    taken = {key: array[first:stop].copy() for key, array in arrays.items()}
    return taken if rows is None else taken | rows_as_arrays(rows[first:stop].copy())


class ScratchDirectory:
    """A directory that is removed when this object is gone. Other processes receive its path only."""

    def __init__(self, parent: str | None) -> None:
        self.path = tempfile.mkdtemp(prefix="vicinal-", dir=parent or dask.config.get("temporary-directory", None))
        self._remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def remove(self) -> None:
        """Remove the directory at once."""
        self._remove()

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (self.path,)


@dataclass(frozen=True, eq=False)
class Engine:
    """The scheduler of a fit.

    ``workers`` are the addresses of the processes (one empty name without a client) and ``threads`` the threads of
    each. ``task_jobs`` is how many of them one of many tasks uses. ``held`` keeps the files of results: who refers to
    such files refers to it. ``one_machine`` says that the workers and this process have one file system.
    """

    client: Any
    workers: list[str]
    threads: int
    task_jobs: int
    shelf: Shelf
    held: ScratchDirectory | None
    memory: float | None = None
    one_machine: bool = True

    @classmethod
    def current(cls, n_jobs: int, memory: float | None = None) -> Engine:
        """Return the engine of the current client, or of Dask's threads; ``memory`` limits all processes together."""
        client = current_client()
        if client is None:
            here = ScratchDirectory(None)
            # With a limit, one task at a time uses all threads.
            return cls(None, [""], n_jobs, 1 if memory is None else n_jobs, Shelf(here.path), here, memory)
        threads = client.nthreads()
        if not threads:
            raise RuntimeError(f"the Dask client {client} has no workers")
        local = all(_host(address) in LOCAL_HOSTS or address.startswith("inproc") for address in threads)
        chosen = dask.config.get("vicinal.directory", None)
        held = ScratchDirectory(chosen) if local or chosen is not None else None
        shelf = Shelf(None if held is None else held.path)
        return cls(client, sorted(threads), min(threads.values()), 1, shelf, held, memory, local)

    @contextmanager
    def discarded_on_error(self) -> Iterator[None]:
        """Remove all files if anything is raised: a failed or interrupted fit leaves nothing half-written."""
        try:
            yield
        except BaseException:
            if self.held is not None:
                self.held.remove()
            raise

    def run(self, tasks: Sequence[Any]) -> list[Any]:
        """Compute tasks; their results stay where they were made. Raise the first error."""
        if self.client is None:
            concurrent = max(1, self.threads // self.task_jobs)
            made = list(dask.persist(*tasks, scheduler="threads", num_workers=concurrent, optimize_graph=False))
            if self.memory is not None:
                return_free_memory()
            return made
        from distributed import futures_of, wait

        kept = list(self.client.persist(list(tasks), optimize_graph=False))
        futures = futures_of(kept)
        # A result is lost with its worker, and then computed again: what was finished may have to be waited for.
        while any(future.status != "finished" for future in futures):
            wait(futures)
            for future in futures:
                if future.status in ("error", "cancelled"):
                    future.result()
        return kept

    def values(self, tasks: Sequence[Any]) -> list[Any]:
        """Compute tasks and return their results, which should be small."""
        if self.client is None:
            concurrent = max(1, self.threads // self.task_jobs)
            return list(dask.compute(*tasks, scheduler="threads", num_workers=concurrent))
        return list(self.client.gather(self.client.compute(list(tasks))))

    def spread(self, items: Sequence[Any]) -> list[list[Any]]:
        """Divide consecutive items into as many groups as there are workers, none of them empty."""
        count = min(len(self.workers), len(items))
        bounds = [len(items) * group // count for group in range(count + 1)]
        return [list(items[first:stop]) for first, stop in pairwise(bounds)]

    def share(self, value: Any) -> Any:
        """Return a value as an argument of many tasks, which is sent once."""
        return delayed(value, pure=True, traverse=False)

    def column(self, makers: Sequence[Any], at: int) -> list[Any]:
        """Return piece ``at`` of what each maker made, as arguments of one task (:func:`picked`)."""
        if self.shelf.directory is not None:
            return list(makers)
        return [maker[at] for maker in makers]


def picked(made: Sequence[Any], at: int) -> list[Any]:
    """Return the pieces that ``Engine.column`` names, within the task that takes them."""
    return [one[at] if isinstance(one, list) else one for one in made]


def task(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function that makes a task of every call; ``name`` is what Dask's dashboard shows."""

    def make(*args: Any, **kwargs: Any) -> Any:
        made = delayed(function, pure=False, traverse=True)(*args, **kwargs, dask_key_name=new_key(name))
        return made

    return make


def folded(made: Sequence[Any], join: Callable[[Any, Any], Any], name: str) -> Any:
    """Return the task that joins many results by two and two, so that no task takes more than two of them."""
    made = list(made)
    while len(made) > 1:
        pairs = [made[at : at + 2] for at in range(0, len(made), 2)]
        made = [task(join, name)(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return made[0]


def new_key(name: str) -> str:
    """Return a name that no other task has."""
    return f"{name}-{os.urandom(6).hex()}"


def return_free_memory() -> None:
    """Give freed memory back to the system, if the allocator is glibc's; otherwise the process keeps it."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def current_client() -> Any:
    """Return the current client, or None. Without distributed imported by the user, there is none."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        client = distributed.default_client()
    except ValueError:
        return None
    if client.asynchronous:
        raise RuntimeError("an asynchronous Dask client cannot run a fit, which waits for its results")
    return client


def _host(address: str) -> str:
    return address.split("://")[-1].rsplit(":", 1)[0].strip("[]")
