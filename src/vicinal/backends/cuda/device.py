"""A GPU: its arrays (CuPy), its kernels, products of matrices in half precision, and what work takes of its memory.

All other modules of this backend use a `Device` and its array module ``xp``, so that tests can run them on a device
that is made of NumPy and of kernels compiled for the host.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import os
import re
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

# Fused multiply-adds are written explicitly, as in the core; everything else rounds as on the CPU.
OPTIONS = ("--std=c++20", "--device-as-default-execution-space", "--fmad=false")
HEADERS = ("base", "neighbors", "graph", "layout", "losses", "cuda", "nvrtc")


@functools.cache
def source_folder() -> Path:
    """Return the folder of the sources: installed beside this module, or ``cpp`` of a source tree."""
    here = Path(__file__).parent
    for folder in (here / "cpp", here.parents[3] / "cpp"):
        if (folder / "cuda" / "layout.cu").is_file():
            return folder
    raise FileNotFoundError(f"the sources of the CUDA kernels are missing: {here / 'cpp'}")


@functools.cache
def source_hash() -> str:
    """Return a hash of all sources. It is part of the text of a kernel, by which compiled kernels are cached."""
    digest = hashlib.sha256()
    for name in HEADERS:
        for path in sorted((source_folder() / name).iterdir()):
            if path.suffix in ("", ".hpp", ".cu"):
                digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def cached_file(key: str) -> Path:
    """Return where compiled kernels are kept: in CuPy's cache, or in a folder of this process if that is read-only."""
    folder = Path(os.environ.get("CUPY_CACHE_DIR", "~/.cupy/kernel_cache")).expanduser() / "vicinal"
    name = hashlib.sha256(key.encode()).hexdigest()[:32] + ".cubin"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(_private_folder()) / name
    return (folder if os.access(folder, os.W_OK) else Path(_private_folder())) / name


@functools.cache
def _private_folder() -> str:
    return tempfile.mkdtemp(prefix="vicinal-kernels-")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that other processes see complete or not at all."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as part:
        try:
            part.write(content)
            part.flush()
            os.replace(part.name, path)
        except BaseException:
            os.unlink(part.name)
            raise


@functools.cache
def kernel_files() -> dict[str, str]:
    """Return for every kernel the name of its source file, in which a line ``..._KERNEL(name)`` marks it."""
    paths = sorted((source_folder() / "cuda").glob("*.cu"))
    return {name: path.stem for path in paths for name in re.findall(r"_KERNEL\((\w+)\)", path.read_text())}


def kernel_source(name: str) -> str:
    """Return the text of a source file of kernels."""
    return f"// {source_hash()}\n" + (source_folder() / "cuda" / f"{name}.cu").read_text()


def compile_options(defines: tuple[tuple[str, str], ...] = ()) -> tuple[str, ...]:
    """Return the options of NVRTC, with preprocessor definitions."""
    folder = source_folder()
    defined = (f"-D{name}={value}" for name, value in defines)
    return (*OPTIONS, f"-I{folder}", f"-I{folder / 'nvrtc'}", *defined)


PIECE_BYTES = 8 * 2**20
MOST_THREADS = 8
# Smaller arrays are copied by the driver.
LEAST_BYTES = 2 * PIECE_BYTES


class Uploader:
    """Threads, each with a pinned buffer and a stream of its own."""

    def __init__(self, xp: Any, number: int) -> None:
        self._xp, self._number = xp, number
        self._threads = max(1, min(MOST_THREADS, os.cpu_count() or 1))
        self._lock = threading.Lock()  # the buffers serve one call at a time
        with xp.cuda.Device(number):
            memory = [xp.cuda.alloc_pinned_memory(PIECE_BYTES) for _ in range(self._threads)]
            self._streams = [xp.cuda.Stream(non_blocking=True) for _ in range(self._threads)]
        self._buffers = [np.frombuffer(one, np.uint8, PIECE_BYTES) for one in memory]

    def upload(self, host: NDArray[Any], address: int) -> None:
        """Copy a C-contiguous array to the memory of the device at ``address``, and wait until it is there.

        The device must have finished with that memory.
        """
        content = host.reshape(-1).view(np.uint8)

        def copy(worker: int) -> None:
            buffer, stream = self._buffers[worker], self._streams[worker]
            with self._xp.cuda.Device(self._number):
                for first in range(worker * PIECE_BYTES, content.size, self._threads * PIECE_BYTES):
                    piece = content[first : first + PIECE_BYTES]
                    stream.synchronize()  # the buffer is free
                    np.copyto(buffer[: piece.size], piece)
                    runtime = self._xp.cuda.runtime
                    runtime.memcpyAsync(
                        address + first, buffer.ctypes.data, piece.size, runtime.memcpyHostToDevice, stream.ptr
                    )
                stream.synchronize()

        with self._lock, ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(copy, range(self._threads)))


@functools.cache
def uploader(xp: Any, number: int) -> Uploader:
    """Return the buffers and streams of a device, which are kept."""
    return Uploader(xp, number)


# An array of the device; CuPy has no type hints.
DeviceArray = Any
Kernel = Callable[..., None]
Defines = tuple[tuple[str, str], ...]

# Kernels, with their definitions, whose files most fits need; modules of this backend add theirs. These files are
# compiled together.
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

    def kernel(self, name: str, defines: Defines = ()) -> Kernel: ...
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
    return most_block(device.capacity_bytes())


# Memory. CuPy's pool keeps blocks of memory that were used, and a large array does not fit into the gaps between small
# ones, so that about a tenth of the memory is not available (USABLE).
USUAL_NEIGHBORS = 15
# Matrices of products are computed block by block. Blocks are smaller if the device is small; two fit beside the rest.
MOST_BLOCK, BLOCK_SHARE, BLOCKS = 2**31, 16, 2
PAD_COLUMNS = 8  # rows in half precision have a multiple of this many columns
USABLE = 0.9
# Bytes per row of the tables of a search (mostly candidates of the rounds over neighbors of neighbors) and of a fit
# (mostly edges in both directions while the graph is made, or edges in the order of the layout), and per row and
# neighbor.
SEARCH_ROW, SEARCH_NEIGHBOR = 600, 20
FIT_ROW, FIT_NEIGHBOR = 150, 60
QUERY_ROW = 3_000  # bytes per row of a query, mostly of the edges that it follows
MERGED_NEIGHBOR = 24  # bytes per row and neighbor of lists that are merged, and of the table that is made of them


def most_block(capacity: int) -> int:
    """Return the most bytes of a matrix of products, and of the rows in half precision that it is made from."""
    return min(MOST_BLOCK, capacity // BLOCK_SHARE)


def query_rows(d: int, capacity: int) -> int:
    """Return how many rows of d columns are placed among others at a time."""
    return max(1, most_block(capacity) // (QUERY_ROW + 8 * d))


def half_bytes(d: int) -> int:
    """Return the bytes of a row in half precision."""
    return 2 * (-(-d // PAD_COLUMNS) * PAD_COLUMNS)


@dataclass(frozen=True)
class Need:
    """What the work on rows allocates: ``copies`` of the rows in float32, and tables of ``k`` neighbors.

    Rows that live on the device need no copy, those of the host one; a metric that transforms rows needs one more.
    ``streamed`` rows are searched in groups, and only their tables are held. ``fit`` says that a graph and a layout
    follow the search.
    """

    d: int
    k: int = USUAL_NEIGHBORS
    copies: int = 1
    streamed: bool = False
    fit: bool = True

    @property
    def search_row(self) -> int:
        """Bytes per row of a search."""
        return 4 * self.d * self.copies + half_bytes(self.d) + SEARCH_ROW + SEARCH_NEIGHBOR * self.k

    @property
    def row(self) -> int:
        """Bytes per row of the whole work."""
        if self.streamed:
            return FIT_ROW + FIT_NEIGHBOR * self.k if self.fit else MERGED_NEIGHBOR * self.k
        tables = FIT_ROW + FIT_NEIGHBOR * self.k - SEARCH_ROW - SEARCH_NEIGHBOR * self.k if self.fit else 0
        return self.search_row + max(0, tables)

    def total(self, n: int, capacity: int) -> int:
        """Return the bytes that the work on n rows takes."""
        return n * self.row + BLOCKS * most_block(capacity)

    def rows(self, free: int, capacity: int) -> int:
        """Return how many rows can be worked on in ``free`` bytes."""
        return max(0, free - BLOCKS * most_block(capacity)) // self.row

    def group_rows(self, n: int, free: int, capacity: int) -> int:
        """Return how many rows of a group can be searched in ``free`` bytes, beside the merged lists of n rows.

        The available memory is rounded down to a sixteenth of all, so that small differences do not change the groups.
        """
        step = max(1, capacity // 16)
        available = int(USABLE * (free // step * step)) - n * 8 * self.k - BLOCKS * most_block(capacity)
        return max(0, available) // self.search_row


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

    def kernel(self, name: str, defines: Defines = ()) -> Kernel:
        """Return a compiled kernel; compiled sources are kept on disk."""
        return _kernel(self.number, name, defines)

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
def _kernel(number: int, name: str, defines: Defines) -> Kernel:
    kernel: Kernel = _module(number, kernel_files()[name], defines).get_function(name)
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
        usual = [(kernel_files()[name], its) for name, its in USUAL_KERNELS]
        together = usual if (source, defines) in usual else [(source, defines)]
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


CHUNK_ROWS = 256  # rows that one thread adds up
LEAST_CHUNK, MOST_CHUNKS = 4_096, 16_384  # numbers that one warp compares

# CuPy compiles a reduction when it is first used, which takes seconds; those of a usual fit are kernels of ours.
USUAL_KERNELS.append(("sum_chunks", ()))


def column_sums(device: Device, values: DeviceArray, *, own: float = 0.0, chunk: int = CHUNK_ROWS) -> DeviceArray:
    """Return the sums of ``values - own`` by column, in double precision; one chunk of all rows adds them in order."""
    n, width = (int(size) for size in values.shape)
    count = -(-n // max(chunk, 1))
    chunks = device.xp.empty((count, width), np.float64)
    sizes = np.int64(n), np.int64(width), np.int64(chunk)
    launch(device.kernel("sum_chunks"), count * width, (values, np.float64(own), *sizes, chunks))
    return add_chunks(device, chunks)


def add_chunks(device: Device, chunks: DeviceArray) -> DeviceArray:
    """Return the sums of the columns of an array of doubles, row after row."""
    count, width = (int(size) for size in chunks.shape)
    total = device.xp.empty(width, np.float64)
    launch(device.kernel("add_chunks"), width, (chunks, np.int64(count), np.int64(width), total))
    return total


def column_means(device: Device, values: DeviceArray) -> NDArray[np.float32]:
    """Return the means of the columns, on the host."""
    n = int(values.shape[0])
    sums: NDArray[np.float64] = device.to_numpy(column_sums(device, values, chunk=max(CHUNK_ROWS, n // 1024)))
    return (sums / max(n, 1)).astype(np.float32)


def largest_magnitude(device: Device, values: DeviceArray) -> float:
    """Return the largest magnitude of numbers in float32; infinity if one is not a number, 0 if there are none."""
    n = int(values.size)
    chunk = max(LEAST_CHUNK, -(-n // MOST_CHUNKS))
    count = -(-n // chunk)
    if count == 0:
        return 0.0
    largest = device.xp.empty((count, WARP), np.float32)
    arguments = values, np.int64(n), np.int64(chunk), largest
    launch_warps(device.kernel("largest_magnitudes"), count, arguments)
    return float(device.to_numpy(largest).max())


def column_bounds(device: Device, values: DeviceArray) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the smallest and largest values of each column, on the host; 0 if there are no rows."""
    n, width = (int(size) for size in values.shape)
    if n == 0:
        return np.zeros(width, np.float32), np.zeros(width, np.float32)
    kernel, count = device.kernel("bound_chunks"), -(-n // CHUNK_ROWS)
    chunks, ends = device.xp.empty(2 * width * count, np.float32), device.xp.empty(2 * width, np.float32)
    sizes = np.int64(n), np.int64(width), np.int64(width), np.int64(CHUNK_ROWS)
    launch(kernel, count * width, (values, values, *sizes, chunks))
    sizes = np.int64(count), np.int64(width), np.int64(2 * width), np.int64(count)
    launch(kernel, width, (chunks, chunks[width:], *sizes, ends))
    both = device.to_numpy(ends)
    return both[:width], both[width:]
