// What moves rows and what is summed over pairs of them, and neighbours that keep coming: the same bits for any number
// of threads, and nothing for a sanitiser to say.
#include "checks.hpp"
#include "layout/full_layout.hpp"
#include "layout/sampled_layout.hpp"
#include "losses/loss_sums.hpp"
#include "neighbors/online_neighbors.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

namespace {

std::vector<float> random_places(Size n, Size dim, float extent) {
    std::vector<float> out(static_cast<std::size_t>(n * dim));
    for (std::size_t e = 0; e < out.size(); ++e) out[e] = extent * uniform(17, static_cast<std::uint32_t>(e));
    return out;
}

template <class T>
bool finite(const std::vector<T>& values) {
    return std::all_of(values.begin(), values.end(), [](T x) { return std::isfinite(x); });
}

std::vector<float> copied(Matrix places) { return {places.data, places.data + places.rows * places.cols}; }

// Whether compute(team) gives the same values with one thread and with three, all of them finite.
template <class F>
bool same_for_any_threads(const F& compute) {
    ThreadTeam one(1), three(3);
    const auto alone = compute(one);
    return finite(alone) && alone == compute(three);
}

void full_layout_by_every_pair() {
    const FuzzyGraph graph = small_graph(900, 6);
    for (Size dim : {1, 2, 3, 5}) {
        const auto start = random_places(900, dim, 1e-2f);
        CHECK(same_for_any_threads([&](ThreadTeam& team) {
            FullLayout layout(graph.view(), {start.data(), 900, dim}, {}, 1.0f);
            const std::vector<FullStep> steps(6, FullStep{12.0f, 20.0f, 0.8f});
            layout.step_exact(steps.data(), 6, team);
            return copied(layout.embedding());
        }));
    }
}

void full_layout_on_a_grid() {
    const FuzzyGraph graph = small_graph(3000, 6);
    for (Size dim : {1, 2, 3}) {
        const auto start = random_places(3000, dim, 8.0f);
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

void layout_with_the_density_term() {
    const FuzzyGraph graph = small_graph(2500, 6);
    std::vector<float> target(2500);
    for (std::size_t i = 0; i < target.size(); ++i) target[i] = uniform(23, static_cast<std::uint32_t>(i)) - 0.5f;
    target[7] = std::nanf("");
    const std::vector<float> rates(12, 0.5f);
    const auto start = random_places(2500, 2, 10.0f);
    CHECK(same_for_any_threads([&](ThreadTeam& team) {
        SampledLayout layout(graph.view(), {start.data(), 2500, 2}, {}, nullptr, LayoutOptions{});
        DensityOptions options;
        options.first_epoch = 4;
        layout.add_density(target.data(), options);
        layout.step({rates.data(), 12, 1}, team);
        auto out = copied(layout.embedding());
        out.push_back(static_cast<float>(layout.measure_density(team).covariance));
        return out;
    }));
}

void layout_with_weighted_negatives_and_pins() {
    const FuzzyGraph graph = small_graph(2500, 6);
    const auto start = random_places(2500, 2, 10.0f), weights = random_places(2500, 1, 1.0f);
    const std::vector<float> rates(12, 0.5f);
    const auto fixed = std::make_unique<bool[]>(2500);
    for (Size i = 0; i < 2500; i += 3) fixed[i] = true;
    CHECK(same_for_any_threads([&](ThreadTeam& team) {
        SampledLayout layout(graph.view(), {start.data(), 2500, 2}, {}, nullptr, LayoutOptions{});
        layout.weigh_negatives(weights.data());
        layout.pin(fixed.get());
        layout.step({rates.data(), 12, 1}, team);
        auto out = copied(layout.embedding());
        for (Size i = 0; i < 2500; i += 3) CHECK(out[2 * i] == start[2 * i] && out[2 * i + 1] == start[2 * i + 1]);
        return out;
    }));
}

void sums_over_pairs_edges_and_draws() {
    const Size n = 1100, dim = 2;
    const FuzzyGraph graph = small_graph(n, 6);
    const auto places = random_places(n, dim, 10.0f), weights = random_places(n, 1, 1.0f);
    for (PairTerm term : {PairTerm::attract_cost, PairTerm::repel_cost, PairTerm::attract, PairTerm::repel}) {
        const PairQuantity quantity{term, LayoutOptions{}.force};
        const bool vectors = term == PairTerm::attract || term == PairTerm::repel;
        CHECK(same_for_any_threads([&](ThreadTeam& team) {
            const PairSums sums({places.data(), n, dim}, weights.data());
            std::vector<double> out(static_cast<std::size_t>(n * dim), 0.0), along(out.size(), 0.0);
            if (vectors)
                sums.forces(quantity, {nullptr, n}, out.data(), team);
            else
                sums.costs(quantity, out.data(), team);
            sums.edges(quantity, vectors, {nullptr, n}, graph.view(), along.data(), team);
            out.insert(out.end(), along.begin(), along.end());
            if (!vectors) {
                std::vector<double> value(static_cast<std::size_t>(n)), variance(value.size());
                sums.draws(quantity, 2, 5, {value.data(), variance.data()}, team);
                out.insert(out.end(), value.begin(), value.end());
                out.insert(out.end(), variance.begin(), variance.end());
            }
            return out;
        }));
    }
}

void neighbours_of_rows_that_keep_coming() {
    const Size n = 3000, d = 12, k = 8;
    const auto data = grouped_rows(n, d, 10, 31);
    CHECK(same_for_any_threads([&](ThreadTeam& team) {
        OnlineOptions options;
        options.k = k;
        options.few = 256;
        OnlineNeighbors online(d, 0, find_metric("euclidean"), 2.0, 7, options);
        for (Size begin = 0; begin < n; begin += 1000) {
            online.insert({data.data() + begin * d, 1000, d}, {}, team);
            while (online.pending() > 0) online.step(700, 1e9, team);
        }
        std::vector<Size> rows(static_cast<std::size_t>(n));
        for (Size i = 0; i < n; ++i) rows[static_cast<std::size_t>(i)] = i;
        Table table(n, k), asked(500, k);
        online.table(rows.data(), n, table.index.data(), table.distance.data());
        online.query({data.data(), 500, d}, {}, k, asked.index.data(), asked.distance.data(), team);
        std::vector<float> out(table.distance);
        out.insert(out.end(), table.index.begin(), table.index.end());
        out.insert(out.end(), asked.distance.begin(), asked.distance.end());
        return out;
    }));
}

// As from several Python threads: each has a team and objects of its own, all read the same data.
void layouts_side_by_side() {
    const FuzzyGraph graph = small_graph(1200, 6);
    const auto start = random_places(1200, 2, 10.0f);
    const std::vector<float> rates(10, 0.5f);
    std::vector<std::vector<float>> results(4);
    std::vector<std::thread> callers;
    for (auto& result : results)
        callers.emplace_back([&] {
            ThreadTeam team(2);
            SampledLayout layout(graph.view(), {start.data(), 1200, 2}, {}, nullptr, LayoutOptions{});
            layout.step({rates.data(), 10, 1}, team);
            result = copied(layout.embedding());
        });
    for (auto& caller : callers) caller.join();
    for (const auto& result : results) CHECK(result == results[0]);
}

constexpr Test tests[] = {
    TEST(full_layout_by_every_pair),
    TEST(full_layout_on_a_grid),
    TEST(layout_with_the_density_term),
    TEST(layout_with_weighted_negatives_and_pins),
    TEST(sums_over_pairs_edges_and_draws),
    TEST(neighbours_of_rows_that_keep_coming),
    TEST(layouts_side_by_side),
};

}  // namespace

int main() { return run_all(tests); }
