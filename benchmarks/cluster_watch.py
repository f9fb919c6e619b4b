"""What a fit on workers takes: memory by process, by stage and by task, and bytes through the scheduler."""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
import psutil


class MemoryWatch:
    """The most memory (resident size) that this process and its children had together, and the largest child.

    Sizes are looked at ten times a second. Of this process, the kernel's own record of the largest size is taken.
    """

    def __enter__(self) -> MemoryWatch:
        self._process, self.total, self.worker, self._done = psutil.Process(), 0, 0, threading.Event()
        self.begin, self.seen = time.perf_counter(), []
        Path("/proc/self/clear_refs").write_text("5")  # sets the record back
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()
        self.total = max(self.total, highest_bytes())

    def _watch(self) -> None:
        while not self._done.wait(0.1):
            sizes = [self._process.memory_info().rss]
            for child in self._process.children(recursive=True):
                try:
                    sizes.append(child.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue
            largest = max(sizes[1:], default=sizes[0])
            self.total, self.worker = max(self.total, sum(sizes)), max(self.worker, largest)
            self.seen.append((time.perf_counter() - self.begin, largest))

    def by_stage(self, seconds: dict[str, float]) -> dict[str, int]:
        """Return the largest process of each stage, given how long the stages took one after the other."""
        ends = np.cumsum(list(seconds.values()))
        stage = np.searchsorted(ends, [at for at, _ in self.seen])
        return {
            name: max((size for (_, size), of in zip(self.seen, stage, strict=True) if of == number), default=0)
            for number, name in enumerate(seconds)
        }


def highest_bytes() -> int:
    """Return the largest resident size of this process since it was set back."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return 1024 * int(line.split()[1])


class SchedulerTraffic:
    """Bytes that the scheduler, which runs in this process, has written and read."""

    bytes = 0
    scheduler = ""
    workers: tuple[str, ...] = ()

    def watch(self) -> None:
        from distributed.comm import tcp

        write, read, unpack = tcp.TCP.write, tcp.TCP.read, tcp.from_frames
        reading: ContextVar[Any] = ContextVar("reading")

        async def counted_write(comm: Any, *args: Any, **kwargs: Any) -> Any:
            count = await write(comm, *args, **kwargs)
            self.bytes += (count or 0) * self._counts(comm)
            return count

        async def marked_read(comm: Any, *args: Any, **kwargs: Any) -> Any:
            reading.set(comm)
            return await read(comm, *args, **kwargs)

        async def counted_unpack(frames: Any, *args: Any, **kwargs: Any) -> Any:
            self.bytes += sum(memoryview(frame).nbytes for frame in frames) * self._counts(reading.get())
            return await unpack(frames, *args, **kwargs)

        tcp.TCP.write, tcp.TCP.read, tcp.from_frames = counted_write, marked_read, counted_unpack

    def _counts(self, comm: Any) -> bool:
        """Tell whether a connection is one of the scheduler: its server's, or one that it opened to a worker."""
        return comm.local_address == self.scheduler or comm.peer_address in self.workers
