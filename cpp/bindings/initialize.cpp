// Bindings of the spectral initialization.
#include "bindings/binding.hpp"
#include "initialize/coarsen.hpp"
#include "initialize/components.hpp"

namespace vicinal {

namespace {

void check_sets(const RowSets& sets, Size positions, Size rows) {
    for (Size p = 0; p < positions; ++p) require(sets.order[p] >= 0 && sets.order[p] < rows, "order names no row");
    for (Size s = 0; s < sets.count; ++s)
        require(0 <= sets.begin[s] && sets.begin[s] < sets.end[s] && sets.end[s] <= positions,
                "a set is empty or out of range");
}

}  // namespace

void bind_initialize(nb::module_& m) {
    m.def(
        "component_eigenmaps",
        [](In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> weights, Size n_components, std::uint64_t seed,
           int n_jobs) {
            const Csr graph = view(indptr, indices, weights);
            require(n_components >= 1, "n_components must be positive");
            check_edges(graph);
            auto vectors = make<float>(graph.rows, n_components);
            Components components = run(n_jobs, [&](ThreadTeam& team) {
                Components found = connected_components(graph, team);
                component_eigenmaps(graph, found, n_components, seed, vectors.data(), team);
                return found;
            });
            return nb::make_tuple(own(std::move(components.order)), own(std::move(components.bounds)), vectors);
        },
        "indptr"_a, "indices"_a, "weights"_a, "n_components"_a, "seed"_a, "n_jobs"_a);
    m.def(
        "connected_components",
        [](In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> weights, int n_jobs) {
            const Csr graph = view(indptr, indices, weights);
            check_edges(graph);
            return own(run(n_jobs, [&](ThreadTeam& team) { return connected_components(graph, team); }).of_row);
        },
        "indptr"_a, "indices"_a, "weights"_a, "n_jobs"_a);
    m.def(
        "aggregate_rows",
        [](In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> weights, int rounds, int n_jobs) {
            const Csr graph = view(indptr, indices, weights);
            check_edges(graph);
            require(rounds >= 1, "rounds must be positive");
            Aggregates found = run(n_jobs, [&](ThreadTeam& team) { return aggregate(graph, rounds, team); });
            return nb::make_tuple(own(std::move(found.group)), own(std::move(found.mass)),
                                  own_graph(std::move(found.graph)));
        },
        "indptr"_a, "indices"_a, "weights"_a, "rounds"_a, "n_jobs"_a);
    m.def(
        "neighbor_means",
        [](In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> weights, In<float, 2> places, int n_jobs) {
            const Csr graph = view(indptr, indices, weights);
            check_edges(graph);
            const Matrix from = view(places);
            require(from.rows == graph.rows, "places must have a line for each row");
            auto means = make<float>(from.rows, from.cols);
            run(n_jobs, [&](ThreadTeam& team) {
                neighbor_means(graph, from, means.data(), team);
                return 0;
            });
            return means;
        },
        "indptr"_a, "indices"_a, "weights"_a, "places"_a, "n_jobs"_a);
    m.def(
        "segment_means",
        [](InRows rows, In<Index, 1> order, In<Size, 1> begin, In<Size, 1> end, Size most_rows, int n_jobs) {
            const RowMatrix from = view_rows(rows);
            require(begin.shape(0) == end.shape(0) && most_rows >= 1, "begin and end differ in length");
            const RowSets sets{order.data(), begin.data(), end.data(), static_cast<Size>(begin.shape(0))};
            check_sets(sets, static_cast<Size>(order.shape(0)), from.rows);
            auto means = make<double>(sets.count, from.cols);
            run(n_jobs, [&](ThreadTeam& team) {
                segment_means(from, sets, most_rows, means.data(), team);
                return 0;
            });
            return means;
        },
        "rows"_a, "order"_a, "begin"_a, "end"_a, "most_rows"_a, "n_jobs"_a);
}

}  // namespace vicinal
