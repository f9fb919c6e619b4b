// What the C++ tests share: checks without a framework (a failed one says where, and the program's exit status says
// that there was one), data, and the loop over the tests. Each program includes it once.
#pragma once

#include "neighbors/neighbor_index.hpp"
#include "base/rng.hpp"
#include "graph/smooth_knn.hpp"
#include "graph/symmetrize.hpp"

#include <cstdio>
#include <exception>
#include <span>
#include <vector>

namespace {

using namespace vicinal;

int failures = 0;

#define CHECK(condition)                                                  \
    do {                                                                  \
        if (!(condition)) {                                               \
            std::printf("  %s:%d: %s\n", __FILE__, __LINE__, #condition); \
            ++failures;                                                   \
        }                                                                 \
    } while (false)

template <class E, class F>
bool throws(const F& f) {
    try {
        f();
    } catch (const E&) {
        return true;
    }
    return false;
}

inline float uniform(std::uint32_t key, std::uint32_t draw) { return static_cast<float>(draw32(key, draw)) * 0x1p-32f; }

// Rows around `centres` well-separated points: structure that an approximate search can use.
inline std::vector<float> grouped_rows(Size n, Size d, std::uint32_t centres, std::uint32_t key) {
    std::vector<float> out(static_cast<std::size_t>(n * d));
    for (Size i = 0; i < n; ++i) {
        const std::uint32_t group = below(draw32(key, static_cast<std::uint32_t>(i)), centres);
        for (Size k = 0; k < d; ++k) {
            const auto cell = static_cast<std::uint32_t>(i * d + k);
            out[i * d + k] = 10.0f * uniform(key + 1, group * 1000 + static_cast<std::uint32_t>(k)) +
                             uniform(key + 2, cell) + uniform(key + 3, cell) - 1.0f;
        }
    }
    return out;
}

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

// The fuzzy graph of some grouped rows.
inline FuzzyGraph small_graph(Size n, Size k) {
    ThreadTeam team(2);
    const auto data = grouped_rows(n, 4, 5, 77);
    NeighborIndex index({data.data(), n, 4}, find_metric("euclidean"), 0, nullptr, team);
    Table table(n, k);
    index.search_exact(k, table.index.data(), table.distance.data(), team);
    std::vector<float> rho(static_cast<std::size_t>(n)), sigma(rho.size()), p(table.index.size());
    SmoothKnnOptions options;
    options.k = static_cast<double>(k);
    SmoothKnn(table.distance.data(), n, k, options).run(rho.data(), sigma.data(), team);
    const NeighborTable view{table.index.data(), table.distance.data(), n, k};
    memberships(view, rho.data(), sigma.data(), false, p.data(), team);
    return {Symmetrizer(view, p.data(), FuzzyMix{1.0f}).run(team)};
}

struct Test {
    const char* name;
    void (*run)();
};

#define TEST(function) {#function, function}

// The program's exit status.
inline int run_all(std::span<const Test> tests) {
    int failed = 0;
    for (const Test& test : tests) {
        const int before = failures;
        std::printf("%s\n", test.name);
        std::fflush(stdout);
        try {
            test.run();
        } catch (const std::exception& error) {
            std::printf("  threw: %s\n", error.what());
            ++failures;
        }
        failed += failures > before ? 1 : 0;
    }
    std::printf("%zu tests, %d failed\n", tests.size(), failed);
    return failed == 0 ? 0 : 1;
}

}  // namespace
