"""A GPU: its arrays (CuPy), its kernels, and products of matrices in half precision.

All other modules of this backend use a `Device` and its array module ``xp``, so that tests can run them on a device
that is made of NumPy and of kernels compiled for the host.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vicinal.backends.cuda import memory
from vicinal.backends.cuda.memory import Need
from vicinal.backends.cuda.sources import OPTIONS, cached_file, compile_options, kernel_source, write_atomically
from vicinal.backends.cuda.transfer import LEAST_BYTES, uploader

# An array of the device; CuPy has no type hints.
DeviceArray = Any
Kernel = Callable[..., None]
Defines = tuple[tuple[str, str], ...]

# Files of kernels, with their definitions, that most fits need; modules of this backend add theirs. They are compiled
# together.
USUAL_KERNELS: list[tuple[str, Defines]] = []

NULL = np.uint64(0)  # a pointer argument of a kernel that is not used
WARP = 32
MOST_WARPS = 4  # of a block whose warps work alone
SHARED_BYTES = 48 * 1024  # of a block, on every GPU


class DeviceError(RuntimeError):
    """A GPU was asked for, and there is none that can be used."""


class Device(Protocol):
    """What the backend needs of a device."""

    xp: Any
    name: str

    def kernel(self, source: str, name: str, defines: Defines = ()) -> Kernel: ...
    def asarray(self, values: Any, dtype: Any = None) -> DeviceArray: ...
    def to_numpy(self, values: DeviceArray) -> NDArray[Any]: ...
    def half_products(self, heads: DeviceArray, rows: DeviceArray) -> DeviceArray: ...
    def synchronize(self) -> None: ...
    def free_bytes(self) -> int: ...
    def capacity_bytes(self) -> int: ...
    def release(self) -> None: ...
    def collect(self) -> None: ...
    def active(self) -> Any: ...


def block_bytes(device: Device) -> int:
    """Return the most bytes of a matrix of products."""
    return memory.block_bytes(device.capacity_bytes())


def require_room(device: Device, n: int, need: Need) -> None:
    """Raise MemoryError before any work if the work on n rows does not fit into the memory of a device."""
    free, capacity = device.free_bytes(), device.capacity_bytes()
    wanted = need.total(n, capacity)
    if wanted > free:
        device.collect()
        free = device.free_bytes()
    if wanted > free:
        raise MemoryError(
            f"{n} rows of {need.d} columns need about {wanted / 2**30:.1f} GiB of the memory of {device.name}, and "
            f"{max(free, 0) / 2**30:.1f} GiB are free: about {need.rows(free, capacity)} rows would fit, or use "
            "device='cpu'"
        )


def launch(kernel: Kernel, n: int, arguments: Sequence[Any], *, threads: int = 128) -> None:
    """Launch a kernel with one thread per item."""
    if n > 0:
        kernel(((n + threads - 1) // threads,), (threads,), tuple(arguments))


def launch_warps(kernel: Kernel, n: int, arguments: Sequence[Any], *, shared_keys: int = 0) -> None:
    """Launch a kernel with one warp per item, each with ``shared_keys`` keys of 8 bytes of shared memory."""
    warps = max(1, min(MOST_WARPS, SHARED_BYTES // (8 * max(shared_keys, 1))))
    if n > 0:
        kernel(((n + warps - 1) // warps,), (warps * WARP,), tuple(arguments), shared_mem=warps * shared_keys * 8)


class CudaDevice:
    """One GPU, by CuPy."""

    def __init__(self, number: int) -> None:
        self.xp = _cupy()
        count = _device_count()
        if not 0 <= number < count:
            raise DeviceError(f"device='cuda:{number}' does not exist: this machine has {count} CUDA devices")
        self.number = number
        self.name = f"cuda:{number}"

    def __repr__(self) -> str:
        return f"CudaDevice({self.number})"

    def __reduce__(self) -> tuple[Any, ...]:
        return cuda_device, (self.number,)

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Make arrays on this device. If its memory runs out, what failed is freed and MemoryError is raised."""
        try:
            with self.xp.cuda.Device(self.number), self._allocator():
                yield
        except self.xp.cuda.memory.OutOfMemoryError as error:
            raise self._out_of_memory(error) from None
        except MemoryError as error:  # of an inner call
            self._free_arrays_of(error)
            raise

    def _allocator(self) -> Any:
        """Return the context in which arrays are allocated; an allocator that the user has chosen stays."""
        owner = getattr(self.xp.cuda.get_allocator(), "__self__", None)
        ours = owner is self.xp.get_default_memory_pool()
        return self.xp.cuda.using_allocator(self._allocate) if ours else contextlib.nullcontext()

    def _allocate(self, size: int) -> Any:
        """Allocate memory from CuPy's pool. If there is not enough, unused memory is given back first.

        The pool itself does so if the device is full, but not at a limit that the user has set.
        """
        pool = self.xp.get_default_memory_pool()
        for make_room in (self.release, self.collect):
            try:
                return pool.malloc(size)
            except self.xp.cuda.memory.OutOfMemoryError:
                make_room()
        return pool.malloc(size)

    def release(self) -> None:
        """Give unused blocks of CuPy's pool back."""
        with self.xp.cuda.Device(self.number):
            self.xp.get_default_memory_pool().free_all_blocks()

    def collect(self) -> None:
        """Free arrays of values that nobody uses any more, and give their memory back.

        Rows and their index refer to each other, so that only Python's collector finds them; it takes a while.
        """
        gc.collect()
        self.release()

    def _free_arrays_of(self, error: BaseException) -> None:
        """Free the arrays of the calls that failed, which the traceback of the error would keep."""
        traceback.clear_frames(error.__traceback__)
        self.collect()

    def _out_of_memory(self, error: BaseException) -> MemoryError:
        self._free_arrays_of(error)
        return MemoryError(
            f"the memory of {self.name} is full ({error}): {self.free_bytes() / 2**30:.1f} of "
            f"{self.capacity_bytes() / 2**30:.1f} GiB are free without this call; take fewer rows, or device='cpu'"
        )

    def kernel(self, source: str, name: str, defines: Defines = ()) -> Kernel:
        """Return a compiled kernel; compiled sources are kept on disk."""
        return _kernel(self.number, source, name, defines)

    def asarray(self, values: Any, dtype: Any = None) -> DeviceArray:
        """Return values as a C-contiguous array of this device, without a copy if they are that already."""
        with self.active():
            if isinstance(values, np.ndarray):
                return self._upload(np.ascontiguousarray(values, dtype=dtype))
            return self.xp.ascontiguousarray(self.xp.asarray(values), dtype=dtype)

    def _upload(self, host: NDArray[Any]) -> DeviceArray:
        # CuPy's asarray would allocate pinned memory of the size of the array, which takes a second per GB.
        moved = self.xp.empty(host.shape, host.dtype)
        if host.nbytes < LEAST_BYTES:
            moved.set(host)
        else:
            self.synchronize()  # earlier work may use the memory that was allocated
            uploader(self.xp, self.number).upload(host, moved.data.ptr)
        return moved

    def to_numpy(self, values: DeviceArray) -> NDArray[Any]:
        """Return a copy in host memory."""
        with self.active():
            host: NDArray[Any] = self.xp.asnumpy(values)
        return host

    def half_products(self, heads: DeviceArray, rows: DeviceArray) -> DeviceArray:
        """Return ``heads @ rows.T`` of batches of rows in half precision, summed and returned in float32."""
        from cupy.cuda import cublas, device, runtime

        batches, m, d = heads.shape
        n = rows.shape[1]
        out = self.xp.empty((batches, m, n), dtype=np.float32)
        one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
        half, single = runtime.CUDA_R_16F, runtime.CUDA_R_32F
        handle = device.get_cublas_handle()
        # Column-major: the transposed result is rows^T heads, each read with d as its leading dimension.
        cublas.gemmStridedBatchedEx(
            handle,
            cublas.CUBLAS_OP_T,
            cublas.CUBLAS_OP_N,
            n,
            m,
            d,
            one.ctypes.data,
            rows.data.ptr,
            half,
            d,
            n * d,
            heads.data.ptr,
            half,
            d,
            m * d,
            zero.ctypes.data,
            out.data.ptr,
            single,
            n,
            m * n,
            batches,
            cublas.CUBLAS_COMPUTE_32F,
            cublas.CUBLAS_GEMM_DEFAULT,
        )
        return out

    def synchronize(self) -> None:
        """Wait until the device has finished."""
        with self.active():
            self.xp.cuda.get_current_stream().synchronize()

    def free_bytes(self) -> int:
        """Return the memory that can be allocated, unused blocks of CuPy's pool included, within the pool's limit."""
        with self.active():
            free, _ = self.xp.cuda.runtime.memGetInfo()
            pool = self.xp.get_default_memory_pool()
            available = int(free) + int(pool.free_bytes())
            limit = int(pool.get_limit())
            return min(available, limit - int(pool.used_bytes())) if limit else available

    def capacity_bytes(self) -> int:
        """Return the memory of the device, or the limit of CuPy's pool (CUPY_GPU_MEMORY_LIMIT) if there is one."""
        with self.active():
            _, total = self.xp.cuda.runtime.memGetInfo()
            limit = int(self.xp.get_default_memory_pool().get_limit())
            return min(int(total), limit) if limit else int(total)


@functools.cache
def cuda_device(number: int = 0) -> CudaDevice:
    """Return a GPU; the same object for the same number."""
    return CudaDevice(number)


@functools.cache
def _kernel(number: int, source: str, name: str, defines: Defines) -> Kernel:
    kernel: Kernel = _module(number, source, defines).get_function(name)
    return kernel


@functools.cache
def _module(number: int, source: str, defines: Defines) -> Any:
    """Load compiled kernels from the cache on disk, after compiling them if they are not there.

    ``RawModule(code=...)`` would flush subnormal numbers to zero, which the CPU does not.
    """
    cupy = _cupy()
    architecture = str(cupy.cuda.Device(number).compute_capability)
    path = _compiled_file(source, defines, architecture)
    if not path.is_file():
        # One of the usual kernels is seldom alone, and the compiler uses one processor.
        together = USUAL_KERNELS if (source, defines) in USUAL_KERNELS else [(source, defines)]
        missing = [(*kind, architecture) for kind in together if not _compiled_file(*kind, architecture).is_file()]
        with ThreadPoolExecutor(len(missing)) as pool:
            list(pool.map(_compile, *zip(*missing, strict=True)))
    return cupy.RawModule(path=str(path))


def _compiled_file(source: str, defines: Defines, architecture: str) -> Path:
    from cupy.cuda import nvrtc

    return cached_file(repr((kernel_source(source), OPTIONS, defines, architecture, nvrtc.getVersion())))


def _compile(source: str, defines: Defines, architecture: str) -> None:
    """Compile a file of kernels into the cache on disk."""
    from cupy.cuda import compiler

    options = compile_options(defines)
    code, _ = compiler.compile_using_nvrtc(kernel_source(source), options, architecture, f"{source}.cu")
    write_atomically(_compiled_file(source, defines, architecture), code if isinstance(code, bytes) else code.encode())


def _cupy() -> Any:
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            "device='cuda' needs CuPy: install it with \"pip install 'vicinal[cuda13]'\" or 'vicinal[cuda12]', "
            f"whichever the driver supports ({error})"
        ) from error
    return cupy


def _device_count() -> int:
    try:
        return int(_cupy().cuda.runtime.getDeviceCount())
    except DeviceError:
        raise
    except Exception as error:
        raise DeviceError(f"device='cuda' needs a GPU of NVIDIA with its driver: {error}") from error
