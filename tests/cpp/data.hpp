// Data and options that several test programs use.
#pragma once

#include "base/rng.hpp"
#include "graph/smooth_knn.hpp"
#include "graph/symmetrize.hpp"
#include "layout/sampled_layout.hpp"
#include "neighbors/neighbor_index.hpp"

#include <vector>

namespace {

using namespace vicinal;

inline float uniform(std::uint32_t key, std::uint32_t draw) { return static_cast<float>(draw32(key, draw)) * 0x1p-32f; }

// A sequence of random numbers.
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

// Random rows on a random scale. Often they have few different values, so that ties and duplicates are common.
inline std::vector<float> random_rows(Draws& draws, Size n, Size d) {
    constexpr float scales[] = {1.0f, 1.0f, 1e-3f, 1e6f, 1e-12f};
    const float scale = scales[draws.below(5)];
    const bool coarse = draws.often(), constant = draws.below(10) == 0;
    std::vector<float> out(static_cast<std::size_t>(n * d));
    for (float& x : out) x = scale * (constant ? 1.0f : coarse ? static_cast<float>(draws.below(4)) : draws.uniform());
    return out;
}

// Rows around `centers` well-separated points: structure that an approximate search can use.
inline std::vector<float> grouped_rows(Size n, Size d, std::uint32_t centers, std::uint32_t key) {
    std::vector<float> out(static_cast<std::size_t>(n * d));
    for (Size i = 0; i < n; ++i) {
        const std::uint32_t group = below(draw32(key, static_cast<std::uint32_t>(i)), centers);
        for (Size k = 0; k < d; ++k) {
            const auto cell = static_cast<std::uint32_t>(i * d + k);
            out[i * d + k] = 10.0f * uniform(key + 1, group * 1000 + static_cast<std::uint32_t>(k)) +
                             uniform(key + 2, cell) + uniform(key + 3, cell) - 1.0f;
        }
    }
    return out;
}

inline std::vector<float> random_points(Size n, Size dim, float extent) {
    std::vector<float> out(static_cast<std::size_t>(n * dim));
    for (std::size_t e = 0; e < out.size(); ++e) out[e] = extent * uniform(17, static_cast<std::uint32_t>(e));
    return out;
}

inline std::vector<float> copied(Matrix points) { return {points.data, points.data + points.rows * points.cols}; }

struct Table {
    Table(Size n, Size columns)
        : rows(n), k(columns), index(static_cast<std::size_t>(n * columns)), distance(index.size()) {}
    bool operator==(const Table&) const = default;
    Size rows, k;
    std::vector<Index> index;
    std::vector<float> distance;
};

struct FuzzyGraph {
    OwnedCsr csr;
    Csr view() const {
        return {csr.indptr.data(), csr.indices.data(), csr.weights.data(), static_cast<Size>(csr.indptr.size()) - 1};
    }
};

inline Table exact_neighbors(Matrix rows, Size k, const char* metric, ThreadTeam& team) {
    NeighborIndex index(rows, find_metric(metric), 0, nullptr, team);
    Table table(rows.rows, k);
    index.search_exact(k, table.index.data(), table.distance.data(), team);
    return table;
}

// The fuzzy graph of a table, with the defaults of UMAP.
inline FuzzyGraph fuzzy_graph(const Table& table, ThreadTeam& team) {
    std::vector<float> rho(static_cast<std::size_t>(table.rows)), sigma(rho.size()), p(table.index.size());
    SmoothKnn(table.distance.data(), table.rows, table.k, {static_cast<double>(table.k), 1.0, 1.0, false})
        .run(rho.data(), sigma.data(), team);
    const NeighborTable view{table.index.data(), table.distance.data(), table.rows, table.k};
    memberships(view, rho.data(), sigma.data(), false, p.data(), team);
    return {Symmetrizer(view, p.data(), FuzzyMix{1.0f}).run(team)};
}

// The fuzzy graph of n grouped rows.
inline FuzzyGraph small_graph(Size n, Size k) {
    ThreadTeam team(2);
    const auto data = grouped_rows(n, 4, 5, 77);
    return fuzzy_graph(exact_neighbors({data.data(), n, 4}, k, "euclidean", team), team);
}

// The defaults of vicinal.SearchOptions.
inline SearchOptions search_options(Size unordered_bytes = Size{1} << 28) {
    return {.trees = 8,
            .leaf_rows = 96,
            .node_rows = 300,
            .candidates = 16,
            .spare = 16,
            .rounds = 12,
            .coarse = 0.55,
            .fine = 0.37,
            .final = 0.02,
            .structureless = 0.8,
            .unordered_bytes = unordered_bytes};
}

inline ForceParameters umap_force() { return {ForceKind::umap, 1.577f, 0.895f, 1.0f}; }

inline LayoutOptions layout_options() {
    LayoutOptions options;
    options.force = umap_force();
    options.negatives = 5;
    options.pulls = 2;
    options.firings_per_sweep = 1.0;
    return options;
}

}  // namespace
