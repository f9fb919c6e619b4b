// The Chebyshev filter.
#include "checks.hpp"
#include "data.hpp"
#include "initialize/chebyshev.hpp"

#include <algorithm>
#include <cmath>
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
    TEST(chebyshev_filter_equals_the_dense_polynomial),
};

}  // namespace

int main() { return run_all(tests); }
