// Bindings of the full layout (t-SNE).
#include "layout/full_layout.hpp"
#include "bindings/binding.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <vector>

namespace vicinal {

namespace {

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
