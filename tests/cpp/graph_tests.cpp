// Memberships, symmetrization and growing graphs.
#include "checks.hpp"
#include "data.hpp"
#include "graph/growing_graph.hpp"
#include "graph/smooth_knn.hpp"
#include "graph/symmetrize.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

void smooth_knn_solves_its_equation() {
    ThreadTeam team(2);
    const Size n = 300, k = 12;
    const auto data = grouped_rows(n, 5, 6, 8);
    NeighborIndex index({data.data(), n, 5}, find_metric("euclidean"), 0, nullptr, team);
    Table table(n, k);
    index.search_exact(k, table.index.data(), table.distance.data(), team);
    std::vector<float> rho(static_cast<std::size_t>(n)), sigma(rho.size());
    SmoothKnn(table.distance.data(), n, k, {static_cast<double>(k), 1.0, 1.0, false})
        .run(rho.data(), sigma.data(), team);
    for (Size i = 0; i < n; ++i) {
        double sum = 0.0;
        for (Size e = 1; e < k; ++e)
            sum += std::exp(-std::max(0.0, static_cast<double>(table.distance[i * k + e]) - rho[i]) / sigma[i]);
        CHECK(rho[i] == table.distance[i * k + 1]);
        CHECK(std::fabs(sum - std::log2(12.0)) < 1e-3);
    }
}

void symmetrize_gives_a_fuzzy_union_and_intersection() {
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

void symmetrize_combines_both_directions_of_every_pair() {
    for (std::uint32_t seed = 0; seed < 150; ++seed) {
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
        auto next = wanted.begin();  // sorted by row, then by column, like the arrays
        for (Size i = 0; i < n; ++i)
            for (Size e = graph.indptr[i]; e < graph.indptr[i + 1] && next != wanted.end(); ++e, ++next) {
                CHECK(next->first == std::pair(static_cast<Index>(i), graph.indices[e]));
                CHECK(next->second == graph.weights[e]);
            }
    }
}

// All lists are replaced twice, in another order and in parts: only the last lists count.
void growing_graph_equals_the_graph_of_the_last_lists() {
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

constexpr Test tests[] = {
    TEST(smooth_knn_solves_its_equation),
    TEST(symmetrize_gives_a_fuzzy_union_and_intersection),
    TEST(symmetrize_combines_both_directions_of_every_pair),
    TEST(growing_graph_equals_the_graph_of_the_last_lists),
};

}  // namespace

int main() { return run_all(tests); }
