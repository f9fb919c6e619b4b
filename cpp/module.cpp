// The Python face of the core: argument checks, GIL release, dispatch. Files named module* are the only ones that see
// Python.
#include "module.hpp"

#include "chebyshev.hpp"
#include "coarsen.hpp"
#include "edge_distance.hpp"
#include "growing_graph.hpp"
#include "kernels.hpp"
#include "perplexity.hpp"
#include "smooth_knn.hpp"
#include "symmetrize.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

using namespace vicinal;

namespace {

void check_edges(const Csr& graph) {
    for (Size e = 0; e < graph.indptr[graph.rows]; ++e)
        require(graph.indices[e] >= 0 && graph.indices[e] < graph.rows, "an edge leads to no row");
}

nb::tuple own_graph(OwnedCsr&& csr) {
    return nb::make_tuple(own(std::move(csr.indptr)), own(std::move(csr.indices)), own(std::move(csr.weights)));
}

template <class Combine>
nb::tuple symmetrize(const In<Index, 2>& index, const In<float, 2>& membership, const Combine& combine, int n_jobs) {
    const NeighborTable table = view(index, membership);
    for (Size e = 0; e < table.rows * table.k; ++e)
        require(table.index[e] < table.rows, "a neighbour index lies beyond the rows");
    OwnedCsr csr =
        run(n_jobs, [&](ThreadTeam& team) { return Symmetrizer(table, membership.data(), combine).run(team); });
    return own_graph(std::move(csr));
}

void bind_graph(nb::module_& m) {
    m.def(
        "smooth_knn",
        [](In<float, 2> distance, double k, double local_connectivity, double bandwidth, bool alone, int n_jobs) {
            const auto rows = static_cast<Size>(distance.shape(0)), columns = static_cast<Size>(distance.shape(1));
            auto rho = make<float>(rows);
            auto sigma = make<float>(rows);
            run(n_jobs, [&](ThreadTeam& team) {
                SmoothKnn(distance.data(), rows, columns, {k, local_connectivity, bandwidth, alone})
                    .run(rho.data(), sigma.data(), team);
                return 0;
            });
            return nb::make_tuple(rho, sigma);
        },
        "distance"_a, "k"_a, "local_connectivity"_a, "bandwidth"_a, "alone"_a, "n_jobs"_a);

    m.def(
        "memberships",
        [](In<Index, 2> index, In<float, 2> distance, In<float, 1> rho, In<float, 1> sigma, bool bipartite,
           int n_jobs) {
            const NeighborTable table = view(index, distance);
            require(static_cast<Size>(rho.shape(0)) == table.rows && static_cast<Size>(sigma.shape(0)) == table.rows,
                    "rho or sigma has another length");
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
                require(static_cast<Size>(rows.shape(0)) == lists.rows && lists.k == self.k(), "rows and lists differ");
                self.replace(rows.data(), lists.rows, index.data(), membership.data());
            },
            "rows"_a, "index"_a, "membership"_a)
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

void bind_density(nb::module_& m) {
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

void bind_spectral(nb::module_& m) {
    m.def(
        "coarsen",
        [](In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> weights, int n_jobs) {
            const Csr graph = view(indptr, indices, weights);
            check_edges(graph);
            Coarse coarse = run(n_jobs, [&](ThreadTeam& team) { return coarsen(graph, team); });
            return nb::make_tuple(own(std::move(coarse.group)), own_graph(std::move(coarse.graph)));
        },
        "indptr"_a, "indices"_a, "weights"_a, "n_jobs"_a);
    m.def(
        "chebyshev_filter",
        [](In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> weights, In<float, 2> block, double cut, int degree,
           int n_jobs) {
            const Csr matrix = view(indptr, indices, weights);
            const Matrix from = view(block);
            require(from.rows == matrix.rows && from.cols % block_columns == 0, "the block does not fit the matrix");
            require(degree >= 1 && cut > -1.0, "degree or cut out of range");
            check_edges(matrix);
            auto out = make<float>(from.rows, from.cols);
            std::copy(from.data, from.data + from.rows * from.cols, out.data());
            run(n_jobs, [&](ThreadTeam& team) {
                chebyshev_filter(matrix, out.data(), from.cols, cut, degree, team);
                return 0;
            });
            return out;
        },
        "indptr"_a, "indices"_a, "weights"_a, "block"_a, "cut"_a, "degree"_a, "n_jobs"_a);
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "Compiled core of vicinal: neighbours, graph, layout.";
    // A model in a script's global variables outlives the module when the interpreter ends; that is no leak.
    nb::set_leak_warnings(false);
    bind_neighbors(m);
    bind_online(m);
    bind_graph(m);
    bind_growing_graph(m);
    bind_density(m);
    bind_spectral(m);
    bind_layout(m);
    bind_full_layout(m);
    bind_losses(m);
    m.def("active_level", [] { return std::string(active_level().name); });
    m.def("available_levels", [] {
        Size count = 0;
        const Level* table = levels(count);
        std::vector<std::string> names;
        for (Size l = 0; l < count; ++l)
            if (table[l].available) names.emplace_back(table[l].name);
        return names;
    });
    m.def("resolve_jobs", &resolve_jobs, "n_jobs"_a);
}
