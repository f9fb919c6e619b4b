// Heaps and searches on random data, compared with the simplest possible code.
#define VICINAL_LEVEL tested
#include "checks.hpp"
#include "data.hpp"
#include "neighbors/heap_push.hpp"
#include "neighbors/neighbor_index.hpp"
#include "neighbors/sparse_index.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace {

constexpr std::uint32_t cases = 150;

struct OwnedHeap {
    OwnedHeap(Size rows, Size k)
        : stride((k + heap_pad - 1) / heap_pad * heap_pad), ranks(static_cast<std::size_t>(rows * stride)),
          worst(static_cast<std::size_t>(rows)), tags(ranks.size()), locks(worst.size()),
          view{ranks.data(), tags.data(), worst.data(), locks.data(), rows, k, stride} {
        view.clear(0, rows);
    }
    Size stride;
    std::vector<float> ranks, worst;
    std::vector<std::uint32_t> tags;
    std::vector<std::uint8_t> locks;
    NeighborHeap view;
};

// The rank of a pair, as a function of both rows.
float rank_of(std::uint32_t key, Size row, Index candidate, std::uint32_t values) {
    return static_cast<float>(below(draw32(key + 7919 * static_cast<std::uint32_t>(row), candidate), values));
}

void heaps_keep_the_smallest_of_all_candidates() {
    for (std::uint32_t seed = 0; seed < cases; ++seed) {
        Draws draws(seed);
        const Size rows = draws.size(1, 6), k = draws.size(1, 40), offered = draws.size(0, 300);
        const std::uint32_t values = draws.often() ? 5 : 1u << 20, many = static_cast<std::uint32_t>(draws.size(1, 90));
        OwnedHeap heap(rows, k);
        std::vector<std::set<std::pair<float, Index>>> wanted(static_cast<std::size_t>(rows));
        for (Size t = 0; t < offered; ++t) {
            const Size row = draws.size(0, rows - 1);
            const auto candidate = static_cast<Index>(draws.below(many));
            const float rank = rank_of(seed, row, candidate, values);
            tested::push(heap.view, row, rank, candidate);
            wanted[row].insert({rank, candidate});
        }
        for (Size i = 0; i < rows; ++i) {
            const HeapRow row = heap.view.row(i);
            Size at = 0;
            for (const auto& [rank, candidate] : wanted[i]) {
                const bool kept = at < k;
                CHECK(tested::contains(heap.view, i, candidate) == kept);
                if (!kept) continue;
                CHECK(row.holds(at) && row.rank[at] == rank && row.index(at) == candidate);
                ++at;
            }
            for (; at < heap.stride; ++at) CHECK(!row.holds(at) && row.rank[at] == no_rank);
            CHECK(heap.view.bound(i) == row.rank[k - 1]);
        }
    }
}

void heaps_do_not_depend_on_the_order_of_candidates_or_threads() {
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
        Draws draws(1000 + seed);
        const Size rows = draws.size(1, 4), k = draws.size(1, 20), offered = 4000;
        OwnedHeap one(rows, k), other(rows, k);
        ThreadTeam alone(1), team(4);
        const auto offer = [&](OwnedHeap& heap, ThreadTeam& by, bool backwards) {
            by.parallel_for(offered, 16, [&](Size begin, Size end, int) {
                for (Size t = begin; t < end; ++t) {
                    const auto draw = static_cast<std::uint32_t>(backwards ? offered - 1 - t : t);
                    const Size row = below(draw32(seed, draw), static_cast<std::uint32_t>(rows));
                    const auto candidate = static_cast<Index>(below(draw32(seed + 1, draw), 500));
                    tested::push(heap.view, row, rank_of(seed, row, candidate, 9), candidate);
                }
            });
        };
        offer(one, alone, false);
        offer(other, team, true);
        CHECK(one.ranks == other.ranks);
        for (std::size_t e = 0; e < one.tags.size(); ++e) CHECK(one.tags[e] >> 1 == other.tags[e] >> 1);
    }
}

double squared(const float* x, const float* y, Size d) {
    double sum = 0.0;
    for (Size c = 0; c < d; ++c) sum += (static_cast<double>(x[c]) - y[c]) * (static_cast<double>(x[c]) - y[c]);
    return sum;
}

// Distances of the k nearest other rows, by comparing all of them.
std::vector<double> nearest(const std::vector<float>& rows, Size n, Size d, Size i, Size k) {
    std::vector<double> all;
    for (Size j = 0; j < n; ++j)
        if (j != i) all.push_back(std::sqrt(squared(rows.data() + i * d, rows.data() + j * d, d)));
    std::sort(all.begin(), all.end());
    all.resize(static_cast<std::size_t>(k));
    return all;
}

void check_table(const std::vector<float>& rows, Size n, Size d, Size k, const std::vector<Index>& index,
                 const std::vector<float>& distance) {
    double longest = 0.0;
    for (const float x : rows) longest = std::max(longest, std::fabs(static_cast<double>(x)));
    const double tolerance = 1e-5 * std::sqrt(static_cast<double>(d)) * longest;
    for (Size i = 0; i < n; ++i) {
        CHECK(index[i * k] == i && distance[i * k] == 0.0f);
        const std::vector<double> wanted = nearest(rows, n, d, i, k - 1);
        std::set<Index> seen;
        for (Size e = 0; e < k; ++e) {
            const Index j = index[i * k + e];
            CHECK(j >= 0 && j < n && seen.insert(j).second);
            CHECK(e < 2 || distance[i * k + e - 1] <= distance[i * k + e]);
            if (e > 0) CHECK(std::fabs(distance[i * k + e] - wanted[e - 1]) <= tolerance + 1e-4 * wanted[e - 1]);
        }
    }
}

void exact_search_finds_the_nearest_rows() {
    for (std::uint32_t seed = 0; seed < cases; ++seed) {
        Draws draws(3000 + seed);
        const Size n = draws.size(1, 150), d = draws.below(4) == 0 ? draws.size(129, 160) : draws.size(1, 20);
        const Size k = std::min(n, draws.size(1, 30));
        const std::vector<float> rows = random_rows(draws, n, d);
        ThreadTeam team(static_cast<int>(draws.size(1, 3)));
        NeighborIndex found({rows.data(), n, d}, find_metric("euclidean"), seed, nullptr, team);
        std::vector<Index> index(static_cast<std::size_t>(n * k));
        std::vector<float> distance(index.size());
        found.search_exact(k, index.data(), distance.data(), team);
        check_table(rows, n, d, k, index, distance);
    }
}

void approximate_search_gives_valid_tables_for_any_rows() {
    for (std::uint32_t seed = 0; seed < 30; ++seed) {
        Draws draws(4000 + seed);
        const Size n = draws.size(200, 700), d = draws.below(3) == 0 ? 140 : draws.size(1, 12), k = draws.size(2, 20);
        const std::vector<float> rows = random_rows(draws, n, d);
        ThreadTeam team(2), alone(1);
        std::vector<Index> index(static_cast<std::size_t>(n * k)), again(index.size());
        std::vector<float> distance(index.size()), once_more(index.size());
        NeighborIndex found({rows.data(), n, d}, find_metric("euclidean"), seed, nullptr, team);
        const SearchOptions options = search_options(draws.often() ? 0 : Size{1} << 28);
        found.search_approximate(k, options, index.data(), distance.data(), team);
        found.search_approximate(k, options, again.data(), once_more.data(), alone);
        CHECK(index == again && distance == once_more);
        for (Size i = 0; i < n; ++i) {
            CHECK(index[i * k] == i);
            std::set<Index> seen;
            for (Size e = 0; e < k; ++e) {
                const Index j = index[i * k + e];
                CHECK(j >= -1 && j < n && (j < 0 || seen.insert(j).second));
                CHECK(std::isfinite(distance[i * k + e]) == (j >= 0));
                CHECK(e < 2 || distance[i * k + e - 1] <= distance[i * k + e]);
            }
        }
    }
}

void sparse_search_finds_the_nearest_rows() {
    for (std::uint32_t seed = 0; seed < cases; ++seed) {
        Draws draws(5000 + seed);
        const Size n = draws.size(1, 80), d = draws.size(1, 30), k = std::min(n, draws.size(1, 10));
        std::vector<float> rows = random_rows(draws, n, d);
        for (float& x : rows) x = draws.below(3) > 0 ? 0.0f : x;  // rows of zeros are likely
        std::vector<Size> indptr{0};
        std::vector<Index> columns;
        std::vector<float> values;
        for (Size i = 0; i < n; ++i) {
            for (Size c = 0; c < d; ++c)
                if (const float x = rows[i * d + c]; x != 0.0f) {
                    columns.push_back(static_cast<Index>(c));
                    values.push_back(x);
                }
            indptr.push_back(static_cast<Size>(columns.size()));
        }
        ThreadTeam team(2);
        const SparseIndex listed({{indptr.data(), columns.data(), values.data(), n}, d}, find_metric("euclidean"), 2.0,
                                 team);
        std::vector<Index> index(static_cast<std::size_t>(n * k));
        std::vector<float> distance(index.size());
        listed.search(k, 0, 0, index.data(), distance.data(), team);
        check_table(rows, n, d, k, index, distance);
    }
}

constexpr Test tests[] = {
    TEST(heaps_keep_the_smallest_of_all_candidates), TEST(heaps_do_not_depend_on_the_order_of_candidates_or_threads),
    TEST(exact_search_finds_the_nearest_rows),       TEST(approximate_search_gives_valid_tables_for_any_rows),
    TEST(sparse_search_finds_the_nearest_rows),
};

}  // namespace

int main() { return run_all(tests); }
