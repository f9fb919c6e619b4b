// The full layout (t-SNE).
#include "checks.hpp"
#include "data.hpp"
#include "layout/full_layout.hpp"
#include "layout/grid_convolution.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace {

void exact_full_layout_does_not_depend_on_threads() {
    const FuzzyGraph graph = small_graph(900, 6);
    for (Size dim : {1, 2, 3, 5}) {
        const auto start = random_points(900, dim, 1e-2f);
        CHECK(same_for_any_threads([&](ThreadTeam& team) {
            FullLayout layout(graph.view(), {start.data(), 900, dim}, {}, 1.0f);
            const std::vector<FullStep> steps(6, FullStep{12.0f, 20.0f, 0.8f});
            layout.step_exact(steps.data(), 6, team);
            return copied(layout.embedding());
        }));
    }
}

void full_layout_on_a_grid_does_not_depend_on_threads() {
    const FuzzyGraph graph = small_graph(3000, 6);
    for (Size dim : {1, 2, 3}) {
        const auto start = random_points(3000, dim, 8.0f);
        Grid grid{dim, {1, 1, 1}, {-4.0f, -4.0f, -4.0f}, 1.0f};
        for (Size axis = 0; axis < dim; ++axis) grid.shape[axis] = 20;
        CHECK(same_for_any_threads([&](ThreadTeam& team) {
            FullLayout layout(graph.view(), {start.data(), 3000, dim}, {}, 1.0f);
            std::vector<float> density(static_cast<std::size_t>(grid.size()));
            layout.spread(grid, density.data(), team);
            const FullStep step{1.0f, 0.1f, 0.5f};
            layout.step_grid(grid, density.data(), &step, 1, team);
            auto out = copied(layout.embedding());
            out.insert(out.end(), density.begin(), density.end());
            return out;
        }));
    }
}

void convolution_of_a_grid_is_the_sum_over_its_nodes() {
    for (const std::array<Size, 3> padded : {std::array<Size, 3>{1, 1, 54}, {20, 1, 36}, {10, 12, 32}}) {
        std::array<Size, 3> nodes{};
        Size size = 1, waves = 1;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            nodes[axis] = std::max<Size>(1, padded[axis] / 2 - 1);
            size *= nodes[axis];
            waves *= padded[axis] / 2 + 1;
        }
        // The transform of a kernel that is 1 at the node itself, and 0 elsewhere, is 1 everywhere.
        GridConvolution identity(padded, std::vector<float>(static_cast<std::size_t>(waves), 1.0f));
        const auto values = random_points(size, 1, 1.0f);
        CHECK(same_for_any_threads([&](ThreadTeam& team) {
            std::vector<float> found(values.size());
            identity.run(values.data(), nodes, found.data(), team);
            for (std::size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - values[i]) < 1e-6f);
            return found;
        }));
    }
}

void turns_are_those_of_the_unit_circle() {
    for (const Size n : {1, 2, 6, 8, 1500}) {
        const std::vector<Turn> turns = turns_of(n);
        for (Size t = 0; t < n; ++t) {
            const double angle = -2.0 * std::acos(-1.0) * static_cast<double>(t) / static_cast<double>(n);
            CHECK(std::abs(turns[static_cast<std::size_t>(t)].cosine - std::cos(angle)) < 1e-7);
            CHECK(std::abs(turns[static_cast<std::size_t>(t)].sine - std::sin(angle)) < 1e-7);
        }
    }
}

constexpr Test tests[] = {
    TEST(exact_full_layout_does_not_depend_on_threads),
    TEST(full_layout_on_a_grid_does_not_depend_on_threads),
    TEST(convolution_of_a_grid_is_the_sum_over_its_nodes),
    TEST(turns_are_those_of_the_unit_circle),
};

}  // namespace

int main() { return run_all(tests); }
