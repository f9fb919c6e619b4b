// Bindings of the sampled layout.
#include "bindings/binding.hpp"
#include "layout/sampled_kernels.hpp"
#include "layout/sampled_layout.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <type_traits>

namespace vicinal {

namespace {

// A Python function of points [pairs, dim] that returns distances and gradients. The points are copies, so that the
// function may keep or change them.
class PythonSpace : public SpaceFunction {
  public:
    explicit PythonSpace(nb::object function) : function_(std::move(function)) {}

    void evaluate(const float* heads, const float* tails, int pairs, int dim, float* distances,
                  float* gradients) const override {
        nb::gil_scoped_acquire gil;
        const nb::object result = function_(copy(Matrix{heads, pairs, dim}), copy(Matrix{tails, pairs, dim}));
        const auto [d, gradient] = nb::cast<std::pair<In<float, 1>, In<float, 2>>>(result);
        require(static_cast<int>(d.shape(0)) == pairs && static_cast<int>(gradient.shape(0)) == pairs &&
                    static_cast<int>(gradient.shape(1)) == dim,
                "the function of an output space returned arrays of other shapes");
        std::copy(d.data(), d.data() + pairs, distances);
        std::copy(gradient.data(), gradient.data() + pairs * dim, gradients);
    }

  private:
    const nb::object function_;
};

SpaceKind space_of(const std::string& name, const std::vector<float>& values, Size dim) {
    const auto kind = named<SpaceKind>(space_names, name);
    Size wanted = 0;
    if (kind == SpaceKind::minkowski) wanted = dim + 1;
    if (kind == SpaceKind::mahalanobis) wanted = dim * dim;
    require(static_cast<Size>(values.size()) == wanted, "wrong number of parameters for this output space");
    require(kind != SpaceKind::haversine || dim == 2, "haversine needs two components");
    return kind;
}

void check_options(const LayoutOptions& options, Size dim) {
    require(options.negatives >= 0, "negatives must not be negative");
    require(options.pulls >= 1, "pulls must be at least 1");
    require(options.longest_push > 0.0f, "longest_push must be positive");
    require(options.firings_per_sweep > 0.0 && options.firings_per_sweep <= 1.0,
            "firings_per_sweep must lie in (0, 1]");
    space_of(space_names[static_cast<int>(options.space)], options.space_values, dim);
    require(options.space != SpaceKind::function || options.space_function != nullptr,
            "the space 'function' needs its function");
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
        .def(
            "set_space_function",
            [](LayoutOptions& self, nb::object function) {
                self.space = SpaceKind::function;
                self.space_values.clear();
                self.space_function = std::make_shared<PythonSpace>(std::move(function));
            },
            "function"_a)
        .def_rw("negatives", &LayoutOptions::negatives)
        .def_rw("single_sweeps", &LayoutOptions::single_sweeps)
        .def_rw("longest_push", &LayoutOptions::longest_push)
        .def_rw("pulls", &LayoutOptions::pulls)
        .def_rw("firings_per_sweep", &LayoutOptions::firings_per_sweep)
        .def_rw("update_negatives", &LayoutOptions::update_negatives)
        .def_rw("seed", &LayoutOptions::seed)
        .def_rw("first_sweep", &LayoutOptions::first_sweep)
        .def_rw("heaviest", &LayoutOptions::heaviest)
        // What the kernels of a GPU are compiled for and called with.
        .def_prop_ro("force_type",
                     [](const LayoutOptions& self) { return force_types[static_cast<int>(self.force.kind)]; })
        .def_prop_ro("space_type", [](const LayoutOptions& self) { return space_types[static_cast<int>(self.space)]; })
        .def_ro("space_values", &LayoutOptions::space_values)
        .def(
            "sweep",
            [](const LayoutOptions& self, Size number) {
                const auto [sweep, law] = sweep_and_law(self, number);
                const ForceParameters& force = law.force;
                return nb::make_tuple(sweep.key, sweep.negatives, sweep.longest_push,
                                      nb::make_tuple(force.a, force.b, force.gamma));
            },
            "number"_a);
    // The types of forces and spaces by name, for the kernels of a GPU.
    const auto types = [&m](const char* name, const auto& names, const auto& of_names) {
        nb::dict out;
        for (std::size_t i = 0; i < std::size(names); ++i) out[names[i]] = of_names[i];
        m.attr(name) = out;
    };
    types("FORCES", force_names, force_types);
    types("SPACES", space_names, space_types);
}

// A part of a layout: what a cluster's worker holds and does.
void bind_layout_part(nb::module_& m) {
    m.def(
        "layout_edges",
        [](In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> weights, Size first_row, Size n, Size dim,
           const LayoutOptions& options, int n_jobs) {
            const Csr edges = view(indptr, indices, weights);
            require(first_row >= 0 && first_row + edges.rows <= n, "the part has rows that do not exist");
            require(options.heaviest > 0.0f, "heaviest must be the weight of the heaviest edge of all parts");
            check_options(options, dim);
            std::vector<Index> head_row(static_cast<std::size_t>(edges.rows));
            for (Size i = 0; i < edges.rows; ++i) head_row[i] = static_cast<Index>(first_row + i);
            const SampledLayout layout = run(n_jobs, [&](ThreadTeam& team) {
                return SampledLayout::in_place(edges, nullptr, n, dim, options, head_row.data(), team);
            });
            auto tails = layout.tails();
            auto rate = layout.rate(), phase = layout.phase();
            return nb::make_tuple(own(std::move(tails)), own(std::move(rate)), own(std::move(phase)));
        },
        "indptr"_a, "indices"_a, "weights"_a, "first_row"_a, "n"_a, "dim"_a, "options"_a, "n_jobs"_a);

    m.def(
        "sweep_part",
        [](In<Size, 1> indptr, In<Index, 1> tails, In<std::uint32_t, 1> rate, In<std::uint32_t, 1> phase,
           Size first_row, In<float, 2> points, const LayoutOptions& options, Size sweep, float learning_rate,
           std::optional<In<std::uint32_t, 1>> keep, std::optional<In<Index, 1>> alias, int n_jobs) {
            const Matrix places = view(points);
            const auto rows = static_cast<Size>(indptr.shape(0)) - 1;
            require(rows >= 0 && first_row >= 0 && first_row + rows <= places.rows,
                    "the part has rows that do not exist");
            const auto slots = static_cast<std::size_t>(indptr.data()[rows] + most_lanes);
            require(tails.shape(0) == slots && rate.shape(0) == slots && phase.shape(0) == slots,
                    "the edges do not fit together");
            for (Size i = 0; i < rows; ++i)
                require(indptr.data()[i] <= indptr.data()[i + 1], "indptr must not decrease");
            require(keep.has_value() == alias.has_value(), "keep and alias belong together");
            require(!keep || (static_cast<Size>(keep->shape(0)) == places.rows &&
                              static_cast<Size>(alias->shape(0)) == places.rows),
                    "keep and alias have the wrong length");
            require(!options.update_negatives, "negatives cannot move if only some points do");
            check_options(options, places.cols);
            auto out = make<float>(rows, places.cols);
            const PartEdges part{indptr.data(), tails.data(), rate.data(), phase.data(), first_row, rows};
            const NegativeTable negatives{keep ? keep->data() : nullptr, alias ? alias->data() : nullptr};
            run(n_jobs, [&](ThreadTeam& team) {
                SampledLayout::sweep_part(part, places, options, sweep, learning_rate, negatives, out.data(), team);
                return 0;
            });
            return out;
        },
        "indptr"_a, "tails"_a, "rate"_a, "phase"_a, "first_row"_a, "points"_a, "options"_a, "sweep"_a,
        "learning_rate"_a, "keep"_a.none(), "alias"_a.none(), "n_jobs"_a);

    m.def(
        "alias_table",
        [](In<float, 1> weights) {
            AliasTable table(weights.data(), static_cast<Size>(weights.shape(0)));
            return nb::make_tuple(own(std::move(table.keep)), own(std::move(table.alias)));
        },
        "weights"_a);
}

}  // namespace

void bind_layout(nb::module_& m) {
    bind_layout_options(m);
    bind_layout_part(m);
    nb::class_<SampledLayout>(m, "SampledLayout")
        .def(
            "__init__",
            [](SampledLayout* self, In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> weights,
               In<float, 2> embedding, std::optional<In<float, 2>> reference,
               std::optional<In<std::uint64_t, 1>> row_key, const LayoutOptions& options,
               std::optional<In<Index, 1>> head_row, int n_jobs) {
                const Matrix places = view(embedding);
                const Csr edges = view(indptr, indices, weights);
                require(!row_key || static_cast<Size>(row_key->shape(0)) == edges.rows, "row_key has the wrong length");
                require(!head_row || static_cast<Size>(head_row->shape(0)) == edges.rows,
                        "head_row has the wrong length");
                require(!reference || static_cast<Size>(reference->shape(1)) == places.cols,
                        "reference and embedding differ in their number of components");
                require(!(reference && options.update_negatives), "a frozen reference cannot move");
                require(!(head_row && (reference || options.update_negatives)),
                        "head_row excludes a reference and moving negatives");
                check_options(options, places.cols);
                run(n_jobs, [&](ThreadTeam& team) {
                    new (self) SampledLayout(edges, places, reference ? view(*reference) : Matrix{},
                                             row_key ? row_key->data() : nullptr, options, team,
                                             head_row ? head_row->data() : nullptr);
                    return 0;
                });
            },
            "indptr"_a, "indices"_a, "weights"_a, "embedding"_a, "reference"_a.none(), "row_key"_a.none(), "options"_a,
            "head_row"_a.none(), "n_jobs"_a, nb::keep_alive<1, 6>())
        .def_static(
            "in_place",
            [](In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> weights, InOut<float, 2> points,
               const LayoutOptions& options, In<Index, 1> head_row, int n_jobs) {
                const Csr edges = view(indptr, indices, weights);
                require(static_cast<Size>(head_row.shape(0)) == edges.rows, "head_row has the wrong length");
                require(!options.update_negatives, "negatives cannot move if only some points do");
                check_options(options, static_cast<Size>(points.shape(1)));
                return run(n_jobs, [&](ThreadTeam& team) {
                    return SampledLayout::in_place(edges, points.data(), static_cast<Size>(points.shape(0)),
                                                   static_cast<Size>(points.shape(1)), options, head_row.data(), team);
                });
            },
            "indptr"_a, "indices"_a, "weights"_a, "points"_a.noconvert(), "options"_a, "head_row"_a, "n_jobs"_a,
            nb::keep_alive<0, 4>())
        .def(
            "attach",
            [](SampledLayout& self, InOut<float, 2> points) {
                require(static_cast<Size>(points.shape(1)) == self.embedding().cols,
                        "points differ in their number of components");
                self.attach(points.data(), static_cast<Size>(points.shape(0)));
            },
            "points"_a.noconvert(), nb::keep_alive<1, 2>())
        .def(
            "step",
            [](SampledLayout& self, In<float, 2> learning_rates, int n_jobs) {
                const Matrix rates = view(learning_rates);
                require(rates.cols == 1 || rates.cols == self.n_heads(),
                        "learning_rates must have one column, or one per head");
                run(n_jobs, [&](ThreadTeam& team) {
                    self.step(rates, team);
                    return 0;
                });
            },
            "learning_rates"_a, "n_jobs"_a)
        .def(
            "pin",
            [](SampledLayout& self, In<bool, 1> fixed) {
                require(static_cast<Size>(fixed.shape(0)) == self.n_heads(), "fixed has the wrong length");
                self.pin(fixed.data());
            },
            "fixed"_a)
        .def(
            "weigh_negatives",
            [](SampledLayout& self, In<float, 1> weights) {
                require(static_cast<Size>(weights.shape(0)) == self.n_reference(), "weights have the wrong length");
                self.weigh_negatives(weights.data());
            },
            "weights"_a)
        .def(
            "add_density",
            [](SampledLayout& self, In<float, 1> target, float lambda, double variance_shift, Size first_sweep,
               Size every, std::optional<std::vector<double>> fitted) {
                require(static_cast<Size>(target.shape(0)) == self.n_heads(), "target has the wrong length");
                require(!fitted || fitted->size() == 4, "fitted must be (mean, variance, covariance, strength)");
                require(every >= 1, "every must be at least 1");
                DensityOptions options{lambda, variance_shift, first_sweep, every, {}};
                if (fitted) options.fitted = {(*fitted)[0], (*fitted)[1], (*fitted)[2], (*fitted)[3]};
                self.add_density(target.data(), options);
            },
            "target"_a, "lambda_"_a, "variance_shift"_a, "first_sweep"_a, "every"_a, "fitted"_a.none())
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
        .def_prop_ro("sweep", &SampledLayout::sweep)
        .def("embedding", [](const SampledLayout& self) { return copy(self.embedding()); });

    m.def(
        "force_table",
        [](In<float, 1> d2, const std::string& name, float a, float b, float gamma) {
            const auto n = static_cast<Size>(d2.shape(0));
            auto attract = make<float>(n);
            auto repel = make<float>(n);
            sampled_kernels().force_table(force_of(name, a, b, gamma), d2.data(), n, attract.data(), repel.data());
            return nb::make_tuple(attract, repel);
        },
        "d2"_a, "name"_a, "a"_a, "b"_a, "gamma"_a);

    m.def(
        "space_table",
        [](In<float, 2> heads, In<float, 2> tails, const std::string& name, const std::vector<float>& values) {
            const Matrix from = view(heads), to = view(tails);
            require(from.rows == to.rows && from.cols == to.cols && from.cols >= 1, "heads and tails differ in shape");
            const SpaceKind kind = space_of(name, values, from.cols);
            require(kind != SpaceKind::function, "the space 'function' has no table");
            auto d2 = make<float>(from.rows);
            auto delta = make<float>(from.rows, from.cols);
            sampled_kernels().space_table({kind, values.data()}, from, to, d2.data(), delta.data());
            return nb::make_tuple(d2, delta);
        },
        "heads"_a, "tails"_a, "name"_a, "values"_a);
}

}  // namespace vicinal
