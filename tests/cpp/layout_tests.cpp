// The sampled layout.
#include "checks.hpp"
#include "data.hpp"
#include "layout/layout_kernels.hpp"
#include "layout/sampled_layout.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

std::vector<float> points_after(const FuzzyGraph& graph, Size dim, const std::vector<Size>& parts, int threads,
                                bool update_negatives) {
    ThreadTeam team(threads);
    const Size n = graph.view().rows;
    std::vector<float> start(static_cast<std::size_t>(n * dim));
    for (std::size_t e = 0; e < start.size(); ++e) start[e] = 10.0f * uniform(1, static_cast<std::uint32_t>(e));
    LayoutOptions options = layout_options();
    options.update_negatives = update_negatives;
    options.seed = 5;
    SampledLayout layout(graph.view(), {start.data(), n, dim}, {}, nullptr, options, team);
    Size done = 0;
    for (Size part : parts) {
        std::vector<float> rates;
        for (Size t = done; t < done + part; ++t) rates.push_back(1.0f - static_cast<float>(t) / 40.0f);
        layout.step({rates.data(), part, 1}, team);
        done += part;
    }
    CHECK(layout.sweep() == done);
    const Matrix places = layout.embedding();
    return {places.data, places.data + n * dim};
}

void layout_is_resumable_and_independent_of_threads() {
    // More rows than a block holds, and not a multiple of the number of lanes.
    const FuzzyGraph graph = small_graph(2500, 6);
    for (Size dim : {1, 2, 3, 5, 17})
        for (bool update_negatives : {false, true}) {
            const auto whole = points_after(graph, dim, {40}, 1, update_negatives);
            CHECK(whole == points_after(graph, dim, {3, 0, 37}, 1, update_negatives));
            CHECK(whole == points_after(graph, dim, {40}, 4, update_negatives));
            CHECK(std::all_of(whole.begin(), whole.end(), [](float x) { return std::isfinite(x); }));
        }
}

void rows_on_a_frozen_reference_do_not_affect_each_other() {
    ThreadTeam team(3);
    const Size n = 700, k = 5, dim = 2, references = 90;
    std::vector<Size> indptr(static_cast<std::size_t>(n + 1));
    std::vector<Index> tails(static_cast<std::size_t>(n * k));
    std::vector<float> weights(tails.size()), start(static_cast<std::size_t>(n * dim));
    std::vector<float> reference(static_cast<std::size_t>(references * dim));
    std::vector<std::uint64_t> keys(static_cast<std::size_t>(n));
    for (Size i = 0; i <= n; ++i) indptr[i] = i * k;
    for (std::size_t e = 0; e < tails.size(); ++e) {
        tails[e] = static_cast<Index>(below(draw32(4, static_cast<std::uint32_t>(e)), references));
        weights[e] = uniform(5, static_cast<std::uint32_t>(e));
    }
    for (std::size_t e = 0; e < start.size(); ++e) start[e] = uniform(6, static_cast<std::uint32_t>(e));
    for (std::size_t e = 0; e < reference.size(); ++e) reference[e] = uniform(7, static_cast<std::uint32_t>(e));
    for (Size i = 0; i < n; ++i) keys[i] = mix64(static_cast<std::uint64_t>(i));
    const auto before = reference;
    LayoutOptions options = layout_options();
    const std::vector<float> rates(20, 0.25f);

    SampledLayout together({indptr.data(), tails.data(), weights.data(), n}, {start.data(), n, dim},
                           {reference.data(), references, dim}, keys.data(), options, team);
    together.step({rates.data(), 20, 1}, team);
    CHECK(reference == before);
    for (Size i : {0, 1, 333, 699}) {
        SampledLayout alone({indptr.data(), tails.data() + i * k, weights.data() + i * k, 1},
                            {start.data() + i * dim, 1, dim}, {reference.data(), references, dim}, keys.data() + i,
                            options, team);
        alone.step({rates.data(), 20, 1}, team);
        for (Size c = 0; c < dim; ++c) CHECK(alone.embedding().row(0)[c] == together.embedding().row(i)[c]);
    }
}

void some_heads_move_as_if_the_others_were_pinned() {
    const Size n = 1500, dim = 2, heads = 1200;
    const FuzzyGraph graph = small_graph(n, 6);
    const Csr all = graph.view();
    std::vector<float> start(static_cast<std::size_t>(n * dim));
    for (std::size_t e = 0; e < start.size(); ++e) start[e] = 10.0f * uniform(9, static_cast<std::uint32_t>(e));
    std::vector<Index> rows, tails;
    std::vector<Size> indptr{0};
    std::vector<float> weights;
    const auto fixed = std::make_unique<bool[]>(static_cast<std::size_t>(n));
    std::fill(fixed.get(), fixed.get() + n, true);
    for (Size i = 0; i < heads; ++i) {
        const Size row = (i * 11) % n;
        fixed[row] = false;
        rows.push_back(static_cast<Index>(row));
        tails.insert(tails.end(), all.indices + all.indptr[row], all.indices + all.indptr[row + 1]);
        weights.insert(weights.end(), all.weights + all.indptr[row], all.weights + all.indptr[row + 1]);
        indptr.push_back(static_cast<Size>(tails.size()));
    }
    ThreadTeam one(1), four(4);
    LayoutOptions options = layout_options();
    SampledLayout pinned(all, {start.data(), n, dim}, {}, nullptr, options, one);
    pinned.pin(fixed.get());
    SampledLayout some({indptr.data(), tails.data(), weights.data(), heads}, {start.data(), n, dim}, {}, nullptr,
                       options, four, rows.data());
    const std::vector<float> equal(10, 0.5f), by_head(static_cast<std::size_t>(10 * heads), 0.5f);
    pinned.step({equal.data(), 10, 1}, one);
    some.step({by_head.data(), 10, heads}, four);
    CHECK(std::equal(pinned.embedding().data, pinned.embedding().data + n * dim, some.embedding().data));

    // In place, with a step that is interrupted between the others.
    std::vector<float> points = start;
    SampledLayout in_place = SampledLayout::in_place({indptr.data(), tails.data(), weights.data(), heads},
                                                     points.data(), n, dim, options, rows.data(), four);
    in_place.step({by_head.data(), 3, heads}, four);
    const std::vector<float> before = points;
    ThreadTeam interrupted(1, [] { return true; }, std::chrono::milliseconds(0));  // polls after the first block
    CHECK(throws<Interrupted>([&] { in_place.step({by_head.data(), 5, heads}, interrupted); }));
    CHECK(points == before && in_place.sweep() == 3);
    std::vector<float> longer = points;
    longer.resize(static_cast<std::size_t>((n + 10) * dim), 0.0f);
    in_place.attach(longer.data(), n);
    in_place.step({by_head.data(), 7, heads}, one);
    CHECK(points == before && std::equal(longer.begin(), longer.begin() + n * dim, some.embedding().data));
    CHECK(throws<std::invalid_argument>([&] { in_place.attach(longer.data(), n - 1); }));
    CHECK(throws<std::invalid_argument>([&] { some.attach(longer.data(), n); }));
}

void layout_rejects_arrays_that_do_not_fit() {
    const FuzzyGraph graph = small_graph(20, 4);
    std::vector<float> places(60, 0.0f);
    ThreadTeam team(1);
    CHECK(throws<std::invalid_argument>(
        [&] { SampledLayout(graph.view(), {places.data(), 19, 2}, {}, nullptr, layout_options(), team); }));
    CHECK(throws<std::invalid_argument>([&] {
        SampledLayout(graph.view(), {places.data(), 20, 2}, {places.data(), 3, 2}, nullptr, layout_options(), team);
    }));
}

void empty_layout_counts_its_sweeps() {
    ThreadTeam team(2);
    const Size indptr = 0;
    const float rates[3] = {1.0f, 1.0f, 1.0f};
    SampledLayout layout({&indptr, nullptr, nullptr, 0}, {nullptr, 0, 2}, {}, nullptr, layout_options(), team);
    layout.step({rates, 3, 1}, team);
    CHECK(layout.sweep() == 3);
}

void density_term_does_not_depend_on_threads() {
    const FuzzyGraph graph = small_graph(2500, 6);
    std::vector<float> target(2500);
    for (std::size_t i = 0; i < target.size(); ++i) target[i] = uniform(23, static_cast<std::uint32_t>(i)) - 0.5f;
    target[7] = std::nanf("");
    const std::vector<float> rates(12, 0.5f);
    const auto start = random_points(2500, 2, 10.0f);
    CHECK(same_for_any_threads([&](ThreadTeam& team) {
        SampledLayout layout(graph.view(), {start.data(), 2500, 2}, {}, nullptr, layout_options(), team);
        layout.add_density(target.data(),
                           {.lambda = 2.0f, .variance_shift = 0.1, .first_sweep = 4, .every = 1, .fitted = {}});
        layout.step({rates.data(), 12, 1}, team);
        auto out = copied(layout.embedding());
        out.push_back(static_cast<float>(layout.measure_density(team).covariance));
        return out;
    }));
}

void pinned_rows_stay_and_weighted_negatives_do_not_depend_on_threads() {
    const FuzzyGraph graph = small_graph(2500, 6);
    const auto start = random_points(2500, 2, 10.0f), weights = random_points(2500, 1, 1.0f);
    const std::vector<float> rates(12, 0.5f);
    const auto fixed = std::make_unique<bool[]>(2500);
    for (Size i = 0; i < 2500; i += 3) fixed[i] = true;
    CHECK(same_for_any_threads([&](ThreadTeam& team) {
        SampledLayout layout(graph.view(), {start.data(), 2500, 2}, {}, nullptr, layout_options(), team);
        layout.weigh_negatives(weights.data());
        layout.pin(fixed.get());
        layout.step({rates.data(), 12, 1}, team);
        auto out = copied(layout.embedding());
        for (Size i = 0; i < 2500; i += 3) CHECK(out[2 * i] == start[2 * i] && out[2 * i + 1] == start[2 * i + 1]);
        return out;
    }));
}

// Each thread has its own team and layout; all read the same graph.
void layouts_run_concurrently() {
    const FuzzyGraph graph = small_graph(1200, 6);
    const auto start = random_points(1200, 2, 10.0f);
    const std::vector<float> rates(10, 0.5f);
    std::vector<std::vector<float>> results(4);
    std::vector<std::thread> callers;
    for (auto& result : results)
        callers.emplace_back([&] {
            ThreadTeam team(2);
            SampledLayout layout(graph.view(), {start.data(), 1200, 2}, {}, nullptr, layout_options(), team);
            layout.step({rates.data(), 10, 1}, team);
            result = copied(layout.embedding());
        });
    for (auto& caller : callers) caller.join();
    for (const auto& result : results) CHECK(result == results[0]);
}

void forces_have_the_same_bits_at_every_level() {
    std::vector<float> d2;
    for (float x = 1e-20f; x < 1e20f; x *= 1.7f) d2.push_back(x);
    d2.push_back(0.0f);
    const auto n = static_cast<Size>(d2.size());
    const auto force = umap_force();
    const LayoutKernels* const tables[] = {VICINAL_FOR_EACH_LEVEL(VICINAL_TABLE_ADDRESS, layout_kernels)};
    std::vector<float> attract(d2.size()), repel(d2.size()), other_attract(d2.size()), other_repel(d2.size());
    layout_kernels().force_table(force, d2.data(), n, attract.data(), repel.data());
    for (std::size_t l = 0; l < levels().size(); ++l) {
        if (!levels()[l].available) continue;
        tables[l]->force_table(force, d2.data(), n, other_attract.data(), other_repel.data());
        CHECK(attract == other_attract);
        CHECK(repel == other_repel);
    }
    CHECK(std::all_of(attract.begin(), attract.end(), [](float x) { return std::isfinite(x) && x >= 0.0f; }));
    CHECK(std::all_of(repel.begin(), repel.end(), [](float x) { return std::isfinite(x) && x <= 0.0f; }));
}

constexpr Test tests[] = {
    TEST(layout_is_resumable_and_independent_of_threads),
    TEST(rows_on_a_frozen_reference_do_not_affect_each_other),
    TEST(some_heads_move_as_if_the_others_were_pinned),
    TEST(layout_rejects_arrays_that_do_not_fit),
    TEST(empty_layout_counts_its_sweeps),
    TEST(density_term_does_not_depend_on_threads),
    TEST(pinned_rows_stay_and_weighted_negatives_do_not_depend_on_threads),
    TEST(layouts_run_concurrently),
    TEST(forces_have_the_same_bits_at_every_level),
};

}  // namespace

int main() { return run_all(tests); }
