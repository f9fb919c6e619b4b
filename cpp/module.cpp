// The Python face of the core: argument checks, GIL release, dispatch. The only files that see Python are
// this one, module.hpp and module_neighbors.cpp.
#include "module.hpp"

#include "chebyshev.hpp"
#include "edge_distance.hpp"
#include "full_layout.hpp"
#include "layout.hpp"
#include "loss_sums.hpp"
#include "perplexity.hpp"
#include "smooth_knn.hpp"
#include "symmetrize.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <type_traits>

using namespace vicinal;

namespace {

template <class Combine>
nb::tuple symmetrize(const In<Index, 2>& index, const In<float, 2>& membership, const Combine& combine, int n_jobs) {
    const NeighborTable table = view(index, membership);
    for (Size e = 0; e < table.rows * table.k; ++e)
        require(table.index[e] < table.rows, "a neighbour index lies beyond the rows");
    OwnedCsr csr =
        run(n_jobs, [&](ThreadTeam& team) { return Symmetrizer(table, membership.data(), combine).run(team); });
    return nb::make_tuple(own(std::move(csr.indptr)), own(std::move(csr.indices)), own(std::move(csr.weights)));
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

void bind_density(nb::module_& m) {
    m.def(
        "edge_distances",
        [](In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> weights, In<Index, 2> index, In<float, 2> distance,
           int n_jobs) {
            const Csr graph = view(indptr, indices, weights);
            const NeighborTable table = view(index, distance);
            require(graph.rows == table.rows, "graph and table differ in their rows");
            for (std::size_t e = 0; e < indices.shape(0); ++e)
                require(graph.indices[e] >= 0 && graph.indices[e] < graph.rows, "an edge leads to no row");
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
        "chebyshev_filter",
        [](In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> weights, In<float, 2> block, double cut, int degree,
           int n_jobs) {
            const Csr matrix = view(indptr, indices, weights);
            const Matrix from = view(block);
            require(from.rows == matrix.rows && from.cols % block_columns == 0, "the block does not fit the matrix");
            require(degree >= 1 && cut > -1.0, "degree or cut out of range");
            for (std::size_t e = 0; e < indices.shape(0); ++e)
                require(matrix.indices[e] >= 0 && matrix.indices[e] < matrix.rows, "an edge leads to no row");
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

// The enumerator whose name stands at the same place in its list of names.
template <class Kind, std::size_t N>
Kind named(const char* const (&names)[N], const std::string& name) {
    for (std::size_t i = 0; i < N; ++i)
        if (name == names[i]) return static_cast<Kind>(i);
    throw std::invalid_argument("the core has no " + name);
}

ForceParameters force_of(const std::string& name, float a, float b, float gamma) {
    return {named<ForceKind>(force_names, name), a, b, gamma};
}

SpaceKind space_of(const std::string& name, const std::vector<float>& values, Size dim) {
    const auto kind = named<SpaceKind>(space_names, name);
    Size wanted = 0;
    if (kind == SpaceKind::minkowski) wanted = dim + 1;
    if (kind == SpaceKind::mahalanobis) wanted = dim * dim;
    require(static_cast<Size>(values.size()) == wanted, "the space takes another number of values");
    require(kind != SpaceKind::haversine || dim == 2, "haversine places have two components");
    return kind;
}

void bind_layout_options(nb::module_& m) {
    nb::class_<LayoutOptions>(m, "LayoutOptions")
        .def(nb::init<>())
        .def(
            "set_force",
            [](LayoutOptions& self, const std::string& name, float a, float b, float gamma) {
                self.force = force_of(name, a, b, gamma);
            },
            "name"_a, "a"_a, "b"_a, "gamma"_a)
        .def(
            "set_space",
            [](LayoutOptions& self, const std::string& name, std::vector<float> values, Size dim) {
                self.space = space_of(name, values, dim);
                self.space_values = std::move(values);
            },
            "name"_a, "values"_a, "dim"_a)
        .def_rw("negatives", &LayoutOptions::negatives)
        .def_rw("pulls", &LayoutOptions::pulls)
        .def_rw("often", &LayoutOptions::often)
        .def_rw("update_negatives", &LayoutOptions::update_negatives)
        .def_rw("seed", &LayoutOptions::seed);
}

void bind_layout(nb::module_& m) {
    bind_layout_options(m);
    nb::class_<SampledLayout>(m, "SampledLayout")
        .def(
            "__init__",
            [](SampledLayout* self, In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> weights,
               In<float, 2> embedding, std::optional<In<float, 2>> reference,
               std::optional<In<std::uint64_t, 1>> row_key, const LayoutOptions& options) {
                const Matrix heads = view(embedding);
                require(!row_key || static_cast<Size>(row_key->shape(0)) == heads.rows, "row_key has another length");
                require(!reference || static_cast<Size>(reference->shape(1)) == heads.cols,
                        "reference differs in its components");
                require(!(reference && options.update_negatives), "a frozen reference cannot move");
                require(options.negatives >= 0, "negatives must not be negative");
                require(options.often > 0.0 && options.often <= 1.0, "often must lie in (0, 1]");
                space_of(space_names[static_cast<int>(options.space)], options.space_values, heads.cols);
                new (self) SampledLayout(view(indptr, indices, weights), heads, reference ? view(*reference) : Matrix{},
                                         row_key ? row_key->data() : nullptr, options);
            },
            "indptr"_a, "indices"_a, "weights"_a, "embedding"_a, "reference"_a.none(), "row_key"_a.none(), "options"_a,
            nb::keep_alive<1, 6>())
        .def(
            "step",
            [](SampledLayout& self, In<float, 1> learning_rates, int n_jobs,
               std::optional<In<float, 1>> density_rates) {
                require(!density_rates || density_rates->shape(0) == learning_rates.shape(0), "the rates differ");
                run(n_jobs, [&](ThreadTeam& team) {
                    self.step(learning_rates.data(), static_cast<Size>(learning_rates.shape(0)), team,
                              density_rates ? density_rates->data() : nullptr);
                    return 0;
                });
            },
            "learning_rates"_a, "n_jobs"_a, "density_rates"_a = nb::none())
        .def(
            "pin",
            [](SampledLayout& self, In<bool, 1> fixed) {
                require(static_cast<Size>(fixed.shape(0)) == self.embedding().rows, "fixed has another length");
                self.pin(fixed.data());
            },
            "fixed"_a)
        .def(
            "weigh_negatives",
            [](SampledLayout& self, In<float, 1> weights) {
                require(static_cast<Size>(weights.shape(0)) == self.n_reference(), "weights have another length");
                self.weigh_negatives(weights.data());
            },
            "weights"_a)
        .def(
            "add_density",
            [](SampledLayout& self, In<float, 1> target, float lambda, double variance_shift, Size first_epoch,
               std::optional<std::vector<double>> fitted) {
                require(static_cast<Size>(target.shape(0)) == self.embedding().rows, "target has another length");
                require(!fitted || fitted->size() == 4, "fitted is (mean, variance, covariance, strength)");
                DensityOptions options{lambda, variance_shift, first_epoch, {}};
                if (fitted) options.fitted = {(*fitted)[0], (*fitted)[1], (*fitted)[2], (*fitted)[3]};
                self.add_density(target.data(), options);
            },
            "target"_a, "lambda_"_a, "variance_shift"_a, "first_epoch"_a, "fitted"_a.none())
        .def(
            "density_summary",
            [](SampledLayout& self, int n_jobs) {
                const DensitySummary s = run(n_jobs, [&](ThreadTeam& team) { return self.measure_density(team); });
                return nb::make_tuple(s.mean, s.variance, s.covariance, s.strength);
            },
            "n_jobs"_a)
        .def(
            "density_gradient",
            [](SampledLayout& self, int n_jobs) {
                const Matrix places = self.embedding();
                auto out = make<float>(places.rows, places.cols);
                run(n_jobs, [&](ThreadTeam& team) {
                    const std::vector<float>& moves = self.density_moves(team);
                    std::copy(moves.begin(), moves.end(), out.data());
                    return 0;
                });
                return out;
            },
            "n_jobs"_a)
        .def(
            "place", [](SampledLayout& self, In<float, 2> places) { self.place(view(places)); }, "places"_a)
        .def_prop_ro("epoch", &SampledLayout::epoch)
        .def("embedding", [](const SampledLayout& self) {
            const Matrix places = self.embedding();
            auto out = make<float>(places.rows, places.cols);
            std::copy(places.data, places.data + places.rows * places.cols, out.data());
            return out;
        });

    m.def(
        "force_table",
        [](In<float, 1> d2, const std::string& name, float a, float b, float gamma) {
            const auto n = static_cast<Size>(d2.shape(0));
            auto attract = make<float>(n);
            auto repel = make<float>(n);
            kernels().force_table(force_of(name, a, b, gamma), d2.data(), n, attract.data(), repel.data());
            return nb::make_tuple(attract, repel);
        },
        "d2"_a, "name"_a, "a"_a, "b"_a, "gamma"_a);

    m.def(
        "space_table",
        [](In<float, 2> heads, In<float, 2> tails, const std::string& name, const std::vector<float>& values) {
            const Matrix from = view(heads), to = view(tails);
            require(from.rows == to.rows && from.cols == to.cols && from.cols >= 1, "heads and tails differ in shape");
            const SpaceKind kind = space_of(name, values, from.cols);
            auto d2 = make<float>(from.rows);
            auto delta = make<float>(from.rows, from.cols);
            kernels().space_table({kind, values.data()}, from, to, d2.data(), delta.data());
            return nb::make_tuple(d2, delta);
        },
        "heads"_a, "tails"_a, "name"_a, "values"_a);
}

using Rows = std::optional<In<Index, 1>>;

PairHeads chosen_heads(const Rows& rows, Size n) {
    if (!rows) return {nullptr, n};
    const PairHeads heads{rows->data(), static_cast<Size>(rows->shape(0))};
    for (Size i = 0; i < heads.n; ++i)
        require(heads.rows[i] >= 0 && heads.rows[i] < n, "rows lie beyond the embedding");
    return heads;
}

void bind_losses(nb::module_& m) {
    nb::class_<PairQuantity>(m, "PairQuantity")
        .def(
            "__init__",
            [](PairQuantity* self, const std::string& term, const std::string& force, float a, float b, float gamma) {
                new (self) PairQuantity{named<PairTerm>(term_names, term), force_of(force, a, b, gamma)};
            },
            "term"_a, "force"_a, "a"_a, "b"_a, "gamma"_a);

    nb::class_<PairSums>(m, "PairSums")
        .def(
            "__init__",
            [](PairSums* self, In<float, 2> embedding, std::optional<In<float, 1>> weight) {
                require(!weight || weight->shape(0) == embedding.shape(0), "weight has another length");
                new (self) PairSums(view(embedding), weight ? weight->data() : nullptr);
            },
            "embedding"_a, "weight"_a.none())
        .def(
            "costs",
            [](const PairSums& self, const PairQuantity& quantity, int n_jobs) {
                auto out = make<double>(self.rows());
                run(n_jobs, [&](ThreadTeam& team) {
                    self.costs(quantity, out.data(), team);
                    return 0;
                });
                return out;
            },
            "quantity"_a, "n_jobs"_a)
        .def(
            "forces",
            [](const PairSums& self, const PairQuantity& quantity, Rows rows, int n_jobs) {
                const PairHeads heads = chosen_heads(rows, self.rows());
                auto out = make<double>(heads.n, self.dim());
                run(n_jobs, [&](ThreadTeam& team) {
                    self.forces(quantity, heads, out.data(), team);
                    return 0;
                });
                return out;
            },
            "quantity"_a, "rows"_a.none(), "n_jobs"_a)
        .def(
            "edges",
            [](const PairSums& self, const PairQuantity& quantity, bool vectors, In<Size, 1> indptr,
               In<Index, 1> indices, In<float, 1> weights, Rows rows, int n_jobs) {
                const PairHeads heads = chosen_heads(rows, self.rows());
                const Csr graph = view(indptr, indices, weights);
                require(graph.rows == self.rows(), "graph and embedding differ in their rows");
                for (std::size_t e = 0; e < indices.shape(0); ++e)
                    require(graph.indices[e] >= 0 && graph.indices[e] < graph.rows, "an edge leads to no row");
                auto out = make<double>(heads.n, vectors ? self.dim() : 1);
                run(n_jobs, [&](ThreadTeam& team) {
                    self.edges(quantity, vectors, heads, graph, out.data(), team);
                    return 0;
                });
                return out;
            },
            "quantity"_a, "vectors"_a, "indptr"_a, "indices"_a, "weights"_a, "rows"_a.none(), "n_jobs"_a)
        .def(
            "draws",
            [](const PairSums& self, const PairQuantity& quantity, Size groups, std::uint64_t seed, int n_jobs) {
                require(self.rows() >= 2 && groups >= 2, "draws need two rows and two groups");
                auto value = make<double>(self.rows());
                auto variance = make<double>(self.rows());
                run(n_jobs, [&](ThreadTeam& team) {
                    self.draws(quantity, groups, seed, {value.data(), variance.data()}, team);
                    return 0;
                });
                return nb::make_tuple(value, variance);
            },
            "quantity"_a, "groups"_a, "seed"_a, "n_jobs"_a);
}

Out<float, 2> copy(const Matrix& places) {
    auto out = make<float>(places.rows, places.cols);
    std::copy(places.data, places.data + places.rows * places.cols, out.data());
    return out;
}

std::vector<FullStep> full_steps(const In<float, 2>& steps) {
    require(steps.shape(1) == 3, "a step is (exaggeration, learning rate, momentum)");
    std::vector<FullStep> out(steps.shape(0));
    for (std::size_t t = 0; t < out.size(); ++t)
        out[t] = {steps.data()[3 * t], steps.data()[3 * t + 1], steps.data()[3 * t + 2]};
    return out;
}

template <class Nodes>
Grid full_grid(const std::vector<Size>& shape, const std::vector<float>& origin, float spacing, Size dim,
               const Nodes& nodes) {
    Grid grid;
    require(dim >= 1 && dim <= Grid::most_axes, "a grid has one to three axes");
    require(static_cast<Size>(shape.size()) == dim && static_cast<Size>(origin.size()) == dim && spacing > 0.0f,
            "the grid does not fit the embedding");
    grid.dim = dim;
    grid.spacing = spacing;
    for (Size c = 0; c < dim; ++c) {
        require(shape[c] >= 4, "a grid needs four nodes an axis");
        grid.shape[c] = shape[c];
        grid.origin[c] = origin[c];
    }
    require(static_cast<Size>(nodes.size()) == grid.size(), "the nodes do not fit the grid");
    return grid;
}

void bind_full_layout(nb::module_& m) {
    nb::class_<FullLayout>(m, "FullLayout")
        .def(
            "__init__",
            [](FullLayout* self, In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> weights, In<float, 2> embedding,
               std::optional<In<float, 2>> reference, float dof) {
                require(embedding.shape(1) >= 1, "an embedding needs a component");
                require(!reference || reference->shape(1) == embedding.shape(1), "reference differs in its components");
                require(dof > 0.0f, "dof must be positive");
                new (self) FullLayout(view(indptr, indices, weights), view(embedding),
                                      reference ? view(*reference) : Matrix{}, dof);
            },
            "indptr"_a, "indices"_a, "weights"_a, "embedding"_a, "reference"_a.none(), "dof"_a, nb::keep_alive<1, 6>())
        .def(
            "step_exact",
            [](FullLayout& self, In<float, 2> steps, int n_jobs) {
                const std::vector<FullStep> list = full_steps(steps);
                run(n_jobs, [&](ThreadTeam& team) {
                    self.step_exact(list.data(), static_cast<Size>(list.size()), team);
                    return 0;
                });
            },
            "steps"_a, "n_jobs"_a)
        .def(
            "step_grid",
            [](FullLayout& self, In<float, 1> potential, const std::vector<Size>& shape,
               const std::vector<float>& origin, float spacing, In<float, 2> steps, int n_jobs) {
                const Grid grid = full_grid(shape, origin, spacing, self.embedding().cols, potential);
                const std::vector<FullStep> list = full_steps(steps);
                run(n_jobs, [&](ThreadTeam& team) {
                    self.step_grid(grid, potential.data(), list.data(), static_cast<Size>(list.size()), team);
                    return 0;
                });
            },
            "potential"_a, "shape"_a, "origin"_a, "spacing"_a, "steps"_a, "n_jobs"_a)
        .def(
            "spread",
            [](FullLayout& self, const std::vector<Size>& shape, const std::vector<float>& origin, float spacing,
               int n_jobs) {
                Size size = 1;
                for (const Size nodes : shape) size *= nodes;
                require(size > 0 && size < (Size{1} << 31), "the grid is empty or too large");
                auto out = make<float>(size);
                const Grid grid = full_grid(shape, origin, spacing, self.embedding().cols, out);
                run(n_jobs, [&](ThreadTeam& team) {
                    self.spread(grid, out.data(), team);
                    return 0;
                });
                return out;
            },
            "shape"_a, "origin"_a, "spacing"_a, "n_jobs"_a)
        .def("bounds",
             [](const FullLayout& self) {
                 auto low = make<float>(self.embedding().cols);
                 auto high = make<float>(self.embedding().cols);
                 self.bounds(low.data(), high.data());
                 return nb::make_tuple(low, high);
             })
        .def_prop_ro("epoch", &FullLayout::epoch)
        .def("embedding", [](const FullLayout& self) { return copy(self.embedding()); });
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "Compiled core of vicinal: neighbours, graph, layout.";
    // A model in a script's global variables outlives the module when the interpreter ends; that is no leak.
    nb::set_leak_warnings(false);
    bind_neighbors(m);
    bind_graph(m);
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
