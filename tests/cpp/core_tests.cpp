// Tests of the core without Python, so that sanitisers see every line of it.
#include "initialize/chebyshev.hpp"
#include "checks.hpp"
#include "graph/growing_graph.hpp"
#include "layout/sampled_layout.hpp"
#include "neighbors/neighbor_index.hpp"
#include "neighbors/row_content.hpp"
#include "graph/smooth_knn.hpp"
#include "neighbors/sparse_index.hpp"
#include "graph/symmetrize.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

using namespace vicinal;

namespace {

double naive_distance(const MetricRule& metric, const float* x, const float* y, Size d) {
    double mean_x = 0.0, mean_y = 0.0, xx = 0.0, yy = 0.0, xy = 0.0, sum = 0.0, absolute = 0.0, most = 0.0;
    if (metric.preparation == Preparation::centred_unit)
        for (Size k = 0; k < d; ++k) {
            mean_x += x[k] / static_cast<double>(d);
            mean_y += y[k] / static_cast<double>(d);
        }
    for (Size k = 0; k < d; ++k) {
        const double u = x[k] - mean_x, v = y[k] - mean_y, t = std::fabs(u - v);
        xx += u * u;
        yy += v * v;
        xy += u * v;
        sum += t * t;
        absolute += t;
        most = std::max(most, t);
    }
    if (metric.preparation != Preparation::none) {
        if (xx == 0.0 || yy == 0.0) return xx == yy ? 0.0 : 1.0;
        const double apart = std::max(1.0 - xy / std::sqrt(xx * yy), 0.0);
        return metric.finish == Finish::half_root ? std::sqrt(apart) : apart;
    }
    if (metric.ranking == Ranking::absolute) return absolute;
    if (metric.ranking == Ranking::maximum) return most;
    return finish_distance(metric.finish, static_cast<float>(sum));
}

// Sorted distances of a row to all others; itself first.
std::vector<double> naive_row(const MetricRule& metric, const Matrix& rows, Size i) {
    std::vector<double> all;
    for (Size j = 0; j < rows.rows; ++j)
        if (j != i) all.push_back(naive_distance(metric, rows.row(i), rows.row(j), rows.cols));
    std::sort(all.begin(), all.end());
    all.insert(all.begin(), 0.0);
    return all;
}

void team_visits_every_index_once() {
    for (int threads : {1, 2, 3, 8})
        for (Size n : {0, 1, 7, 1000, 4097})
            for (Size grain : {0, 1, 3, 1000, 100000}) {
                ThreadTeam team(threads);
                std::vector<std::atomic<int>> seen(static_cast<std::size_t>(n));
                std::atomic<bool> sound{true};
                for (int repeat = 0; repeat < 2; ++repeat)
                    team.parallel_for(n, grain, [&](Size begin, Size end, int worker) {
                        if (worker < 0 || worker >= threads || end - begin > std::max<Size>(grain, 1)) sound = false;
                        for (Size i = begin; i < end; ++i) ++seen[i];
                    });
                CHECK(sound);
                CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& count) { return count == 2; }));
            }
}

void team_rethrows_and_stays_usable() {
    for (int threads : {1, 2, 4}) {
        ThreadTeam team(threads);
        std::atomic<Size> visited{0};
        CHECK(throws<std::out_of_range>([&] {
            team.parallel_for(100000, 1, [&](Size begin, Size, int) {
                ++visited;
                if (begin == 10) throw std::out_of_range("body");
            });
        }));
        CHECK(visited < 100000);
        std::atomic<Size> sum{0};
        team.parallel_for(100, 3, [&](Size begin, Size end, int) { sum += end - begin; });
        CHECK(sum == 100);
    }
}

void team_asks_the_poll_and_stops() {
    static std::atomic<bool> asked{false};
    static const std::thread::id owner = std::this_thread::get_id();
    for (int threads : {1, 2, 4}) {
        asked = false;
        ThreadTeam team(threads, [] {
            if (std::this_thread::get_id() != owner) ++failures;
            asked = true;
            return true;
        });
        std::atomic<Size> visited{0};
        const Size n = 20000;
        CHECK(throws<Interrupted>([&] {
            team.parallel_for(n, 1, [&](Size, Size, int) {
                ++visited;
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            });
        }));
        CHECK(asked);
        CHECK(visited < n);
    }
}

void teams_live_side_by_side() {
    std::vector<std::thread> callers;
    std::vector<Size> sums(6, 0);
    for (std::size_t c = 0; c < sums.size(); ++c)
        callers.emplace_back([&, c] {
            ThreadTeam outer(2);
            std::atomic<Size> sum{0};
            outer.parallel_for(8, 1, [&](Size, Size, int) {
                ThreadTeam inner(2);
                inner.parallel_for(1000, 10, [&](Size begin, Size end, int) { sum += end - begin; });
            });
            sums[c] = sum;
        });
    for (auto& caller : callers) caller.join();
    CHECK(std::all_of(sums.begin(), sums.end(), [](Size sum) { return sum == 8000; }));
}

void jobs_resolve_as_users_write_them() {
    const int all = resolve_jobs(-1);
    CHECK(all >= 1);
    CHECK(resolve_jobs(3) == 3);
    CHECK(resolve_jobs(-2) == std::max(1, all - 1));
    CHECK(resolve_jobs(-100000) == 1);
}

void draws_are_functions_of_their_key() {
    CHECK(stream_key(1, Stream::layout, 2) == stream_key(1, Stream::layout, 2));
    CHECK(stream_key(1, Stream::layout) != stream_key(2, Stream::layout));
    CHECK(stream_key(1, Stream::layout) != stream_key(1, Stream::phase));
    CHECK(stream_key(1, Stream::layout, 0) != stream_key(1, Stream::layout, 1));
    // SplitMix64's first output from state 0.
    CHECK(mix64(0) == 0xe220a8397b1dcdafu);
}

void draws_are_uniform() {
    constexpr std::uint32_t bins = 64;
    constexpr int draws = 64000;
    for (std::uint64_t seed : {0, 1, 12345}) {
        std::vector<int> across_rows(bins, 0), within_row(bins, 0);
        const std::uint64_t key = stream_key(seed, Stream::layout, 3);
        for (int t = 0; t < draws; ++t) {
            ++across_rows[below(draw32(row_key(key, static_cast<std::uint64_t>(t)), 1), bins)];
            ++within_row[below(draw32(row_key(key, 5), static_cast<std::uint32_t>(t)), bins)];
        }
        for (const auto& counts : {across_rows, within_row}) {
            double chi2 = 0.0;
            for (int count : counts) chi2 += std::pow(count - 1000.0, 2) / 1000.0;
            // 63 degrees of freedom: mean 63, standard deviation 11.
            CHECK(chi2 > 20.0 && chi2 < 130.0);
        }
    }
    CHECK(below(0xffffffffu, 7) == 6);
    CHECK(below(0, 7) == 0);
}

void equal_rows_have_equal_names() {
    ThreadTeam team(2);
    for (Size d : {1, 2, 5, 8}) {
        auto data = grouped_rows(600, d, 40, 3);
        std::copy(data.begin(), data.begin() + d, data.begin() + 599 * d);
        std::vector<std::uint64_t> names(600);
        hash_rows({data.data(), 600, d}, names.data(), team);
        CHECK(names[0] == names[599]);
        auto sorted = names;
        std::sort(sorted.begin(), sorted.end());
        CHECK(std::unique(sorted.begin(), sorted.end()) - sorted.begin() == 599);
    }
}

void scan_finds_the_first_bad_row() {
    ThreadTeam team(3);
    std::vector<float> data(3000, -2.5f);
    CHECK(scan_rows({data.data(), 1000, 3}, false, team).first_bad_row == -1);
    CHECK(scan_rows({data.data(), 1000, 3}, false, team).largest == 2.5f);
    data[2999] = std::nanf("");
    data[3 * 700 + 1] = -std::numeric_limits<float>::infinity();
    CHECK(scan_rows({data.data(), 1000, 3}, false, team).first_bad_row == 700);
    CHECK(scan_rows({data.data(), 0, 3}, false, team).first_bad_row == -1);
}

void exact_search_equals_the_naive_one() {
    ThreadTeam team(2);
    for (const MetricRule& metric : metric_table)
        // 128 columns is where sketches stop being the rows.
        for (Size d : {1, 3, 16, 40, 200}) {
            if (metric.ranking == Ranking::pairs) continue;
            const Size n = 150, k = 10;
            auto data = grouped_rows(n, d, 4, 11);
            std::fill(data.begin(), data.begin() + 2 * d, 0.0f);
            std::copy(data.begin() + 5 * d, data.begin() + 6 * d, data.begin() + 9 * d);
            const Matrix rows{data.data(), n, d};
            NeighborIndex index(rows, metric, 1, nullptr, team);
            Table table(n, k);
            index.search_exact(k, table.index.data(), table.distance.data(), team);
            bool near = true, itself = true;
            for (Size i = 0; i < n; ++i) {
                const auto wanted = naive_row(metric, rows, i);
                itself = itself && table.index[i * k] == i;
                for (Size e = 0; e < k; ++e)
                    near = near && std::fabs(table.distance[i * k + e] - wanted[e]) <= 2e-5 * (1.0 + wanted[e]);
            }
            CHECK(itself);
            CHECK(near);
            if (!near || !itself) std::printf("    (%s, %d columns)\n", metric.name, static_cast<int>(d));
        }
}

void more_neighbours_than_rows_are_missing() {
    ThreadTeam team(2);
    const auto data = grouped_rows(5, 3, 2, 1);
    for (const MetricRule& metric : metric_table) {
        const Matrix rows{data.data(), 5, 3};
        const DensePairs pairs(rows, rows, metric, 3.0);
        NeighborIndex index(rows, metric, 1, metric.ranking == Ranking::pairs ? &pairs : nullptr, team);
        Table table(5, 5);
        index.search_exact(5, table.index.data(), table.distance.data(), team);
        CHECK(std::all_of(table.index.begin(), table.index.end(), [](Index j) { return j >= 0 && j < 5; }));
    }
}

void sparse_rows_have_the_neighbours_of_dense_ones() {
    ThreadTeam team(2);
    const Size n = 120, d = 30, k = 7;
    auto data = grouped_rows(n, d, 5, 3);
    std::vector<Size> indptr{0};
    std::vector<Index> indices;
    std::vector<float> values;
    for (Size i = 0; i < n; ++i) {
        for (Size c = 0; c < d; ++c) {
            float& x = data[i * d + c];
            x = (i * 7 + c * 5) % 3 == 0 ? std::fabs(x) : 0.0f;
            if (x == 0.0f) continue;
            indices.push_back(static_cast<Index>(c));
            values.push_back(x);
        }
        indptr.push_back(static_cast<Size>(indices.size()));
    }
    const Matrix rows{data.data(), n, d};
    const SparseMatrix sparse{{indptr.data(), indices.data(), values.data(), n}, d};
    for (const MetricRule& metric : metric_table) {
        // A row that is not stored is 0, not missing; and a row of counts is a little away from itself.
        if (metric.terms == Terms::present || metric.terms == Terms::dirichlet) continue;
        const DensePairs pairs(rows, rows, metric, 3.0);
        NeighborIndex dense(rows, metric, 1, metric.ranking == Ranking::pairs ? &pairs : nullptr, team);
        const SparseIndex listed(sparse, metric, 3.0, team);
        Table wanted(n, k), found(n, k), likely(n, k), asked(n, k);
        dense.search_exact(k, wanted.index.data(), wanted.distance.data(), team);
        listed.search(k, 0, 0, found.index.data(), found.distance.data(), team);
        listed.search(k, 100000, n, likely.index.data(), likely.distance.data(), team);
        listed.query(sparse, k, 0, 0, asked.index.data(), asked.distance.data(), team);
        bool near = true, itself = true;
        for (Size e = 0; e < n * k; ++e) {
            // A root makes much of the rounding of equal rows.
            const double slack = 5e-4 * (1.0 + wanted.distance[e]);
            near = near && std::fabs(found.distance[e] - wanted.distance[e]) <= slack;
            near = near && std::fabs(likely.distance[e] - wanted.distance[e]) <= slack;
            itself = itself && asked.distance[e] <= found.distance[e] + slack;
        }
        CHECK(near);
        CHECK(itself);
        if (!near || !itself) std::printf("    (%s)\n", metric.name);
    }
}

void an_interrupted_search_leaves_nothing_half_done() {
    const Size n = 1500, d = 12, k = 8;
    const auto data = grouped_rows(n, d, 20, 5);
    const Matrix rows{data.data(), n, d};
    ThreadTeam team(2);
    const auto search = [&](NeighborIndex& index) {
        Table table(n, k);
        index.search_approximate(k, {}, table.index.data(), table.distance.data(), team);
        return table;
    };
    NeighborIndex index(rows, find_metric("euclidean"), 9, nullptr, team);
    ThreadTeam interrupted(2, [] { return true; });
    std::this_thread::sleep_for(std::chrono::milliseconds(60));  // the next poll is due
    CHECK(throws<Interrupted>([&] { index.grow_forest(8, 96, interrupted); }));
    NeighborIndex whole(rows, find_metric("euclidean"), 9, nullptr, team);
    CHECK(search(index) == search(whole));
}

void approximate_search_is_good_and_independent_of_threads() {
    for (const char* name : {"euclidean", "cosine", "manhattan", "chebyshev"})
        for (Size d : {12, 150}) {
            const Size n = 1500, k = 8;
            const auto data = grouped_rows(n, d, 20, 5);
            const Matrix rows{data.data(), n, d};
            std::vector<Table> tables;
            for (int threads : {1, 2, 5}) {
                ThreadTeam team(threads);
                NeighborIndex index(rows, find_metric(name), 9, nullptr, team);
                tables.emplace_back(n, k);
                SearchOptions options;
                index.search_approximate(k, options, tables.back().index.data(), tables.back().distance.data(), team);
            }
            CHECK(tables[0] == tables[1]);
            CHECK(tables[0] == tables[2]);
            bool once = true;
            for (Size i = 0; i < n; ++i) {
                std::vector<Index> row(tables[0].index.begin() + i * k, tables[0].index.begin() + (i + 1) * k);
                std::sort(row.begin(), row.end());
                once = once && std::adjacent_find(row.begin(), row.end()) == row.end();
            }
            CHECK(once);
            Size found = 0;
            for (Size i = 0; i < n; i += 10) {
                const auto wanted = naive_row(find_metric(name), rows, i);
                for (Size e = 1; e < k; ++e)
                    found += tables[0].distance[i * k + e] <= wanted[k - 1] * 1.0001 + 1e-6 ? 1 : 0;
            }
            CHECK(static_cast<double>(found) >= 0.9 * static_cast<double>(n / 10 * (k - 1)));
        }
}

void query_finds_the_row_itself() {
    ThreadTeam team(2);
    for (Size d : {6, 150}) {
        const Size n = 1200, k = 6;
        const auto data = grouped_rows(n, d, 10, 21);
        const Matrix rows{data.data(), n, d};
        NeighborIndex index(rows, find_metric("euclidean"), 4, nullptr, team);
        Table table(n, k);
        index.search_exact(k, table.index.data(), table.distance.data(), team);
        std::vector<Size> indptr(static_cast<std::size_t>(n + 1));
        for (Size i = 0; i <= n; ++i) indptr[i] = i * k;
        for (bool forest : {false, true}) {
            if (forest) index.grow_forest(4, 64, team);
            Table answer(n, k);
            QueryOptions options;
            options.k = k;
            index.query(rows, nullptr, {indptr.data(), table.index.data()}, options, answer.index.data(),
                        answer.distance.data(), team);
            bool itself = true;
            for (Size i = 0; i < n; ++i) itself = itself && answer.index[i * k] == i && answer.distance[i * k] == 0.0f;
            CHECK(itself);
            Table alone(1, k);
            index.query({rows.row(7), 1, d}, nullptr, {indptr.data(), table.index.data()}, options, alone.index.data(),
                        alone.distance.data(), team);
            CHECK(std::equal(alone.index.begin(), alone.index.end(), answer.index.begin() + 7 * k));
            CHECK(std::equal(alone.distance.begin(), alone.distance.end(), answer.distance.begin() + 7 * k));
        }
    }
}

void unknown_metric_is_an_error() {
    CHECK(throws<std::invalid_argument>([] { find_metric("no such metric"); }));
}

void smooth_knn_solves_its_equation() {
    ThreadTeam team(2);
    const Size n = 300, k = 12;
    const auto data = grouped_rows(n, 5, 6, 8);
    NeighborIndex index({data.data(), n, 5}, find_metric("euclidean"), 0, nullptr, team);
    Table table(n, k);
    index.search_exact(k, table.index.data(), table.distance.data(), team);
    std::vector<float> rho(static_cast<std::size_t>(n)), sigma(rho.size());
    SmoothKnnOptions options;
    options.k = static_cast<double>(k);
    SmoothKnn(table.distance.data(), n, k, options).run(rho.data(), sigma.data(), team);
    for (Size i = 0; i < n; ++i) {
        double sum = 0.0;
        for (Size e = 1; e < k; ++e)
            sum += std::exp(-std::max(0.0, static_cast<double>(table.distance[i * k + e]) - rho[i]) / sigma[i]);
        CHECK(rho[i] == table.distance[i * k + 1]);
        CHECK(std::fabs(sum - std::log2(12.0)) < 1e-3);
    }
}

void symmetrize_keeps_the_laws_of_fuzzy_sets() {
    const Size n = 400, k = 6;
    std::vector<Index> index(static_cast<std::size_t>(n * k));
    std::vector<float> p(index.size()), distance(index.size(), 0.0f);
    for (Size i = 0; i < n; ++i)
        for (Size e = 0; e < k; ++e) {
            index[i * k + e] =
                e == 5 && i % 7 == 0 ? -1 : static_cast<Index>((i + (e + 1) * (e + 2) * (i % 5 + 1)) % n);
            p[i * k + e] = index[i * k + e] < 0 ? 0.0f : uniform(3, static_cast<std::uint32_t>(i * k + e));
        }
    const NeighborTable table{index.data(), distance.data(), n, k};
    const auto at = [](const OwnedCsr& graph, Size i, Index j) {
        const auto begin = graph.indices.begin() + graph.indptr[i], end = graph.indices.begin() + graph.indptr[i + 1];
        const auto found = std::lower_bound(begin, end, j);
        return found != end && *found == j ? graph.weights[found - graph.indices.begin()] : 0.0f;
    };
    ThreadTeam one(1), four(4);
    const OwnedCsr join = Symmetrizer(table, p.data(), FuzzyMix{1.0f}).run(one);
    const OwnedCsr again = Symmetrizer(table, p.data(), FuzzyMix{1.0f}).run(four);
    const OwnedCsr meet = Symmetrizer(table, p.data(), FuzzyMix{0.0f}).run(four);
    CHECK(join.indptr == again.indptr && join.indices == again.indices && join.weights == again.weights);
    bool symmetric = true, ordered = true, bounded = true, whole = true;
    for (Size i = 0; i < n; ++i)
        for (Size e = join.indptr[i]; e < join.indptr[i + 1]; ++e) {
            const Index j = join.indices[e];
            const float w = join.weights[e];
            symmetric = symmetric && at(join, j, static_cast<Index>(i)) == w;
            ordered = ordered && (e == join.indptr[i] || join.indices[e - 1] < j);
            bounded = bounded && w > 0.0f && w <= 1.0f && at(meet, i, j) <= w;
        }
    for (Size i = 0; i < n; ++i)
        for (Size e = 0; e < k; ++e)
            if (index[i * k + e] >= 0) whole = whole && at(join, i, index[i * k + e]) >= p[i * k + e] - 1e-6f;
    CHECK(symmetric);
    CHECK(ordered);
    CHECK(bounded);
    CHECK(whole);
    for (Size i = 0; i < n; ++i)
        for (Size e = meet.indptr[i]; e < meet.indptr[i + 1]; ++e)
            CHECK(at(meet, meet.indices[e], static_cast<Index>(i)) == meet.weights[e]);
}

// A growing graph that was given every row twice, in another order and by parts, is the graph of the last lists.
void replaced_rows_make_the_graph_of_their_last_lists() {
    const Size n = 500, k = 5;
    std::vector<Index> index(static_cast<std::size_t>(n * k)), rows(static_cast<std::size_t>(n));
    std::vector<float> p(index.size()), distance(index.size(), 0.0f);
    for (Size i = 0; i < n; ++i) {
        rows[i] = static_cast<Index>((i * 7) % n);
        for (Size e = 0; e < k; ++e) {
            index[i * k + e] = static_cast<Index>((i + 1 + e * 31 + e * e * (i % 3)) % n);
            p[i * k + e] = e == 3 ? 0.0f : uniform(8, static_cast<std::uint32_t>(i * k + e));
        }
    }
    GrowingGraph graph(k, 0.7f);
    const auto replace = [&](Size begin, Size end, bool last) {
        std::vector<Index> lists;
        std::vector<float> memberships;
        for (Size i = begin; i < end; ++i)
            for (Size e = 0; e < k; ++e) {
                const Size from = last ? rows[i] * k + e : ((rows[i] + 3) % n) * k + e;
                lists.push_back(index[from]);
                memberships.push_back(p[from]);
            }
        graph.replace(rows.data() + begin, end - begin, lists.data(), memberships.data());
    };
    graph.extend(n);
    for (bool last : {false, true})
        for (Size begin = 0; begin < n; begin += 100) replace(begin, begin + 100, last);
    ThreadTeam one(1), four(4);
    const OwnedCsr whole = Symmetrizer({index.data(), distance.data(), n, k}, p.data(), FuzzyMix{0.7f}).run(one);
    std::vector<Index> order(static_cast<std::size_t>(n));
    for (Size i = 0; i < n; ++i) order[i] = static_cast<Index>(i);
    const OwnedCsr found = graph.edges(order.data(), n, four);
    CHECK(found.indptr == whole.indptr && found.indices == whole.indices && found.weights == whole.weights);
    const Index nowhere = static_cast<Index>(n);
    CHECK(throws<std::invalid_argument>([&] { graph.edges(&nowhere, 1, one); }));
    CHECK(throws<std::invalid_argument>([&] { graph.replace(&nowhere, 1, index.data(), p.data()); }));
}

std::vector<float> places_after(const FuzzyGraph& graph, Size dim, const std::vector<Size>& parts, int threads,
                                bool update_negatives) {
    ThreadTeam team(threads);
    const Size n = graph.view().rows;
    std::vector<float> start(static_cast<std::size_t>(n * dim));
    for (std::size_t e = 0; e < start.size(); ++e) start[e] = 10.0f * uniform(1, static_cast<std::uint32_t>(e));
    LayoutOptions options;
    options.update_negatives = update_negatives;
    options.seed = 5;
    SampledLayout layout(graph.view(), {start.data(), n, dim}, {}, nullptr, options);
    Size done = 0;
    for (Size part : parts) {
        std::vector<float> rates;
        for (Size t = done; t < done + part; ++t) rates.push_back(1.0f - static_cast<float>(t) / 40.0f);
        layout.step({rates.data(), part, 1}, team);
        done += part;
    }
    CHECK(layout.epoch() == done);
    const Matrix places = layout.embedding();
    return {places.data, places.data + n * dim};
}

void layout_is_resumable_and_independent_of_threads() {
    // More rows than a block holds, and not a multiple of the lanes.
    const FuzzyGraph graph = small_graph(2500, 6);
    for (Size dim : {1, 2, 3, 5, 17})
        for (bool update_negatives : {false, true}) {
            const auto whole = places_after(graph, dim, {40}, 1, update_negatives);
            CHECK(whole == places_after(graph, dim, {3, 0, 37}, 1, update_negatives));
            CHECK(whole == places_after(graph, dim, {40}, 4, update_negatives));
            CHECK(std::all_of(whole.begin(), whole.end(), [](float x) { return std::isfinite(x); }));
        }
}

void frozen_reference_stays_and_rows_are_alone() {
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
    LayoutOptions options;
    const std::vector<float> rates(20, 0.25f);

    SampledLayout together({indptr.data(), tails.data(), weights.data(), n}, {start.data(), n, dim},
                           {reference.data(), references, dim}, keys.data(), options);
    together.step({rates.data(), 20, 1}, team);
    CHECK(reference == before);
    for (Size i : {0, 1, 333, 699}) {
        SampledLayout alone({indptr.data(), tails.data() + i * k, weights.data() + i * k, 1},
                            {start.data() + i * dim, 1, dim}, {reference.data(), references, dim}, keys.data() + i,
                            options);
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
    LayoutOptions options;
    SampledLayout pinned(all, {start.data(), n, dim}, {}, nullptr, options);
    pinned.pin(fixed.get());
    SampledLayout some({indptr.data(), tails.data(), weights.data(), heads}, {start.data(), n, dim}, {}, nullptr,
                       options, rows.data());
    const std::vector<float> equal(10, 0.5f), by_head(static_cast<std::size_t>(10 * heads), 0.5f);
    pinned.step({equal.data(), 10, 1}, one);
    some.step({by_head.data(), 10, heads}, four);
    CHECK(std::equal(pinned.embedding().data, pinned.embedding().data + n * dim, some.embedding().data));
}

void layout_refuses_what_does_not_fit() {
    const FuzzyGraph graph = small_graph(20, 4);
    std::vector<float> places(60, 0.0f);
    CHECK(throws<std::invalid_argument>(
        [&] { SampledLayout(graph.view(), {places.data(), 19, 2}, {}, nullptr, LayoutOptions{}); }));
    CHECK(throws<std::invalid_argument>(
        [&] { SampledLayout(graph.view(), {places.data(), 20, 2}, {places.data(), 3, 2}, nullptr, LayoutOptions{}); }));
}

void empty_layout_counts_its_epochs() {
    ThreadTeam team(2);
    const Size indptr = 0;
    const float rates[3] = {1.0f, 1.0f, 1.0f};
    SampledLayout layout({&indptr, nullptr, nullptr, 0}, {nullptr, 0, 2}, {}, nullptr, LayoutOptions{});
    layout.step({rates, 3, 1}, team);
    CHECK(layout.epoch() == 3);
}

void forces_are_the_same_at_every_level() {
    std::vector<float> d2;
    for (float x = 1e-20f; x < 1e20f; x *= 1.7f) d2.push_back(x);
    d2.push_back(0.0f);
    const auto n = static_cast<Size>(d2.size());
    const auto force = LayoutOptions{}.force;
    Size count = 0;
    const Level* table = levels(count);
    std::vector<float> attract(d2.size()), repel(d2.size()), other_attract(d2.size()), other_repel(d2.size());
    kernels().force_table(force, d2.data(), n, attract.data(), repel.data());
    for (Size l = 0; l < count; ++l) {
        if (!table[l].available) continue;
        table[l].kernels.force_table(force, d2.data(), n, other_attract.data(), other_repel.data());
        CHECK(attract == other_attract);
        CHECK(repel == other_repel);
    }
    CHECK(std::all_of(attract.begin(), attract.end(), [](float x) { return std::isfinite(x) && x >= 0.0f; }));
    CHECK(std::all_of(repel.begin(), repel.end(), [](float x) { return std::isfinite(x) && x <= 0.0f; }));
}

void chebyshev_filter_equals_the_dense_polynomial() {
    const FuzzyGraph graph = small_graph(60, 5);
    const Csr csr = graph.view();
    const Size n = csr.rows, width = 16;
    // Row sums at most 1 keep the spectrum in [-1, 1].
    std::vector<double> degree(static_cast<std::size_t>(n), 0.0), dense(static_cast<std::size_t>(n * n), 0.0);
    for (Size i = 0; i < n; ++i)
        for (Size e = csr.indptr[i]; e < csr.indptr[i + 1]; ++e) degree[i] += csr.weights[e];
    std::vector<float> weights(graph.csr.weights);
    for (Size i = 0; i < n; ++i)
        for (Size e = csr.indptr[i]; e < csr.indptr[i + 1]; ++e) {
            weights[e] /= static_cast<float>(std::sqrt(degree[i] * degree[csr.indices[e]]));
            dense[i * n + csr.indices[e]] = weights[e];
        }
    std::vector<float> start(static_cast<std::size_t>(n * width));
    for (std::size_t e = 0; e < start.size(); ++e) start[e] = uniform(2, static_cast<std::uint32_t>(e)) - 0.5f;

    for (double cut : {0.3, 1.0})
        for (int degree_wanted : {1, 2, 7}) {
            const double half = (cut + 1.0) / 2.0, centre = (cut - 1.0) / 2.0;
            std::vector<double> previous(start.begin(), start.end()), current(previous.size());
            const auto mapped = [&](const std::vector<double>& x, Size i, Size c) {
                double sum = -centre * x[i * width + c];
                for (Size j = 0; j < n; ++j) sum += dense[i * n + j] * x[j * width + c];
                return sum / half;
            };
            for (Size i = 0; i < n; ++i)
                for (Size c = 0; c < width; ++c) current[i * width + c] = mapped(previous, i, c);
            for (int t = 1; t < degree_wanted; ++t) {
                std::vector<double> next(current.size());
                for (Size i = 0; i < n; ++i)
                    for (Size c = 0; c < width; ++c)
                        next[i * width + c] = 2.0 * mapped(current, i, c) - previous[i * width + c];
                previous = std::exchange(current, next);
            }
            std::vector<std::vector<float>> blocks;
            for (int threads : {1, 3}) {
                ThreadTeam team(threads);
                blocks.push_back(start);
                chebyshev_filter({csr.indptr, csr.indices, weights.data(), n}, blocks.back().data(), width, cut,
                                 degree_wanted, team);
            }
            CHECK(blocks[0] == blocks[1]);
            double most = 0.0, worst = 0.0;
            for (std::size_t e = 0; e < current.size(); ++e) {
                most = std::max(most, std::fabs(current[e]));
                worst = std::max(worst, std::fabs(current[e] - blocks[0][e]));
            }
            CHECK(worst <= 1e-5 * (1.0 + most));
        }
}

constexpr Test tests[] = {
    TEST(team_visits_every_index_once),
    TEST(team_rethrows_and_stays_usable),
    TEST(team_asks_the_poll_and_stops),
    TEST(teams_live_side_by_side),
    TEST(jobs_resolve_as_users_write_them),
    TEST(draws_are_functions_of_their_key),
    TEST(draws_are_uniform),
    TEST(equal_rows_have_equal_names),
    TEST(scan_finds_the_first_bad_row),
    TEST(exact_search_equals_the_naive_one),
    TEST(more_neighbours_than_rows_are_missing),
    TEST(sparse_rows_have_the_neighbours_of_dense_ones),
    TEST(approximate_search_is_good_and_independent_of_threads),
    TEST(an_interrupted_search_leaves_nothing_half_done),
    TEST(query_finds_the_row_itself),
    TEST(unknown_metric_is_an_error),
    TEST(smooth_knn_solves_its_equation),
    TEST(symmetrize_keeps_the_laws_of_fuzzy_sets),
    TEST(replaced_rows_make_the_graph_of_their_last_lists),
    TEST(layout_is_resumable_and_independent_of_threads),
    TEST(frozen_reference_stays_and_rows_are_alone),
    TEST(some_heads_move_as_if_the_others_were_pinned),
    TEST(layout_refuses_what_does_not_fit),
    TEST(empty_layout_counts_its_epochs),
    TEST(forces_are_the_same_at_every_level),
    TEST(chebyshev_filter_equals_the_dense_polynomial),
};

}  // namespace

int main() { return run_all(tests); }
