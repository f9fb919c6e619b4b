// Used by all bindings: arrays as arguments and results, the GIL, interruption.
#pragma once

#include "base/parallel.hpp"
#include "base/row_matrix.hpp"
#include "graph/symmetrize.hpp"
#include "layout/layout_task.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace vicinal {

template <class T, int Dim>
using In = nb::ndarray<const T, nb::ndim<Dim>, nb::c_contig, nb::device::cpu>;
// An array that is written. The argument must be marked noconvert(), because a converted copy would be lost.
template <class T, int Dim>
using InOut = nb::ndarray<T, nb::ndim<Dim>, nb::c_contig, nb::device::cpu>;
template <class T, int Dim>
using Out = nb::ndarray<nb::numpy, T, nb::ndim<Dim>>;

inline bool interrupted() {
    nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
}

// Runs f(team) without the GIL. An interruption raises the Python exception of the signal handler.
template <class F>
auto run(int n_jobs, const F& f) {
    bool stopped = false;
    try {
        nb::gil_scoped_release release;
        ThreadTeam team(resolve_jobs(n_jobs), interrupted);
        return f(team);
    } catch (const Interrupted&) {
        stopped = true;
    }
    if (stopped) throw nb::python_error();
    // Unreachable; every path above returns or throws.
    throw std::logic_error("run");
}

inline void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

inline Matrix view(const In<float, 2>& array) {
    return {array.data(), static_cast<Size>(array.shape(0)), static_cast<Size>(array.shape(1))};
}

// Rows of any type that searches read.
using InRows = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// With `packed`, rows of bytes hold eight columns per byte.
inline RowMatrix view_rows(const InRows& array, bool packed = false) {
    const auto rows = static_cast<Size>(array.shape(0)), cols = static_cast<Size>(array.shape(1));
    const auto type = array.dtype();
    if (type == nb::dtype<float>()) return {array.data(), rows, cols, Element::float32};
    if (type == nb::dtype<std::int8_t>()) return {array.data(), rows, cols, Element::int8};
    if (type == nb::dtype<std::uint8_t>())
        return packed ? RowMatrix(array.data(), rows, 8 * cols, Element::bits)
                      : RowMatrix(array.data(), rows, cols, Element::uint8);
    if (type != nb::dlpack::dtype{static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), 16, 1})
        throw nb::type_error("rows must be float32, float16, int8 or uint8");
    return {array.data(), rows, cols, Element::float16};
}

template <class T>
Out<T, 1> own(std::vector<T>&& values) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Out<T, 1>(kept->data(), {kept->size()}, owner);
}

template <class T>
Out<T, 1> make(Size n) {
    auto* data = new T[static_cast<std::size_t>(n)];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return Out<T, 1>(data, {static_cast<std::size_t>(n)}, owner);
}

template <class T>
Out<T, 2> make(Size rows, Size cols) {
    auto* data = new T[static_cast<std::size_t>(rows * cols)];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return Out<T, 2>(data, {static_cast<std::size_t>(rows), static_cast<std::size_t>(cols)}, owner);
}

inline Out<float, 2> copy(const Matrix& rows) {
    auto out = make<float>(rows.rows, rows.cols);
    std::copy(rows.data, rows.data + rows.rows * rows.cols, out.data());
    return out;
}

inline Csr view(const In<Size, 1>& indptr, const In<Index, 1>& indices, const In<float, 1>& weights) {
    const auto rows = static_cast<Size>(indptr.shape(0)) - 1;
    require(rows >= 0 && indices.shape(0) == weights.shape(0), "indptr, indices and weights differ in length");
    require(indptr.data()[0] == 0 && indptr.data()[rows] == static_cast<Size>(indices.shape(0)),
            "indptr does not span the indices");
    for (Size i = 0; i < rows; ++i) require(indptr.data()[i] <= indptr.data()[i + 1], "indptr must not decrease");
    return {indptr.data(), indices.data(), weights.data(), rows};
}

inline NeighborTable view(const In<Index, 2>& index, const In<float, 2>& distance) {
    require(index.shape(0) == distance.shape(0) && index.shape(1) == distance.shape(1),
            "index and distance differ in shape");
    return {index.data(), distance.data(), static_cast<Size>(index.shape(0)), static_cast<Size>(index.shape(1))};
}

inline void check_edges(const Csr& graph) {
    for (Size e = 0; e < graph.indptr[graph.rows]; ++e)
        require(graph.indices[e] >= 0 && graph.indices[e] < graph.rows, "a tail is no row");
}

inline nb::tuple own_graph(OwnedCsr&& csr) {
    return nb::make_tuple(own(std::move(csr.indptr)), own(std::move(csr.indices)), own(std::move(csr.weights)));
}

// The enumerator at the position of `name` in the list of names.
template <class Kind, std::size_t N>
Kind named(const char* const (&names)[N], const std::string& name) {
    for (std::size_t i = 0; i < N; ++i)
        if (name == names[i]) return static_cast<Kind>(i);
    throw std::invalid_argument("unknown name '" + name + "'");
}

inline ForceParameters force_of(const std::string& name, float a, float b, float gamma) {
    return {named<ForceKind>(force_names, name), a, b, gamma};
}

void bind_neighbors(nb::module_& m);
void bind_online(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_initialize(nb::module_& m);
void bind_layout(nb::module_& m);
void bind_full_layout(nb::module_& m);
void bind_losses(nb::module_& m);

}  // namespace vicinal
