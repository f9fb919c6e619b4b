// The spectral initialization: its parts against definitions, whole eigenmaps against dense eigenvectors.
#include "checks.hpp"
#include "data.hpp"
#include "initialize/coarsen.hpp"
#include "initialize/components.hpp"
#include "initialize/eigenmap.hpp"
#include "initialize/symmetric_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace {

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
            const double half = (cut + 1.0) / 2.0, center = (cut - 1.0) / 2.0;
            std::vector<double> previous(start.begin(), start.end()), current(previous.size());
            const auto mapped = [&](const std::vector<double>& x, Size i, Size c) {
                double sum = -center * x[i * width + c];
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
                Floats block = make_floats(n * width);
                std::copy(start.begin(), start.end(), block.get());
                ChebyshevFilter filter({csr.indptr, csr.indices, weights.data(), n}, width);
                filter.apply(block, cut, degree_wanted, team);
                blocks.emplace_back(block.get(), block.get() + n * width);
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

// Rings of the given sizes; row numbers are dealt out to the rings in turn, so that components are interleaved.
OwnedCsr rings(const std::vector<Size>& sizes) {
    Size rows = 0;
    for (Size size : sizes) rows += size;
    std::vector<std::vector<Index>> members(sizes.size());
    for (std::size_t r = 0, i = 0; i < static_cast<std::size_t>(rows); r = (r + 1) % sizes.size())
        if (static_cast<Size>(members[r].size()) < sizes[r]) members[r].push_back(static_cast<Index>(i++));
    std::vector<std::vector<Index>> tails(static_cast<std::size_t>(rows));
    for (const std::vector<Index>& ring : members)
        for (std::size_t k = 0; ring.size() > 1 && k < ring.size(); ++k) {
            tails[ring[k]].push_back(ring[(k + 1) % ring.size()]);
            if (ring.size() > 2) tails[ring[k]].push_back(ring[(k + ring.size() - 1) % ring.size()]);
        }
    OwnedCsr out;
    out.indptr.push_back(0);
    for (const std::vector<Index>& row : tails) {
        out.indices.insert(out.indices.end(), row.begin(), row.end());
        out.indptr.push_back(static_cast<Size>(out.indices.size()));
    }
    out.weights.assign(out.indices.size(), 1.0f);
    return out;
}

// Rows along a line; each is joined to the 7 before and the 7 behind it, by random weights.
OwnedCsr strip(Size n) {
    constexpr Size reach = 7;
    OwnedCsr out;
    out.indptr.push_back(0);
    for (Size i = 0; i < n; ++i) {
        for (Size j = std::max<Size>(0, i - reach); j < std::min(n, i + reach + 1); ++j) {
            if (j == i) continue;
            out.indices.push_back(static_cast<Index>(j));
            out.weights.push_back(0.1f + uniform(9, static_cast<std::uint32_t>(std::min(i, j) * n + std::max(i, j))));
        }
        out.indptr.push_back(static_cast<Size>(out.indices.size()));
    }
    return out;
}

Csr view(const OwnedCsr& graph) {
    return {graph.indptr.data(), graph.indices.data(), graph.weights.data(),
            static_cast<Size>(graph.indptr.size()) - 1};
}

// M = D^{-1/2} W D^{-1/2}
std::vector<double> dense_matrix(const Csr& graph) {
    const Size n = graph.rows;
    std::vector<double> matrix(static_cast<std::size_t>(n * n), 0.0), degree(static_cast<std::size_t>(n), 0.0);
    for (Size i = 0; i < n; ++i)
        for (Size e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e) degree[i] += graph.weights[e];
    for (Size i = 0; i < n; ++i)
        for (Size e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e)
            matrix[i * n + graph.indices[e]] = graph.weights[e] / std::sqrt(degree[i] * degree[graph.indices[e]]);
    return matrix;
}

void symmetric_eigen_solves_the_eigenvalue_equation() {
    Draws draws(5);
    for (Size n : {1, 2, 3, 8, 17, 40})
        for (int kind = 0; kind < 4; ++kind) {  // random, rank 1, diagonal with equal values, zero
            std::vector<double> matrix(static_cast<std::size_t>(n * n), 0.0);
            for (Size i = 0; i < n; ++i)
                for (Size j = 0; j <= i; ++j) {
                    const double x = kind == 0   ? draws.uniform() - 0.5
                                     : kind == 1 ? static_cast<double>((i + 1) * (j + 1))
                                     : kind == 2 ? (i == j ? static_cast<double>(i / 2) : 0.0)
                                                 : 0.0;
                    matrix[i * n + j] = matrix[j * n + i] = x;
                }
            const SymmetricEigen eigen = symmetric_eigen(matrix, n);
            const double scale = std::max(std::fabs(eigen.values.front()), std::fabs(eigen.values.back())) + 1e-300;
            double residual = 0.0, skewness = 0.0;
            for (Size k = 0; k < n; ++k)
                for (Size i = 0; i < n; ++i) {
                    double image = 0.0, product = 0.0;
                    for (Size j = 0; j < n; ++j) {
                        image += matrix[i * n + j] * eigen.vectors[k * n + j];
                        product += eigen.vectors[k * n + j] * eigen.vectors[i * n + j];
                    }
                    residual = std::max(residual, std::fabs(image - eigen.values[k] * eigen.vectors[k * n + i]));
                    skewness = std::max(skewness, std::fabs(product - (i == k)));
                }
            CHECK(residual <= 1e-13 * scale * static_cast<double>(n));
            CHECK(skewness <= 1e-13 * static_cast<double>(n));
            CHECK(std::is_sorted(eigen.values.rbegin(), eigen.values.rend()));
        }
}

void symmetric_eigen_ends_on_nan() {
    CHECK(symmetric_eigen(std::vector<double>(64, std::nan("")), 8).values.size() == 8);
}

void components_are_numbered_by_their_lowest_rows() {
    const OwnedCsr graph = rings({5, 1, 30000, 2, 1, 700});
    for (int threads : {1, 3}) {
        ThreadTeam team(threads);
        const Components found = connected_components(view(graph), team);
        CHECK(found.count() == 6);
        CHECK(found.bounds == (std::vector<Size>{0, 5, 6, 30006, 30008, 30009, 30709}));
        for (Size i = 0; i < 6; ++i) CHECK(found.of_row[i] == i);
        CHECK(found.of_row[6] == 0);
        for (Size c = 0; c < found.count(); ++c)
            for (Size p = found.bounds[c]; p < found.bounds[c + 1]; ++p) {
                CHECK(found.of_row[found.order[p]] == c);
                CHECK(p == found.bounds[c] || found.order[p - 1] < found.order[p]);
            }
    }
}

void components_join_edges_of_one_direction() {
    OwnedCsr graph;
    graph.indptr = {0, 0, 0, 1, 2};  // 2 -> 0, 3 -> 2
    graph.indices = {0, 2};
    graph.weights = {1.0f, 1.0f};
    ThreadTeam team(1);
    CHECK(connected_components(view(graph), team).of_row == (std::vector<Index>{0, 1, 0, 0}));
}

void coarsening_keeps_weights_and_connects_groups() {
    const FuzzyGraph fuzzy = small_graph(3000, 12);
    const Csr graph = fuzzy.view();
    ThreadTeam one(1), three(3);
    const Coarse coarse = coarsen(graph, one), again = coarsen(graph, three);
    CHECK(coarse.group == again.group && coarse.graph.indices == again.graph.indices &&
          coarse.graph.weights == again.graph.weights && coarse.graph.indptr == again.graph.indptr);
    const Csr groups = view(coarse.graph);
    CHECK(groups.rows < graph.rows / 4);
    std::vector<double> degree(static_cast<std::size_t>(groups.rows), 0.0), given(degree);
    std::set<std::pair<Index, Index>> pairs, listed;
    OwnedCsr within;  // the edges inside groups
    within.indptr.push_back(0);
    for (Size i = 0; i < graph.rows; ++i) {
        for (Size e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e) {
            const Index from = coarse.group[i], to = coarse.group[graph.indices[e]];
            degree[from] += graph.weights[e];
            pairs.insert({from, to});
            if (from == to) within.indices.push_back(graph.indices[e]);
        }
        within.indptr.push_back(static_cast<Size>(within.indices.size()));
    }
    within.weights.assign(within.indices.size(), 1.0f);
    for (Size g = 0; g < groups.rows; ++g)
        for (Size e = groups.indptr[g]; e < groups.indptr[g + 1]; ++e) {
            given[g] += groups.weights[e];
            listed.insert({static_cast<Index>(g), groups.indices[e]});
        }
    CHECK(pairs == listed && static_cast<Size>(listed.size()) == groups.indptr[groups.rows]);
    for (Size g = 0; g < groups.rows; ++g) CHECK(std::fabs(degree[g] - given[g]) <= 1e-5 * degree[g]);
    CHECK(connected_components(view(within), one).count() == groups.rows);
}

void rows_without_edges_are_groups_of_one() {
    OwnedCsr graph;
    graph.indptr.assign(5, 0);
    ThreadTeam team(2);
    const Coarse coarse = coarsen(view(graph), team);
    CHECK(coarse.group == (std::vector<Index>{0, 1, 2, 3}));
    CHECK(coarse.graph.indptr == (std::vector<Size>{0, 0, 0, 0, 0}) && coarse.graph.indices.empty());
}

// The mean Rayleigh quotient of I - M on the vectors is close to that of the eigenvectors, and the vectors are
// orthonormal and orthogonal to the trivial one.
void eigenmaps_are_nearly_as_smooth_as_eigenvectors() {
    for (Size n : {3, 12, 16, 17, 40, 300, 1300}) {
        const OwnedCsr owned = strip(n);
        const Csr graph = view(owned);
        ThreadTeam one(1);
        const Size wanted = 2;
        const std::vector<double> matrix = dense_matrix(graph);
        std::vector<float> vectors(static_cast<std::size_t>(n * wanted));
        eigenmap(graph, wanted, 7, vectors.data(), one);
        CHECK(same_for_any_threads([&](ThreadTeam& team) {
            std::vector<float> out(vectors.size());
            eigenmap(graph, wanted, 7, out.data(), team);
            return out;
        }));
        double smooth = 0.0, best = 0.0;
        for (Size k = 0; k < wanted; ++k) {
            double norm = 0.0, image = 0.0, cross = 0.0, along = 0.0;
            for (Size i = 0; i < n; ++i) {
                const double x = vectors[i * wanted + k];
                norm += x * x;
                cross += x * vectors[i * wanted + (k + 1) % wanted];
                double degree = 0.0;
                for (Size e = graph.indptr[i]; e < graph.indptr[i + 1]; ++e) degree += graph.weights[e];
                along += x * std::sqrt(degree);
                for (Size j = 0; j < n; ++j) image += x * matrix[i * n + j] * vectors[j * wanted + k];
            }
            CHECK(std::fabs(norm - 1.0) < 1e-5 && std::fabs(cross) < 1e-5 && std::fabs(along) < 1e-4);
            smooth += 1.0 - image;
        }
        if (n > 300) continue;  // dense eigenvectors take long
        const SymmetricEigen eigen = symmetric_eigen(matrix, n);
        for (Size k = 1; k <= wanted; ++k) best += 1.0 - eigen.values[k];
        CHECK(smooth >= best - 1e-5 && smooth <= 1.02 * best + 1e-5);
    }
}

void components_have_the_eigenmaps_of_their_own_graphs() {
    const std::vector<Size> sizes{9000, 3, 700, 1, 40, 2, 5000, 10};
    const OwnedCsr graph = rings(sizes);
    const Csr whole = view(graph);
    for (Size wanted : {1, 2, 6}) {
        std::vector<std::vector<float>> out;
        ThreadTeam one(1), three(3);
        const Components components = connected_components(whole, one);
        for (ThreadTeam* team : {&one, &three}) {
            out.emplace_back(static_cast<std::size_t>(whole.rows * wanted));
            component_eigenmaps(whole, components, wanted, 3, out.back().data(), *team);
        }
        CHECK(out[0] == out[1]);
        for (std::size_t c = 0; c < sizes.size(); ++c) {
            const OwnedCsr ring = rings({sizes[c]});
            std::vector<float> alone(static_cast<std::size_t>(sizes[c] * wanted));
            eigenmap(view(ring), wanted, 3, alone.data(), one);
            for (Size i = 0; i < sizes[c]; ++i)
                for (Size k = 0; k < wanted; ++k) {
                    const float x = alone[i * wanted + k];
                    CHECK(std::isfinite(x) && x == out[0][components.order[components.bounds[c] + i] * wanted + k]);
                    CHECK(k + 1 < sizes[c] || x == 0.0f);
                }
        }
    }
}

void segment_means_take_rows_evenly() {
    const std::vector<float> rows{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    const std::vector<Index> order{9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
    const std::vector<Size> begin{0, 2, 9}, end{2, 8, 10};
    const RowSets sets{order.data(), begin.data(), end.data(), 3};
    ThreadTeam team(2);
    std::vector<double> means(3);
    segment_means({rows.data(), 10, 1}, sets, 100, means.data(), team);
    CHECK(means == (std::vector<double>{8.5, 4.5, 0.0}));
    segment_means({rows.data(), 10, 1}, sets, 3, means.data(), team);
    CHECK(means == (std::vector<double>{8.5, 5.0, 0.0}));  // of the second set, rows 7, 5 and 3
}

constexpr Test tests[] = {
    TEST(chebyshev_filter_equals_the_dense_polynomial),
    TEST(symmetric_eigen_solves_the_eigenvalue_equation),
    TEST(symmetric_eigen_ends_on_nan),
    TEST(components_are_numbered_by_their_lowest_rows),
    TEST(components_join_edges_of_one_direction),
    TEST(coarsening_keeps_weights_and_connects_groups),
    TEST(rows_without_edges_are_groups_of_one),
    TEST(eigenmaps_are_nearly_as_smooth_as_eigenvectors),
    TEST(components_have_the_eigenmaps_of_their_own_graphs),
    TEST(segment_means_take_rows_evenly),
};

}  // namespace

int main() { return run_all(tests); }
