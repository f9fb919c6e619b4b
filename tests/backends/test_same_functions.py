"""The CUDA backend mirrors the CPU backend: the same public functions, with the same parameters. No GPU is needed."""

from __future__ import annotations

import inspect
import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from vicinal.backends import Movable, Placed, backend_of, cpu, placed
from vicinal.backends.cuda import DEVICE_ONLY, CudaBackend
from vicinal.backends.cuda.device import kernel_files
from vicinal.graph.graph import Graph

# Engines and values: what their methods have in common is compared too.
CLASSES = ("SampledLayout", "FullLayout", "PairSums", "PairQuantity")


def public_names(backend: Any) -> set[str]:
    """Return functions, classes and constants of a backend, without what its module imports."""
    names = {name for name in vars(backend) if not name.startswith("_") and name not in ("annotations",)}
    if isinstance(backend, ModuleType):
        imported = ("numpy", "vicinal.runtime", "collections.abc", "concurrent.futures", "typing")
        names = {name for name in names if not _is_imported(getattr(backend, name), imported)}
        # Sizes and block lengths are the backend's own business.
        names -= {name for name in names if isinstance(getattr(backend, name), int) and name != "MOST_MAP_AXES"}
    return names - {"Floats", "HOST_ONLY", "np", "Any", "NDArray", "nullcontext"}


def _is_imported(value: Any, modules: tuple[str, ...]) -> bool:
    return not isinstance(value, ModuleType) and str(getattr(value, "__module__", "")).startswith(modules)


def parameters(function: Any) -> list[str]:
    """Return the names of the parameters of a function of Python or of the core, without self and the device."""
    bound = getattr(function, "__nb_signature__", None)
    if bound is None and inspect.isclass(function) and hasattr(function.__init__, "__nb_signature__"):
        bound = function.__init__.__nb_signature__
    if bound is not None:
        text = re.sub(r"\[[^\[\]]*\]", "", re.sub(r"\[[^\[\]]*\]", "", bound[0][0]))
        names = [part.split(":")[0].strip() for part in text[text.index("(") + 1 : text.rindex(")")].split(",")]
    else:
        names = list(inspect.signature(function).parameters)
    return [name for name in names if name and name not in ("self", "device", "/")]


def test_both_backends_have_the_same_names() -> None:
    there = public_names(CudaBackend) - set(DEVICE_ONLY)
    here = public_names(cpu) - set(cpu.HOST_ONLY)
    assert here == there


def test_exceptions_exist_on_one_side_only() -> None:
    assert all(hasattr(cpu, name) and not hasattr(CudaBackend, name) for name in cpu.HOST_ONLY)
    declared = {*vars(CudaBackend), *CudaBackend.__dataclass_fields__}
    assert all(name in declared and not hasattr(cpu, name) for name in DEVICE_ONLY)


@pytest.mark.parametrize("name", sorted(public_names(CudaBackend) - set(DEVICE_ONLY)))
def test_functions_have_the_same_parameters(name: str) -> None:
    here, there = getattr(cpu, name), vars(CudaBackend)[name]
    there = there.__func__ if isinstance(there, staticmethod) else there
    if not callable(there):
        assert not callable(here) or isinstance(there, property)
        return
    if here is there or name == "active":
        return
    assert parameters(here) == parameters(there)


@pytest.mark.parametrize("name", CLASSES)
def test_methods_have_the_same_parameters(name: str) -> None:
    here, there = getattr(cpu, name), getattr(CudaBackend, name)
    there = getattr(there, "__wrapped__", there)
    methods = {one for one, what in vars(there).items() if not one.startswith("_") and inspect.isfunction(what)}
    for method in methods & set(dir(here)):
        assert parameters(getattr(here, method)) == parameters(getattr(there, method)), method


def test_every_force_and_space_of_the_cpu_is_one_of_the_device() -> None:
    assert CudaBackend.FORCES == cpu.FORCES
    assert set(cpu.SPACES) - set(CudaBackend.SPACES) == {"function"}
    for name in cpu.FORCES:
        options = cpu.LayoutOptions()
        options.set_force(name, 1.0, 1.0, 1.0)
        assert options.force_type == cpu.FORCES[name]


def test_kernels_are_found_by_their_names() -> None:
    files = kernel_files()
    assert files["layout_sweep"] == "layout"
    assert "neighbor_medoids" in files
    assert "name" not in files


class Device:
    """A device that counts what is moved."""

    def __init__(self) -> None:
        self.sent, self.fetched = 0, 0

    def asarray(self, values: Any, dtype: Any = None) -> Any:
        self.sent += 1
        return np.array(values, dtype=dtype)

    def to_numpy(self, values: Any) -> Any:
        self.fetched += 1
        return np.array(values)


def test_arrays_are_moved_when_they_are_read() -> None:
    device, host = Device(), Graph.without_edges(4)
    moved = host.on(device)
    assert moved.place is device
    assert (moved.n, moved.n_edges, host.place) == (4, 0, None)
    assert (device.sent, device.fetched) == (0, 0)
    there = moved.array("indptr")
    assert moved.array("indptr") is there
    assert (device.sent, device.fetched) == (1, 0)
    made = Graph.at(device, (there, there, there), 4, there, there)
    assert made.n == 4
    assert device.fetched == 0
    assert made.weights is made.weights
    assert device.fetched == 1
    assert isinstance(made.held("weights"), Placed)
    assert made.on(None).place is None


def test_a_value_of_the_host_holds_plain_arrays() -> None:
    graph = Graph.without_edges(3)
    assert isinstance(graph, Movable)
    assert placed(None, graph.weights) is graph.weights
    assert all(isinstance(value, np.ndarray) for name, value in vars(graph).items() if name != "n_tails")
    assert backend_of(None) is cpu
    with pytest.raises(AttributeError, match="no attribute 'wieghts'"):
        _ = graph.wieghts  # type: ignore[attr-defined]
