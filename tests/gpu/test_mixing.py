"""Arrays of the host and of a device are never mixed: fits on a device whose arrays refuse it, as those of CuPy do."""

from __future__ import annotations

import copy
import pickle
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from gpu.host_device import COMPILER, HostDevice
from numpy.typing import NDArray

import vicinal
from vicinal import quality
from vicinal.backends import cpu
from vicinal.backends.cuda import device as devices
from vicinal.backends.cuda import neighbors as device_neighbors
from vicinal.neighbors import search

Rows = NDArray[np.float32]


class DeviceArray(np.ndarray):
    """An array that can be combined with arrays of its own kind and with scalars only."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        given = {} if out is None else {"out": plain(require((out,))[0])}
        result = getattr(ufunc, method)(*plain(require(inputs)), **plain(options), **given)
        return there(result) if out is None else out[0]

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        return there(function(*plain(require(arguments)), **plain(options)))

    def __getitem__(self, key: Any) -> Any:
        return there(np.asarray(plain(self)[plain(require((key,))[0])]))

    def __setitem__(self, key: Any, value: Any) -> None:
        require((key, value))
        plain(self)[plain(key)] = plain(value)

    def __reduce__(self) -> Any:
        raise TypeError("an array of a device is pickled")


def plain(value: Any) -> Any:
    """Return the same with arrays of NumPy."""
    if isinstance(value, tuple | list):
        return type(value)(plain(one) for one in value)
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return value.view(np.ndarray) if isinstance(value, DeviceArray) else value


def there(value: Any) -> Any:
    """Return the same with arrays of the device."""
    if isinstance(value, tuple | list):
        return type(value)(there(one) for one in value)
    return np.asarray(value).view(DeviceArray) if isinstance(value, np.ndarray | np.generic) else value


def require(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Raise TypeError if there is an array of the host among the values."""
    for value in values:
        if isinstance(value, tuple | list):
            require(tuple(value))
        elif isinstance(value, np.ndarray) and not isinstance(value, DeviceArray) and value.ndim:
            raise TypeError("an array of the host is mixed with arrays of a device")
    return values


class ArrayModule:
    """NumPy with arrays of the device."""

    ndarray = DeviceArray

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, ModuleType):
            return ArrayModule(found)
        if isinstance(found, type) or not callable(found):
            return found
        moves = name in ("array", "asarray")
        return lambda *given, **options: there(found(*plain(given if moves else require(given)), **plain(options)))


class StrictDevice(HostDevice):
    """The device of the host, with arrays that are not mixed with the host's."""

    xp = ArrayModule(np)

    def asarray(self, values: Any, dtype: Any = None) -> Any:
        return there(super().asarray(plain(values), dtype))

    def to_numpy(self, values: Any) -> NDArray[Any]:
        assert isinstance(values, DeviceArray)
        return np.array(plain(values))

    def kernel(self, name: str, defines: tuple[tuple[str, str], ...] = ()) -> Any:
        run = super().kernel(name, defines)
        return lambda grid, block, given, shared_mem=0: run(grid, block, plain(require(given)), shared_mem)

    def half_products(self, heads: Any, rows: Any) -> Any:
        return there(super().half_products(*plain(require((heads, rows)))))


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> StrictDevice:
    """Return a strict device, which ``device="cuda"`` names; functions of the core refuse its arrays."""
    if COMPILER is None:
        pytest.skip("no C++ compiler to compile the kernels for the host")
    device = StrictDevice()
    monkeypatch.setattr(devices, "cuda_device", lambda number=0: device)

    def guarded(function: Any) -> Any:
        def call(*given: Any, **options: Any) -> Any:
            assert not any(isinstance(one, DeviceArray) for one in (*given, *options.values()))
            return function(*given, **options)

        return call

    for name in ("smooth_knn", "memberships", "symmetrize", "symmetrize_mean", "scan_rows", "hash_rows"):
        monkeypatch.setattr(cpu, name, guarded(getattr(cpu, name)))
    return device


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("UMAP", {"n_neighbors": 8, "n_epochs": 10}),
        ("UMAP", {"n_neighbors": 8, "n_epochs": 10, "metric": "cosine"}),
        ("DensMAP", {"n_neighbors": 8, "n_epochs": 10}),
        ("LargeVis", {"perplexity": 5, "n_epochs": 10}),
        ("TSNE", {"perplexity": 5, "max_iter": 20, "method": "exact"}),
    ],
)
def test_estimators_move_arrays_explicitly(
    strict: StrictDevice, rows: Rows, name: str, parameters: dict[str, Any]
) -> None:
    here, model = (getattr(vicinal, name)(random_state=0, device=where, **parameters) for where in ("cpu", "cuda"))
    np.testing.assert_array_equal(model.fit(rows).embedding_, here.fit(rows).embedding_)
    assert model.map_.graph.place is strict
    np.testing.assert_array_equal(model.transform(rows[:7] + 0.1), here.transform(rows[:7] + 0.1))
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert twin.map_.graph.place is None
    assert copy.copy(model.map_.graph).place is None


def test_sparse_rows_are_placed_by_a_model_of_a_device(strict: StrictDevice, rows: Rows) -> None:
    X, new = (scipy.sparse.csr_matrix(values) for values in (rows, rows[:5] + 1))
    here, there = (vicinal.UMAP(n_neighbors=5, n_epochs=5, random_state=0, device=where) for where in ("cpu", "cuda"))
    np.testing.assert_array_equal(there.fit(X).transform(new), here.fit(X).transform(new))


def test_searches_by_products_and_cells(strict: StrictDevice, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("EXACT_ROWS", 50), ("EXACT_WORK", 100), ("EXACT_ROWS_PER_NEIGHBOR", 1)):
        monkeypatch.setattr(search, name, value)
    for most in (1000, 100):
        monkeypatch.setattr(device_neighbors, "PRODUCT_ROWS", most)
        monkeypatch.setattr(device_neighbors, "CELL_ROWS", 60)
        model = vicinal.UMAP(n_neighbors=8, n_epochs=2, random_state=0, device="cuda").fit(rows)
        assert np.isfinite(model.transform(rows[:9] + 0.1)).all()


@pytest.mark.parametrize("metric", ["euclidean", "correlation"])
def test_report(strict: StrictDevice, rows: Rows, metric: str) -> None:
    there = quality.report(rows, rows[:, :2], metric=metric, device="cuda").measures()
    here = quality.report(rows, rows[:, :2], metric=metric).measures()
    assert {name: there[name] for name in here if here[name] is not None} == pytest.approx(
        {name: value for name, value in here.items() if value is not None}, abs=1e-9
    )
