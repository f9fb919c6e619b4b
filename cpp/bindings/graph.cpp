// Bindings of the graph: memberships, symmetrization, growing graphs, distances of edges.
#include "bindings/binding.hpp"
#include "graph/growing_graph.hpp"
#include "graph/perplexity.hpp"
#include "graph/smooth_knn.hpp"
#include "graph/symmetrize.hpp"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>
#include <type_traits>

namespace vicinal {

namespace {

template <class Combine>
nb::tuple symmetrize(const In<Index, 2>& index, const In<float, 2>& membership, const Combine& combine, int n_jobs) {
    const NeighborTable table = view(index, membership);
    for (Size e = 0; e < table.rows * table.k; ++e)
        require(table.index[e] < table.rows, "a neighbor index is out of range");
    OwnedCsr csr =
        run(n_jobs, [&](ThreadTeam& team) { return Symmetrizer(table, membership.data(), combine).run(team); });
    return own_graph(std::move(csr));
}

void bind_tables(nb::module_& m) {
    m.def(
        "smooth_knn",
        [](In<float, 2> distance, double k, double local_connectivity, double bandwidth, bool independent_rows,
           int n_jobs, std::optional<double> mean_distance) {
            const auto rows = static_cast<Size>(distance.shape(0)), columns = static_cast<Size>(distance.shape(1));
            auto rho = make<float>(rows);
            auto sigma = make<float>(rows);
            run(n_jobs, [&](ThreadTeam& team) {
                SmoothKnn(distance.data(), rows, columns,
                          {k, local_connectivity, bandwidth, independent_rows, mean_distance})
                    .run(rho.data(), sigma.data(), team);
                return 0;
            });
            return nb::make_tuple(rho, sigma);
        },
        "distance"_a, "k"_a, "local_connectivity"_a, "bandwidth"_a, "independent_rows"_a, "n_jobs"_a,
        "mean_distance"_a = nb::none());

    m.def(
        "memberships",
        [](In<Index, 2> index, In<float, 2> distance, In<float, 1> rho, In<float, 1> sigma, bool bipartite,
           int n_jobs) {
            const NeighborTable table = view(index, distance);
            require(static_cast<Size>(rho.shape(0)) == table.rows && static_cast<Size>(sigma.shape(0)) == table.rows,
                    "rho or sigma has the wrong length");
            auto out = make<float>(table.rows, table.k);
            run(n_jobs, [&](ThreadTeam& team) {
                memberships(table, rho.data(), sigma.data(), bipartite, out.data(), team);
                return 0;
            });
            return out;
        },
        "index"_a, "distance"_a, "rho"_a, "sigma"_a, "bipartite"_a, "n_jobs"_a);

    m.def(
        "perplexity_conditionals",
        [](In<Index, 2> index, In<float, 2> distance, double perplexity, bool bipartite, int n_jobs) {
            const NeighborTable table = view(index, distance);
            require(perplexity >= 1.0, "perplexity must be at least 1");
            auto conditional = make<float>(table.rows, table.k);
            auto sigma = make<float>(table.rows);
            run(n_jobs, [&](ThreadTeam& team) {
                PerplexityCalibration(table, perplexity, bipartite).run(conditional.data(), sigma.data(), team);
                return 0;
            });
            return nb::make_tuple(conditional, sigma);
        },
        "index"_a, "distance"_a, "perplexity"_a, "bipartite"_a, "n_jobs"_a);

    m.def(
        "symmetrize",
        [](In<Index, 2> index, In<float, 2> membership, float mix, int n_jobs) {
            return symmetrize(index, membership, FuzzyMix{mix}, n_jobs);
        },
        "index"_a, "membership"_a, "mix"_a, "n_jobs"_a);

    m.def(
        "symmetrize_mean",
        [](In<Index, 2> index, In<float, 2> membership, int n_jobs) {
            return symmetrize(index, membership, Mean{}, n_jobs);
        },
        "index"_a, "membership"_a, "n_jobs"_a);

    m.def(
        "join_directions",
        [](In<Size, 1> from_indptr, In<Index, 1> from_indices, In<float, 1> from_weights, In<Size, 1> to_indptr,
           In<Index, 1> to_indices, In<float, 1> to_weights, std::optional<float> mix, int n_jobs) {
            const Csr from = view(from_indptr, from_indices, from_weights);
            const Csr to = view(to_indptr, to_indices, to_weights);
            require(from.rows == to.rows, "both directions must have the same rows");
            return own_graph(run(n_jobs, [&](ThreadTeam& team) {
                return mix ? join_directions(from, to, FuzzyMix{*mix}, team) : join_directions(from, to, Mean{}, team);
            }));
        },
        "from_indptr"_a, "from_indices"_a, "from_weights"_a, "to_indptr"_a, "to_indices"_a, "to_weights"_a,
        "mix"_a.none(), "n_jobs"_a);
}

void bind_growing_graph(nb::module_& m) {
    const auto table = [](const auto& values, const GrowingGraph& graph) {
        auto out = make<typename std::decay_t<decltype(values)>::value_type>(graph.n(), graph.k());
        std::copy(values.begin(), values.end(), out.data());
        return out;
    };
    nb::class_<GrowingGraph>(m, "GrowingGraph")
        .def(nb::init<Size, float>(), "k"_a, "mix"_a)
        .def_prop_ro("n", &GrowingGraph::n)
        .def("extend", &GrowingGraph::extend, "n"_a)
        .def(
            "replace",
            [](GrowingGraph& self, In<Index, 1> rows, In<Index, 2> index, In<float, 2> membership) {
                const NeighborTable lists = view(index, membership);
                require(static_cast<Size>(rows.shape(0)) == lists.rows && lists.k == self.k(),
                        "rows and lists differ in number");
                self.replace(rows.data(), lists.rows, index.data(), membership.data());
            },
            "rows"_a, "index"_a, "membership"_a)
        .def(
            "keep",
            [](GrowingGraph& self, In<Index, 1> rows) { self.keep(rows.data(), static_cast<Size>(rows.shape(0))); },
            "rows"_a)
        .def("empty_rows", [](const GrowingGraph& self) { return own(self.empty_rows()); })
        .def(
            "edges",
            [](const GrowingGraph& self, In<Index, 1> rows, int n_jobs) {
                OwnedCsr csr = run(n_jobs, [&](ThreadTeam& team) {
                    return self.edges(rows.data(), static_cast<Size>(rows.shape(0)), team);
                });
                return own_graph(std::move(csr));
            },
            "rows"_a, "n_jobs"_a)
        .def("lists", [table](const GrowingGraph& self) {
            return nb::make_tuple(table(self.index(), self), table(self.membership(), self));
        });
}

void bind_edge_distances(nb::module_& m) {
    m.def(
        "edge_distances",
        [](In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> weights, In<Index, 2> index, In<float, 2> distance,
           int n_jobs) {
            const Csr graph = view(indptr, indices, weights);
            const NeighborTable table = view(index, distance);
            require(graph.rows == table.rows, "graph and table differ in their rows");
            check_edges(graph);
            auto out = make<float>(graph.indptr[graph.rows]);
            run(n_jobs, [&](ThreadTeam& team) {
                edge_distances(graph, table, out.data(), team);
                return 0;
            });
            return out;
        },
        "indptr"_a, "indices"_a, "weights"_a, "index"_a, "distance"_a, "n_jobs"_a);
}

}  // namespace

void bind_graph(nb::module_& m) {
    bind_tables(m);
    bind_growing_graph(m);
    bind_edge_distances(m);
}

}  // namespace vicinal
