"""A GPU whose memory runs out, with a stand-in for CuPy: what failed is freed, and the error is one of Python."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from vicinal.backends.cuda.device import CudaDevice, Need, require_room
from vicinal.neighbors.rows import explain_out_of_memory


class Full(MemoryError):
    """CuPy's OutOfMemoryError."""


class Pool:
    """A pool with a limit that keeps what was freed, and does not give it back by itself."""

    def __init__(self, limit: int) -> None:
        self.limit, self.used, self.kept = limit, 0, 0

    def malloc(self, size: int) -> Array:
        if self.used + self.kept + size > self.limit:
            raise Full(f"allocating {size} bytes")
        self.used += size
        return Array(self, size)

    def free_all_blocks(self) -> None:
        self.kept = 0

    def free_bytes(self) -> int:
        return self.kept

    def used_bytes(self) -> int:
        return self.used

    def get_limit(self) -> int:
        return self.limit


class Array:
    """Memory of the pool, which is kept when it is no longer used."""

    def __init__(self, pool: Pool, size: int) -> None:
        self.pool, self.size = pool, size

    def __del__(self) -> None:
        self.pool.used -= self.size
        self.pool.kept += self.size


@pytest.fixture(autouse=True)
def few_objects() -> Iterator[None]:
    """Leave out of collections what other tests hold, which would make them slow."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def device() -> CudaDevice:
    """Return a device with 100 bytes."""
    pool = Pool(100)
    current = [pool.malloc]

    @contextlib.contextmanager
    def using_allocator(allocator: Any) -> Any:
        current.append(allocator)
        yield
        current.pop()

    cuda = SimpleNamespace(
        Device=lambda number: contextlib.nullcontext(),
        get_allocator=lambda: current[-1],
        using_allocator=using_allocator,
        memory=SimpleNamespace(OutOfMemoryError=Full),
        runtime=SimpleNamespace(memGetInfo=lambda: (1000, 1000)),
    )
    device = CudaDevice.__new__(CudaDevice)
    device.xp = SimpleNamespace(
        cuda=cuda, get_default_memory_pool=lambda: pool, empty=lambda size: current[-1](size), current=current
    )
    device.number, device.name = 0, "cuda:0"
    return device


def test_unused_blocks_are_given_back_at_a_limit(device: CudaDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    # Python's collector is slow, and not needed for this.
    monkeypatch.setattr(CudaDevice, "collect", lambda self: pytest.fail("the collector was called"))
    with device.active():
        for size in (40, 70, 90):
            device.xp.empty(size)
    assert device.free_bytes() == 100


def test_arrays_that_refer_to_each_other_are_freed_when_memory_is_needed(device: CudaDevice) -> None:
    gc.disable()
    try:
        with device.active():
            array = device.xp.empty(60)
            array.itself = array
            del array
            assert device.xp.empty(80).size == 80
            array = device.xp.empty(60)
            array.itself = array
        del array
        require_room(device, 10, Need(0, 0, streamed=True, fit=False))
    finally:
        gc.enable()


def failing(device: CudaDevice, watched: list[Any]) -> None:
    with device.active():
        held = device.xp.empty(60)
        watched.append(weakref.ref(held))
        deeper(device)


def deeper(device: CudaDevice) -> None:
    with device.active():
        more = device.xp.empty(30)
        device.xp.empty(50)
        del more


def test_what_failed_is_freed_although_the_error_is_kept(device: CudaDevice) -> None:
    watched: list[Any] = []
    message = r"^the memory of cuda:0 is full \(allocating 50 bytes\)"
    with pytest.raises(MemoryError, match=message) as caught, device.active():
        failing(device, watched)
    assert not isinstance(caught.value, Full)
    assert caught.value.__cause__ is None
    assert watched[0]() is None
    assert device.free_bytes() == 100
    with device.active():
        assert device.xp.empty(100).size == 100


def test_allocator_of_the_user_stays(device: CudaDevice) -> None:
    def own(size: int) -> str:
        return f"{size} bytes of the user"

    with device.xp.cuda.using_allocator(own), device.active():
        assert device.xp.empty(5) == "5 bytes of the user"


def test_error_names_how_many_rows_would_fit(device: CudaDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = SimpleNamespace(place=device, shape=(1000, 4), streamed=False, held=lambda name: None)
    backend = SimpleNamespace(need=lambda *_, **__: Need(4), rows_that_fit=lambda need: 900)
    monkeypatch.setattr("vicinal.neighbors.rows.backend_of", lambda place: backend)
    with pytest.raises(MemoryError, match=r"is full .*; about 800 of 1000 rows would fit"), explain_out_of_memory(rows):
        failing(device, [])
    with pytest.raises(MemoryError, match=r"^of the host$"), explain_out_of_memory(SimpleNamespace(place=None)):
        raise MemoryError("of the host")
