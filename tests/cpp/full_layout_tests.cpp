// The full layout (t-SNE).
#include "checks.hpp"
#include "data.hpp"
#include "layout/full_layout.hpp"

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

constexpr Test tests[] = {
    TEST(exact_full_layout_does_not_depend_on_threads),
    TEST(full_layout_on_a_grid_does_not_depend_on_threads),
};

}  // namespace

int main() { return run_all(tests); }
