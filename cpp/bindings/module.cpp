// The Python module: everything that Python sees of the core is bound in this folder.
#include "base/level.hpp"
#include "base/rng.hpp"
#include "bindings/binding.hpp"
#include "neighbors/neighbor_index.hpp"
#include "neighbors/search_space.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

using namespace vicinal;

namespace {

// Sizes of arrays that Python's memory estimates need.
void export_constants(nb::module_& m) {
    m.attr("SKETCH_WIDTH") = sketch_width;
    m.attr("SKETCH_SAMPLE_FLOATS") = sketch_sample_floats;
    m.attr("SKETCH_SAMPLE_LEAST_ROWS") = least_sketch_sample_rows;
    m.attr("SKETCH_SAMPLE_MOST_ROWS") = most_sketch_sample_rows;
    m.attr("ROWS_WITHOUT_BASIS") = rows_without_basis;
    m.attr("SPLIT_COLUMNS") = split_columns;
    m.attr("MOST_BYTE_COLUMNS") = ByteRows::most_cols;
    m.attr("ONLINE_LEAF_ROWS") = online_leaf_rows;
    m.attr("HEAP_PAD") = heap_pad;
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "Compiled core of vicinal: neighbors, graph, initialization, layout, losses.";
    // A model in a script's global variables may outlive the module when the interpreter exits; that is not a leak.
    nb::set_leak_warnings(false);
    export_constants(m);
    bind_neighbors(m);
    bind_online(m);
    bind_graph(m);
    bind_initialize(m);
    bind_layout(m);
    bind_full_layout(m);
    bind_losses(m);
    m.def("active_level", [] { return std::string(levels()[active_level()].name); });
    m.def("available_levels", [] {
        std::vector<std::string> names;
        for (const Level& level : levels())
            if (level.available) names.emplace_back(level.name);
        return names;
    });
    m.def("resolve_jobs", &resolve_jobs, "n_jobs"_a);
    m.def(
        "mix64",
        [](In<std::uint64_t, 1> numbers) {
            const auto n = static_cast<Size>(numbers.shape(0));
            auto out = make<std::uint64_t>(n);
            for (Size i = 0; i < n; ++i) out.data()[i] = mix64(numbers.data()[i]);
            return out;
        },
        "numbers"_a);
    m.def(
        "stream_key",
        [](std::uint64_t seed, const std::string& stream, std::uint64_t part) {
            return stream_key(seed, named<Stream>(stream_names, stream), part);
        },
        "seed"_a, "stream"_a, "part"_a = 0);
}
