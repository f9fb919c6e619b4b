"""Where the tasks of a fit run.

Tasks are Dask's: on the current ``distributed.Client``, or on Dask's threads without one. A result is small enough to
travel between workers, or it is kept (:mod:`vicinal.cluster.store`). Tasks are pure functions with deterministic
results, so a task of a lost worker is simply computed again by Dask.
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
from functools import partial
from itertools import pairwise
from typing import Any

import dask
from dask.delayed import delayed
from joblib import effective_n_jobs

from vicinal.cluster.store import Array, Piece, Store, Stored

M_MMAP_THRESHOLD, ARRAY_BYTES = -3, 1 << 18  # a parameter of mallopt, and its value
LOOK_SECONDS = 2.0  # between two looks for lost workers
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


class ScratchDirectory:
    """A directory that is removed when this object is gone. Other processes receive its path only."""

    def __init__(self, parent: str | None) -> None:
        self.path = tempfile.mkdtemp(prefix="vicinal-", dir=parent or dask.config.get("temporary-directory", None))
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

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
    store: Store
    held: ScratchDirectory | None
    memory: float | None = None
    one_machine: bool = True

    @classmethod
    def current(cls, n_jobs: int, memory: float | None = None) -> Engine:
        """Return the engine of the current client, or of Dask's threads; ``memory`` limits all processes together."""
        client = current_client()
        if client is None:
            here = ScratchDirectory(None)
            if memory is not None:
                # Otherwise glibc raises the size from which it gives freed arrays back to that of the largest one, and
                # each thread keeps the memory of the arrays below: 366 instead of 313 MB for a fit on 12 threads.
                _call_glibc("mallopt", M_MMAP_THRESHOLD, ARRAY_BYTES)
            jobs = n_jobs if n_jobs > 0 else int(effective_n_jobs(n_jobs))
            return cls(None, [""], jobs, 1, Store(here.path), here, memory)
        threads = client.nthreads()
        if not threads:
            raise RuntimeError(f"the Dask client {client} has no workers")
        local = all(_host(address) in LOCAL_HOSTS or address.startswith("inproc") for address in threads)
        chosen = dask.config.get("vicinal.directory", None)
        held = ScratchDirectory(chosen) if local or chosen is not None else None
        store = Store(None if held is None else held.path)
        return cls(client, sorted(threads), min(threads.values()), 1, store, held, memory, local)

    def reachable(self, parts: Any) -> Any:
        """Return parts of a result, or raise RuntimeError if their workers are gone."""
        if self.client is not None and self.client.status not in ("running", "connecting"):
            raise RuntimeError(
                "the Dask client of this fit is closed, and with it the parts of the model: save the model or compute "
                "embedding_ before the client closes"
            )
        return parts

    @contextmanager
    def discarded_on_error(self) -> Iterator[None]:
        """Remove all files if anything is raised: a failed or interrupted fit leaves nothing half-written."""
        try:
            yield
        except BaseException as error:
            if self.held is not None:
                self.held.remove()
            reason = lost_work(error)
            if reason:
                raise RuntimeError(reason) from error
            raise

    def run(self, tasks: Sequence[Any]) -> list[Any]:
        """Compute tasks; their results stay where they were made. Raise the first error."""
        if self.client is None:
            made = list(dask.persist(*tasks, scheduler="threads", num_workers=self.concurrent, optimize_graph=False))
            self._tidy()
            return made
        kept = list(self.client.persist(list(tasks), optimize_graph=False))
        self._finish(kept)
        return kept

    def run_at_home(self, tasks: Sequence[Any]) -> list[Any] | None:
        """Compute tasks as ``run`` does; tasks whose keys end in "-" and a number go to the worker of this number.

        Those of a lost worker go to another one. Return None if all workers were lost at the same time and others have
        come: Dask does not give such tasks to these. Without a client, tasks run in this thread.
        """
        if self.client is None:
            return list(dask.persist(*tasks, scheduler="sync", optimize_graph=False))
        with dask.annotate(workers=partial(_home, workers=self.workers), allow_other_workers=True):
            kept = list(self.client.persist(list(tasks), optimize_graph=False))
        return kept if self._finish(kept, self.workers) else None

    def _finish(self, results: list[Any], homes: Sequence[str] = ()) -> bool:
        """Wait for results and raise the first error; return False if all ``homes`` were lost and others have come."""
        from distributed import futures_of, wait

        futures = futures_of(results)
        # A result is lost with its worker, and then computed again: what was finished may have to be waited for.
        while any(future.status != "finished" for future in futures):
            with suppress(TimeoutError):
                wait(futures, timeout=LOOK_SECONDS)
            for future in futures:
                if future.status in ("error", "cancelled"):
                    future.result()
            present = set(self.client.nthreads()) if homes else set()
            if present and present.isdisjoint(homes):
                return False
        return True

    def values(self, tasks: Sequence[Any]) -> list[Any]:
        """Compute tasks and return their results, which should be small; what is a value stays as it is."""
        if not any(dask.is_dask_collection(one) for one in tasks):
            return list(tasks)
        if self.client is not None:
            return list(self.client.gather(self.client.compute(list(tasks))))
        made = list(dask.compute(*tasks, scheduler="threads", num_workers=self.concurrent))
        self._tidy()
        return made

    def gathered_at_home(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call functions, given with their arguments, each on the worker of its number; return their results.

        The call of a lost worker goes to another one. Dask finds none for it if all workers were lost at the same time,
        even when others have come: the calls are then made again, wherever they may run.
        """
        client, homes = self.client, self.workers
        futures = [
            client.submit(*call, workers=[home], allow_other_workers=True, pure=False)
            for call, home in zip(calls, homes, strict=False)
        ]
        if not self._finish(futures, homes):
            futures = [client.submit(*call, pure=False) for call in calls]
        return list(client.gather(futures))

    def keep(self, tasks: Sequence[Any]) -> list[Any]:
        """Compute tasks whose results are kept by the store.

        Handles of files are returned as values: whoever knows them does not need the worker that wrote the files.
        """
        return self.run(tasks) if self.store.directory is None else self.values(tasks)

    def put(self, name: str, arrays: dict[str, Array]) -> Any:
        """Keep arrays of this process for many tasks; through the scheduler only if there is no common directory."""
        return self.share(Stored(arrays)) if self.store.directory is None else self.store.keep(name, arrays)

    @property
    def concurrent(self) -> int:
        """The number of tasks that a process runs at the same time."""
        return max(1, self.threads // self.task_jobs)

    def _tidy(self) -> None:
        """Give freed memory back to the system, if memory is limited."""
        if self.memory is not None:
            _call_glibc("malloc_trim", 0)

    def spread(self, items: Sequence[Any], count: int | None = None) -> list[list[Any]]:
        """Divide consecutive items into ``count`` groups, by default one per worker, none of them empty."""
        count = min(len(self.workers) if count is None else count, len(items))
        bounds = [len(items) * group // count for group in range(count + 1)]
        return [list(items[first:stop]) for first, stop in pairwise(bounds)]

    def batches(self, items: Sequence[Any]) -> list[list[Any]]:
        """Divide consecutive items into groups for tasks that are light: two for each of the tasks at a time."""
        return self.spread(items, 2 * self.concurrent * len(self.workers))

    @property
    def alone_jobs(self) -> int:
        """The number of threads of a task that runs alone: those of all workers of the machine."""
        return self.threads * (len(self.workers) if self.one_machine else 1)

    def share(self, value: Any) -> Any:
        """Return a value as an argument of many tasks, which is sent once."""
        return delayed(value, name=new_key("shared"), traverse=False)

    def share_all(self, items: Sequence[Any]) -> Any:
        """Return a list as an argument of many tasks: values are sent once, results of tasks stay where they are."""
        items = list(items)
        return items if any(dask.is_dask_collection(one) for one in items) else self.share(items)

    def columns(self, makers: Sequence[Any]) -> Callable[[int], Any]:
        """Return a function that gives the argument of task i for piece i of what each maker kept (:func:`picked`)."""
        if self.store.directory is None:
            return lambda at: [maker[at] for maker in makers]
        shared = self.share(list(makers))
        return lambda at: shared


def lost_work(error: BaseException) -> str:
    """Return why Dask lost a part of a fit, in one sentence, or nothing for any other error."""
    kind = type(error).__name__
    if kind == "KilledWorker":
        return (
            "the Dask workers that computed a part of the fit were lost, most likely because it took more memory than "
            "they may use: make the chunks smaller, use fewer threads per worker, or raise the memory of the workers"
        )
    if kind in ("CancelledError", "FutureCancelledError"):
        return "Dask canceled the fit, because its scheduler was restarted or its client was closed: fit again"
    return ""


def _home(key: Any, workers: list[str]) -> list[str]:
    """Return the worker of a task, if its key ends in a number; otherwise all workers."""
    last = str(key).rsplit("-", 1)[-1]
    return [workers[int(last) % len(workers)]] if last.isdigit() else workers


def picked(made: Sequence[Any], at: int) -> list[Piece]:
    """Return the pieces that ``Engine.columns`` names, within the task that takes them."""
    return [one if isinstance(one, Piece) else one[at] for one in made]


def task(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function that makes a task of every call; ``name`` is what Dask's dashboard shows."""

    def make(*args: Any) -> Any:
        return delayed(function, pure=False)(*args, dask_key_name=new_key(name))

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


def _call_glibc(function: str, *arguments: int) -> None:
    """Call a function of the allocator if it is glibc's."""
    with suppress(AttributeError, OSError):
        getattr(ctypes.CDLL(None), function)(*arguments)


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
