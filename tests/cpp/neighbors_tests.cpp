// Neighbor searches of dense and sparse rows, compared with naive code.
#include "checks.hpp"
#include "data.hpp"
#include "neighbors/neighbor_index.hpp"
#include "neighbors/row_content.hpp"
#include "neighbors/sparse_index.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <vector>

namespace {

double naive_distance(const MetricRule& metric, const float* x, const float* y, Size d) {
    double mean_x = 0.0, mean_y = 0.0, xx = 0.0, yy = 0.0, xy = 0.0, sum = 0.0, absolute = 0.0, most = 0.0;
    if (metric.preparation == Preparation::centered_unit)
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

// Sorted distances of a row to all others, itself first.
std::vector<double> naive_row(const MetricRule& metric, const Matrix& rows, Size i) {
    std::vector<double> all;
    for (Size j = 0; j < rows.rows; ++j)
        if (j != i) all.push_back(naive_distance(metric, rows.row(i), rows.row(j), rows.cols));
    std::sort(all.begin(), all.end());
    all.insert(all.begin(), 0.0);
    return all;
}

void equal_rows_have_equal_hashes() {
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

void exact_search_equals_naive_search() {
    ThreadTeam team(2);
    for (const MetricRule& metric : metric_table)
        // Up to 128 columns, sketches are the rows themselves.
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

// A quarter more keeps all differences exactly, but such rows are no bytes. Distances of 3,000 columns are beyond 2^24,
// where the order of the additions matters.
void rows_of_bytes_have_the_distances_of_other_rows() {
    ThreadTeam team(2);
    const MetricRule& metric = find_metric("sqeuclidean");
    for (const Size d : {129, 200, 784, 3000}) {
        const Size n = 150, k = 10;
        Draws draws(static_cast<std::uint32_t>(d));
        std::vector<float> data(static_cast<std::size_t>(n * d));
        for (float& x : data) x = static_cast<float>(draws.below(2) * 254 + draws.below(2));
        std::vector<Table> tables;
        for (const float more : {0.0f, 0.25f}) {
            std::vector<float> moved(data);
            for (float& x : moved) x += more;
            NeighborIndex index({moved.data(), n, d}, metric, 1, nullptr, team);
            tables.emplace_back(n, k);
            index.search_exact(k, tables.back().index.data(), tables.back().distance.data(), team);
        }
        CHECK(tables[0].index == tables[1].index);
        CHECK(tables[0].distance == tables[1].distance);
    }
}

void search_for_all_rows_finds_all_rows() {
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

void sparse_search_equals_dense_search() {
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
        // Values that are not stored are 0 and not missing, and a row of counts has a positive distance to itself.
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
            // The square root amplifies the rounding errors of equal rows.
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

void approximate_search_has_high_recall(Size unordered_bytes) {
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
                index.search_approximate(k, search_options(unordered_bytes), tables.back().index.data(),
                                         tables.back().distance.data(), team);
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

void approximate_search_has_high_recall_for_any_number_of_threads() {
    approximate_search_has_high_recall(Size{1} << 28);
    approximate_search_has_high_recall(0);  // rows in the order of leaves
}

void rows_in_leaf_order_are_put_back() {
    const auto order_of = [](Size n, int kind) {
        std::vector<Index> order(static_cast<std::size_t>(n));
        for (Size i = 0; i < n; ++i) order[i] = static_cast<Index>(i);
        if (kind == 1)  // few long cycles
            for (Size i = n - 1; i > 0; --i)
                std::swap(order[i],
                          order[below(draw32(7, static_cast<std::uint32_t>(i)), static_cast<std::uint32_t>(i + 1))]);
        if (kind == 2) std::reverse(order.begin(), order.end());  // many short ones
        if (kind == 3) std::rotate(order.begin(), order.begin() + 1, order.end());
        return order;
    };
    ThreadTeam team(3);
    for (const Size n : {1, 2, 511, 512, 513, 5000})
        for (int kind = 0; kind < 4; ++kind)
            for (bool interrupted : {false, true}) {
                const Size d = 5;
                const auto data = grouped_rows(n, d, 20, 5);
                const auto order = order_of(n, kind);
                std::vector<float> rows = data;
                std::vector<std::uint8_t> small(static_cast<std::size_t>(n));
                for (Size i = 0; i < n; ++i) small[i] = static_cast<std::uint8_t>(i);
                const auto before = small;
                {
                    LeafOrder leaves(order.data(), n);
                    leaves.add(rows.data(), d);
                    leaves.add(small.data(), 1);
                    leaves.apply(team);
                    bool moved = true;
                    for (Size i = 0; i < n; ++i) {
                        moved = moved && std::equal(&rows[i * d], &rows[i * d] + d, &data[order[i] * d]);
                        moved = moved && small[i] == before[order[i]] && leaves.places()[order[i]] == i;
                    }
                    CHECK(moved);
                    if (!interrupted) leaves.restore(team);
                }
                CHECK(rows == data && small == before);
            }
}

void search_can_be_repeated() {
    const Size n = 1500, k = 8;
    ThreadTeam team(2);
    for (Size d : {12, 150})
        for (float scale : {1.0f, 20.0f}) {
            auto data = grouped_rows(n, d, 20, 5);
            if (scale > 1.0f)  // images
                for (float& x : data) x = std::clamp(std::round(scale * x), 0.0f, 255.0f);
            NeighborIndex index({data.data(), n, d}, find_metric("euclidean"), 9, nullptr, team);
            Table first(n, k), second(n, k);
            for (Table* table : {&first, &second})
                index.search_approximate(k, search_options(0), table->index.data(), table->distance.data(), team);
            CHECK(first == second);
        }
}

void equally_near_rows_are_in_ascending_order() {
    const Size n = 1500, d = 4, k = 8;
    std::vector<float> data(static_cast<std::size_t>(n * d));
    for (Size i = 0; i < n; ++i)
        for (Size c = 0; c < d; ++c) data[i * d + c] = static_cast<float>(below(draw32(3, i * d + c), 6));
    ThreadTeam team(2);
    NeighborIndex index({data.data(), n, d}, find_metric("euclidean"), 9, nullptr, team);
    Table table(n, k);
    index.search_approximate(k, search_options(0), table.index.data(), table.distance.data(), team);
    bool ascending = true;
    Size ties = 0;
    for (Size e = 0; e < n * k; ++e) {
        if (e % k < 2 || table.distance[e] != table.distance[e - 1]) continue;
        ascending = ascending && table.index[e - 1] < table.index[e];
        ++ties;
    }
    CHECK(ascending);
    CHECK(ties > n);
}

void interrupted_forest_can_be_grown_again() {
    const Size n = 1500, d = 12, k = 8;
    const auto data = grouped_rows(n, d, 20, 5);
    const Matrix rows{data.data(), n, d};
    ThreadTeam team(2);
    const auto search = [&](NeighborIndex& index) {
        Table table(n, k);
        index.search_approximate(k, search_options(), table.index.data(), table.distance.data(), team);
        return table;
    };
    NeighborIndex index(rows, find_metric("euclidean"), 9, nullptr, team);
    ThreadTeam interrupted(1, [] { return true; }, std::chrono::milliseconds(0));
    CHECK(throws<Interrupted>([&] { index.grow_forest(8, 96, interrupted); }));
    NeighborIndex whole(rows, find_metric("euclidean"), 9, nullptr, team);
    CHECK(search(index) == search(whole));
}

void query_of_a_known_row_finds_this_row() {
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
            const QueryOptions options{.k = k, .pool = 20, .trees = 2, .share = 1.0f};
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

constexpr Test tests[] = {
    TEST(equal_rows_have_equal_hashes),
    TEST(scan_finds_the_first_bad_row),
    TEST(exact_search_equals_naive_search),
    TEST(rows_of_bytes_have_the_distances_of_other_rows),
    TEST(search_for_all_rows_finds_all_rows),
    TEST(sparse_search_equals_dense_search),
    TEST(approximate_search_has_high_recall_for_any_number_of_threads),
    TEST(rows_in_leaf_order_are_put_back),
    TEST(search_can_be_repeated),
    TEST(equally_near_rows_are_in_ascending_order),
    TEST(interrupted_forest_can_be_grown_again),
    TEST(query_of_a_known_row_finds_this_row),
    TEST(unknown_metric_is_an_error),
};

}  // namespace

int main() { return run_all(tests); }
