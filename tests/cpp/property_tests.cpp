// Statements about random data, hundreds of cases each: heaps, graphs and searches against the plainest code there is.
#define VICINAL_LEVEL tested
#include "checks.hpp"
#include "neighbors/heap_push.hpp"
#include "neighbors/neighbor_index.hpp"
#include "neighbors/sparse_index.hpp"
#include "graph/symmetrize.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace vicinal;

namespace {

constexpr std::uint32_t cases = 150;

// Numbers of one case, one after another.
class Draws {
  public:
    explicit Draws(std::uint32_t key) : key_(key) {}
    std::uint32_t below(std::uint32_t n) { return vicinal::below(draw32(key_, at_++), n); }
    Size size(Size low, Size high) { return low + below(static_cast<std::uint32_t>(high - low + 1)); }
    float uniform() { return ::uniform(key_, at_++); }
    bool often() { return below(3) > 0; }

  private:
    std::uint32_t key_, at_ = 0;
};

// Few different values, so that ties and duplicates are the rule; or huge, tiny and denormal ones.
std::vector<float> random_rows(Draws& draws, Size n, Size d) {
    constexpr float scales[] = {1.0f, 1.0f, 1e-3f, 1e6f, 1e-12f};
    const float scale = scales[draws.below(5)];
    const bool coarse = draws.often(), constant = draws.below(10) == 0;
    std::vector<float> out(static_cast<std::size_t>(n * d));
    for (float& x : out) x = scale * (constant ? 1.0f : coarse ? static_cast<float>(draws.below(4)) : draws.uniform());
    return out;
}

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

// A rank is a function of the pair, as it is of two rows.
float rank_of(std::uint32_t key, Size row, Index candidate, std::uint32_t values) {
    return static_cast<float>(below(draw32(key + 7919 * static_cast<std::uint32_t>(row), candidate), values));
}

void heaps_hold_the_least_of_all_that_was_offered() {
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

void heaps_do_not_depend_on_the_order_of_offers_or_threads() {
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

void graphs_combine_both_directions_of_every_pair() {
    for (std::uint32_t seed = 0; seed < cases; ++seed) {
        Draws draws(2000 + seed);
        const Size n = draws.size(1, 60), k = std::min(n, draws.size(1, 12));
        const float mix = draws.uniform();
        std::vector<Index> index;
        std::vector<float> membership, distance(static_cast<std::size_t>(n * k));
        std::map<std::pair<Index, Index>, float> directed;
        for (Size i = 0; i < n; ++i) {
            std::set<Index> row;
            for (Size e = 0; e < k; ++e) {
                const auto j = static_cast<Index>(draws.below(static_cast<std::uint32_t>(n)));
                const bool there = j != i && row.insert(j).second && draws.often();
                index.push_back(there ? j : -1);
                membership.push_back(there && draws.below(8) > 0 ? draws.uniform() : 0.0f);
                if (there && membership.back() > 0.0f) directed[{static_cast<Index>(i), j}] = membership.back();
            }
        }
        ThreadTeam team(3);
        const NeighborTable table{index.data(), distance.data(), n, k};
        const FuzzyMix combine{mix};
        const OwnedCsr graph = Symmetrizer<FuzzyMix>(table, membership.data(), combine).run(team);
        std::map<std::pair<Index, Index>, float> wanted;
        const auto of = [&](Index i, Index j) {
            const auto found = directed.find({i, j});
            return found == directed.end() ? 0.0f : found->second;
        };
        for (const auto& [pair, p] : directed)
            for (const auto& [i, j] : {pair, std::pair(pair.second, pair.first)})
                if (const float w = combine(of(i, j), of(j, i)); w > 0.0f) wanted[{i, j}] = w;
        CHECK(graph.indptr.front() == 0 && static_cast<std::size_t>(graph.indptr.back()) == graph.indices.size());
        CHECK(graph.indices.size() == wanted.size() && graph.weights.size() == wanted.size());
        auto next = wanted.begin();  // by row, then by column: the order of the arrays
        for (Size i = 0; i < n; ++i)
            for (Size e = graph.indptr[i]; e < graph.indptr[i + 1] && next != wanted.end(); ++e, ++next) {
                CHECK(next->first == std::pair(static_cast<Index>(i), graph.indices[e]));
                CHECK(next->second == graph.weights[e]);
            }
    }
}

double squared(const float* x, const float* y, Size d) {
    double sum = 0.0;
    for (Size c = 0; c < d; ++c) sum += (static_cast<double>(x[c]) - y[c]) * (static_cast<double>(x[c]) - y[c]);
    return sum;
}

// Distances of the k nearest other rows, by looking at all of them.
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

void exact_searches_find_the_nearest_of_any_rows() {
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

void approximate_searches_give_whole_tables_whatever_the_rows() {
    for (std::uint32_t seed = 0; seed < 30; ++seed) {
        Draws draws(4000 + seed);
        const Size n = draws.size(200, 700), d = draws.below(3) == 0 ? 140 : draws.size(1, 12), k = draws.size(2, 20);
        const std::vector<float> rows = random_rows(draws, n, d);
        ThreadTeam team(2), alone(1);
        std::vector<Index> index(static_cast<std::size_t>(n * k)), again(index.size());
        std::vector<float> distance(index.size()), once_more(index.size());
        NeighborIndex found({rows.data(), n, d}, find_metric("euclidean"), seed, nullptr, team);
        found.search_approximate(k, {}, index.data(), distance.data(), team);
        found.search_approximate(k, {}, again.data(), once_more.data(), alone);
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

void sparse_searches_agree_with_dense_ones() {
    for (std::uint32_t seed = 0; seed < cases; ++seed) {
        Draws draws(5000 + seed);
        const Size n = draws.size(1, 80), d = draws.size(1, 30), k = std::min(n, draws.size(1, 10));
        std::vector<float> rows = random_rows(draws, n, d);
        for (float& x : rows) x = draws.below(3) > 0 ? 0.0f : x;  // whole rows of zeros are likely
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

// Memory that runs out in any thread is an exception of the caller, and the team goes on working.
void exhausted_memory_reaches_the_caller() {
    ThreadTeam team(4);
    for (Size at = 0; at < 400; at += 37) {
        CHECK(throws<std::bad_alloc>([&] {
            team.parallel_for(400, 1, [&](Size begin, Size, int) {
                if (begin == at) throw std::bad_alloc();
            });
        }));
        Size done = 0;
        team.parallel_for(400, 1, [&](Size, Size, int) { __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED); });
        CHECK(done == 400);
    }
}

constexpr Test tests[] = {
    TEST(heaps_hold_the_least_of_all_that_was_offered),
    TEST(heaps_do_not_depend_on_the_order_of_offers_or_threads),
    TEST(graphs_combine_both_directions_of_every_pair),
    TEST(exact_searches_find_the_nearest_of_any_rows),
    TEST(approximate_searches_give_whole_tables_whatever_the_rows),
    TEST(sparse_searches_agree_with_dense_ones),
    TEST(exhausted_memory_reaches_the_caller),
};

}  // namespace

int main() { return run_all(tests); }
