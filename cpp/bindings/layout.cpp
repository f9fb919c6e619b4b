// Bindings of the sampled layout and of the full layout (t-SNE).
#include "bindings/binding.hpp"
#include "layout/full_layout.hpp"
#include "layout/grid_convolution.hpp"
#include "layout/layout_kernels.hpp"
#include "layout/sampled_layout.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <array>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

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

nb::tuple as_tuple(const DensitySummary& s) { return nb::make_tuple(s.mean, s.variance, s.covariance, s.strength); }

DensitySummary summary_of(const std::vector<double>& values) {
    require(values.size() == 4, "a summary is (mean, variance, covariance, strength)");
    return {values[0], values[1], values[2], values[3]};
}

// The arrays of PartEdges, checked and kept alive.
class PartArrays {
  public:
    PartArrays(In<Size, 1> indptr, In<Index, 1> tails, In<std::uint32_t, 1> rate, In<std::uint32_t, 1> phase,
               Size first_row)
        : indptr_(std::move(indptr)), tails_(std::move(tails)), rate_(std::move(rate)), phase_(std::move(phase)) {
        const auto rows = static_cast<Size>(indptr_.shape(0)) - 1;
        require(rows >= 0 && first_row >= 0, "the part has rows that do not exist");
        edges_ = {indptr_.data(), tails_.data(), rate_.data(), phase_.data(), first_row, rows};
        for (Size i = 0; i < rows; ++i) require(edges_.indptr[i] <= edges_.indptr[i + 1], "indptr must not decrease");
        const auto slots = static_cast<std::size_t>(edges_.indptr[rows] + most_lanes);
        require(tails_.shape(0) == slots && rate_.shape(0) == slots && phase_.shape(0) == slots,
                "the edges do not fit together");
    }

    const PartEdges& edges() const { return edges_; }

    // Returns the snapshot of all rows if this part and the options fit it.
    Matrix check_points(Matrix points, const LayoutOptions& options) const {
        require(edges_.first_row + edges_.rows <= points.rows, "the part has rows that do not exist");
        require(!options.update_negatives, "negatives cannot move if only some points do");
        check_options(options, points.cols);
        return points;
    }

  private:
    In<Size, 1> indptr_;
    In<Index, 1> tails_;
    In<std::uint32_t, 1> rate_, phase_;
    PartEdges edges_;
};

// The part of a layout that a worker of a cluster holds.
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

    nb::class_<PartArrays>(m, "PartEdges")
        .def(nb::init<In<Size, 1>, In<Index, 1>, In<std::uint32_t, 1>, In<std::uint32_t, 1>, Size>(), "indptr"_a,
             "tails"_a, "rate"_a, "phase"_a, "first_row"_a)
        .def(
            "sweep",
            [](const PartArrays& self, In<float, 2> points, const LayoutOptions& options, Size sweep,
               float learning_rate, std::optional<In<std::uint32_t, 1>> keep, std::optional<In<Index, 1>> alias,
               std::optional<In<float, 2>> moves, Size every, int n_jobs) {
                const Matrix places = self.check_points(view(points), options);
                require(keep.has_value() == alias.has_value(), "keep and alias belong together");
                require(!keep || (static_cast<Size>(keep->shape(0)) == places.rows &&
                                  static_cast<Size>(alias->shape(0)) == places.rows),
                        "keep and alias have the wrong length");
                require(!moves || (static_cast<Size>(moves->shape(0)) == self.edges().rows &&
                                   static_cast<Size>(moves->shape(1)) == places.cols),
                        "moves have the wrong shape");
                auto out = make<float>(self.edges().rows, places.cols);
                const NegativeTable negatives{keep ? keep->data() : nullptr, alias ? alias->data() : nullptr};
                run(n_jobs, [&](ThreadTeam& team) {
                    SampledLayout::sweep_part(self.edges(), places, options, sweep, learning_rate, negatives,
                                              moves ? moves->data() : nullptr, static_cast<float>(every), out.data(),
                                              team);
                    return 0;
                });
                return out;
            },
            "points"_a, "options"_a, "sweep"_a, "learning_rate"_a, "keep"_a.none(), "alias"_a.none(), "moves"_a.none(),
            "every"_a, "n_jobs"_a)
        .def(
            "measure_density",
            [](const PartArrays& self, In<float, 2> points, const LayoutOptions& options, int n_jobs) {
                const LayoutTask task = task_of(self.edges(), self.check_points(view(points), options));
                const DensityPart part =
                    run(n_jobs, [&](ThreadTeam& team) { return DensityPart(task, options.force, team); });
                auto log_radius = part.log_radius(), mass = part.mass();
                return nb::make_tuple(own(std::move(log_radius)), own(std::move(mass)));
            },
            "points"_a, "options"_a, "n_jobs"_a)
        .def(
            "density_moves",
            [](const PartArrays& self, In<float, 2> points, const LayoutOptions& options,
               const std::vector<double>& summary, In<float, 2> share, float lambda, int n_jobs) {
                const Matrix places = self.check_points(view(points), options), shares = view(share);
                require(shares.rows == places.rows && shares.cols == 2, "share must have two numbers for each row");
                const DensitySummary sums = summary_of(summary);
                const LayoutTask task = task_of(self.edges(), places);
                auto out = make<float>(task.n_heads, task.dim);
                run(n_jobs, [&](ThreadTeam& team) {
                    const std::vector<float> moves = DensityPart(task, options.force, team)
                                                         .moves(task, sums, options.pulls, lambda, shares.data,
                                                                shares.row(self.edges().first_row), team);
                    std::copy(moves.begin(), moves.end(), out.data());
                    return 0;
                });
                return out;
            },
            "points"_a, "options"_a, "summary"_a, "share"_a, "lambda_"_a, "n_jobs"_a);

    m.def(
        "summarize_density",
        [](In<float, 1> target, In<double, 1> log_radius, double variance_shift, std::uint64_t rates) {
            const auto rows = static_cast<Size>(target.shape(0));
            require(static_cast<Size>(log_radius.shape(0)) == rows, "target and log_radius differ in length");
            return as_tuple(summarize_density(target.data(), log_radius.data(), rows, variance_shift,
                                              density_strength(rates, rows)));
        },
        "target"_a, "log_radius"_a, "variance_shift"_a, "rates"_a);

    m.def(
        "density_shares",
        [](In<float, 1> target, In<double, 1> log_radius, In<double, 1> mass, const std::vector<double>& summary) {
            const auto rows = static_cast<Size>(target.shape(0));
            require(static_cast<Size>(log_radius.shape(0)) == rows && static_cast<Size>(mass.shape(0)) == rows,
                    "target, log_radius and mass differ in length");
            const DensitySummary sums = summary_of(summary);
            auto share = make<float>(rows, Size{2});
            for (Size i = 0; i < rows; ++i)
                share_of_row(sums, target.data()[i], log_radius.data()[i], mass.data()[i], share.data() + 2 * i);
            return share;
        },
        "target"_a, "log_radius"_a, "mass"_a, "summary"_a);

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
                require(every >= 1, "every must be at least 1");
                DensityOptions options{lambda, variance_shift, first_sweep, every, {}};
                if (fitted) options.fitted = summary_of(*fitted);
                self.add_density(target.data(), options);
            },
            "target"_a, "lambda_"_a, "variance_shift"_a, "first_sweep"_a, "every"_a, "fitted"_a.none())
        .def(
            "density_summary",
            [](SampledLayout& self, int n_jobs) {
                const DensitySummary s = run(n_jobs, [&](ThreadTeam& team) { return self.measure_density(team); });
                return as_tuple(s);
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
            layout_kernels().force_table(force_of(name, a, b, gamma), d2.data(), n, attract.data(), repel.data());
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
            layout_kernels().space_table({kind, values.data()}, from, to, d2.data(), delta.data());
            return nb::make_tuple(d2, delta);
        },
        "heads"_a, "tails"_a, "name"_a, "values"_a);
}

namespace {

// The full layout.

std::vector<FullStep> full_steps(const In<float, 2>& steps) {
    require(steps.shape(1) == 3, "a step must be (exaggeration, learning rate, momentum)");
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
        require(shape[c] >= 4, "a grid needs at least four nodes per axis");
        grid.shape[c] = shape[c];
        grid.origin[c] = origin[c];
    }
    require(static_cast<Size>(nodes.size()) == grid.size(), "the nodes do not fit the grid");
    return grid;
}

}  // namespace

void bind_full_layout(nb::module_& m) {
    nb::class_<GridConvolution>(m, "GridConvolution")
        .def(
            "__init__",
            [](GridConvolution* self, std::array<Size, 3> padded, In<float, 1> transfer) {
                new (self)
                    GridConvolution(padded, std::vector<float>(transfer.data(), transfer.data() + transfer.shape(0)));
            },
            "padded"_a, "transfer"_a)
        .def(
            "__call__",
            [](GridConvolution& self, In<float, 1> values, std::array<Size, 3> nodes, int n_jobs) {
                Size size = 1;
                for (const Size axis : nodes) size *= axis;
                require(size == static_cast<Size>(values.shape(0)), "values and nodes differ in their number");
                auto out = make<float>(size);
                run(n_jobs, [&](ThreadTeam& team) {
                    self.run(values.data(), nodes, out.data(), team);
                    return 0;
                });
                return out;
            },
            "values"_a, "nodes"_a, "n_jobs"_a);
    nb::class_<FullLayout>(m, "FullLayout")
        .def(
            "__init__",
            [](FullLayout* self, In<Size, 1> indptr, In<Index, 1> indices, In<float, 1> weights, In<float, 2> embedding,
               std::optional<In<float, 2>> reference, float dof) {
                require(embedding.shape(1) >= 1, "an embedding needs at least one component");
                require(!reference || reference->shape(1) == embedding.shape(1),
                        "reference and embedding differ in their number of components");
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

}  // namespace vicinal
